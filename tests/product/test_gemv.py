"""Products with one row or one column: where their operands begin, from memory, stacks of them; test_every_path.py has
the rest."""

import ctypes
import mmap
import os

import numpy as np
import pytest

import nbkernels
from nbkernels.cpu.gemm import blocking as tiles
from nbkernels.cpu.gemm import gemm
from nbkernels.cpu.gemv import gemv


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
