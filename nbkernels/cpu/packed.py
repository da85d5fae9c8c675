"""The packed path: five loops (Goto and van de Geijn, 2008) around the micro-kernel, in one launch.

jc  nc columns of C   ic  mc rows of C   pc  kc steps of k: pack B, and A if it must be, then multiply
    jb  nb columns: a block of B in L2, against up to four panels of A                a job, taken by a thread
        ip  mr rows: a panel of A in L1
            jp  nr columns: one tile of C in registers

Every thread walks the outer loops and takes jobs from one counter. A phase (packing, multiplying) begins when all jobs
of the phases before it are done; since only a thread at work holds a job, whatever threads there are finish the whole.
"""

from __future__ import annotations

import functools

from ..jit.address import arrive, invoke, peek, pointer, scratch, take, wait
from ..jit.cache import compiled, jit
from ..jit.kind import Kind
from . import threads
from .finish import MEMORY, PARTIAL, ending, finish
from .panels import pack_a, pack_b, pack_strip_a, pack_strip_b
from .small import DECLINED, DONE, SQUARE
from .tiles import SEGMENT, Tiles
from .ukernel import ukernel_packed, ukernel_rows
from .words import filled, room, up

from .words import (  # isort: skip
    AFTER, BARE, BLOCK, BLOCKS, BPANELS, CONTEXT, CSA, CSB, CSC, CSX, FINISHED, FROM, FUSED, GROUP, HEAD, KC, MC, MR,
    MULTIPLY, NC, NEED, NEXT, NR, PACK, PART, ROOM, ROWWISE, RSA, RSB, RSC, RSX, SCALARS, SELF, SIZE_A, SIZE_B,
    SIZE_C, SIZE_T, STEP, TO, TOTAL, UNIT, WORKERS, A, B, C, K, M, N, X,
)  # fmt: skip

ROWS = 16  # steps of k that a job copies into panels: work enough for its overhead, jobs enough for many threads
RUN = 4  # panels of A in a job, where each thread has JOBS jobs and more
JOBS = 16
# Multiplications in one launch, which Ctrl-C cannot interrupt: about a second of one thread.
LAUNCH = 1 << 36


@functools.cache
def _pack_kernel(tile) -> int:
    """void(what, source, along, down, width, kb, target): a panel or, of operands that lie as panels do, some rows."""

    def pack(what, source, along, down, width, kb, target):
        if what == A:
            pack_a(tile, source, along, down, width, kb, target)
        elif what == B:
            pack_b(tile, source, along, down, width, kb, target)
        elif what == RSA:  # `along` is the number of steps
            pack_strip_a(tile, source, down, width, along, target, kb)
        else:
            pack_strip_b(tile, source, down, width, along, target, kb)

    return compiled(pack, f"void({', '.join(['int64'] * 7)})", f"gemm_pack_{tile}")


@functools.cache
def _multiply_kernel(tile, rows: bool = False) -> int:
    """A tile of C and how it ends: void(...), all arguments int64. `rows`: of A in place, not in panels."""
    micro = ukernel_rows if rows else ukernel_packed

    def multiply(h, w, a, b, words, starts, stop, first, last, part, rsp, to, rst, total, rstt, c, x, f):
        f = pointer(f)
        alpha, beta = peek(tile, f[SCALARS]), peek(tile, f[SCALARS] + tile.size_t)
        code = PARTIAL if stop == MEMORY else stop
        micro(tile, h, a, f[RSA] // tile.group, 1, b, tile.nr, words, part, rsp, to, rst, w, not starts, code,
                x, f[RSX], alpha, beta)  # fmt: skip
        if stop == MEMORY:
            finish(tile, h, w, part, rsp, total, rstt, first != 0, last != 0, c, f[RSC], f[CSC], x, f[RSX], f[CSX],
                   alpha, beta)  # fmt: skip

    return compiled(multiply, f"void({', '.join(['int64'] * 18)})", f"gemm_multiply_{tile}" + "_rows" * rows)


@jit(inline="always")
def _pack(f, a, b, m, n, kb, begin, job):
    """A[ic:ic+m, p:p+kb] and B[p:p+kb, jc:jc+n] into panels; a job is a panel, or ROWS words of k if these are rows.

    Jobs from `begin` on; the last one's follower, and this thread's next job.
    """
    words = (kb + f[GROUP] - 1) // f[GROUP]  # of a panel, for each of its rows
    arows, brows = f[ROWWISE] != 0 and f[RSA] == 1, f[ROWWISE] != 0 and f[CSB] == 1
    rows = ROWS * f[GROUP]
    strips = (kb + rows - 1) // rows
    ajobs = 0 if f[FUSED] != 0 or f[BARE] != 0 else strips if arows else (m + f[MR] - 1) // f[MR]
    end = begin + ajobs + (strips if brows else (n + f[NR] - 1) // f[NR])
    if job < end:
        wait(f, FINISHED, begin)
    while job < end:
        i, target = job - begin, f[ROOM]
        if i < ajobs and arows:
            p = i * rows  # A[:, p:p+rows]
            source, target = a + p * f[CSA] * f[SIZE_A], target + i * ROWS * f[MR] * f[STEP]
            invoke(f[PACK], (RSA, source, min(rows, kb - p), f[CSA], m, kb, target))
        elif i < ajobs:
            i *= f[MR]  # A[i:i+mr, :]
            source, target = a + i * f[RSA] * f[SIZE_A], target + i * words * f[STEP]
            invoke(f[PACK], (A, source, f[RSA], f[CSA], min(f[MR], m - i), kb, target))
        elif brows:
            p = (i - ajobs) * rows  # B[p:p+rows, :]
            source, target = b + p * f[RSB] * f[SIZE_B], target + f[BPANELS] + (i - ajobs) * ROWS * f[NR] * f[STEP]
            invoke(f[PACK], (RSB, source, min(rows, kb - p), f[RSB], n, kb, target))
        else:
            j = (i - ajobs) * f[NR]  # B[:, j:j+nr]
            source, target = b + j * f[CSB] * f[SIZE_B], target + f[BPANELS] + j * (words + f[HEAD]) * f[STEP]
            invoke(f[PACK], (B, source, f[CSB], f[RSB], min(f[NR], n - j), kb, target))
        arrive(f, FINISHED)
        job = take(f, NEXT)
    return end, job


@jit(inline="always")
def _multiply(f, task, a, c, x, ic, jc, m, n, kb, starts, ends, first, last, begin, job):
    """C[ic:ic+m, jc:jc+n] takes in one packed block of k; a job is RUN panels of A against one L2 block of B.

    The micro-kernel fetches the next panel ahead, which is of use to the thread that goes on with it.
    """
    words = (kb + f[GROUP] - 1) // f[GROUP]
    panels = (m + f[MR] - 1) // f[MR]
    blocks = (n + f[BLOCK] - 1) // f[BLOCK]
    run = max(1, min(RUN, panels * blocks // (JOBS * f[WORKERS])))
    runs = (panels + run - 1) // run
    end = begin + runs * blocks
    if job < end:
        wait(f, FINISHED, begin)
    square = scratch(SQUARE)  # a chain that ends through memory and needs no room of its own
    stop = PARTIAL
    if ends:
        stop = ending(f[CSC], x, f[CSX], f[UNIT]) if first and last else MEMORY
    width = min(f[N], f[NC])  # of a plane
    while job < end:
        i0, j0 = (job - begin) % runs * run * f[MR], (job - begin) // runs * f[BLOCK]
        for i in range(i0, min(i0 + run * f[MR], m), f[MR]):
            h, apanel = min(f[MR], m - i), f[ROOM] + i * words * f[STEP]
            if f[BARE] != 0:
                apanel = a + i * f[RSA] * f[SIZE_A]
            elif f[FUSED] != 0:
                apanel = f[ROOM] + task * f[MR] * words * f[STEP]
                invoke(f[PACK], (A, a + i * f[RSA] * f[SIZE_A], f[RSA], f[CSA], h, kb, apanel))
            for j in range(j0, min(j0 + f[BLOCK], n), f[NR]):  # the A panel stays in L1, B's block in L2
                w, bpanel = min(f[NR], n - j), f[ROOM] + f[BPANELS] + j * (words + f[HEAD]) * f[STEP]
                cij = c + (i * f[RSC] + j * f[CSC]) * f[SIZE_C]
                xij = x + (i * f[RSX] + j * f[CSX]) * f[SIZE_C] if x != 0 else 0
                part, rsp, total, rstt = square, f[NR], cij, f[RSC]
                if f[PART] > 0:
                    part, rsp = f[ROOM] + f[PART] + (i * width + j) * f[SIZE_T], width
                elif f[PART] == 0:
                    part, rsp = cij, f[RSC]
                if f[TOTAL] > 0:
                    total, rstt = f[ROOM] + f[TOTAL] + (i * width + j) * f[SIZE_T], width
                registers = stop != PARTIAL and stop != MEMORY
                to, rst = (cij, f[RSC]) if registers else (part, rsp)
                invoke(f[MULTIPLY], (h, w, apanel, bpanel, words, starts, stop, first, last, part, rsp, to, rst,
                       total, rstt, cij, xij, f[SELF]))  # fmt: skip
                if f[AFTER] != 0 and ends and last:
                    invoke(f[AFTER], (f[CONTEXT], ic + i, jc + j, h, w))
        arrive(f, FINISHED)
        job = take(f, NEXT)
    return end, job


@functools.cache
def loops() -> int:
    """The outer loops over the blocks FROM to TO, for one thread: void(words, task)."""

    def work(f, task):
        job, begin, block = take(f, NEXT), 0, 0
        for jc in range(0, f[N], f[NC]):
            n = min(f[NC], f[N] - jc)
            for ic in range(0, f[M], f[MC]):
                m = min(f[MC], f[M] - ic)
                c = f[C] + (ic * f[RSC] + jc * f[CSC]) * f[SIZE_C]  # C[ic:ic+mc, jc:jc+nc]
                x = f[X] + (ic * f[RSX] + jc * f[CSX]) * f[SIZE_C] if f[X] != 0 else 0
                for segment in range(0, f[K], SEGMENT):
                    length = min(SEGMENT, f[K] - segment)
                    cuts = (length + f[KC] - 1) // f[KC]
                    step = up((length + cuts - 1) // cuts, f[GROUP])  # even pieces
                    for p in range(0, length, step):
                        if f[FROM] <= block < f[TO]:  # A[ic:ic+mc, p:p+kb] @ B[p:p+kb, jc:jc+nc]
                            kb = min(step, length - p)
                            a = f[A] + (ic * f[RSA] + (segment + p) * f[CSA]) * f[SIZE_A]
                            b = f[B] + ((segment + p) * f[RSB] + jc * f[CSB]) * f[SIZE_B]
                            begin, job = _pack(f, a, b, m, n, kb, begin, job)
                            begin, job = _multiply(f, task, a, c, x, ic, jc, m, n, kb, p == 0,
                                p + step >= length, segment == 0, segment + length == f[K], begin, job)  # fmt: skip
                        block += 1

    return compiled(work, "void(CPointer(int64), int64)", "gemm_loops")


@functools.cache
def kernels(tile, rows: bool = False) -> tuple[int, int]:
    return _pack_kernel(tile), _multiply_kernel(tile, rows)


def packed(out, x, a, b, beta, alpha, tiles: Tiles, kind: Kind, workers: int, trusted: bool = True,
           after=None) -> int:  # fmt: skip
    """out = alpha * a @ b + beta * x, x given by its id or 0: DONE, or, where arrays not trusted are unusual, DECLINED
    with nothing done. `after`, an epilogue.After, is applied to each tile that is done."""
    swapped = out.strides[1] != out.itemsize and out.strides[0] == out.itemsize
    if swapped:
        kind = kind.swapped()
    f, kept = filled(out, x, a, b, beta, alpha, tiles, kind, workers, trusted, kind.bare)
    if f is None:
        return DECLINED
    f[PACK], f[MULTIPLY] = kernels(tiles.tile(kind), f[BARE] != 0)
    if after is not None:
        f[AFTER], context = after.words(swapped)
        f[CONTEXT] = context.buffer_info()[0]
    each = max(1, LAUNCH * f[BLOCKS] // (f[M] * f[N] * f[K]))
    with room(f[NEED]) as f[ROOM]:
        for block in range(0, f[BLOCKS], each):  # Ctrl-C works between launches
            f[NEXT], f[FINISHED], f[FROM], f[TO] = 0, 0, block, block + each
            threads.launch(loops(), f[SELF], workers)
    return DONE
