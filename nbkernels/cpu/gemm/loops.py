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

from ...jit.address import invoke, pointer, scratch
from ...jit.cache import compiled, jit
from ...jit.record import address
from ...jit.sharing import arrive, replace, seen, wait
from .block import SQUARE
from .blocking import SEGMENT
from .context import FINISHED, NEXT, WORDS, up
from .kernels import PANEL_A, PANEL_B, STRIP_A, STRIP_B, TILE_BYTES, tile_at
from .matrix import matrices, sub
from .store import MEMORY, PARTIAL, ending

ROWS = 16  # steps of k that a job copies into panels: work enough for its overhead, jobs enough for many threads
RUN = 4  # panels of A in a job, where each thread has JOBS jobs and more
JOBS = 16
PARTS = 3  # stretches for every NEAR bytes of A, where it has more: 2 to 4 are level, 1 MB to 512 KB (Zen 3)
# Blocks with a counter of their own, or as many strips of blocks where there are more; bytes of one's and of all.
STRIPS, COUNT = 64, 128
COUNTS, MARKS = STRIPS * COUNT, 8 * STRIPS


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
def _pack(f, w, side, matrix, width, kb, target, begin):
    """`width` rows of A or columns of B (side) into panels of kb steps; of the matrix its address, and its strides
    along the panel's width and down it. A job is a panel, or ROWS words of k if these are rows. Jobs from `begin` on;
    the first one after them."""
    source, along, down = matrix
    words = (kb + f.group - 1) // f.group  # of a panel, for each of its rows
    head, size, pitch = (f.head, f.size_b, f.nr) if side == PANEL_B else (0, f.size_a, f.mr)
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
def _multiply(f, w, t, task, rows, columns, operands, kb, ends, begin):
    """C[ic+low:ic+m, jc+j0:jc+j0+n] takes in one packed block of k; a job is RUN panels of A against one L2 block of B.
    `operands`: A, C and X from row ic and column jc on; `t`: the words of a tile, which say where in k it is; `ends`: a
    segment does.

    The micro-kernel fetches the next panel ahead, which is of use to the thread that goes on with it.
    """
    (ic, low, m), (jc, j0, n), (a, c, x) = rows, columns, operands
    words = (kb + f.group - 1) // f.group
    panels = (m - low + f.mr - 1) // f.mr
    blocks = (n + f.block - 1) // f.block
    run = max(1, min(RUN, panels * ((f.n + f.block - 1) // f.block) // (JOBS * f.workers)))
    runs = (panels + run - 1) // run
    end = begin + runs * blocks
    square = scratch(SQUARE)  # a chain that ends through memory and needs no room of its own
    t.stop, t.words = PARTIAL, words
    if ends:
        t.stop = ending(f.csc, x[0], f.csx, f.unit) if t.first != 0 and t.last != 0 else MEMORY
    width = min(f.n, f.nc)  # of a plane
    job = _claim(w, end)
    while job < end:
        i0, jb = low + (job - begin) % runs * run * f.mr, j0 + (job - begin) // runs * f.block
        for i in range(i0, min(i0 + run * f.mr, m), f.mr):
            t.height, t.a = min(f.mr, m - i), f.room + i * words * f.step
            if f.fused != 0:
                t.a = f.room + task * f.mr * words * f.step
                source, along, down = sub(a, i, 0, f.size_a)
                invoke(pointer(f.packs)[PANEL_A], (source, along, down, t.height, kb, t.a))
            for j in range(jb, min(jb + f.block, j0 + n), f.nr):  # the A panel stays in L1, B's block in L2
                t.width, t.b = min(f.nr, j0 + n - j), f.room + f.bpanels + j * (words + f.head) * f.step
                t.c, t.x = sub(c, i, j, f.size_c)[0], sub(x, i, j, f.size_c)[0]
                t.part, t.rsp, t.total, t.rst = square, f.nr, t.c, f.rsc
                if f.part > 0:
                    t.part, t.rsp = f.room + f.part + (i * width + j) * f.size_t, width
                elif f.part == 0:
                    t.part, t.rsp = t.c, f.rsc
                if f.total > 0:
                    t.total, t.rst = f.room + f.total + (i * width + j) * f.size_t, width
                invoke(f.multiply, (address(t), f.own))
                if f.after != 0 and ends and t.last != 0:
                    invoke(f.after, (f.context, ic + i, jc + j, t.height, t.width))
        arrive(w, FINISHED)
        job = _claim(w, end)
    return end


@functools.cache
def loops() -> int:
    """The outer loops over the blocks FROM to TO, for one thread: void(words, task)."""

    def work(f, task):
        own, marks = scratch(COUNTS), pointer(scratch(MARKS))  # marks: of each strip, the first job to come
        t = tile_at(scratch(TILE_BYTES))
        counters = f.counters if f.counters != 0 else own
        width = _strip(f)
        strips = (min(f.n, f.nc) + width - 1) // width
        for s in range(strips):
            w, marks[s] = pointer(own + s * COUNT), 0
            w[NEXT], w[FINISHED] = 0, 0
        done, block, groups = 0, 0, min(strips, f.workers)
        whole_a, whole_b, whole_c, whole_x = matrices(f)
        for jc in range(0, f.n, f.nc):
            n = min(f.nc, f.n - jc)
            for ic in range(0, f.m, f.mc):
                m = min(f.mc, f.m - ic)
                c, x = sub(whole_c, ic, jc, f.size_c), sub(whole_x, ic, jc, f.size_c)  # C[ic:ic+mc, jc:jc+nc]
                for segment in range(0, f.k, SEGMENT):
                    length = min(SEGMENT, f.k - segment)
                    cuts = (length + f.kc - 1) // f.kc
                    step = up((length + cuts - 1) // cuts, f.group)  # even pieces
                    for p in range(0, length, step):
                        if f.start <= block < f.stop:  # A[ic:ic+mc, p:p+kb] @ B[p:p+kb, jc:jc+nc]
                            kb = min(step, length - p)
                            a = sub(whole_a, ic, segment + p, f.size_a)
                            t.starts, t.first, t.last = p == 0, segment == 0, segment + length == f.k
                            words = (kb + f.group - 1) // f.group + f.head
                            for s in range(strips):
                                wait(pointer(counters + s * COUNT), FINISHED, marks[s])
                            if f.fused == 0:
                                done = _pack(f, f, PANEL_A, a, m, kb, f.room, done)
                            rows = _stretch(f, m, n, words)
                            for low in range(0, m, rows):
                                for r in range(groups):
                                    for s in range((task + r) % groups, strips, groups):
                                        j0 = s * width
                                        if j0 < n:
                                            w, wide = pointer(counters + s * COUNT), min(width, n - j0)
                                            panels = f.room + f.bpanels + j0 * words * f.step
                                            if low == 0:
                                                b, down, across = sub(whole_b, segment + p, jc + j0, f.size_b)
                                                marks[s] = _pack(f, w, PANEL_B, (b, across, down), wide, kb, panels,
                                                                 marks[s])  # fmt: skip
                                            part, columns = (ic, low, min(low + rows, m)), (jc, j0, wide)
                                            marks[s] = _multiply(f, w, t, task, part, columns, (a, c, x), kb,
                                                                 p + step >= length, marks[s])  # fmt: skip
                        block += 1

    return compiled(work, WORDS.kernel, "gemm_loops")
