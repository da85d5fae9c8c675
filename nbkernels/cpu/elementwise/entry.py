"""Element-wise calls in one step: read the arrays' fields, check everything, run the compiled loops.

The entry is compiled once for all operations and dtypes. It gets the operation's loops as a table: TABLE, then a ROW
for each triple of dtypes, and one of zeros.
"""

from __future__ import annotations

import functools

import numpy as np
from numba import types

from ...jit.address import invoke, pointer, scratch, set_word
from ...jit.cache import compiled, entry
from ...jit.calling import call_loop
from ...jit.made import ANSWER, NONE, answer, as_returned, new_like
from ...jit.ndarray import (
    C_CONTIGUOUS,
    F_CONTIGUOUS,
    OBJECT,
    WRITEABLE,
    ZERO_D,
    address_of,
    as_array,
    data,
    descr,
    flags,
    ndim,
    shape,
    stride,
)
from ...jit.record import Record, address
from ..runtime import threads
from .schedule import STREAMED

# What an entry answers (see made.answer): done; what keeps it from that; with faults, their bits below 0.
DONE, DECLINED, UNKNOWN, LARGE = range(4)
NOTED = 1
# Bytes of the widest operand of an addition from which on threads share the work, without the GIL: a + b of 100,000
# float32 takes one thread 13.1 us, two 8.1 (Zen 4, 2026-11).
SHARED = 1 << 18
# What launches go by (threads.WORDS), the address of _slice or 0, that of made.words().
TABLE = Record("Table", "launch slices numpy")
# Addresses of the dtype objects of out, x, y; their itemsizes; the loops; the most elements to serve under the GIL;
# those from which on spread inputs are not served; bytes of alpha, a float, or NOTED where the loops take note of
# faults, or 0.
ROW = Record("Row", "out x y widths[3] loop most many scalar")
# A call, of which a slice reads the first lines; then what is known of each operand, and alpha or the faults.
SLICE = "at[3] row_steps[3] column_steps[3] loop rows columns tasks"
CALL = Record("Call", f"{SLICE} | steps[3] low[3] high[3] same[3] scalars[2]")
table_at, row_at, call_at = TABLE.pointer(), ROW.pointer(), CALL.pointer()
HEAD, EACH, ROOM = TABLE.bytes, ROW.bytes, CALL.bytes
TASKS = 8 * CALL["tasks"]


def _slice(context, task):
    """One of TASKS equal parts of the rows, or of the columns where there are few rows."""
    f, pointers = call_at(context), scratch(24)
    rows, columns, tasks = f.rows, f.columns, f.tasks
    upright = rows >= 4 * tasks
    whole, steps = (rows, f.row_steps) if upright else (columns, f.column_steps)
    start, stop = whole * task // tasks, whole * (task + 1) // tasks
    for p in range(3):
        set_word(pointers + 8 * p, f.at[p] + start * steps[p])
    rows, columns = (stop - start, columns) if upright else (rows, stop - start)
    call_loop(f.loop, pointers, rows, columns, address(f.row_steps), address(f.column_steps), address(f.scalars))


def allow(table) -> bool:
    """Let the entry do LARGE calls by this table; False where it must not."""
    slices = TABLE["slices"]
    if threads.open_up() and not table[slices]:
        table[slices] = compiled(_slice, "void(int64, int64)", "elementwise_slice")
    return table[slices] != 0


@functools.cache
def small_entry():
    """answer(table, out, x, y, alpha): the result, or DECLINED, UNKNOWN where the table lacks the dtypes, LARGE.

    Serves an out that is contiguous in C or Fortran order, or None, and inputs of any strides that coalesce with it
    into at most two loops; LARGE ones once they are allowed. One body serves all three operands, and it calls no other:
    every helper costs 40 ms to compile.
    """

    def run(table, out, x, y, alpha):
        out, x, y, made = address_of(out), address_of(x), address_of(y), 0
        launch, row = table_at(table), row_at(table + HEAD)
        numpy = launch.numpy
        fresh = out == pointer(numpy)[NONE]
        given = 0 if fresh else as_array(out, out, numpy, 0)
        first = x
        x, y = as_array(x, y, numpy, scratch(ZERO_D)), as_array(y, x, numpy, scratch(ZERO_D))
        if x == 0 or y == 0 or (given == 0 and not fresh):
            return answer(DECLINED, given, made)
        while row.x != descr(x) or row.y != descr(y) or (not fresh and row.out != descr(out)):
            table += EACH
            row = row_at(table + HEAD)
            if row.out == 0:
                return answer(UNKNOWN, given, made)
        if fresh:
            made = new_like(numpy, x if x == first and ndim(x) >= ndim(y) else y, row.out)
            if made == 0:
                return answer(DONE, given, made)
            out = made
        dimensions, dense = ndim(out), flags(out) & (C_CONTIGUOUS | F_CONTIGUOUS)
        if dense == 0 or flags(out) & WRITEABLE == 0 or (dimensions == 0 and row.scalar == NOTED):
            return answer(DECLINED, given, made)
        if ndim(x) != dimensions and ndim(y) != dimensions:
            return answer(DECLINED, given, made)
        room = scratch(ROOM)
        f = call_at(room)
        row_steps, column_steps, steps, low, high, same = f.row_steps, f.column_steps, f.steps, f.low, f.high, f.same
        for p in range(3):
            z = out if p == 0 else x if p == 1 else y
            if ndim(z) > dimensions:
                return answer(DECLINED, given, made)
            start = data(z)
            f.at[p] = low[p] = start
            high[p] = start + row.widths[p]
            same[p] = start == data(out)
            row_steps[p] = column_steps[p] = 0

        rows, columns, level, empty, repeated = 1, 1, 0, False, False  # loops so far: none, columns, columns and rows
        for i in range(dimensions):
            d = dimensions - 1 - i if dense & C_CONTIGUOUS != 0 else i
            n, reached, at, joins = shape(out, d), False, row_steps if level == 2 else column_steps, level > 0
            count = rows if level == 2 else columns
            for p in range(3):
                z = out if p == 0 else x if p == 1 else y
                own = d - dimensions + ndim(z)
                m = shape(z, own) if own >= 0 else 1
                if m != n and m != 1:
                    return answer(DECLINED, given, made)
                step = stride(z, own) if m != 1 else 0
                steps[p] = step
                joins = joins and step == count * at[p]
                if p > 0:
                    if m == n:
                        repeated = repeated or (step == 0 and m > 1)  # which says nothing of the result's order
                        reached = True
                    if n != 1 and (step != steps[0] or abs(step) < row.widths[p]):
                        same[p] = 0
                end = high if step > 0 else low
                end[p] += (n - 1) * step
            if not reached:
                return answer(DECLINED, given, made)
            empty = empty or n == 0
            if n <= 1:
                continue
            if not joins:
                level += 1
                if level == 3:
                    return answer(DECLINED, given, made)
                at = row_steps if level == 2 else column_steps
                for p in range(3):
                    at[p] = steps[p]
            if level == 1:
                columns *= n
            else:
                rows *= n

        if empty or repeated:
            return answer(DONE if empty else DECLINED, given, made)
        large = rows * columns > row.most
        if large and (rows * columns * row.widths[0] >= STREAMED or row.scalar > NOTED):
            return answer(DECLINED, given, made)
        for p in range(1, 3):
            step = column_steps[p]
            if rows * columns >= row.many and step != 0 and step != row.widths[p]:
                return answer(DECLINED, given, made)
            if same[p] == 0 and high[p] > low[0] and high[0] > low[p]:
                return answer(DECLINED, given, made)
        faults, scalars = f.scalars, address(f.scalars)
        faults[0] = faults[1] = 0
        if large:
            pool = threads.pool_at(launch.launch)
            if launch.slices == 0 or pool.share == 0:
                return answer(LARGE, given, made)
            f.loop, f.rows, f.columns = row.loop, rows, columns
            invoke(pool.share, (launch.launch, launch.slices, room, room + TASKS))
        else:
            if row.scalar == 4:
                set_word(scalars, np.float32(alpha))
            elif row.scalar == 8:
                set_word(scalars, alpha)
            call_loop(row.loop, room, rows, columns, address(row_steps), address(column_steps), scalars)
        if row.scalar == NOTED and faults[0] + faults[1] > 0:
            return answer(-faults[0] - 2 * faults[1], given, made)
        return answer(DONE, given, as_returned(numpy, made) if fresh and dimensions == 0 else made)

    kind = ANSWER(types.int64, OBJECT, OBJECT, OBJECT, types.float64)
    return entry(run, kind, "elementwise_small")
