"""Sums and products of rows whose neighbours touch, a vector of rows at a time: each lane keeps a row's chains.

The order is cpu/reduce.py's. Column q of a row goes to its chain q mod 16, wherever its block begins: which chain is
which does not show, for halves are added to halves, and a + b is b + a.
"""

from __future__ import annotations

import functools

from llvmlite import ir

from ...jit.compile.routine import ir_function
from ...jit.ir.vector import I32, I64, LINE, SIZE, Lanes, loop, width_bits
from .fold_loop import LANES

# What goes so: operation -> what a chain holds before its first term.
NOTHING = {"add": -0.0, "multiply": 1.0}
END = 40  # bytes of what is said of a row: where its chains begin, its phase mod 16, where the result of block 0 would
# be, the first block and the last one that are wanted


def real(op: str, dtype: str) -> tuple[str, int] | None:
    """The real numbers that are folded, and how many an item has; None where these are not folded so."""
    if op == "add" and dtype.startswith("complex"):
        return ("float32" if dtype == "complex64" else "float64"), 2
    return (dtype, 1) if op in NOTHING and dtype in SIZE else None


@functools.cache
def taker(op: str, kind: str) -> int:
    """Address of void(partial, pitch, x, pace, columns, rows, ahead): partial[m, r] = op(partial[m, r], x[m, r]).

    There is a line's room at the end of partial results, of which the next row may begin there: its values stay.
    Columns of x are `pace` bytes apart, and what is `ahead` bytes on is asked for, unless that is 0.
    """

    def emit(context, builder, partial, pitch, x, pace, columns, rows, ahead):
        lanes = Lanes(builder, kind, width_bits() // 8 // SIZE[kind])
        count, each, pointer = I64(lanes.count), LINE // SIZE[kind], lanes.element.as_pointer()
        whole, left = builder.sdiv(rows, count), builder.srem(rows, count)
        lines = builder.sdiv(builder.add(rows, I64(each - 1)), I64(each))
        lines = builder.select(builder.icmp_signed("!=", ahead, I64(0)), lines, I64(0))

        def column(m, _):
            to = builder.inttoptr(builder.add(partial, builder.mul(m, pitch)), pointer)
            start = builder.add(x, builder.mul(m, pace))
            source, soon = builder.inttoptr(start, pointer), builder.inttoptr(builder.add(start, ahead), pointer)

            def step(k, mask=None):
                at = builder.mul(k, count)
                place, term = lanes.at(to, at), lanes.load(lanes.at(source, at), mask)
                before = lanes.load(place)
                value = _applied(builder, op, before, term)
                lanes.store(value if mask is None else builder.select(mask, value, before), place)
                return []

            loop(builder, lines, [], lambda k, _: lanes.prefetch(lanes.at(soon, builder.mul(k, I64(each)))) or [])
            loop(builder, whole, [], lambda k, _: step(k))
            with builder.if_then(builder.icmp_signed(">", left, I64(0))):
                step(whole, lanes.mask(left))
            return []

        loop(builder, columns, [], column)

    return ir_function(emit, "partial pitch x pace columns rows ahead", f"abreast_take_{op}_{kind}").address


@functools.cache
def ender(op: str, kind: str, each: int) -> int:
    """Address of void(ends, count, pitch, done, block, nowhere, after) for rows where a block ends in the next 16
    columns, of items of `each` real numbers.

    Before these columns the chains from the phase on have ended, are kept at `done` and begin anew; after them so have
    the others, and what all of them make goes to the block's place. Neither branches by the phase, which would be
    guessed wrong: 74 ns a block, so 25 (Zen 3, 2026-11). Where all phases are 0, `after` is 2, once is enough.
    """

    def emit(context, builder, ends, count, pitch, done, block, nowhere, after):
        lanes = Lanes(builder, kind, LANES * each)
        one, pointer = lanes.narrower(each), lanes.element.as_pointer()
        nothing = ir.Constant(lanes.type, [NOTHING[op]] * lanes.count)
        index = ir.IntType(8 * SIZE[kind])  # as wide as the numbers: so masks need no conversion
        order = ir.Constant(ir.VectorType(index, lanes.count), [i // each for i in range(lanes.count)])

        def rows(body):
            def row(i, _):
                at = builder.inttoptr(builder.add(ends, builder.mul(i, I64(END))), I64.as_pointer())
                start, phase, out, least, most = (builder.load(builder.gep(at, [I64(k)])) for k in range(5))
                places, kept = [], builder.add(done, builder.mul(i, I64(LANES * each * SIZE[kind])))
                for _ in range(LANES):
                    places.append(builder.inttoptr(start, pointer))
                    start = builder.add(start, pitch)
                value = ir.Constant(lanes.type, ir.Undefined)
                for m, place in enumerate(places):
                    for part in range(each):
                        number = builder.load(lanes.at(place, part))
                        number.align = 4
                        value = builder.insert_element(value, number, I32(m * each + part))
                before = builder.icmp_signed(
                    "<", order, lanes.splat(builder.trunc(phase, index) if index != I64 else phase)
                )

                def leave(kept):
                    for m, place in enumerate(places):
                        for part in range(each):
                            number = builder.extract_element(kept, I32(m * each + part))
                            builder.store(number, lanes.at(place, part)).align = 4

                def give(value):
                    half = lanes.count // 2
                    while half >= each:
                        value = _applied(builder, op, *lanes.narrower(2 * half).parts(value, half))
                        half //= 2
                    wanted = builder.and_(
                        builder.icmp_signed("<=", least, block), builder.icmp_signed("<=", block, most)
                    )
                    place = builder.add(out, builder.mul(block, I64(each * SIZE[kind])))
                    one.store(value, builder.inttoptr(builder.select(wanted, place, nowhere), pointer))

                body(value, before, builder.inttoptr(kept, pointer), leave, give)
                return []

            loop(builder, count, [], row)

        def begin(value, before, kept, leave, give):
            lanes.store(value, kept)
            leave(builder.select(before, value, nothing))

        def end(value, before, kept, leave, give):
            leave(builder.select(before, nothing, value))
            give(builder.select(before, value, lanes.load(kept)))

        def whole(value, before, kept, leave, give):
            leave(nothing)
            give(value)

        for k, body in enumerate((begin, end, whole)):
            with builder.if_then(builder.icmp_signed("==", after, I64(k))):
                rows(body)

    return ir_function(emit, "ends count pitch done block nowhere after", f"abreast_end_{op}_{kind}_{each}").address


def _applied(builder, op, a, b):
    return builder.fadd(a, b) if op == "add" else builder.fmul(a, b)
