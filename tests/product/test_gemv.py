"""Products with one row or one column: where their operands begin, from memory, stacks of them; test_every_path.py has
the rest."""

import ctypes
import functools
import itertools
import mmap
import os

import numpy as np
import pytest

import nbkernels
from nbkernels.cpu.gemm import gemm, kinds
from nbkernels.cpu.gemm.context import EITHER, FIXED, NARROW, ROWWISE, by_columns
from nbkernels.cpu.gemm.cost import swaps
from nbkernels.cpu.gemv import jobs
from nbkernels.cpu.runtime.status import GEMV
from tests.cases import LAYOUTS, forms
from tests.compare import same_bits
from tests.paths import same_bits_by_threads

COMPLEX = "complex64", "complex128"


@pytest.mark.parametrize("dtype", ["float32", "float64", *COMPLEX])
def test_nothing_before_the_arrays_is_read(rng, dtype):
    """They begin with a page, before which nothing may be read where the system can say so."""
    page, mapped = mmap.PAGESIZE, mmap.mmap(-1, 6 * mmap.PAGESIZE)
    if os.name == "posix":
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), ctypes.c_size_t(page), 0) == 0
    room, strided = np.frombuffer(mapped, dtype, offset=page), np.lib.stride_tricks.as_strided
    room[...] = rng.integers(-4, 5, room.shape)
    for m, k in ((17, 40), (33, 30), (40, 20)):
        a, v = room[: m * k].reshape(m, k), rng.integers(-4, 5, (k, 1)).astype(dtype)
        for matrix in (
            a,
            a[::-1],
            strided(room, (m, k), (0, room.itemsize)),
            strided(room, (m, k), [room.itemsize] * 2),
        ):
            np.testing.assert_array_equal(nbkernels.mm(matrix, v), matrix @ v)


@pytest.mark.parametrize("dtype", ["float32", "float64", *COMPLEX])
def test_columns_that_begin_anywhere_within_a_line(rng, dtype):
    """Their starts are whole lines apart: vectors then begin with one, after some elements that do not fill one."""
    room, v = rng.integers(-4, 5, 64 * 101).astype(dtype), rng.integers(-4, 5, (100, 1)).astype(dtype)
    for start in range(64 // room.itemsize):
        a = room[start:][: 64 * 100].reshape(100, 64).T
        np.testing.assert_array_equal(nbkernels.mm(a, v), a @ v, str(start))
        np.testing.assert_array_equal(nbkernels.mm(v.T, a.T), v.T @ a.T, str(start))
        np.testing.assert_array_equal(nbkernels.mv(a, v[:, 0]), (a @ v)[:, 0], str(start))


@pytest.mark.parametrize(("m", "k", "order", "dtype"), [
    (2105, 4007, "C", "float32"), (2105, 4007, "F", "float32"), (2105, 2003, "C", "float64"),
    (140_003, 61, "C", "float32"), (1205, 4007, "C", "complex64"), (1205, 4007, "F", "complex64"),
    (1205, 2003, "C", "complex128"),
])  # fmt: skip
def test_a_matrix_that_comes_from_memory(rng, m, k, order, dtype):
    a, v = np.asarray(rng.standard_normal((m, k)), dtype, order=order), rng.standard_normal((k, 1)).astype(dtype)
    assert a.nbytes > jobs.FAR
    found, expected = np.full((2, len(a), 1), np.nan, dtype)
    gemm.gemm(found, None, a, v, 0, 1)
    gemm.gemm(expected, None, a, v, 0, 1, kinds.default_tiles(kinds.kind_of(dtype, dtype, dtype)))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [1, 3, 8, 513, 4096, 4097])
def test_a_stack_of_rows_and_columns_has_the_bits_of_its_products(rng, dtype, k):
    """Side by side, a few at a time; of operands that lie apart, into every second number, with what is added."""
    a, b = rng.standard_normal((37, 1, k + 3)).astype(dtype)[..., :k], rng.standard_normal((37, k, 1)).astype(dtype)
    x, out = rng.standard_normal((37, 1, 1)).astype(dtype), np.full((74, 1, 1), np.nan, dtype)
    nbkernels.bmm(a, b, out=out[::2])
    assert (nbkernels.explain(nbkernels.bmm, a, b).path == "stack of vectors") == (k <= 4096)
    assert all(nbkernels.mm(a[t], b[t]).tobytes() == out[2 * t].tobytes() for t in range(37))
    assert np.isnan(out[1::2]).all()
    found = nbkernels.baddbmm(x, a, b, alpha=0.5, beta=-2)
    assert all(nbkernels.addmm(x[t], a[t], b[t], alpha=0.5, beta=-2).tobytes() == found[t].tobytes() for t in range(37))
    assert nbkernels.bmm(b.swapaxes(1, 2), a.swapaxes(1, 2)).tobytes() == out[::2].tobytes()


def numbers(rng, shape, dtype, special=0.0):
    """All of an integer dtype's range, or parts of any size; some of them zeros of both signs, infinities, NaN,
    subnormals."""
    dtype = np.dtype(dtype)
    if dtype.kind != "c":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    parts = rng.standard_normal((*shape, 2))
    odd = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, -1e-310], parts.shape)
    return np.where(rng.random(parts.shape) < special, odd, parts).astype(dtype.type(0).real.dtype).view(dtype)[..., 0]


def in_tiles(x, a, b, beta, alpha, conj=None):
    """The packed path, which tiles= asks for."""
    out, name = np.empty((len(a), b.shape[1]), a.dtype), a.dtype.name
    gemm.gemm(out, x, a, b, beta, alpha, kinds.default_tiles(kinds.kind_of(name, name, name)), conj=conj)
    return out


LONG = [(1, 4097), (2, 9000), (33, 8193), (2049, 3), (2100, 40), (1025, 4100)]  # segments, and blocks of outputs
EDGES = [*itertools.product((1, 2, 3, 4, 8, 9, 16, 17, 24, 33, 48, 97), (1, 2, 3, 4, 5, 8, 15, 33, 130))]


@pytest.mark.parametrize("dtype", forms("complex64", "int32", sampled=["complex128", "uint64"]))
def test_vectors_of_other_dtypes_have_the_bits_of_the_packed_path(rng, dtype):
    """Round every edge of rows, columns and blocks, from every layout, on either side; and with special numbers."""
    names = [name for name in LAYOUTS if dtype in COMPLEX or name not in ("every other", "padded")]
    for case, (m, k) in enumerate([*EDGES, *LONG]):
        a, v = numbers(rng, (m, k), dtype, case % 3 / 30), numbers(rng, (k, 1), dtype)
        column, row = in_tiles(None, a, v, 0, 1), in_tiles(None, v.T, a.T, 0, 1)
        for i, layout in enumerate(names):
            left, right = LAYOUTS[layout](a), LAYOUTS[names[(i + case) % len(names)]](v[:, 0])
            out = LAYOUTS[names[(i + 2 * case) % len(names)]](np.full(m, 77, dtype))
            assert nbkernels.mv(left, right, out=out) is out
            same_bits(out, column[:, 0], f"{m} {k} {layout}")
            same_bits(nbkernels.mm(left, v), column, f"{m} {k} {layout}")
            same_bits(nbkernels.matmul(right, left.T), row[0], f"{m} {k} {layout}")
            same_bits(nbkernels.linear(v.T, left), row, f"{m} {k} {layout}")


@pytest.mark.parametrize("dtype", forms("complex64", "int64", sampled=["complex128"]))
def test_vectors_of_other_dtypes_with_conj_and_factors(rng, monkeypatch, dtype):
    forms, factors = ("", "a", "b", "ab"), ((0, 1), (0, -2), (1, 1), (0.5, -2), (1 - 2j, 3j), (-0.0, 1))
    if dtype not in COMPLEX:
        forms, factors = ("",), ((0, 1), (0, -2), (1, 1), (5, -2))
    for (m, k), conj in itertools.product(((1, 1), (5, 7), (97, 40), (3, 4100), (1100, 70)), forms):
        a, v, x = (numbers(rng, size, dtype, 0.02) for size in ((m, k), (k, 1), (m, 1)))
        turned = {"a": "b", "b": "a"}.get(conj, conj) or None
        for order, (beta, alpha) in itertools.product("CF", factors):
            mat, words = np.asarray(a, order=order), dict(beta=beta, alpha=alpha)
            expected = in_tiles(x, a, v, beta, alpha, conj)
            call = functools.partial(nbkernels.addmm, x, mat, v, **words, conj=conj or None)
            same_bits(call(), expected)
            same_bits_by_threads(call, monkeypatch)
            own = x[:, 0].copy()
            nbkernels.addmv_(own, mat, v[:, 0], **words, conj=conj or None)
            same_bits(own, expected[:, 0])
            found = nbkernels.addmm(x.T, v.T, mat.T, **words, conj=turned)
            same_bits(found, in_tiles(x.T, v.T, a.T, beta, alpha, turned))


@pytest.mark.parametrize("dtype", ["complex64", "int32"])
def test_vectors_of_other_dtypes_read_nothing_beyond_and_are_explained(rng, dtype):
    a, v = np.full((40, 50), 77, dtype), np.full(50, 77, dtype)
    for m, k in ((1, 3), (17, 19), (37, 45)):
        a[:m, :k], v[:k] = 1, 2
        for mat in (a[:m, :k], np.asfortranarray(a)[:m, :k]):
            np.testing.assert_array_equal(nbkernels.mv(mat, v[:k]), np.full(m, 2 * k))
            told = nbkernels.explain(nbkernels.mm, mat, v[:k, None])
            assert (told.path, told.temporaries) == ("gemv", ())
    assert nbkernels.explain(nbkernels.mm, a[::2, ::2], a[:25, :1]).path == "packed"


def test_which_side_is_first():
    """C' = B' A' where C is stored by columns, a single one too, where a matrix unit reads B in place, or where C is
    narrow; never where kernels tell A from B."""
    sixteen = functools.partial(by_columns, lanes=16)
    for sides in (ROWWISE, EITHER, NARROW):
        assert sixteen(sides, m=5, n=4, k=3, rsb=4, rsc=1, csc=5)
        assert sixteen(sides, m=5, n=1, k=3, rsb=1, rsc=1, csc=1)
        assert not sixteen(sides, m=5, n=4, k=3, rsb=4, rsc=4, csc=1)
        assert not sixteen(sides, m=5, n=4, k=3, rsb=4, rsc=8, csc=2)
    assert sixteen(EITHER, m=5, n=70, k=500, rsb=1, rsc=70, csc=1)
    assert not sixteen(ROWWISE, m=5, n=70, k=500, rsb=1, rsc=70, csc=1)
    assert not sixteen(EITHER, m=17, n=70, k=5000, rsb=1, rsc=70, csc=1)
    assert not sixteen(FIXED, m=5, n=4, k=3, rsb=1, rsc=1, csc=5)
    assert sixteen(NARROW, m=64, n=8, k=3, rsb=8, rsc=8, csc=1)
    assert not sixteen(NARROW, m=64, n=9, k=3, rsb=9, rsc=9, csc=1)
    assert not sixteen(NARROW, m=8, n=64, k=3, rsb=64, rsc=1, csc=8)
    assert not sixteen(ROWWISE, m=64, n=8, k=3, rsb=8, rsc=8, csc=1)
    assert swaps(GEMV, 1, 5, 5, 1)
    assert not swaps(GEMV, 5, 1, 1, 1)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_a_column_has_the_bits_of_a_row(rng, dtype):
    """(A b) and (b' A')' are one product, in a new result and in a column of another matrix."""
    for m, k in ((1, 1), (3, 40), (40, 3), (33, 700)):
        a, b = (10 * rng.standard_normal(shape) for shape in ((m, k), (k, 1)))
        a, b = a.astype(dtype), b.astype(dtype)
        for left in (a, np.asfortranarray(a), np.repeat(a, 2, 1)[:, ::2]):
            column = nbkernels.mm(left, b)
            assert column.tobytes() == nbkernels.mm(b.T, left.T).tobytes()
            out = np.zeros((m, 3), dtype, "F")
            assert nbkernels.mm(left, b, out=out[:, 1:2]).tobytes() == column.tobytes()
            assert not out[:, ::2].any()
