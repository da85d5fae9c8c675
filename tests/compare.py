"""How results are held against NumPy's."""

import warnings

import numpy as np


def outcome(function, *args, **keywords):
    """The result, or the kind of the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **keywords)
    except (TypeError, ValueError) as error:
        return TypeError if isinstance(error, TypeError) else ValueError


def same(actual, expected, rtol=None):
    """Two errors of one kind, or results of one type, dtype and shape, within 64 eps of each other.

    That is what both lose at most over 64 terms of one sign; of float16 NumPy rounds each sum.
    """
    if isinstance(expected, type):
        assert actual is expected
        return
    assert type(actual) is type(expected)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if rtol is None:
        rtol = 64 * np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 0
    np.testing.assert_allclose(actual, expected, rtol=2e-3 if expected.dtype == np.float16 else rtol)
