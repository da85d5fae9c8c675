"""Products of many steps of k: bit for bit those of the packed path, in every layout, by any threads."""

import itertools

import numba
import numpy as np
import pytest

import nbkernels
from nbkernels.cpu.gemm import fast, gemm
from nbkernels.cpu.gemm.paths import only
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


@pytest.mark.parametrize(("n", "threads"), [(8, 2), (30, 1)])
def test_what_threads_do_not_share_is_one_compiled_call(rng, monkeypatch, n, threads):
    """What is brief, and more where there is one thread; the second call asks Python for nothing."""
    a, b = operands(rng, n, n, 900, "float64", TRANSPOSES["NT"])
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, before))
    try:
        with only(DEEP):
            expected = nbkernels.mm(a, b), nbkernels.mm(a, b)
            for room in (fast, gemm):
                monkeypatch.setattr(room, "by_path", None)
            assert nbkernels.mm(a, b).tobytes() == expected[0].tobytes() == expected[1].tobytes()
    finally:
        numba.set_num_threads(before)


def test_describe():
    """Many steps for few outputs."""
    assert str(gemm.describe(8, 8, 5000)).startswith("deep ")
    with only(DEEP):
        assert way(500, 500, 500) == "deep"
