"""Few rows against a wide B: bit for bit the packed path, in every layout, by any threads, chosen or not."""

import itertools

import numpy as np
import pytest

from nbkernels.cpu.gemm import blocking as tiles
from nbkernels.cpu.gemm import gemm
from nbkernels.cpu.gemm.blocking import SEGMENT
from nbkernels.cpu.gemm.paths import only
from nbkernels.cpu.gemm.short import BROAD, STEPS, door
from nbkernels.cpu.runtime import threads
from nbkernels.cpu.runtime.status import DECLINED, DONE, SHORT
from tests.cases import LAYOUTS, TRANSPOSES, normal, operands, whole_numbers
from tests.paths import same_bits_by_threads, way
from tests.product.test_memory import OBJECTS, peak

SIZES = [(1, 1, 1), (5, 40, 3), (7, 997, STEPS + 1), (8, 600, 2 * STEPS), (13, 301, 499), (33, 517, 70), (301, 9, 140)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_bits_are_those_of_the_packed_path(rng, m, n, k, dtype):
    for layout, layouts in TRANSPOSES.items():
        a, b = operands(rng, m, n, k, dtype, layouts)
        x, expected = normal(rng, (m, n), dtype), np.empty((m, n), dtype)
        for factors, order in itertools.product(((0.7, -1.3), (0, 1), (0, 2.5)), "CF"):
            gemm.gemm(expected, x, a, b, *factors, tiles.default(dtype))
            out, given = np.full((m, n), np.nan, dtype, order=order), id(x) if factors[0] else 0
            assert door(dtype).product(out, given, a, b, *factors, threads.count()) == DONE
            np.testing.assert_array_equal(out, expected, f"{layout} {order} {factors}")
            if factors[0]:
                out[...] = x
                assert door(dtype).product(out, id(out), a, b, *factors, 1) == DONE
                np.testing.assert_array_equal(out, expected, f"in place: {layout} {order}")


def test_every_layout(rng):
    """Whole numbers, between rows of a larger out that stay as they are."""
    m, n, k = 9, 270, 150
    for la, lb, lo in [*itertools.product(LAYOUTS, ("C", "reversed"), ("C", "padded")), *zip("CCC", "CCC", LAYOUTS)]:
        a, b = operands(rng, m, n, k, "f4", (la, lb), whole_numbers)
        out = LAYOUTS[lo](np.full((m, n), np.nan, "f4"))
        whole = out if out.base is None else out.base
        outside = np.isnan(whole).sum() - out.size
        assert door("float32").product(out, 0, a, b, 0.0, 1.0, threads.count()) == DONE
        np.testing.assert_array_equal(out, a.astype(int) @ b.astype(int), f"{la} {lb} {lo}")
        assert np.isnan(whole).sum() == max(0, outside)


def test_nothing_is_done_with_what_is_unusual(rng):
    a, b = operands(rng, 8, 40, 20, "float32", TRANSPOSES["NN"])
    out = np.full((8, 41), np.nan, "float32")
    assert door("float32").product(out, 0, a, b, 0.0, 1.0, 1, trusted=False) == DECLINED
    assert np.isnan(out).all()


@pytest.mark.parametrize(("dtype", "layout"), [("float32", "NN"), ("float64", "TN")])
def test_threads_change_no_bit(rng, monkeypatch, dtype, layout):
    a, b = operands(rng, 16, 1300, 260, dtype, TRANSPOSES[layout])
    out = np.empty((16, 1300), dtype)

    def call():
        out.fill(np.nan)
        assert door(dtype).product(out, 0, a, b, 0.0, 1.0, threads.count()) == DONE
        return out.copy()

    same_bits_by_threads(call, monkeypatch)


def test_memory(rng):
    """For each thread panels of A, a panel of STEPS steps of B, and chains of up to 2 KiB for each row of A."""
    (m, n, k), dtype, tile = (20, 3000, 700), "float64", tiles.small("float64")
    a, b = operands(rng, m, n, k, dtype, TRANSPOSES["NN"])
    out = np.empty((m, n), dtype)
    used = peak(lambda: door(dtype).product(out, 0, a, b, 0.0, 1.0, threads.count()))
    most = threads.count() * 8 * ((m + tile.mr) * k + STEPS * tile.nr + m * (BROAD // 8 + tile.nr))
    assert used <= most + OBJECTS


@pytest.mark.parametrize("workers", [1, 2])
def test_its_bounds(workers):
    """64 rows or columns, of which each thread packs all; and nothing that is too little to launch threads for."""
    with only(SHORT):
        assert way(64, 4000, 600, workers) == way(4000, 64, 600, workers, "float64", "TN") == "short"
        assert way(65, 4000, 600, workers) == way(64, 4000, SEGMENT + 1, workers) == "packed"
        assert way(30, 30, 30, workers) == "packed"
