"""Neighbouring elements in global memory, moved by one instruction of up to 16 bytes.

load(array, first, x, i)    array[first : first + width] = x[i : i + width], of a pointer x and a local array
store(x, i, array, first)   the other way round

x + i lies at a multiple of `width` elements.
"""

from __future__ import annotations

import functools

from llvmlite import ir
from numba import types
from numba.cuda.extending import intrinsic

from .elements import stored
from .functions import SIMULATED, inlined

I32 = ir.IntType(32)


@functools.cache
def vectors(dtype: str, width: int):
    """load and store of `width` elements of a dtype."""
    WIDTH = width

    @inlined
    def load(array, first, x, i):
        for e in range(WIDTH):
            array[first + e] = x[i + e]

    @inlined
    def store(x, i, array, first):
        for e in range(WIDTH):
            x[i + e] = array[first + e]

    return (load, store) if SIMULATED or width == 1 else (loading(dtype, width), storing(dtype, width))


def words(context, builder, kind, pointer, width: int):
    """(pointer to `width` elements as a vector of real numbers, how many these are, their type, bytes of all)"""
    count, real = (2 * width, kind.underlying_float) if isinstance(kind, types.Complex) else (width, kind)
    word = context.get_value_type(real)
    vector = ir.VectorType(word, count)
    return builder.bitcast(pointer, vector.as_pointer()), count, word, count * real.bitwidth // 8


def loading(dtype: str, width: int):
    KIND = stored(dtype)

    @intrinsic
    def load(typing, array, first, x, i):
        def emit(context, builder, signature, args):
            source = builder.gep(args[2], [args[3]])
            at, count, word, size = words(context, builder, KIND, source, width)
            value = builder.load(at, align=size)
            local = context.make_array(array)(context, builder, value=args[0]).data
            target = builder.bitcast(builder.gep(local, [args[1]]), word.as_pointer())
            for e in range(count):
                part = builder.extract_element(value, ir.Constant(I32, e))
                builder.store(part, builder.gep(target, [ir.Constant(I32, e)]))
            return context.get_dummy_value()

        return types.none(array, types.int64, x, types.int64), emit

    return load


def storing(dtype: str, width: int):
    KIND = stored(dtype)

    @intrinsic
    def store(typing, x, i, array, first):
        def emit(context, builder, signature, args):
            target = builder.gep(args[0], [args[1]])
            at, count, word, size = words(context, builder, KIND, target, width)
            local = context.make_array(array)(context, builder, value=args[2]).data
            source = builder.bitcast(builder.gep(local, [args[3]]), word.as_pointer())
            value = ir.Constant(at.type.pointee, ir.Undefined)
            for e in range(count):
                part = builder.load(builder.gep(source, [ir.Constant(I32, e)]))
                value = builder.insert_element(value, part, ir.Constant(I32, e))
            builder.store(value, at, align=size)
            return context.get_dummy_value()

        return types.none(x, types.int64, array, types.int64), emit

    return store
