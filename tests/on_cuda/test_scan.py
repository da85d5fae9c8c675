"""accumulate on CUDA, interpreted: of many rows against the CPU's bits, of few long rows against the order that
nbkernels/cuda/scan.py gives, step by step in NumPy.
"""

import re

import ml_dtypes
import numpy as np
import pytest

import nbkernels
from nbkernels import scalar
from tests.compare import same_bits

try:
    from nbkernels.cuda import folds, scan
    from nbkernels.cuda.assemble import assemble, ptx
    from tests.on_cuda import wheels
    from tests.ptx.device import NEWEST, Device

    wheels.work()
except (ImportError, RuntimeError) as error:
    pytest.skip(f"lacks the CUDA wheels: {str(error).splitlines()[0]}", allow_module_level=True)

pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"), pytest.mark.usefixtures("at_first")]
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38])


@pytest.fixture
def gpu(monkeypatch):
    return Device().installed(monkeypatch)


def numbers(rng, *shape, dtype="float32"):
    """Whole numbers for integers, of both signs where they have one; normal ones for floats."""
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    if dtype.kind in "iub":
        return rng.integers(-99 if dtype.kind == "i" else 0, 2 if dtype.kind == "b" else 120, shape).astype(dtype)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)


def accumulated(gpu, op, x, axis=0, dtype=None, out=None):
    """What accumulate on the device makes of x, which it may not write, in an array that holds 77 before."""
    readonly = x.view()
    readonly.flags.writeable = False
    if out is None:
        wanted = getattr(nbkernels, op).accumulate(x[:1], 0, dtype=dtype)
        out = np.full(x.shape, 77).astype(wanted.dtype)
    folds.accumulate(gpu.array(out), gpu.array(readonly), op, (axis,), dtype)
    return out


def kernels(gpu):
    """Which have been launched since the last question."""
    found = [re.search(r"\.(\w+):", kernel.make)[1] for kernel, _ in gpu.launches]
    gpu.launches.clear()
    return found


def accumulates(gpu, op, x, axis, how="staged", dtype=None):
    """The CPU's bits, by the kernel that is named."""
    same_bits(accumulated(gpu, op, x, axis, dtype), getattr(nbkernels, op).accumulate(x, axis, dtype=dtype))
    assert kernels(gpu)[0] == how


# --- many rows --------------------------------------------------------------------------------------------------------

OPERATIONS = [("add", "float32"), ("add", "float16"), ("add", "bfloat16"), ("add", "complex64"), ("add", "int8"),
              ("add", "float64"), ("subtract", "float32"), ("subtract", "complex128"), ("maximum", "float32"),
              ("fmin", "float16"), ("logical_and", "bool"), ("multiply", "uint16"), ("bitwise_xor", "uint8"),
              ("pow", "float32"), ("floor_divide", "int32"), ("hypot", "float64")]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("op", "dtype"), OPERATIONS)
def test_operations(gpu, rng, op, dtype, axis):
    """Of rows that begin at multiples of 16 bytes, with special numbers among them."""
    x = numbers(rng, 80, 144, dtype=dtype)
    if x.dtype.kind not in "iubc":
        x = np.where(rng.random(x.shape) < 0.01, rng.choice(SPECIAL, x.shape), x).astype(x.dtype)
    if op in ("floor_divide", "pow"):
        x = np.where(x == 0, 1, abs(x)).astype(x.dtype)
    accumulates(gpu, op, x, axis)


@pytest.mark.sampled
@pytest.mark.parametrize(("dtype", "wanted"), [
    ("int8", "complex128"), ("float64", "float16"), ("bfloat16", "float32"), ("uint8", "int16"), ("float32", "bool"),
    ("int32", "float16"),
])  # fmt: skip
@pytest.mark.parametrize("axis", [0, 1])
def test_dtypes_that_are_asked_for(gpu, rng, dtype, wanted, axis):
    x = numbers(rng, 40, 80, dtype=dtype)
    same_bits(accumulated(gpu, "add", x, axis, wanted, np.empty(x.shape, wanted)),
              nbkernels.add.accumulate(x, axis, dtype=wanted))  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("rows", [1, 31, 32, 33, 65])
@pytest.mark.parametrize("count", [32, 33, 63, 64, 65, 255, 256, 257, 320])
def test_sizes(gpu, rng, rows, count):
    """Around the rows of a block, the steps of a stage, and the stages of the ring; along rows and across them."""
    x = numbers(rng, rows, count)
    accumulates(gpu, "subtract", x, 1)
    accumulates(gpu, "subtract", np.ascontiguousarray(x.T), 0)


@pytest.mark.parametrize("count", [1, 2, 7, 31])
def test_few_steps_go_by_a_thread_each(gpu, rng, count):
    for dtype in ("float16", "float32"):
        x = numbers(rng, 70, count, dtype=dtype)
        accumulates(gpu, "subtract", x, 1, "scan")
        accumulates(gpu, "subtract", x.T.copy(), 0, "scan")


LAYOUTS = {  # of 3 x 40 x 48 elements
    "compact": lambda x: x.copy(),
    "rows apart": lambda x: np.pad(x, ((0, 0), (0, 0), (0, 16)))[..., :48],
    "rows apart by 8 bytes": lambda x: np.pad(x, ((0, 0), (0, 0), (0, 2)))[..., :48],
    "unaligned": lambda x: np.pad(x, ((0, 0), (0, 0), (1, 2)))[..., 1:49],
    "every second": lambda x: np.repeat(x, 2, 2)[..., ::2],
    "reversed": lambda x: x[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1],
    "transposed": lambda x: x.transpose(0, 2, 1).copy().transpose(0, 2, 1),
    "first is last": lambda x: x.transpose(1, 2, 0).copy().transpose(2, 0, 1),
}


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [1, 2])
def test_layouts(gpu, rng, layout, axis, dtype):
    """Of x, and of an out whose neighbours in memory keep what they have."""
    x = numbers(rng, 3, 40, 48, dtype=dtype)
    expected = nbkernels.subtract.accumulate(x, axis)
    same_bits(accumulated(gpu, "subtract", LAYOUTS[layout](x), axis), expected)
    out = LAYOUTS[layout](np.full(x.shape, 77, dtype))
    whole = out.base if out.base is not None else out
    before = whole.copy()
    accumulated(gpu, "subtract", x, axis, out=out)
    same_bits(np.ascontiguousarray(out), expected)
    out[...] = 77
    same_bits(whole, before)
    assert set(kernels(gpu)) == {"staged"}


def test_broadcast_inputs_and_overlapping_outs(gpu, rng):
    x = numbers(rng, 40, 64)
    row, column = np.broadcast_to(x[0], x.shape), np.broadcast_to(x[:, :1], x.shape)
    for axis in (0, 1):
        for each in (row, column):
            accumulates(gpu, "subtract", each, axis)
        y = x.copy()
        same_bits(accumulated(gpu, "add", y, axis, out=y), nbkernels.add.accumulate(x, axis))
        y = x.copy()
        accumulated(gpu, "add", y[:-1], axis, out=y[1:])
        same_bits(y[1:], nbkernels.add.accumulate(x[:-1], axis))


@pytest.mark.sampled
@pytest.mark.parametrize("shape", [(40, 64), (64, 4096)])
def test_cards_without_asynchronous_copies(monkeypatch, rng, shape):
    gpu = Device(cc=(7, 5)).installed(monkeypatch)
    x = numbers(rng, *shape)[:, :100]
    for axis in (0, 1):
        accumulates(gpu, "add", x, axis)
    texts = [ptx(kernel, (7, 5)) for kernel in gpu.kernels]
    assert texts
    assert not any("cp.async" in text for text in texts)


def test_folds_in_order_keep_the_last_step_alone(gpu, rng):
    x, mask, out = numbers(rng, 40, 50), rng.random((40, 50)) < 0.5, np.empty(40, "f4")
    for words in ({}, dict(initial=2.0), dict(initial=2.0, where=mask)):
        given = [gpu.array(words["where"]) if "where" in words else None]
        folds.reduce(gpu.array(out), gpu.array(x), "subtract", (1,), False, words.get("initial"), *given, None)
        same_bits(out, nbkernels.subtract.reduce(x, 1, **words))


# --- few long rows ----------------------------------------------------------------------------------------------------


def segments(fold, x):
    """(x of whole segments folded within lanes, all lanes before, pieces, segments): (..., pieces, lanes, elements)."""
    own = fold.accumulate(x.reshape(*x.shape[:-1], -1, 4, 32, 4), -1)
    lanes, d = own[..., -1], 1
    while d < 32:
        lanes = np.concatenate([lanes[..., :d], fold(lanes[..., :-d], lanes[..., d:])], -1)
        d *= 2
    return own, lanes, fold.accumulate(lanes[..., -1], -1)[..., -1]


def before_all(fold, first, own, lanes):
    """What a segment comes to, element by element, behind `first`, which may be None."""
    out, left = np.empty_like(own), first
    for q in range(4):
        for lane in range(32):
            base = left
            if lane:
                base = lanes[q, lane - 1] if left is None else fold(left, lanes[q, lane - 1])
            out[q, lane] = own[q, lane] if base is None else fold(base, own[q, lane])
        left = lanes[q, -1] if left is None else fold(left, lanes[q, -1])
    return out.ravel()


def in_chunks(fold, x, most=512):
    """The scan of one row in the order of nbkernels/cuda/scan.py, in x's dtype."""
    length = 4096 * -(-len(x) // (4096 * most))
    whole = np.concatenate([x, np.repeat(x[-1:], -len(x) % length)]).reshape(-1, length)
    own, lanes, totals = segments(fold, whole)
    chunks = fold.accumulate(totals, -1)[:, -1]
    padded = np.concatenate([chunks, np.repeat(chunks[-1:], 512 - len(chunks))])
    among, of, _ = segments(fold, padded)
    ahead = before_all(fold, None, among[0], of[0])
    out = []
    for c in range(len(whole)):
        left = ahead[c - 1] if c else None
        for s in range(length // 512):
            out.append(before_all(fold, left, own[c, s], lanes[c, s]))
            left = totals[c, s] if left is None else fold(left, totals[c, s])
    return np.concatenate(out)[: len(x)]


CHUNKED = [("add", "float32"), ("multiply", "float64"), ("add", "complex64"), ("add", "float16"),
           ("multiply", "bfloat16")]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize(("op", "dtype"), CHUNKED)
@pytest.mark.parametrize("most", [512, 2])
def test_the_order_of_long_rows(gpu, rng, monkeypatch, op, dtype, most):
    """Rows of one chunk and of several, of one tile and of several, whole ones and ragged ones."""
    monkeypatch.setattr(scan, "CHUNKS", most)
    for n in (4096, 4097, 9000, 12288 + 511):
        x = numbers(rng, 2, n, dtype=dtype)
        if op == "multiply":
            x = (x.astype("f8") * 0.01 + 1).astype(x.dtype)
        wide = x.astype(np.float32) if x.dtype.itemsize == 2 else x
        expected = np.stack([in_chunks(getattr(np, op), row, most) for row in wide]).astype(x.dtype)
        same_bits(accumulated(gpu, op, x, 1), expected)
        assert set(kernels(gpu)) == {"chunked"}
        same_bits(accumulated(gpu, op, x.T.copy(), 0), expected.T)
        same_bits(accumulated(gpu, op, np.pad(x, ((0, 0), (1, 2)))[:, 1:-2], 1), expected)


EXACT = [("add", "int8"), ("add", "uint64"), ("multiply", "int32"), ("maximum", "float32"), ("minimum", "int8"),
         ("fmax", "float64"), ("maximum", "complex64"), ("fmin", "float16"), ("logical_and", "bool"),
         ("logical_xor", "float32"), ("bitwise_or", "uint16"), ("maximum", "bfloat16")]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize(("op", "dtype"), EXACT)
def test_long_rows_of_what_does_not_round(gpu, rng, op, dtype):
    """The CPU's bits, whatever the order; a first NaN far behind, and both zeros."""
    x = numbers(rng, 9000, dtype=dtype)
    if x.dtype.kind not in "iub":
        x = np.where(rng.random(x.shape) < 0.2, rng.choice([0.0, -0.0], x.shape), -abs(x.real)).astype(x.dtype)
        x[-700] = np.nan
    if op == "logical_and":
        x[:8000] = True
    accumulates(gpu, op, x, 0, "elementwise" if op == "logical_xor" else "chunked")


def test_long_rows_of_rows(gpu, rng):
    """Two loops over them, backwards and with gaps, in x and in out."""
    x, out = numbers(rng, 3, 2, 8300, dtype="int32")[::-2, :, ::2], np.full((2, 4150, 2), 77, "i4").transpose(0, 2, 1)
    same_bits(accumulated(gpu, "add", x, 2, np.int32, out), nbkernels.add.accumulate(x, 2, dtype=np.int32))
    assert set(kernels(gpu)) == {"chunked"}


def test_chunks_of_the_largest_elements_stay_in_registers():
    for last in (False, True):
        multiply = scalar.find("multiply", np.dtype("complex128"))
        kernel = scan.chunked(multiply, *["complex128"] * 2, ("complex128",) * 3, 2, 1, 1, last)
        used = assemble(kernel, NEWEST).resources
        print(kernel, used)
        assert used.spilled == used.stack == 0


def test_the_way_is_a_matter_of_the_shape():
    assert [scan.way("add", *shape) for shape in ((1, 4095), (1, 4096), (3, 10**6), (1024, 8192), (1025, 10**6),
                                                  (512, 4096), (513, 4096), (8192, 8192), (10**6, 31))] == [
        "staged", "chunks", "chunks", "chunks", "staged", "chunks", "staged", "staged", "steps"]  # fmt: skip
    assert {scan.way(op, 1, 10**6) for op in ("subtract", "pow", "hypot", "gcd")} == {"staged"}
