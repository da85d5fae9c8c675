"""nbkernels.numpy_functions: NumPy's results, dtypes, shapes and errors, by this library's operations."""

from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

from nbkernels.numpy_functions import FUNCTIONS, attempt

DTYPES = ["f8", "f4", "i4", "c16", "f2", "?"]


def some(shape, dtype, seed=0):
    """Whole numbers, whose products are exact."""
    values = np.random.default_rng(seed).integers(-3, 4, shape)
    if dtype in ("c8", "c16"):
        values = values + 1j * np.random.default_rng(seed + 1).integers(-3, 4, shape)
    return values.astype(dtype)


def agrees(function, *args, **keywords):
    """The result of a call by this library is NumPy's: values, dtype, shape, and whether it is a number."""
    expected = function(*args, **keywords)
    found, why = attempt(function, args, keywords)
    assert why == ""
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if found.dtype.kind == "V":  # bfloat16, whose NaNs are not known to be equal
        found, expected = (np.asarray(x, "f4") for x in (found, expected))
    np.testing.assert_array_equal(found, expected)
    return found


def declined(function, *args, **keywords):
    found, why = attempt(function, args, keywords)
    assert found is None
    assert why
    return why


SHAPES = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (4, 3, 6)), ((2, 0), (0, 3)),
          ((0, 3), (3, 2)), ((), (3,)), ((2, 3), ()), ((), ())]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_dot(dtype):
    for shape, other in SHAPES:
        a, b = some(shape, dtype), some(other, dtype, 1)
        result = agrees(np.dot, a, b)
        if np.ndim(result):
            out = np.full(result.shape, 7, result.dtype)
            assert attempt(np.dot, (a, b, out), {})[0] is out
            np.testing.assert_array_equal(out, result)


@pytest.mark.parametrize("dtype", DTYPES)
def test_inner_and_tensordot(dtype):
    for shape, other in [((3,), (3,)), ((2, 3), (4, 3)), ((5, 2, 3), (3,)), ((2, 2, 3), (4, 3)), ((), (3,)), ((), ())]:
        agrees(np.inner, some(shape, dtype), some(other, dtype, 1))
    a, b = some((4, 3, 2), dtype), some((3, 4, 5), dtype, 1)
    for axes in ([(0, 1), (1, 0)], [(1, 0), (0, 1)], (0, 1), (-2, 0), 0, ([], [])):
        agrees(np.tensordot, a, b, axes)
        agrees(np.tensordot, a[::-1, :, ::-1], np.asfortranarray(b), axes)
    agrees(np.tensordot, a, a.transpose(2, 0, 1)[::-1, ::1], axes=(0, 1))
    agrees(np.tensordot, some((3, 2), dtype), some((3, 2), dtype), axes=2)


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij,jk->ki", (2, 3), (3, 4)), ("ba,cb", (3, 2), (4, 3)),
    ("i,i", (3,), (3,)), ("i,i->i", (3,), (3,)), ("i,j->ij", (3,), (4,)), ("i,j->ji", (3,), (4,)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)), ("bij,bkj->kbi", (5, 2, 3), (5, 4, 3)),
    ("bij,bij->b", (5, 2, 3), (5, 2, 3)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)), ("bqhd,bkhd->bhqk", (2, 4, 3, 5), (2, 6, 3, 5)),
    ("...ij,...jk->...ik", (5, 1, 2, 3), (4, 3, 2)), ("...i,i", (4, 3), (3,)), ("i...,i...", (3, 2), (3, 2)),
    ("ii,i->i", (3, 3), (3,)), ("ii,ij->j", (3, 3), (3, 4)), ("ij,kl->il", (2, 3), (4, 5)), ("ij,k->ik", (2, 3), (4,)),
    ("ijk,jil->kl", (2, 3, 4), (3, 2, 5)), ("ij,jk", (2, 1), (3, 4)), ("ab,ab,", (2, 3), (2, 3)), (",ab", (), (2, 3)),
    ("ij,ij->", (2, 3), (2, 3)), ("bi,bj->bij", (5, 2), (5, 3)), ("bij,j->bi", (5, 2, 3), (3,)),
    ("aB,Bc", (2, 3), (3, 4)), ("ij,jk->ik", (2, 0), (0, 4)), ("bij,bjk->bik", (1, 2, 3), (5, 3, 4)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_einsum(dtype):
    for text, shape, other in EINSUMS:
        a, b = some(shape, dtype), some(other, dtype, 1)
        if text == "ab,ab,":
            declined(np.einsum, text, a, b)
            continue
        if dtype == "f2" and text in ("ij,kl->il", "ij,k->ik"):
            declined(np.einsum, text, a, b)
            continue
        result = agrees(np.einsum, text, a, b)
        np.testing.assert_array_equal(attempt(np.einsum, (text, a, b), {"optimize": True})[0], result)  # NumPy: or 0-d
        out = np.full(np.shape(result), 7, result.dtype)
        assert attempt(np.einsum, (text, a, b), {"out": out})[0] is out
        np.testing.assert_array_equal(out, result)


def test_einsum_by_lists_with_order_and_dtype():
    a, b = some((2, 3), "f8"), some((3, 4), "f8", 1)
    agrees(np.einsum, a, [0, 1], b, [1, 2], [2, 0])
    agrees(np.einsum, a, [0, 1], b, [1, 2])
    agrees(np.einsum, some((5, 2, 3), "f8"), [..., 0, 1], b, [1, 2], [..., 0, 2])
    assert agrees(np.einsum, "ij,jk", a, b, order="F").flags.f_contiguous
    agrees(np.einsum, "ij,jk", a.astype("f4"), b.astype("f4"), dtype="f8")
    agrees(np.einsum, "ij,jk", a.astype("i4"), b)
    for text in ("ij->i", "ij,jk,kl", "ij,jk->iz", "i j,j1", "ij,j.k", "....i,i"):
        declined(np.einsum, text, a, b)
    declined(np.einsum, "ij,jk", a, b, dtype="i4")
    declined(np.einsum, "ij,jk", a, b, out=np.empty((2, 4), "f4"))
    declined(np.einsum, "ij,jk", a, b, out=np.broadcast_to(0.0, (2, 4)))
    declined(np.einsum, "ij,jk", a, b.T)


def test_out_that_an_operand_shares():
    a = some((3, 3), "f8")
    for text in ("ij,jk->ik", "ij,jk->ki", "ij,ij->ij"):
        expected = np.einsum(text, a, a)
        x = a.copy()
        assert attempt(np.einsum, (text, x, x), {"out": x})[0] is x
        np.testing.assert_array_equal(x, expected)
    x = a.copy()
    attempt(np.dot, (x, x, x), {})
    np.testing.assert_array_equal(x, a.dot(a))


@pytest.mark.parametrize("dtype", ["f8", "c8", "i4", pytest.param("c16", marks=pytest.mark.release)])
def test_gufuncs(dtype):
    a, b, m = some((5, 1, 3), dtype), some((4, 3), dtype, 1), some((4, 2, 3), dtype, 2)
    agrees(np.vecdot, a, b)
    agrees(np.vecdot, b, b, keepdims=True)
    agrees(np.vecdot, b, b, axis=0)
    agrees(np.vecdot, m, m, axis=-2, keepdims=True)
    agrees(np.vecdot, b[0], b[1])
    agrees(np.vecdot, m, m, axes=[(0,), (0,)])
    if hasattr(np, "matvec"):
        agrees(np.matvec, m, b)
        agrees(np.vecmat, b, m.transpose(0, 2, 1))
    agrees(np.matmul, m, m[0].T)
    agrees(np.matmul, m, m, axes=[(1, 2), (2, 1), (2, 1)])
    agrees(np.matmul, b, b[0])
    agrees(np.matmul, b[:, 0], m[:, 0])
    agrees(np.matmul, m, m[0].T, order="F")
    agrees(np.matmul, m, m[0].T, dtype="c16")
    for out in (np.zeros((4, 2, 2), dtype), np.zeros((4, 2, 2), "c16")):
        assert attempt(np.matmul, (m, m[0].T), {"out": out})[0] is out
        np.testing.assert_array_equal(out, m @ m[0].T)
    declined(np.matmul, m, m)
    declined(np.matmul, m, 2)
    declined(np.vecdot, b, b, axis=2)
    declined(np.vecdot, b, b, out=np.zeros(3, dtype))


def test_multi_dot():
    for sizes in ((2, 3, 4), (10, 100, 5, 50), (4, 3, 2, 7, 5), (2, 2, 2, 2, 2)):
        chain = [some(pair, "f8", seed) for seed, pair in enumerate(pairwise(sizes))]
        agrees(np.linalg.multi_dot, chain)
        agrees(np.linalg.multi_dot, [chain[0][0], *chain[1:]])
        agrees(np.linalg.multi_dot, [*chain[:-1], chain[-1][:, 0]])
        agrees(np.linalg.multi_dot, [chain[0][0], *chain[1:-1], chain[-1][:, 0]])
        out = np.zeros((sizes[0], sizes[-1]))
        assert attempt(np.linalg.multi_dot, (chain,), {"out": out})[0] is out
        np.testing.assert_array_equal(out, np.linalg.multi_dot(chain))
    declined(np.linalg.multi_dot, [chain[0]])
    declined(np.linalg.multi_dot, [chain[0], some((3, 3), "f8")])


def test_where():
    mask, x = np.array([[True], [False]]), np.array([1.5, np.nan, -0.0], "f4")
    for y in (2.5, 7, np.array([3, 4, 5], "i8"), np.float64(1e300), 1j, np.arange(6, dtype="f2").reshape(2, 3)):
        for condition in (mask, mask.astype("i4"), [[0.5], [0]], np.True_):
            found = agrees(np.where, condition, x, y)
            assert np.array_equal(np.signbit(found.real), np.signbit(np.where(condition, x, y).real))
    agrees(np.where, mask, 1, 2.5)
    agrees(np.where, mask, np.array([1, 2], "u8"), np.array([-1, -2], "i8"))
    agrees(np.where, mask, np.array([2**63 + 1, 2], "u8"), 5)
    agrees(np.where, mask, x.astype(ml_dtypes.bfloat16), x.astype(ml_dtypes.bfloat16))
    for bad in ((mask,), (mask, np.ones(3, "i1"), 300), (mask, "a", "b"), (np.ones(4, bool), x, x)):
        declined(np.where, *bad)


def test_what_numpy_has_to_do():
    x, masked = np.ones((2, 2)), np.ma.array(np.ones((2, 2)), mask=np.eye(2))
    assert "MaskedArray" in declined(np.dot, masked, x)
    assert "recarray" in declined(np.inner, x.view(np.recarray), x)
    assert "object" in declined(np.dot, x.astype(object), x)
    assert declined(np.dot, x, np.ones(3))
    assert declined(np.dot, x, x, np.zeros((2, 2), "f4"))
    assert declined(np.dot, x, x, np.zeros((2, 2)).T[::-1])
    assert declined(np.tensordot, x, x, axes=[(0, 0), (0, 1)])
    assert declined(np.tensordot, x, x, axes=3)
    assert declined(np.sort, x) == "nbkernels has no sort"
    with np.errstate(over="raise"):
        assert "errstate" in declined(np.dot, x, x)


def test_mixed_dtypes_and_lists():
    agrees(np.dot, some((2, 3), "i4"), some((3, 2), "f4"))
    agrees(np.inner, [1, 2], [3.5, 4])
    agrees(np.tensordot, some((2, 3), "f4"), 2.0, 0)
    agrees(np.dot, np.float32(2), some((2, 3), "f4"))


def test_every_function_is_numpys():
    for function, own in FUNCTIONS.items():
        assert function.__name__ == own.__name__
