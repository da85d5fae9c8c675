"""Products of many steps of k and few outputs: segments of k in parallel, their chains in registers throughout.

A job is a segment against a register tile's columns of C: the stacks' kernel (tiny.py) takes the whole segment in one
call, from operands in place. Columns of B lie across its vectors; where its rows are not contiguous a job packs its
panel first. A B from beyond L2 is read along its rows, against all of a short A (axpyf.py). Segments leave their
chains in planes, which are added in order; two go side by side where C is so small that one's would wait for each
other. Products of fewer steps come here where half a vector holds a row of C. All are one compiled call.
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.abi.address import ask, peek, poke, scratch
from ...jit.abi.sharing import take_from
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit
from ...jit.ir.vector import LINE
from ..gemv.axpyf import TOGETHER, columns_of_several, group
from ..runtime.launch import available
from ..runtime.machine import l2
from ..runtime.status import LARGE
from .blocking import SEGMENT
from .context import NEXT, WORDS, matrices
from .pack import pack_alone
from .paths import BRIEF
from .plan_entry import doors
from .store import finish
from .tiny import HEIGHT, tall, tiny_any, tiny_long, twins

ROWS = 16 * HEIGHT  # of a job, unless it packs B
# How B is read (PACK): in place, packed, or by rows. By rows BROAD bytes of each and TURN steps are read at a time: the
# chains of so many columns for TOGETHER rows of A half fill L1 (1024x8x1024 TN f32 183 us, by packed panels 661).
IN_PLACE, PACKED, BY_ROWS = 0, 1, 2
BROAD, TURN, LOW = 2048, 64, 16
# Steps of k that a job takes at a time: A and B of a whole segment would come from beyond L2 too often. Narrow vectors
# read along k, and in place, by TURN steps, with the next ones' lines prefetched by each tile. B is read in place if
# its rows have up to LINED bytes, by PASSES tiles at most, or with A.
STEPS = 512
LINED, PASSES = 1024, 8
FACTORS = 8 * TOGETHER * TURN  # bytes of stack for those of A


@jit(forceinline=True)
def _ask(f, p, q, left, right, size):
    """Ask for the lines of steps p to q of B[:, left:right]."""
    for step in range(p, q):
        b = f.b + (step * f.rsb + left) * size
        for at in range(b, b + (right - left) * size, LINE):
            ask(at)


@jit(forceinline=True)
def _block(tile, f, steps, rows, columns, panel, asks, one):
    """Some steps of a segment's chains, (segment, first, how many), for rows i to end of some columns of C, in their
    plane; of C itself if PART is negative. `panel`: B, and from row to row of it. It is one of several, of the columns
    from `left` to `right`, (its number, how many): each asks for its part of the next KC steps; none does if that is 0.
    """
    (s, p, k), (i, end), (j, w), (b, row), (part, parts, left, right) = steps, rows, columns, panel, asks
    size, m, n, start, height = tile.itemsize, f.m, f.n, s * SEGMENT + p, tall(tile, w)
    c, rsc, x, alpha, beta = f.room + f.part + (s * m * n + j) * size, n, 0, one, one
    if f.part < 0:
        c, rsc, x = f.c + j * size, f.rsc, f.x + j * size if f.x != 0 else 0
        if start + k == f.k:
            alpha, beta = peek(tile, f.scalars), peek(tile, f.scalars + size)
    height = -(-(end - i) // -(-(end - i) // height))  # 8 rows are 4 and 4, not 6 and 2, whose chains are few
    r = i
    while r < end:
        h = min(height, end - r)
        count = 1 if parts > 0 else (end - r) // h
        a, to = f.a + (r * f.rsa + start * f.csa) * size, c + r * rsc * size
        x_row = x + r * f.rsx * size if x != 0 else 0
        if parts > 0:
            now, next_ = part * (end - i) + r - i, start + f.kc
            of = parts * (end - i)
            _ask(f, next_ + now * f.kc // of, next_ + (now + h) * f.kc // of, left, right, size)
        if h == tall(tile, w) and w % tile.lanes == 0 and (f.csa == 1 or f.rsa == 1):
            tiny_long(tile, count, k, a, h * f.rsa, f.rsa, f.csa, b, 0, row, to, h * rsc, rsc,
                      x_row, h * f.rsx, f.rsx, w, alpha, beta, p)  # fmt: skip
        else:
            tiny_any(tile, h, count, k, a, h * f.rsa, f.rsa, f.csa, b, 0, row, to, h * rsc, rsc,
                     x_row, h * f.rsx, f.rsx, w, alpha, beta, p)  # fmt: skip
        r += count * h


@jit(forceinline=True)
def _job(tile, f, job, panel, one):
    """The chains of a segment, KC steps at a time, of some rows of NB columns of C; or of two segments side by side."""
    size, m, n, rows, wide, side = tile.itemsize, f.m, f.n, f.block, f.nb, f.group
    pieces, chunks = (n + wide - 1) // wide, (m + rows - 1) // rows
    first, j, i = job // (pieces * chunks) * side, job // chunks % pieces * wide, job % chunks * rows
    if side > 1 and (first + side) * SEGMENT <= f.k:
        _pair(tile, f, first, panel, one)
        return
    for s in range(first, min(first + side, (f.k + SEGMENT - 1) // SEGMENT)):
        length = min(SEGMENT, f.k - s * SEGMENT)
        for p in range(0, length, f.kc):
            k = min(f.kc, length - p)
            for q in range(j, min(n, j + wide), tile.nr):
                w, b, row = min(tile.nr, n - q), f.b + ((s * SEGMENT + p) * f.rsb + q * f.csb) * size, f.rsb
                if f.pack == PACKED:
                    row = tile.nr if w > tile.lanes else tile.lanes
                    pack_alone(tile, b, f.csb, f.rsb, w, k, panel, row)
                    b = panel
                right = min(n, j + wide)
                parts = (right - j + tile.nr - 1) // tile.nr if f.kc < STEPS else 0
                asks = (q - j) // tile.nr, parts, j, right
                _block(tile, f, (s, p, k), (i, min(m, i + rows)), (q, w), (b, row), asks, one)


@jit(forceinline=True)
def _pair(tile, f, s, panel, one):
    """The chains of two segments side by side, of all of a small C, in their planes."""
    size, m, n, row = tile.itemsize, f.m, f.n, f.rsb
    a, b, c = f.a + s * SEGMENT * f.csa * size, f.b + s * SEGMENT * row * size, f.room + f.part + s * m * n * size
    if f.pack == PACKED:
        row = tile.lanes
        for q in range(2):
            source, target = b + q * SEGMENT * f.rsb * size, panel + q * SEGMENT * row * size
            pack_alone(tile, source, f.csb, f.rsb, n, SEGMENT, target, row)
        b = panel
    twins(tile, m, 1, SEGMENT, a, SEGMENT * f.csa, f.rsa, f.csa, b, SEGMENT * row, row, c, m * n, n, 0, 0, 0, n,
          one, one, 0)  # fmt: skip


@jit(forceinline=True)
def _by_rows(tile, f, job):
    """One segment's chains of BROAD columns of C, in their plane: B is read along its rows, once for all of A."""
    size, m, n, wide = tile.itemsize, f.m, f.n, BROAD // tile.itemsize
    blocks, factors = (n + wide - 1) // wide, scratch(FACTORS)
    s, j = job // blocks, job % blocks * wide
    for start in range(0, min(SEGMENT, f.k - s * SEGMENT), TURN):
        p, i = s * SEGMENT + start, 0
        steps = min(TURN, min(f.k, (s + 1) * SEGMENT) - p)
        while i < m:
            count = group(m - i)
            for q in range(steps):
                for r in range(count):
                    value = peek(tile, f.a + ((i + r) * f.rsa + (p + q) * f.csa) * size)
                    poke(tile, factors + (q * count + r) * size, value)
            plane = f.room + f.part + ((s * m + i) * n + j) * size
            columns_of_several(tile, count, min(wide, n - j), f.b + (p * f.rsb + j) * size, f.rsb, factors, steps,
                               plane, start, n)  # fmt: skip
            i += count


@functools.cache
def _deep(tile) -> int:
    """The jobs of one thread: void(words, task)."""
    element = getattr(np, tile.dtype)

    def work(f, task):
        if task >= f.workers:
            return
        panel = f.room + task * min(f.k, SEGMENT) * tile.nr * tile.itemsize
        # Of one segment, for each of two threads those that its caches hold. Segments in turn: the last is short.
        back = task % 2 if f.k <= SEGMENT else 0
        job = take_from(f, NEXT, back)
        while job >= 0:
            if f.pack == BY_ROWS:
                _by_rows(tile, f, job)
            else:
                _job(tile, f, job, panel, element(1))
            job = take_from(f, NEXT, back)

    return compiled(work, WORDS.kernel, f"gemm_deep_{tile}")


@jit(forceinline=True)
def _plan(tile, f, table):
    """How a product is cut, and the bytes of its room: panels of B for each thread, planes of waiting chains."""
    workers, cache = available(table) if f.m * f.n * f.k > BRIEF else 1, l2()
    if workers == 0:
        return -LARGE
    f.workers = workers
    large = f.n * f.k * tile.itemsize > cache  # panels of such a B are far apart in memory
    if f.n * tile.itemsize <= LINED and (f.m <= PASSES * tile.mr or f.rsa == 1):
        large = False
    f.pack = BY_ROWS if f.csb == 1 and large and f.m <= LOW else PACKED if f.csb != 1 or large else IN_PLACE
    segments, width = (f.k + SEGMENT - 1) // SEGMENT, BROAD // tile.itemsize if f.pack == BY_ROWS else tile.nr
    if f.pack != BY_ROWS:  # a job reads A once
        parts = 1 if workers == 1 else min((f.n + tile.nr - 1) // tile.nr, (4 * workers + segments - 1) // segments)
        width = (f.n + parts * tile.nr - 1) // (parts * tile.nr) * tile.nr
    f.nb = width
    # A job: some rows of a panel, and two segments where C is so small that the chains of one wait for each other.
    f.block = ROWS if f.pack == IN_PLACE else f.m
    f.group = 2 if f.m <= HEIGHT // 2 and f.n <= tile.lanes and f.pack != BY_ROWS else 1
    groups = (segments + f.group - 1) // f.group
    if f.pack == PACKED and workers > 1:  # few jobs share the rows, and each packs B for itself
        jobs = groups * ((f.n + width - 1) // width)
        f.block = max(ROWS, f.m * jobs // (4 * workers)) if jobs < 4 * workers else f.m
    chunks = (f.m + f.block - 1) // f.block
    f.jobs = groups * ((f.n + width - 1) // width) * chunks
    panels = workers * min(f.k, SEGMENT) * tile.nr * tile.itemsize if f.pack == PACKED else 0
    direct = f.pack != BY_ROWS and segments == 1 and f.csc == 1 and (f.x == 0 or f.csx == 1)
    f.part = -1 if direct else panels
    # X may be C, where chains wait.
    turns = tile.narrow and f.pack == IN_PLACE and f.m <= tile.mr < f.n > tile.lanes
    f.kc = SEGMENT if direct and f.x != 0 else TURN if turns else STEPS
    return panels if direct else panels + segments * f.m * f.n * tile.itemsize


@jit(forceinline=True)
def _end(tile, f):
    """The planes, if there are any, added in order, become C."""
    if f.part < 0:
        return
    size, m, n, segments = tile.itemsize, f.m, f.n, (f.k + SEGMENT - 1) // SEGMENT
    alpha, beta, planes = peek(tile, f.scalars), peek(tile, f.scalars + size), f.room + f.part
    _, _, c, x = matrices(f)
    for s in range(segments):
        chains = planes + s * m * n * size, n
        finish(tile, (m, n), chains, (planes, n), s == 0, s == segments - 1, c, x, alpha, beta)


# out = alpha * a @ b + beta * x, as `packed` does it for any shape.
door = doors(_deep, _plan, "deep", end=_end)
