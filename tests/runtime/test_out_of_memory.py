"""Memory that cannot be had: MemoryError, out as it was, and the next call works."""

import sys

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.cpu.gemm import blocking as tiles
from nbkernels.cpu.gemm.paths import only
from nbkernels.cpu.runtime import workspace
from nbkernels.cpu.runtime.status import COLUMNS, DEEP, PACKED, THIN
from tests.processes import python


def ones(*shapes, dtype="float32"):
    return [np.ones(shape, dtype) for shape in shapes]


def calls():
    """name: (out, call(out)), one for each place that asks for room."""
    f, h = "float32", "float16"
    a, b, x = ones((600, 900), (900, 700), (600, 700))
    bytes_, halves = ones((900, 900), (7, 40, 40), dtype="int8"), ones((700, 700), (7, 40, 40), dtype=h)
    deep, wide, high = ones((8, 9000), (9000, 300), (5000, 60))
    tall, thin, odd = ones((900, 30), (800, 30), (250, 250))
    slender, flat = ones((700, 300), (40, 300))
    many = np.ones((3, 150, 150), "complex64")

    def to(*shape, dtype=f):
        return np.full(shape, 7, dtype)

    return {
        "packed": (to(600, 700), lambda out: nb.mm(a, b, out=out)),
        "packed, in place": (x, lambda out: nb.addmm_(out, a, b)),
        "deep": (to(8, 300), lambda out: nb.mm(deep, wide, out=out)),
        "thin": (to(900, 800), lambda out: nb.mm(tall, thin.T, out=out)),
        "columns": (to(250, 250), lambda out: nb.mm(odd.T, odd, out=out)),
        "columns, tall": (to(700, 40), lambda out: nb.mm(slender, flat.T, out=out)),
        "gemv": (to(5000, 1), lambda out: nb.addmm(out, high, high[:60, :1], out=out)),
        "bytes": (to(900, 900, dtype="int32"), lambda out: nb.mm(bytes_[0], bytes_[0], out_dtype="int32", out=out)),
        "halves": (to(700, 700), lambda out: nb.mm(halves[0], halves[0], out_dtype=f, out=out)),
        "conj": (to(3, 150, 150, dtype="complex64"), lambda out: nb.bmm(many, many, conj="b", out=out)),
        "stack": (to(7, 40, 40, dtype="int32"), lambda out: nb.bmm(bytes_[1], bytes_[1], out_dtype="int32", out=out)),
        "linear": (to(7, 40, 40, dtype=h), lambda out: nb.linear(halves[1], halves[1][0], out=out)),
        "activation": (to(600, 700), lambda out: nb.addmm_activation(x, a, b, activation="relu", out=out)),
        "overlap": (b[:600, :600], lambda out: nb.mm(a[:, :600], b[:600, 100:], out=out)),
    }


def fail(*args, **keywords):
    raise MemoryError("no room")


@pytest.fixture
def forced(name):
    """Those that are named by a path take it, whatever costs say; the others go by five loops."""
    with only({"deep": DEEP, "thin": THIN, "columns": COLUMNS}.get(name.partition(",")[0], PACKED)):
        yield


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("name", calls())
def test_out_is_as_it_was(monkeypatch, name):
    out, call = calls()[name]
    kept = out.copy()
    call(out)  # compile
    expected = out.copy()
    out[...] = kept
    workspace.forget()
    with monkeypatch.context() as patched:
        patched.setattr(np, "empty", fail)
        asked = True
        try:
            call(out)
        except MemoryError:
            asked = False
    if asked:  # one thread may need no room
        np.testing.assert_array_equal(out, expected)
        assert name in ("columns", "columns, tall", "gemv", "linear", "stack")
    else:
        np.testing.assert_array_equal(out, kept)
    out[...] = kept
    call(out)
    np.testing.assert_array_equal(out, expected)


def test_a_batch_of_large_products_has_one_room(monkeypatch):
    """Its second product is not refused what the first one had, though that is more than is kept between calls."""
    a, out, cut = np.ones((2, 80, 5000), "float32"), np.full((2, 80, 80), 7, "float32"), tiles.default("float32")
    own = tiles.Tiles(cut.mr, cut.nr, 64, cut.nr, cut.mr, cut.nr)
    nb.bmm(a, a.swapaxes(1, 2), tiles=own, out=out)  # compile
    out[...] = 7
    monkeypatch.setattr(workspace, "KEPT", 0)
    workspace.forget()
    real, asked = np.empty, []

    def once(*args, **keywords):
        asked.append(args)
        return real(*args, **keywords) if len(asked) == 1 else fail()

    with monkeypatch.context() as patched:
        patched.setattr(np, "empty", once)
        nb.bmm(a, a.swapaxes(1, 2), tiles=own, out=out)
    assert len(asked) == 1
    assert (out == 5000).all()


def record(array):
    """The same numbers with strides that are no multiple of their size."""
    result = np.zeros(array.shape, [("pad", "u1"), ("x", array.dtype)])["x"]
    result[...] = array
    return result


def deep(out, a, b):
    """A product in place by a path that then needs planes, whichever one the machine would take."""
    with only(DEEP):
        nb.addmm(out, a, b, out=out)


def loops():
    """name: (out, call(out)): several products in one call, each of which asks for room."""
    f = "float32"
    few, many, wide, odd = ones((3, 1, 250, 600), (1, 2, 600, 250), (3, 2, 250, 600), (2, 30, 40))
    pair, high, bias = ones((2, 520), (520, 4200), (250,))

    def to(*shape):
        return np.full(shape, 7, f)

    return {
        "matmul": (to(3, 2, 250, 250), lambda out: nb.matmul(few, many, out=out)),
        "linear": (to(2, 3, 250, 250).swapaxes(0, 1), lambda out: nb.linear(wide, many[0, 0].T, bias, out=out)),
        "rows": (to(2, 4200), lambda out: deep(out, pair, high)),
        "columns": (to(4200, 2), lambda out: deep(out, high.T, pair.T)),
        "records": (to(2, 30, 30), lambda out: nb.bmm(record(odd), odd.swapaxes(1, 2), out=out)),
        "into records": (record(to(2, 30, 30)), lambda out: nb.bmm(odd, odd.swapaxes(1, 2), out=out)),
        "no product": (to(2, 60, 60), lambda out: nb.baddbmm(out, out, out, alpha=0, beta=2, out=out)),
    }


def allocation(number):
    """np.empty that fails at its number-th call."""
    real, asked = np.empty, []

    def empty(*args, **keywords):
        asked.append(args)
        return fail() if len(asked) == number else real(*args, **keywords)

    return empty


@pytest.mark.parametrize("name", loops())
def test_whichever_room_is_refused(monkeypatch, name):
    """A call that ends in MemoryError has written nothing, be it the first or the last allocation that failed."""
    out, call = loops()[name]
    kept = out.copy()
    call(out)  # compile
    expected, refused = out.copy(), 0
    monkeypatch.setattr(workspace, "KEPT", 0)
    for number in range(1, 100):
        out[...] = kept
        workspace.forget()
        with monkeypatch.context() as patched:
            patched.setattr(np, "empty", allocation(number))
            try:
                call(out)
                break
            except MemoryError:
                refused += 1
        np.testing.assert_array_equal(out, kept)
    np.testing.assert_array_equal(out, expected)
    assert number == refused + 1 < 99
    assert refused or name == "no product"


def test_a_process_out_of_memory_goes_on():
    """The system refuses results, panels and copies. All is compiled before: LLVM aborts where it has no memory."""
    if sys.platform != "linux":
        pytest.skip("needs Linux: its limit of address space")
    code = """
import resource, numpy as np, nbkernels as nb
from nbkernels.cpu.runtime import workspace
from nbkernels.cpu.gemm.paths import only
from nbkernels.cpu.runtime.status import PACKED
packed = only(PACKED)
packed.__enter__()
a, out = np.ones((1500, 1500), "float32"), np.empty((1500, 1500), "float32")
calls = (lambda: nb.mm(a, a), lambda: nb.mm(a, a, out=out), lambda: nb.addmm(a, a, a, out=out),
         lambda: nb.mm(a[::-1], a, out=a), lambda: nb.addmm_(a, a, a))
for call in calls:
    call()
    a[...], out[...] = 1, 7
workspace.forget()
used = 1024 * int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1])
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), -1))
for call in calls:
    try:
        call()
    except MemoryError:
        assert out.min() == out.max() == 7 and a.min() == a.max() == 1
    else:
        raise SystemExit("there was room")
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
assert nb.mm(a, a, out=out).min() == 1500
"""
    python(code, MALLOC_MMAP_THRESHOLD_="65536")  # what is freed goes back to the system
