"""Read an ndarray's fields from jitted code, given its `id`.

An entry that takes arrays is compiled anew for every combination of dimensions, layouts and read-only flags, and Numba
spends 30 ns on typing each. An entry that takes addresses is compiled once. NumPy documents the layout behind them
(`PyArrayObject_fields`, unchanged since 1.7): head, data, nd, dimensions, strides, base, descr, flags. The caller has
checked that the object is an ndarray and keeps it alive.
"""

from __future__ import annotations

import functools

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import NativeValue, intrinsic, models, register_model, unbox

HEAD = object.__basicsize__  # 16, or 32 where Python runs without the GIL
C_CONTIGUOUS, F_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x2, 0x100, 0x400
_I32, _I64 = ir.IntType(32), ir.IntType(64)


class Object(types.Type):
    """Any Python object as an argument of an entry: 40 ns sooner there than its `id`, which is made and read again."""


OBJECT = Object("object")


@register_model(Object)
class _Object(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, _I64)


@unbox(Object)
def _unbox(kind, value, context):
    return NativeValue(context.builder.ptrtoint(value, _I64))


@intrinsic
def address_of(typing, value):
    """The `id` of an object."""
    return types.int64(value), lambda context, builder, signature, args: args[0]


def _field(name: str, offset: int, width: ir.Type = _I64, indexed: bool = False):
    """An intrinsic that loads the field at `offset`, or element i of the array that the field points to."""

    def load(builder, address, element):
        return builder.load(builder.inttoptr(address, element.as_pointer()))

    def emit(context, builder, signature, args):
        value = load(builder, builder.add(args[0], _I64(HEAD + offset)), width)
        if indexed:
            return load(builder, builder.add(value, builder.shl(args[1], _I64(3))), _I64)
        return value if width is _I64 else builder.sext(value, _I64)

    if indexed:

        def field(typing, array, index):
            return types.int64(types.int64, types.int64), emit
    else:

        def field(typing, array):
            return types.int64(types.int64), emit

    field.__name__ = field.__qualname__ = name
    return intrinsic(field)


data = _field("data", 0)
ndim = _field("ndim", 8, _I32)
shape = _field("shape", 16, indexed=True)
stride = _field("stride", 24, indexed=True)
descr = _field("descr", 40)
flags = _field("flags", 48, _I32)


ZERO_D = 72 + HEAD  # bytes that an array of no dimensions and its element take, as `as_array` makes it


@intrinsic
def as_array(typing, value, like, kinds, room):
    """The address of an array: `value`'s own, or that of one of no dimensions and the dtype of `like`, made of ZERO_D
    bytes at `room`, where `value` is a Python float that this dtype holds; 0 where there is neither.

    `kinds` are the addresses of ndarray, float, and the dtypes float32 and float64. Fields that are not read here
    are not made.
    """

    def emit(context, builder, signature, args):
        value, like, kinds, room = args

        def at(address, offset, kind=_I64):
            return builder.inttoptr(builder.add(address, _I64(offset)), kind.as_pointer())

        def kind_is(address, i):
            return builder.icmp_signed("==", builder.load(at(address, HEAD - 8)), builder.load(at(kinds, 8 * i)))

        f32, f64 = ir.FloatType(), ir.DoubleType()
        result = cgutils.alloca_once_value(builder, value)
        with builder.if_then(builder.not_(kind_is(value, 0))):
            builder.store(_I64(0), result)
            with builder.if_then(builder.and_(kind_is(value, 1), kind_is(like, 0))):
                number, dtype = builder.load(at(value, HEAD, f64)), builder.load(at(like, HEAD + 40))
                single, double = (builder.icmp_signed("==", dtype, builder.load(at(kinds, 8 * i))) for i in (2, 3))
                element = HEAD + 64
                for holds, offset, what in ((room, 0, builder.add(room, _I64(element))), (room, 40, dtype)):
                    builder.store(what, at(holds, HEAD + offset))
                builder.store(_I32(0), at(room, HEAD + 8, _I32))
                with builder.if_then(double):
                    builder.store(number, at(room, element, f64))
                    builder.store(room, result)
                rounded = builder.fptrunc(number, f32)
                bits = builder.and_(builder.bitcast(rounded, _I32), _I32(0x7FFFFFFF))
                finite = builder.icmp_signed("<", bits, _I32(0x7F800000))  # others are rare, and may be overflows
                with builder.if_then(builder.and_(single, finite)):
                    builder.store(rounded, at(room, element, f32))
                    builder.store(room, result)
        return builder.load(result)

    return types.int64(*[types.int64] * 4), emit


@functools.cache
def layout_is_known() -> bool:
    """Whether this NumPy keeps an ndarray's fields where this module reads them."""
    import ctypes

    array = np.zeros((3, 5), np.float32)[::2, ::-1]
    words = (ctypes.c_int64 * 7).from_address(id(array) + HEAD)
    sizes, steps = ((ctypes.c_int64 * 2).from_address(words[i]) for i in (2, 3))
    return (
        words[0] == array.__array_interface__["data"][0]
        and words[1] & 0xFFFFFFFF == 2
        and tuple(sizes) == array.shape
        and tuple(steps) == array.strides
        and words[5] == id(array.dtype)
        and words[6] & 0xFFFFFFFF == array.flags.num
    )
