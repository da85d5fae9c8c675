"""New arrays made by compiled code and handed to Python, by NumPy's C interface: 60 ns, np.empty_like takes 210.

Compiled code reads `words()`, by whose address it knows NumPy and Python in this process: words by the names below,
then the address of the type of each of NumPy's scalars and that of its dtype, and a 0.
"""

from __future__ import annotations

import ctypes

import numpy as np
from llvmlite import ir

from ..compile.lazy import cgutils, emits
from ..ir.vector import I32, I64, VOID, library
from .record import lasting

NDARRAY, FLOAT, INT, COMPLEX, NONE, TRUE, ONE, LIKE, STRIDED, RETURN, SCALARS = range(11)
_SLOTS = {LIKE: 277, STRIDED: 94, RETURN: 76}  # PyArray_NewLikeArray, _NewFromDescr, _Return in NumPy's table
_TYPE = 2  # the slot of ndarray itself


@lasting
def words(numbers=True, kind=np.ndarray) -> np.ndarray:
    """What compiled code cannot know by itself: addresses of objects and of NumPy's functions; without `numbers` it
    takes none of Python's for an operand. `kind`, a subclass of ndarray, is what it takes and makes in ndarray's place.
    """
    from numpy._core import _multiarray_umath

    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = (ctypes.c_int64 * (1 + max(_SLOTS.values()))).from_address(address(_multiarray_umath._ARRAY_API, None))
    if table[_TYPE] != id(np.ndarray):
        raise ImportError(f"NumPy {np.__version__} has another C interface than every NumPy 2 before")
    python = (id(float), id(int), id(complex)) if numbers else (0, 0, 0)
    known = id(kind), *python, id(None), id(True), id(1), *(table[slot] for slot in _SLOTS.values())
    scalars = (id(one) for char in "?bBhHiIlLqQefdFD" for one in (np.dtype(char).type, np.dtype(char)))
    return np.array([*known, *scalars, 0], np.int64)


@emits("int64(int64, int64, int64)")
def new_like(builder, words, array, dtype):
    """The address of a new array as np.empty_like(array, dtype) makes it; 0, and an exception set, without memory."""
    library(builder, "Py_IncRef", VOID, dtype)
    return _invoke(builder, words, LIKE, (array, I32(2), dtype, I32(1)))  # 2 is "K", 1 of array's own type


@emits("int64(int64, int64, int64, int64, int64, int64, int64)")
def new_strided(builder, words, dtype, ndim, shape, strides, data, flags):
    """A new array's address; `shape` and `strides` are addresses of `ndim` words; 0 and an exception without memory.
    `data` and `flags`: where the elements of a view are, and its flags; both 0 for memory of its own."""
    library(builder, "Py_IncRef", VOID, dtype)
    kind, ndim, flags = _word(builder, words, NDARRAY), builder.trunc(ndim, I32), builder.trunc(flags, I32)
    return _invoke(builder, words, STRIDED, (kind, dtype, ndim, shape, strides, data, flags, I64(0)))


@emits("int64(int64, int64)")
def as_returned(builder, words, array):
    """What a new array is to Python: itself, or, of no dimensions, the scalar in it."""
    return _invoke(builder, words, RETURN, (array,))


@emits("answer(int64, int64, int64)")
def answer(builder, status, given, made):
    """What an entry returns. A `status` of 0 is the array that was given, or was made if `given` is 0; one below 0 that
    array and -status; one above 0 itself, and what was made goes."""
    return cgutils.pack_struct(builder, (status, given, made))


def boxed(kind, value, context):
    """An answer as a Python object."""
    builder, python = context.builder, context.pyapi
    parts = cgutils.create_struct_proxy(kind)(context.context, builder, value)
    given, made = (builder.inttoptr(address, python.pyobj) for address in (parts.given, parts.made))
    result = cgutils.alloca_once_value(builder, made)
    with builder.if_then(builder.icmp_signed("!=", parts.given, I64(0))):
        python.incref(given)
        builder.store(given, result)
    with builder.if_then(builder.icmp_signed("!=", parts.status, I64(0)), likely=False):
        array, negative = builder.load(result), builder.icmp_signed("<", parts.status, I64(0))
        size = builder.select(negative, builder.neg(parts.status), parts.status)
        number = python.long_from_longlong(size)
        builder.store(number, result)
        with builder.if_else(negative) as (both, other):
            with both:
                builder.store(python.tuple_pack([array, number]), result)
                python.decref(array)
                python.decref(number)
            with other, builder.if_then(cgutils.is_not_null(builder, array)):
                python.decref(array)
    return builder.load(result)


def _word(builder, words, i):
    return builder.load(builder.inttoptr(builder.add(words, I64(8 * i)), I64.as_pointer()))


def _invoke(builder, words, i, values):
    kind = ir.FunctionType(I64, [value.type for value in values])
    return builder.call(builder.inttoptr(_word(builder, words, i), kind.as_pointer()), values)
