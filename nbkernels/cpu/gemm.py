"""C = alpha * A @ B + beta * X on the CPU: the small path, the five loops, and the choice between them.

Order of summation, the same on every path, tile, layout and number of threads: k is cut into segments of 4096; within a
segment an element is one chain of fused multiply-adds over increasing p, from zero; segment sums are added in order; then
fma(beta, x, alpha*sum), once. Blocks of kc within a segment carry the chain on through memory.

Operands are read through their strides: nothing is copied whole but operands whose strides are no multiple of the item
size, and inputs or outputs that really overlap.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from dataclasses import dataclass

import numpy as np

from ..jit.address import fma, peek, poke, scratch, take
from ..jit.cache import compiled, entry, jit
from ..jit.ndarray import WRITEABLE, data, descr, flags, layout_is_known, ndim, shape, stride
from ..problem import GemmProblem
from . import threads
from .pack import pack
from .tiles import SEGMENT, Tiles, default, illegal
from .ukernel import ukernel

PARTIAL, PLAIN, REGISTERS, MEMORY = 0, 1, 2, 3  # how a chain ends: the micro-kernel's stops, and finish() below
DONE, DECLINED, LARGE = 0, 1, 2  # what the small entry answers


@jit
def finish(tile, h, w, part, rsp, total, rst, first, last, c, rsc, csc, x, rsx, csx, alpha, beta):
    """End a segment of an h x w tile whose chain stands at `part`: C = fma(beta, X, alpha*(total + chain)), any strides."""
    size = tile.itemsize
    for i in range(h):
        for j in range(w):
            value = peek(tile, part + (i * rsp + j) * size)
            if not first:
                value = peek(tile, total + (i * rst + j) * size) + value
            if not last:
                poke(tile, total + (i * rst + j) * size, value)
                continue
            value = alpha * value
            if x != 0:
                value = fma(beta, peek(tile, x + (i * rsx + j * csx) * size), value)
            poke(tile, c + (i * rsc + j * csc) * size, value)


@jit
def ending(csc, x, csx, alpha):
    """How a finished chain becomes C: in registers where a row of C (and X) is contiguous, else through memory."""
    if csc == 1 and x == 0 and alpha == 1:
        return PLAIN
    if csc == 1 and x != 0 and csx == 1:
        return REGISTERS
    return MEMORY


@jit
def small(tile, m, n, k, a, rsa, csa, b, rsb, csb, c, rsc, csc, x, rsx, csx, alpha, beta, room):
    """One block, k <= 512: each panel of B is read in place or packed on the stack, A in place or packed in `room`."""
    size, panel = tile.itemsize, scratch(65536)
    square = scratch(4096)  # a tile of C, for endings through memory
    stop = ending(csc, x, csx, alpha)
    tiles = (m + tile.mr - 1) // tile.mr
    packed = csa != 1 and n > 3 * tile.nr and room != 0  # below four panels of B the detour costs more than it saves
    if packed:
        i = 0
        for t in range(tiles):
            h = (m - i + tiles - t - 1) // (tiles - t)
            pack(tile, a + i * rsa * size, rsa, csa, h, k, room + t * tile.mr * k * size, tile.mr)
            i += h
    for j in range(0, n, tile.nr):
        w = min(tile.nr, n - j)
        bj, rsbj = b + j * csb * size, rsb
        if csb != 1 or w < tile.nr or tiles > 8:  # packing pays from the ninth pass over the panel
            pack(tile, bj, csb, rsb, w, k, panel, tile.nr)
            bj, rsbj = panel, tile.nr
        i = 0
        for t in range(tiles):  # heights that differ by one at most
            h = (m - i + tiles - t - 1) // (tiles - t)
            ai, rsai, csai = a + i * rsa * size, rsa, csa
            if packed:
                ai, rsai, csai = room + t * tile.mr * k * size, 1, tile.mr
            ci, xi = c + (i * rsc + j * csc) * size, x + (i * rsx + j * csx) * size if x != 0 else 0
            if stop == MEMORY:
                ukernel(tile, h, ai, rsai, csai, bj, rsbj, k, square, tile.nr, square, tile.nr, w, 0, PARTIAL, 0, 0, alpha, beta)
                finish(tile, h, w, square, tile.nr, 0, 0, True, True, ci, rsc, csc, xi, rsx, csx, alpha, beta)
            else:
                ukernel(tile, h, ai, rsai, csai, bj, rsbj, k, ci, rsc, ci, rsc, w, 0, stop, xi, rsx, alpha, beta)
            i += h


@jit
def apart(p, q, size):
    """Whether two arrays' memory is disjoint, by their extents."""
    plo, phi, qlo, qhi = data(p), data(p) + size, data(q), data(q) + size
    for d in range(ndim(p)):
        reach = (shape(p, d) - 1) * stride(p, d)
        plo, phi = plo + min(reach, 0), phi + max(reach, 0)
    for d in range(ndim(q)):
        reach = (shape(q, d) - 1) * stride(q, d)
        qlo, qhi = qlo + min(reach, 0), qhi + max(reach, 0)
    return phi <= qlo or qhi <= plo


def _small_entry(tile):
    """The call from Python for small products: checks what it can, declines what is unusual, keeps the GIL."""
    size, longest = tile.itemsize, 65536 // (tile.nr * tile.itemsize)

    def run(out, x, a, b, beta, alpha, limit, room):
        if ndim(out) != 2 or ndim(a) != 2 or ndim(b) != 2 or descr(b) != descr(a) or descr(out) != descr(a):
            return DECLINED
        m, n, k = shape(a, 0), shape(b, 1), shape(a, 1)
        if shape(b, 0) != k or shape(out, 0) != m or shape(out, 1) != n or min(m, n, k) < 1 or alpha == 0:
            return DECLINED
        if flags(out) & WRITEABLE == 0 or not (apart(out, a, size) and apart(out, b, size)):
            return DECLINED
        if k > longest or m > limit or n > limit or m * n * k > limit:
            return LARGE
        c, rsc, csc = data(out), stride(out, 0), stride(out, 1)
        pa, rsa, csa, pb, rsb, csb = data(a), stride(a, 0), stride(a, 1), data(b), stride(b, 0), stride(b, 1)
        px, rsx, csx = 0, 0, 0
        if x != 0:
            if descr(x) != descr(a) or ndim(x) > 2:
                return DECLINED
            rows = shape(x, 0) if ndim(x) == 2 else 1
            columns = shape(x, ndim(x) - 1) if ndim(x) > 0 else 1
            if (rows != 1 and rows != m) or (columns != 1 and columns != n):
                return DECLINED
            if beta != 0:
                px = data(x)
                rsx = stride(x, 0) if rows > 1 else 0
                csx = stride(x, ndim(x) - 1) if columns > 1 else 0
                same = px == c and rsx == rsc and csx == csc
                if not same and not apart(out, x, size):
                    return DECLINED
        if (rsc | csc | rsa | csa | rsb | csb | rsx | csx) & (size - 1) != 0:
            return DECLINED
        rsc, csc, rsx, csx = rsc // size, csc // size, rsx // size, csx // size
        rsa, csa, rsb, csb = rsa // size, csa // size, rsb // size, csb // size
        if n == 1 and rsc == 1:
            csc = 0
        if rsc == 1 and csc != 1:  # C' = B' A': the same numbers in the same order, stored along the contiguous side
            small(tile, n, m, k, pb, csb, rsb, pa, csa, rsa, c, csc, rsc, px, csx, rsx, alpha, beta, room)
        else:
            small(tile, m, n, k, pa, rsa, csa, pb, rsb, csb, c, rsc, csc, px, rsx, csx, alpha, beta, room)
        return DONE

    scalar = tile.dtype
    return entry(run, f"int64(int64, int64, int64, int64, {scalar}, {scalar}, int64, int64)", f"gemm_small_{tile}")


# What the packed path hands to its C functions: int64 words; NEXT, which threads contend for, has a cache line to itself.
NEXT = 0
(A, RSA, CSA, B, RSB, CSB, C, RSC, CSC, X, RSX, CSX, PART, RSP, TOTAL, RST, APANELS, BPANELS, SCALARS,
 M, N, KB, START, ENDS, FIRST, LAST, BLOCK, JOBS) = range(8, 36)  # fmt: skip


def _pack_block(tile):
    """Pack A[ic:ic+m, pc:pc+kb] and B[pc:pc+kb, jc:jc+n]; a panel a job."""

    def work(f, task):
        size, kb = tile.itemsize, f[KB]
        panels = (f[M] + tile.mr - 1) // tile.mr
        job = take(f)
        while job < f[JOBS]:
            if job < panels:
                i = job * tile.mr  # A[i:i+mr, pc:pc+kb]
                h, target = min(tile.mr, f[M] - i), f[APANELS] + i * kb * size
                pack(tile, f[A] + i * f[RSA] * size, f[RSA], f[CSA], h, kb, target, tile.mr)
            else:
                j = (job - panels) * tile.nr  # B[pc:pc+kb, j:j+nr]
                w, target = min(tile.nr, f[N] - j), f[BPANELS] + j * kb * size
                pack(tile, f[B] + j * f[CSB] * size, f[CSB], f[RSB], w, kb, target, tile.nr)
            job = take(f)

    return compiled(work, "void(CPointer(int64), int64)", f"gemm_pack_{tile}")


def _multiply_block(tile):
    """C[ic:ic+m, jc:jc+n] takes in one packed block of k; a job is one panel of A against one L2 block of B."""

    def work(f, task):
        size, kb = tile.itemsize, f[KB]
        alpha, beta = peek(tile, f[SCALARS]), peek(tile, f[SCALARS] + size)
        square = scratch(4096)  # a chain that ends through memory and needs no room of its own
        stop = ending(f[CSC], f[X], f[CSX], alpha) if f[FIRST] and f[LAST] else MEMORY
        if not f[ENDS]:
            stop = PARTIAL
        panels = (f[M] + tile.mr - 1) // tile.mr
        job = take(f)
        while job < f[JOBS]:
            i, j0 = job % panels * tile.mr, job // panels * f[BLOCK]
            h, a = min(tile.mr, f[M] - i), f[APANELS] + i * kb * size
            for j in range(j0, min(j0 + f[BLOCK], f[N]), tile.nr):  # the A panel stays in L1, B's block in L2
                w, b = min(tile.nr, f[N] - j), f[BPANELS] + j * kb * size
                c = f[C] + (i * f[RSC] + j * f[CSC]) * size
                x = f[X] + (i * f[RSX] + j * f[CSX]) * size if f[X] != 0 else 0
                part, rsp = (f[PART] + (i * f[RSP] + j) * size, f[RSP]) if f[PART] != 0 else (square, tile.nr)
                code, to, rst = (stop, c, f[RSC]) if stop == PLAIN or stop == REGISTERS else (PARTIAL, part, rsp)
                ukernel(tile, h, a, 1, tile.mr, b, tile.nr, kb, part, rsp, to, rst, w, f[START], code,
                        x, f[RSX], alpha, beta)  # fmt: skip
                if stop == MEMORY:
                    total = f[TOTAL] + (i * f[RST] + j) * size
                    finish(tile, h, w, part, rsp, total, f[RST], f[FIRST] != 0, f[LAST] != 0,
                           c, f[RSC], f[CSC], x, f[RSX], f[CSX], alpha, beta)  # fmt: skip
            job = take(f)

    return compiled(work, "void(CPointer(int64), int64)", f"gemm_multiply_{tile}")


@functools.cache
def _kernel(kind: str, tile):
    """The compiled small entry, or the address of the packed path's pack or multiply function, for a register tile."""
    return {"small": _small_entry, "pack": _pack_block, "multiply": _multiply_block}[kind](tile)


def blocks(k: int, kc: int):
    """Cut k: (start, length, first and last of its segment, first and last segment), lengths even and at most kc.

    >>> list(blocks(5, 3))
    [(0, 3, True, False, True, True), (3, 2, False, True, True, True)]
    """
    for segment in range(0, k, SEGMENT):
        length = min(SEGMENT, k - segment)
        step = -(-length // -(-length // kc))
        for p in range(0, length, step):
            ends = p + step >= length
            yield segment + p, min(step, length - p), p == 0, ends, segment == 0, segment + length == k


def packed(out, x, a, b, beta, alpha, tiles: Tiles) -> None:
    """The five loops: jc, ic, pc here (Ctrl-C works between blocks), ip and jp in the compiled block, over threads."""
    dtype, size = str(out.dtype), out.itemsize
    tile = tiles.tile(dtype)
    if out.strides[1] != size and out.strides[0] == size:  # C' = B' A': stored along the contiguous side
        out, a, b, x = out.T, b.T, a.T, None if x is None else x.T
    (m, n), k = out.shape, a.shape[1]
    mc, nc, kc = min(m, tiles.mc), min(n, tiles.nc), min(k, -(-tiles.kc // 8) * 8)
    workers = threads.count() if m * n * k > PARALLEL else 1

    # Partial chains may wait in out itself, unless x is read from there at the end or its rows are not contiguous.
    direct = out.strides[1] == size and not (x is not None and np.may_share_memory(out, x))
    segments, cut = -(-k // SEGMENT), k > kc
    with _room(size * (_up(mc, tile.mr) * kc + _up(nc, tile.nr) * kc
                       + mc * nc * ((cut and not (direct and segments == 1)) + (segments > 1 and not direct)))) as room:  # fmt: skip
        f = np.zeros(40, np.int64)
        scalars = np.array([alpha, beta], out.dtype)
        f[SCALARS], f[BLOCK] = scalars.ctypes.data, tiles.nb
        f[APANELS], f[BPANELS] = room, room + size * _up(mc, tile.mr) * kc
        spare = int(f[BPANELS]) + size * _up(nc, tile.nr) * kc
        for name, array in ((RSA, a), (RSB, b), (RSC, out)) + (((RSX, x),) if x is not None else ()):
            f[name : name + 2] = np.array(array.strides) // size
        start = {name: array.ctypes.data for name, array in (("a", a), ("b", b), ("c", out))}
        start["x"] = x.ctypes.data if x is not None else 0
        for jc in range(0, n, nc):
            for ic in range(0, m, mc):
                f[M], f[N] = min(mc, m - ic), min(nc, n - jc)
                f[C] = start["c"] + ic * out.strides[0] + jc * out.strides[1]
                f[X] = start["x"] + ic * x.strides[0] + jc * x.strides[1] if x is not None else 0
                f[TOTAL], f[RST] = (f[C], f[RSC]) if direct else (spare + size * mc * nc, nc)
                f[PART], f[RSP] = (f[C], f[RSC]) if direct and segments == 1 else (spare, nc)
                if not cut and not direct:
                    f[PART] = 0
                for p, kb, begins, ends, first, last in blocks(k, kc):
                    f[A] = start["a"] + ic * a.strides[0] + p * a.strides[1]
                    f[B] = start["b"] + p * b.strides[0] + jc * b.strides[1]
                    f[KB], f[START], f[ENDS], f[FIRST], f[LAST] = kb, not begins, ends, first, last
                    panels = -(-int(f[M]) // tile.mr)
                    _launch("pack", tile, f, panels + -(-int(f[N]) // tile.nr), workers)
                    _launch("multiply", tile, f, panels * -(-int(f[N]) // tiles.nb), workers)


def _launch(kind: str, tile, f, jobs: int, workers: int) -> None:
    f[JOBS], f[NEXT] = jobs, 0
    threads.launch(_kernel(kind, tile), f.ctypes.data, min(workers, jobs))


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


# --- the choice, and the kernels that the dispatcher knows ---------------------------------------------------------------

SMALL = 128**3  # m*n*k up to which one thread, without packing all of A and B, is fastest: 26 us of work
SERIAL = 320**3  # the same where there is only one thread to use: the block fits in L2
PARALLEL = 96**3  # below, two launches of 3-10 us cost more than they save


def choose(problem: GemmProblem, workers: int) -> str:
    """'small' or 'packed'."""
    work = problem.m * problem.n * problem.k
    deepest = 512
    return "small" if problem.k <= deepest and work <= (SERIAL if workers == 1 else SMALL) else "packed"


def gemm(out, x, a, b, beta, alpha, tiles: Tiles | None = None) -> None:
    """out = alpha * a @ b + beta * x after all checks; x may be None, or broadcast to out's shape; beta == 0 ignores x."""
    m, n = out.shape
    if out.size == 0:
        return
    x = None if x is None or beta == 0 else np.broadcast_to(x, out.shape)
    if a.shape[1] == 0 or alpha == 0:
        return out.fill(0) if x is None else np.multiply(x, np.asarray(beta, out.dtype), out=out)
    if _clash(out, a) or _clash(out, b) or (x is not None and not _same(out, x) and _clash(out, x)):
        temporary = np.empty(out.shape, out.dtype)
        gemm(temporary, x, a, b, beta, alpha, tiles)
        out[...] = temporary
        return
    whole = [_whole(array) for array in (out, x, a, b)]
    if whole[0] is not out:
        gemm(whole[0], *whole[1:], beta, alpha, tiles)
        out[...] = whole[0]
        return
    _, x, a, b = whole
    problem = GemmProblem.of(a, b)
    if tiles is None and choose(problem, threads.count()) == "small":
        if _run_small(out, x, a, b, beta, alpha, SERIAL) == DONE:
            return
    chosen = tiles or default(problem.dtype)
    if reasons := illegal(chosen, problem.dtype):
        raise ValueError("tiles cannot be used: " + "; ".join(reasons))
    packed(out, x, a, b, beta, alpha, chosen)


def _run_small(out, x, a, b, beta, alpha, limit: int) -> int:
    small = _kernel("small", default(str(out.dtype)).tile(str(out.dtype)))
    return small(id(out), 0 if x is None else id(x), id(a), id(b), float(beta), float(alpha), limit, _ROOM)


def _same(p, q) -> bool:
    """Whether two arrays are the same elements in the same order."""
    return p.shape == q.shape and p.strides == q.strides and p.ctypes.data == q.ctypes.data


def _clash(p, q) -> bool:
    """Whether two arrays share memory; assumed where it would take long to find out."""
    try:
        return np.shares_memory(p, q, max_work=1000)
    except np.exceptions.TooHardError:
        return True


def _whole(array):
    """The array, or a copy if its strides are no multiple of its item size (a field of packed records)."""
    if array is None or all(stride % array.itemsize == 0 for stride in array.strides):
        return array
    return np.ascontiguousarray(array)


def addmm(out, self, mat1, mat2, beta, alpha) -> None:
    """out = beta * self + alpha * (mat1 @ mat2)."""
    gemm(out, self, mat1, mat2, beta, alpha)


def mm(out, self, mat2) -> None:
    """out = self @ mat2."""
    gemm(out, None, self, mat2, 0, 1)


# The small path packs A here while it holds the GIL; without a GIL nothing may be shared, and A is read in place.
_scratch = np.empty((320**2 + 320 * 12) * 8 + 64, np.uint8)
_ROOM = -(-_scratch.ctypes.data // 64) * 64 if getattr(sys, "_is_gil_enabled", lambda: True)() else 0

_entries = {}  # dtype -> the compiled small entry, once the layout of ndarray is known to be what it reads


def _entry(dtype):
    """The small entry for a supported dtype, compiled or loaded at its first use; else None."""
    if dtype in (np.dtype(np.float32), np.dtype(np.float64)) and layout_is_known():
        _entries[dtype] = _kernel("small", default(str(dtype)).tile(str(dtype)))
        return _entries[dtype]
    return None


def addmm_fast(self, mat1, mat2, beta, alpha, out):
    """addmm of small plain arrays in two calls; None, with nothing written, where more care is needed."""
    try:
        dtype = mat1.dtype
        entry = _entries.get(dtype) or _entry(dtype)
        if out is None:
            out = np.empty((mat1.shape[0], mat2.shape[1]), dtype)
        elif type(out) is not np.ndarray:
            return None
        if entry(id(out), id(self), id(mat1), id(mat2), beta, alpha, SMALL, _ROOM) == DONE:
            return out
    except (TypeError, IndexError, OverflowError):  # not a float, not a matrix: the checks will say it properly
        pass
    return None


def mm_fast(self, mat2, out):
    """mm of small plain arrays in two calls; None, with nothing written, where more care is needed."""
    try:
        dtype = self.dtype
        entry = _entries.get(dtype) or _entry(dtype)
        if out is None:
            out = np.empty((self.shape[0], mat2.shape[1]), dtype)
        elif type(out) is not np.ndarray:
            return None
        if entry(id(out), 0, id(self), id(mat2), 0.0, 1.0, SMALL, _ROOM) == DONE:
            return out
    except (TypeError, IndexError):
        pass
    return None


@dataclass(frozen=True)
class Choice:
    """What a product will run on: prints as `packed 12x32 kc=512 nb=512 mc=4092 nc=4096, 2 threads`."""

    problem: GemmProblem
    path: str
    tiles: Tiles
    threads: int

    def __str__(self) -> str:
        shape = f"{self.tiles.mr}x{self.tiles.nr}" if self.path == "small" else str(self.tiles)
        return f"{self.path} {shape}, {self.threads} thread{'s' * (self.threads > 1)}"


def describe(m: int, n: int, k: int, dtype: str = "float32") -> Choice:
    """The path, tiles and threads that an m x k by k x n product takes; nothing runs."""
    problem, available = GemmProblem(m, n, k, str(np.dtype(dtype))), threads.count()
    path = choose(problem, available)
    parallel = path == "packed" and m * n * k > PARALLEL
    return Choice(problem, path, default(problem.dtype), available if parallel else 1)
