"""Small element-wise calls in one step: read the arrays' fields, check everything, run the compiled loops.

The entry is compiled once for all operations and dtypes. It gets the operation's loops as a table, in rows of eight
int64 that end with a row of zeros:

    addresses of the dtype objects of out, x, y;  their itemsizes;  the loops;  256 * the most elements to serve
    + bytes of alpha, a float, or 0
"""

from __future__ import annotations

import functools

import numpy as np

from ..jit.address import scratch
from ..jit.cache import entry
from ..jit.loops import call_loop, set_word, word
from ..jit.ndarray import C_CONTIGUOUS, F_CONTIGUOUS, WRITEABLE, data, descr, flags, ndim, shape, stride

DONE, DECLINED, UNKNOWN = 0, 1, 2  # what the small entry answers
# Elements of an addition up to which one call does all the work under the GIL, at most 40 us of it. The way by a plan
# costs 10 us more, and threads gain nothing below.
SMALL = 1 << 17


@functools.cache
def small_entry():
    """int64(table, id of out, of x, of y, alpha): DONE, DECLINED, or UNKNOWN where the table lacks the dtypes.

    Serves an out that is contiguous in C or Fortran order, and inputs of any strides that coalesce with it into at most
    two loops. One body serves all three operands, and it calls no other: every helper costs 40 ms to compile.
    """

    def run(row, out, x, y, alpha):
        while word(row) != descr(out) or word(row + 8) != descr(x) or word(row + 16) != descr(y):
            row += 64
            if word(row) == 0:
                return UNKNOWN
        dimensions, dense = ndim(out), flags(out) & (C_CONTIGUOUS | F_CONTIGUOUS)
        if dimensions == 0 or dense == 0 or flags(out) & WRITEABLE == 0:
            return DECLINED
        if ndim(x) != dimensions and ndim(y) != dimensions:
            return DECLINED
        room = scratch(256)  # words for each operand, and alpha
        pointers, row_steps, column_steps, steps = room, room + 24, room + 48, room + 72
        low, high, same, scalars = room + 96, room + 120, room + 144, room + 168
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

        if rows * columns > word(row + 56) >> 8:
            return DECLINED
        for p in range(1, 3):
            apart = word(high + 8 * p) <= word(low) or word(high) <= word(low + 8 * p)
            if not apart and word(same + 8 * p) == 0:
                return DECLINED
        if word(row + 56) & 255 == 4:
            set_word(scalars, np.float32(alpha))
        else:
            set_word(scalars, alpha)
        call_loop(word(row + 48), pointers, rows, columns, row_steps, column_steps, scalars)
        return DONE

    return entry(run, "int64(int64, int64, int64, int64, float64)", "elementwise_small")
