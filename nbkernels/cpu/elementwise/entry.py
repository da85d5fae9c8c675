"""Element-wise calls in one step: read the arrays' fields, check everything, run the compiled loops.

The entry is compiled once for all operations and dtypes. It gets the operation's loops as a table: a HEAD, a ROW for
each triple of dtypes, and one of zeros.
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.abi import ndarray
from ...jit.abi.address import invoke, pointer, real, scratch, set_word, word
from ...jit.abi.ndarray import ZERO_D, address_of, as_array, data, descr, flags, ndim, shape, stride
from ...jit.abi.new_arrays import FLOAT, NONE, ONE, answer, as_returned, new_like
from ...jit.abi.record import Record, address
from ...jit.compile.cache import compiled, entry
from ...jit.ir.vector import LINE
from ..runtime import threads
from .gates import MANY

# What an entry answers (see made.answer): done; what keeps it from that; with faults, their bits below 0.
DONE, DECLINED, UNKNOWN, LARGE = range(4)
WAITING = 4  # and where it is not asked yet
NOTED = 1
# The address of threads.WORDS, for launches; of _slice, or 0; of new_arrays.words(); the bytes gates.STREAMED; the
# address of the rows for calls with an alpha, or 0.
HEAD = Record("Head", "launch slices numpy streamed scaled")
# Addresses of the dtype objects of out, x and y, their itemsizes, the loops; the most elements to serve under the GIL
# << 24 | those from which on spread inputs are not served << 8 | bytes of alpha, a float, or NOTED where the loops take
# note of faults, or 0.
ROW = Record("Row", "out x y size[3] loops limits")
# A call: for each operand its address and its steps in bytes, the loops, how many rows and columns, threads; then, for
# each, the step at hand, its extent and whether it is out element for element; alpha, or faults.
CALL = Record(
    "Call", "at[3] row_step[3] column_step[3] loops rows columns tasks step[3] low[3] high[3] same[3] scalars[2]"
)
head_at, row_at, call_at, BYTES, ROOM = HEAD.pointer(), ROW.pointer(), CALL.pointer(), ROW.bytes, CALL.bytes
ROW_STEPS, COLUMN_STEPS, TASKS, SCALARS = (8 * CALL[word] for word in ("row_step", "column_step", "tasks", "scalars"))
assert BYTES == HEAD.bytes == 8 * ROW.words


def _slice(f, task):
    """One of so many equal parts of the rows, or of the columns where there are few rows."""
    context, pointers, rows, columns, tasks = address(f), scratch(24), f.rows, f.columns, f.tasks
    upright = rows >= 4 * tasks
    whole, steps = (rows, f.row_step) if upright else (columns, f.column_step)
    start, stop = whole * task // tasks, whole * (task + 1) // tasks
    for p in range(3):
        set_word(pointers + 8 * p, f.at[p] + start * steps[p])
    rows, columns = (stop - start, columns) if upright else (rows, stop - start)
    invoke(f.loops, (pointers, rows, columns, context + ROW_STEPS, context + COLUMN_STEPS, context + SCALARS))


def allow(table) -> bool:
    """Let the entry do LARGE calls by this table (its head); False where it must not."""
    slices = HEAD["slices"]
    if threads.open_up() and not table[slices]:
        table[slices] = compiled(_slice, CALL.kernel, "elementwise_slice")
    return table[slices] != 0


@functools.cache
def small_entry():
    """bind(rows of a table): the compiled function for calls (x, out), (x, y, out) and (x, y, alpha, out).

    It returns the result, or DECLINED, UNKNOWN where the table lacks the dtypes, LARGE; alpha is a float or 1.
    Serves an out that is contiguous in C or Fortran order, or None, and inputs of any strides that coalesce with it
    into at most two loops; LARGE ones once they are allowed. One body serves all three operands, and it calls no other:
    every helper costs 40 ms to compile.
    """

    def run(owner, arguments, count):
        table, arguments, count, made = data(address_of(owner)), pointer(address_of(arguments)), address_of(count), 0
        head, row = head_at(table), row_at(table + BYTES)
        numpy = head.numpy
        names, x, y, out = pointer(numpy), arguments[0], arguments[1 if count > 2 else 0], arguments[count - 1]
        alpha, factor = arguments[2] if count > 3 else names[ONE], 1.0
        if alpha != names[ONE]:
            if head.scaled == 0 or word(alpha + ndarray.HEAD - 8) != names[FLOAT]:
                return answer(DECLINED, 0, 0)
            table, factor = head.scaled, real(alpha + ndarray.HEAD)
            head, row = head_at(table), row_at(table + BYTES)
        fresh = out == names[NONE]
        given = 0 if fresh else as_array(out, out, numpy, 0)
        first = x
        x, y = as_array(x, y, numpy, scratch(ZERO_D)), as_array(y, x, numpy, scratch(ZERO_D))
        if x == 0 or y == 0 or (given == 0 and not fresh):
            return answer(DECLINED, given, made)
        while row.x != descr(x) or row.y != descr(y) or (not fresh and row.out != descr(out)):
            table += BYTES
            row = row_at(table + BYTES)
            if row.out == 0:
                return answer(UNKNOWN, given, made)
        if fresh:
            made = new_like(numpy, x if x == first and ndim(x) >= ndim(y) else y, row.out)
            if made == 0:
                return answer(DONE, given, made)
            out = made
        dimensions, dense, noted = (
            ndim(out),
            flags(out) & (ndarray.C_CONTIGUOUS | ndarray.F_CONTIGUOUS),
            row.limits & 255,
        )
        if dense == 0 or flags(out) & ndarray.WRITEABLE == 0 or (dimensions == 0 and noted == NOTED):
            return answer(DECLINED, given, made)
        if ndim(x) != dimensions and ndim(y) != dimensions:
            return answer(DECLINED, given, made)
        room = scratch(ROOM)
        f = call_at(room)
        row_steps, column_steps, steps, low, high, same = f.row_step, f.column_step, f.step, f.low, f.high, f.same
        for p in range(3):
            z = out if p == 0 else x if p == 1 else y
            if ndim(z) > dimensions:
                return answer(DECLINED, given, made)
            start = data(z)
            f.at[p] = low[p] = start
            high[p] = start + row.size[p]
            same[p] = start == data(out)
            row_steps[p] = column_steps[p] = 0

        rows, columns, level, empty, repeated = 1, 1, 0, False, False  # loops so far: none, columns, columns and rows
        for i in range(dimensions):
            d = dimensions - 1 - i if dense & ndarray.C_CONTIGUOUS != 0 else i
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
                    if n != 1 and (step != steps[0] or abs(step) < row.size[p]):
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
        large = rows * columns > row.limits >> 24
        if large and (rows * columns * row.size[0] >= head.streamed or noted > NOTED):
            return answer(DECLINED, given, made)
        many = rows * columns >= row.limits >> 8 & 0xFFFF
        if rows * LINE >= 4 * MANY and columns * row.size[0] <= LINE:  # short rows: a plan lays them end to end
            return answer(DECLINED, given, made)
        for p in range(1, 3):
            step = column_steps[p]
            if many and step != 0 and step != row.size[p]:
                return answer(DECLINED, given, made)
            if same[p] == 0 and high[p] > low[0] and high[0] > low[p]:
                return answer(DECLINED, given, made)
        faults = f.scalars
        faults[0] = faults[1] = 0
        if large:
            pool = threads.pool_at(head.launch)
            if head.slices == 0 or pool.share == 0:
                return answer(LARGE, given, made)
            f.loops, f.rows, f.columns = row.loops, rows, columns
            invoke(pool.share, (head.launch, head.slices, room, room + TASKS))
        else:
            if noted == 4:
                set_word(room + SCALARS, np.float32(factor))
            elif noted == 8:
                set_word(room + SCALARS, factor)
            invoke(row.loops, (room, rows, columns, room + ROW_STEPS, room + COLUMN_STEPS, room + SCALARS))
        if noted == NOTED and faults[0] + faults[1] > 0:
            return answer(-faults[0] - 2 * faults[1], given, made)
        return answer(DONE, given, as_returned(numpy, made) if fresh and dimensions == 0 else made)

    kind = "answer(owner, arguments, count)"
    return entry(run, kind, "elementwise_small", loops=True, bound=True)  # over three operands: 20 ns
