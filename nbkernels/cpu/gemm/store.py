"""The end of a chain: its sum becomes an element of C."""

from __future__ import annotations

from ...jit.compile.lazy import intrinsic, jit, types
from ...jit.ir.chain import Chain
from ...jit.ir.vector import ELEMENT, I64, replaced_if
from .context import sub

PARTIAL, PLAIN, REGISTERS, MEMORY = 0, 1, 2, 3  # the micro-kernel's stops, and finish() below


@intrinsic
def _end(typing, tile, part, total, first, last, c, x, alpha, beta):
    """One element: chain, addresses of its parts; x is 0 where there is none."""
    number = getattr(types, tile.tile.kind.chain)

    def emit(context, builder, signature, args):
        kind = signature.args[0].tile.kind
        chain = Chain(builder, kind, 1)
        part, total, first, last, c, x, alpha, beta = args[1:]

        def at(address, dtype):
            return builder.inttoptr(address, ELEMENT[dtype].as_pointer())

        sums = at(total, kind.chain)
        value = chain.load(at(part, kind.chain))
        value = replaced_if(builder, builder.not_(first), value, lambda: chain.add(chain.load(sums), value))
        with builder.if_else(last) as (ends, waits):
            with waits:
                chain.store(value, sums)
            with ends:
                value = chain.scale(chain.splat(alpha), value)
                present = builder.icmp_unsigned("!=", x, I64(0))
                scaled, beta, old = value, chain.splat(beta), at(x, kind.out)
                value = replaced_if(builder, present, scaled, lambda: chain.blend(beta, chain.read(old), scaled))
                chain.write(value, at(c, kind.out))
        return context.get_dummy_value()

    return types.void(
        tile, types.int64, types.int64, types.boolean, types.boolean, types.int64, types.int64, number, number
    ), emit


@jit(forceinline=True)
def finish(tile, sizes, chains, sums, first, last, c, x, alpha, beta):
    """End a segment of a tile of `sizes` rows and columns, which is the first one or the last: C = fma(beta, X, alpha *
    (sums + chains)). C and X are matrices; of `chains` and `sums` the address and the stride down."""
    (part, down), (total, step) = chains, sums
    for i in range(sizes[0]):
        for j in range(sizes[1]):
            to, old = sub(c, i, j, tile.size_c)[0], sub(x, i, j, tile.size_c)[0]
            own, before = part + (i * down + j) * tile.size_t, total + (i * step + j) * tile.size_t
            _end(tile, own, before, first, last, to, old, alpha, beta)


@jit(forceinline=True)
def ending(csc, x, csx, unit):
    """How a finished chain becomes C: in registers where a row of C (and X) is contiguous, else through memory; `unit`
    says that alpha is 1."""
    if csc == 1 and x == 0 and unit != 0:
        return PLAIN
    if csc == 1 and x != 0 and csx == 1:
        return REGISTERS
    return MEMORY
