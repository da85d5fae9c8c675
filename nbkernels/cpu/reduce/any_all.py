"""Rows of any and all, emitted as LLVM IR: whole vectors are tested, up to the first that decides.

1,000,000 bools of which none is set take 18 us, as a chain whose steps LLVM puts side by side 110; where the first is
set, no time (Zen 3, 2026-11).
"""

from __future__ import annotations

from llvmlite import ir

from ...jit.ir.elements import width
from ...jit.ir.vector import I1, I64, LINE, join, loop, replaced_if
from ..elementwise.lines import LIGHT

OF_ANY, OF_ALL = ("add", "logical_or", "bitwise_or"), ("multiply", "logical_and", "bitwise_and")
RUN = 4 * LINE  # bytes that are looked at between two branches


def truth(builder: ir.IRBuilder, name: str, dtype: str, start, count):
    """The fold by the function of bools of that name, of `count` items, not 0, from the pointer `start` on: a bool."""
    every, kind = name in OF_ALL, ir.IntType(8 * width(dtype))
    start, none = builder.bitcast(start, kind.as_pointer()), I1(0)
    parts = 2 if "complex" in dtype else 1 if "float" in dtype else 0  # of an item, each with a sign
    magnitude = sum((1 << kind.width // parts - 1) - 1 << p * kind.width // parts for p in range(parts))

    def telling(first, lanes):
        """Whether the items from `first` on settle it: one that is zero, or one that is not."""
        vector, several = ir.VectorType(kind, lanes), []
        for i in range(0, lanes, min(lanes, LIGHT * 8 // kind.width)):
            vector = ir.VectorType(kind, min(lanes, LIGHT * 8 // kind.width))
            bits = builder.load(builder.bitcast(builder.gep(start, [builder.add(first, I64(i))]), vector.as_pointer()))
            bits.align = 1
            if magnitude:  # -0.0 is zero
                bits = builder.and_(bits, vector([magnitude] * vector.count))
            several.append(builder.sext(builder.icmp_unsigned("==", bits, vector(None)), vector) if every else bits)
        while len(several) > 1:
            several = [builder.or_(*several[i : i + 2]) for i in range(0, len(several), 2)]
        whole = ir.IntType(kind.width * vector.count)
        return builder.icmp_unsigned("!=", builder.bitcast(several[0], whole), whole(0))

    def runs(first, lanes):
        """From `first` on as many whole runs of lanes as there are, up to one that settles it: where they end, and
        whether it did."""
        head, body, after = (builder.append_basic_block(part) for part in ("runs", "run", "end"))
        before = builder.block
        builder.branch(head)
        builder.position_at_end(head)
        at, found = builder.phi(I64), builder.phi(I1)
        at.add_incoming(first[0], before)
        found.add_incoming(first[1], before)
        following = builder.add(at, I64(lanes))
        more = builder.and_(builder.icmp_signed("<=", following, count), builder.not_(found))
        builder.cbranch(more, body, after)
        builder.position_at_end(body)
        now = telling(at, lanes)
        at.add_incoming(following, builder.block)
        found.add_incoming(now, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return at, found

    one = LIGHT * 8 // kind.width
    at, found = runs(runs((I64(0), none), RUN * 8 // kind.width), one)
    left = builder.and_(builder.icmp_signed("<", at, count), builder.not_(found))

    def ends():
        short = builder.icmp_signed("<", count, I64(one))
        with builder.if_else(short) as (singly, together):
            with singly:
                items = loop(builder, count, [none], lambda i, kept: [builder.or_(kept[0], telling(i, 1))])
                after_items = builder.block
            with together:  # the last vector, of which some was looked at before
                last, after_last = [telling(builder.sub(count, I64(one)), one)], builder.block
        return join(builder, (items, after_items), (last, after_last))

    (found,) = replaced_if(builder, left, [found], ends)
    return builder.not_(found) if every else found
