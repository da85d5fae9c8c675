"""The packed path: five loops (Goto and van de Geijn, 2008) around the micro-kernel, in one launch.

jc  nc columns of C   ic  mc rows of C   pc  kc steps of k: pack A if it must be, then each block
    jb  nb columns: a block of B in L2, packed, then multiplied by panels of A, up to four of them a job; where A is
        larger than the caches, by a stretch of A at a time
        ip  mr rows: a panel of A in L1
            jp  nr columns: one tile of C in registers

Every thread walks the outer loops. Each has blocks of its own, which it packs and multiplies first, so that what one
thread has packed seldom goes through the caches of two; then it helps with the jobs that are left of the others'. Jobs
are claimed from a counter for each block, and a phase (packing, multiplying) begins when all of the block's jobs before
it are done; since only a thread at work holds a job, whatever threads there are finish the whole.
"""

from __future__ import annotations

import functools

from ...jit.address import arrive, invoke, peek, pointer, replace, scratch, seen, wait
from ...jit.cache import compiled, jit
from .block import SQUARE
from .blocking import SEGMENT
from .context import (
    FINISHED,
    LIES,
    NEXT,
    PACKER,
    PACKS,
    PANEL_A,
    PANEL_B,
    STRIP_A,
    STRIP_B,
    WORDS,
    packers,
    ready,
    up,
    words_at,
)
from .microkernel import absent_of, table, ukernel_columns, ukernel_packed, ukernel_rows
from .pack_converting import pack_a, pack_b, pack_strip_a, pack_strip_b
from .store import MEMORY, PARTIAL, ending, finish

ROWS = 16  # steps of k that a job copies into panels: work enough for its overhead, jobs enough for many threads
RUN = 4  # panels of A in a job, where each thread has JOBS jobs and more
JOBS = 16
PARTS = 3  # stretches for every NEAR bytes of A, where it has more: 2 to 4 are level, 1 MB to 512 KB (Zen 3)
# Blocks with a counter of their own, or as many strips of blocks where there are more; bytes of one's and of all.
STRIPS, COUNT = 64, 128
COUNTS, MARKS = STRIPS * COUNT, 8 * STRIPS


@functools.cache
def _pack_kernel(tile, what: int) -> int:
    """void(source, along, down, width, kb, target): a panel or, of operands that lie as panels do, some rows, of which
    `along` is the number."""
    panel, strip = (pack_a, pack_strip_a) if what in (PANEL_A, STRIP_A) else (pack_b, pack_strip_b)

    def pack_panel(source, along, down, width, kb, target):
        panel(tile, source, along, down, width, kb, target)

    def pack_rows(source, along, down, width, kb, target):
        strip(tile, source, down, width, along, target, kb)

    name = ("a", "b", "rows_a", "rows_b")[what]
    pack = pack_panel if what in (PANEL_A, PANEL_B) else pack_rows
    return compiled(pack, f"void({', '.join(['int64'] * 6)})", f"gemm_pack_{tile}_{name}")


# How A lies -> its micro-kernel.
MICRO = {"panels": ukernel_packed, "rows": ukernel_rows, "columns": ukernel_columns}


@functools.cache
def _multiply_kernel(tile, lie: str) -> int:
    """A tile of C and how it ends: void(...), all arguments int64."""
    micro = MICRO[lie]

    def multiply(h, w, a, b, words, starts, stop, first, last, part, rsp, to, rst, total, rstt, c, x, f):
        f = words_at(f)
        alpha, beta = peek(tile, f.scalars), peek(tile, f.scalars + tile.size_t)
        code = PARTIAL if stop == MEMORY else stop
        micro(tile, h, a, f.rsa // tile.group, f.csa, b, tile.nr, words, part, rsp, to, rst, w, not starts, code,
                x, f.rsx, alpha, beta)  # fmt: skip
        if stop == MEMORY:
            finish(tile, h, w, part, rsp, total, rstt, first != 0, last != 0, c, f.rsc, f.csc, x, f.rsx, f.csx,
                   alpha, beta)  # fmt: skip

    return compiled(multiply, f"void({', '.join(['int64'] * 18)})", f"gemm_multiply_{tile}_{lie}")


@jit(forceinline=True)
def _strip(f):
    """Columns that share a counter: of a block, or of some where there are too many."""
    blocks = (min(f.n, f.nc) + f.block - 1) // f.block
    return (blocks + STRIPS - 1) // STRIPS * f.block


@jit(forceinline=True)
def _stretch(f, m, n, words):
    """Rows of A that meet all of B before the others do: as many as stay in the caches meanwhile. All of a larger A
    would come from memory again for each block of B (Zen 3, one thread, GFLOP/s, at once and in stretches: f64 n = 1024
    34 -> 39, 2048 35 -> 38, f32 1500 72 -> 78, 2048 76 -> 80, 4096 76 -> 83)."""
    size = m * words * f.step
    parts = (PARTS * size + f.near - 1) // f.near if size > f.near and n > f.block else 1
    return up((m + parts - 1) // parts, f.mr)


@jit(forceinline=True)
def _claim(w, end):
    """The next job of a counter's, if it is before `end`, for this thread alone; else `end` or more."""
    job = seen(w, NEXT)
    while job < end and not replace(w, NEXT, job, job + 1):
        job = seen(w, NEXT)
    return job


@jit(forceinline=True)
def _pack(f, w, side, source, along, down, size, pitch, width, kb, target, begin):
    """`width` rows of A or columns of B (side), `along` apart, into panels of `pitch` and kb steps, `down` apart; a job
    is a panel, or ROWS words of k if these are rows. Jobs from `begin` on; the first one after them."""
    words = (kb + f.group - 1) // f.group  # of a panel, for each of its rows
    head = f.head if side == PANEL_B else 0
    rowwise, rows = f.rowwise != 0 and along == 1, ROWS * f.group
    end = begin + ((kb + rows - 1) // rows if rowwise else (width + pitch - 1) // pitch)
    job, packs = _claim(w, end), pointer(f.packs)
    while job < end:
        i = job - begin
        if rowwise:
            p, to, code = i * rows, target + i * ROWS * pitch * f.step, STRIP_A if side == PANEL_A else STRIP_B
            invoke(packs[code], (source + p * down * size, min(rows, kb - p), down, width, kb, to))
        else:
            j = i * pitch
            to = target + j * (words + head) * f.step
            invoke(packs[side], (source + j * along * size, along, down, min(pitch, width - j), kb, to))
        arrive(w, FINISHED)
        job = _claim(w, end)
    wait(w, FINISHED, end)
    return end


@jit(forceinline=True)
def _multiply(f, w, task, a, c, x, ic, jc, low, m, j0, n, kb, starts, ends, first, last, begin):
    """C[ic+low:ic+m, jc+j0:jc+j0+n] takes in one packed block of k; a job is RUN panels of A against one L2 block of B.

    The micro-kernel fetches the next panel ahead, which is of use to the thread that goes on with it.
    """
    words = (kb + f.group - 1) // f.group
    panels = (m - low + f.mr - 1) // f.mr
    blocks = (n + f.block - 1) // f.block
    run = max(1, min(RUN, panels * ((f.n + f.block - 1) // f.block) // (JOBS * f.workers)))
    runs = (panels + run - 1) // run
    end = begin + runs * blocks
    square = scratch(SQUARE)  # a chain that ends through memory and needs no room of its own
    stop = PARTIAL
    if ends:
        stop = ending(f.csc, x, f.csx, f.unit) if first and last else MEMORY
    width = min(f.n, f.nc)  # of a plane
    job = _claim(w, end)
    while job < end:
        i0, jb = low + (job - begin) % runs * run * f.mr, j0 + (job - begin) // runs * f.block
        for i in range(i0, min(i0 + run * f.mr, m), f.mr):
            h, apanel = min(f.mr, m - i), f.room + i * words * f.step
            if f.bare != 0:
                apanel = a + i * f.rsa * f.size_a
            elif f.fused != 0:
                apanel = f.room + task * f.mr * words * f.step
                invoke(pointer(f.packs)[PANEL_A], (a + i * f.rsa * f.size_a, f.rsa, f.csa, h, kb, apanel))
            for j in range(jb, min(jb + f.block, j0 + n), f.nr):  # the A panel stays in L1, B's block in L2
                across, bpanel = min(f.nr, j0 + n - j), f.room + f.bpanels + j * (words + f.head) * f.step
                cij = c + (i * f.rsc + j * f.csc) * f.size_c
                xij = x + (i * f.rsx + j * f.csx) * f.size_c if x != 0 else 0
                part, rsp, total, rstt = square, f.nr, cij, f.rsc
                if f.part > 0:
                    part, rsp = f.room + f.part + (i * width + j) * f.size_t, width
                elif f.part == 0:
                    part, rsp = cij, f.rsc
                if f.total > 0:
                    total, rstt = f.room + f.total + (i * width + j) * f.size_t, width
                registers = stop != PARTIAL and stop != MEMORY
                to, rst = (cij, f.rsc) if registers else (part, rsp)
                invoke(f.multiply, (h, across, apanel, bpanel, words, starts, stop, first, last, part, rsp, to, rst,
                       total, rstt, cij, xij, f.own))  # fmt: skip
                if f.after != 0 and ends and last:
                    invoke(f.after, (f.context, ic + i, jc + j, h, across))
        arrive(w, FINISHED)
        job = _claim(w, end)
    return end


@functools.cache
def loops() -> int:
    """The outer loops over the blocks FROM to TO, for one thread: void(words, task)."""

    def work(f, task):
        own, marks = scratch(COUNTS), pointer(scratch(MARKS))  # marks: of each strip, the first job to come
        counters = f.counters if f.counters != 0 else own
        width = _strip(f)
        strips = (min(f.n, f.nc) + width - 1) // width
        for s in range(strips):
            w, marks[s] = pointer(own + s * COUNT), 0
            w[NEXT], w[FINISHED] = 0, 0
        done, block, groups = 0, 0, min(strips, f.workers)
        for jc in range(0, f.n, f.nc):
            n = min(f.nc, f.n - jc)
            for ic in range(0, f.m, f.mc):
                m = min(f.mc, f.m - ic)
                c = f.c + (ic * f.rsc + jc * f.csc) * f.size_c  # C[ic:ic+mc, jc:jc+nc]
                x = f.x + (ic * f.rsx + jc * f.csx) * f.size_c if f.x != 0 else 0
                for segment in range(0, f.k, SEGMENT):
                    length = min(SEGMENT, f.k - segment)
                    cuts = (length + f.kc - 1) // f.kc
                    step = up((length + cuts - 1) // cuts, f.group)  # even pieces
                    for p in range(0, length, step):
                        if f.start <= block < f.stop:  # A[ic:ic+mc, p:p+kb] @ B[p:p+kb, jc:jc+nc]
                            kb = min(step, length - p)
                            a = f.a + (ic * f.rsa + (segment + p) * f.csa) * f.size_a
                            b = f.b + ((segment + p) * f.rsb + jc * f.csb) * f.size_b
                            words = (kb + f.group - 1) // f.group + f.head
                            for s in range(strips):
                                wait(pointer(counters + s * COUNT), FINISHED, marks[s])
                            if f.fused == 0 and f.bare == 0:
                                done = _pack(f, f, PANEL_A, a, f.rsa, f.csa, f.size_a, f.mr, m, kb, f.room, done)
                            rows = _stretch(f, m, n, words)
                            for low in range(0, m, rows):
                                for r in range(groups):
                                    for s in range((task + r) % groups, strips, groups):
                                        j0 = s * width
                                        if j0 < n:
                                            w, wide = pointer(counters + s * COUNT), min(width, n - j0)
                                            panels = f.room + f.bpanels + j0 * words * f.step
                                            if low == 0:
                                                marks[s] = _pack(f, w, PANEL_B, b + j0 * f.csb * f.size_b, f.csb, f.rsb,
                                                    f.size_b, f.nr, wide, kb, panels, marks[s])  # fmt: skip
                                            marks[s] = _multiply(f, w, task, a, c, x, ic, jc, low, min(low + rows, m),
                                                j0, wide, kb, p == 0, p + step >= length, segment == 0,
                                                segment + length == f.k, marks[s])  # fmt: skip
                        block += 1

    return compiled(work, WORDS.kernel, "gemm_loops")


def multiplier(tile, lie: str = "panels") -> int:
    """What multiplies an A that lies so."""
    found = _multiply_kernel(tile, lie)
    ready(tile)[list(LIES).index(lie)] = found
    return found


def supply(tile, at: int) -> None:
    """Compile or load what `context.missing` names."""
    if at >= PACKS:
        ready(tile)[PACKER + at - PACKS] = _pack_kernel(tile, at - PACKS)
    else:
        table(tile).supply(at)


def every_packer(tile) -> None:
    """All that pack."""
    for what in range(4):
        supply(tile, PACKS + what)


def kernels_of(f, tile, lie: str = "panels", alone=False) -> None:
    """What the product of these words, which is cut, needs of the loops' kernels; `alone`: as one tile."""
    m, n = (size if size < step else step + size % step for size, step in ((f.m, tile.mr), (f.n, tile.nr)))
    f.multiply = _supplied(tile, lie, packers(f, alone)[int(f.bare != 0) :], m, n)


@functools.lru_cache(4096)
def _supplied(tile, lie, packs, m, n) -> int:
    """What multiplies, with all that it calls for m rows and n columns, or any that leave the same over. Each product
    asks."""
    for what in packs:
        supply(tile, PACKS + what)
    while (at := absent_of(tile, table(tile).words, LIES[lie], m, n)) >= 0:
        supply(tile, at)
    return multiplier(tile, lie)
