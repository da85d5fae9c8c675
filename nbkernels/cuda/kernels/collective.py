"""A tile of C by all threads of a block together: the main loop over k, and the epilogue, as CUTLASS calls them.

A thread keeps tm x tn chains of the bm x bn tile in registers: pieces of 16 bytes, (bm/tm) or (bn/tn) pieces apart.
Slices of A and B, bk deep, go by way of shared memory, the next one while this one is used. Operands are pointers with
strides; what a step is in each dtype stands in chain.py. Sizes in capitals are constants, and loops over them unroll.
"""

from __future__ import annotations

import functools

from numba import cuda

from ...jit.ir.kind import BYTES, Kind
from ..tiles import PIECE, WARP_M, WARP_N, Tiles
from .chain import ending, loader, stepper, word
from .functions import inlined
from .stage import AT, SHORT, stager


def fragment(tiles: Tiles, kind: Kind) -> tuple[int, int]:
    """Shape of a thread's chains, in words."""
    return tiles.tm, tiles.tn * kind.planes


def slices(tiles: Tiles, kind: Kind) -> tuple[int, int]:
    """Words of shared memory for two slices of A and two of B, each line of depth padded by a piece."""
    wide = PIECE // BYTES[kind.chain]
    return tuple(2 * tiles.bk * (lines + wide) * kind.planes for lines in (tiles.bm, tiles.bn))


@inlined
def clear(chain):
    for i in range(chain.shape[0]):
        for j in range(chain.shape[1]):
            chain[i, j] = 0


@functools.cache
def lanes(tiles: Tiles, kind: Kind):
    """at(thread): the first row and column of a thread's part. A warp's lanes stand 4 x 8, warps row by row."""
    ACROSS, WIDE = tiles.bn // tiles.tn, PIECE // BYTES[kind.chain]

    @inlined
    def at(thread):
        warp, lane = thread // 32, thread % 32
        i0 = SHORT((warp // (ACROSS // WARP_N) * WARP_M + lane // WARP_N) * WIDE)
        j0 = SHORT((warp % (ACROSS // WARP_N) * WARP_N + lane % WARP_N) * WIDE)
        return i0, j0

    return at


@functools.cache
def mainloop(tiles: Tiles, kind: Kind):
    """multiply(chain, slices_a, slices_b, thread, a, rsa, csa, row, m, b, rsb, csb, column, n, k):

    chain += A[row:, :k] @ B[:k, column:], where A has m rows and B n columns, in order of k, by all of a block's
    threads; the slices are what they share. The last of its barriers comes after all has been read of A and B.
    """
    BM, BN, BK, TM, TN, PLANES = tiles.bm, tiles.bn, tiles.bk, tiles.tm, tiles.tn, kind.planes
    WORD, TALL, LONG = word(kind), TM * PLANES, TN * PLANES  # words of a column of A and a row of B
    WIDE = PIECE // BYTES[kind.chain]  # elements of a piece, by which slices are padded against bank conflicts
    DOWN, ACROSS = BM // TM, BN // TN  # threads
    PITCH_A, PITCH_B = BM + WIDE, BN + WIDE
    HELD_A, HELD_B = BM * BK // tiles.threads * PLANES, BN * BK // tiles.threads * PLANES
    place_a, fetch_a, store_a = stager(BM, BK, tiles.threads, PITCH_A, PLANES, loader(kind, "a"))
    place_b, fetch_b, store_b = stager(BN, BK, tiles.threads, PITCH_B, PLANES, loader(kind, "b"))
    part, advance = lanes(tiles, kind), stepper(kind)

    @inlined
    def step(chain, slices_a, slices_b, depth, i0, j0):
        """chain += A[i0:, depth] * B[depth, j0:], one step of k"""
        column, row = cuda.local.array(TALL, WORD), cuda.local.array(LONG, WORD)
        for i in range(TM):
            for e in range(PLANES):
                place = depth * PITCH_A + i0 + i // WIDE * DOWN * WIDE + i % WIDE
                column[i * PLANES + e] = slices_a[AT(place * PLANES + e)]
        for j in range(TN):
            for e in range(PLANES):
                place = depth * PITCH_B + j0 + j // WIDE * ACROSS * WIDE + j % WIDE
                row[j * PLANES + e] = slices_b[AT(place * PLANES + e)]
        for i in range(TM):
            for j in range(TN):
                advance(chain, i, j, column, row)

    @inlined
    def whole(chain, slices_a, slices_b, depth, left, i0, j0):
        """All steps of a slice, whose padding is harmless."""
        for q in range(0, BK, 2):
            step(chain, slices_a, slices_b, depth + q, i0, j0)
            step(chain, slices_a, slices_b, depth + q + 1, i0, j0)

    @inlined
    def bounded(chain, slices_a, slices_b, depth, left, i0, j0):
        """The steps of a slice before the end of k: `left` of them, BK at most."""
        for q in range(min(left, SHORT(BK))):
            step(chain, slices_a, slices_b, depth + q, i0, j0)

    steps = whole if PLANES == 1 else bounded

    @inlined
    def multiply(chain, slices_a, slices_b, thread, a, rsa, csa, row, m, b, rsb, csb, column, n, k):
        next_a, next_b = cuda.local.array(HELD_A, WORD), cuda.local.array(HELD_B, WORD)
        i0, j0 = part(thread)
        at_a, at_b = place_a(thread, rsa, csa), place_b(thread, csb, rsb)
        fetch_a(next_a, a, rsa, csa, at_a, row, m, 0, k)
        fetch_b(next_b, b, csb, rsb, at_b, column, n, 0, k)
        store_a(slices_a, 0, next_a, at_a)
        store_b(slices_b, 0, next_b, at_b)
        cuda.syncthreads()
        half = 0
        for p in range(SHORT(0), k, SHORT(BK)):
            more = p + BK < k
            if more:
                fetch_a(next_a, a, rsa, csa, at_a, row, m, p + BK, k)
                fetch_b(next_b, b, csb, rsb, at_b, column, n, p + BK, k)
            steps(chain, slices_a, slices_b, half * BK, k - p, i0, j0)
            if more:
                half = 1 - half
                store_a(slices_a, half, next_a, at_a)
                store_b(slices_b, half, next_b, at_b)
                cuda.syncthreads()

    return multiply


@functools.cache
def finish(tiles: Tiles, kind: Kind, sums: bool = True):
    """store(chain, thread, c, rsc, csc, row, m, column, n, x, rsx, csx, total, rst, cst, beta, alpha, reads_x, adds):

    C[row:, column:] = beta*X + alpha*(total + chain) inside m x n, with X where reads_x says so, with total where adds
    does and `sums` lets it. It uses the chains up: rows move up one place instead of being indexed, for an index that
    is not constant would send them to memory, and unrolling this would take more registers than there are.
    """
    TM, TN, LONG, WORD = tiles.tm, tiles.tn, tiles.tn * kind.planes, word(kind)
    WIDE, DOWN, ACROSS = PIECE // BYTES[kind.chain], tiles.bm // tiles.tm, tiles.bn // tiles.tn
    JUMP_M, JUMP_N = (DOWN - 1) * WIDE + 1, (ACROSS - 1) * WIDE + 1  # from a thread's last line of a piece to its next

    def along(touch):
        @inlined
        def walk(line, factor, x, place, step, left):
            """touch a line's elements at x[place:], one after the other; places are running sums, as in stage.py."""
            for j in range(TN):
                if j // WIDE * ACROSS * WIDE + j % WIDE < left:
                    touch(line, j, factor, x, place)
                place += step if (j + 1) % WIDE != 0 else step * JUMP_N

        return walk

    @inlined
    def nothing(line, factor, x, place, step, left):
        pass

    part, (scale, *touches) = lanes(tiles, kind), ending(kind)
    add, blend, write = map(along, touches)
    add = add if sums else nothing

    @inlined
    def store(chain, thread, c, rsc, csc, row, m, column, n, x, rsx, csx, total, rst, cst, beta, alpha, reads_x, adds):
        i0, j0 = part(thread)
        line, left = cuda.local.array(LONG, WORD), n - column - j0
        place = (row + i0) * rsc + (column + j0) * csc
        place_x, place_total = (row + i0) * rsx + (column + j0) * csx, (row + i0) * rst + (column + j0) * cst
        for i in range(TM):
            if row + i0 + i // WIDE * DOWN * WIDE + i % WIDE < m:
                for j in range(LONG):
                    line[j] = chain[0, j]
                if adds:
                    add(line, alpha, total, place_total, cst, left)
                for j in range(TN):
                    scale(line, j, alpha)
                if reads_x:
                    blend(line, beta, x, place_x, csx, left)
                write(line, alpha, c, place, csc, left)
            rows = 1 if (i + 1) % WIDE != 0 else JUMP_M
            place, place_x, place_total = place + rows * rsc, place_x + rows * rsx, place_total + rows * rst
            for above in range(TM - 1):
                for j in range(LONG):
                    chain[above, j] = chain[above + 1, j]

    return store
