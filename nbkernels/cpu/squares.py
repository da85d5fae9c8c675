"""Stacks of small B whose columns are contiguous: turned by squares in registers, many in one call.

Calls for each matrix, to pack it and to multiply, cost more than the product. Zen 3, one thread, NT, us, before and so:
10000x4x4x4 of f32 624 and 90, f64 586 and 201, 10000x8x8x8 475 and 289, 1346 and 521, 10000x16x16x16 1753 and 1624.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..jit.cache import jit
from ..jit.vector import ELEMENT, I64, VOID, Lanes, loop

ROOM = 8 << 10  # bytes of matrices that are turned before their products: a quarter of L1


@jit(inline="always")
def side(tile, n, k):
    """Of the squares that make up k x n: a vector, or half of one of four elements; 0 where there is none."""
    if n % tile.lanes == 0 and k % tile.lanes == 0:
        return tile.lanes
    return 4 if tile.lanes == 8 and n % 4 == 0 and k % 4 == 0 else 0


def _define(module: ir.Module, tile, count: int) -> ir.Function:
    """void(matrices, n, k, source, sb, csb, target): squares of `count`; defined once per module."""
    name = f"squares_{tile.dtype}_{count}"
    if name in module.globals:
        return module.globals[name]
    pointer = ELEMENT[tile.dtype].as_pointer()
    function = ir.Function(module, ir.FunctionType(VOID, [I64, I64, I64, pointer, I64, I64, pointer]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    matrices, n, k, source, sb, csb, target = function.args
    lanes, square = Lanes(builder, tile.dtype, count), I64(count)

    def matrix(t, carried):
        source, target = carried

        def rows(i, carried):
            source, target = carried

            def columns(j, carried):
                source, target = carried
                places = [lanes.at(source, builder.mul(csb, I64(q))) for q in range(count)]
                for p, vector in enumerate(lanes.turned(places)):
                    lanes.store(vector, lanes.at(target, builder.mul(n, I64(p))))
                return [lanes.at(source, builder.mul(csb, square)), lanes.at(target, square)]

            loop(builder, builder.udiv(n, square), carried, columns)
            return [lanes.at(source, square), lanes.at(target, builder.mul(n, square))]

        target = loop(builder, builder.udiv(k, square), carried, rows)[1]
        return [lanes.at(source, sb), target]

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
