"""Stacks whose rows are an even number of vectors: the bits of one product, in every layout, far or near."""

import itertools

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.cpu.gemm import kernels, stacks_float
from nbkernels.cpu.gemm.blocking import default, small
from nbkernels.cpu.gemm.even import NEAR
from tests.cases import TRANSPOSES, normal, whole_numbers


def turned(x, layout):
    """The same stack, whose matrices are stored by rows or by columns."""
    return x if layout == "C" else np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)


@pytest.fixture
def ran(monkeypatch):
    """How often the kernel `even` is asked for, from the start."""
    calls, (name, real) = [], stacks_float.WAYS[stacks_float.EVEN]
    monkeypatch.setitem(stacks_float.WAYS, stacks_float.EVEN, (name, lambda tile: calls.append(tile) or real(tile)))
    for dtype in ("float32", "float64"):
        kernels.ready(small(dtype))[kernels.MULTIPLIER + stacks_float.EVEN] = 0
    return calls


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "panels", "k"), [(4, 1, 8), (8, 1, 16), (5, 2, 9), (6, 1, 15), (7, 3, 23), (16, 2, 32)])
@pytest.mark.parametrize("less", [0, 1])
def test_bits_are_those_of_one_product(rng, ran, m, panels, k, less, dtype):
    tile = small(dtype)
    n = panels * tile.nr - less
    for layouts, order, factors in itertools.product(TRANSPOSES.values(), "CF", ((0, 1), (0, -0.5), (2, 1))):
        a, b, x = (normal(rng, (13, *shape), dtype) for shape in ((m, k), (k, n), (m, n)))
        a, b = turned(a, layouts[0]), turned(b, layouts[1])
        out = np.full((13, m, n), np.nan, dtype) if order == "C" else np.full((13, n, m), np.nan, dtype).swapaxes(1, 2)
        assert nb.baddbmm(x, a, b, beta=factors[0], alpha=factors[1], out=out) is out
        for t in range(13):
            one = nb.addmm(x[t], a[t], b[t], beta=factors[0], alpha=factors[1], tiles=default(dtype))
            np.testing.assert_array_equal(out[t], one, f"{layouts} {order} {factors}")
        found = nb.explain(nb.baddbmm, x, a, b, beta=factors[0], alpha=factors[1], out=out).path
        if order == "C":
            assert (found == "stack of even") == (tile.narrow and n >= tile.nr and factors == (0, 1))
    if n >= tile.nr:  # else an out stored by columns may be
        assert bool(ran) == tile.narrow


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("count", "n", "k"),
    [(600, 4, 4), (300, 8, 8), (40, 16, 16), (7, 12, 8), (3, 8, 140), (9, 4, 6), (9, 7, 5), (5, 15, 13), (3, 31, 33)],
)
def test_small_b_stored_by_columns(rng, dtype, count, n, k):
    """Turned some at a time, the last ones fewer, into B of any height that A has."""
    b = turned(whole_numbers(rng, (count, k, n), dtype), "F")
    for m in (1, 3, 4, 9):
        a, x = whole_numbers(rng, (count, m, k), dtype), whole_numbers(rng, (count, m, n), dtype)
        np.testing.assert_array_equal(nb.bmm(a, b), a @ b)
        np.testing.assert_array_equal(nb.mm(a[-1], b[-1]), a[-1] @ b[-1])
        np.testing.assert_array_equal(nb.bmm(a[::-1], b[::-1]), (a @ b)[::-1])
        np.testing.assert_array_equal(nb.baddbmm(x, a, b, beta=2, alpha=-3), 2 * x - 3 * (a @ b))


@pytest.mark.parametrize("layouts", TRANSPOSES.values())
def test_beyond_the_caches(rng, ran, layouts):
    """The next matrices are asked for, the last ones' followers too; some of a larger out are all that is written."""
    tile = small("float32")
    m, n, k = 18, 2 * tile.nr - 3, 19
    count = stacks_float.FAR // (4 * (m * k + k * n + m * n)) + 300
    a, b = whole_numbers(rng, (count, m, k), "float32"), whole_numbers(rng, (count, k, n), "float32")
    whole = np.full((count, m + 1, n + 5), np.nan, "float32")
    nb.bmm(turned(a, layouts[0]), turned(b, layouts[1]), out=whole[:, :m, :n])
    np.testing.assert_array_equal(whole[:, :m, :n], a @ b)
    assert np.isnan(whole[:, m:]).all()
    assert np.isnan(whole[:, :, n:]).all()
    assert bool(ran) == tile.narrow


def test_what_is_large_or_strided_goes_other_ways(rng, ran):
    wide = int((NEAR / 8) ** 0.5) // 16 * 16 + 16
    for a, n in ((np.ones((3, wide, wide)), wide), (np.ones((3, 8, 32))[:, :, ::2], 16)):
        assert (nb.bmm(a, np.ones((3, a.shape[2], n))) == a.shape[2]).all()
    assert not ran
