"""The kernels of `at`: where each row of x goes, and what it does there.

A block is THREADS >> shift groups of neighbouring threads. A group takes one row after the other, its threads, and the
blocks along y, the row's columns.
"""

from __future__ import annotations

from numba import cuda, types

from ...dtypes import HALVES
from .atomics import folding
from .elements import computed, reading, stored, writing
from .functions import device, inlined

INT64 = types.int64
SHORT = frozenset(("add", "subtract", "multiply"))  # of few instructions, so that loops of them are unrolled


def walking(ndim: int):
    """distance(i, shape, steps): where element i, in C order, of `ndim` loops lies."""
    NDIM = ndim

    @inlined
    def distance(i, shape, steps):
        rest, at = i, 0
        for d in range(NDIM - 1, 0, -1):
            quotient = rest // shape[d]
            at, rest = at + (rest - quotient * shape[d]) * steps[d], quotient
        return at + rest * steps[0]

    return distance


def locate(item: str, target: str, ndim: int, first: bool):
    """targets[i] += start + index[i] * step, from 0 on if it is the first; below 0 it counts from the end of `size`.

    Where an index is outside, targets[i] = -1 and outside[0] = 1.
    """
    ITEM, TARGET, FIRST = stored(item), stored(target), first
    distance = walking(ndim)

    def run(count, index, steps, shape, size, start, step, targets, outside):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            place = INT64(index[distance(i, shape, steps)])
            place = place + size if place < 0 else place
            before = INT64(0) if FIRST else INT64(targets[i])
            found = before + start + place * step
            if place < 0 or place >= size:
                outside[0] = 1
                found = INT64(-1)
            targets[i] = TARGET(INT64(-1) if before < 0 else found)

    loops = types.UniTuple(INT64, ndim)
    index, targets, outside = map(types.CPointer, (ITEM, TARGET, types.int32))
    return run, (INT64, index, loops, loops, INT64, INT64, INT64, targets, outside)


def once(op: str, function, compute, out: str, item: str, target: str, ndim: int, columns: int):
    """out[targets[i] + c] = function(out[targets[i] + c], x[i, c]), where no two rows have the same target."""
    call = device(function, "float32" if compute[0] in HALVES else compute[0])
    X, Y, RESULT = map(computed, compute)
    again, write = reading(out), writing(out)

    @inlined
    def fold(x, i, value):
        write(x, i, RESULT(call(X(again(x, i)), Y(value))))

    return scattered(fold, out, item, target, ndim, columns)


def atomic(op: str, function, compute, out: str, item: str, target: str, ndim: int, columns: int):
    """out[targets[i] + c] = function(out[targets[i] + c], x[i, c]) by atomics, rows of one target in any order."""
    return scattered(folding(op, function, out, compute), out, item, target, ndim, columns)


def scattered(fold, out: str, item: str, target: str, ndim: int, columns: int):
    read, of_row, of_column = reading(item), walking(ndim), walking(columns)

    def run(rows, width, shift, targets, out, out_steps, x, row_shape, row_steps, shape, steps):
        lanes = INT64(1) << shift
        lane = (cuda.threadIdx.x & (lanes - 1)) + cuda.blockIdx.y * lanes
        for row in range(cuda.grid(1) >> shift, rows, cuda.gridsize(1) >> shift):
            place = INT64(targets[row])
            source, column = of_row(row, row_shape, row_steps), lane if place >= 0 else width
            while column < width:  # a range would divide once for each row
                fold(out, place + of_column(column, shape, out_steps),
                     read(x, source + of_column(column, shape, steps)))  # fmt: skip
                column += lanes * cuda.gridDim.y

    return run, signature(out, item, (target,), ndim, columns)


def ordered(op: str, function, compute, out: str, item: str, target: str, ndim: int, columns: int):
    """out[targets[i] + c] = function(out[targets[i] + c], x[i, c]), rows of one target in order:
    `targets` are sorted, stably, and `order` has the numbers of their rows.

    The group at the first row of a target takes all of its rows, a column a thread. The result stands in a register,
    rounded after each turn as out's elements are. Operations of few instructions have the elements of AHEAD turns on
    their way at a time, without a branch: where there are no more, the first one's again, which is in the cache.
    """
    call = device(function, "float32" if compute[0] in HALVES else compute[0])
    X, Y, RESULT = map(computed, compute)
    OUT, ITEM, again, write, read = stored(out), stored(item), reading(out), writing(out), reading(item)
    TARGET, AHEAD = stored(target), 8 if op in SHORT else 1
    of_row, of_column = walking(ndim), walking(columns)

    def run(rows, width, shift, targets, order, out, out_steps, x, row_shape, row_steps, shape, steps):
        places, turns = cuda.local.array(AHEAD, TARGET), cuda.local.array(AHEAD, INT64)
        values, held = cuda.local.array(AHEAD, ITEM), cuda.local.array(1, OUT)
        lanes = INT64(1) << shift
        lane = (cuda.threadIdx.x & (lanes - 1)) + cuda.blockIdx.y * lanes
        for first in range(cuda.grid(1) >> shift, rows, cuda.gridsize(1) >> shift):
            place = targets[first]
            column = lane if place >= 0 and (first == 0 or targets[first - 1] != place) else width
            while column < width:
                at, source = place + of_column(column, shape, out_steps), of_column(column, shape, steps)
                held[0] = out[at]
                start, more = first, True
                while more:
                    for u in range(AHEAD):
                        turn = min(start + u, rows - 1)
                        places[u], turns[u] = targets[turn], order[turn]
                    for u in range(AHEAD):
                        row = turns[u] if places[u] == place else turns[0]
                        values[u] = x[source + of_row(row, row_shape, row_steps)]
                    for u in range(AHEAD):
                        if places[u] == place and start + u < rows:
                            write(held, 0, RESULT(call(X(again(held, 0)), Y(read(values, u)))))
                    start += AHEAD
                    more = places[AHEAD - 1] == place and start < rows
                out[at] = held[0]
                column += lanes * cuda.gridDim.y

    return run, signature(out, item, (target, "int64"), ndim, columns)


def signature(out: str, item: str, lists, ndim: int, columns: int):
    rows, loops = types.UniTuple(INT64, ndim), types.UniTuple(INT64, columns)
    pointers = (types.CPointer(stored(name)) for name in lists)
    return (INT64, INT64, INT64, *pointers, types.CPointer(stored(out)), loops, types.CPointer(stored(item)), rows,
            rows, loops, loops)  # fmt: skip
