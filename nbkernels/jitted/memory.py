"""Which dtypes and which memory the arrays of jitted code have."""

from __future__ import annotations

import numba
import numpy as np
from numba import types
from numba.core.errors import NumbaNotImplementedError, TypingError
from numba.np.numpy_support import as_dtype

from ..binary import supported


def absent(x):
    """Whether an argument, by its Numba type, was not given."""
    return not isinstance(x, types.Type) or isinstance(x, types.NoneType | types.Omitted)


def dtype_of(op, name, x):
    """NumPy's dtype of elements of a Numba type; an error where an operation cannot read them."""
    try:
        dtype = as_dtype(x)
        supported(op, name, dtype)
    except (TypeError, NumbaNotImplementedError) as error:
        raise TypingError(str(error)) from None
    if dtype == np.float16:
        raise TypingError(
            f"{op}: {name} has dtype float16, for which Numba makes no code on CPUs; call {op} from Python"
        )
    return dtype


@numba.njit
def address(x):
    return np.int64(x.ctypes.data)  # which is unsigned: with an int64 it would make a float


@numba.njit
def _extent(x):
    """First byte of an array's memory and the one after its last."""
    low, high = address(x), address(x) + x.itemsize
    for size, step in zip(np.atleast_1d(x).shape, np.atleast_1d(x).strides):
        reach = (size - 1) * step
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


@numba.njit
def overlap(x, y):
    """Whether the extents of two arrays' memory meet."""
    (low, high), (first, last) = _extent(x), _extent(y)
    return x.size > 0 and y.size > 0 and first < high and low < last
