"""Products of many steps of k: bit for bit those of the packed path, in every layout, by any threads."""

import itertools

import numpy as np
import pytest

import nbkernels
from nbkernels.cpu.gemm import gemm
from nbkernels.cpu.gemm.paths import COLUMN_STEPS, LITTLE, OBLONG, ROW_STEPS, TALL
from nbkernels.cpu.runtime.status import DEEP
from tests.cases import LAYOUTS, TRANSPOSES, bias_shapes, operands, whole_numbers
from tests.paths import same_bits_as_packed, same_bits_by_threads, way

SHAPES = [
    (2, 3, 513), (4, 5, 9000), (16, 5, 4096), (7, 45, 4097), (3, 701, 520), (701, 3, 8200), (33, 40, 9001),
    (8, 8, 1000), (15, 600, 521), (3, 9, 12_289), (120, 110, 4200),
    (2001, 4, 300), (7, 2500, 90), (3, 37, 4200), (50, 40, 8261), (8, 8, 130), (5, 7, 1001), (40, 3, 200), (9, 4, 129),
    (6, 500, 303),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_bits_are_those_of_the_packed_path(rng, m, n, k, dtype):
    same_bits_as_packed(rng, m, n, k, dtype, DEEP)


def test_every_layout_and_bias(rng):
    """Whole numbers; B of 70x8192 is read by rows, or packed, for its size."""
    few = (5, 37, 700), (3, 20, 600), (40, 2, 5000), (2001, 7, 100), (3, 901, 128), (9, 8, 150)
    for m, n, k in ((13, 70, 8192), *few):
        for la, lb, lo in [
            *itertools.product(LAYOUTS, ("C", "reversed", "F"), "C"),
            *zip("CCCCCCC", "CCCCCCC", LAYOUTS),
        ]:
            a, b = operands(rng, m, n, k, "f4", (la, lb), whole_numbers)
            out = LAYOUTS[lo](np.full((m, n), np.nan, "f4"))
            assert nbkernels.mm(a, b, out=out) is out
            np.testing.assert_array_equal(out, a.astype("f8") @ b.astype("f8"), f"{la} {lb} {lo}")
        for shape in bias_shapes(m, n):
            x = whole_numbers(rng, shape, "f4")
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


@pytest.mark.parametrize(("m", "n", "k", "layout"), [(5, 6, 20_000, "NT"), (900, 7, 600, "NT"), (9, 1100, 520, "NN")])
def test_threads_change_no_bit(rng, monkeypatch, m, n, k, layout):
    a, b = operands(rng, m, n, k, "float64", TRANSPOSES[layout])
    same_bits_by_threads(lambda: nbkernels.mm(a, b), monkeypatch)


def test_describe():
    """Many steps for few outputs; tall products of few columns, and enough steps for each of them."""
    assert str(gemm.describe(8, 8, 1000)).startswith("deep ")
    assert way(32, 5000, 600, 1, "float32", "NT") == way(128, 128, 600, 2, "float32", "NT") == "deep"
    assert way(33, 5000, 600, 1, "float32", "NT") == way(128, 129, 600, 2, "float32", "NT") == "packed"
    for layout, each in (("TN", COLUMN_STEPS), ("NN", ROW_STEPS), ("NT", ROW_STEPS)):
        n, k = TALL, TALL * each
        m = max(OBLONG * n, LITTLE // (n * k) + 1)
        assert way(m, n, k, 1, "float32", layout) == "deep"
        for less in ((m - 1, n, k), (m, n, k - 1), (m, n + 1, k + each)):
            assert way(*less, 1, "float32", layout) != "deep"
    assert way(100, 2, LITTLE // 200, 1) != "deep"
