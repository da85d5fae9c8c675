"""The dtypes and the memory that arrays of jitted code have."""

from __future__ import annotations

import numba
import numpy as np
from numba import types

from ..binary import supported
from ..jit.abi.ndarray import HEADER, SHAPE, STRIDES
from ..jit.compile.numba_internals import NumbaNotImplementedError, TypingError, as_dtype, cgutils
from ..jit.ir.vector import I64
from ..meta import OutSpec


def absent(x):
    """Whether an argument, by its Numba type, was not given."""
    return not isinstance(x, types.Type) or isinstance(x, types.NoneType | types.Omitted)


class Size(int):
    """A size that only run time tells: to the rules it equals every other."""

    __hash__ = int.__hash__

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    def __repr__(self):
        return "?"


def spec(op, name, x) -> OutSpec:
    """What rules are told of an array of a Numba type; an error where it is none."""
    if not isinstance(x, types.Array):
        raise TypingError(f"{op}: {name} is {x}, and an array is wanted")
    try:
        return OutSpec((Size(1),) * x.ndim, as_dtype(x.dtype), (0,) * x.ndim)
    except NumbaNotImplementedError as error:
        raise TypingError(f"{op}: {name} has {error}") from None


def dtype_asked(op, name, dtype):
    """What a keyword asks for, by its Numba type: np.float64, a np.dtype from outside, or a string; None where it is
    not given."""
    if absent(dtype):
        return None
    if isinstance(dtype, types.StringLiteral):
        try:
            return np.dtype(dtype.literal_value)
        except TypeError:
            raise TypingError(f"{op}: {name}={dtype.literal_value!r} is none that NumPy knows") from None
    if not isinstance(dtype, types.DType | types.NumberClass):
        raise TypingError(f"{op}: {name} is {dtype}, and one of NumPy's, as np.float64, is wanted")
    return as_dtype(dtype.dtype)


def named(function, *parts, **options):
    """Compile a closure under a name of its own: two that Numba keeps on disk must not have one symbol."""
    function.__name__ = function.__qualname__ = "_".join(map(str, parts))
    return numba.njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)  # jitted code alone calls it


def dtype_of(op, name, x):
    """NumPy's dtype of elements of a Numba type; an error where an operation cannot read them."""
    try:
        dtype = as_dtype(x)
        supported(op, name, dtype)
    except (TypeError, NumbaNotImplementedError) as error:
        raise TypingError(str(error)) from None
    return dtype


@numba.njit
def address(x):
    return np.int64(x.ctypes.data)  # which is unsigned: with an int64 it would make a float


def described(context, builder, kind, value):
    """(address, bytes of an item, shape, strides in bytes) of an array, as integers in the code that is emitted."""
    array = context.make_array(kind)(context, builder, value)
    shape, strides = (cgutils.unpack_tuple(builder, x, kind.ndim) for x in (array.shape, array.strides))
    return builder.ptrtoint(array.data, I64), array.itemsize, shape, strides


def header(builder, data, shape, steps):
    """The address of a header (jit/abi/ndarray.py), by which compiled code that takes NumPy's arrays takes this one."""
    words = cgutils.alloca_once(builder, I64, HEADER.words)
    first = builder.ptrtoint(words, I64)
    fields = {"data": data, "ndim": I64(len(shape))}
    fields |= {"dims": builder.add(first, I64(SHAPE)), "steps": builder.add(first, I64(STRIDES))}
    found = {HEADER[name]: value for name, value in fields.items()}
    found |= dict(enumerate(shape, HEADER["shape"])) | dict(enumerate(steps, HEADER["strides"]))
    for at, value in found.items():
        builder.store(value, builder.gep(words, [I64(at)]))
    return first
