"""Element-wise calls in one step: read the arrays' fields, check everything, run the compiled loops.

The entry is compiled once for all operations and dtypes. It gets the operation's loops as a table, in rows of eight
int64: a first one, one for each triple of dtypes, and one of zeros:

    what launches go by (threads.WORDS);  the address of _slice, or 0;  that of made.words();  gates.STREAMED

    addresses of the dtype objects of out, x, y;  their itemsizes;  the loops;  the most elements to serve under the
    GIL << 24 | those from which on spread inputs are not served << 8 | bytes of alpha, a float, or NOTED where the
    loops take note of faults, or 0
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
from ..runtime import threads

# What an entry answers (see made.answer): done; what keeps it from that; with faults, their bits below 0.
DONE, DECLINED, UNKNOWN, LARGE = range(4)
WAITING = 4  # and where it is not asked yet
NOTED = 1
LAUNCH, SLICES, NUMPY, STREAMED = 0, 1, 2, 3  # words of a table, before its rows
LOOP, ROWS, COLUMNS = 9, 10, 11  # words of a slice's context, which begins with the pointers
ROW_STEPS, COLUMN_STEPS, TASKS, STEPS, LOW, HIGH, SAME, SCALARS, ROOM = (
    24,
    48,
    96,
    104,
    128,
    152,
    176,
    200,
    216,
)  # bytes


def _slice(context, task):
    """One of TASKS equal parts of the rows, or of the columns where there are few rows."""
    f, pointers = pointer(context), scratch(24)
    rows, columns, tasks = f[ROWS], f[COLUMNS], f[TASKS // 8]
    upright = rows >= 4 * tasks
    whole, steps = (rows, pointer(context + ROW_STEPS)) if upright else (columns, pointer(context + COLUMN_STEPS))
    start, stop = whole * task // tasks, whole * (task + 1) // tasks
    for p in range(3):
        set_word(pointers + 8 * p, f[p] + start * steps[p])
    rows, columns = (stop - start, columns) if upright else (rows, stop - start)
    call_loop(f[LOOP], pointers, rows, columns, context + ROW_STEPS, context + COLUMN_STEPS, context + SCALARS)


def allow(table) -> bool:
    """Let the entry do LARGE calls by this table (its first row); False where it must not."""
    if threads.open_up() and not table[SLICES]:
        table[SLICES] = compiled(_slice, "void(int64, int64)", "elementwise_slice")
    return table[SLICES] != 0


@functools.cache
def small_entry():
    """answer(table, out, x, y, alpha): the result, or DECLINED, UNKNOWN where the table lacks the dtypes, LARGE.

    Serves an out that is contiguous in C or Fortran order, or None, and inputs of any strides that coalesce with it
    into at most two loops; LARGE ones once they are allowed. One body serves all three operands, and it calls no other:
    every helper costs 40 ms to compile.
    """

    def run(table, out, x, y, alpha):
        out, x, y, made = address_of(out), address_of(x), address_of(y), 0
        launch, row = pointer(table), pointer(table + 64)
        numpy = launch[NUMPY]
        fresh = out == pointer(numpy)[NONE]
        given = 0 if fresh else as_array(out, out, numpy, 0)
        first = x
        x, y = as_array(x, y, numpy, scratch(ZERO_D)), as_array(y, x, numpy, scratch(ZERO_D))
        if x == 0 or y == 0 or (given == 0 and not fresh):
            return answer(DECLINED, given, made)
        while row[1] != descr(x) or row[2] != descr(y) or (not fresh and row[0] != descr(out)):
            table += 64
            row = pointer(table + 64)
            if row[0] == 0:
                return answer(UNKNOWN, given, made)
        if fresh:
            made = new_like(numpy, x if x == first and ndim(x) >= ndim(y) else y, row[0])
            if made == 0:
                return answer(DONE, given, made)
            out = made
        dimensions, dense = ndim(out), flags(out) & (C_CONTIGUOUS | F_CONTIGUOUS)
        if dense == 0 or flags(out) & WRITEABLE == 0 or (dimensions == 0 and row[7] & 255 == NOTED):
            return answer(DECLINED, given, made)
        if ndim(x) != dimensions and ndim(y) != dimensions:
            return answer(DECLINED, given, made)
        room = scratch(ROOM)  # a slice's context; words for each operand, and alpha
        context, pointers = pointer(room), pointer(room)
        row_steps, column_steps, steps = pointer(room + ROW_STEPS), pointer(room + COLUMN_STEPS), pointer(room + STEPS)
        low, high, same = pointer(room + LOW), pointer(room + HIGH), pointer(room + SAME)
        for p in range(3):
            z = out if p == 0 else x if p == 1 else y
            if ndim(z) > dimensions:
                return answer(DECLINED, given, made)
            start = data(z)
            pointers[p] = low[p] = start
            high[p] = start + row[3 + p]
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
                    if n != 1 and (step != steps[0] or abs(step) < row[3 + p]):
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
        large = rows * columns > row[7] >> 24
        if large and (rows * columns * row[3] >= launch[STREAMED] or row[7] & 255 > NOTED):
            return answer(DECLINED, given, made)
        for p in range(1, 3):
            step = column_steps[p]
            if rows * columns >= row[7] >> 8 & 0xFFFF and step != 0 and step != row[3 + p]:
                return answer(DECLINED, given, made)
            if same[p] == 0 and high[p] > low[0] and high[0] > low[p]:
                return answer(DECLINED, given, made)
        faults = pointer(room + SCALARS)
        faults[0] = faults[1] = 0
        if large:
            pool = threads.pool_at(launch[LAUNCH])
            if launch[SLICES] == 0 or pool.share == 0:
                return answer(LARGE, given, made)
            context[LOOP], context[ROWS], context[COLUMNS] = row[6], rows, columns
            invoke(pool.share, (launch[LAUNCH], launch[SLICES], room, room + TASKS))
        else:
            if row[7] & 255 == 4:
                set_word(room + SCALARS, np.float32(alpha))
            elif row[7] & 255 == 8:
                set_word(room + SCALARS, alpha)
            call_loop(row[6], room, rows, columns, room + ROW_STEPS, room + COLUMN_STEPS, room + SCALARS)
        if row[7] & 255 == NOTED and faults[0] + faults[1] > 0:
            return answer(-faults[0] - 2 * faults[1], given, made)
        return answer(DONE, given, as_returned(numpy, made) if fresh and dimensions == 0 else made)

    kind = ANSWER(types.int64, OBJECT, OBJECT, OBJECT, types.float64)
    return entry(run, kind, "elementwise_small")
