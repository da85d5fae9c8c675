"""Products of one step of k: C = alpha * a b + beta * X, a column by a row; each row of C is written once, whole."""

from __future__ import annotations

from ...jit.ir.emit import called, on_tile
from ...jit.ir.vector import I64, Lanes, loop

PLAIN = "m:i n:i a:p rsa:i b:p c:p rsc:i alpha:s"
BLEND = f"{PLAIN} x:p rsx:i beta:s"


def _outer(builder, tile, arg, blends: bool):
    """C[i, j] = alpha * fma(a[i*rsa], b[j], 0), n at least a vector; or, given x, rsx and beta, too, fma(beta, X[i, j],
    that), where X may be C."""
    m, n, a, rsa, b, c, rsc, alpha, *more = arg.values()
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


def _by_x(context, builder, tile, arg):
    with builder.if_else(builder.icmp_unsigned("!=", arg["x"], I64(0))) as (then, otherwise):
        with then:
            called(builder, tile, f"outer_{tile.dtype}_on", BLEND, arg, _outer, True)
        with otherwise:
            called(builder, tile, f"outer_{tile.dtype}", PLAIN, arg, _outer, False)


# C of m rows, rsc apart, and n >= tile.lanes columns; X is nothing where its address is 0.
outer = on_tile("outer", BLEND, _by_x)
