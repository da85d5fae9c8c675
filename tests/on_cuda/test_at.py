"""ufunc.at on CUDA: its kernels' PTX, interpreted (tests/ptx), against NumPy's ufunc.at, bit for bit."""

import ml_dtypes
import numpy as np
import pytest

import nbkernels
from nbkernels.dispatch import devices
from tests import launched
from tests.cases import EVERY
from tests.compare import same_bits

try:
    from nbkernels.cuda import at
    from tests.on_cuda import wheels
    from tests.ptx.device import Device

    wheels.work()
except (ImportError, RuntimeError) as error:
    pytest.skip(f"lacks the CUDA wheels: {str(error).splitlines()[0]}", allow_module_level=True)

pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"), pytest.mark.usefixtures("at_first")]

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
EXTREMES = ("maximum", "minimum", "fmax", "fmin")
ORDERLESS = [(op, dtype) for op in ("add", "subtract", "multiply", *BITS, "maximum", "minimum", "gcd")
             for dtype in INTEGERS]  # fmt: skip
ORDERLESS += [(op, dtype) for op in EXTREMES for dtype in FLOATS]
ORDERLESS += [(op, "bool") for op in ("logical_or", "logical_and", "logical_xor", "multiply", "maximum")]
ORDERED = [(op, dtype) for op in ("add", "subtract", "multiply") for dtype in (*FLOATS, "complex64", "complex128")]
ORDERED += [("divide", "float32"), ("floor_divide", "int16"), ("less", "uint8"), ("logical_or", "float32"),
            ("maximum", "complex64"), ("remainder", "float64"), ("bitwise_left_shift", "int32")]  # fmt: skip


@pytest.fixture
def gpu(monkeypatch):
    return Device().installed(monkeypatch)


def dtype_of(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def numbers(rng, dtype, *shape):
    """Small whole numbers, or floats of either sign; among those that are compared, zeros, infinities and NaN."""
    dtype = dtype_of(dtype)
    if dtype.kind in "iub":
        return rng.integers(0, 2 if dtype.kind == "b" else 7, shape).astype(dtype)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)


def run(gpu, op, x, indices, other, hosted=False):
    """x after op.at on the device, where it has memory of its own; the ways that were gone. Indices are the device's,
    unless they are `hosted`."""
    low, high = np.lib.array_utils.byte_bounds(x)
    memory, start = gpu.room(-(-(high - low) // 256) * 256), x.ctypes.data - low
    out = np.ndarray(x.shape, x.dtype, memory, start, x.strides)
    out[...] = x
    before = memory.copy()
    gpu.memory.register(memory)
    gpu.launches.clear()

    def sent(part):
        return gpu.array(part) if isinstance(part, np.ndarray) and part.ndim else part

    index = indices if hosted else tuple(map(sent, indices)) if isinstance(indices, tuple) else sent(indices)
    try:
        at.at(op, gpu.array(out), index, sent(other))
    finally:
        found = out.copy()
        out[...] = x
        same_bits(memory, before, "beside the array")
    return found, [kernel.make.rpartition(":")[2] for kernel, _ in gpu.launches if ".at:" in kernel.make]


def expected(op, x, indices, other):
    """NumPy's; the CPU's of bfloat16, and of Python's numbers, which NumPy's `at` takes for float64."""
    x = x.copy()
    getattr(nbkernels if x.dtype.name == "bfloat16" or type(other) is float else np, op).at(x, indices, other)
    return x


@pytest.mark.sampled
@pytest.mark.parametrize(("op", "dtype"), ORDERLESS)
def test_what_has_no_order_is_atomic(gpu, rng, op, dtype):
    """Threads of several warps meet at 13 elements, of which those of 8 and 16 bits share words."""
    x, other, indices = numbers(rng, dtype, 13), numbers(rng, dtype, 200), rng.integers(-13, 13, 200)
    if dtype in FLOATS:
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan] if op[0] == "f" else [0.0, -0.0, np.inf, -np.inf])
        chosen = rng.random(200) < 0.3
        other[chosen] = rng.choice(special, chosen.sum()).astype(other.dtype)
        other[3] = np.nan
    found, ways = run(gpu, op, x, indices, other)
    same_bits(found, expected(op, x, indices, other))
    assert ways == ["locate", "atomic"]


@pytest.mark.sampled
@pytest.mark.parametrize(("op", "dtype"), ORDERED)
def test_what_has_one_is_done_in_it(gpu, rng, op, dtype):
    """Targets that are chosen once, twice, and more often than elements are on their way at a time."""
    x, other = numbers(rng, dtype, 40), numbers(rng, dtype, 90)
    other = np.where(other == 0, 1, other).astype(other.dtype) if "divide" in op or op == "remainder" else other
    indices = np.concatenate([rng.integers(0, 40, 60), np.full(17, 5), np.full(8, 7), np.full(5, -1)])
    indices = rng.permutation(indices)
    found, ways = run(gpu, op, x, indices, other)
    same_bits(found, expected(op, x, indices, other))
    assert ways == ["locate", "ordered"]


def test_what_is_computed_in_another_dtype_has_an_order(gpu, rng):
    """int8 by way of int64, cut to its bits after each turn; floats that take whole numbers."""
    for op, x, other in (("maximum", "int8", "int64"), ("add", "float16", "int8"), ("add", "float32", "float64")):
        x, other, indices = numbers(rng, x, 5), 100 * numbers(rng, other, 30), rng.integers(0, 5, 30)
        found, ways = run(gpu, op, x, indices, other)
        same_bits(found, expected(op, x, indices, other))
        assert ways == ["locate", "ordered"]


WHOLE = np.arange(6 * 5 * 4, dtype="f4").reshape(6, 5, 4)
LAYOUTS = {
    "C": WHOLE,
    "F": WHOLE.T.copy().T,
    "reversed": WHOLE[::-1, ::-1, ::-1],
    "apart": np.zeros((12, 5, 8), "f4")[::2, :, ::-2],
    "turned": WHOLE.transpose(1, 0, 2).copy().transpose(1, 0, 2),
}
I, J, MASK = np.array([1, 4, 1, -1, 1]), np.array([2, 0, 2, 2, -2]), np.arange(30).reshape(6, 5) % 3 == 1
INDICES = [
    I, [0, 2, 0], 3, -1, slice(1, 4), (), ..., (I % 6).astype("u1"), I.astype("i2")[::-1], np.repeat(I, 2)[::2],
    I[:4].reshape(2, 2), I[:4].reshape(2, 2).T, np.broadcast_to(I[0], (3,)), (I, J), (slice(None), J), (..., J % 4),
    (I, slice(None), J), (0, slice(None), J), (slice(None), J, 0), (slice(None), I[:, None] % 5, J), (I, ..., J % 4),
    (slice(None), J, ..., J), (None, I), (slice(None), None, J), (J, None, J), (slice(1, 3), J),
    (I, slice(3, None, -2)), MASK, MASK[:, 0], (slice(None), MASK[0]), (slice(2, 6), MASK[0]), (MASK[:, 0], 2),
    (MASK[:, 0], I[0]), (I[:2], MASK[0]), (MASK[:, 0], MASK[0]), np.zeros(6, bool), np.zeros((0,), int), [],
    np.array(2), np.True_, (True, I), ([[0, 1], [1, 1]], 1), (np.int64(3), I % 5),
]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_kind_of_index(gpu, rng, layout):
    """Of each layout of out, with an x of the shape that is chosen, with one that is repeated, and with a number, of
    which each takes its turn where not all are wanted; with indices that are on the device and on the host."""
    x = LAYOUTS[layout]
    x[...] = rng.standard_normal(x.shape)
    for i, indices in enumerate(INDICES):
        shape = x[indices].shape
        others = [numbers(rng, "f4", *shape), numbers(rng, "f4", *shape[-1:]), numbers(rng, "f4", *shape[::-1]).T,
                  numbers(rng, "f4", *shape[:1], *[1] * (len(shape) - 1)), np.float32(0.3), 1.7]  # fmt: skip
        for other in others if EVERY else (others[i % 6], others[(i // 6 + 3) % 6]):
            found, _ = run(gpu, "add", x, indices, other, hosted=i % 2)
            same_bits(found, expected("add", x, indices, other), (indices, np.shape(other)))


def test_masks_need_neither_order_nor_atomics(gpu, rng):
    x, mask = numbers(rng, "f4", 20, 3), rng.random(20) < 0.5
    for other, ways in ((1.5, []), (numbers(rng, "f4", 3), []), (numbers(rng, "f4", 1, 3), []),
                        (numbers(rng, "f4", mask.sum(), 3), ["locate", "once"])):  # fmt: skip
        found, gone = run(gpu, "add", x, mask, other)
        same_bits(found, expected("add", x, mask, other))
        assert gone == ways
    assert run(gpu, "add", x, np.array([3]), 1.0)[1] == ["locate", "once"]


@pytest.mark.parametrize("op", ["add", "maximum"])
@pytest.mark.parametrize(("rows", "columns"), [(60, 2), (60, 5), (30, 64), (20, 300), (1, 5000), (2, 5000)])
def test_rows(gpu, rng, op, rows, columns):
    """A thread a column: several rows a block, a row of several rounds, and of several blocks."""
    x, other, indices = numbers(rng, "f4", 9, columns), numbers(rng, "f4", rows, columns), rng.integers(0, 9, rows)
    found, _ = run(gpu, op, x, indices, other)
    same_bits(found, expected(op, x, indices, other))
    assert gpu.launches[-1][1][1] == (1 if columns < 128 else min(-(-columns // 128), 132 * 16))


@pytest.mark.parametrize("op", ["add", "maximum"])
@pytest.mark.parametrize("indices", [[0, 5], [-6, 1], [1, 1 << 40], np.array([1, 255], "u1"), ([0, 1], [0, 4]), 9,
                                     (9, [0]), ([0, 9], slice(0)), np.ones(4, bool), ([0, 1], [0, 1, 2]), 1.5, "a",
                                     (0, 0, 0), ([0], [0], [0]), (..., [0], ...), np.zeros((5, 2), bool)])  # fmt: skip
def test_bad_indices_are_refused_with_numpys_words(gpu, rng, op, indices):
    """And nothing is written."""
    x = numbers(rng, "f4", 5, 4)
    for hosted in (True, False):
        given = indices
        if not hosted:
            parts = [np.array(part) if isinstance(part, list) else part for part in
                     (indices if isinstance(indices, tuple) else (indices,))]  # fmt: skip
            given = tuple(parts) if isinstance(indices, tuple) else parts[0]
        with pytest.raises(IndexError) as wanted:
            x[given]
        for _ in range(2):
            before = x.copy()
            with pytest.raises(IndexError) as error:
                run(gpu, op, x, given, 1.0, hosted)
            assert str(error.value) == str(wanted.value)
            same_bits(x, before)
            assert not any(kernel.make.endswith(("atomic", "ordered", "once")) for kernel, _ in gpu.launches)


def test_what_does_not_fit_is_refused(gpu, rng):
    x = numbers(rng, "f4", 5, 4)
    for indices, shape in ((I, (4,) * 3), (I, (3,)), (slice(0, 2), (3, 4)), (x[:, 0] > 0, (7, 4)), (x > 9, (2, 2))):
        with pytest.raises(ValueError, match="does not broadcast to"):
            run(gpu, "add", x, indices, np.zeros(shape, "f4"))
    with pytest.raises(TypeError, match="cannot cast"):
        run(gpu, "add", np.arange(3), [0], 1.5)
    with pytest.raises(OverflowError, match="300"):
        run(gpu, "add", np.arange(3, dtype="i1"), [0], 300)


@pytest.mark.parametrize("op", ["add", "maximum"])
def test_in_a_graph_rows_out_of_bounds_are_left_out(gpu, rng, op):
    """Nothing is read back there."""
    gpu.captured = True
    x, other = numbers(rng, "f4", 5, 3), numbers(rng, "f4", 7, 3)
    indices = np.array([1, 5, 0, -6, 1, 0, -1])
    inside = (indices >= -5) & (indices < 5)
    found, _ = run(gpu, op, x, indices, other)
    same_bits(found, expected(op, x, indices[inside], other[inside]))
    pairs = np.array([1, 5, 1]), np.array([3, 0, 2])
    same_bits(run(gpu, op, x, pairs, 2.0)[0], expected(op, x, (pairs[0][2:], pairs[1][2:]), 2.0))


def test_what_is_read_is_what_was_there_before(gpu):
    """x overlaps out; and so do the indices."""
    x = np.arange(8.0)
    want = x.copy()
    np.add.at(want, [0, 4, 4, 1], x[1:5].copy())
    at.at("add", gpu.array(x), [0, 4, 4, 1], gpu.array(x[1:5]))
    same_bits(x, want)
    for op in ("add", "floor_divide"):
        x = np.array([1, 2, 3, 1, 0])
        want = x.copy()
        getattr(np, op).at(want, x.copy(), 2)
        at.at(op, gpu.array(x), gpu.array(x), 2)
        same_bits(x, want)


def test_targets_that_do_not_fit_in_32_bits(gpu):
    """The array is not there."""
    wide, like = gpu.array(np.zeros(2, "f4")), []
    gpu.scratch = lambda x, shape, dtype, made=gpu.scratch: like.append(dtype.name) or made(x, shape, dtype)
    for rows, name in ((1 << 31, "int32"), ((1 << 31) + 1, "int64")):
        like.clear()
        at.locate(at.choose(wide.view((rows,), (4,)), [1, 1]), [1, 1], wide.view((rows,), (4,)))
        assert like[0] == name


@pytest.mark.parametrize(("op", "indices"), [("add", I), ("maximum", (I, J)), ("add", MASK)])
def test_tensors_are_sorted_and_searched_by_torch(gpu, rng, monkeypatch, op, indices):
    torch = pytest.importorskip("torch")
    launched.tensors(monkeypatch, gpu)
    gpu.stream, view = 0, devices.Torch.view

    def registered(self, x):
        found = view(self, x)
        low, high = np.lib.array_utils.byte_bounds(x.detach().numpy())
        gpu.memory.span(low, high)
        return found

    monkeypatch.setattr(devices.Torch, "view", registered)
    monkeypatch.setattr(devices.Torch, "host", lambda self, x: pytest.fail("brought to the host"))
    x = numbers(rng, "f4", 6, 5)
    other, out = numbers(rng, "f4", *x[indices].shape), torch.tensor(x)
    index = tuple(map(torch.tensor, indices)) if isinstance(indices, tuple) else torch.tensor(indices)
    assert getattr(nbkernels, op).at(out, index, torch.tensor(other)) is None
    same_bits(out.numpy(), expected(op, x, indices, other))
    assert out._version == 1
