"""Small B whose columns are contiguous, in stacks or alone: turned by squares in registers, many in one call.

Calls for each matrix, to pack it and to multiply, cost more than the product. Zen 3, one thread, NT, us, before and so:
10000x4x4x4 of f32 624 and 90, f64 586 and 201, 10000x8x8x8 475 and 289, 1346 and 521, 10000x16x16x16 1753 and 1624.
One product, and what is no multiple of a square: 32x32x32 of f64 3.7 and 2.6, 64x64x64 of f32 10.8 and 7.9, 61x61x61
11.7 and 9.8, 10000x6x6x6 1079 and 525, 10000x5x5x5 1093 and 563, 100x10x10x10 33 and 18, 100x31x31x31 f64 259 and 213.
By even.py, far, one at a time, so that the next B is asked for: 10000x16x16x16 of f32 2380 and 1950, f64 5876 and 3963.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ...jit.cache import jit
from ...jit.vector import ELEMENT, I64, VOID, Lanes, loop

ROOM = 8 << 10  # bytes of matrices that are turned before their products: a quarter of L1


@jit(forceinline=True)
def side(tile, n, k):
    """Of the squares that make up k x n: a vector, or half of one of four elements; 0 where there is none. The last
    ones end with the matrix, over some that are done already."""
    if n >= tile.lanes and k >= tile.lanes:
        return tile.lanes
    return 4 if tile.lanes == 8 and n >= 4 and k >= 4 else 0


def _define(module: ir.Module, tile, count: int) -> ir.Function:
    """void(matrices, n, k, source, sb, csb, target): squares of `count`; defined once per module."""
    name = f"squares_{tile.dtype}_{count}"
    if name in module.globals:
        return module.globals[name]
    pointer = ELEMENT[tile.dtype].as_pointer()
    function = ir.Function(module, ir.FunctionType(VOID, [I64, I64, I64, pointer, I64, I64, pointer]), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    matrices, n, k, source, sb, csb, target = function.args
    lanes, square = Lanes(builder, tile.dtype, count), I64(count)

    def squares(whole, pitches, carried, body):
        """As many as go into `whole`, each as far from the one before as the last one leaves."""
        number = builder.udiv(builder.add(whole, I64(count - 1)), square)
        rest = builder.sub(whole, builder.mul(square, builder.sub(number, I64(1))))
        moves = [[builder.mul(pitch, by) for by in (rest, square)] for pitch in pitches]

        def step(index, carried):
            body(*carried)
            near = builder.icmp_signed("==", index, builder.sub(number, I64(2)))
            return [lanes.at(each, builder.select(near, *move)) for each, move in zip(carried, moves)]

        loop(builder, number, carried, step)

    def turn(source, target):
        places = [lanes.at(source, builder.mul(csb, I64(q))) for q in range(count)]
        for p, vector in enumerate(lanes.turned(places)):
            lanes.store(vector, lanes.at(target, builder.mul(n, I64(p))))

    def matrix(t, carried):
        squares(k, [I64(1), n], carried, lambda *row: squares(n, [csb, I64(1)], row, turn))
        return [lanes.at(carried[0], sb), lanes.at(carried[1], builder.mul(n, k))]

    loop(builder, matrices, [source, target], matrix)
    builder.ret_void()
    return function


@intrinsic
def turned(typing, tile, side, matrices, n, k, source, sb, csb, target):
    """target[t, p, j] = source[t * sb + j * csb + p] by squares of `side`, as it says; addresses are int64."""

    def emit(context, builder, signature, args):
        record, pointer = signature.args[0].tile, ELEMENT[signature.args[0].tile.dtype].as_pointer()
        side, matrices, n, k, source, sb, csb, target = args[1:]
        values = [matrices, n, k, builder.inttoptr(source, pointer), sb, csb, builder.inttoptr(target, pointer)]
        for count in {record.lanes, 4} if record.lanes == 8 else {record.lanes}:
            with builder.if_then(builder.icmp_signed("==", side, I64(count))):
                builder.call(_define(builder.module, record, count), values)
        return context.get_dummy_value()

    return types.void(tile, *[types.int64] * 8), emit
