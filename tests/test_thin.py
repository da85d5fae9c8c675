"""Products of few steps of k: bit for bit those of the packed path, in every layout, by any threads."""

import itertools

import numba
import numpy as np
import pytest

import nbkernels
from nbkernels.cpu import gemm, thin, tiles
from tests.cases import LAYOUTS, TRANSPOSES, bias_shapes

M, N = 971, 149  # many rows and one tile more than four panels, both prime


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_are_those_of_the_packed_path(rng, dtype):
    for k, layout in itertools.product((1, 3, 48), TRANSPOSES):
        a, b = (
            LAYOUTS[name](rng.standard_normal(shape).astype(dtype))
            for name, shape in zip(TRANSPOSES[layout], ((M, k), (k, N)), strict=True)
        )
        x, expected = rng.standard_normal((M, N)).astype(dtype), np.empty((M, N), dtype)
        gemm.gemm(expected, x, a, b, 0.7, -1.3, tiles.default(dtype))
        for order in "CF":
            out = np.full((M, N), np.nan, dtype, order=order)
            gemm.gemm(out, x, a, b, 0.7, -1.3)
            np.testing.assert_array_equal(out, expected, f"{k} {layout} {order}")
            nbkernels.addmm(x, a, b, beta=0.7, alpha=-1.3, out=out)
            np.testing.assert_array_equal(out, expected, f"{k} {layout} {order}")


def test_every_layout_and_bias(rng):
    """Whole numbers: those that rows cannot serve go another way."""
    for la, lb, lo in [*itertools.product(LAYOUTS, ("C", "reversed"), ("C", "padded")), *zip("CCC", "CCC", LAYOUTS)]:
        a, b = (
            LAYOUTS[layout](rng.integers(-4, 5, shape).astype("f4")) for layout, shape in ((la, (M, 2)), (lb, (2, N)))
        )
        expected = a.astype(int) @ b.astype(int)
        out = LAYOUTS[lo](np.full((M, N), np.nan, "f4"))
        assert nbkernels.mm(a, b, out=out) is out
        np.testing.assert_array_equal(out, expected, f"{la} {lb} {lo}")
    for shape in bias_shapes(M, N):
        x = rng.integers(-4, 5, shape).astype("f4")
        np.testing.assert_array_equal(nbkernels.addmm(x, a, b, beta=2), 2 * x + expected, str(shape))


def test_threads_change_no_bit(rng, monkeypatch):
    monkeypatch.setattr(thin.threads, "count", numba.get_num_threads)
    a, b = rng.standard_normal((M, 5)), rng.standard_normal((N, 5)).T
    found = []
    for count in range(1, numba.config.NUMBA_NUM_THREADS + 1):
        numba.set_num_threads(count)
        found.append(nbkernels.mm(a, b))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_describe():
    assert str(gemm.describe(1000, 1000, 8)).startswith("thin ")
