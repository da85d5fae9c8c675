"""Rows of an element-wise operation whose output is stored past the caches, a line at a time."""

from __future__ import annotations

from llvmlite import ir

from ...jit.compile.lazy import cgutils
from ...jit.ir.loop_metadata import one
from ...jit.ir.vector import I32, I64, LINE, Lanes, loop, width_bits

LIGHT = 32  # bytes of a vector in a loop that waits for memory, as in NumPy's and torch's loops
# Bytes of rows of streamed loops that are tiles, and short rows that are asked for ahead, for their memory is not one
# stream: with 256 bytes of each 4000 x 4000 float32, their sum to be stored, take 11.8 ms, so 6.9 (AVX2, 2026-11).
NARROW, AHEAD = 1 << 10, 8


def asked(emitter):
    """How far below a row what its operands' rows of tiles ask for lies, in bytes."""
    builder = emitter.builder
    narrow = builder.icmp_signed("<=", emitter.columns, I64(NARROW // emitter.widths[0]))
    return [builder.select(narrow, builder.mul(n, I64(AHEAD)), I64(0)) for n in emitter.outer]


def before(emitter, base):
    """Elements before the output's first whole line, none where there is none; at most the row."""
    builder, size = emitter.builder, emitter.widths[0]
    rest = builder.and_(builder.neg(builder.ptrtoint(base[0], I64)), I64(LINE - 1))
    odd = builder.icmp_signed("!=", builder.and_(rest, I64(size - 1)), I64(0))  # never at the start of a line
    rest = builder.select(odd, emitter.columns, builder.sdiv(rest, I64(size)))
    return builder.select(builder.icmp_signed("<", rest, emitter.columns), rest, emitter.columns)


def shifted(emitter, head, columns, ends):
    """The first of a misaligned row's columns that are done here; emitter.columns becomes their end."""
    builder = emitter.builder
    shift = builder.select(builder.icmp_signed("<", head, columns), head, I64(0))  # else nothing goes by lines
    first, beyond = (builder.and_(shift, end) for end in ends)
    emitter.columns = builder.add(columns, beyond)
    return first


def past(emitter, line, place):
    """Store a line past the caches."""
    store = emitter.builder.store(line, emitter.builder.bitcast(place, line.type.as_pointer()))
    store.align = LINE
    store.set_metadata("nontemporal", emitter.builder.module.add_metadata([I32(1)]))


def lines(emitter, base, steps, head):
    """A contiguous row from its first whole line on: whole lines by streaming stores, the rest.

    A line is computed into a buffer that LLVM turns into a register: the loop over it is one vector long.
    """
    builder, size = emitter.builder, emitter.widths[0]
    lanes = LINE // size  # of a streaming store: a full line leaves for memory at once
    vector = ir.VectorType(ir.IntType(8 * size), lanes)  # of complex numbers there are none
    buffer = cgutils.alloca_once(builder, vector)
    buffer.align = LINE
    room = builder.bitcast(buffer, emitter.element[0])
    count = emitter.columns
    whole = builder.sdiv(builder.sub(count, head), I64(lanes))

    def line(q, _):
        column = builder.add(head, builder.mul(q, I64(lanes)))
        for p in emitter.operands[emitter.count :] if width_bits() < 512 else ():
            if steps[p] == emitter.widths[p]:
                place = builder.add(builder.ptrtoint(emitter.at(base, steps, p, column), I64), emitter.asked[p])
                Lanes(builder, "int8", 1).prefetch(builder.inttoptr(place, emitter.element[p]))
        emitter.span(base, steps, column, I64(lanes), room, one(lanes) if None not in steps else ())
        value = builder.load(buffer)
        value.align = LINE
        past(emitter, value, emitter.at(base, steps, 0, column))
        return []

    loop(builder, whole, [], line)
    done = builder.add(head, builder.mul(whole, I64(lanes)))
    emitter.span(base, steps, done, builder.sub(count, done))
