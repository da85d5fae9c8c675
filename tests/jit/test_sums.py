"""sum_to in jitted functions: the bits, dtypes and errors of the call from Python."""

import functools

import numba
import numpy as np
import pytest

import nbkernels as nb
import nbkernels.jitted
from tests.cases import EVERY


def last(x, n):
    return nb.sum_to(x, (n,))


def sums(x, n, rows):
    return nb.sum_to(x, (n,)), nb.sum_to(x, (rows, 1)), nb.sum_to(x, ())


@functools.cache
def of_any_strides(function, dtype, *others):
    """Jitted for matrices of any strides: contiguous ones go to it, too, for which Numba would compile another."""
    return numba.njit([(numba.types.Array(numba.from_dtype(np.dtype(dtype)), 2, "A"), *others)])(function)


def layouts(x):
    """x as arrays of one Numba type: contiguous in no order."""
    for order in ("C", "F"):
        room = np.empty([2 * n for n in x.shape], x.dtype, order=order)
        for view in (room[: len(x), : x.shape[1]], room[::-2, ::-2], room[1::2, 1::2]):
            view[...] = x
            yield view
    yield np.lib.stride_tricks.as_strided(x, x.shape, (x.strides[0], 0), writeable=True)


def test_the_bits_of_the_call_from_python(rng):
    call = of_any_strides(sums, "f4", numba.int64, numba.int64)
    for shape in ((5, 7), (1, 1), (4097, 3), (40, 300), (2, 9000), (3, 0)):
        for x in layouts(rng.standard_normal(shape).astype(np.float32)):
            for n in (shape[1], 1):
                for found, expected in zip(call(x, n, len(x)), sums(x, n, len(x))):
                    assert np.shape(found) == np.shape(expected)
                    np.testing.assert_array_equal(found, expected)
                    assert not np.shape(found) or found.dtype == expected.dtype


def test_integers_wrap_in_their_own_dtype(rng):
    call = of_any_strides(last, "i1", numba.int64)
    for x in layouts(rng.integers(-128, 128, (40, 300), np.int8)):
        expected = nb.sum_to(x, (300,))
        assert expected.dtype == call(x, 300).dtype
        np.testing.assert_array_equal(call(x, 300), expected)


def test_read_only_arrays_and_dimensions(rng):
    x = rng.standard_normal((3, 1, 4, 50)).astype("c8")
    x.flags.writeable = False
    found, copy = numba.njit(lambda x: (nb.sum_to(x, (1, 4, 1)), nb.sum_to(x, x.shape)))(x)
    np.testing.assert_array_equal(found, nb.sum_to(x, (1, 4, 1)))
    np.testing.assert_array_equal(copy, x)
    assert copy.flags.writeable


def test_bad_input():
    x, call = np.ones((2, 3), "f4"), of_any_strides(sums, "f4", numba.int64, numba.int64)
    for n, rows in ((2, 2), (3, 3), (-1, 2)):
        with pytest.raises(ValueError, match="cannot be summed to this shape"):
            call(x, n, rows)
    for args, why in (
        ((np.ones((2, 3), bool), 3), "self has dtype bool, of which"),
        ((1.0, 3), "an array is wanted"),
        ((np.ones((2, 3)), 0.5), "a tuple of ints is wanted"),
        ((np.array(1.0), 1), "0 dimensions and cannot be summed to 1"),
    ):
        with pytest.raises(numba.TypingError, match=why):
            numba.njit(last)(*args)


def reduced(x):
    return (
        nb.add.reduce(x),
        nb.add.reduce(x, axis=None),
        nb.multiply.reduce(x, (0, -1), keepdims=True),
        nb.add.reduce(x, 1, dtype=np.float64),
        nb.maximum.reduce(x, -1),
        nb.logical_or.reduce(x, axis=None, keepdims=True),
    )


def few(x):
    return nb.add.reduce(x), nb.multiply.reduce(x, (0, -1), keepdims=True)


def test_reduce_has_the_bits_of_the_call_from_python(rng):
    """Of integers that become int64, halves that are summed in float32, bools, arrays of many blocks, of nothing."""
    more = reduced if EVERY else few
    for dtype, shapes, function in (("f4", [(40, 300), (1, 9000), (4097, 3), (0, 6)], reduced),
                                    ("i1", [(40, 300)], more), ("f2", [(70, 90)], more)):  # fmt: skip
        call = of_any_strides(function, dtype)
        for shape in shapes:
            for x in layouts((rng.standard_normal(shape) * 9).astype(dtype)):
                for got, want in zip(call(x), function(x)):
                    assert np.shape(got) == np.shape(want)
                    np.testing.assert_array_equal(np.asarray(got, want.dtype), want)
    with pytest.raises(ValueError, match=r"maximum\.reduce has no identity: there is nothing to reduce"):
        of_any_strides(reduced, "f4")(np.ones((4, 0), "f4"))


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
