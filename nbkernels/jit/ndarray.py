"""Read an ndarray's fields from jitted code, given its `id`.

An entry that takes arrays is compiled anew for every combination of dimensions, layouts and read-only flags, and Numba
spends 30 ns on typing each. An entry that takes addresses is compiled once. NumPy documents the layout behind them
(`PyArrayObject_fields`, unchanged since 1.7): head, data, nd, dimensions, strides, base, descr, flags. The caller has
checked that the object is an ndarray and keeps it alive.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
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
