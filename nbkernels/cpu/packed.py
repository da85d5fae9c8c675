"""The packed path: five loops (Goto and van de Geijn, 2008) around the micro-kernel.

jc  nc columns of C   ic  mc rows of C   pc  kc steps of k: pack A and B          here, in Python; Ctrl-C works
    jb  nb columns: a block of B in L2   ip  mr rows: a panel of A in L1          jobs, taken by threads
        jp  nr columns: one tile of C in registers
"""

from __future__ import annotations

import contextlib
import functools
from array import array

import numpy as np

from ..jit.address import peek, scratch, take
from ..jit.cache import compiled
from ..jit.kind import Kind
from ..jit.tile import Tile
from . import threads
from .finish import MEMORY, PARTIAL, PLAIN, REGISTERS, ending, finish
from .pack import pack, pack_rows_a, pack_rows_b
from .panels import pack_a, pack_b, pack_panel
from .small import SQUARE
from .tiles import SEGMENT, Tiles
from .ukernel import ukernel_packed

# What the loops hand to the compiled block: int64 words. NEXT, which threads contend for, has a cache line to itself.
NEXT = 0
(A, RSA, CSA, B, RSB, CSB, C, RSC, CSC, X, RSX, CSX, PART, RSP, TOTAL, RST, APANELS, BPANELS, SCALARS,
 M, N, KB, START, ENDS, FIRST, LAST, BLOCK, JOBS, FUSED, AJOBS) = range(8, 38)  # fmt: skip
WORDS = 40
ROWS = 16  # steps of k that a job copies into panels: work enough for its overhead, jobs enough for many threads


@functools.cache
def _pack_block(tile) -> int:
    """Pack A[ic:ic+m, pc:pc+kb] and B[pc:pc+kb, jc:jc+n]; a job is a panel, or ROWS steps of k if these are rows."""

    def work(f, task):
        size, kb = tile.itemsize, f[KB]
        job = take(f)
        while job < f[JOBS]:
            if job < f[AJOBS]:
                if f[RSA] == 1:
                    p = job * ROWS  # A[:, p:p+ROWS]
                    target = f[APANELS] + p * tile.mr * size
                    pack_rows_a(tile, f[A] + p * f[CSA] * size, f[CSA], f[M], min(ROWS, kb - p), target, kb)
                else:
                    i = job * tile.mr  # A[i:i+mr, pc:pc+kb]
                    h, target = min(tile.mr, f[M] - i), f[APANELS] + i * kb * size
                    pack(tile, f[A] + i * f[RSA] * size, f[RSA], f[CSA], h, kb, target, tile.mr)
            elif f[CSB] == 1:
                p = (job - f[AJOBS]) * ROWS  # B[p:p+ROWS, :]
                target = f[BPANELS] + p * tile.nr * size
                pack_rows_b(tile, f[B] + p * f[RSB] * size, f[RSB], f[N], min(ROWS, kb - p), target, kb)
            else:
                j = (job - f[AJOBS]) * tile.nr  # B[pc:pc+kb, j:j+nr]
                w, target = min(tile.nr, f[N] - j), f[BPANELS] + j * kb * size
                pack(tile, f[B] + j * f[CSB] * size, f[CSB], f[RSB], w, kb, target, tile.nr)
            job = take(f)

    return compiled(work, "void(CPointer(int64), int64)", f"gemm_pack_{tile}")


@functools.cache
def _convert_block(tile) -> int:
    """The same where panels do not hold operands as they lie in memory."""

    def work(f, task):
        kb = f[KB]
        long = (kb + tile.group - 1) // tile.group  # words
        job = take(f)
        while job < f[JOBS]:
            if job < f[AJOBS]:
                i = job * tile.mr  # A[i:i+mr, pc:pc+kb]
                h, target = min(tile.mr, f[M] - i), f[APANELS] + i * long * tile.step
                pack_a(tile, f[A] + i * f[RSA] * tile.size_a, f[RSA], f[CSA], h, kb, target)
            else:
                j = (job - f[AJOBS]) * tile.nr  # B[pc:pc+kb, j:j+nr]
                w, target = min(tile.nr, f[N] - j), f[BPANELS] + j * (long + tile.head) * tile.step
                pack_b(tile, f[B] + j * f[CSB] * tile.size_b, f[CSB], f[RSB], w, kb, target)
            job = take(f)

    return compiled(work, "void(CPointer(int64), int64)", f"gemm_convert_{tile}")


@functools.cache
def _multiply_block(tile) -> int:
    """C[ic:ic+m, jc:jc+n] takes in one packed block of k; a job is one panel of A against one L2 block of B."""

    def work(f, task):
        kb = f[KB]
        long = (kb + tile.group - 1) // tile.group  # words of a panel
        alpha, beta = peek(tile, f[SCALARS]), peek(tile, f[SCALARS] + tile.size_t)
        square = scratch(SQUARE)  # a chain that ends through memory and needs no room of its own
        stop = ending(f[CSC], f[X], f[CSX], alpha) if f[FIRST] and f[LAST] else MEMORY
        if not f[ENDS]:
            stop = PARTIAL
        panels = (f[M] + tile.mr - 1) // tile.mr
        job = take(f)
        while job < f[JOBS]:
            i, j0 = job % panels * tile.mr, job // panels * f[BLOCK]
            h, a = min(tile.mr, f[M] - i), f[APANELS] + i * long * tile.step
            if f[FUSED]:
                a = f[APANELS] + task * tile.mr * long * tile.step
                pack_panel(tile, f[A] + i * f[RSA] * tile.size_a, f[RSA], f[CSA], h, kb, a)
            for j in range(j0, min(j0 + f[BLOCK], f[N]), tile.nr):  # the A panel stays in L1, B's block in L2
                w, b = min(tile.nr, f[N] - j), f[BPANELS] + j * (long + tile.head) * tile.step
                c = f[C] + (i * f[RSC] + j * f[CSC]) * tile.size_c
                x = f[X] + (i * f[RSX] + j * f[CSX]) * tile.size_c if f[X] != 0 else 0
                part, rsp = (f[PART] + (i * f[RSP] + j) * tile.size_t, f[RSP]) if f[PART] != 0 else (square, tile.nr)
                code, to, rst = (stop, c, f[RSC]) if stop in (PLAIN, REGISTERS) else (PARTIAL, part, rsp)
                ukernel_packed(tile, h, a, 1, tile.mr, b, tile.nr, long, part, rsp, to, rst, w, f[START], code,
                        x, f[RSX], alpha, beta)  # fmt: skip
                if stop == MEMORY:
                    total = f[TOTAL] + (i * f[RST] + j) * tile.size_t
                    finish(tile, h, w, part, rsp, total, f[RST], f[FIRST] != 0, f[LAST] != 0,
                           c, f[RSC], f[CSC], x, f[RSX], f[CSX], alpha, beta)  # fmt: skip
            job = take(f)

    return compiled(work, "void(CPointer(int64), int64)", f"gemm_multiply_{tile}")


def blocks(k: int, kc: int, group: int = 1):
    """Cut k: (start, length, first and last of its segment, first and last segment), lengths even and at most kc.

    Lengths are multiples of `group`, but for the last.

    >>> list(blocks(5, 3))
    [(0, 3, True, False, True, True), (3, 2, False, True, True, True)]
    """
    for segment in range(0, k, SEGMENT):
        length = min(SEGMENT, k - segment)
        step = _up(-(-length // -(-length // kc)), group)
        for p in range(0, length, step):
            ends = p + step >= length
            yield segment + p, min(step, length - p), p == 0, ends, segment == 0, segment + length == k


def packed(out, x, a, b, beta, alpha, tiles: Tiles, kind: Kind, workers: int) -> None:
    """The five loops: jc, ic, pc here (Ctrl-C works between blocks), ip and jp in the compiled block, over threads."""
    size, (m, n), k = out.itemsize, out.shape, a.shape[1]
    (c, rsc, csc), (a, rsa, csa), (b, rsb, csb), (x, rsx, csx) = (_operand(each, m, n) for each in (out, a, b, x))
    if csc != size and rsc == size:  # C' = B' A': stored along the contiguous side
        m, n, rsc, csc, rsx, csx = n, m, csc, rsc, csx, rsx
        (a, rsa, csa), (b, rsb, csb), kind = (b, csb, rsb), (a, csa, rsa), kind.swapped()
    tile, pack_block = tiles.tile(kind), _pack_block if kind.same else _convert_block
    mc, nc, kc = min(m, tiles.mc), min(n, tiles.nc), min(k, tiles.kc)

    # Chains cut by kc wait in out itself, unless its rows are not contiguous or X is read from there at the end; so do
    # the sums of finished segments.
    direct = csc == size and x != c and kind.direct
    cut, segments = k > kc, -(-k // SEGMENT)
    waiting = cut and not (direct and segments == 1), segments > 1 and not direct
    fused = n <= tiles.nb and workers > 1
    apanels, bpanels, plane = buffers(m, n, k, tiles, tile, workers)
    with _room(apanels + bpanels + plane * sum(waiting)) as room:
        scalars = np.array([alpha, beta], kind.chain)
        f = array("q", bytes(8 * WORDS))
        f[SCALARS], f[BLOCK], f[APANELS], f[BPANELS] = scalars.ctypes.data, tiles.nb, room, room + apanels
        f[FUSED] = fused
        f[RSA], f[CSA], f[RSB], f[CSB] = rsa // tile.size_a, csa // tile.size_a, rsb // tile.size_b, csb // tile.size_b
        f[RSC], f[CSC], f[RSX], f[CSX] = rsc // size, csc // size, rsx // size, csx // size
        spare = room + apanels + bpanels
        for jc in range(0, n, nc):
            for ic in range(0, m, mc):
                f[M], f[N] = min(mc, m - ic), min(nc, n - jc)  # C[ic:ic+mc, jc:jc+nc]
                f[C], f[X] = c + ic * rsc + jc * csc, x and x + ic * rsx + jc * csx
                f[PART], f[RSP] = (spare, nc) if waiting[0] else (f[C], f[RSC]) if cut else (0, 0)
                f[TOTAL], f[RST] = (spare + plane, nc) if waiting[1] else (f[C], f[RSC])
                for p, kb, begins, ends, first, last in blocks(
                    k, kc, tile.group
                ):  # A[ic:ic+mc, p:p+kb] @ B[p:p+kb, jc:jc+nc]
                    f[A], f[B] = a + ic * rsa + p * csa, b + p * rsb + jc * csb
                    f[KB], f[START], f[ENDS], f[FIRST], f[LAST] = kb, not begins, ends, first, last
                    panels = -(-f[M] // tile.mr)
                    f[AJOBS] = 0 if fused else -(-kb // ROWS) if f[RSA] == 1 and kind.same else panels
                    bjobs = -(-kb // ROWS) if f[CSB] == 1 and kind.same else -(-f[N] // tile.nr)
                    _launch(pack_block(tile), f, f[AJOBS] + bjobs, workers)
                    _launch(_multiply_block(tile), f, panels * -(-f[N] // tiles.nb), workers)


def buffers(m: int, n: int, k: int, tiles: Tiles, tile: Tile, workers: int) -> tuple[int, int, int]:
    """Bytes for panels of A, for panels of B, and for one plane of waiting sums: all that a product needs beside out.

    In items of the panels' dtype, complex numbers two each, k counted in words:
    A: min(m, mc) * min(k, kc) items, or workers * mr * min(k, kc) where several threads meet n <= nb: a panel of A that
    meets one block of B only is packed by the thread that multiplies it, just before (n = 512, two threads: 5 % faster;
    one thread: 2 % slower). B: min(n, nc) * min(k, kc) items. A plane of
    min(m, mc) * min(n, nc) items is needed only where chains are cut (k > kc) and out cannot hold them: no contiguous
    rows, in-place, or k > 4096; a second one for k > 4096 where out is in-place or has no contiguous rows.

    >>> tiles = Tiles(12, 32, 512, 512, 4092, 4096)
    >>> buffers(1500, 1500, 1500, tiles, Tile("float32", 12, 2, 16), 2)
    (3072000, 3080192, 9000000)
    """
    mc, nc, kc = min(m, tiles.mc), min(n, tiles.nc), min(k, tiles.kc)
    rows = workers * tiles.mr if n <= tiles.nb and workers > 1 else _up(mc, tiles.mr)
    words = -(-kc // tile.group)
    sizes = rows * words * tile.step, _up(nc, tiles.nr) * (words + tile.head) * tile.step, mc * nc * tile.size_t
    return tuple(_up(size, 64) for size in sizes)


def _operand(operand, m: int, n: int) -> tuple[int, int, int]:
    """Address and both strides in bytes; 0 where an X is broadcast to m x n, and for the address of an absent X."""
    if operand is None:
        return 0, 0, 0
    (rows, columns), strides = (1, 1, *operand.shape)[-2:], (0, 0, *operand.strides)[-2:]
    return operand.ctypes.data, strides[0] if rows > 1 or m == 1 else 0, strides[1] if columns > 1 or n == 1 else 0


def _launch(kernel: int, f, jobs: int, workers: int) -> None:
    f[JOBS], f[NEXT] = jobs, 0
    threads.launch(kernel, f.buffer_info()[0], min(workers, jobs))


def _up(size: int, step: int) -> int:
    """size rounded up to a multiple of step."""
    return -(-size // step) * step


@contextlib.contextmanager
def _room(size: int):
    """Address of `size` bytes at the start of a cache line. Rooms up to 64 MiB are kept for the next call: a fresh one
    would cost a page fault every 4 KiB, a tenth of the time at n = 512."""
    try:
        buffer = _rooms.pop()
    except IndexError:
        buffer = None
    if buffer is None or buffer.size < size + 64:
        buffer = np.empty(size + 64, np.uint8)
    try:
        yield -(-buffer.ctypes.data // 64) * 64
    finally:
        if buffer.size <= 64 << 20 and not _rooms:
            _rooms.append(buffer)


_rooms: list[np.ndarray] = []
