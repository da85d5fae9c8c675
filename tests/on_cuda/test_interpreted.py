"""CUDA kernels as a card would run them: their PTX for compute capability 9.0, interpreted, against the CPU's bits.

Kernels are those that cards get, with their tiles and their vector loads; races in shared memory, misaligned accesses
and accesses outside the arrays are trapped (tests/ptx).
"""

import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbkernels
from nbkernels import scalar
from tests import reference
from tests.compare import same_bits

try:
    from nbkernels.cuda import elementwise, folds, fused, gemm, launch, mv, reduce, tiles
    from nbkernels.cuda.assemble import ptx
    from tests.on_cuda import wheels
    from tests.ptx.device import NEWEST, Device

    wheels.work()
except (ImportError, RuntimeError) as error:
    pytest.skip(f"lacks the CUDA wheels: {str(error).splitlines()[0]}", allow_module_level=True)

# The CPU's first calls have the bits of its later ones.
pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning"), pytest.mark.usefixtures("at_first")]


@pytest.fixture
def gpu(monkeypatch):
    return Device().installed(monkeypatch)


def numbers(rng, *shape, dtype="float32"):
    """Of every magnitude that sums round: whole numbers for integers, normal ones for floats."""
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    if dtype.kind in "iub":
        return rng.integers(0, 2 if dtype.kind == "b" else 120, shape).astype(dtype)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)


def empty(shape, dtype):
    """Room that holds NaN, or 77."""
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    return np.full(shape, 77 if dtype.kind in "iub" else np.nan).astype(dtype)


def readonly(x):
    x = x.view()
    x.flags.writeable = False
    return x


# --- products ---------------------------------------------------------------------------------------------------------

DTYPES = [("float32",) * 3, ("float64",) * 3, ("complex64",) * 3, ("complex128",) * 3, ("float16",) * 3,
          ("bfloat16",) * 3, ("float16", "float16", "float32"), ("int64",) * 3, ("uint8", "int8", "int32"),
          ("bool",) * 3]  # fmt: skip


def product(gpu, a, b, out, x=None, beta=0, alpha=1, tile=None):
    gemm.gemm(gpu.array(out), None if x is None else gpu.array(readonly(x)), *(gpu.array(readonly(v)) for v in (a, b)),
              beta, alpha, tile, mode="chain" if a.dtype.name in ("float16", "bfloat16") else None)  # fmt: skip
    return out


@pytest.mark.sampled
@pytest.mark.parametrize("dtypes", DTYPES, ids="-".join)
def test_products_have_the_cpus_bits(gpu, rng, dtypes):
    """A ragged size of several blocks, and x with beta and alpha, for each kind of number."""
    a, b = numbers(rng, 70, 19, dtype=dtypes[0]), numbers(rng, 19, 66, dtype=dtypes[1])
    x = numbers(rng, 66, dtype=dtypes[2])
    expected = nbkernels.addmm(x, a, b, beta=2, alpha=3, out_dtype=None if x.dtype == a.dtype else x.dtype)
    same_bits(product(gpu, a, b, empty((70, 66), dtypes[2]), x, 2, 3), expected)


@pytest.mark.sampled
@pytest.mark.parametrize("tile", ["256x128x8 16x8", "128x128x8 8x8", "64x64x8 4x4", "32x32x8 4x4", "128x64x16 8x4"])
def test_tiles_that_cards_get(gpu, rng, tile):
    """A block that is full, and ragged ones beside it."""
    sizes = tiles.Tiles(*map(int, tile.replace(" ", "x").split("x")))
    m, n, k = sizes.bm + 3, sizes.bn + 1, 2 * sizes.bk + 1
    a, b, x = numbers(rng, m, k), numbers(rng, k, n), numbers(rng, m, n)
    same_bits(product(gpu, a, b, empty((m, n), "f4"), x, 0.5, -2, sizes), reference.addmm(x, a, b, 0.5, -2))


MATRICES = {
    "C": lambda x: x.copy(),
    "F": lambda x: np.asfortranarray(x),
    "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "apart": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
}


@pytest.mark.parametrize("layout", MATRICES)
def test_products_of_any_layout(gpu, rng, layout):
    """Of inputs and of out, whose neighbours in memory keep what they have."""
    a, b, x = numbers(rng, 33, 9), numbers(rng, 9, 20), numbers(rng, 33, 20)
    out = MATRICES[layout](np.full((33, 20), np.nan, "f4"))
    whole = out.base if out.base is not None else out
    before = whole.copy()
    same_bits(product(gpu, MATRICES[layout](a), MATRICES[layout](b), out, MATRICES[layout](x), 1, 1),
              reference.addmm(x, a, b, 1, 1))  # fmt: skip
    out[...] = np.nan
    same_bits(whole, before)


@pytest.mark.sampled
@pytest.mark.parametrize("dtypes", [DTYPES[0], DTYPES[5]], ids="-".join)
def test_segments_of_long_products(gpu, rng, dtypes):
    """k = 4099: two chains, the first of which waits in a workspace."""
    a, b = numbers(rng, 2, 4099, dtype=dtypes[0]), numbers(rng, 4099, 3, dtype=dtypes[1])
    same_bits(product(gpu, a, b, empty((2, 3), dtypes[2])), nbkernels.mm(a, b))
    assert len(gpu.launches) == 1


def test_batches(gpu, rng):
    a, b, x = numbers(rng, 3, 5, 7), numbers(rng, 3, 7, 4), numbers(rng, 4)
    out = empty((3, 5, 4), "f4")
    gemm.baddbmm(gpu.array(out), gpu.array(x), gpu.array(a), gpu.array(b), 1, 1)
    same_bits(out, nbkernels.baddbmm(x, a, b))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32", "bfloat16"])
@pytest.mark.parametrize("k", [1, 150, 4200])
def test_dot(gpu, rng, dtype, k):
    """Of vectors whose neighbours are moved together, and of strided ones."""
    whole = numbers(rng, 2 * k, dtype=dtype), numbers(rng, k, dtype=dtype)
    for a, b in ((whole[0][::2], whole[1][::-1]), (aligned(whole[0][:k]), aligned(whole[1]))):
        out = empty((), dtype)
        mv.dot(gpu.array(out), gpu.array(a), gpu.array(b))
        same_bits(out, np.asarray(nbkernels.dot(a, b)))
    assert gpu.launches[-1][0].arguments[2] == (2 if k > 4096 else max(1, 16 // whole[0].itemsize))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64", "float64", "float16"])
@pytest.mark.parametrize(("m", "k"), [(17, 33), (3, 4200)])
@pytest.mark.parametrize("order", "CF")
def test_mv(gpu, rng, dtype, m, k, order):
    a, v, x = numbers(rng, m, k, dtype=dtype), numbers(rng, 2 * k, dtype=dtype)[::-2], numbers(rng, m, dtype=dtype)
    a, out = np.asarray(a, order=order), empty(2 * m, dtype)
    mv.addmv(gpu.array(out[::2]), *map(gpu.array, (x, a, v)), 2, 3)
    same_bits(out[::2], nbkernels.addmv(x, a, v, beta=2, alpha=3))
    same_bits(out[1::2], empty(m, dtype))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64", "int8", "float16", "bfloat16"])
@pytest.mark.parametrize("cc", [(7, 5), NEWEST])
def test_mv_by_vectors(monkeypatch, rng, dtype, cc):
    """Rows whose neighbours are moved together: more rows than a block takes, and whole rounds of loads with a rest."""
    gpu = Device(cc).installed(monkeypatch)
    a, v = aligned(numbers(rng, 131, 4336, dtype=dtype)), aligned(numbers(rng, 4336, dtype=dtype))
    out = empty(131, dtype)
    mv.mv(gpu.array(out), gpu.array(readonly(a)), gpu.array(readonly(v)))
    same_bits(out, nbkernels.mv(a, v))
    kernel, _ = gpu.launches[-1]
    if cc == NEWEST and a.dtype.name in ("float32", "float16", "bfloat16"):
        assert kernel.arguments[0].access.vector == 16 // a.itemsize
    else:
        assert kernel.arguments[2] == 16 // a.itemsize


def aligned(x):
    """A C-order copy that begins at a multiple of 16 bytes."""
    made = np.empty(x.nbytes + 16, np.uint8)
    made = made[-made.ctypes.data % 16 :][: x.nbytes].view(x.dtype).reshape(x.shape)
    made[...] = x
    return made


# --- element by element -----------------------------------------------------------------------------------------------

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, 0.5, 2.5, 1e5])
BINARY = [("add", "float32"), ("add", "float16"), ("add", "bfloat16"), ("divide", "float64"), ("divide", "complex64"),
          ("multiply", "complex128"), ("floor_divide", "int8"), ("remainder", "float64"), ("fmod", "float32"),
          ("pow", "float64"), ("pow", "int64"), ("pow", "complex64"), ("maximum", "bool"), ("minimum", "float32"),
          ("gcd", "uint64"), ("lcm", "int32"), ("atan2", "float32"), ("hypot", "float64"), ("copysign", "float32"),
          ("nextafter", "float32"), ("less", "float64"), ("bitwise_right_shift", "int16"),
          ("logaddexp", "float32")]  # fmt: skip
UNARY = [("exp", "float32"), ("exp", "float16"), ("log", "float64"), ("sin", "float32"), ("cos", "float64"),
         ("tanh", "float32"), ("sqrt", "float64"), ("cbrt", "float32"), ("round", "float64"), ("isnan", "float16"),
         ("exp", "complex64"), ("abs", "complex64"), ("abs", "complex128"), ("log", "complex64"),
         ("tanh", "complex128"), ("bitwise_invert", "uint8"), ("sign", "int64")]  # fmt: skip


def operands(rng, dtype, *shapes):
    """Ordinary numbers with special ones among them."""
    for shape in shapes:
        x = numbers(rng, *shape, dtype=dtype) + np.zeros((), numbers(rng, dtype=dtype).dtype)
        if x.dtype.kind not in "iub":
            x = np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), 20 * x).astype(x.dtype)
        yield x


@pytest.mark.sampled
@pytest.mark.parametrize(("op", "dtype"), BINARY, ids="-".join)
def test_operations_of_two(gpu, rng, op, dtype):
    """More than one chunk of a block; the second operand is repeated in rows, the first one's rows lie apart."""
    x, y = operands(rng, dtype, (40, 57), (57,))
    y = np.where(y == 0, 1, y).astype(y.dtype) if y.dtype.kind in "iu" else y
    expected = getattr(nbkernels, op)(x, y)
    out = empty(expected.shape, expected.dtype)
    getattr(elementwise, op)(gpu.array(out), gpu.array(readonly(np.repeat(x, 2, 0)[::2])), gpu.array(readonly(y)))
    same_bits(out, expected)


@pytest.mark.sampled
@pytest.mark.parametrize(("op", "dtype"), UNARY, ids="-".join)
def test_operations_of_one(gpu, rng, op, dtype):
    """Where a mask says so."""
    (x,), mask = operands(rng, dtype, (9, 131)), rng.random(131) < 0.7
    expected = getattr(nbkernels, op)(x)
    out = empty(expected.shape, expected.dtype)
    expected = np.where(mask, expected, out).astype(expected.dtype)
    getattr(elementwise, op)(gpu.array(out), gpu.array(readonly(x)), where=gpu.array(readonly(mask)))
    if op == "sin":  # the device's own library, which is not right to the last bit
        np.testing.assert_array_max_ulp(out[np.isfinite(expected)], expected[np.isfinite(expected)], 2)
    else:
        same_bits(out, expected)


def test_an_out_that_overlaps_its_input(gpu, rng):
    x = numbers(rng, 40)
    expected = x[:-1] + x[1:]
    elementwise.add(gpu.array(x[1:]), gpu.array(x[:-1]), gpu.array(x[1:].copy()))
    same_bits(x[1:], expected)


LAYOUTS = {  # of self, other and out, all of which broadcast to out's shape
    "contiguous": lambda n, r: (r(5, n), r(5, n), r(5, n)),
    "row": lambda n, r: (r(5, n), r(n), r(5, n)),
    "column": lambda n, r: (r(5, n), r(5, 1), r(5, n)),
    "one element": lambda n, r: (r(5, n), r(1, 1), r(5, n)),
    "rows apart": lambda n, r: (r(5, n + 16)[:, :n], r(5, n), r(5, n + 16)[:, :n]),
    "rows apart, unaligned": lambda n, r: (r(5, n + 3)[:, 1 : n + 1], r(5, n), r(5, n + 1)[:, :n]),
    "every second": lambda n, r: (r(5, 2 * n)[:, ::2], r(5, n), r(5, n)),
    "every second of out": lambda n, r: (r(5, n), r(5, n), r(5, 2 * n)[:, ::2]),
    "reversed": lambda n, r: (r(5, n)[::-1, ::-1], r(5, n), r(5, n)),
    "columns": lambda n, r: (r(n, 5).T, r(n, 5).T, r(n, 5).T),
    "transposed": lambda n, r: (r(5, n), r(n, 5).T, r(5, n)),
    "four dimensions": lambda n, r: (r(2, 1, 3, n), r(2, 3, 1), r(2, 2, 3, n)),
    "0-d": lambda n, r: (r(), r(), r()),
    "begins at an odd element": lambda n, r: (r(5 * n + 1)[1:].reshape(5, n), r(5, n), r(5, n)),
}


MIXED = ("float64 float32 float64", "int8 int16 int16", "complex64 complex64 complex64")
CASES = [(layout, "float32 " * 3) for layout in LAYOUTS]
CASES += [(layout, "float16 " * 3) for layout in ("contiguous", "row", "column", "begins at an odd element")]
CASES += [(layout, dtypes) for dtypes in MIXED for layout in ("rows apart, unaligned", "four dimensions")]


@pytest.mark.sampled
@pytest.mark.parametrize(("layout", "dtypes"), CASES)
def test_layouts_of_elements(gpu, rng, layout, dtypes):
    """Whole pieces and others, of vectors and of single elements; nothing beside out is written."""
    for n in (16, 67):
        names = iter(dtypes.split())
        whole = []

        def made(*shape, names=names, whole=whole):
            whole.append(np.asarray(numbers(rng, *shape, dtype=next(names))))
            return whole[-1]

        x, y, out = LAYOUTS[layout](n, made)
        before = whole[-1].copy()
        expected, untouched = nbkernels.subtract(x, y).astype(out.dtype), before.copy()
        where = np.zeros(before.shape, bool).reshape(-1)
        view = np.lib.stride_tricks.as_strided(where, out.shape, tuple(s // out.itemsize for s in out.strides))
        view[...] = True
        elementwise.subtract(gpu.array(out), gpu.array(readonly(x)), gpu.array(readonly(y)))
        same_bits(np.ascontiguousarray(out), np.ascontiguousarray(expected))
        apart = ~where.reshape(before.shape)
        same_bits(whole[-1][apart], untouched[apart])


TURNED = {
    "matrix": lambda r, a, b: (r(a, b), r(b, a).T, r(a, b)),
    "both": lambda r, a, b: (r(b, a).T, r(b, a).T, r(a, b)),
    "padded, unaligned": lambda r, a, b: (r(b, a + 3)[:, 1 : a + 1].T, r(b), r(a, b + 1)[:, :b]),
    "column": lambda r, a, b: (r(b, a).T, r(a, 1), r(a, b)),
    "three dimensions": lambda r, a, b: (r(2, b, a).transpose(0, 2, 1), r(2, a, b), r(2, a, b)),
    "three, the first turned": lambda r, a, b: (r(b, 3, a).transpose(2, 1, 0), r(a, 3, b), r(a, 3, b)),
}


OTHERS = [("matrix", "float16"), ("both", "float64"), ("matrix", "uint8"), ("padded, unaligned", "int16"),
          ("both", "complex128")]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize(("layout", "dtype"), [*((layout, "float32") for layout in TURNED), *OTHERS])
def test_transposed_inputs_go_by_tiles(gpu, rng, layout, dtype):
    """Ragged sizes of several tiles; with and without a mask."""
    x, y, out = TURNED[layout](lambda *shape: numbers(rng, *shape, dtype=dtype), 70, 131)
    expected = nbkernels.add(x, y)
    elementwise.add(gpu.array(out), gpu.array(readonly(x)), gpu.array(readonly(y)))
    same_bits(np.ascontiguousarray(out), np.ascontiguousarray(expected))
    assert [kernel.make.rpartition(".")[2] for kernel, _ in gpu.launches] == ["transposed:make"]
    mask = rng.random(out.shape[::-1]).T < 0.5
    wanted = np.where(mask, nbkernels.multiply(x, y), out).astype(out.dtype)
    elementwise.multiply(gpu.array(out), gpu.array(x), gpu.array(y), where=gpu.array(mask))
    same_bits(np.ascontiguousarray(out), wanted)


def test_vectors_are_moved_by_one_instruction():
    """16 bytes of every dtype at a time, no division, and nothing in local memory."""
    for dtype, width in (("float32", 4), ("float64", 2), ("float16", 8), ("complex64", 2), ("uint8", 16)):
        way = (dtype, dtype, "vector")
        name = "float32" if dtype == "float16" else dtype
        add = scalar.find("add", np.dtype(dtype))
        text = ptx(elementwise.kernel(add, name, (way,), (way, (dtype, dtype, "same")), None, 2, width, False), NEWEST)
        assert re.search(r"ld\.global\S*\.(v4\.[bfu]32|v2\.[bfu]64)", text), dtype
        assert re.search(r"st\.global\S*\.(v4\.[bfu]32|v2\.[bfu]64)", text), dtype
        assert not re.search(r"\b(div|rem)\.[us]", text), dtype
        assert ".local" not in text, dtype


@given(st.integers(1, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_division_by_multiplication(n, x):
    multiplier, shift = elementwise.divisor(n, False)
    assert multiplier < 2**32
    for value in (x, x // n * n, min(x // n * n + n - 1, 2**31 - 1), 2**31 - 1):
        assert value * multiplier >> shift == value // n


def test_pieces_that_do_not_fit_in_32_bits(gpu, rng):
    """By the kernel that such calls get, on few elements."""
    x, y, out = numbers(rng, 3, 7), numbers(rng, 7), empty((3, 7), "f4")
    ways = ("float32", "float32", "strided")
    made = elementwise.kernel(scalar.common.add, "float32", (ways,), (ways, ways), None, 2, 1, True)
    arrays = [gpu.array(v) for v in (out, x, y)]
    launch.launch(made, 1, 21, 7, (3, 7), ((3, 0), (7, 0)), tuple(map(launch.pointer, arrays)),
                  ((7, 1), (7, 1), (0, 1)), ())  # fmt: skip
    same_bits(out, x + y)


def test_a_function_of_ones_own(gpu, rng):
    """Two outputs in one pass."""

    def both(x, y):
        return x * y + 1, x - y

    x, y = numbers(rng, 30, 41), numbers(rng, 41)
    outs = [empty((30, 41), "f4") for _ in range(2)]
    fused.run(both, [*map(gpu.array, outs)], [gpu.array(x), gpu.array(y)])
    for out, expected in zip(outs, nbkernels.elementwise(both)(x, y)):
        same_bits(out, expected)


# --- folds ------------------------------------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize(("op", "dtype", "axis"), [
    (*each, axis) for axis in ((0,), (1,), (0, 1))
    for each in (("add", "float32"), ("maximum", "float16"), ("multiply", "complex64"), ("logical_and", "bool"),
                 ("add", "int8"))
])  # fmt: skip
def test_folds(gpu, rng, op, dtype, axis):
    """Their order is their own: the terms are whole numbers, or one rounding cannot be told from another."""
    x = numbers(rng, 130, 67, dtype=dtype)
    x = np.where(rng.random(x.shape) < 0.5, 1j, -1).astype(x.dtype) if x.dtype.kind == "c" else x
    x = np.rint(4 * x).astype(x.dtype) if x.dtype.kind == "f" else x
    expected = getattr(nbkernels, op).reduce(x, axis)
    out = empty(expected.shape, expected.dtype)
    folds.reduce(gpu.array(out), gpu.array(readonly(x)), op, axis, False, None, None, None)
    same_bits(out, expected)


def halved(parts):
    """parts[j] + parts[j + h] for halves h, where both are there."""
    parts, half = list(parts), len(parts) // 2
    while half:
        pairs = zip(parts[:half], parts[half : 2 * half])
        parts, half = [a if b is None else a + b for a, b in pairs], half // 2
    return parts[0]


def in_documented_order(x, across, itemsize):
    """x, (terms, results), summed as nbkernels/cuda/reduce.py states."""
    neighbours, (terms, results) = min(8, max(1, 16 // itemsize)), x.shape
    lanes, length = reduce.lanes(results, terms, neighbours, across)
    places, sums = 1 if across else neighbours, []
    for start in range(0, terms, length):
        found = [[None] * places for _ in range(lanes)]
        for t, row in enumerate(x[start : start + length]):
            lane, place = found[t // places % lanes], t % places
            lane[place] = row if lane[place] is None else lane[place] + row
        sums.append(halved([halved(lane) for lane in found]))
    return sums[0] if len(sums) == 1 else in_documented_order(np.asarray(sums), results > 1, x.itemsize)


SUMS = {  # x, and the axes of a sum: rows, columns, all, and lines that pieces of 16 bytes fit in or not
    "rows": lambda r: (r(3, 5000), (1,)),
    "many rows": lambda r: (r(300, 20), (1,)),
    "columns": lambda r: (r(700, 136), (0,)),
    "few columns": lambda r: (r(9000, 3), (0,)),
    "all": lambda r: (r(140, 131), (0, 1)),
    "of three, lines of pieces": lambda r: (r(6, 5, 64), (0, 2)),
    "of three, ragged lines": lambda r: (r(6, 5, 49), (0, 2)),
    "of three, the middle": lambda r: (r(4, 70, 32), (1,)),
    "of four": lambda r: (r(3, 4, 5, 24), (1, 3)),
}
WAYS = {
    "aligned": lambda x: aligned(x),
    "begins at an odd element": lambda x: np.append(x.ravel()[:1], x)[1:].reshape(x.shape),
    "every second": lambda x: np.repeat(x, 2, -1)[..., ::2],
}


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "dtype"), [*((name, "float32") for name in SUMS), *(
    (name, dtype) for name in ("rows", "columns") for dtype in ("float16", "float64"))])  # fmt: skip
def test_the_order_of_a_fold(gpu, rng, name, dtype):
    """Of numbers whose sums round: bit for bit the order that is documented, and the same at every address."""
    x, axes = SUMS[name](lambda *shape: numbers(rng, *shape, dtype=dtype))
    kept = [d for d in range(x.ndim) if d not in axes]
    across = x.ndim - 1 in kept
    terms = x.transpose(*axes, *kept).reshape(-1, int(np.prod([x.shape[d] for d in kept], dtype=int)))
    work = np.dtype("f4" if dtype == "float16" else dtype)
    shape = [x.shape[d] if d in kept else 1 for d in range(x.ndim)]
    expected = in_documented_order(terms.astype(work), across, x.itemsize).reshape(shape)
    for way, laid in WAYS.items():
        out = empty(expected.shape, work)
        reduce.fold("add", gpu.array(out), gpu.array(readonly(laid(x))), work)
        same_bits(out, expected, way)


def test_folds_load_by_16_bytes():
    """Several loads of 16 bytes in each loop, no division there, nothing in local memory."""
    for item, work, lanes, width, across in (("float32", "float32", 256, 4, False), ("float16", "float32", 8, 8, True),
                                             ("float64", "float64", 256, 2, False)):  # fmt: skip
        text = ptx(reduce.kernel(scalar.common.add, item, work, (1, 1), lanes, width, "vector", across, False), NEWEST)
        assert len(re.findall(r"ld\.global\S*\.(v4\.[bfu]32|v2\.[bfu]64)", text)) >= 8, item
        assert ".local" not in text, item


@pytest.mark.sampled
@pytest.mark.parametrize(("op", "dtype"), [("add", "float32"), ("subtract", "float16"), ("add", "int8")])
@pytest.mark.parametrize("axis", [0, 1])
def test_accumulate(gpu, rng, op, dtype, axis):
    x = numbers(rng, 21, 150, dtype=dtype)
    expected = getattr(nbkernels, op).accumulate(x, axis)
    out = empty(expected.shape, expected.dtype)
    folds.accumulate(gpu.array(out), gpu.array(readonly(x)), op, (axis,), None)
    same_bits(out, expected)
