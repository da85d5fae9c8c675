"""The kernel of mv for real floats: y = beta * x + alpha * A @ v. Warps bring rows to shared memory ahead.

A row's accumulators are a sequence in time, so a lane takes a row alone (two of halves whose rows lie side by side),
and neighbouring lanes copy neighbouring bytes. A stage is ROWS x DEPTH elements, 4 KiB, and what v has beside them;
each warp has a ring of them, one in use and the others on their way, and waits for nobody else. The warps of a block
take the segments of one and the same ROWS rows in turns, and the first adds their sums in order.

Sums are those of kernels/mv.py: in each segment of 4096 steps, step p is in accumulator p mod CHAINS; accumulators are
added in halves, segments in order.
"""

from __future__ import annotations

import functools

from llvmlite import ir
from numba import cuda, types

from ..product import ptx
from ..product.copy import copier
from ..product.ptx import ARRAY, primitive
from ..rings import Staged
from ..tiles import PIECE, SEGMENT, WARP
from .chain import ending, loader, stepper, word
from .elements import stored
from .functions import inlined

UNIT = 8  # steps whose elements are in registers at a time
U32, I32, I64 = types.uint32, types.int32, types.int64


@functools.cache
def vector_copier(size: int):
    """copy(target, source, left): the first 16 bytes of `left` elements, or all where these are fewer: one by one then,
    as a copy of 16 bytes of which fewer are read ends beyond the array for compute-sanitizer."""
    elements = PIECE // size

    @primitive(types.none, U32, I64, I32)
    def copy(builder, target, source, left):
        with builder.if_else(builder.icmp_signed(">=", left, ir.Constant(ptx.I32, elements))) as (all_, some):
            with all_:
                ptx.copy_async(builder, PIECE, target, 0, source)
            with some:
                for e in range(elements):
                    at = ptx.moved(builder, source, ir.Constant(ptx.I64, e * size))
                    if size < 4:
                        value = ptx.load_narrow(builder, size, at, [(left, e)])
                        ptx.store_narrow(builder, size, target, e * size, value)
                    else:
                        inside = builder.icmp_signed(">", left, ir.Constant(ptx.I32, e))
                        count = builder.select(inside, ir.Constant(ptx.I32, size), ir.Constant(ptx.I32, 0))
                        ptx.copy_async(builder, size, target, e * size, at, count)

    return copy


@functools.cache
def taker(size: int, pieces: tuple):
    """take(held, address): elements of `size` bytes from shared memory, by pieces of (offset, bytes)."""
    word, wide = ("int64", 8) if size == 8 else ("int32", 4)

    @primitive(types.none, ARRAY, U32)
    def take(builder, held, address):
        held, to = builder.bitcast(held, ptx.LLVM[ptx.LETTER[word]].as_pointer()), 0
        for offset, bytes_ in pieces:
            for value in ptx.load_shared(builder, word, bytes_ // wide, address, offset):
                builder.store(value, ptx.element(builder, held, to))
                to += 1

    return take


def row(size: int) -> tuple:
    """UNIT neighbouring elements by 16 bytes."""
    return tuple((at, PIECE) for at in range(0, UNIT * size, PIECE))


def make(form: Staged):
    """(body, signature)"""
    kind, slice_, access = form.kind, form.slice, form.access
    WORD, CHAINS, WARPS, STAGES, APART = word(kind), form.chains, form.warps, form.stages, form.stage
    ROWS, DEPTH, SIZE = slice_.lines, slice_.depth, slice_.size
    LINES = ROWS // WARP  # rows of a lane
    RING, LAST, OF_V = STAGES * APART, (STAGES - 1) * APART, slice_.bytes
    V_LANES, WIDE = DEPTH * SIZE // PIECE, PIECE // SIZE
    LANE, STEP, OF_A = LINES * slice_.line * SIZE, slice_.step * SIZE, UNIT * LINES
    HELD = ROWS * DEPTH // WARP if access.plain else 1
    ORIGIN, START, whole, land, SCALE = copier(slice_, WARP, False, kind.a, kind)
    guarded = copier(slice_, WARP, True, kind.a, kind)[2]
    commit, wait, copy_v = ptx.commit, ptx.waiting(STAGES - 2), vector_copier(SIZE)
    by_rows = access.order == "k"
    take_a = taker(SIZE, row(SIZE) if by_rows else tuple((e * STEP, LINES * SIZE) for e in range(UNIT)))
    take_v = taker(SIZE, row(SIZE))
    load_a, load_v, advance = loader(kind, "a"), loader(kind, "b"), stepper(kind)
    A, V, PARTS = stored(kind.a), stored(kind.b), WARPS * ROWS
    scale, _, blend, write = ending(kind)

    @inlined
    def unit(chain, at_a, at_v, count):
        """UNIT steps, or fewer where `count` is less."""
        of_a, of_v = cuda.local.array(OF_A, A), cuda.local.array(UNIT, V)
        left, right = cuda.local.array(LINES, WORD), cuda.local.array(CHAINS, WORD)
        take_a(of_a, at_a)
        take_v(of_v, at_v)
        for e in range(UNIT):
            if e < count:
                load_v(right, e % CHAINS, of_v, e, True)
                for r in range(LINES):
                    load_a(left, r, of_a, e * LINES + r, True)
                    advance(chain, r, e % CHAINS, left, right)

    def several(count):
        """steps(chain, at_a, at_v): `count` units, written out, so that the loads of one pass the chains of another."""
        if count == 1:

            @inlined
            def steps(chain, at_a, at_v):
                unit(chain, at_a, at_v, UNIT)
        else:
            some, MORE_A, MORE_V = several(count // 2), count // 2 * UNIT * STEP, count // 2 * UNIT * SIZE

            @inlined
            def steps(chain, at_a, at_v):
                some(chain, at_a, at_v)
                some(chain, U32(at_a + MORE_A), U32(at_v + MORE_V))

        return steps

    stage = several(DEPTH // UNIT)

    @inlined
    def folded(chain, r):
        """The sum of a row's accumulators, added in halves."""
        if CHAINS == 1:
            return chain[r, 0]
        first, second = WORD(chain[r, 0] + chain[r, 4]), WORD(chain[r, 1] + chain[r, 5])
        third, fourth = WORD(chain[r, 2] + chain[r, 6]), WORD(chain[r, 3] + chain[r, 7])
        return WORD(WORD(first + third) + WORD(second + fourth))

    @inlined
    def bring(held, a, place, target, line_a, step_a, lines, i, q, v, target_v, lane, p, k):
        """Begin to copy the stage of step p, as far as there are rows and steps."""
        if p < k:
            left = I32(min(k - p, DEPTH))
            at = place + p * step_a
            if lines == ROWS and left == DEPTH:
                whole(held, a, target, at, line_a, step_a, I32(lines - i), I32(left - q))
            else:
                guarded(held, a, target, at, line_a, step_a, I32(lines - i), I32(left - q))
            land(held, target)
            if lane < V_LANES:
                copy_v(target_v, v + p * SIZE, I32(left - I32(lane * WIDE)))
        commit()

    @inlined
    def after(p):
        """The warp's next stage: of this segment, or of its next one."""
        p += DEPTH
        return p + (WARPS - 1) * SEGMENT if p % SEGMENT == 0 else p

    def sums(sizes, y, x, a, v, beta, alpha):
        smem, parts = cuda.shared.array(0, types.uint8, alignment=128), cuda.shared.array(PARTS, WORD)
        chain, total = cuda.local.array((LINES, CHAINS), WORD), cuda.local.array(LINES, WORD)
        held = cuda.local.array(HELD, WORD)
        rows, k, reads_x = sizes
        warp, lane = U32(cuda.threadIdx.x // WARP), U32(cuda.threadIdx.x % WARP)
        base = U32(ptx.shared_address(smem) + warp * RING)
        row = I64(cuda.blockIdx.x) * ROWS
        lines, segments = I32(min(rows - row, ROWS)), (k + SEGMENT - 1) // SEGMENT
        place, target, i, q = START(lane, a[1], a[2], base)
        place += ORIGIN(a[0]) + row * a[1] * SCALE
        line_a, step_a = a[1] * SCALE, a[2] * SCALE
        from_v, target_v = ptx.address(v) + I64(lane) * PIECE, U32(base + OF_V + lane * PIECE)

        ahead, lead = I64(warp) * SEGMENT, (STAGES - 1) * DEPTH
        read, written = U32(0), U32(0)
        for r in range(LINES):
            total[r] = WORD(0)
        for first in range(0, segments, WARPS):
            for r in range(LINES):
                for c in range(CHAINS):
                    chain[r, c] = WORD(0)
            start = (first + warp) * SEGMENT
            end = min(start + SEGMENT, k)
            for p in range(start - lead, end, DEPTH):  # the first stages are on their way before one is used
                wait()
                cuda.syncwarp()
                bring(held, a[0], place, U32(target + written), line_a, step_a, lines, i, q, from_v,
                      U32(target_v + written), lane, ahead, k)  # fmt: skip
                ahead = after(ahead)
                written = U32(written + APART) if written != U32(LAST) else U32(0)
                if p >= start:
                    at_a, at_v = U32(base + read + lane * LANE), U32(base + read + OF_V)
                    if p + DEPTH <= end:
                        stage(chain, at_a, at_v)
                    else:
                        for u in range(0, end - p, UNIT):
                            unit(chain, U32(at_a + u * STEP), U32(at_v + u * SIZE), end - p - u)
                    read = U32(read + APART) if read != U32(LAST) else U32(0)
            lead = 0
            if WARPS == 1:
                for r in range(LINES):
                    total[r] = folded(chain, r) if first == 0 else WORD(total[r] + folded(chain, r))
            else:
                for r in range(LINES):
                    parts[warp * ROWS + lane * LINES + r] = folded(chain, r)
                cuda.syncthreads()
                if warp == 0:
                    for w in range(min(WARPS, segments - first)):
                        for r in range(LINES):
                            more = parts[w * ROWS + lane * LINES + r]
                            total[r] = more if first + w == 0 else WORD(total[r] + more)
                cuda.syncthreads()
        if warp == 0:
            for r in range(LINES):
                at = row + I64(lane * LINES + r)
                if at < rows:
                    scale(total, r, alpha)
                    if reads_x != 0:
                        blend(total, r, beta, x[0], at * x[1])
                    write(total, r, beta, y[0], at * y[1])

    factor = types.UniTuple(WORD, 1)
    out = types.Tuple((types.CPointer(stored(kind.out)), I64))
    left = types.Tuple((types.CPointer(A), I64, I64))
    return sums, (types.UniTuple(I64, 3), out, out, left, types.CPointer(V), factor, factor)
