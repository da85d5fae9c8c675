"""The host's half of CUDA calls without a GPU: what numba's device arrays are asked for, and what would be launched."""

import functools
import itertools

import ml_dtypes
import numpy as np
import pytest

import nbkernels as nb
from nbkernels import dtypes, scalar
from nbkernels.dispatch import driver, views
from nbkernels.dispatch.devices import NUMBA
from nbkernels.dtypes import ASSOCIATIVE, DTYPES, resolve
from nbkernels.operations import BINARY

try:
    from nbkernels.cuda import memory
    from nbkernels.cuda.assemble import assemble
    from tests import launched
    from tests.cases import EVERY
    from tests.on_cuda import wheels

    wheels.work()
except (ImportError, RuntimeError) as error:
    pytest.skip(f"lacks the CUDA wheels: {str(error).splitlines()[0]}", allow_module_level=True)


@pytest.fixture
def gpu(monkeypatch):
    return launched.device(monkeypatch)


def dtype_of(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


# --- views ------------------------------------------------------------------------------------------------------------

ROOM = np.arange(3 * 5 * 4, dtype="f4")
LAYOUTS = {
    "C": ROOM.reshape(3, 5, 4),
    "F matrices": ROOM.reshape(3, 4, 5).transpose(0, 2, 1),
    "F": ROOM.reshape(4, 5, 3).T,
    "rows reversed": ROOM.reshape(3, 5, 4)[:, ::-1],
    "all reversed": ROOM.reshape(3, 5, 4)[::-1, ::-1, ::-1],
    "every second": np.zeros((3, 10, 8), "f4")[:, ::2, 1::2],
    "repeated batch": np.broadcast_to(ROOM[:20].reshape(5, 4), (3, 5, 4)),
    "repeated rows": np.broadcast_to(ROOM[:12].reshape(3, 1, 4), (3, 5, 4)),
    "repeated columns": np.broadcast_to(ROOM[:15].reshape(3, 5, 1), (3, 5, 4)),
}
KEYS = [0, 1, -1, slice(None), slice(1, None), slice(None, None, -1), slice(None, None, 2), (1, 2), (slice(2), -1),
        (slice(None), slice(None, None, -1)), (0, slice(1, 4), slice(None, None, -2)), (), (1, 2, 3)]  # fmt: skip


def layout(x):
    return x.shape, x.strides


def moved(view, x):
    """By how many bytes a view's first element lies behind x's."""
    return view.__array_interface__["data"][0] - x.__array_interface__["data"][0]


@pytest.mark.parametrize("name", LAYOUTS)
def test_views_are_numpys(gpu, name):
    """Of every layout and key, by the numbers; numba's own arrays would say something else."""
    host = LAYOUTS[name]
    x = gpu.like(host)
    for key in KEYS:
        want, found = host[(*(key if isinstance(key, tuple) else (key,)), ...)], views.index(x, key)
        assert type(found) is type(x)
        assert layout(found) == layout(want)
        assert found.device_ctypes_pointer.value - x.device_ctypes_pointer.value == moved(want, host)
    for key in ((0, 5), 3, (0, 0, 0, 0)):
        with pytest.raises(IndexError):
            views.index(x, key)
    for i in range(3):
        found = memory.item(NUMBA.view(x), i)
        assert layout(found) == layout(host[i])
        assert found.address - x.device_ctypes_pointer.value == moved(host[i], host)


def gemms(gpu):
    """(address, strides in bytes) of A of each item of each launch, as the kernel's parameters have them."""
    found = []
    for _, arguments, _ in gpu.launches:
        count, (address, *steps, batch) = arguments[3], arguments[13:17]
        found += [(address + 4 * batch * i, tuple(4 * step for step in steps)) for i in range(count)]
    gpu.events.clear()
    return found


@pytest.mark.parametrize("name", LAYOUTS)
def test_batches_reach_the_kernel_by_their_own_strides(gpu, name):
    """bmm, baddbmm, addbmm, matmul and linear: each matrix at its place, with the strides that the batch has."""
    a, b = LAYOUTS[name], np.zeros((3, 4, 2), "f4")
    x, y, out = gpu.like(a), gpu.like(b), gpu.array((3, 5, 2))
    of_item = [(x.device_ctypes_pointer.value + moved(a[i], a), a[i].strides) for i in range(3)]
    nb.bmm(x, y, out=out)
    assert gemms(gpu) == of_item
    nb.baddbmm(out, x, y)
    assert gemms(gpu) == of_item
    nb.addbmm(gpu.array((5, 2)), x, y)
    assert gemms(gpu) == of_item
    # batch dimensions that do not merge: an item of the first one at a time
    pairs, four = np.zeros((2, 3, 5, 2), "f4").transpose(1, 0, 2, 3), np.stack([a, a])
    wide, turned = gpu.like(pairs), gpu.like(four.transpose(1, 0, 2, 3))
    nb.matmul(turned, gpu.like(np.zeros((3, 2, 4, 2), "f4")), out=wide)
    found, start = gemms(gpu), turned.device_ctypes_pointer.value
    assert sorted(address - start for address, _ in found) == sorted(
        i * turned.strides[0] + j * turned.strides[1] for i in range(3) for j in range(2)
    )
    assert all(strides == turned.strides[2:] for _, strides in found)


def test_numbas_own_views_are_still_wrong():
    """Why all this: the day this fails, read dummyarray.py again."""
    from numba.cuda.cudadrv.dummyarray import Array

    assert Array.from_desc(0, (3, 5, 4), (80, 4, 20), 4)[1].strides == (16, 4)
    assert 0 in Array.from_desc(0, (5, 4), (-16, 4), 4)[0:3].shape


CALLS = {
    "addmm": lambda x, v, s: nb.addmm(v, x, x),
    "mm in place of an input": lambda x, v, s: nb.mm(x, x, out=x),
    "mv": lambda x, v, s: nb.mv(x, v),
    "dot": lambda x, v, s: nb.dot(v, v),
    "outer": lambda x, v, s: nb.outer(v, v),
    "matmul of a vector": lambda x, v, s: nb.matmul(v, x),
    "linear": lambda x, v, s: nb.linear(x, x, v),
    "activation": lambda x, v, s: nb.addmm_activation(v, x, x),
    "epilogue": lambda x, v, s: nb.epilogue(lambda p, a, b: p * a + b)(v, x, x, v, x),
    "epilogue over an input": lambda x, v, s: nb.epilogue(lambda p, a: p + a)(v, x, x, 2, out=x),
    "add": lambda x, v, s: nb.add(x, v),
    "add_": lambda x, v, s: nb.add_(x, v),
    "add where": lambda x, v, s: nb.add(x, 2, where=nb.less(x, v), out=x),
    "overlap": lambda x, v, s: nb.add(x, nb.dispatch.views.transpose(x), out=x),
    "outer sum": lambda x, v, s: nb.add.outer(v, v),
    "sum_to": lambda x, v, s: nb.sum_to(x, (7,)),
    "reduce": lambda x, v, s: nb.add.reduce(x, (0, 1)),
    "reduce where": lambda x, v, s: nb.maximum.reduce(x, 1, keepdims=True, initial=0, where=nb.less(x, 1)),
    "reduce in order": lambda x, v, s: nb.subtract.reduce(x, 1, keepdims=True, initial=1, where=nb.less(v, 1)),
    "reduce over its input": lambda x, v, s: nb.add.reduce(x, 0, out=views.index(x, 0)),
    "accumulate": lambda x, v, s: nb.add.accumulate(x, 1, out=x),
    "at": lambda x, v, s: nb.add.at(x, [0, 2, 0], v),
    "at over itself": lambda x, v, s: nb.add.at(x, (slice(None), [0, 1]), views.index(x, (slice(None), slice(2)))),
    "a number of the CPU": lambda x, v, s: nb.add(x, np.array(2.0, "f4")),
    "elementwise": lambda x, v, s: s(x, v, 2),
    "gradient": lambda x, v, s: nb.vjp(lambda x, v: nb.matmul(x, v), x, v)[1](v),
}


@pytest.mark.parametrize("stride", [4, -4, 28])
@pytest.mark.parametrize("name", CALLS)
def test_no_call_asks_device_arrays_for_views_or_leaves_the_stream(gpu, name, stride):
    """Indexing, reshape and copies to the host raise; all is launched on the arrays' stream; temporaries are the pool's
    and go back to it on that stream, after the last launch that could use them."""
    stream = launched.Stream(0xAB)
    x = gpu.array((7, 7), strides=(28, stride) if abs(stride) == 4 else (4, 28), stream=stream)
    v = gpu.array((7,), strides=(stride,), stream=stream)
    CALLS[name](x, v, nb.elementwise(lambda a, b, c: a * b + c))
    assert gpu.launches
    check(gpu)
    assert {event[-1] for event in gpu.events} == {0xAB}
    for block in [event[1] for event in gpu.events if event[0] == "allocate"]:
        used = [i for i, event in enumerate(gpu.events) if event[0] == "launch" and
                any(type(part) is int and block <= part < block + launched.APART for part in event[2])]  # fmt: skip
        assert used
        assert used[-1] < gpu.events.index(("free", block, 0xAB))


@pytest.mark.parametrize("shapes", [((3, 4200), (4200, 5)), ((8, 70_000), (70_000, 8)), ((9, 9, 5000), (9, 5000, 3))])
def test_a_workspace_is_given_back_after_the_launches(gpu, shapes):
    """Of long sums, whose segments wait there, of products that are made for the first, second and third time."""
    a, b = (gpu.array(shape, stream=launched.Stream(0xAB)) for shape in shapes)
    for _ in range(3):
        gpu.events.clear()
        nb.matmul(a, b)
        names = [event[0] for event in gpu.events]
        assert names[0] == "allocate"
        assert names[-1] == "free"
        assert set(names[1:-1]) == {"launch"}


# --- streams ----------------------------------------------------------------------------------------------------------


def test_inputs_bound_to_other_streams_are_joined(gpu):
    one, two = launched.Stream(0x10), launched.Stream(0x20)
    x, y = gpu.array((4, 4), stream=one), gpu.array((4, 4), stream=two)
    assert nb.add(x, y).stream is one  # a result is bound as the array that it is like
    assert [event[0] for event in gpu.events] == ["join", "launch", "join"]
    assert gpu.events[::2] == [("join", 0x20, 0x10), ("join", 0x10, 0x20)]  # y may be written after it was read
    for call in (lambda out: nb.mm(x, y, out=out), lambda out: nb.matmul(x, y, out=out),
                 lambda out: nb.elementwise(lambda a, b: a * b)(x, y, out=out)):  # fmt: skip
        gpu.events.clear()
        call(gpu.array((4, 4)))
        joins = [event for event in gpu.events if event[0] == "join"]
        assert sorted(joins) == [("join", 0, 0x10), ("join", 0, 0x20), ("join", 0x10, 0), ("join", 0x20, 0)]
        assert {launch[-1] for launch in gpu.launches} == {0}
    gpu.events.clear()
    nb.add.at(x, [0, 1], gpu.array((4,), stream=two))
    assert gpu.events[0] == ("join", 0x20, 0x10)
    gpu.events.clear()
    nb.add(x, x, out=x)
    assert [event[0] for event in gpu.events] == ["launch"]


# --- arguments --------------------------------------------------------------------------------------------------------


def check(gpu):
    """Number and sizes of what is launched are those of the kernel's parameters, by its signature."""
    for kernel, arguments, _ in gpu.launches:
        assert arguments.sizes == launched.signed(kernel), kernel


@functools.cache
def assembled(kernel):
    """Sizes of the parameters in the machine code."""
    machine = assemble(kernel, launched.NEWEST)
    return launched.parameters(machine.cubin, machine.entry)


def check_code(gpu, every=False):
    """The same by the machine code, of one kernel of each body or of every one; how many."""
    check(gpu)
    kernels = dict.fromkeys(launch[0] for launch in gpu.launches)
    kernels = list(kernels) if every else list({kernel.make: kernel for kernel in kernels}.values())
    for kernel in kernels:
        assert assembled(kernel) == launched.signed(kernel), kernel
    return len(kernels)


def pairs(ops, dtypes=tuple(DTYPES)):
    return list(itertools.product(ops, dtypes))


def chosen(cases, often):
    """All, or one of `often` and those where numbers are more than one word or less than one."""
    if EVERY:
        return cases
    return [case for i, case in enumerate(cases) if i % often == 0 or (case[0] == "add" and case[1] in MIXED)]


MIXED = ("bfloat16", "complex64")
OPERATIONS = [op for op in BINARY if scalar.exists(op)]
ALONE = sorted(dtypes.ALONE)
ALPHAS = ("add", "subtract")


def both(gpu, call):
    """The call on arrays of the device, where it is one on arrays without data; else it is refused alike."""
    try:
        call(nb.dispatch.MetaArray)
    except TypeError:
        with pytest.raises(TypeError):
            call(gpu.array)
        return False
    call(gpu.array)
    return True


def elementwise(gpu, op, dtype):
    """Arrays, numbers on either side, a mask, alpha."""
    function = getattr(nb, op)
    number = True if dtype.kind == "b" else 1.5 + 2j if dtype.kind == "c" else 1.5 if dtype.kind in "fV" else 3
    if both(gpu, lambda array: function(array((9,), dtype), array((9,), dtype))):
        both(gpu, lambda array: function(array((9,), dtype), number))
        both(gpu, lambda array: function(number, array((9,), dtype)))
        both(gpu, lambda array: function(array((9,), dtype), array((9,), dtype), where=array((9,), "bool")))
        if op in ALPHAS and dtype.kind != "b":
            both(gpu, lambda array: function(array((9,), dtype), array((9,), dtype), alpha=number))


def alone(gpu, op, dtype):
    """An operation of one, with and without a mask."""
    function = getattr(nb, op)
    if both(gpu, lambda array: function(array((9,), dtype))):
        both(gpu, lambda array: function(array((3, 9), dtype), where=array((9,), "bool")))


def folds(gpu, op, dtype):
    """reduce by either way, with a mask, and accumulate, of a matrix; at."""
    function, shape, start = getattr(nb, op), (9, 300), dtype.kind == "b" or 1
    for axis in (0, 1) if op in ASSOCIATIVE else (1,):
        if not both(gpu, lambda array, axis=axis: function.reduce(array(shape, dtype), axis)):
            return
    for first in (start, 1.5) if dtype.kind in "fVc" else (start,):
        both(gpu, lambda array, first=first: function.reduce(array(shape, dtype), 1, initial=first))
    both(gpu, lambda array: function.reduce(array(shape, dtype), 1, initial=start, where=array((300,), "bool")))
    both(gpu, lambda array: function.accumulate(array(shape, dtype), 1))
    if np.can_cast(resolve(op, dtype, dtype)[2], dtype, "same_kind"):
        function.at(gpu.array((9,), dtype), [0, 1, 1], gpu.array((3,), dtype))
        function.at(gpu.array((9,), dtype), [0, 1, 1], start)


@pytest.mark.sampled
@pytest.mark.parametrize("op", OPERATIONS)
def test_every_operation_is_launched_with_what_it_takes(gpu, op):
    """Every dtype, by the kernel's signature: nothing is compiled."""
    for dtype in map(dtype_of, DTYPES):
        elementwise(gpu, op, dtype)
        folds(gpu, op, dtype)
    assert gpu.launches
    check(gpu)


@pytest.mark.sampled
@pytest.mark.parametrize(("op", "dtype"), chosen(pairs(OPERATIONS), 61))
def test_operations_are_assembled(gpu, op, dtype):
    """By the machine code; NBKERNELS_EVERY_KERNEL=1 does so for every operation and dtype."""
    elementwise(gpu, op, dtype_of(dtype))
    check_code(gpu, every=op == "add" and dtype in MIXED)


@pytest.mark.parametrize("op", ALONE)
def test_every_operation_of_one_is_launched_with_what_it_takes(gpu, op):
    for dtype in map(dtype_of, DTYPES):
        alone(gpu, op, dtype)
    assert gpu.launches
    check(gpu)


@pytest.mark.sampled
@pytest.mark.parametrize(("op", "dtype"), chosen(pairs(ALONE), 73))
def test_operations_of_one_are_assembled(gpu, op, dtype):
    alone(gpu, op, dtype_of(dtype))
    check_code(gpu)


@pytest.mark.sampled
@pytest.mark.parametrize(("op", "dtype"), chosen(pairs(OPERATIONS), 121))
def test_folds_are_assembled(gpu, op, dtype):
    folds(gpu, op, dtype_of(dtype))
    check_code(gpu)


PRODUCTS = [*((name,) * 3 for name in DTYPES), *((half, half, "float32") for half in ("float16", "bfloat16")),
            *((a, b, "int32") for a, b in itertools.product(("int8", "uint8"), repeat=2))]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("names", PRODUCTS, ids=" ".join)
def test_products_are_launched_with_what_they_take(gpu, names):
    """gemm of one segment and of two, batches, mv, dot, all dtypes; test_assembled.py assembles gemm."""
    first, second, to = map(dtype_of, names)
    wide = None if first == to else to
    factors = {} if first.kind == "b" else dict(beta=3, alpha=2)
    a, b = gpu.array((3, 4100), first), gpu.array((4100, 5), second)
    nb.mm(a, b, out_dtype=wide)
    nb.addmm(gpu.array((5,), to), a, b, out_dtype=wide, **factors)
    nb.bmm(gpu.array((2, 3, 4), first), gpu.array((2, 4, 5), second), out_dtype=wide)
    nb.mv(a, gpu.array((4100,), second), out_dtype=wide)
    nb.dot(gpu.array((4100,), first), gpu.array((4100,), second), out_dtype=wide)
    nb.dot(gpu.array((5,), first), gpu.array((5,), second), out_dtype=wide)
    check(gpu)
    gpu.events[:] = [event for event in gpu.events if EVERY or not str(event[1]).startswith("gemm.")]
    if EVERY or names[0] in (*MIXED, "uint8"):
        check_code(gpu)


@pytest.mark.parametrize("dtype", DTYPES if EVERY else (*MIXED, "bool"))
def test_users_functions(gpu, dtype):
    x, mask = gpu.array((4, 6), dtype_of(dtype)), gpu.array((6,), "bool")
    nb.elementwise(lambda a, b: (a, b))(x, gpu.array((6,), dtype_of(dtype)), where=mask, out=(
        gpu.array((4, 6), dtype_of(dtype)), gpu.array((4, 6), dtype_of(dtype))))  # fmt: skip
    check_code(gpu)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8"])
def test_explain_names_what_a_product_launches(gpu, monkeypatch, dtype):
    """Of shapes and layouts that take every tier: the plan is the call's own, alignment and all."""
    tiers, kernels = set(), []
    monkeypatch.setattr(driver.recorder, "noted", kernels.append)
    for m, n, k in ((1, 300, 70), (300, 300, 64), (1000, 40, 200), (64, 64, 9000)):
        for turned in itertools.product((False, True), repeat=3):
            shapes = ((m, n), (m, k), (k, n))
            out, a, b = (gpu.like(np.zeros(s[::-1], dtype).T if t else np.zeros(s, dtype))
                         for s, t in zip(shapes, turned))  # fmt: skip
            for to in (out, None):
                kernels.clear()
                found = nb.explain(nb.mm, a, b, out=to)
                nb.mm(a, b, out=to)
                config = kernels[len(found.copies)].arguments[0].config
                assert (found.path, found.tile) == (f"tier {config.tier}", str(config))
                tiers.add(config.tier)
    assert tiers == {"float32": {"S"}, "float64": {"D"}, "float16": {"M", "W"}, "int8": {"M", "W"}}[dtype]
