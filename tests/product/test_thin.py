"""Products of few steps of k: bit for bit those of the packed path, in every layout, by any threads."""

import itertools

import numpy as np
import pytest

import nbkernels
from nbkernels.cpu.gemm import blocking as tiles
from nbkernels.cpu.gemm import fast, gemm, paths
from nbkernels.cpu.runtime.status import DONE, THIN
from tests.cases import LAYOUTS, TRANSPOSES, bias_shapes, normal, operands, whole_numbers
from tests.paths import same_bits_as_packed, same_bits_by_threads

M, N = 971, 149  # many rows and one tile more than four panels, both prime
WIDE = 149 + paths.THIN_LEAST // M  # columns of a C that threads share


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [1, 3, 48])
def test_bits_are_those_of_the_packed_path(rng, k, dtype):
    same_bits_as_packed(rng, M, N, k, dtype, THIN)


def test_panels_that_no_stack_holds_have_the_bits_of_the_packed_path(rng):
    same_bits_as_packed(rng, 2000, 3001, 40, "float32", THIN)  # so long that a thread that sleeps takes a part of it


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "n"), [(50, 50), (700, 17), (16, 64), (971, 149)])
def test_one_step_without_a_bias(rng, m, n, dtype):
    """Bit for bit, zeros' signs included: the chain begins from zero."""
    for layouts in TRANSPOSES.values():
        a, b = operands(rng, m, n, 1, dtype, layouts)
        a[0], b[:, -1] = 0, -0.0
        for alpha, order in itertools.product((1, -1.3), "CF"):
            found, expected = np.full((m, n), np.nan, dtype, order=order), np.empty((m, n), dtype)
            assert THIN in paths.legal(found, None, a, b)
            assert gemm.by_path(THIN, found, None, a, b, 0, alpha) == DONE
            gemm.gemm(expected, None, a, b, 0, alpha, tiles.default(dtype))
            assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "n"), [(50, 50), (17, 700), (64, 16), (971, 149)])
def test_one_step_with_a_bias(rng, m, n, dtype):
    """Bit for bit, in place, too, where the last vector of a row meets what the one before has written."""
    u, v, x = (normal(rng, shape, dtype) for shape in (m, n, (m, n)))
    for order, bias in itertools.product("CF", (x, x[:1], x[0], x[:, :1], x[0, 0])):
        expected = np.empty((m, n), dtype, order=order)
        gemm.gemm(expected, np.asarray(bias), u[:, None], v[None], 0.7, -1.3, tiles.default(dtype))
        found = nbkernels.addr(bias, u, v, beta=0.7, alpha=-1.3, out=np.full((m, n), np.nan, dtype, order=order))
        assert found.tobytes() == expected.tobytes()
        if np.shape(bias) == (m, n):
            found[...] = x
            assert nbkernels.addr_(found, u, v, beta=0.7, alpha=-1.3).tobytes() == expected.tobytes()


def test_every_layout_and_bias(rng):
    """Whole numbers: those that rows cannot serve go another way."""
    for la, lb, lo in [*itertools.product(LAYOUTS, ("C", "reversed"), ("C", "padded")), *zip("CCC", "CCC", LAYOUTS)]:
        a, b = operands(rng, M, N, 2, "f4", (la, lb), whole_numbers)
        expected = a.astype(int) @ b.astype(int)
        out = LAYOUTS[lo](np.full((M, N), np.nan, "f4"))
        assert nbkernels.mm(a, b, out=out) is out
        np.testing.assert_array_equal(out, expected, f"{la} {lb} {lo}")
    for shape in bias_shapes(M, N):
        x = whole_numbers(rng, shape, "f4")
        np.testing.assert_array_equal(nbkernels.addmm(x, a, b, beta=2), 2 * x + expected, str(shape))


@pytest.mark.parametrize("layout", ["NN", "NT"])
def test_threads_change_no_bit(rng, monkeypatch, layout):
    a, b = operands(rng, M, N, 5, "float64", TRANSPOSES[layout])
    same_bits_by_threads(lambda: nbkernels.mm(a, b), monkeypatch)


@pytest.mark.parametrize("layout", ["NN", "NT"])
@pytest.mark.parametrize("n", [WIDE, WIDE // 3])
def test_one_compiled_call(rng, monkeypatch, n, layout):
    """By several threads, too, and where panels of B are packed first; the second call asks Python for nothing."""
    a, b = operands(rng, M, n, 3, "float32", TRANSPOSES[layout], whole_numbers)
    x, out = whole_numbers(rng, (M, n), "f4"), np.empty((M, n), "f4")
    with paths.only(THIN):
        nbkernels.addmm(x, a, b, out=out)
        for room in (fast, gemm):
            monkeypatch.setattr(room, "by_path", None)
        nbkernels.addmm(x, a, b, beta=2, alpha=3, out=out)
    np.testing.assert_array_equal(out, 2 * x + 3 * (a @ b))


def test_describe():
    with paths.only(THIN):
        assert str(gemm.describe(1000, 1000, 8)).startswith("thin ")
        assert str(gemm.describe(1000, 1000, 513)).startswith("packed ")
