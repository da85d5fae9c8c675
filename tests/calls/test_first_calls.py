"""The first calls of a process: Python does what is compiled for later ones: the same bits, warnings and errors."""

import itertools
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import nbkernels as nb
from nbkernels import background, first_calls
from nbkernels.calls import record
from nbkernels.calls.call import Call
from nbkernels.cpu.elementwise import elementwise, schedule
from nbkernels.cpu.gemm import first_products, gemm
from nbkernels.cpu.gemm.kinds import kind_of
from nbkernels.cpu.reduce import first_folds
from nbkernels.cpu.reduce import reduce as fold_module
from nbkernels.jit.compile import python_first
from nbkernels.jit.compile.python_first import Patience
from tests.processes import python

LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "reversed": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "strided": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
}
SERVED = ("float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
          "bool", "complex64", "complex128")  # fmt: skip


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    """As if nothing were on disk, and no test before had found it there."""
    monkeypatch.setattr(python_first, "on_disk", lambda code: False)
    monkeypatch.setattr(first_folds, "patience", Patience("reduce_walk"))


@pytest.fixture
def first(monkeypatch):
    """Calls that never end to be first ones."""
    monkeypatch.setattr(first_calls, "CALLS", 1 << 60)


def drawn(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.1
    if dtype.kind in "iu":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    return (rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.kind == "c" else 0)).astype(dtype)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", SERVED)
def test_products_have_the_bits_of_the_compiled_paths(rng, monkeypatch, dtype):
    kind, served = kind_of(dtype, dtype, dtype), 0
    sizes = [(1, 1, 1), (7, 5, 3), (64, 64, 64), (13, 1, 40), (1, 33, 9), (61, 47, 200), (3, 2, 4096), (20, 19, 513)]
    whole, plain = np.dtype(dtype).kind in "iub", np.dtype(dtype).kind in "bc"
    factors = [(0, 1), (1, 1), (3, -2) if whole else (0.75, -1.25), (0, 2)]
    for case, ((m, n, k), (beta, alpha)) in enumerate(itertools.product(sizes, factors)):
        a, b, x = (drawn(rng, shape, dtype) for shape in ((m, k), (k, n), (m, n)))
        x = (x, x[0], x[:, :1], x[:1, :1])[case % 4]
        names = list(itertools.product(LAYOUTS, LAYOUTS))[(5 * case) % 16]
        a, b, order = LAYOUTS[names[0]](a), LAYOUTS[names[1]](b), "CF"[case % 2]
        expected, found = np.empty((m, n), dtype, order), np.empty((m, n), dtype, order)
        monkeypatch.setattr(first_calls, "CALLS", 0)
        gemm.gemm(expected, x if beta else None, a, b, beta, alpha)
        monkeypatch.setattr(first_calls, "CALLS", 1 << 60)
        if first_products.product(found, x if beta else None, a, b, beta, alpha, kind):
            served += 1
            assert found.tobytes() == expected.tobytes(), (m, n, k, beta, alpha, names, order)
    assert served == len(sizes) * (1 if plain else len(factors))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint32", "complex64"])
def test_products_of_several_segments(rng, monkeypatch, dtype):
    """Sums of 4,096 steps of k are added in order; where something comes after them, it is for the compiled paths."""
    kind = kind_of(dtype, dtype, dtype)
    for m, n, k in ((3, 5, 4097), (20, 19, 9000), (1, 40, 8192)):
        a, b = drawn(rng, (m, k), dtype), drawn(rng, (k, n), dtype)
        for order in "CF":
            expected, found = np.empty((m, n), dtype, order), np.empty((m, n), dtype, order)
            monkeypatch.setattr(first_calls, "CALLS", 0)
            gemm.gemm(expected, None, a, b, 0, 1)
            monkeypatch.setattr(first_calls, "CALLS", 1 << 60)
            if first_products.product(found, None, a, b, 0, 1, kind):
                assert found.tobytes() == expected.tobytes(), (m, n, k)
            else:
                assert (dtype, order) == ("complex64", "F")
            assert not first_products.product(found, expected, a, b, 1, 1, kind)
            assert not first_products.product(found, None, a, b, 0, 2, kind)


@pytest.mark.parametrize("dtypes", [("uint8", "int8"), ("int8", "uint8")])
def test_bytes_of_two_kinds(rng, monkeypatch, dtypes):
    a, b = drawn(rng, (30, 70), dtypes[0]), drawn(rng, (70, 50), dtypes[1])
    assert first_products._suits(a, b, True, "int32") is not None
    assert first_products._suits(a, b, True, None) is first_products._suits(a, b, True, "int64") is None
    found = np.empty((30, 50), "int32")
    monkeypatch.setattr(first_calls, "CALLS", 1 << 60)
    assert first_products.product(found, None, a, b, 0, 1, kind_of(*dtypes, "int32"))
    assert (found == a.astype(int) @ b.astype(int)).all()


@pytest.mark.parametrize("conj", ["a", "b", "ab"])
def test_conjugates(rng, monkeypatch, conj):
    a, b, kind = drawn(rng, (9, 30), "complex64"), drawn(rng, (30, 21), "complex64"), kind_of(*["complex64"] * 3, conj)
    expected, found = np.empty((9, 21), "complex64"), np.empty((9, 21), "complex64")
    gemm.gemm(expected, None, a, b, 0, 1, conj=conj)
    monkeypatch.setattr(first_calls, "CALLS", 1 << 60)
    assert first_products.product(found, None, a, b, 0, 1, kind)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool"])
def test_sums_in_chains(rng, monkeypatch, dtype):
    """mv in 8, dot in 64: any strides, ends of chains and of segments. Whole numbers' are NumPy's, and dot's alone."""
    for m, k in ((1, 1), (5, 7), (3, 8), (40, 100), (2, 63), (1, 64), (7, 65), (3, 4095), (2, 4097), (1, 9000)):
        a, v = drawn(rng, (m, 2 * k), dtype)[:, ::2], drawn(rng, k, dtype)[::-1]
        for each in (a, np.ascontiguousarray(a), np.asfortranarray(a)):
            monkeypatch.setattr(first_calls, "CALLS", 0)
            expected = nb.mv(each, v), nb.dot(each[0], v)
            monkeypatch.setattr(first_calls, "CALLS", 1 << 60)
            found = first_products.sums(each, v, 8)
            assert found is None if each.dtype.kind in "biu" else found.tobytes() == expected[0].tobytes()
            assert first_products.sums(each[:1], v, 64)[0].tobytes() == expected[1].tobytes()


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64", "int8", "uint32", "bool"])
def test_folds(rng, monkeypatch, dtype):
    shapes = [((1,), (1,)), ((31,), (1,)), ((32,), ()), ((47,), (1,)), ((255,), ()), ((256,), ()), ((257,), ()),
              ((1000,), ()), ((2816,), ()), ((5, 700), (5, 1)), ((700, 5), (5,)), ((9, 8, 70), (9, 1, 1)),
              ((40, 30, 20), (30, 1)), ((3, 300, 4), (1, 4)), ((2_200_000, 2), (2,))]  # fmt: skip
    for shape, target in shapes:
        x = drawn(rng, shape, dtype)
        for lay in (lambda x: x, np.asfortranarray, lambda x: x[..., ::-1]):
            for op in ("add", "multiply", "maximum"):
                work = fold_module.working(np.dtype(dtype))
                expected, found = np.empty(target, dtype), np.empty(target, dtype)
                monkeypatch.setattr(first_calls, "CALLS", 0)
                fold_module.fold(op, expected, lay(x), work)
                monkeypatch.setattr(first_calls, "CALLS", 1 << 60)
                if first_folds.fold(op, found, lay(x), work):
                    assert found.tobytes() == expected.tobytes(), (shape, target, op)
                else:
                    assert op == "maximum" or (op, dtype) == ("multiply", "complex64")


def test_signed_zeros_infinities_and_nan(first):
    a = np.array([[-0.0, 1, np.inf], [0, -1, np.nan], [-0.0, -0.0, -0.0]], "f4")
    b, kind = np.array([[1, -0.0], [0, 0], [0, 1]], "f4"), kind_of(*["float32"] * 3)
    for alpha in (1, -1, 2.5):
        found, expected = np.empty((3, 2), "f4"), np.empty((3, 2), "f4")
        assert first_products.product(found, None, a, b, 0, alpha, kind)
        first_calls.CALLS = 0
        gemm.gemm(expected, None, a, b, 0, alpha)
        first_calls.CALLS = 1 << 60
        assert np.array_equal(found, expected, equal_nan=True)
        assert (np.signbit(found) == np.signbit(expected))[~np.isnan(found)].all()


def test_what_it_is_not_for(first):
    """Nothing is written where it declines."""
    gaps, most = np.zeros((8, 8), "f4")[::2, ::2], first_products.MOST
    most *= first_products.tile_of(kind_of(*["float32"] * 3)).nr
    wide = np.ones((1, most), "f4")
    assert first_products.product(np.empty_like(wide), None, wide[:, :1], wide, 0, 1, kind_of(*["float32"] * 3))
    cases = [("float16", (2, 2, 4097), None), ("float32", (1, most + 1, 1), None), ("float32", (4, 4, 4), gaps)]
    for dtype, shape, out in cases:
        m, n, k = shape
        out = np.zeros((m, n), dtype) if out is None else out
        a, b = np.ones((m, k), dtype), np.ones((k, n), dtype)
        assert not first_products.product(out, None, a, b, 0, 1, kind_of(*[dtype] * 3))
        assert not out.any()


def test_elementwise_calls_in_any_layout(rng, first):
    """Flat plans by one call of the inner loops: NumPy's bits, and its results where inputs overlap out."""
    turns = [lambda x: x, lambda x: x.T, lambda x: x[::-1], lambda x: x[:, ::3], lambda x: x[:1], lambda x: x[:, :1]]
    for case, (p, q) in enumerate(itertools.product(turns, turns)):
        for dtype, op in (("f4", "add"), ("f8", "multiply"), ("i4", "subtract"), ("f4", "less")):
            x, y = drawn(rng, (30, 30), dtype), drawn(rng, (30, 30), dtype)
            x, y = p(x), q(y)
            try:
                expected = getattr(np, op)(x, y)
            except ValueError:
                continue
            out = np.empty(expected.shape, expected.dtype, order="CF"[case % 2])
            elementwise.binary(op, out, x, y)
            assert out.tobytes("C") == expected.tobytes("C"), (case, op, dtype)
    x = drawn(rng, (40, 40), "f4")
    y = x.copy()
    elementwise.binary("add", x[1:], x[1:], x[:-1])
    y[1:] += y[:-1].copy()
    assert np.array_equal(x, y)


def test_planes_of_more_dimensions(rng, first):
    x, y = drawn(rng, (3, 4, 5, 6), "f8"), drawn(rng, (4, 1, 6), "f8")
    for p, q in ((x, y), (x[::2, ::-1], y), (x.transpose(2, 0, 3, 1), x.transpose(2, 0, 3, 1)[::-1]), (x, x[..., :1])):
        expected = p - q
        out = np.empty(expected.shape)
        elementwise.binary("subtract", out, p, q)
        assert np.array_equal(out, expected)


def test_faults_are_noted(first):
    out = np.empty(3, "i4")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        elementwise.binary("floor_divide", out, np.array([4, 5, 6], "i4"), np.array([2, 0, 3], "i4"))
    assert out.tolist() == [2, 0, 2]
    assert [str(each.message) for each in found] == ["divide by zero encountered in floor_divide"]


def test_patience_counts():
    waits = Patience()
    before, first_calls.CALLS = first_calls.CALLS, 2
    try:
        assert [waits() for _ in range(4)] == [True, True, False, False]
        assert not waits.lasts()
        first_calls.CALLS = 0
        assert not Patience().lasts()
        assert not Patience()()
    finally:
        first_calls.CALLS = before


def test_the_variable():
    assert (first_calls.asked("0"), first_calls.asked("7")) == (0, 7)
    with pytest.warns(RuntimeWarning, match="NBKERNELS_FIRST_CALLS='-1' is no number of calls: 32 are the first ones"):
        assert first_calls.asked("-1") == 32


def test_what_is_on_disk_is_loaded_at_once(monkeypatch):
    monkeypatch.setattr(first_calls, "CALLS", 9)
    monkeypatch.setattr(python_first, "on_disk", lambda code: code == "there")
    assert (Patience("there")(), Patience("gone")(), Patience()()) == (False, True, True)
    assert (Patience().lasts("there"), Patience().lasts("gone")) == (False, True)


CHILD = """
import hashlib, sys, warnings
import numpy as np, nbkernels as nb

rng, bits = np.random.default_rng(1), hashlib.sha256()
x, y = rng.standard_normal((2, 40, 50)), rng.integers(-9, 9, (40, 50))
stack, small = rng.standard_normal((5, 7, 8)).astype("f4"), rng.standard_normal((9, 9)).astype("f4")
CALLS = [
    lambda: nb.add(x[0], x[1]), lambda: nb.add(x[0], 2), lambda: nb.multiply(x[0], x[1, :1]), lambda: nb.less(y, 3),
    lambda: nb.add(x[0], x[1], alpha=2.5), lambda: nb.subtract(x[0].T, x[1].T), lambda: nb.add(y, x[0]),
    lambda: nb.add(x[0], x[1], where=x[0] > 0, out=x[0].copy()), lambda: nb.exp(small), lambda: nb.add(x, x[:1]),
    lambda: nb.mm(x[0], x[1].T), lambda: nb.mm(small, small.T), lambda: nb.addmm(small[0], small, small, beta=0.5),
    lambda: nb.mm(y, y.T), lambda: nb.matmul(stack, stack.transpose(0, 2, 1)), lambda: nb.linear(small, small),
    lambda: nb.mm(small.astype("f2"), small.astype("f2")), lambda: nb.addmm_activation(small[0], small, small),
    lambda: nb.mv(small, small[0]), lambda: nb.dot(small[0], small[1]), lambda: nb.sum_to(x, (40, 1)),
    lambda: nb.add.reduce(small), lambda: nb.add.reduce(y, (0, 1)), lambda: nb.matmul(small, small[1]),
    lambda: nb.mm(small.astype("c8"), small.astype("c8")),
    lambda: nb.mm(y.astype("i1"), y.T.astype("i1"), out_dtype=np.int32),
    lambda: nb.mm(small, small, out=np.empty((9, 9), "f4", order="F")), lambda: nb.bmm(stack, stack.transpose(0, 2, 1)),
]
for turn in range(4):
    for call in CALLS:
        bits.update(np.ascontiguousarray(call()).tobytes())
    if turn == 0:
        names = {each.name.rpartition(".")[2] for each in nb.specializations()}
print(bits.hexdigest(), *sorted(name for name in names if not name.startswith(("loop_", "ukernel_"))))
"""


def test_few_calls_compile_loops_and_micro_kernels_and_later_ones_have_their_bits(tmp_path):
    """Twenty-eight kinds of calls, four times each; with patience and without."""
    found = []
    for environment in ({"NBKERNELS_CACHE_DIR": str(tmp_path), first_calls.VARIABLE: "32"}, {}):
        found.append(python(CHILD, **environment).split())
    (bits, *names), (expected, *others) = found
    assert bits == expected
    assert set(names) <= {"room_take"}
    assert {"gemm_small", "elementwise_small", "elementwise_recall"} <= set(others)


def test_errors_are_the_same(monkeypatch):
    for calls in (0, 1 << 60):
        monkeypatch.setattr(first_calls, "CALLS", calls)
        with pytest.raises(ValueError, match="5x6 and 5x6: self has 6 columns and mat2 has 5 rows"):
            nb.mm(np.ones((5, 6)), np.ones((5, 6)))
        with pytest.raises(ValueError, match="integers to negative integer powers"):
            nb.pow(np.array([2, 3]), np.array([1, -1]))


BEHIND = """
import sys, threading, time
import numpy as np, nbkernels as nb
from nbkernels.elementary.activations import silu
from nbkernels import background
main, where, before = threading.get_ident(), [], background.proceed
background.proceed = lambda: (where.append(threading.get_ident()), before())
rng = np.random.default_rng(1)
wide, bytes_ = rng.standard_normal((8, 5000), "f4"), rng.integers(-99, 99, (30, 40), "i1")
own = nb.elementwise(silu)
tall, tiles = rng.standard_normal((1_100_000, 4)), rng.standard_normal((900, 40), "f4")
MADE = {
    "deep": lambda: nb.mm(wide, wide.T[:, ::-1]),
    "bytes": lambda: nb.mm(bytes_.T.view("u1"), bytes_, out_dtype=np.int32),
    "columns": lambda: nb.add.reduce(tall, axis=0),
    "many": lambda: nb.mm(tiles, tiles[:600].T),
    "stack": lambda: nb.bmm(wide[None, :, :8], wide[None, :, :8]),
    "broadcast": lambda: nb.atan2(bytes_[:, :1], tall[:40, 0]),
    "halves": lambda: nb.mm(tiles[:40].astype("f2"), tiles[:40].T.astype("f2")),
    "mv": lambda: nb.mv(tiles, tiles[0]),
    "dot": lambda: nb.dot(wide[0], wide[1]),
    "add": lambda: nb.add(wide, wide),
    "scalar": lambda: nb.multiply(wide[:, ::2], 2.5),
    "own": lambda: own(wide),
}
for name in sys.argv[1:]:
    call = MADE[name]
    bits = [call().tobytes() for _ in range(3)]
    del where[:]
    while len(bits) < 12 or background.busy():
        bits.append(call().tobytes())
        time.sleep(0.01)  # which is the other thread's
    bits += [call().tobytes() for _ in range(6)]
    assert set(bits) == {bits[0]}, name
    assert where and main not in where, name
print("right")
"""


@pytest.mark.sampled
@pytest.mark.parametrize(
    "calls", ["add scalar", "columns", "bytes", "mv halves", "own deep", "stack", "many", "dot broadcast"]
)
def test_what_later_calls_need_is_compiled_in_a_thread_of_its_own(tmp_path, calls):
    """The caller's compiles for none after the first ones; each has the same bits, and the last ones are compiled."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", BEHIND, *calls.split()], capture_output=True, text=True,
        env=os.environ | {"NBKERNELS_CACHE_DIR": str(tmp_path), first_calls.VARIABLE: "3"},
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (0, "right\n", "")


def test_a_call_ends_as_the_first_one_that_it_began_as(monkeypatch, first):
    """Also where the thread is done in its midst: what later calls need is not what this one would compile."""
    monkeypatch.setattr(schedule, "_patient", lambda: False)
    monkeypatch.setattr(schedule.threads, "launch", lambda *_: pytest.fail("the caller compiles"))
    x, y = np.arange(15.0).reshape(3, 1, 5), np.arange(7.0)[:, None]
    np.testing.assert_allclose(nb.atan2(x, y), np.arctan2(x, y), 1e-15)


def test_what_no_thread_can_make_is_compiled_at_once(monkeypatch):
    """A call that cannot be described leaves those that wait alone; and there may be no more threads."""
    x = np.ones(3, "f4")
    waiting = [("another", None)]
    monkeypatch.setattr(background, "_asked", {})
    monkeypatch.setattr(background, "_waiting", waiting)
    monkeypatch.setattr(background, "_thread", 0)
    assert background.made(sys._getframe())  # of a test, not of a public call
    assert waiting == [("another", None)]

    def none(function):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(record, "call_of", lambda frame: Call.of("add", x, x).line())
    monkeypatch.setattr(background, "start", none)
    assert not background.made(None)
    assert len(waiting) == 2
    monkeypatch.setattr(background, "_asked", {})
    monkeypatch.setattr(background, "_thread", None)
    assert background.made(None)
    assert not waiting
    assert not background.busy()


ENDS = """
import os, sys, threading, time
import numpy as np, nbkernels as nb
from nbkernels import background
a = np.ones((8, 5000), "f4")
def call():
    return nb.mm(a, a.T)[0, 0]
if sys.argv[1] == "importing":
    def call():
        return nb.add(a, a)[0, 0] * 2500
for _ in range(4):
    assert call() == 5000
assert background.busy()
while sys.argv[1] == "importing" and "numba.core" not in sys.modules:
    time.sleep(0.001)
if sys.argv[1] in ("fork", "importing"):
    child = os.fork()
    assert nb.mm(a, a.T)[0, 0] == 5000
    if child:
        assert os.waitpid(child, 0)[1] == 0
elif sys.argv[1] == "raise":
    raise SystemExit(3)
"""


@pytest.mark.parametrize("how", ["end", "raise", "fork", "importing"])
def test_a_process_that_ends_while_it_compiles_ahead(tmp_path, how):
    """At its end, by an exception, forked, also while it imports Numba: LLVM is not broken off, and nothing hangs."""
    if how in ("fork", "importing") and not hasattr(os, "fork"):
        pytest.skip("there is no fork on this system")
    line = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", ENDS, how]  # of threads and fork
    environment = os.environ | {"NBKERNELS_CACHE_DIR": str(tmp_path), first_calls.VARIABLE: "3"}
    run = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=300)
    assert (run.returncode, run.stderr) == (3 if how == "raise" else 0, "")
