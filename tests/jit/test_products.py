"""Products called from other jitted functions: the bits of the calls from Python; errors come before any write."""

import functools
import itertools

import numba
import numpy as np
import pytest

import nbkernels as nb
import nbkernels.jitted
from tests.cases import LAYOUTS, bias_shapes, loose


@numba.njit
def mm(a, b):
    return nb.mm(a, b)


@numba.njit
def mm_out(a, b, out):
    return nb.mm(a, b, out=out)


@numba.njit
def bmm_out(a, b, out):
    return nb.bmm(a, b, out=out)


@numba.njit
def baddbmm_out(x, a, b, out):
    return nb.baddbmm(x, a, b, out=out)


@numba.njit
def matmul(a, b):
    return nb.matmul(a, b)


@numba.njit
def matmul_out(a, b, out):
    return nb.matmul(a, b, out=out)


@numba.njit
def addmm(x, a, b, beta, alpha):
    return nb.addmm(x, a, b, beta=beta, alpha=alpha)


@numba.njit
def addmv(x, a, v, beta, alpha):
    return nb.addmv(x, a, v, beta=beta, alpha=alpha)


@numba.njit
def addmm_out(x, a, b, beta, alpha, out):
    return nb.addmm(x, a, b, beta, alpha, out)


@numba.njit(parallel=True)
def many(stack, other):
    out = np.empty((len(stack), stack.shape[1], other.shape[1]), stack.dtype)
    for i in numba.prange(len(stack)):
        nb.mm(stack[i], other, out=out[i])
    return out


@numba.njit
def batches(x, a, b):
    return nb.bmm(a, b), nb.baddbmm(x, a, b, beta=2.0, alpha=0.5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_are_those_of_calls_from_python(rng, dtype):
    for m, n, k in ((1, 1, 1), (3, 5, 7), (100, 70, 300), (13, 33, 4100), (97, 1, 9000), (2, 130, 256)):
        a, b, x = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n), (n,)))
        np.testing.assert_array_equal(mm(a, b), nb.mm(a, b))
        np.testing.assert_array_equal(addmm(x, a, b, 0.3, -1.7), nb.addmm(x, a, b, beta=0.3, alpha=-1.7))


def test_every_layout_and_self(rng):
    m, n, k = 14, 177, 20  # more columns than a strided A is read in place for
    layouts = [functools.partial(loose, order=order, step=step) for order in "CF" for step in (1, 2, -1)]
    known = [LAYOUTS[order] for order in "FCF"]  # of which others are compiled
    for la, lb, lc in [known, *itertools.product(layouts, repeat=3)]:
        a, b = la(rng.integers(-4, 5, (m, k)) * 1.0), lb(rng.integers(-4, 5, (k, n)) * 1.0)
        out = lc(np.full((m, n), np.nan))
        np.testing.assert_array_equal(mm_out(a, b, out), a @ b)
        np.testing.assert_array_equal(out, a @ b)
    for shape in bias_shapes(m, n):
        x = np.asarray(rng.integers(-4, 5, shape) * 1.0)
        np.testing.assert_array_equal(addmm(x, a, b, 2.0, -3.0), 2 * x - 3 * (a @ b))


def test_batches_and_parallel_loops(rng):
    a, b, x = (rng.standard_normal(shape).astype("f4") for shape in ((5, 20, 30), (5, 30, 7), (20, 1)))
    product, added = batches(x, a, b)
    np.testing.assert_array_equal(product, nb.bmm(a, b))
    np.testing.assert_array_equal(added, nb.baddbmm(x, a, b, beta=2, alpha=0.5))
    stack = rng.standard_normal((40, 30, 50)).astype("f4")
    np.testing.assert_array_equal(many(stack, b[0, :30].repeat(2, 0)[:50]), nb.matmul(stack, b[0].repeat(2, 0)[:50]))


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("first", "second"),
    [((9000,), (9000,)), ((3, 1, 14, 5), (2, 5, 6)), ((14, 5), (5, 3)), ((2, 3, 14, 5), (5,)), ((5,), (3, 5, 6))],
    ids=str,
)
def test_matmul_by_numpys_rules(rng, first, second):
    a, b = rng.standard_normal(first)[..., ::-1], rng.standard_normal(second)
    expected = nb.matmul(a, b)
    got = matmul(a, b)
    assert np.shape(got) == np.shape(expected)
    np.testing.assert_array_equal(got, expected)
    if len(second) == 3 < len(first):
        out = np.full(expected.shape, np.nan)
        assert matmul_out(a, b, out) is out
        np.testing.assert_array_equal(out, expected)
        assert not matmul(a[..., :0], b[:, :0]).any()
        for wrong in ((a[..., 1:], b, out), (np.repeat(a, 3, 1), b, out), (a, b, out[:1])):
            with pytest.raises(ValueError):
                matmul_out(*wrong)
        np.testing.assert_array_equal(out, expected)
    if len(first) == 1 == len(second):
        assert matmul(a[:0], b[:0]) == 0
        with pytest.raises(ValueError, match="differ in length"):
            matmul(a, b[1:])


def with_vectors(a, v, turned, x, out):
    return (
        nb.matmul(a, v),
        nb.matmul(v, turned),
        nb.addmv(x, a, v, beta=0.3, alpha=-1.7),
        nb.matmul(a, v, out=out),
    )


def test_matrix_and_vector_have_the_bits_of_calls_from_python(rng):
    """Jitted once, for matrices and vectors of any strides: contiguous ones are among them."""
    vector, matrix = (numba.types.Array(numba.float32, ndim, "A") for ndim in (1, 2))
    call = numba.njit([(matrix, vector, matrix, vector, vector)])(with_vectors)
    for m, k in ((1, 1), (3, 7), (100, 300), (13, 4100), (1030, 9), (2, 9000)):
        a, v, x = (rng.standard_normal(shape).astype("f4") for shape in ((m, k), k, m))
        out = np.full(2 * m, np.nan, "f4")[::-2]
        for matrix in (a, *(loose(a, order, step) for order in "CF" for step in (1, 2, -1))):
            vector, start = (v, x) if matrix is a else (v.repeat(3)[::-3], x[:1])
            args = matrix, vector, matrix.T, start
            for found, expected in zip(call(*args, out), with_vectors(*args, out.copy())):
                np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(out, nb.mv(matrix, vector))


def test_matrix_and_vector_that_do_not_fit():
    a, v, out, nan = np.ones((3, 4)), np.ones(4), np.zeros(3), np.full((3, 4), np.nan)
    joined = np.arange(12.0).reshape(3, 4)
    for wrong in ((a, v[:3], out), (a, v, out[:2]), (joined, v, joined[:, 0]), (a, joined[0], joined[0, :3])):
        with pytest.raises(ValueError, match="nbkernels"):
            matmul_out(*wrong)
    assert not out.any()
    np.testing.assert_array_equal(joined, np.arange(12.0).reshape(3, 4))
    np.testing.assert_array_equal(matmul(a[:, :0], v[:0]), out)
    assert matmul(a[:0], v).shape == (0,)
    np.testing.assert_array_equal(addmv(nan[:, 0], a, v, 0.0, 1.0), out + 4)
    np.testing.assert_array_equal(addmv(out + 1, nan, v, 2.0, 0.0), out + 2)


def test_zero_factors_leave_unread():
    nan, one = np.full((3, 3), np.nan), np.ones((3, 3))
    np.testing.assert_array_equal(addmm(nan, one, one, 0.0, 1.0), 3 * one)
    np.testing.assert_array_equal(addmm(one, nan, nan, 2.0, 0.0), 2 * one)
    np.testing.assert_array_equal(addmm(one, nan[:, :0], nan[:0], 2.0, 1.0), 2 * one)
    np.testing.assert_array_equal(mm(nan[:, :0], nan[:0]), 0 * one)
    x = one.copy()
    np.testing.assert_array_equal(addmm_out(x, one, one, 1.0, 1.0, x), 4 * one)


def test_bad_input_is_an_error():
    one, out = np.ones((3, 3)), np.full((3, 3), np.nan)
    room = np.ones((4, 3))
    for call in (
        lambda: mm_out(one, np.ones((2, 3)), out),
        lambda: mm_out(np.ones((2, 3)), one, out),
        lambda: mm_out(room[1:], one, room[:3]),
        lambda: addmm_out(room[1:], one, one, 1.0, 1.0, room[:3]),
        lambda: addmm_out(np.ones(2), one, one, 1.0, 1.0, out),
    ):
        with pytest.raises(ValueError):
            call()
    assert np.isnan(out).all()
    assert (room == 1).all()


def test_memory_that_products_cannot_use_is_an_error(rng):
    """Strides between items, an out of few items, batches whose out is a later batch's input."""
    one, record = np.ones((3, 3)), np.ones((3, 3), [("tag", "u1"), ("value", "f8")])
    stack, other = rng.standard_normal((4, 3, 3)), rng.standard_normal((3, 3, 3))
    before = stack.copy()
    for call, why in (
        (lambda: mm(record["value"], one), "strides"),
        (lambda: mm_out(one, one, record["value"]), "strides"),
        (lambda: mm_out(one, one, np.lib.stride_tricks.as_strided(one[0].copy(), (3, 3), (0, 8))), "several places"),
        (lambda: mm_out(one, one, np.lib.stride_tricks.as_strided(one.copy(), (3, 3), (8, 16))), "several places"),
        (lambda: bmm_out(stack[:3], other, stack[1:]), "overlaps a matrix"),
        (lambda: baddbmm_out(stack[:1], other, other, stack[:3]), "overlaps self"),
    ):
        with pytest.raises(ValueError, match=why):
            call()
    np.testing.assert_array_equal(stack, before)
    assert (record["tag"] == 1).all()


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ((np.ones((3, 3)), np.ones((3, 3)), np.ones((3, 3), "f4")), "out has dtype float32 and the result float64"),
        (
            (np.ones((3, 3)), np.ones((3, 3), "f4"), np.ones((3, 3))),
            "self and mat2 must share a dtype: self is",
        ),
        ((np.ones((3, 3), "M8[s]"),) * 3, r"self has dtype datetime64\[s\]; supported are float32"),
        ((np.ones((3, 3)), np.ones(3), np.ones((3, 3))), r"mat2 must be 2-D, and it is 1-D: self \(\?, \?\) and mat2"),
        ((np.ones((3, 3)), np.ones((3, 3)), np.broadcast_to(1.0, (3, 3))), "read-only"),
        ((1.0, np.ones((3, 3)), np.ones((3, 3))), "self is float64, and an array is wanted"),
    ],
)
def test_types_that_products_do_not_take_are_told(args, why):
    with pytest.raises(numba.TypingError, match=why):
        mm_out(*args)


@pytest.mark.parametrize(
    ("dtype", "words", "why"),
    [
        ("f8", dict(beta="2"), "addmm: beta must be a number, not .*str"),
        ("f8", dict(beta=2j), "beta=1j is complex and the matrices are real"),
        ("f8", dict(beta=None), "beta must be a number, not none"),
        ("i4", dict(alpha=0.5), "alpha=1.0 is a float and the matrices are int32: pass an int"),
        ("i4", dict(conj="a"), "conj is 'a', 'b' or 'ab' for complex matrices; it is 'a' for int32"),
        ("i1", dict(out_dtype=np.float32), "out_dtype float32 cannot be had from mat1 int8 and mat2 int8"),
        ("f4", dict(mode="tf32"), "addmm: mode cannot be given in jitted code"),
    ],
    ids=str,
)
def test_keywords_that_products_do_not_take_are_told(dtype, words, why):
    """As the rules of the calls from Python say it."""
    (name, value), scope = words.popitem(), {"nb": nb, "np": np}
    text = f"np.{value.__name__}" if isinstance(value, type) else repr(value)
    call = numba.njit(eval(f"lambda x: nb.addmm(x, x, x, {name}={text})", scope))
    with pytest.raises(numba.TypingError, match=why):
        call(np.ones((3, 3), dtype))


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ((np.ones((2, 3)), np.ones(3), np.ones((2, 1))), "an out of 1 dimensions"),
        ((np.ones((2, 3)), np.ones(()), np.ones(2)), "both must have a dimension"),
        ((np.ones((2, 3)), np.ones((3, 3)), np.ones(2)), "an out of 2 dimensions"),
        ((np.ones(3), np.ones(3), np.ones(1)), "an out of no dimensions"),
    ],
)
def test_dimensions_that_matmul_does_not_take_are_told(args, why):
    with pytest.raises(numba.TypingError, match=why):
        matmul_out(*args)
