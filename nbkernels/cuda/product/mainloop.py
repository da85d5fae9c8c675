"""The loop over k of the threads that share a tile: copies run ahead by stages, loads from shared memory by a step."""

from __future__ import annotations

import functools

from numba import cuda, types

from ..kernels.chain import word
from ..kernels.functions import inlined
from . import ptx
from .atom import Atom, atom, chains, remainder, sequence
from .config import WARP
from .copy import copier
from .layout import PIECE, Slice, lane_bits, part, slices
from .variant import Variant

U32, I32, I64 = types.uint32, types.int32, types.int64


def atom_of(variant: Variant) -> Atom:
    a, b = slices(variant.config, variant.held, variant.a, variant.b)
    return atom(variant.config, variant.kind, a, b)


def orders(steps: int, ahead: int = 1) -> tuple[list, list, list]:
    """Loads and steps of a slice: before the next slice is fetched, after it, and after the barrier behind which the
    next slice lies. Fetches stand together: each separate group of them behind loads costs three instructions.

    >>> orders(4)[0], orders(4)[2]
    ([('load', 1), ('step', 0), ('load', 2)], [('load', 0), ('step', 3)])
    """
    flow = [each for q in range(steps) for each in (("load", (q + ahead) % steps), ("step", q))]
    return flow[:3], flow[3 : -2 * ahead], flow[-2 * ahead :]


@functools.cache
def lanes(variant: Variant):
    """at(thread): (row, column) of a thread's sums within the tile, and its lane's step of k within an atom's."""
    mine = part(variant.config, variant.kind.chain)
    ACROSS, WM, WN = mine.across, mine.wm, mine.wn
    rows, columns = (tuple(enumerate(bits)) for bits in lane_bits(mine.lm, mine.ln))
    wide = PIECE // variant.size
    TALL, WIDE = min(mine.tm, wide), min(mine.tn, wide)

    @inlined
    def simt(thread):
        warp, lane = U32(thread // WARP), U32(thread % WARP)
        i, j = U32(0), U32(0)
        for to, bit in rows:
            i = U32(i | ((lane >> bit) & 1) << to)
        for to, bit in columns:
            j = U32(j | ((lane >> bit) & 1) << to)
        return U32(warp // ACROSS * WM + i * TALL), U32(warp % ACROSS * WN + j * WIDE), U32(0)

    @inlined
    def double(thread):
        warp, lane = U32(thread // WARP), U32(thread % WARP)
        return U32(warp // ACROSS * WM + lane // 4), U32(warp % ACROSS * WN + lane // 4), U32(lane % 4)

    return double if variant.config.matrix else simt


@functools.cache
def origins(variant: Variant):
    """at(thread): where a thread's numbers begin, (line of A, step of k, line of B, step of k) within the slices."""
    mine, at = part(variant.config, variant.kind.chain), lanes(variant)
    ACROSS, WM, WN = mine.across, mine.wm, mine.wn
    of_a, of_b = (pieces(each) for each in slices(variant.config, variant.held, variant.a, variant.b))

    @inlined
    def alike(thread):
        i, j, p = at(thread)
        return i, p, j, p

    @inlined
    def apart(thread):
        warp, lane = U32(thread // WARP), U32(thread % WARP)
        (i, p), (j, q) = of_a(lane), of_b(lane)
        return U32(warp // ACROSS * WM + i), p, U32(warp % ACROSS * WN + j), q

    return apart if variant.config.tier == "M" else alike


def pieces(slice_: Slice):
    """at(lane): (line, step of k) of the 16-byte piece that a lane names to ldmatrix; of its number, where numbers of 4
    bytes lie across."""
    WIDE, ALONG, HALVES = PIECE // slice_.size, slice_.step == 1, slice_.size == 2

    @inlined
    def at(lane):
        if ALONG:
            return U32(lane % 16), U32(lane // 16 * WIDE)
        if HALVES:
            return U32(lane // 8 % 2 * 8), U32(lane % 8 + lane // 16 * 8)
        return U32(lane // 4), U32(lane % 4)

    return at


@functools.cache
def barrier(variant: Variant):
    """Of the threads that share a tile."""
    if variant.config.warps == 1:

        @inlined
        def wait():
            cuda.syncwarp()
    else:

        @inlined
        def wait():
            cuda.syncthreads()

    return wait


@functools.cache
def mainloop(variant: Variant, adds: bool = False):
    """multiply(chains, base, thread, a, lines_a, b, lines_b, k):

    chains = A[:lines_a, :k] @ B[:k, :lines_b], or += where it `adds`, of k up to a segment; a and b are (pointer,
    stride of lines, stride of k, place of the first element), in elements. Then nobody reads or writes the shared
    memory at `base` any more.
    """
    config, kind, step = variant.config, variant.kind, atom_of(variant)
    THREADS, STAGES, BK = WARP * config.warps, config.stages, config.bk
    left, right = slices(config, variant.held, variant.a, variant.b)
    ORIGIN_A, START_A, fetch_a, land_a, SCALE_A = copier(left, THREADS, variant.ragged, kind.a, kind)
    ORIGIN_B, START_B, fetch_b, land_b, SCALE_B = copier(right, THREADS, variant.ragged, kind.b, kind)
    STAGE, SECOND, SIZE = left.bytes + right.bytes, left.bytes, left.size
    LINE_A, STEP_A, LINE_B, STEP_B = (x * SIZE for x in (left.line, left.step, right.line, right.step))
    LAST, DEPTH = (STAGES - 1) * STAGE, step.depth
    HELD_A, HELD_B = (each.lines * BK * kind.planes // THREADS if each.access.plain else 1 for each in (left, right))
    WORD, OPERANDS, ADDS = word(kind), step.held, adds
    first, middle, last = (sequence(step, order) for order in orders(step.steps, step.ahead))
    begin, rest = sequence(step, [("load", q) for q in range(step.ahead)]), remainder(step)
    clear, *_ = chains(step, THREADS)
    at, sync, commit, drained, wait = (
        origins(variant),
        barrier(variant),
        ptx.commit,
        ptx.waiting(0),
        ptx.waiting(STAGES - 2),
    )

    @inlined
    def multiply(sums, base, thread, a, lines_a, b, lines_b, k):
        held = cuda.local.array(OPERANDS, WORD)
        next_a, next_b = cuda.local.array(HELD_A, WORD), cuda.local.array(HELD_B, WORD)
        line_a, k_a, line_b, k_b = a[1], a[2], b[1], b[2]
        place_a, target_a, i_a, p_a = START_A(thread, line_a, k_a, base)
        place_b, target_b, i_b, p_b = START_B(thread, line_b, k_b, U32(base + SECOND))
        place_a += ORIGIN_A(a[0]) + a[3] * SCALE_A
        place_b += ORIGIN_B(b[0]) + b[3] * SCALE_B
        line_a, k_a, line_b, k_b = line_a * SCALE_A, k_a * SCALE_A, line_b * SCALE_B, k_b * SCALE_B
        move_a, move_b = k_a * BK, k_b * BK
        lines_a, lines_b = I32(min(lines_a, 1 << 20)) - i_a, I32(min(lines_b, 1 << 20)) - i_b
        whole, slices_ = U32(k // BK), U32((k + BK - 1) // BK)
        tail = I32(k - I64(whole) * BK)
        depth = I32(BK) if slices_ > U32(1) or tail == 0 else tail
        if k == 0:
            depth = I32(0)
        if not ADDS:
            clear(sums)

        for stage in range(STAGES - 1):
            fetch_a(next_a, a[0], U32(target_a + stage * STAGE), place_a, line_a, k_a, lines_a, I32(depth - p_a))
            fetch_b(next_b, b[0], U32(target_b + stage * STAGE), place_b, line_b, k_b, lines_b, I32(depth - p_b))
            land_a(next_a, U32(target_a + stage * STAGE))
            land_b(next_b, U32(target_b + stage * STAGE))
            commit()
            if U32(stage + 1) < slices_:
                place_a, place_b = place_a + move_a, place_b + move_b
                depth = I32(BK) if U32(stage + 2) < slices_ or tail == 0 else tail

        i, p, j, q = at(thread)
        from_a = U32(base + i * LINE_A + p * STEP_A)
        from_b = U32(base + SECOND + j * LINE_B + q * STEP_B)
        read, written = U32(0), U32(LAST)
        here_a, here_b = from_a, from_b
        wait()
        sync()
        begin(sums, held, here_a, here_b)
        for number in range(U32(0), whole):
            first(sums, held, here_a, here_b)
            fetch_a(next_a, a[0], U32(target_a + written), place_a, line_a, k_a, lines_a, I32(depth - p_a))
            fetch_b(next_b, b[0], U32(target_b + written), place_b, line_b, k_b, lines_b, I32(depth - p_b))
            middle(sums, held, here_a, here_b)
            land_a(next_a, U32(target_a + written))
            land_b(next_b, U32(target_b + written))
            commit()
            if U32(number + STAGES) < slices_:
                place_a, place_b = place_a + move_a, place_b + move_b
                depth = I32(BK) if U32(number + STAGES + 1) < slices_ or tail == 0 else tail
            read = U32(read + STAGE) if read != U32(LAST) else U32(0)
            written = U32(written + STAGE) if written != U32(LAST) else U32(0)
            wait()
            sync()
            here_a, here_b = U32(from_a + read), U32(from_b + read)
            last(sums, held, here_a, here_b)
        for q in range(I32(0), tail, I32(DEPTH)):
            rest(sums, held, U32(here_a + q * STEP_A), U32(here_b + q * STEP_B), I32(tail - q - I32(p)))
        drained()
        sync()

    return multiply
