"""Chains of a matrix's columns against a few vectors at once: t[r, i] = sum over p of a[p, i] * v[p, r], in order.

The matrix is read once, along its rows as they lie: chains wait in L1 and take in eight steps of k at a time, as
axpyf.py's columns, but each vector of the matrix meets all of the vectors while it is in a register.
"""

from __future__ import annotations

from llvmlite import ir

from ...jit.compile.lazy import intrinsic, jit, types
from ...jit.ir.vector import ELEMENT, I64, Lanes, loop, once, switch
from ..gemv.axpyf import STEPS

MOST = 8  # vectors at once: as many chains hide each other's latency


def _define(module: ir.Module, tile, count: int) -> ir.Function:
    """void(m, a, down, v, k, t, apart, begun): t[r*apart + i] is the chain over p < k of a[p*down + i] * v[p*count + r]
    for i < m and r < count, from 0 if `begun` is 0 and from t[r*apart + i] otherwise."""
    name = f"several_{count}_{tile.dtype}"
    at = ELEMENT[tile.dtype].as_pointer()
    function, builder = once(module, name, [I64, at, I64, at, I64, at, I64, I64])
    if builder is None:
        return function
    m, a, down, v, k, t, apart, begun = function.args
    lanes = Lanes(builder, tile.dtype, tile.lanes)
    whole = builder.udiv(m, I64(lanes.count))
    end = builder.mul(whole, I64(lanes.count))
    last = lanes.mask(builder.sub(m, end))
    lines = [lanes.at(t, builder.mul(apart, I64(r))) for r in range(count)]

    def turn(steps):
        def body(index, carried):
            a, v, begun = carried
            rows, fresh = [lanes.at(a, builder.mul(down, I64(q))) for q in range(steps)], begun

            def piece(place, mask=None):
                new = builder.icmp_signed("==", fresh, I64(0))
                chains = [builder.select(new, lanes.zero, lanes.load(lanes.at(line, place), mask)) for line in lines]
                for q, row in enumerate(rows):
                    factor = lanes.load(lanes.at(row, place), mask)
                    for r in range(count):
                        own = lanes.splat(builder.load(lanes.at(v, q * count + r), align=1))
                        chains[r] = lanes.fma(own, factor, chains[r])
                for chain, line in zip(chains, lines):
                    lanes.store(chain, lanes.at(line, place), mask)
                return []

            loop(builder, whole, [], lambda j, _: piece(builder.mul(j, I64(lanes.count))))
            with builder.if_then(builder.icmp_signed("<", end, m)):
                piece(end, last)
            return [lanes.at(a, builder.mul(down, I64(steps))), lanes.at(v, steps * count), I64(1)]

        return body

    carried = loop(builder, builder.udiv(k, I64(STEPS)), [a, v, begun], turn(STEPS))
    loop(builder, builder.urem(k, I64(STEPS)), carried, turn(1))
    builder.ret_void()
    return function


@jit(forceinline=True)
def group(left):
    """Vectors to take together, of those that are left."""
    return 8 if left >= 8 else 4 if left >= 4 else 2 if left >= 2 else 1


@intrinsic
def columns_against(typing, tile, count, m, a, down, v, k, t, apart, begun):
    """`count` vectors, as many as `group` says."""

    def emit(context, builder, signature, args):
        def call(power):
            function = _define(builder.module, signature.args[0].tile, 1 << power)
            pairs = zip(args[2:], (argument.type for argument in function.args))
            builder.call(function, [x if kind is I64 else builder.inttoptr(x, kind) for x, kind in pairs])

        switch(builder, [(builder.cttz(args[1], ir.IntType(1)(1)), MOST.bit_length())], call)
        return context.get_dummy_value()

    return types.void(tile, *[types.int64] * 9), emit
