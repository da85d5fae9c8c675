"""Products of one step of k: C = alpha * a b + beta * X, a column by a row; each row of C is written once, whole."""

from __future__ import annotations

from llvmlite import ir

from ...jit.compile.lazy import intrinsic, types
from ...jit.ir.vector import ELEMENT, I64, Lanes, loop, once


def _define(module: ir.Module, tile, blends: bool) -> ir.Function:
    """void(m, n, a, rsa, b, c, rsc, alpha): C[i, j] = alpha * fma(a[i*rsa], b[j], 0), n at least a vector; or, given
    x, rsx and beta, too, fma(beta, X[i, j], that), where X may be C."""
    name = f"outer_{tile.dtype}" + "_on" * blends
    element = ELEMENT[tile.dtype]
    at = element.as_pointer()
    kinds = [I64, I64, at, I64, at, at, I64, element, *[at, I64, element] * blends]
    function, builder = once(module, name, kinds)
    if builder is None:
        return function
    m, n, a, rsa, b, c, rsc, alpha, *more = function.args
    lanes = Lanes(builder, tile.dtype, tile.lanes)
    factor, last = lanes.splat(alpha), builder.sub(n, I64(lanes.count))
    x, rsx, beta = more or (c, rsc, alpha)
    share = lanes.splat(beta)

    def row(_, carried):
        a, c, x = carried
        own, done = lanes.splat(builder.load(a, align=1)), I64(0)

        def piece(place):
            value = builder.fmul(factor, lanes.fma(own, lanes.load(lanes.at(b, place)), lanes.zero))
            return lanes.fma(share, lanes.load(lanes.at(x, place)), value) if blends else value

        def turn(vectors):
            def body(_, carried):
                for v in range(vectors):
                    place = builder.add(carried[0], I64(v * lanes.count))
                    lanes.store(piece(place), lanes.at(c, place))
                return [builder.add(carried[0], I64(vectors * lanes.count))]

            return body

        end = piece(last)  # ends with the row, over some that others write, too: X may be C, hence first
        for vectors in (tile.nv, 1):
            left = builder.udiv(builder.sub(n, done), I64(vectors * lanes.count))
            (done,) = loop(builder, left, [done], turn(vectors))
        with builder.if_then(builder.icmp_signed("<", done, n)):
            lanes.store(end, lanes.at(c, last))
        return [lanes.at(a, rsa), lanes.at(c, rsc), lanes.at(x, rsx)]

    loop(builder, m, [a, c, x], row)
    builder.ret_void()
    return function


@intrinsic
def outer(typing, tile, m, n, a, rsa, b, c, rsc, alpha, x, rsx, beta):
    """C of m rows, rsc apart, and n >= tile.lanes columns; X is nothing where its address is 0."""

    def emit(context, builder, signature, args):
        record, at = signature.args[0].tile, ELEMENT[signature.args[0].tile.dtype].as_pointer()
        values = [builder.inttoptr(v, at) if i in (2, 4, 5, 8) else v for i, v in enumerate(args[1:])]
        with builder.if_else(builder.icmp_unsigned("!=", args[9], I64(0))) as (then, otherwise):
            with then:
                builder.call(_define(builder.module, record, True), values)
            with otherwise:
                builder.call(_define(builder.module, record, False), values[:8])
        return context.get_dummy_value()

    scalar = getattr(types, tile.tile.dtype)
    return types.void(tile, *[types.int64] * 7, scalar, types.int64, types.int64, scalar), emit
