"""Element-wise rows some of whose inputs are contiguous along the columns.
These are loaded as squares and transposed in registers.

A line of such an input is as many rows of the output: all of them go together, a vector of columns at a time.
"""

from __future__ import annotations

from ...jit.ir.loop_metadata import one
from ...jit.ir.turn import PIECE
from ...jit.ir.vector import I8, I64, LINE, loop, width_bits

# Bytes that columns lie a multiple of apart where they meet in few sets of L1, which loses them before the next rows of
# a line are done: these then go first (256 x 256 float64: 2.5 times as long otherwise).
FEW = 128 if width_bits() == 512 else 512


class Across:
    """The loops that `emitter` emits, by vectors of `lanes` columns; `start(j)` are the operands' pointers to row j."""

    def __init__(self, emitter, lanes, start):
        self.emitter, self.builder, self.start, self.lanes = emitter, emitter.builder, start, lanes
        inputs = zip(emitter.operands[emitter.count :], emitter.spec.steps)
        self.steps = dict(inputs)
        self.turned = [p for p, n in self.steps.items() if n is None]
        self.width = emitter.widths[self.turned[0]]
        self.high = PIECE // self.width

    def rows(self, rows):
        """Whole squares of all `rows`; the row that they end at."""
        builder, apart, line = self.builder, self.emitter.inner[self.turned[0]], I64(LINE // self.width)
        self.upright = builder.icmp_signed("==", builder.and_(apart, I64(FEW - 1)), I64(0))
        whole = builder.and_(rows, I64(-self.high))
        first = builder.ptrtoint(self.start(I64(0))[self.turned[0]], I64)
        before = builder.udiv(builder.and_(first, I64(LINE - 1)), I64(self.width))
        before = builder.and_(before, I64(-self.high))  # rows of the first line that are not there
        groups = builder.udiv(builder.add(builder.add(whole, before), builder.sub(line, I64(1))), line)

        def group(g, _):
            top = builder.sub(builder.mul(g, line), before)
            bottom = self.least(builder.add(top, line), whole)
            self.line(builder.select(builder.icmp_signed("<", top, I64(0)), I64(0), top), bottom)
            return []

        loop(builder, groups, [], group)
        return whole

    def least(self, a, b):
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

    def line(self, top, bottom):
        """Rows from top to bottom: whole vectors of columns from where the output's are aligned, what is on both
        sides by masked ones."""
        builder, columns, size = self.builder, self.emitter.columns, self.emitter.widths[0]
        squares = builder.udiv(builder.sub(bottom, top), I64(self.high))
        start = builder.ptrtoint(self.start(top)[0], I64)
        head = builder.udiv(builder.and_(builder.neg(start), I64(self.lanes * size - 1)), I64(size))
        head = self.least(head, columns)
        vectors = builder.udiv(builder.sub(columns, head), I64(self.lanes))
        done = builder.add(head, builder.mul(vectors, I64(self.lanes)))

        def square(s, q, left=None):
            column = q if left is not None else builder.add(head, builder.mul(q, I64(self.lanes)))
            self.square(builder.add(top, builder.mul(s, I64(self.high))), column, left)
            return []

        def side(k, _):
            last = builder.icmp_signed("!=", k, I64(0))
            column, left = builder.select(last, done, I64(0)), builder.select(last, builder.sub(columns, done), head)
            count = builder.select(builder.icmp_signed(">", left, I64(0)), squares, I64(0))
            loop(builder, count, [], lambda s, _: square(s, column, left))
            return []

        def upright(q, _):
            loop(builder, squares, [], lambda s, _: square(s, q))
            return []

        def along(s, _):
            loop(builder, vectors, [], lambda q, _: square(s, q))
            return []

        with builder.if_else(self.upright) as (down, across):
            with down:
                loop(builder, vectors, [], upright)
            with across:
                loop(builder, squares, [], along)
        loop(builder, I64(2), [], side)

    def square(self, j, column, left=None):
        """As many rows as a PIECE has, from row j on; the first `left` columns alone where that is given."""
        builder, emitter, turned, base = self.builder, self.emitter, {}, self.start(j)
        places = [I64(k) for k in range(self.lanes)]
        if left is not None:
            places = [self.least(k, builder.sub(left, I64(1))) for k in places]
        for p in self.turned:
            first, vectors = emitter.at(base, [None] * len(base), p, column), emitter.vectors(p, self.lanes)
            pointers = [self.beyond(first, builder.mul(k, emitter.inner[p])) for k in places]
            turned[p] = vectors.across([emitter.bits(p, pointer) for pointer in pointers])
        for r in range(self.high):
            row = [self.beyond(x, builder.mul(I64(r), step)) for x, step in zip(base, emitter.outer)]
            self.row(row, column, {p: rows[r] for p, rows in turned.items()}, left)

    def beyond(self, pointer, distance):
        """A pointer so many bytes on."""
        place = self.builder.gep(self.builder.bitcast(pointer, I8.as_pointer()), [distance])
        return self.builder.bitcast(place, pointer.type)

    def row(self, base, column, turned, left):
        """One row of a square."""
        builder, emitter = self.builder, self.emitter
        steps = emitter.widths[: emitter.count] + [(n or 0) * emitter.widths[p] for p, n in self.steps.items()]
        starts, target = [emitter.at(base, steps, p, column) for p in emitter.operands], None
        for p, n in self.steps.items():
            value = turned.get(p)
            if left is not None and n == 1:
                vectors = emitter.vectors(p, self.lanes)
                value = vectors.load(emitter.bits(p, starts[p]), vectors.mask(left))
            if value is not None:
                starts[p], steps[p] = emitter.room(p, self.lanes), emitter.widths[p]
                builder.store(value, builder.bitcast(starts[p], value.type.as_pointer()))
        if left is not None:
            target = emitter.room(0, self.lanes)
        emitter.span(starts, steps, I64(0), I64(self.lanes), target, one(self.lanes))
        if left is not None:
            out = emitter.vectors(0, self.lanes)
            out.store(out.load(emitter.bits(0, target)), emitter.bits(0, starts[0]), out.mask(left))
