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


def words(context, kind, width: int):
    """(type of the real numbers of `width` elements, how many are a word of memory, its type, words, bytes of all)

    Numbers of less than 4 bytes are moved as words of 4: of a vector of 8 float16 the compiler makes two loads.
    """
    count, real = (2 * width, kind.underlying_float) if isinstance(kind, types.Complex) else (width, kind)
    number, size = context.get_value_type(real), real.bitwidth // 8
    each = max(1, min(4 // size, count))
    word = number if each == 1 else ir.IntType(8 * size * each)
    return number, each, word, count // each, count * size


def loading(dtype: str, width: int):
    KIND = stored(dtype)

    @intrinsic
    def load(typing, array, first, x, i):
        def emit(context, builder, signature, args):
            source = builder.gep(args[2], [args[3]])
            number, each, word, several, size = words(context, KIND, width)
            at = builder.bitcast(source, ir.VectorType(word, several).as_pointer())
            value = builder.load(at, align=size)
            local = context.make_array(array)(context, builder, value=args[0]).data
            target = builder.bitcast(builder.gep(local, [args[1]]), number.as_pointer())
            for w in range(several):
                part = builder.extract_element(value, ir.Constant(I32, w))
                packed = part if each == 1 else builder.bitcast(part, ir.VectorType(number, each))
                for e in range(each):
                    one = part if each == 1 else builder.extract_element(packed, ir.Constant(I32, e))
                    builder.store(one, builder.gep(target, [ir.Constant(I32, w * each + e)]))
            return context.get_dummy_value()

        return types.none(array, types.int64, x, types.int64), emit

    return load


def storing(dtype: str, width: int):
    KIND = stored(dtype)

    @intrinsic
    def store(typing, x, i, array, first):
        def emit(context, builder, signature, args):
            target = builder.gep(args[0], [args[1]])
            number, each, word, several, size = words(context, KIND, width)
            at = builder.bitcast(target, ir.VectorType(word, several).as_pointer())
            local = context.make_array(array)(context, builder, value=args[2]).data
            source = builder.bitcast(builder.gep(local, [args[3]]), number.as_pointer())
            value = ir.Constant(at.type.pointee, ir.Undefined)
            for w in range(several):
                part = packed = ir.Constant(ir.VectorType(number, each), ir.Undefined)
                for e in range(each):
                    part = builder.load(builder.gep(source, [ir.Constant(I32, w * each + e)]))
                    packed = part if each == 1 else builder.insert_element(packed, part, ir.Constant(I32, e))
                whole = part if each == 1 else builder.bitcast(packed, word)
                value = builder.insert_element(value, whole, ir.Constant(I32, w))
            builder.store(value, at, align=size)
            return context.get_dummy_value()

        return types.none(x, types.int64, array, types.int64), emit

    return store
