"""Products of many steps of k and few outputs: segments of k in parallel, their chains in registers throughout.

A job is a segment against a register tile's columns of C: the stacks' kernel (tiny.py) takes the whole segment in one
call, from operands in place. Columns of B lie across its vectors; where its rows are not contiguous a job packs its
panel first. A B from beyond L2 is read along its rows, against all of a short A (several.py). Segments leave their
chains in planes, which are added in order; two go side by side where C is so small that one's would wait for each
other. Products of fewer steps come here where half a vector holds a row of C. The smallest are one compiled call
(8x8x1000 of float32: 11 us by Python's planning, 4 so).
"""

from __future__ import annotations

import functools

import numpy as np

from ..jit.address import call, peek, pointer, poke, scratch, static, take_from
from ..jit.cache import both, compiled, entry, jit
from . import threads
from .finish import finish
from .kinds import default_tiles, kind_of
from .pack import pack
from .several import MOST, columns_against, group
from .small import BRIEF, DECLINED, DONE, GIL, LARGE
from .tiles import SEGMENT, caches, small
from .tiny import HEIGHT, tall, tiny, twins
from .words import filled, operands, room

from .words import (  # isort: skip
    BLOCK, CSA, CSB, CSC, CSX, GROUP, NEXT, PACK, PART, READS, ROOM, RSA, RSB, RSC, RSX, SCALARS, SELF, SHIFT_A,
    SHIFT_B, SHIFT_C, SIZE_C, TRUSTED, WORDS, A, B, C, K, M, N, X,
)  # fmt: skip

PAIRS = (M, N), (A, B), (RSA, CSB), (CSA, RSB), (RSC, CSC), (RSX, CSX)  # what C' = B' A' exchanges
# The shorter side of C, or all its elements, up to which k > 512 is deep: five loops would pack more than they use
# (f32, one thread: 1024x8x1024 470 us, here 265; 32x32x10000 339 and 206; 48x48x5000 290 and 234; 64x64: the same).
# Over threads they would wait for each other at every block of k: two, 64x64x10000 740 and 512, 100x100x5000 970 and
# 640, f64 1700 and 1260; 160x160x9000 the same.
NARROW, FEW, SHARED = 16, 48 * 48, 128 * 128
JOBS = NEXT + 1  # the word that take_from reads
ROWS = 16 * HEIGHT  # of a job, unless it packs B
# What becomes of B (PACK). By rows: BROAD bytes of them, whose chains for MOST rows of A half fill L1, and TURN steps
# at a time. One thread, us (by packed panels; NumPy): 1024x8x1024 TN f32 183 (661; 490), f64 394 (1328; 1057).
IN_PLACE, PACKED, BY_ROWS = 0, 1, 2
BROAD, TURN = 2048, 64
FACTORS = 8 * MOST * TURN  # bytes of stack for those of A
BYTES, LITTLE = 8 * WORDS, 516 << 10  # of the words; of the room up to BRIEF: a panel of SEGMENT steps, 4 KiB of planes


@jit(inline="always")
def _job(tile, f, job, panel, one):
    """The chains of a segment, or of some side by side, of one panel of C and some rows, in their planes; in C itself
    if PART is negative."""
    size, m, n, rows, side = tile.itemsize, f[M], f[N], f[BLOCK], f[GROUP]
    panels, chunks = (n + tile.nr - 1) // tile.nr, (m + rows - 1) // rows
    first, j, i = job // (panels * chunks) * side, job // chunks % panels * tile.nr, job % chunks * rows
    w, end, row = min(tile.nr, n - j), min(m, i + rows), f[RSB]
    if f[PACK] == PACKED:
        row = tile.nr if w > tile.lanes else tile.lanes
    run = side if (first + side) * SEGMENT <= f[K] else 1
    for s in range(first, min(first + side, (f[K] + SEGMENT - 1) // SEGMENT), run):
        start = s * SEGMENT
        k, b, apart = min(SEGMENT, f[K] - start), f[B] + (start * f[RSB] + j * f[CSB]) * size, SEGMENT * row
        if f[PACK] == PACKED:
            for q in range(run):
                source = b + q * SEGMENT * f[RSB] * size
                pack(tile, source, f[CSB], f[RSB], w, k, panel + q * apart * size, row)
            b = panel
        c, rsc, x, alpha, beta = f[ROOM] + f[PART] + (s * m * n + j) * size, n, 0, one, one
        if f[PART] < 0:
            c, rsc, x = f[C] + j * size, f[RSC], f[X] + j * size if f[X] != 0 else 0
            alpha, beta = peek(tile, f[SCALARS]), peek(tile, f[SCALARS] + size)
        if run > 1:
            a = f[A] + start * f[CSA] * size
            twins(tile, m, 1, k, a, SEGMENT * f[CSA], f[RSA], f[CSA], b, apart, row, c, m * n, n, 0, 0, 0, w, one, one)
        else:
            height = tall(tile, w)
            whole = (end - i) // height
            for r, count, h in ((i, whole, height), (i + whole * height, 1, (end - i) % height)):
                if count > 0 and h > 0:
                    a, x_row = f[A] + (r * f[RSA] + start * f[CSA]) * size, x + r * f[RSX] * size if x != 0 else 0
                    tiny(tile, h, count, k, a, h * f[RSA], f[RSA], f[CSA], b, 0, row, c + r * rsc * size, h * rsc, rsc,
                         x_row, h * f[RSX], f[RSX], w, alpha, beta)  # fmt: skip


@jit(inline="always")
def _by_rows(tile, f, job):
    """One segment's chains of BROAD columns of C, in their plane: B is read along its rows, once for all of A."""
    size, m, n, wide = tile.itemsize, f[M], f[N], BROAD // tile.itemsize
    blocks, factors = (n + wide - 1) // wide, scratch(FACTORS)
    s, j = job // blocks, job % blocks * wide
    for start in range(0, min(SEGMENT, f[K] - s * SEGMENT), TURN):
        p, i = s * SEGMENT + start, 0
        steps = min(TURN, min(f[K], (s + 1) * SEGMENT) - p)
        while i < m:
            count = group(m - i)
            for q in range(steps):
                for r in range(count):
                    value = peek(tile, f[A] + ((i + r) * f[RSA] + (p + q) * f[CSA]) * size)
                    poke(tile, factors + (q * count + r) * size, value)
            plane = f[ROOM] + f[PART] + ((s * m + i) * n + j) * size
            columns_against(tile, count, min(wide, n - j), f[B] + (p * f[RSB] + j) * size, f[RSB], factors, steps,
                            plane, n, start)  # fmt: skip
            i += count


@functools.cache
def _deep(tile) -> int:
    """The jobs of one thread: void(words, task)."""
    element = getattr(np, tile.dtype)

    def work(f, task):
        panel = f[ROOM] + task * min(f[K], SEGMENT) * tile.nr * tile.itemsize
        # Of one segment, for each of two threads those that its caches hold. Segments in turn: the last is short.
        back = task % 2 if f[K] <= SEGMENT else 0
        job = take_from(f, NEXT, back)
        while job >= 0:
            if f[PACK] == BY_ROWS:
                _by_rows(tile, f, job)
            else:
                _job(tile, f, job, panel, element(1))
            job = take_from(f, NEXT, back)

    return compiled(work, "void(CPointer(int64), int64)", f"gemm_deep_{tile}")


@jit(inline="always")
def _plan(tile, f, workers, cache):
    """How a product is cut, and the bytes of its room: panels of B for each thread, planes of waiting chains."""
    wide = f[M] > f[N]
    if (wide and f[RSA] == 1) or (f[CSB] != 1 and (f[RSA] == 1 or not wide)):  # vectors along the longer side in memory
        for p, q in PAIRS:
            f[p], f[q] = f[q], f[p]
    large = f[N] * f[K] * tile.itemsize > cache  # panels of such a B are far apart in memory
    f[PACK] = BY_ROWS if f[CSB] == 1 and large and f[M] <= NARROW else PACKED if f[CSB] != 1 or large else IN_PLACE
    segments, width = (f[K] + SEGMENT - 1) // SEGMENT, BROAD // tile.itemsize if f[PACK] == BY_ROWS else tile.nr
    # A job: some rows of a panel, and two segments where C is so small that the chains of one wait for each other.
    f[BLOCK] = ROWS if f[PACK] == IN_PLACE else f[M]
    f[GROUP] = 2 if f[M] <= HEIGHT // 2 and f[N] <= tile.lanes and f[PACK] != BY_ROWS else 1
    groups, chunks = (segments + f[GROUP] - 1) // f[GROUP], (f[M] + f[BLOCK] - 1) // f[BLOCK]
    f[JOBS] = groups * ((f[N] + width - 1) // width) * chunks
    panels = workers * min(f[K], SEGMENT) * tile.nr * tile.itemsize if f[PACK] == PACKED else 0
    direct = f[PACK] != BY_ROWS and segments == 1 and f[CSC] == 1 and (f[X] == 0 or f[CSX] == 1)
    f[PART] = -1 if direct else panels
    return panels if direct else panels + segments * f[M] * f[N] * tile.itemsize


@jit(inline="always")
def _end(tile, f):
    """The planes, added in order, become C."""
    size, m, n, segments = tile.itemsize, f[M], f[N], (f[K] + SEGMENT - 1) // SEGMENT
    alpha, beta, planes = peek(tile, f[SCALARS]), peek(tile, f[SCALARS] + size), f[ROOM] + f[PART]
    for s in range(segments):
        finish(tile, m, n, planes + s * m * n * size, n, planes, n, s == 0, s == segments - 1, f[C], f[RSC], f[CSC],
               f[X], f[RSX], f[CSX], alpha, beta)  # fmt: skip


@functools.cache
def _ending(tile):
    """`_end` from Python: void(address of the words)."""

    def run(words):
        _end(tile, pointer(words))

    return entry(run, "void(int64)", f"gemm_deep_end_{tile}")


@functools.cache
def _alone(tile):
    """int64(address of `_deep`, out, x, a, b, beta, alpha), on checked arrays: their ids, x's or 0; from Python, and
    its address."""
    cache, element, size, shift = caches()[1], getattr(np, tile.dtype), tile.itemsize, tile.itemsize.bit_length() - 1

    def run(work, out, x, a, b, beta, alpha):
        if not GIL:
            return LARGE
        words, factors = scratch(BYTES), scratch(16)
        f = pointer(words)
        f[TRUSTED], f[READS], f[SIZE_C] = 1, beta != 0, size
        f[SHIFT_A], f[SHIFT_B], f[SHIFT_C] = shift, shift, shift
        operands(f, out, x, a, b)
        _plan(tile, f, 1, cache)
        f[NEXT], f[SCALARS], f[ROOM] = 0, factors, static(LITTLE)
        poke(tile, factors, element(alpha))
        poke(tile, factors + size, element(beta))
        call(work, words, 0)
        if f[PART] >= 0:
            _end(tile, f)
        return DONE

    return both(run, "int64(int64, int64, int64, int64, int64, float64, float64)", f"gemm_deep_alone_{tile}")


def whole(dtype: str) -> tuple[int, int]:
    """The address of the whole call of one thread, up to BRIEF, and its first argument. It answers LARGE, with nothing
    done, where others may be in it at the same time."""
    tile = small(dtype)
    return _alone(tile)[1], _deep(tile)


def deep(out, x, a, b, beta, alpha, dtype: str, workers: int, trusted: bool = True) -> int:
    """out = alpha * a @ b + beta * x, as `packed` does it for any shape."""
    kind, tile = kind_of(dtype, dtype, dtype), small(dtype)
    if out.size * a.shape[1] <= BRIEF:
        workers = 1
        if _alone(tile)[0](_deep(tile), id(out), x, id(a), id(b), beta, alpha) == DONE:
            return DONE
    f, kept = filled(out, x, a, b, beta, alpha, default_tiles(kind), kind, workers, trusted)
    if f is None:
        return DECLINED
    with room(_plan.py_func(tile, f, workers, caches()[1])) as f[ROOM]:
        threads.launch(_deep(tile), f[SELF], workers)
        if f[PART] >= 0:
            _ending(tile)(f[SELF])
    return DONE
