"""The kernel of folds in order whose rows go by way of shared memory.

A block takes ROWS rows. Its first warp folds, a lane a row; the other warps, the movers, copy. A stage is `steps` steps
of the block's rows: while one is folded, the movers write the results of the stage before to global memory, and fetch
one for later, of STAGES that the ring has room for. A barrier for each stage is all that they share.

A piece is `width` neighbours in memory, along a row or `across` rows, that are copied by one instruction; x and out may
differ in both.
"""

from __future__ import annotations

import functools

from numba import cuda, types

from ...dtypes import HALVES
from ..scan import MOVERS, ROWS
from .elements import computed, reading, stored, writing
from .functions import device, inlined
from .scan import placing, taking
from .stage import AT
from .vectors import vectors

STAGES = 8  # a power of two. 7 of 4 KiB on their way are 3.7 MB from 132 blocks: 0.8 us at 4.3 TB/s take 3.4
GAP = 16  # bytes between the rows of a stage, so that lanes that read 16 bytes each meet in no bank


class Side:
    """How the elements of x or of out lie in a stage, and which of them a mover copies.

    spot(row, step)     where an element lies, of `span`
    piece(mover, q)     (row, step) of the first element of a mover's piece q, of `count`
    inside(row, step, rows, steps)  elements of a piece that are among so many rows and steps
    """

    def __init__(self, dtype: str, steps: int, across: bool, width: int):
        WIDTH, size = width, stored(dtype).bitwidth // 8
        ROW, STEP = (1, ROWS) if across else (steps + GAP // size, 1)
        BESIDE = (ROWS if across else steps) // width
        BELOW = MOVERS // BESIDE
        self.width, self.span = width, ROWS * (steps if across else ROW)
        self.count = max(1, ROWS * steps // (width * MOVERS))

        @inlined
        def spot(row, step):
            return row * ROW + step * STEP

        @inlined
        def along_row(mover, q):
            return mover // BESIDE + q * BELOW, mover % BESIDE * WIDTH

        @inlined
        def across_rows(mover, q):
            return mover % BESIDE * WIDTH, mover // BESIDE + q * BELOW

        @inlined
        def of_row(row, step, rows, steps):
            return min(steps - step, WIDTH) if row < rows else 0

        @inlined
        def of_step(row, step, rows, steps):
            return min(rows - row, WIDTH) if step < steps else 0

        self.spot = spot
        self.piece, self.inside = (across_rows, of_step) if across else (along_row, of_row)


@functools.cache
def fetching(dtype: str, width: int):
    """(fetch, commit, wait): fetch(ring, at, x, place, left): ring[at:] = x[place : place + min(left, width)], by loads
    that are waited for at once; the others do nothing."""
    WIDTH, KIND, load = width, stored(dtype), vectors(dtype, width)[0]

    @inlined
    def fetch(ring, at, x, place, left):
        piece = cuda.local.array(WIDTH, KIND)
        if left >= WIDTH:
            load(piece, 0, x, place)
            for e in range(WIDTH):
                ring[AT(at + e)] = piece[e]
        else:
            for e in range(left):
                ring[AT(at + e)] = x[place + e]

    @inlined
    def nothing():
        pass

    return fetch, nothing, nothing


@functools.cache
def asynchronous(dtype: str, width: int):
    """(fetch, commit, wait) by cp.async of 4, 8 or 16 bytes, what is less by loads: commit() closes a group of copies,
    wait() leaves STAGES - 2 groups on their way."""
    from ..product import ptx

    WIDTH, SIZE = width, stored(dtype).bitwidth // 8
    whole, shared, address = width * SIZE, ptx.shared_address, ptx.address

    @ptx.primitive(types.none, types.uint32, types.int64)
    def copy(builder, target, source):
        ptx.copy_async(builder, whole, target, 0, source)

    @inlined
    def fetch(ring, at, x, place, left):
        if left >= WIDTH:
            copy(shared(ring) + at * SIZE, address(x) + place * SIZE)
        else:  # a copy of fewer bytes ends beyond the array for compute-sanitizer
            for e in range(left):
                ring[AT(at + e)] = x[place + e]

    return fetch, ptx.commit, ptx.waiting(STAGES - 2)


@functools.cache
def storing(dtype: str, width: int):
    """drain(outs, at, out, place, left): out[place : place + min(left, width)] = outs[at:]"""
    WIDTH, KIND, store = width, stored(dtype), vectors(dtype, width)[1]

    @inlined
    def drain(outs, at, out, place, left):
        piece = cuda.local.array(WIDTH, KIND)
        if left >= WIDTH:
            whole = at // WIDTH * WIDTH  # `at` itself, of which the compiler so knows that one load brings all
            for e in range(WIDTH):
                piece[e] = outs[AT(whole + e)]
            store(out, place, piece, 0)
        else:
            for e in range(left):
                out[place + e] = outs[AT(at + e)]

    return drain


def make(function, item, work, compute, ndim: int, source, target, steps: int, together: int, copies: bool):
    """out[0] = x[0], out[k] = function(out[k - 1], x[k]) in each row, at each index of `ndim` loops.

    source, target: (across, width) of x and of out. Of the steps of a stage `together` are read before the first of
    them is folded. copies: by cp.async.
    """
    REAL, X, Y, RESULT = map(computed, (work, *compute))
    call = device(function, "float32" if compute[0] in HALVES else compute[0])
    take, again, write = taking(item, work), reading(work), writing(work)
    given, made = Side(item, steps, *source), Side(work, steps, *target)
    fetch, commit, wait = (asynchronous if copies else fetching)(item, given.width)
    drain, spot_x, spot_out = storing(work, made.width), given.spot, made.spot
    piece_x, inside_x, piece_out, inside_out = given.piece, given.inside, made.piece, made.inside
    ITEM, WORK, STEPS, TOGETHER, AHEAD, place = stored(item), stored(work), steps, together, STAGES - 1, placing(ndim)
    SPAN_X, SPAN_OUT, COUNT_X, COUNT_OUT = given.span, made.span, given.count, made.count
    RING, OUTS, INT64 = STAGES * SPAN_X, 2 * SPAN_OUT, types.int64

    def folds(rows, count, out, out_steps, out_step, x, x_steps, x_step, shape):
        ring, outs = cuda.shared.array(RING, ITEM, alignment=16), cuda.shared.array(OUTS, WORK, alignment=16)
        places_x, places_out = cuda.local.array(COUNT_X, INT64), cuda.local.array(COUNT_OUT, INT64)
        values, results = cuda.local.array(TOGETHER, ITEM), cuda.local.array(TOGETHER, WORK)
        state, lane = cuda.local.array(1, WORK), cuda.threadIdx.x
        moves, mover = lane >= ROWS, types.uint32(max(lane - ROWS, 0))
        row0 = INT64(cuda.blockIdx.x) * ROWS
        tall, stages = min(rows - row0, ROWS), (count + STEPS - 1) // STEPS
        if moves:
            for q in range(COUNT_X):
                row, step = piece_x(mover, q)
                places_x[q] = place(min(row0 + row, rows - 1), shape, x_steps) + step * x_step
            for q in range(COUNT_OUT):
                row, step = piece_out(mover, q)
                places_out[q] = place(min(row0 + row, rows - 1), shape, out_steps) + step * out_step
        for s in range(-AHEAD, stages + 1):
            if s >= 0:
                wait()
                cuda.syncthreads()
            if not moves:
                if 0 <= s < stages and lane < tall:
                    left, at, to = min(count - s * STEPS, STEPS), s % STAGES * SPAN_X, s % 2 * SPAN_OUT
                    groups = left // TOGETHER if s > 0 else 0
                    for group in range(groups):
                        for e in range(TOGETHER):
                            values[e] = ring[AT(at + spot_x(lane, group * TOGETHER + e))]
                        for e in range(TOGETHER):
                            write(state, 0, REAL(RESULT(call(X(again(state, 0)), Y(take(values, e))))))
                            results[e] = state[0]
                        for e in range(TOGETHER):
                            outs[AT(to + spot_out(lane, group * TOGETHER + e))] = results[e]
                    for k in range(groups * TOGETHER, left):
                        y = take(ring, AT(at + spot_x(lane, k)))
                        if s == 0 and k == 0:
                            write(state, 0, y)
                        else:
                            write(state, 0, REAL(RESULT(call(X(again(state, 0)), Y(y)))))
                        outs[AT(to + spot_out(lane, k))] = state[0]
            else:
                if s > 0:
                    left, at = min(count - (s - 1) * STEPS, STEPS), (s - 1) % 2 * SPAN_OUT
                    for q in range(COUNT_OUT):
                        row, step = piece_out(mover, q)
                        many = inside_out(row, step, tall, left)
                        drain(outs, at + spot_out(row, step), out, places_out[q], many)
                        places_out[q] += STEPS * out_step
                later = s + AHEAD
                left, at = min(count - later * STEPS, STEPS), later % STAGES * SPAN_X
                if left > 0:
                    for q in range(COUNT_X):
                        row, step = piece_x(mover, q)
                        many = inside_x(row, step, tall, left)
                        fetch(ring, at + spot_x(row, step), x, places_x[q], many)
                        places_x[q] += STEPS * x_step
                commit()

    index = types.UniTuple(types.int64, ndim)
    operands = [part for t in (WORK, ITEM) for part in (types.CPointer(t), index, types.int64)]
    return folds, (types.int64, types.int64, *operands, index)
