"""mv and addmv: their own order of summation, bit for bit, in every layout and by any threads."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbkernels as nb
from tests import reference
from tests.cases import LAYOUTS, normal
from tests.compare import same_bits
from tests.paths import same_bits_by_threads

DTYPES = ("float32", "float64")
SIZES = (1, 2, 7, 8, 9, 17, 40)
DEPTHS = (1, 2, 7, 8, 9, 15, 64, 65, 200, 513, 4096, 4097, 8300)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_order_is_the_one_that_is_promised(rng, dtype):
    for m, k in itertools.product(SIZES, DEPTHS):
        if m * k > (200_000 if dtype == "float32" else 1200):  # exact fractions take their time
            continue
        a, v = normal(rng, (m, k), dtype), normal(rng, k, dtype)
        expected, out = reference.mv(a, v), np.empty(m, dtype)
        for order in "CF":
            out[...] = np.nan
            assert nb.mv(np.asarray(a, order=order), v, out=out) is out
            same_bits(out, expected, f"{m} {k} {order}")
            same_bits(nb.matmul(np.asarray(a, order=order), v), expected)
            same_bits(nb.matmul(v, np.asarray(a, order=order).T), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_long_columns_in_the_order_of_rows(rng, dtype):
    """Chains that are added as they end, after any number of steps, and those of few outputs, over segments."""
    for m, k in itertools.product((257, 264, 1030), (63, 64, 65, 71, 72, 130, 641, 4097, 4170)):
        a, v = normal(rng, (m, k), dtype), normal(rng, k, dtype)
        same_bits(nb.mv(np.asfortranarray(a), v), nb.mv(a, v), f"{m} {k}")
        wide = np.asfortranarray(normal(rng, (m + 3, k), dtype))[1:-2]  # columns that begin anywhere
        same_bits(nb.mv(wide, v), nb.mv(np.ascontiguousarray(wide), v), f"{m} {k}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_beta_and_alpha_come_once_at_the_end(rng, dtype):
    for m, k in ((5, 7), (20, 100), (3, 4200 if dtype == "float32" else 70)):
        a, v, x = normal(rng, (m, k), dtype), normal(rng, k, dtype), normal(rng, m, dtype)
        for mat in (a, np.asfortranarray(a)):
            same_bits(nb.addmv(x, mat, v, beta=0.3, alpha=-1.7), reference.addmv(x, a, v, 0.3, -1.7))
            same_bits(nb.addmv(x[:1], mat, v), reference.addmv(x[:1], a, v, 1, 1))
            same_bits(nb.addmv(x[0], mat, v, beta=2), reference.addmv(x[0], a, v, 2, 1))
            own = x.copy()
            assert nb.addmv_(own, mat, v, beta=0.3, alpha=-1.7) is own
            same_bits(own, reference.addmv(x, a, v, 0.3, -1.7))


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 70), st.integers(1, 300), st.sampled_from(sorted(LAYOUTS)), st.sampled_from(sorted(LAYOUTS)),
       st.integers(0, 2**32))  # fmt: skip
def test_layouts_change_no_bit(m, k, mat, vec, seed):
    rng = np.random.default_rng(seed)
    a, v, x = normal(rng, (m, k), "float32"), normal(rng, k, "float32"), normal(rng, m, "float32")
    expected, out = nb.addmv(x, a, v, beta=0.5, alpha=3), LAYOUTS[vec](np.full(m, np.nan, "f4"))
    nb.addmv(LAYOUTS[mat](x), LAYOUTS[mat](a), LAYOUTS[vec](v), beta=0.5, alpha=3, out=out)
    same_bits(out, expected)


@pytest.mark.parametrize(("m", "k"), [(1030, 300), (1024, 300), (70, 9000), (3000, 90)])
def test_large_and_threads(rng, monkeypatch, m, k):
    a, v, x = (normal(rng, shape, "float32") for shape in ((m, k), k, m))
    expected, plain = reference.addmv(x, a, v, 2, -1), reference.mv(a, v)
    for mat in (a, np.asfortranarray(a)):

        def call(mat=mat):
            return nb.addmv(x, mat, v, beta=2, alpha=-1)

        same_bits(call(), expected)
        same_bits(nb.mv(mat, v), plain)
        same_bits_by_threads(call, monkeypatch)


@pytest.mark.parametrize(("m", "k"), [(16384, 2), (16385, 2), (2200, 4100)])
def test_results_are_made_in_the_call_or_before_it(rng, m, k):
    """Around what the entry makes, and with sums that its stack does not hold: the bits are those of out=."""
    a, v, x = (normal(rng, shape, "float32") for shape in ((m, k), k, m))
    for mat in (a, np.asfortranarray(a)):
        found = nb.addmv(x, mat, v, alpha=2)
        assert type(found) is np.ndarray
        assert found.shape == (m,)
        same_bits(found, nb.addmv(x, mat, v, alpha=2, out=np.full(m, np.nan, "f4")))
        same_bits(nb.mm(mat, v[:, None])[:, 0], nb.mm(mat, v[:, None], out=np.full((m, 1), np.nan, "f4"))[:, 0])


@pytest.mark.parametrize("order", "CF")
def test_a_matrix_that_comes_from_memory(rng, order):
    a, v = np.asarray(normal(rng, (2105, 4007), "float32"), order=order), normal(rng, 4007, "float32")
    found = nb.mv(a, v)
    for part in (slice(5), slice(1000, 1020), slice(2100, None)):
        same_bits(found[part], reference.mv(np.ascontiguousarray(a[part]), v))


def test_nothing_beyond_the_arrays_is_read(rng):
    for m, k, order in itertools.product((1, 5, 19), (3, 19, 70), "CF"):
        room, vectors = np.full((m + 3, k + 3), np.nan, "f4", order=order), np.full(k + 3, np.nan, "f4")
        room[:m, :k], vectors[:k] = 1, 2
        np.testing.assert_array_equal(nb.mv(room[:m, :k], vectors[:k]), np.full(m, 2 * k))


def test_underflow_to_minus_zero_survives():
    """A sum that is -0 stays, and chains that take no step are +0."""
    for k in (3, 8, 9, 65):
        a, v = np.full((9, k), 1e-30, "f4"), np.full(k, -1e-30, "f4")
        for order in "CF":
            same_bits(nb.mv(np.asarray(a, order=order), v), reference.mv(a, v))


def test_what_is_not_read_is_not_read():
    nothing, some = np.full(3, np.nan), np.ones((3, 4))
    np.testing.assert_array_equal(nb.addmv(nothing, some, some[0], beta=0), np.full(3, 4))
    np.testing.assert_array_equal(nb.addmv(some[:, 0], some * np.nan, some[0], beta=2, alpha=0), np.full(3, 2))
    np.testing.assert_array_equal(nb.mv(np.ones((3, 0)), np.ones(0)), np.zeros(3))
    assert nb.mv(np.ones((0, 3)), np.ones(3)).shape == (0,)


def test_overlap(rng):
    """out among the numbers of the matrix, of the vector, interleaved with it, or x shifted by one."""
    for order in "CF":
        a, v = np.asarray(normal(rng, (30, 30), "float32"), order=order), normal(rng, 61, "float32")
        expected = nb.mv(a, v[:30])
        both = v.copy()
        same_bits(nb.mv(a, both[:30], out=both[10:40]), expected)
        inside = a.copy(order="K")
        nb.mv(inside, v[:30], out=inside[3])
        same_bits(inside[3], expected)
        mixed = np.repeat(v[:30], 2)
        same_bits(nb.mv(a, mixed[::2], out=mixed[1::2]), expected)
        shifted = v.copy()
        expected = nb.addmv(v[:30], a, v[30:60], beta=3)
        same_bits(nb.addmv(shifted[:30], a, v[30:60], beta=3, out=shifted[1:31]), expected)


def test_records_and_errors():
    records = np.zeros((6, 5), np.dtype([("x", "f4"), ("y", "u1")]))
    records["x"] = np.arange(30).reshape(6, 5)
    plain, into = np.arange(30, dtype="f4").reshape(6, 5), np.zeros(6, records.dtype)["x"]
    np.testing.assert_array_equal(nb.mv(records["x"], records["x"][0], out=into), plain @ plain[0])
    readonly = np.full(6, 7.0, "f4")
    readonly.flags.writeable = False
    with pytest.raises(nb.dispatch.OutError, match="read-only"):
        nb.mv(plain, plain[0], out=readonly)
    with pytest.raises(nb.dispatch.OutError):
        nb.mv(plain, plain[0], out=np.broadcast_to(np.zeros(1, "f4"), 6))
    with pytest.raises(ValueError, match="6 elements"):
        nb.mv(plain, np.ones(6, "f4"))
    with pytest.raises((TypeError, ValueError)):
        nb.addmv(plain[:, 0], plain, plain[0], alpha=1j)
    for wrong in (plain[0, 0, ...], plain[0], plain[None]):
        with pytest.raises((TypeError, ValueError)):
            nb.mv(wrong, plain[0])
    assert (readonly == 7).all()
