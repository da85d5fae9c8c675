"""Element-wise rows whose inputs' elements lie a few elements apart.
Whole vectors of all that lies there are loaded and permuted.

LLVM would gather: a[::2] + b[::2] of 200,000 float32 takes 0.83 ns an element so, 0.29 here (Zen 4, 2026-11).
"""

from __future__ import annotations

from ...jit.ir.loop_metadata import SINGLY, WHOLE, one
from ...jit.ir.short_rows import picked
from ...jit.ir.vector import I8, I64, LINE, loop
from .lines import AHEAD, past

# Columns below which a row is short: loops for any steps take it, or it may end in masked vectors, and next rows are
# asked for (a + b of 4.7 M float32, six of each line of 16, one thread 6.6 ms, 14.3 without; AVX-512, 2026-11).
SHORT = 64


class Near:
    """A row from `base`, with these `steps`, of the loops that `emitter` emits."""

    def __init__(self, emitter, base, steps):
        self.emitter, self.builder, self.base, self.steps = emitter, emitter.builder, base, steps
        self.apart = dict(zip(emitter.operands[emitter.count :], emitter.spec.steps))
        self.lanes = LINE // max(emitter.widths)

    def long(self, head):
        """From column `head` on, what is left at the end singly."""
        done = self.blocks(head, self.emitter.spec.streamed)
        rest = self.builder.sub(self.emitter.columns, done)
        self.emitter.span(self.base, self.steps, done, rest, hints=(SINGLY, WHOLE))

    def short(self):
        """What is left at the end by a masked vector, of half as many lanes where these suffice for the whole row."""
        builder, column = self.builder, self.blocks(I64(0))
        left = builder.sub(self.emitter.columns, column)
        few = builder.icmp_signed("<=", self.emitter.columns, I64(self.lanes // 2))
        some = builder.icmp_signed(">", left, I64(0))
        with builder.if_then(few):
            self.end(column, left, self.lanes // 2)
        with builder.if_then(builder.and_(some, builder.not_(few))):
            self.end(column, left, self.lanes)

    def blocks(self, head, streamed=False):
        """Whole vectors, stored past the caches if they are `streamed` lines; the column that they end at."""
        builder, emitter, lanes = self.builder, self.emitter, self.lanes
        count = builder.sdiv(builder.sub(emitter.columns, head), I64(lanes))
        hints = one(lanes) if emitter.spec.light else (WHOLE,)

        def block(q, _):
            near = [p for p, n in self.apart.items() if n not in (0, 1)]
            starts, steps = self.beside(builder.add(head, builder.mul(q, I64(lanes))), lanes, near)
            if emitter.spec.plain:
                emitter.plainly(starts, steps, I64(0), I64(lanes), lanes, hints)
            elif streamed and lanes * emitter.widths[0] == LINE:
                room = emitter.room(0, lanes)
                emitter.span(starts, steps, I64(0), I64(lanes), room, hints)
                past(emitter, emitter.vectors(0, lanes).load(room), starts[0])
            else:
                emitter.span(starts, steps, I64(0), I64(lanes), hints=hints)
            return []

        loop(builder, count, [], block)
        return builder.add(head, builder.mul(count, I64(lanes)))

    def end(self, column, left, lanes):
        """The `left` last elements, as a vector of them and of what zeros give."""
        emitter, out = self.emitter, self.emitter.vectors(0, lanes)
        starts, steps = self.beside(column, lanes, [p for p, n in self.apart.items() if n != 0], left)
        target = emitter.room(0, lanes)
        emitter.span(starts, steps, I64(0), I64(lanes), target, one(lanes))
        out.store(out.load(emitter.bits(0, target)), emitter.bits(0, starts[0]), out.mask(left))

    def beside(self, column, lanes, operands, left=None):
        """Starts and steps of all operands from a column on, these operands' elements side by side."""
        emitter, steps = self.emitter, list(self.steps)
        starts = [emitter.at(self.base, steps, p, column) for p in emitter.operands]
        for p in operands:
            if left is not None:
                self.ask(starts[p], emitter.outer[p], lanes * abs(self.apart[p]) * emitter.widths[p])
            room = emitter.room(p, lanes)
            vector = picked(emitter.vectors(p, lanes), starts[p], self.apart[p], left, emitter.scope)
            self.builder.store(vector, self.builder.bitcast(room, vector.type.as_pointer()))
            starts[p], steps[p] = room, emitter.widths[p]
        return starts, steps

    def ask(self, start, step, size):
        """Ask for `size` bytes of a row to come."""
        ahead = self.builder.add(self.builder.ptrtoint(start, I64), self.builder.mul(step, I64(AHEAD)))
        for line in range(0, size, LINE):
            place = self.builder.inttoptr(self.builder.add(ahead, I64(line)), I8.as_pointer())
            self.emitter.vectors(0, 1).prefetch(place)
