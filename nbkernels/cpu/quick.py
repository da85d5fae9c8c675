"""Element-wise calls in one step: read the arrays' fields, check everything, run the compiled loops.

The entry is compiled once for all operations and dtypes. It gets the operation's loops as a table, in rows of eight
int64: a first one, one for each triple of dtypes, and one of zeros:

    what launches go by (threads.WORDS);  the address of _slice, or 0;  nothing

    addresses of the dtype objects of out, x, y;  their itemsizes;  the loops;  256 * the most elements to serve
    under the GIL + bytes of alpha, a float, or 0
"""

from __future__ import annotations

import functools

import numpy as np
from numba import types

from ..jit.address import call, invoke, number, reacquire, release, scratch, set_word, word
from ..jit.cache import compiled, entry
from ..jit.loops import call_loop
from ..jit.ndarray import (
    C_CONTIGUOUS,
    F_CONTIGUOUS,
    OBJECT,
    WRITEABLE,
    address_of,
    data,
    descr,
    flags,
    ndim,
    shape,
    stride,
)
from . import threads
from .nest import MANY, STREAMED

DONE, DECLINED, UNKNOWN, LARGE = 0, 1, 2, 3  # what the small entry answers
# Bytes of the widest operand of an addition from which on threads share the work, without the GIL: a + b of 100,000
# float32 takes one thread 13.1 us, two 8.1 (Zen 4, 2026-11).
SHARED = 1 << 18
LAUNCH, SLICES, ROWS_FROM = 0, 8, 64  # of a table: words to launch by, the address of _slice, its rows
POINTERS, ROW_STEPS, COLUMN_STEPS, LOOP, ROWS, COLUMNS, TASKS = 0, 24, 48, 72, 80, 88, 96  # of a slice's context


def _slice(context, task):
    """One of TASKS equal parts of the rows, or of the columns where there are few rows."""
    rows, columns, tasks = word(context + ROWS), word(context + COLUMNS), word(context + TASKS)
    upright = rows >= 4 * tasks
    whole, steps = (rows, context + ROW_STEPS) if upright else (columns, context + COLUMN_STEPS)
    start, stop = whole * task // tasks, whole * (task + 1) // tasks
    pointers = scratch(24)
    for p in range(3):
        set_word(pointers + 8 * p, word(context + 8 * p) + start * word(steps + 8 * p))
    rows, columns = (stop - start, columns) if upright else (rows, stop - start)
    call_loop(word(context + LOOP), pointers, rows, columns, context + ROW_STEPS, context + COLUMN_STEPS, 0)


def allow(table) -> bool:
    """Let the entry do LARGE calls by this table (its first row); False where it must not."""
    if threads.open_up() and not table[SLICES // 8]:
        table[SLICES // 8] = compiled(_slice, "void(int64, int64)", "elementwise_slice")
    return table[SLICES // 8] != 0


@functools.cache
def small_entry():
    """int64(table, out, x, y, alpha): DONE, DECLINED, UNKNOWN where the table lacks the dtypes, or LARGE.

    Serves an out that is contiguous in C or Fortran order, and inputs of any strides that coalesce with it into at most
    two loops; LARGE ones once they are allowed. One body serves all three operands, and it calls no other: every helper
    costs 40 ms to compile.
    """

    def run(table, out, x, y, alpha):
        row = table + ROWS_FROM
        out, x, y = address_of(out), address_of(x), address_of(y)
        while word(row) != descr(out) or word(row + 8) != descr(x) or word(row + 16) != descr(y):
            row += 64
            if word(row) == 0:
                return UNKNOWN
        dimensions, dense = ndim(out), flags(out) & (C_CONTIGUOUS | F_CONTIGUOUS)
        if dimensions == 0 or dense == 0 or flags(out) & WRITEABLE == 0:
            return DECLINED
        if ndim(x) != dimensions and ndim(y) != dimensions:
            return DECLINED
        room = scratch(256)  # a slice's context; words for each operand, and alpha
        pointers, row_steps, column_steps, steps = room, room + ROW_STEPS, room + COLUMN_STEPS, room + 104
        low, high, same, scalars = room + 128, room + 152, room + 176, room + 200
        for p in range(3):
            z = out if p == 0 else x if p == 1 else y
            if ndim(z) > dimensions:
                return DECLINED
            set_word(pointers + 8 * p, data(z))
            set_word(low + 8 * p, data(z))
            set_word(high + 8 * p, data(z) + word(row + 24 + 8 * p))
            set_word(same + 8 * p, 1 if data(z) == data(out) else 0)
            set_word(row_steps + 8 * p, 0)
            set_word(column_steps + 8 * p, 0)

        rows, columns, level = 1, 1, 0  # loops so far: none, columns, columns and rows
        for i in range(dimensions):
            d = dimensions - 1 - i if dense & C_CONTIGUOUS != 0 else i
            n, reached = shape(out, d), False
            for p in range(3):
                z = out if p == 0 else x if p == 1 else y
                own = d - dimensions + ndim(z)
                m = shape(z, own) if own >= 0 else 1
                if m != n and m != 1:
                    return DECLINED
                step = stride(z, own) if m != 1 else 0
                if p > 0 and m == n:
                    if step == 0 and m != 1:  # repeated by its strides, which say nothing of the result's order
                        return DECLINED
                    reached = True
                if n != 1 and (step != word(steps) or abs(step) < word(row + 24 + 8 * p)) and p > 0:
                    set_word(same + 8 * p, 0)
                set_word(steps + 8 * p, step)
                end = (high if step > 0 else low) + 8 * p
                set_word(end, word(end) + (n - 1) * step)
            if n == 0 or not reached:
                return DECLINED
            if n == 1:
                continue
            count, at = (columns, column_steps) if level < 2 else (rows, row_steps)
            joins = level > 0
            for p in range(3):
                joins = joins and word(steps + 8 * p) == count * word(at + 8 * p)
            if not joins:
                level += 1
                if level == 3:
                    return DECLINED
                count, at = 1, column_steps if level == 1 else row_steps
                for p in range(3):
                    set_word(at + 8 * p, word(steps + 8 * p))
            if level == 1:
                columns = count * n
            else:
                rows = count * n

        large = rows * columns > word(row + 56) >> 8
        if large and (rows * columns * word(row + 24) >= STREAMED or word(row + 56) & 255 != 0):
            return DECLINED
        for p in range(1, 3):
            step = word(column_steps + 8 * p)
            if rows * columns >= MANY and step != 0 and step != word(row + 24 + 8 * p):
                return DECLINED
            apart = word(high + 8 * p) <= word(low) or word(high) <= word(low + 8 * p)
            if not apart and word(same + 8 * p) == 0:
                return DECLINED
        if large:
            launch, slices = word(table + LAUNCH), word(table + SLICES)
            if slices == 0 or word(launch + threads.OPEN) == 0:
                return LARGE
            tasks = number(word(launch + threads.COUNT)) if word(launch + threads.BUSY) == 0 else 1
            set_word(room + LOOP, word(row + 48))
            set_word(room + ROWS, rows)
            set_word(room + COLUMNS, columns)
            set_word(room + TASKS, tasks)
            if tasks > 1:
                set_word(launch + threads.BUSY, 1)
            state = release()
            if tasks > 1:
                invoke(word(launch + threads.RUNNER), (slices, room, tasks))
            else:
                call(slices, room, 0)
            reacquire(state)
            if tasks > 1:
                set_word(launch + threads.BUSY, 0)
            return DONE
        if word(row + 56) & 255 == 4:
            set_word(scalars, np.float32(alpha))
        else:
            set_word(scalars, alpha)
        call_loop(word(row + 48), pointers, rows, columns, row_steps, column_steps, scalars)
        return DONE

    kind = types.int64(types.int64, OBJECT, OBJECT, OBJECT, types.float64)
    return entry(run, kind, "elementwise_small")
