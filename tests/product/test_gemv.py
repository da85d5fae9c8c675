"""Products with one row or one column: bit for bit those of the packed path, in every layout, by any threads."""

import ctypes
import itertools
import mmap
import os

import numpy as np
import pytest

import nbkernels
from nbkernels.cpu.gemm import blocking as tiles
from nbkernels.cpu.gemm import gemm
from nbkernels.cpu.gemv import gemv
from tests.cases import LAYOUTS, operands
from tests.paths import same_bits_by_threads

SIZES = (1, 2, 15, 16, 17, 31, 33, 700, 1024)
DEPTHS = (1, 7, 8, 16, 17, 100, 4096, 4097, 8200, 70_000)


def products(x, a, v, m, out):
    """(what, result) of y = a v and of its transpose, in outs full of NaN."""
    for name, into in (("column", out), ("row", np.ascontiguousarray(out.T))):
        into[...] = np.nan
        turned = (x.T, v.T, a.T) if name == "row" else (x, a, v)
        gemm.gemm(into, *turned, 0.7, -1.3)
        yield name, into if name == "column" else into.T


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_are_those_of_the_packed_path(rng, dtype):
    packed = tiles.default(dtype)
    for m, k in itertools.product(SIZES, DEPTHS):
        if m * k > 1_500_000:
            continue
        a, v, x = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, 1), (m, 1)))
        expected = np.empty((m, 1), dtype)
        gemm.gemm(expected, x, a, v, 0.7, -1.3, packed)
        for matrix in (a, np.asfortranarray(a)):
            for name, found in products(x, matrix, v, m, np.empty((m, 1), dtype)):
                np.testing.assert_array_equal(found, expected, f"{m} {k} {name}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "k"), [(100, 512), (64, 1024), (256, 256), (402, 300), (44, 5000), (47, 640)])
def test_rows_that_crowd_or_are_asked_for(rng, dtype, m, k):
    a, v = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, 1)).astype(dtype)
    expected = np.empty((m, 1), dtype)
    gemm.gemm(expected, None, a, v, 0, 1, tiles.default(dtype))
    for matrix, vector in ((a, v), (a[::-1].copy()[::-1], v[::-1].copy()[::-1])):
        np.testing.assert_array_equal(nbkernels.mm(matrix, vector), expected)
        np.testing.assert_array_equal(nbkernels.mm(vector.T, matrix.T), expected.T)


def test_every_layout(rng):
    for m, k in ((33, 70), (1, 9000)):
        for la, lv, lx in itertools.product(LAYOUTS, repeat=3):
            a, v, x = (rng.integers(-4, 5, shape).astype("f4") for shape in ((m, k), (k, 1), (m, 1)))
            expected = 0.5 * x - 2 * (a.astype(int) @ v.astype(int))
            out = LAYOUTS[lx](np.full((m, 1), np.nan, "f4"))
            gemm.gemm(out, LAYOUTS[lx](x), LAYOUTS[la](a), LAYOUTS[lv](v), 0.5, -2)
            np.testing.assert_array_equal(out, expected, f"{la} {lv} {lx}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "k"), [(1, 1), (1, 90), (5, 1), (9, 11), (25, 40), (70, 3)])
def test_small_ones_from_python(rng, dtype, m, k):
    """A matrix contiguous along neither side as well, into an out and into a result of their own."""
    for la, lv, lx in itertools.product(LAYOUTS, repeat=3):
        a, v, x = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((m, k), (k, 1), (m, 1)))
        expected, out = 0.5 * x - 2 * (a.astype(int) @ v.astype(int)), LAYOUTS[lx](np.full((m, 1), np.nan, dtype))
        a, v, x = LAYOUTS[la](a), LAYOUTS[lv](v), LAYOUTS[lx](x)
        nbkernels.addmm(x, a, v, beta=0.5, alpha=-2, out=out)
        for found in (out, nbkernels.addmm(x.T, v.T, a.T, beta=0.5, alpha=-2).T):
            np.testing.assert_array_equal(found, expected, f"{la} {lv} {lx}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_chain_begins_with_zero_whatever_comes_first(dtype):
    for m, k, order in itertools.product((1, 2, 9, 17, 33), (5, 600, 9000), "CF"):
        a, v = np.zeros((m, k), dtype, order), np.ones((k, 1), dtype)
        a[:, 0], a[:, 1:] = np.inf, 1
        assert (nbkernels.mm(a, v) == np.inf).all(), f"{m} {k}"
        a[...], v[...] = -1, 0
        assert not np.signbit(nbkernels.mm(a, v)).any(), f"{m} {k}"


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("m", "k"), [(600, 700), (5, 120_000), (1, 600_000), (9000, 60)])
def test_threads_change_no_bit(rng, monkeypatch, m, k, order):
    a, v = operands(rng, m, 1, k, "float32", (order, "C"))

    def call():
        out = np.full((m, 1), np.nan, "f4")
        gemm.gemm(out, None, a, v, 0, 1)
        return out

    same_bits_by_threads(call, monkeypatch)


def test_nothing_beyond_the_arrays_is_read(rng):
    """Rows and steps past the last are NaN in memory."""
    for m, k, order in ((5, 19, "C"), (19, 5, "F"), (1, 4100, "C")):
        room = np.full((m + 3, k + 3), np.nan, "f4", order=order)
        vectors = np.full((k + 3, 1), np.nan, "f4")
        room[:m, :k], vectors[:k] = 1, 2
        out = np.full((m, 1), np.nan, "f4")
        gemm.gemm(out, None, room[:m, :k], vectors[:k], 0, 1)
        np.testing.assert_array_equal(out, np.full((m, 1), 2 * k))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nothing_before_the_arrays_is_read(rng, dtype):
    """They begin with a page, before which nothing may be read where the system can say so."""
    page, mapped = mmap.PAGESIZE, mmap.mmap(-1, 4 * mmap.PAGESIZE)
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
            np.testing.assert_array_equal(nbkernels.mm(matrix, v), matrix.astype(int) @ v.astype(int))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_columns_that_begin_anywhere_within_a_line(rng, dtype):
    """Their starts are whole lines apart: vectors then begin with one, after some elements that do not fill one."""
    room, v = rng.integers(-4, 5, 64 * 101).astype(dtype), rng.integers(-4, 5, (100, 1)).astype(dtype)
    for start in range(64 // room.itemsize):
        a = room[start:][: 64 * 100].reshape(100, 64).T
        np.testing.assert_array_equal(nbkernels.mm(a, v), a.astype(int) @ v.astype(int), str(start))
        np.testing.assert_array_equal(nbkernels.mm(v.T, a.T), v.T.astype(int) @ a.T.astype(int), str(start))
        np.testing.assert_array_equal(nbkernels.mv(a, v[:, 0]), (a.astype(int) @ v.astype(int))[:, 0], str(start))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "k"), [(70, 70), (5000, 60), (2, 5000)])
def test_what_is_not_read_is_not_read(m, k, dtype):
    a, v, nothing = np.ones((m, k), dtype), np.ones((k, 1), dtype), np.full((m, 1), np.nan, dtype)
    np.testing.assert_array_equal(nbkernels.addmm(nothing, a, v, beta=0), np.full((m, 1), k))
    np.testing.assert_array_equal(nbkernels.addmm(nothing.T, v.T, a.T, beta=0.0), np.full((1, m), k))


@pytest.mark.parametrize(("m", "k", "order", "dtype"), [
    (2105, 4007, "C", "float32"), (2105, 4007, "F", "float32"), (2105, 2003, "C", "float64"),
    (140_003, 61, "C", "float32"),
])  # fmt: skip
def test_a_matrix_that_comes_from_memory(rng, m, k, order, dtype):
    a, v = np.asarray(rng.standard_normal((m, k)), dtype, order=order), rng.standard_normal((k, 1)).astype(dtype)
    assert a.nbytes > gemv.FAR
    found, expected = np.full((2, len(a), 1), np.nan, dtype)
    gemm.gemm(found, None, a, v, 0, 1)
    gemm.gemm(expected, None, a, v, 0, 1, tiles.default(dtype))
    np.testing.assert_array_equal(found, expected)


def test_describe():
    assert str(gemm.describe(1, 300, 300)).startswith("gemv ")


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
