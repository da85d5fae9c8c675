"""Products of many steps of k: bit for bit those of the packed path, in every layout, by any threads."""

import itertools

import numba
import numpy as np
import pytest

import nbkernels
from nbkernels.cpu import deep, gemm, tiles
from tests.cases import LAYOUTS, TRANSPOSES, bias_shapes

SHAPES = [(2, 3, 513), (16, 5, 4096), (7, 45, 4097), (3, 701, 520), (701, 3, 8200), (33, 40, 9001)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_are_those_of_the_packed_path(rng, dtype):
    for (m, n, k), layout in itertools.product(SHAPES, TRANSPOSES):
        a, b = (
            LAYOUTS[name](rng.standard_normal(shape).astype(dtype))
            for name, shape in zip(TRANSPOSES[layout], ((m, k), (k, n)), strict=True)
        )
        x, expected = rng.standard_normal((m, n)).astype(dtype), np.empty((m, n), dtype)
        gemm.gemm(expected, x, a, b, 0.7, -1.3, tiles.default(dtype))
        for order in "CF":
            out = np.full((m, n), np.nan, dtype, order=order)
            gemm.gemm(out, x, a, b, 0.7, -1.3)
            np.testing.assert_array_equal(out, expected, f"{m} {n} {k} {layout} {order}")
            out[...] = x
            assert nbkernels.addmm_(out, a, b, beta=0.7, alpha=-1.3) is out
            np.testing.assert_array_equal(out, expected, f"in place: {m} {n} {k} {layout} {order}")


def test_every_layout_and_bias(rng):
    """Whole numbers; B of 70x8192 is packed for its size."""
    for m, n, k in ((5, 37, 700), (13, 70, 8192), (3, 20, 600), (40, 2, 5000)):
        for la, lb, lo in [
            *itertools.product(LAYOUTS, ("C", "reversed", "F"), "C"),
            *zip("CCCCCCC", "CCCCCCC", LAYOUTS),
        ]:
            pairs = (la, (m, k)), (lb, (k, n))
            a, b = (LAYOUTS[layout](rng.integers(-4, 5, shape).astype("f4")) for layout, shape in pairs)
            out = LAYOUTS[lo](np.full((m, n), np.nan, "f4"))
            assert nbkernels.mm(a, b, out=out) is out
            np.testing.assert_array_equal(out, a.astype("f8") @ b.astype("f8"), f"{la} {lb} {lo}")
        for shape in bias_shapes(m, n):
            x = rng.integers(-4, 5, shape).astype("f4")
            expected = 2 * x + a.astype("f8") @ b.astype("f8")
            np.testing.assert_array_equal(nbkernels.addmm(x, a, b, beta=2), expected, str(shape))


def test_nothing_beyond_the_arrays_is_read(rng):
    room = np.full((20, 620), np.nan, "f4")
    room[:9, :600] = 1
    a, b, out = room[:9, :600], room.T[:600, :9], np.full((12, 12), np.nan, "f4")
    nbkernels.mm(a, b, out=out[:9, :9])
    np.testing.assert_array_equal(out[:9, :9], np.full((9, 9), 600))
    assert np.isnan(out[9:]).all()
    assert np.isnan(out[:, 9:]).all()


def test_threads_change_no_bit(rng, monkeypatch):
    monkeypatch.setattr(deep.threads, "count", numba.get_num_threads)
    for m, n, k in ((5, 6, 20_000), (900, 7, 600)):
        a, b, found = rng.standard_normal((m, k)), rng.standard_normal((n, k)).T, []
        for count in range(1, numba.config.NUMBA_NUM_THREADS + 1):
            numba.set_num_threads(count)
            found.append(nbkernels.mm(a, b))
        for other in found[1:]:
            np.testing.assert_array_equal(other, found[0])


def test_describe():
    assert str(gemm.describe(8, 8, 1000)).startswith("deep ")
