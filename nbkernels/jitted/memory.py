"""Which dtypes and which memory the arrays of jitted code have."""

from __future__ import annotations

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.errors import NumbaNotImplementedError, TypingError
from numba.np.numpy_support import as_dtype

from ..binary import supported
from ..jit.vector import I64


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


def described(context, builder, kind, value):
    """(address, bytes of an item, shape, strides in bytes) of an array, as integers in the code that is emitted."""
    array = context.make_array(kind)(context, builder, value)
    shape, strides = (cgutils.unpack_tuple(builder, x, kind.ndim) for x in (array.shape, array.strides))
    return builder.ptrtoint(array.data, I64), array.itemsize, shape, strides
