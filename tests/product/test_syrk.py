"""A matrix times its own transpose, by one triangle: the bits of the whole product, whatever lies where."""

import numba
import numpy as np
import pytest

import nbkernels as nb
from nbkernels.cpu.gemm import fast, gemm, paths
from nbkernels.cpu.gemm import syrk as mirror


@pytest.fixture
def triangles(monkeypatch):
    """Sizes of the products that were mirrored, by one thread."""
    sizes = []
    before = numba.get_num_threads()
    numba.set_num_threads(1)

    def noted(product, out, a, b):
        sizes.append(len(out))
        mirror.mirrored(product, out, a, b)

    for room in (fast, gemm):
        monkeypatch.setattr(room, "mirrored", noted)
    yield sizes
    numba.set_num_threads(before)


def plain(a, b):
    """The same product of two matrices in memory of their own."""
    return nb.mm(a.copy(order="K"), b.copy(order="K"))


def equal_bits(found, expected):
    assert found.dtype == expected.dtype
    assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("n", "k"), [(192, 16), (257, 64), (401, 40), (500, 301), (640, 5000)])
def test_bits_are_those_of_the_whole_product(triangles, rng, dtype, n, k):
    a = rng.standard_normal((n, k)).astype(dtype)
    expected = plain(a, a.T)
    equal_bits(nb.mm(a, a.T), expected)
    assert triangles[0] == n
    equal_bits(nb.matmul(a, a.T), expected)
    columns = np.asfortranarray(a)
    equal_bits(nb.mm(columns, columns.T), expected)
    equal_bits(nb.mm(a.T.copy().T, a.T), expected)  # two memories
    out = np.full((n, n + 3), np.nan, dtype)
    assert nb.mm(a, a.T, out=out[:, :n]).base is out
    equal_bits(out[:, :n], expected)
    assert np.isnan(out[:, n:]).all()
    turned = np.full((n, n), np.nan, dtype).T
    nb.mm(a, a.T, out=turned)
    equal_bits(turned, expected)


@pytest.mark.parametrize("dtype", ["i4", "f2", "?", "i8"])
def test_other_dtypes(triangles, rng, dtype):
    a = rng.integers(-3, 4, (260, 70)).astype(dtype)
    equal_bits(nb.mm(a, a.T), plain(a, a.T))
    equal_bits(nb.matmul(a.T.copy().T, a.T), plain(a, a.T))
    assert triangles[0] == 260


def test_what_is_no_such_product(triangles, rng):
    """Other memory, other strides, complex numbers, something added or scaled, a mode, tiles; too small."""
    a = rng.standard_normal((260, 260)).astype("f4")
    base = rng.standard_normal((520, 60)).astype("f4")
    for x, y in ((a, a), (a, a[::-1].T), (a, a.T[::-1, ::-1]), (a[:, :200], a.T[1:201]), (base[::2], base[::-2].T)):
        np.testing.assert_allclose(nb.mm(x, y), x @ y, rtol=2e-4, atol=2e-4)
    z = (a[:200, :40] + 1j * a[40:240, 40:80]).astype("c8")
    equal_bits(nb.mm(z, z.T), plain(z, z.T))
    equal_bits(nb.mm(a[:100], a[:100].T), plain(a[:100], a[:100].T))
    np.testing.assert_allclose(nb.addmm(a, a, a.T, alpha=0.5), a + 0.5 * (a @ a.T), rtol=1e-3, atol=1e-3)
    assert triangles == []
    equal_bits(nb.mm(base[::2], base[::2].T), plain(base[::2], base[::2].T))
    equal_bits(nb.mm(base[::-1], base[::-1].T), plain(base[::-1], base[::-1].T))
    assert triangles[0] == 260


def test_overlap_nan_and_threads(rng):
    a = rng.standard_normal((450, 450))
    a[7, 3] = np.nan
    expected = plain(a, a.T)
    assert np.isnan(expected[7]).all()
    np.testing.assert_array_equal(nb.mm(a, a.T), expected)
    np.testing.assert_array_equal(nb.mm_(a, a.T), expected)  # written over itself
    x = nb.asarray(rng.standard_normal((500, 40)))
    found = x @ x.T
    assert type(found) is type(x)
    equal_bits(np.asarray(found), plain(np.asarray(x), np.asarray(x).T))


def test_it_is_explained_and_chosen_by_size():
    a = np.ones((192 * numba.get_num_threads(), 64), "f4")
    assert "one triangle" in str(nb.explain(nb.mm, a, a.T))
    assert "one triangle" not in str(nb.explain(nb.mm, a, a.copy().T))
    assert not paths.mirrors(191, 191, 64, 1)
    assert not paths.mirrors(300, 301, 64, 1)
    assert not paths.mirrors(300, 300, 64, 2)
    assert paths.mirrors(400, 400, 64, 2)
