"""Rows of adjacent items folded by an associative scalar function, in registers, emitted as LLVM IR.

The order is that of reduce.py. Lanes are a buffer of as many items as the loops over it have trips, which are hinted to
be one vector long: LLVM makes a register of the buffer. Written in jitted Python the same loops stay scalar.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from ...jit.compile.lazy import cgutils, subroutine, types
from ...jit.compile.routine import ir_function
from ...jit.ir.elements import cast, from_memory, memory, number, to_memory, width
from ...jit.ir.loop_metadata import node, one
from ...jit.ir.vector import I64, join, loop, replaced_if
from . import any_all
from .extreme import INFINITY, OF_ANY, OF_NUMBERS, extreme

# Terms of a block, its lanes, and terms from which on they are dealt out to lanes; fewer are one chain.
BLOCK, LANES, DEALT = 256, 16, 32
# Blocks that are folded before any is merged, a power of two: the branches of merging, half of them guessed wrong, else
# keep the CPU from working on several blocks at once.
GROUP = 32


@dataclass(frozen=True)
class Fold:
    """function(a partial result, a term), both of the dtype `work`, over items of dtype `item`.

    Of an `exact` one the order does not show: there are no blocks, and more lanes; of integers there is a chain alone,
    of which LLVM makes lanes by itself, an extreme of floats is found by their bits, a truth by the first that tells.
    """

    function: Callable
    item: str
    work: str
    exact: bool

    @property
    def lanes(self) -> int:
        return min(64, 256 // width(self.work)) if self.exact else LANES

    @property
    def dealt(self) -> int:
        """Terms from which on lanes are used."""
        return max(DEALT, self.lanes)

    @property
    def chained(self) -> bool:
        """Whether there are no lanes."""
        return self.exact and "int" in self.work

    @property
    def extreme(self) -> bool:
        """Whether it is the largest or the smallest of floats."""
        return self.item in INFINITY and self.work in INFINITY and self.function.__name__ in OF_ANY + OF_NUMBERS

    @property
    def truth(self) -> bool:
        """Whether it asks if any item, or every one, is not zero."""
        return self.work == "bool" and self.function.__name__ in any_all.OF_ANY + any_all.OF_ALL

    def __str__(self) -> str:
        return f"{self.function.__name__}_{self.item}_as_{self.work}{'_exact' * self.exact}"


def address(spec: Fold) -> int:
    """Compile; address of void(x, apart, count, length, out): out[i] = fold of the `length` items from x + i*apart on.

    Addresses and `apart` are in bytes; `length` is not 0.
    """

    def emit(context, builder, *args):
        _Emitter(spec, context, builder).rows(*args)

    return ir_function(emit, "x apart count length out", f"fold_{spec}").address


class _Emitter:
    def __init__(self, spec: Fold, context, builder):
        self.spec, self.context, self.builder = spec, context, builder
        self.work = number(spec.work)
        self.call = self.work(self.work, self.work)
        self.function = subroutine(context, spec.function, self.call)
        self.item, self.kept = memory(context, spec.item), memory(context, spec.work)
        self.complex = isinstance(self.work, types.Complex)
        self.plane = context.get_data_type(self.work.underlying_float) if self.complex else self.kept
        self.stack = cgutils.alloca_once(builder, self.kept, size=I64(64))

    def rows(self, x, apart, count, length, out):
        builder = self.builder
        out = builder.inttoptr(out, self.kept.as_pointer())

        def each_row(fold):
            def row(i, _):
                start = builder.inttoptr(builder.add(x, builder.mul(i, apart)), self.item.as_pointer())
                self.write(fold(start), builder.gep(out, [i]))
                return []

            loop(builder, count, [], row)

        if self.spec.extreme:
            each_row(lambda start: self.extreme(start, length))
            return
        if self.spec.truth:
            each_row(lambda start: any_all.truth(builder, self.spec.function.__name__, self.spec.item, start, length))
            return
        if self.spec.chained:
            each_row(lambda start: self.whole(self.chain(start, length)))
            return
        with builder.if_else(builder.icmp_signed("<", length, I64(self.spec.dealt))) as (short, long):
            with short:
                each_row(lambda start: self.whole(self.chain(start, length)))
            with long:
                if self.spec.exact:
                    each_row(lambda start: self.block(start, length))
                    return
                single = builder.icmp_signed("<=", length, I64(BLOCK))
                with builder.if_else(single) as (blocks, rows):
                    with blocks:  # float32 54 GB/s, with the stack 35 (Zen 3, 2026-11)
                        each_row(lambda start: self.block(start, length))
                    with rows:
                        each_row(lambda start: self.fold(start, length))

    def extreme(self, x, length):
        spec, bits = self.spec, ir.IntType(8 * width(self.spec.item))
        start = self.builder.bitcast(x, bits.as_pointer())
        found = self.builder.bitcast(extreme(self.builder, spec.function.__name__, spec.item, start, length), self.item)
        value = from_memory(self.context, self.builder, spec.item, found)
        return cast(self.context, self.builder, value, spec.item, spec.work)

    def fold(self, x, length):
        """Blocks, merged in pairs as they are complete: bit k of the count of blocks is a sum of 2^k on the stack."""
        builder, one = self.builder, I64(1)
        blocks = builder.sdiv(builder.add(length, I64(BLOCK - 1)), I64(BLOCK))
        whole = builder.sdiv(length, I64(BLOCK))
        group, results = I64(GROUP), cgutils.alloca_once(builder, self.kept, size=I64(GROUP))

        def groups(g, _):
            first = builder.mul(g, group)
            left = builder.sub(blocks, first)
            count = builder.select(builder.icmp_signed("<", left, group), left, group)

            def block(b, _):
                start = builder.mul(builder.add(first, b), I64(BLOCK))
                rest = builder.sub(length, start)
                rest = builder.select(builder.icmp_signed("<", rest, I64(BLOCK)), rest, I64(BLOCK))
                self.write(self.block(builder.gep(x, [start]), rest), builder.gep(results, [b]))
                return []

            def push(place, before, complete):
                height = builder.ctpop(before)
                pairs = builder.cttz(builder.add(before, one), ir.IntType(1)(1))
                pairs = builder.select(complete, pairs, I64(0))
                result = self.down(self.read(place), height, pairs)
                self.write(result, builder.gep(self.stack, [builder.sub(height, pairs)]))

            def push_block(b, _):
                before = builder.add(first, b)
                push(builder.gep(results, [b]), before, builder.icmp_signed("<", before, whole))
                return []

            loop(builder, count, [], block)
            all_whole = builder.icmp_signed("<=", builder.add(first, group), whole)
            with builder.if_else(all_whole) as (together, apart):
                with together:
                    self.pairs(results)
                    push(results, g, ir.IntType(1)(1))
                with apart:
                    loop(builder, count, [], push_block)
            return []

        loop(builder, builder.sdiv(builder.add(blocks, I64(GROUP - 1)), group), [], groups)
        odd = builder.icmp_signed("!=", builder.mul(whole, I64(BLOCK)), length)
        height = builder.sub(builder.add(builder.ctpop(whole), builder.zext(odd, I64)), one)
        return self.down(self.read(builder.gep(self.stack, [height])), height, height)

    def pairs(self, results):
        """A group's results folded in pairs, pairs in pairs and so on, into the first."""
        builder, count = self.builder, GROUP // 2
        while count:

            def pair(i, _):
                left = builder.shl(i, I64(1))
                parts = (self.read(builder.gep(results, [j])) for j in (left, builder.add(left, I64(1))))
                self.write(self.apply(*parts), builder.gep(results, [i]))
                return []

            loop(builder, I64(count), [], pair)
            count //= 2

    def down(self, value, height, count):
        """The value with `count` items from the stack's top before it."""
        builder = self.builder

        def merge(j, carried):
            place = builder.sub(builder.sub(height, I64(1)), j)
            return self.parts(self.apply(self.read(builder.gep(self.stack, [place])), self.whole(carried)))

        return self.whole(loop(builder, count, self.parts(value), merge))

    def block(self, x, length):
        """The fold of the terms of a block."""
        builder, lanes = self.builder, I64(self.spec.lanes)
        kind = ir.VectorType(self.plane, self.spec.lanes)
        held = [cgutils.alloca_once(builder, kind) for _ in range(1 + self.complex)]
        for buffer in held:
            buffer.align = 64
        self.buffers = [builder.bitcast(buffer, self.plane.as_pointer()) for buffer in held]
        with builder.if_else(builder.icmp_signed("<", length, I64(self.spec.dealt))) as (few, many):
            with few:
                chain = self.chain(x, length)
                after_chain = builder.block
            with many:
                self.each(self.spec.lanes, lambda i: self.term(x, i))

                def row(q, _):
                    start = builder.gep(x, [builder.mul(builder.add(q, I64(1)), lanes)])
                    self.each(self.spec.lanes, lambda i: self.apply(self.lane(i), self.term(start, i)))
                    return []

                with builder.if_else(builder.icmp_signed("==", length, I64(BLOCK))) as (whole, part):
                    with whole:  # so many trips that LLVM unrolls them all
                        loop(builder, I64(BLOCK // self.spec.lanes - 1), [], row)
                    with part:
                        rows = builder.sdiv(length, lanes)
                        loop(builder, builder.sub(rows, I64(1)), [], row)
                        done = builder.mul(rows, lanes)
                        rest = builder.sub(length, done)
                        with builder.if_then(builder.icmp_signed(">", rest, I64(0))):
                            self.each(self.spec.lanes, lambda i: self.last(builder.gep(x, [done]), i, rest))
                half = self.spec.lanes // 2
                while half > 2:
                    self.each(half, lambda i, half=half: self.apply(self.lane(i), self.lane(builder.add(i, I64(half)))))
                    half //= 2
                four = [self.lane(I64(i)) for i in range(4)]
                dealt = self.parts(self.apply(self.apply(four[0], four[2]), self.apply(four[1], four[3])))
                after_lanes = builder.block
        return self.whole(join(builder, (chain, after_chain), (dealt, after_lanes)))

    def chain(self, x, length):
        builder = self.builder

        def step(i, carried):
            return self.parts(self.apply(self.whole(carried), self.term(x, builder.add(i, I64(1)))))

        return loop(builder, builder.sub(length, I64(1)), self.parts(self.term(x, I64(0))), step)

    def last(self, x, i, rest):
        """A lane with the last row of terms, which not every lane has."""
        builder, lane = self.builder, self.parts(self.lane(i))

        def more():
            return self.parts(self.apply(self.whole(lane), self.term(x, i)))

        return self.whole(replaced_if(builder, builder.icmp_signed("<", i, rest), lane, more))

    def each(self, count, value):
        """Lane i = value(i) for the first `count` lanes, one vector."""
        builder, latch = self.builder, None

        def body(i, _):
            nonlocal latch
            for buffer, part in zip(self.buffers, self.parts(value(i))):
                builder.store(part, builder.gep(buffer, [i]))
            latch = builder.block
            return []

        loop(builder, I64(count), [], body)
        latch.terminator.set_metadata("llvm.loop", node(builder.module, *one(count)))

    def lane(self, i):
        return self.whole([self.builder.load(self.builder.gep(buffer, [i])) for buffer in self.buffers])

    def apply(self, x, y):
        return self.context.call_internal(self.builder, self.function, self.call, [x, y])

    def term(self, x, i):
        """Item i, as it is folded."""
        bits = self.builder.load(self.builder.gep(x, [i]))
        bits.align = 1
        value = from_memory(self.context, self.builder, self.spec.item, bits)
        return cast(self.context, self.builder, value, self.spec.item, self.spec.work)

    def parts(self, value):
        """A value as what lies in the lanes: a number, or the two of a complex one."""
        if not self.complex:
            return [to_memory(self.context, self.builder, self.spec.work, value)]
        z = self.context.make_complex(self.builder, self.work, value=value)
        return [z.real, z.imag]

    def whole(self, parts):
        if not self.complex:
            return from_memory(self.context, self.builder, self.spec.work, parts[0])
        z = self.context.make_complex(self.builder, self.work)
        z.real, z.imag = parts
        return z._getvalue()

    def read(self, place):
        value = self.builder.load(place)
        value.align = 1
        return from_memory(self.context, self.builder, self.spec.work, value)

    def write(self, value, place):
        self.builder.store(to_memory(self.context, self.builder, self.spec.work, value), place).align = 1
