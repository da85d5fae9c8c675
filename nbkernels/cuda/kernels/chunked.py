"""The kernel of scans of long rows by an associative operation: many blocks take the chunks of a row.

A warp's elements, SEGMENT neighbours, are PIECES pieces of 32 lanes with EACH neighbours; a block's warps take segments
in a row. What comes before an element is added up from the left, the farthest first: chunks, segments of the chunk,
pieces of the segment, lanes of the piece, elements of the lane. Nothing stands for what is not there: no operation
needs a neutral element, and past the end of a row any element of it is taken, on which no result depends.
"""

from __future__ import annotations

import functools

from numba import cuda, types

from ...dtypes import HALVES
from ..scan import EACH, PIECES, SEGMENT, TILE, WARPS
from .elements import computed, reading, stored, writing
from .functions import device, inlined
from .scan import placing, taking
from .stage import AT
from .vectors import vectors

ALL = 0xFFFFFFFF  # lanes of a warp


@functools.cache
def shuffling(dtype: str):
    """(up, of): up(x, d) is x of the lane d before, one's own in the first d lanes; of(x, lane) that lane's x.

    Lanes exchange words of 32 and 64 bits.
    """
    REAL = computed(dtype)
    PART = getattr(REAL, "underlying_float", REAL)
    whole = types.int64 if stored(dtype).bitwidth == 64 else types.int32
    WORD = PART if PART in (types.float32, types.float64) else whole

    @inlined
    def up(x, d):
        return REAL(cuda.shfl_up_sync(ALL, WORD(x), d))

    @inlined
    def of(x, lane):
        return REAL(cuda.shfl_sync(ALL, WORD(x), lane))

    @inlined
    def up_complex(x, d):
        return REAL(complex(cuda.shfl_up_sync(ALL, x.real, d), cuda.shfl_up_sync(ALL, x.imag, d)))

    @inlined
    def of_complex(x, lane):
        return REAL(complex(cuda.shfl_sync(ALL, x.real, lane), cuda.shfl_sync(ALL, x.imag, lane)))

    return (up, of) if PART is REAL else (up_complex, of_complex)


@functools.cache
def scanning(function, work: str, compute):
    """(join, scan): join(there, a, b) is function(a, b), or b where a is not there.

    scan(values, before, pieces, lane) folds the lanes' values within pieces of a segment: values[e] of a lane and piece
    with those before it there, before[q] of the lanes before, which lane 0 has none of, and pieces[q] of all lanes.
    """
    REAL, X, Y, RESULT = map(computed, (work, *compute))
    call = device(function, "float32" if compute[0] in HALVES else compute[0])
    up, of = shuffling(work)

    @inlined
    def join(there, a, b):
        joined = REAL(RESULT(call(X(a), Y(b))))
        return joined if there else b

    @inlined
    def scan(values, before, pieces, lane):
        for q in range(PIECES):
            for e in range(1, EACH):
                values[q * EACH + e] = join(True, values[q * EACH + e - 1], values[q * EACH + e])
            total = values[q * EACH + EACH - 1]
            for step in range(5):
                other = up(total, 1 << step)
                total = join(lane >= 1 << step, other, total)
            before[q] = up(total, 1)
            pieces[q] = of(total, 31)

    return join, scan


def make(function, item: str, work: str, compute, ndim: int, width: int, out_width: int, last: bool):
    """totals[row, c] = the elements of chunk c of a row, folded; or, as the `last` pass, their scans.

    Chunks have `length` elements, a multiple of TILE. Neighbours are moved `width` at a time, and results `out_width`;
    of more than 1 the steps along rows are 1.
    """
    REAL, ITEM, WIDTH, OUT_WIDTH, LAST = computed(work), stored(item), width, out_width, last
    STATE = "float32" if work in HALVES else work
    HELD, WORK = EACH * PIECES, stored(work)
    take, again, write, keep, place = taking(item, work), reading(STATE), writing(work), writing(STATE), placing(ndim)
    load, store = vectors(item, width)[0], vectors(work, out_width)[1]
    join, scan = scanning(function, STATE, tuple("float32" if name in HALVES else name for name in compute))

    @inlined
    def chunks_before(chunk, totals, at, sums, lane):
        """sums[0] = the totals of the chunks before, as a segment, by one warp."""
        values, before, pieces = (cuda.local.array(HELD, REAL), cuda.local.array(PIECES, REAL),
                                  cuda.local.array(PIECES, REAL))  # fmt: skip
        for q in range(PIECES):
            for e in range(EACH):
                values[q * EACH + e] = again(totals, at + min((q * 32 + lane) * EACH + e, chunk - 1))
        scan(values, before, pieces, lane)
        base = pieces[0]
        for q in range(PIECES):
            first = join(q > 0, base, before[q]) if lane > 0 else base
            for e in range(EACH):
                if (q * 32 + lane) * EACH + e == chunk - 1:
                    sums[0] = join(q > 0 or lane > 0, first, values[q * EACH + e])
            base = join(q > 0, base, pieces[q])

    def chunks(rows, count, length, parts, out, out_steps, out_step, x, x_steps, x_step, totals, shape):
        sums = cuda.shared.array(WARPS, REAL)
        values, before, pieces = (cuda.local.array(HELD, REAL), cuda.local.array(PIECES, REAL),
                                  cuda.local.array(PIECES, REAL))  # fmt: skip
        items, results = cuda.local.array(HELD, ITEM), cuda.local.array(EACH, WORK)
        thread, block = cuda.threadIdx.x, types.int64(cuda.blockIdx.x)
        warp, lane, row, chunk = thread // 32, thread % 32, block // parts, block % parts
        at, to = place(row, shape, x_steps), place(row, shape, out_steps)
        step_x, step_out = x_step if WIDTH == 1 else 1, out_step if OUT_WIDTH == 1 else 1
        base, there = REAL(0), False
        if LAST and chunk > 0:
            if warp == 0:
                chunks_before(chunk, totals, row * parts, sums, lane)
            cuda.syncthreads()
            base, there = sums[0], True
            cuda.syncthreads()
        for start in range(chunk * length, min((chunk + 1) * length, count), TILE):
            first = start + warp * SEGMENT + lane * EACH
            if start + TILE <= count:
                for q in range(PIECES):
                    for e in range(0, EACH, WIDTH):
                        load(items, q * EACH + e, x, at + (first + q * 32 * EACH + e) * step_x)
            else:
                spare = x[at + min(first, count - 1) * step_x]
                for q in range(PIECES):
                    for e in range(EACH):
                        k = first + q * 32 * EACH + e
                        items[q * EACH + e] = x[at + k * step_x] if k < count else spare
            for e in range(HELD):
                values[e] = take(items, e)
            scan(values, before, pieces, lane)
            total = pieces[0]
            for q in range(1, PIECES):
                total = join(True, total, pieces[q])
            if lane == 0:
                sums[AT(warp)] = total
            cuda.syncthreads()
            ahead, some = base, there
            for w in range(WARPS):
                if w == warp:
                    ahead, some = base, there
                base, there = join(there, base, sums[AT(w)]), True
            cuda.syncthreads()
            if LAST:
                for q in range(PIECES):
                    left = ahead
                    if lane > 0:
                        left = join(some, ahead, before[q])
                    for e in range(EACH):
                        write(results, e, join(some or lane > 0, left, values[q * EACH + e]))
                    k = first + q * 32 * EACH
                    if start + TILE <= count:
                        for e in range(0, EACH, OUT_WIDTH):
                            store(out, to + (k + e) * step_out, results, e)
                    else:
                        for e in range(EACH):
                            if k + e < count:
                                out[to + (k + e) * step_out] = results[e]
                    ahead, some = join(some, ahead, pieces[q]), True
        if not LAST and thread == 0:
            keep(totals, row * parts + chunk, base)

    index = types.UniTuple(types.int64, ndim)
    operands = [part for t in (WORK, ITEM) for part in (types.CPointer(t), index, types.int64)]
    return chunks, (*(types.int64,) * 4, *operands, types.CPointer(stored(STATE)), index)
