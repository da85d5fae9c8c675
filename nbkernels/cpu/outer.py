"""Products of one step of k: C = alpha * a b, a column by a row, of which each row of C is written once, whole."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..jit.vector import ELEMENT, I64, VOID, Lanes, loop

TOGETHER = 4  # vectors of a row in a turn of the loop


def _define(module: ir.Module, tile) -> ir.Function:
    """void(m, n, a, rsa, b, c, rsc, alpha): C[i, j] = alpha * fma(a[i*rsa], b[j], 0), n at least a vector."""
    name = f"outer_{tile.dtype}"
    if name in module.globals:
        return module.globals[name]
    element = ELEMENT[tile.dtype]
    at = element.as_pointer()
    function = ir.Function(module, ir.FunctionType(VOID, [I64, I64, at, I64, at, at, I64, element]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder, (m, n, a, rsa, b, c, rsc, alpha) = ir.IRBuilder(function.append_basic_block("entry")), function.args
    lanes = Lanes(builder, tile.dtype, tile.lanes)
    factor, last = lanes.splat(alpha), builder.sub(n, I64(lanes.count))

    def row(_, carried):
        a, c = carried
        own, done = lanes.splat(builder.load(a, align=1)), I64(0)

        def piece(place):
            product = lanes.fma(own, lanes.load(lanes.at(b, place)), lanes.zero)
            lanes.store(builder.fmul(factor, product), lanes.at(c, place))

        def turn(vectors):
            def body(_, carried):
                for v in range(vectors):
                    piece(builder.add(carried[0], I64(v * lanes.count)))
                return [builder.add(carried[0], I64(vectors * lanes.count))]

            return body

        for vectors in (TOGETHER, 1):
            left = builder.udiv(builder.sub(n, done), I64(vectors * lanes.count))
            (done,) = loop(builder, left, [done], turn(vectors))
        with builder.if_then(builder.icmp_signed("<", done, n)):
            piece(last)  # ends with the row, over some that are done already
        return [lanes.at(a, rsa), lanes.at(c, rsc)]

    loop(builder, m, [a, c], row)
    builder.ret_void()
    return function


@intrinsic
def outer(typing, tile, m, n, a, rsa, b, c, rsc, alpha):
    """C of m rows, rsc apart, and n >= tile.lanes columns."""

    def emit(context, builder, signature, args):
        function = _define(builder.module, signature.args[0].tile)
        values = [builder.inttoptr(x, argument.type) if isinstance(argument.type, ir.PointerType) else x
                  for x, argument in zip(args[1:], function.args)]  # fmt: skip
        builder.call(function, values)
        return context.get_dummy_value()

    return types.void(tile, *[types.int64] * 7, getattr(types, tile.tile.dtype)), emit
