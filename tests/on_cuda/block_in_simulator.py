"""Products inside a user's kernel, in Numba's simulator: the bits of the library's own, and a float64 bound.

Needs NUMBA_ENABLE_CUDASIM=1; test_simulator.py runs it.
"""

import doctest

import numpy as np
import pytest
from numba import cuda, float32
from numba.core.errors import TypingError

from nbkernels.cuda import block
from nbkernels.cuda.block import BlockGemm
from tests.compare import same_bits
from tests.on_cuda import products_in_simulator as products
from tests.on_cuda.blocks import tiled
from tests.on_cuda.simulated import LAYOUTS, DeviceArray, product

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of integers that wrap

SMALL, DOUBLE = (16, 32, 4, 4, 4), (8, 16, 4, 2, 2)  # one warp each
DTYPES = [("float32",) * 3, ("float64",) * 3, ("float16", "float16", "float32"), ("bfloat16",) * 3,
          ("int8", "uint8", "int32"), ("uint16",) * 3, ("int64",) * 3, ("bool",) * 3, ("complex64",) * 3]  # fmt: skip


def of(*dtypes, **more):
    return BlockGemm(*dtypes, tiles=DOUBLE if dtypes[0] in ("float64", "int64", "complex64", "complex128") else SMALL,
                     **more)  # fmt: skip


def run(gemm, c, a, b, alpha=1, beta=0, cut=0, threads=None):
    """Each array itself, with its strides; bfloat16 as kernels see it."""
    seen = [DeviceArray(x.view("u2") if x.dtype.name == "bfloat16" else x) for x in (c, a, b)]
    grid = -(-c.shape[1] // gemm.bn), -(-c.shape[0] // gemm.bm)
    cuda.jit(tiled(gemm, cut, alpha, beta))[grid, threads or gemm.threads](*seen)
    return c


def wanted(c, a, b, alpha, beta):
    """The library's stated chains."""
    if a.dtype.name in ("float32", "float64"):
        return product(c, a, b, beta, alpha)
    return products.expected(c, a, b, beta, alpha, c.dtype)


def test_the_docstrings_example():
    assert doctest.testmod(block).attempted > 8
    assert doctest.testmod(block).failed == 0


@pytest.mark.parametrize("dtypes", DTYPES, ids=" ".join)
def test_the_bits_of_addmm(rng, dtypes):
    """Blocks beside and below each other with edges, steps cut in two, every layout of operands and c in turn."""
    gemm, lay = of(*dtypes), list(LAYOUTS.values()) if dtypes[0][0] in "fc" else [np.array, np.asfortranarray]
    m, n, k = gemm.bm + 3, gemm.bn + 5, 7
    for i, (beta, alpha) in enumerate(products.factors(dtypes[2])):
        a, b, c = (products.numbers(rng, s, d) for s, d in zip(((m, k), (k, n), (m, n)), dtypes))
        want = wanted(c, a, b, alpha, beta)
        views = [lay[(i + 2 * j + 1) % len(lay)](x) for j, x in enumerate((c, a, b))]
        same_bits(run(gemm, *views, alpha, beta, cut=3 * i), want)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_every_operand(rng, layout):
    a, b, c = (products.numbers(rng, shape, "float32") for shape in ((6, 5), (5, 9), (6, 9)))
    want = product(c, a, b, 0.5, 2)
    for i in range(3):
        views = [LAYOUTS[layout](x.copy()) if i == j else x.copy() for j, x in enumerate((c, a, b))]
        same_bits(run(of("float32"), *views, 2, 0.5), want)


@pytest.mark.parametrize("conj", ["a", "b", "ab"])
def test_conjugates(rng, conj):
    a, b = (products.numbers(rng, shape, "complex64") for shape in ((3, 4), (4, 5)))
    plain = [x.conj() if name in conj else x for name, x in zip("ab", (a, b))]
    c = np.full((3, 5), np.nan, "c8")
    same_bits(run(of("complex64", conj=conj), c, a, b), wanted(np.zeros_like(c), *plain, 1, 0))


def test_an_error_bound(rng):
    """|error| <= gamma |A||B|, gamma = k u / (1 - k u), of any order of summation, against float64."""
    a, b = (products.numbers(rng, shape, "float32") for shape in ((13, 60), (60, 30)))
    got, unit = run(of("float32"), np.full((13, 30), np.nan, "f4"), a, b), 60 * 2.0**-24
    a, b = a.astype("f8"), b.astype("f8")
    assert (abs(got - a @ b) <= unit / (1 - unit) * (abs(a) @ abs(b))).all()


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 32, 0), (16, 1, 9), (15, 31, 4), (0, 3, 2)])
def test_edges(rng, shape):
    """Nothing beyond is read (pointers are bounded here) or written; no steps give zeros."""
    m, n, k = shape
    a, b = (products.numbers(rng, s, "float32") for s in ((m, k), (k, n)))
    c = np.full((m + 2, n + 2), np.nan, "f4")
    run(of("float32"), c[1:-1, 1:-1], a, b)
    same_bits(c[1:-1, 1:-1], product(None, a, b, 0, 1))
    assert np.isnan(c).sum() == 2 * (m + n) + 4


def test_beta_zero_does_not_read_c(rng):
    a, b = (products.numbers(rng, s, "float32") for s in ((3, 4), (4, 5)))
    for beta in (0, -0.0, False):
        same_bits(run(of("float32"), np.full((3, 5), np.inf, "f4"), a, b, 2, beta), product(None, a, b, 0, 2))


def test_threads_in_two_dimensions_and_larger_blocks(rng):
    gemm = BlockGemm("float32", tiles=(32, 32, 8, 4, 4))
    a, b = (products.numbers(rng, s, "float32") for s in ((33, 9), (9, 20)))
    got = run(gemm, np.full((33, 20), np.nan, "f4"), a, b, threads=(16, 4))
    same_bits(got, product(None, a, b, 0, 1))


def test_segments_by_the_caller(rng):
    """The bits of more steps than a segment has: a chain for each, stored with beta = 1 after the first."""
    gemm = of("float32")

    @cuda.jit
    def kernel(c, a, b):
        scratch = gemm.scratch()
        for start in range(0, a.shape[1], 8):
            chains = gemm.zeros()
            gemm.multiply(chains, a[:, start : start + 8], b[start : start + 8], scratch)
            gemm.store(c, chains, 1, 0 if start == 0 else 1)

    a, b = (products.numbers(rng, s, "float32") for s in ((5, 21), (21, 9)))
    c = np.full((5, 9), np.nan, "f4")
    kernel[1, gemm.threads](c, a, b)
    same_bits(c, product(None, a, b, 0, 1, segment=8))


def test_two_products_with_one_between_in_shared_memory(rng):
    """c = relu(a @ b) @ d, with the first product, its function and the second's operand kept by the block."""
    first, second = (BlockGemm("float32", tiles=tiles) for tiles in ((32, 32, 8, 4, 4), (16, 64, 4, 4, 4)))

    @cuda.jit
    def kernel(c, a, b, d):
        hidden = cuda.shared.array((32, 32), float32)
        chains, scratch = first.zeros(), first.scratch()
        first.multiply(chains, a, b, scratch)
        for i in range(first.tm):
            for j in range(first.tn):
                row, column = first.place(i, j)
                hidden[column, row] = max(chains[i, j], float32(0))
        more = second.zeros()
        second.multiply(more, hidden.T[:16], d, second.scratch())
        second.store(c, more)

    a, b, d = (products.numbers(rng, s, "float32") for s in ((11, 6), (6, 32), (32, 40)))
    c = np.full((11, 40), np.nan, "f4")
    kernel[1, first.threads](c, a, b, d)
    same_bits(c, product(None, np.maximum(product(None, a, b, 0, 1), 0), d, 0, 1))


def test_operands_may_be_written_after_it(rng):
    """One shared array takes the next slice of a as soon as multiply returns, for every slice again."""
    gemm = of("float32")

    @cuda.jit
    def kernel(c, a, b):
        shared = cuda.shared.array((16, 4), float32)
        chains, scratch = gemm.zeros(), gemm.scratch()
        for start in range(0, 12, 4):
            for i in range(cuda.threadIdx.x, 64, gemm.threads):
                shared[i // 4, i % 4] = a[i // 4, start + i % 4]
            gemm.multiply(chains, shared, b[start : start + 4], scratch)
        gemm.store(c, chains)

    a, b = (products.numbers(rng, s, "float32") for s in ((16, 12), (12, 32)))
    c = np.full((16, 32), np.nan, "f4")
    kernel[1, gemm.threads](c, a, b)
    same_bits(c, product(None, a, b, 0, 1))


def test_what_it_is_made_of():
    gemm = BlockGemm("uint8", "int8", np.int32, tiles=SMALL)
    assert (gemm.bm, gemm.bn, gemm.bk, gemm.tm, gemm.tn) == SMALL
    assert repr(gemm) == "<BlockGemm uint8 int8 int32 16x32x4 4x4, 32 threads, 1792 bytes of shared memory>"
    assert BlockGemm(np.float64).threads >= 64
    assert "multiply" in gemm.__doc__


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (("float32", "float64"), TypeError, "makes float32 from float32 and float64"),
        (("float32", None, "float64"), TypeError, "makes float64 from float32 and float32"),
        (("int16", None, "int32"), TypeError, "int32 from int8 and uint8"),
        (("datetime64",), TypeError, "datetime64"),
        (("flaot32",), TypeError, "flaot32"),
        (("float32", None, None, (16, 32, 4)), ValueError, "five sizes"),
        (("float32", None, None, (16, 33, 4, 4, 4)), ValueError, "not made of"),
        (("float32", None, None, None, "a"), ValueError, "conj='a'"),
        (("complex64", None, None, None, "ba"), ValueError, "conj='ba'"),
    ],
)
def test_errors_where_it_is_made(arguments, error, says):
    with pytest.raises(error, match=says):
        BlockGemm(*arguments)


@pytest.mark.parametrize(
    ("dtype", "c", "a", "alpha", "says"),
    [
        ("float32", np.zeros((2, 2), "f4"), np.zeros((2, 2)), 1, "a must be a matrix of float32"),
        ("float32", np.zeros(2, "f4"), np.zeros((2, 2), "f4"), 1, "c must be a matrix of float32"),
        ("int32", np.zeros((2, 2), "i4"), np.zeros((2, 2), "i4"), 0.5, "must be whole numbers, not 0.5"),
        ("float32", np.zeros((2, 2), "f4"), np.zeros((2, 2), "f4"), 1j, "must be real numbers, not 1j"),
    ],
)
def test_errors_in_a_kernel(dtype, c, a, alpha, says):
    gemm = of(dtype)

    @cuda.jit
    def kernel(c, a):
        chains = gemm.zeros()
        gemm.multiply(chains, a, a, gemm.scratch())
        gemm.store(c, chains, alpha)

    with pytest.raises(TypingError, match=says):
        kernel[1, gemm.threads](c, a)
