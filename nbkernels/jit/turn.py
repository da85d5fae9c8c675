"""Transpose a tile on its way from memory to a buffer in L1, a square of vectors at a time in registers."""

from __future__ import annotations

import functools

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .cache import compiled
from .vector import I64, SIZE, VOID, Lanes, loop

# Elements along a side of the buffer: 16 KB of float32, a third of L1.
TILE = 64
# Items of 4 and 8 bytes are moved as floats, whatever they mean: no bit of them changes.
MOVED = {size: dtype for dtype, size in SIZE.items()}


@functools.cache
def turner(width: int) -> int:
    """Address of void(source, step, target, rows, columns): target[j, i] = source[j, i] for items of 4 or 8 bytes.

    In the source neighbours of a column touch and those of a row are `step` bytes apart; a row of the target is TILE
    items long.
    """

    @intrinsic
    def turn(typing, source, step, target, rows, columns):
        def emit(context, builder, signature, args):
            _turn(builder, Lanes(builder, MOVED[width], 64 // width), width, *args)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 5), emit

    def run(source, step, target, rows, columns):
        turn(source, step, target, rows, columns)

    return compiled(run, "void(int64, int64, int64, int64, int64)", f"turn_{width}")


def _turn(builder, lanes, width, source, step, target, rows, columns):
    side, pointer = I64(lanes.count), lanes.element.as_pointer()

    def read(j, i):
        return builder.inttoptr(
            builder.add(source, builder.add(builder.mul(i, step), builder.mul(j, I64(width)))), pointer
        )

    def write(j, i):
        place = builder.add(builder.mul(j, I64(TILE)), i)
        return builder.inttoptr(builder.add(target, builder.mul(place, I64(width))), pointer)

    def nested(start_j, count_j, start_i, count_i, stride, move):
        def outer(q, _):
            def inner(r, _):
                move(builder.add(start_j, builder.mul(r, stride)), builder.add(start_i, builder.mul(q, stride)))
                return []

            loop(builder, count_j, [], inner)
            return []

        loop(builder, count_i, [], outer)

    def square(j, i):
        columns = [lanes.load(read(j, builder.add(i, I64(k)))) for k in range(lanes.count)]
        for k, row in enumerate(lanes.transpose(columns)):
            lanes.store(row, write(builder.add(j, I64(k)), i))

    def single(j, i):
        value = builder.load(read(j, i))
        value.align = 1
        builder.store(value, write(j, i))

    high, wide = builder.sdiv(rows, side), builder.sdiv(columns, side)
    below, right = builder.mul(high, side), builder.mul(wide, side)
    nested(I64(0), high, I64(0), wide, side, square)
    nested(below, builder.sub(rows, below), I64(0), columns, I64(1), single)
    nested(I64(0), below, right, builder.sub(columns, right), I64(1), single)


@intrinsic
def call_turn(typing, function, source, step, target, rows, columns):
    """Call a function of `turner`."""

    def emit(context, builder, signature, args):
        kind = ir.FunctionType(VOID, [I64] * 5)
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6), emit
