"""The packed path: five loops (Goto and van de Geijn, 2008) around the micro-kernel, in one launch.

jc  nc columns of C   ic  mc rows of C   pc  kc steps of k: pack A and B, then multiply
    jb  nb columns: a block of B in L2   ip  mr rows: a panel of A in L1              jobs, taken by threads
        jp  nr columns: one tile of C in registers

Every thread walks the outer loops and takes jobs from one counter. A phase (packing, multiplying) begins when all jobs
of the phases before it are done; since only a thread at work holds a job, whatever threads there are finish the whole.
"""

from __future__ import annotations

import functools
from array import array

import numpy as np

from ..jit.address import arrive, invoke, peek, pointer, scratch, take, wait
from ..jit.cache import compiled, entry, jit
from ..jit.kind import Kind
from ..jit.ndarray import data, ndim, shape, stride
from ..jit.tile import Tile
from . import threads
from .finish import MEMORY, PARTIAL, ending, finish
from .panels import pack_a, pack_b, pack_strip_a, pack_strip_b
from .small import DECLINED, DONE, SQUARE, unusual
from .tiles import SEGMENT, Tiles
from .ukernel import ukernel_packed

# What the loops read: int64 words. NEXT and FINISHED, which threads contend for, have a cache line each. The first row
# comes with the tiles, the second from `prepare`.
NEXT, FINISHED = 0, 8
(PACK, MULTIPLY, MR, NR, KC, NB, MC, NC, GROUP, STEP, HEAD, SIZE_A, SIZE_B, SIZE_C, SIZE_T, DIRECT, ROWWISE, WORKERS,
 SCALARS, UNIT, READS, TRUSTED, A, RSA, CSA, B, RSB, CSB, C, RSC, CSC, X, RSX, CSX, M, N, K, BLOCK, FUSED, BPANELS,
 PART, TOTAL, NEED, BLOCKS, ROOM, FROM, TO, SELF) = range(16, 64)  # fmt: skip
WORDS = 64
ROWS = 16  # steps of k that a job copies into panels: work enough for its overhead, jobs enough for many threads
# Multiplications in one launch, which Ctrl-C cannot interrupt: about a second of one thread.
LAUNCH = 1 << 36


@jit(inline="always")
def _up(size, step):
    """size rounded up to a multiple of step."""
    return (size + step - 1) // step * step


@jit(inline="always")
def _sizes(m, n, k, mr, nr, kc, nb, mc, nc, group, step, head, size_t, workers):
    """The formula of `buffers`."""
    rows = workers * mr if n <= nb and workers > 1 else _up(min(m, mc), mr)
    words = (min(k, kc) + group - 1) // group
    apanels, bpanels = rows * words * step, _up(min(n, nc), nr) * (words + head) * step
    return _up(apanels, 64), _up(bpanels, 64), _up(min(m, mc) * min(n, nc) * size_t, 64)


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
    sizes = tile.group, tile.step, tile.head, tile.size_t, workers
    return _sizes.py_func(m, n, k, tiles.mr, tiles.nr, tiles.kc, tiles.nb, tiles.mc, tiles.nc, *sizes)


@functools.cache
def _template(tiles: Tiles, kind: Kind, workers: int) -> bytes:
    """The words that come with the tiles."""
    tile = tiles.tile(kind)
    words = array("q", bytes(8 * WORDS))
    for word, value in {
        MR: tiles.mr, NR: tiles.nr, KC: tiles.kc, NB: tiles.nb, MC: tiles.mc, NC: tiles.nc, WORKERS: workers,
        GROUP: tile.group, STEP: tile.step, HEAD: tile.head, SIZE_A: tile.size_a, SIZE_B: tile.size_b,
        SIZE_C: tile.size_c, SIZE_T: tile.size_t, DIRECT: kind.direct, ROWWISE: not tile.head,
        PACK: _pack_kernel(tile), MULTIPLY: _multiply_kernel(tile),
    }.items():  # fmt: skip
        words[word] = value
    return words.tobytes()


@functools.cache
def _prepare():
    """int64(id of out, of x or 0, of a, of b, address of the words): DONE, or DECLINED where checks are asked for."""

    def run(out, x, a, b, words):
        f = pointer(words)
        if f[TRUSTED] == 0 and unusual(out, x, a, b, f[SIZE_C]):
            return DECLINED
        m, n, k = shape(a, 0), shape(b, 1), shape(a, 1)
        c, rsc, csc = data(out), stride(out, 0), stride(out, 1)
        pa, rsa, csa, pb, rsb, csb = data(a), stride(a, 0), stride(a, 1), data(b), stride(b, 0), stride(b, 1)
        px, rsx, csx = 0, 0, 0
        if x != 0 and f[READS] != 0:
            px, last = data(x), ndim(x) - 1
            if last > 0 and (shape(x, 0) > 1 or m == 1):
                rsx = stride(x, 0)
            if last >= 0 and (shape(x, last) > 1 or n == 1):
                csx = stride(x, last)
        if csc != f[SIZE_C] and rsc == f[SIZE_C]:  # C' = B' A': stored along the contiguous side
            m, n, rsc, csc, rsx, csx = n, m, csc, rsc, csx, rsx
            pa, rsa, csa, pb, rsb, csb = pb, csb, rsb, pa, csa, rsa
        f[M], f[N], f[K], f[A], f[B], f[C], f[X] = m, n, k, pa, pb, c, px
        f[RSA], f[CSA], f[RSB], f[CSB] = rsa // f[SIZE_A], csa // f[SIZE_A], rsb // f[SIZE_B], csb // f[SIZE_B]
        f[RSC], f[CSC], f[RSX], f[CSX] = rsc // f[SIZE_C], csc // f[SIZE_C], rsx // f[SIZE_C], csx // f[SIZE_C]

        f[FUSED] = n <= f[NB] and f[WORKERS] > 1
        blocks = (n + f[NB] - 1) // f[NB]
        f[BLOCK] = _up((n + blocks - 1) // blocks, f[NR])
        apanels, bpanels, plane = _sizes(m, n, k, f[MR], f[NR], f[KC], f[NB], f[MC], f[NC], f[GROUP], f[STEP], f[HEAD],
                                         f[SIZE_T], f[WORKERS])  # fmt: skip
        f[BPANELS], need = apanels, apanels + bpanels
        # Chains cut by kc wait in out itself, unless its rows are not contiguous or X is read from there at the end;
        # so do the sums of finished segments. PART and TOTAL: offset of a plane, or 0 for out, or -1 for nowhere.
        direct = csc == f[SIZE_C] and px != c and f[DIRECT] != 0
        cut, segments = k > f[KC], (k + SEGMENT - 1) // SEGMENT
        f[PART], f[TOTAL] = 0 if cut else -1, 0
        if cut and not (direct and segments == 1):
            f[PART] = need
            need += plane
        if segments > 1 and not direct:
            f[TOTAL] = need
            need += plane
        f[NEED] = need
        cuts = (min(k, SEGMENT) + f[KC] - 1) // f[KC] * segments  # at least as many as there are
        f[BLOCKS] = ((m + f[MC] - 1) // f[MC]) * ((n + f[NC] - 1) // f[NC]) * cuts
        return DONE

    return entry(run, "int64(int64, int64, int64, int64, int64)", "gemm_prepare")


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
def _multiply_kernel(tile) -> int:
    """A tile of C and how it ends: void(...), all arguments int64."""

    def multiply(h, w, a, b, words, starts, stop, first, last, part, rsp, to, rst, total, rstt, c, x, f):
        f = pointer(f)
        alpha, beta = peek(tile, f[SCALARS]), peek(tile, f[SCALARS] + tile.size_t)
        code = PARTIAL if stop == MEMORY else stop
        ukernel_packed(tile, h, a, 1, tile.mr, b, tile.nr, words, part, rsp, to, rst, w, not starts, code,
                x, f[RSX], alpha, beta)  # fmt: skip
        if stop == MEMORY:
            finish(tile, h, w, part, rsp, total, rstt, first != 0, last != 0, c, f[RSC], f[CSC], x, f[RSX], f[CSX],
                   alpha, beta)  # fmt: skip

    return compiled(multiply, f"void({', '.join(['int64'] * 18)})", f"gemm_multiply_{tile}")


@jit(inline="always")
def _pack(f, a, b, m, n, kb, begin, job):
    """A[ic:ic+m, p:p+kb] and B[p:p+kb, jc:jc+n] into panels; a job is a panel, or ROWS words of k if these are rows.

    Jobs from `begin` on; the last one's follower, and this thread's next job.
    """
    words = (kb + f[GROUP] - 1) // f[GROUP]  # of a panel, for each of its rows
    arows, brows = f[ROWWISE] != 0 and f[RSA] == 1, f[ROWWISE] != 0 and f[CSB] == 1
    rows = ROWS * f[GROUP]
    strips = (kb + rows - 1) // rows
    ajobs = 0 if f[FUSED] != 0 else strips if arows else (m + f[MR] - 1) // f[MR]
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
def _multiply(f, task, a, c, x, m, n, kb, starts, ends, first, last, begin, job):
    """C[ic:ic+m, jc:jc+n] takes in one packed block of k; a job is one panel of A against one L2 block of B."""
    words = (kb + f[GROUP] - 1) // f[GROUP]
    panels = (m + f[MR] - 1) // f[MR]
    end = begin + panels * ((n + f[BLOCK] - 1) // f[BLOCK])
    if job < end:
        wait(f, FINISHED, begin)
    square = scratch(SQUARE)  # a chain that ends through memory and needs no room of its own
    stop = PARTIAL
    if ends:
        stop = ending(f[CSC], x, f[CSX], f[UNIT]) if first and last else MEMORY
    width = min(f[N], f[NC])  # of a plane
    while job < end:
        i, j0 = (job - begin) % panels * f[MR], (job - begin) // panels * f[BLOCK]
        h, apanel = min(f[MR], m - i), f[ROOM] + i * words * f[STEP]
        if f[FUSED] != 0:
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
        arrive(f, FINISHED)
        job = take(f, NEXT)
    return end, job


@functools.cache
def _loops() -> int:
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
                    step = _up((length + cuts - 1) // cuts, f[GROUP])  # even pieces
                    for p in range(0, length, step):
                        if f[FROM] <= block < f[TO]:  # A[ic:ic+mc, p:p+kb] @ B[p:p+kb, jc:jc+nc]
                            kb = min(step, length - p)
                            a = f[A] + (ic * f[RSA] + (segment + p) * f[CSA]) * f[SIZE_A]
                            b = f[B] + ((segment + p) * f[RSB] + jc * f[CSB]) * f[SIZE_B]
                            begin, job = _pack(f, a, b, m, n, kb, begin, job)
                            begin, job = _multiply(f, task, a, c, x, m, n, kb, p == 0, p + step >= length,
                                segment == 0, segment + length == f[K], begin, job)  # fmt: skip
                        block += 1

    return compiled(work, "void(CPointer(int64), int64)", "gemm_loops")


def packed(out, x, a, b, beta, alpha, tiles: Tiles, kind: Kind, workers: int, trusted: bool = True) -> int:
    """out = alpha * a @ b + beta * x, x given by its id or 0: DONE, or, where arrays not trusted are unusual, DECLINED
    with nothing done."""
    if out.strides[1] != out.itemsize and out.strides[0] == out.itemsize:
        kind = kind.swapped()
    scalars = np.array([alpha, beta], kind.chain)
    f = array("q", _template(tiles, kind, workers))
    at = f.buffer_info()[0]
    f[SELF], f[TRUSTED], f[READS], f[UNIT], f[SCALARS] = at, trusted, beta != 0, alpha == 1, scalars.ctypes.data
    if _prepare()(id(out), x, id(a), id(b), at) == DECLINED:
        return DECLINED
    room = _borrow(f[NEED])
    f[ROOM] = -(-room.ctypes.data // 64) * 64
    loops = _loops()
    each = max(1, LAUNCH * f[BLOCKS] // (f[M] * f[N] * f[K]))
    for block in range(0, f[BLOCKS], each):  # Ctrl-C works between launches
        f[NEXT], f[FINISHED], f[FROM], f[TO] = 0, 0, block, block + each
        threads.launch(loops, at, workers)
    if room.size <= 64 << 20 and not _rooms:
        _rooms.append(room)
    return DONE


def _borrow(size: int) -> np.ndarray:
    """Memory for `size` bytes from a cache line on. Rooms up to 64 MiB are kept for the next call: a fresh one would
    cost a page fault every 4 KiB, a tenth of the time at n = 512."""
    try:
        room = _rooms.pop()
    except IndexError:
        return np.empty(size + 64, np.uint8)
    return room if room.size >= size + 64 else np.empty(size + 64, np.uint8)


_rooms: list[np.ndarray] = []
