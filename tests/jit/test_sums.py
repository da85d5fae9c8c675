"""sum_to in jitted functions: the bits, dtypes and errors of the call from Python."""

import numba
import numpy as np
import pytest

import nbkernels as nb
import nbkernels.jitted
from tests.cases import EVERY


@numba.njit
def rows_of(x, rows):
    return nb.sum_to(x, (rows, 1))


@numba.njit
def whole(x):
    return nb.sum_to(x, ())


@numba.njit
def last(x, n):
    return nb.sum_to(x, (n,))


def layouts(x):
    """x as arrays of one Numba type: contiguous in no order."""
    for order in ("C", "F"):
        room = np.empty([2 * n for n in x.shape], x.dtype, order=order)
        for view in (room[: len(x), : x.shape[1]], room[::-2, ::-2], room[1::2, 1::2]):
            view[...] = x
            yield view
    yield np.lib.stride_tricks.as_strided(x, x.shape, (x.strides[0], 0), writeable=True)


def test_the_bits_of_the_call_from_python(rng):
    for shape in ((5, 7), (1, 1), (4097, 3), (40, 300), (2, 9000), (3, 0)):
        for x in layouts(rng.standard_normal(shape).astype(np.float32)):
            for found, size in ((last(x, shape[1]), shape[1:]), (last(x, 1), (1,)), (rows_of(x, len(x)), (len(x), 1))):
                expected = nb.sum_to(x, size)
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(found, expected)
            assert whole(x) == nb.sum_to(x, ())


def test_integers_wrap_in_their_own_dtype(rng):
    for x in layouts(rng.integers(-128, 128, (40, 300), np.int8)):
        expected = nb.sum_to(x, (300,))
        assert expected.dtype == last(x, 300).dtype
        np.testing.assert_array_equal(last(x, 300), expected)


def test_read_only_arrays_and_dimensions(rng):
    x = rng.standard_normal((3, 1, 4, 50)).astype("c8")
    x.flags.writeable = False
    np.testing.assert_array_equal(numba.njit(lambda x: nb.sum_to(x, (1, 4, 1)))(x), nb.sum_to(x, (1, 4, 1)))
    copy = numba.njit(lambda x: nb.sum_to(x, x.shape))(x)
    np.testing.assert_array_equal(copy, x)
    assert copy.flags.writeable


def test_bad_input():
    x = np.ones((2, 3, 1))[..., 0]
    for call in (lambda: last(x, 2), lambda: rows_of(x, 3), lambda: last(x, -1)):
        with pytest.raises(ValueError, match="cannot be summed to this shape"):
            call()
    for args, why in (
        ((np.ones((2, 3), bool), 3), "self has dtype bool, of which"),
        ((1.0, 3), "an array is wanted"),
        ((np.ones((2, 3)), 0.5), "a tuple of ints is wanted"),
        ((np.array(1.0), 1), "0 dimensions and cannot be summed to 1"),
    ):
        with pytest.raises(numba.TypingError, match=why):
            last(*args)


@numba.njit
def reduced(x):
    return (
        nb.add.reduce(x),
        nb.add.reduce(x, axis=None),
        nb.multiply.reduce(x, (0, -1), keepdims=True),
        nb.add.reduce(x, 1, dtype=np.float64),
        nb.maximum.reduce(x, -1),
        nb.logical_or.reduce(x, axis=None, keepdims=True),
    )


few = reduced if EVERY else numba.njit(lambda x: (nb.add.reduce(x), nb.multiply.reduce(x, (0, -1), keepdims=True)))


def test_reduce_has_the_bits_of_the_call_from_python(rng):
    """Of integers that become int64, halves that are summed in float32, bools, arrays of many blocks, of nothing."""
    for dtype, shapes, call in (("f4", [(40, 300), (1, 9000), (4097, 3)], reduced), ("i1", [(40, 300)], few),
                                ("f2", [(70, 90)], few)):  # fmt: skip
        for shape in shapes:
            for x in layouts((rng.standard_normal(shape) * 9).astype(dtype)):
                for got, want in zip(call(x), call.py_func(x)):
                    assert np.shape(got) == np.shape(want)
                    np.testing.assert_array_equal(np.asarray(got, want.dtype), want)
    empty = np.ones((4, 6), "f4")[::2, :0]
    with pytest.raises(ValueError, match=r"maximum\.reduce has no identity: there is nothing to reduce"):
        reduced(empty)
    sums = numba.njit(lambda x: (nb.add.reduce(x), nb.add.reduce(x, 1), nb.maximum.reduce(x)))
    for got, want in zip(sums(empty), (np.zeros(0), np.zeros(2), np.zeros(0))):
        np.testing.assert_array_equal(got, want)


def test_reductions_that_jitted_code_does_not_take_are_told():
    x = np.ones((2, 3))
    for call, why in (
        (lambda x: nb.subtract.reduce(x), "folds what may come in any order; call subtract.reduce from Python"),
        (lambda x: nb.add.reduce(x, axis=2), "axis 2 is out of bounds for array of dimension 2"),
        (lambda x: nb.add.reduce(x, axis=(1, -1)), r"the axes \(1, 1\) name a dimension twice"),
        (lambda x: nb.add.reduce(x, axis=len(x)), "axis must be an int, a tuple of ints or None that is written"),
        (lambda x: nb.add.reduce(x, initial=1.0), "initial cannot be given in jitted code"),
        (lambda x: nb.add.reduce(1.0), "self is float64, and an array is wanted"),
    ):
        with pytest.raises(numba.TypingError, match=why):
            numba.njit(call)(x)
