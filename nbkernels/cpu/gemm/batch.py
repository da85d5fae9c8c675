"""Batches of products: C[t] = alpha * A[t] @ B[t] + beta * X[t], each with the bits of addmm.

- tiny and small matrices, vectors, and larger ones that threads share evenly: one thread a product, in turns (turns.py)
- those of other dtypes and modes: likewise (stacks.py)
- larger ones: all threads on one product after another (gemm.py)
"""

from __future__ import annotations

import functools

import numpy as np
from numba import types
from numpy import empty

from ...jit.address import call, invoke, pointer, poke, scratch
from ...jit.cache import entry, jit
from ...jit.kind import wrapped
from ...jit.ndarray import OBJECT, WRITEABLE, address_of, data, descr, flags, layout_is_known, ndim, shape, stride
from ..runtime import threads
from ..runtime.machine import l2
from .blocking import caches
from .context import one_room, room
from .entry import ROOM as PANELS
from .entry import apart, distinct, stays
from .even import suits
from .gemm import NAMES, PARALLEL, REAL, clash, gemm, name_of, same, small_tile
from .kinds import kind_of
from .paths import ALONE, DEEPEST, SERIAL, is_thin
from .stacks import stack
from .tiny import HEIGHT
from .turns import BEYOND, FAR, STACK, TALLEST, by_even, by_small, by_tiny, by_vectors

DEEP = 64  # steps of k up to which a stack is tiny, of TALLEST rows that have two vectors, or four
CHUNK = 32 << 10  # bytes of A, B and C that a thread takes at a time, at least
# Jobs of a stack beyond L2: threads that take neighbouring pieces fetch each other's lines, ahead and to write (two
# threads, us: 10000x16x16x16 of f32 in chunks, 64, 16 and 2 jobs 1180, 550, 569, 500, of f64 2450, 1600, 1340, 1330).
SHARES = 32
AHEAD = 8  # products of a job at least, which a thread meets one after another as it has asked for them
LONE = 1024  # elements of a matrix from which vectors are better served by dotxf.py's kernels
OVERHEAD = 200  # multiply-adds in the time that a product takes beside them, 5 ns: for the question of threads

# What the entry answers: a kernel's place in its table, which the caller is to fill or to launch; CLOSED where threads
# would gain and compiled code may not launch them; LARGE where it is the caller's to ask if there are enough products.
DECLINED, ONE_BLOCK, TINY, VECTOR, EVEN, DONE, CLOSED, LARGE = range(8)
ROOM, SCALARS, TASKS = STACK.bytes, 8 * STACK["alpha"], 8 * STACK["tasks"]  # in bytes
A, B, C, X = (STACK[name] for name in "abcx")
stack_at = STACK.pointer()


@jit(forceinline=True)
def _operand(f, word, x, size, swap):
    """Write an operand's address and strides, from its word on; whether its strides are whole elements."""
    steps = stride(x, 0), stride(x, 1), stride(x, 2)
    f[word] = data(x)
    f[word + 1] = steps[0] // size
    f[word + 2] = steps[2 if swap else 1] // size
    f[word + 3] = steps[1 if swap else 2] // size
    return (steps[0] | steps[1] | steps[2]) & (size - 1) == 0


@jit(forceinline=True)
def _each(count, each):
    """Products of a job, of `each` bytes."""
    least = AHEAD if count * each > FAR else 1
    share = count // SHARES if count * each > BEYOND else 1
    return max(1, min(max(CHUNK // each, least, share), (count + 1) // 2))


@jit(forceinline=True)
def _fits(total, m, n, k, lanes):
    """Whether the stacks' kernel takes the matrices, of so many bytes in all."""
    vectors = 4 if total > FAR and m >= HEIGHT else 2
    # Half of the last vector would be empty: these have one half as wide (Zen 4: 32x100x10x100 of f64 192 -> 159 us).
    narrow = n <= 2 * lanes and (n - 1) % lanes < lanes // 2
    return narrow or (k <= DEEP and m <= TALLEST and n <= vectors * lanes)


@jit(forceinline=True)
def _single(m, n, k, rsa, csa, rsb, csb, size, tiny):
    """Whether C is a row or a column, and the other operand of some size and contiguous, along C or along k; but a row
    that is tiny has a vector or two against B's rows in place."""
    others, across, along = (n, csb, rsb) if m == 1 else (m, rsa, csa)
    return min(m, n) == 1 and others * k >= LONE and (along == size or (across == size and not (m == 1 and tiny)))


@jit(forceinline=True)
def _gains(count, steps, total, each):
    """Whether threads share products of so many multiply-adds, of `total` bytes together, two of which take the time of
    one (200x1x64x64)."""
    return count > each and count * (steps + OVERHEAD) + total // 2 > PARALLEL


@jit(forceinline=True)
def _served(m, n, k, size, cache):
    """Whether one thread takes a product of a stack at once: for few rows and few steps there are others."""
    larger = m * n * k <= SERIAL and min(m, n) > 3 and not is_thin(m, n, k, size, cache)
    return k <= DEEPEST and (m * n * k <= ALONE or larger)


def _even(count, workers) -> bool:
    """Whether threads that take a product each are done together, or nearly; else all of them share each."""
    return count % workers == 0 or count > 4 * workers


def choose(out, x, a, b, workers: int, dtype: str, alpha=1) -> tuple[str, int] | None:
    """('tiny', 'small', 'even' or 'vectors', threads) of a stack that has a path of its own, None where each product
    goes its own way. Arrays, of which x may be None, tell their shapes and strides; none is empty.
    """
    (count, m, n), (_, rsc, csc), k, tile = out.shape, out.strides, a.shape[2], small_tile(dtype)
    if not _served.py_func(m, n, k, tile.itemsize, caches()[1]):
        return None
    if m * n * k > ALONE:
        return ("small", min(count, workers)) if _even(count, workers) else None
    sides, across, left = (m, n, k, *a.strides[1:], *b.strides[1:], tile.itemsize), 2, a.strides[1:]
    if abs(csc) != tile.itemsize and abs(rsc) == tile.itemsize:
        m, n, csc, across, left = n, m, rsc, 1, b.strides[:0:-1]
    own = across - 3 + (len(x.shape) if x is not None else 0)
    plain = csc == tile.itemsize and (x is None or (own >= 0 and x.shape[own] > 1 and x.strides[own] == tile.itemsize))
    each = (m * k + k * n + m * n) * tile.itemsize
    shared = _gains.py_func(count, m * n * k, count * each, _each.py_func(count, each))
    way = "tiny" if plain and _fits.py_func(count * each, m, n, k, tile.lanes) else "small"
    if plain and x is None and alpha == 1 and suits.py_func(tile, m, n, k, *(step // tile.itemsize for step in left)):
        way = "even"
    way = "vectors" if _single.py_func(*sides, way == "tiny") else way
    return way, workers if shared else 1


@functools.cache
def _entry(tile):
    """int64(table, out, x, a, b, beta, alpha, own): a whole call, from checks to the finished stack.

    The table is what launches go by (threads.WORDS), then the kernels' addresses, or 0. Where `own` is not 0, the words
    are written there for the caller to launch.
    """
    size, element = tile.itemsize, getattr(np, tile.dtype)

    def run(table, out, x, a, b, beta, alpha, own):
        out, a, b = address_of(out), address_of(a), address_of(b)
        words = own if own != 0 else scratch(ROOM)
        f = stack_at(words)
        if ndim(out) != 3 or ndim(a) != 3 or ndim(b) != 3 or descr(b) != descr(a) or descr(out) != descr(a):
            return DECLINED
        count, m, n, k = shape(a, 0), shape(a, 1), shape(b, 2), shape(a, 2)
        if shape(b, 0) != count or shape(b, 1) != k or shape(out, 0) != count or shape(out, 1) != m:
            return DECLINED
        if shape(out, 2) != n or min(count, m, n, k) < 1 or alpha == 0 or not _served(m, n, k, size, l2()):
            return DECLINED
        if flags(out) & WRITEABLE == 0 or not (apart(out, a, size) and apart(out, b, size)):
            return DECLINED
        rsc, csc = abs(stride(out, 1)), abs(stride(out, 2))
        if not distinct(m, rsc, n, csc, size):
            return DECLINED
        if count > 1 and abs(stride(out, 0)) < (m - 1) * rsc + (n - 1) * csc + size:
            return DECLINED
        swap = csc != size and rsc == size  # C' = B' A': stored along the contiguous side
        left, right = (b, a) if swap else (a, b)
        whole = _operand(f, C, out, size, swap)
        whole = _operand(f, A, left, size, swap) and whole
        whole = _operand(f, B, right, size, swap) and whole
        f.x = 0
        if x != 0:
            lies, steps = data(x) == data(out), 0
            if descr(x) != descr(a) or ndim(x) > 3:
                return DECLINED
            for d in range(3):
                at = d - 3 + ndim(x)
                have = shape(x, at) if at >= 0 else 1
                if have != 1 and have != shape(out, d):
                    return DECLINED
                step = stride(x, at) if have > 1 else 0
                lies, steps = lies and (step == stride(out, d) or shape(out, d) == 1), steps | step
                f[X + 1 + (3 - d if swap and d > 0 else d)] = step // size
            if beta != 0:
                if (not lies and not apart(out, x, size)) or steps & (size - 1) != 0:
                    return DECLINED
                f.x = data(x)
        if not whole:
            return DECLINED
        total = count * (m * k + k * n + m * n) * size
        large = m * n * k > ALONE
        each = 1 if large else _each(count, total // count)
        f.m = n if swap else m
        f.n = m if swap else n
        f.k = k
        f.count = count
        f.each = each
        f.rooms = 0
        scalars = words + SCALARS
        f.scalars = scalars
        poke(tile, scalars, element(alpha))
        poke(tile, scalars + size, element(beta))
        tiny = _fits(total, f.m, f.n, k, tile.lanes)
        plain = f.csc == 1 and (f.x == 0 or f.csx == 1)
        way, ways = TINY if tiny and plain else ONE_BLOCK, pointer(table)
        even = suits(tile, f.m, f.n, k, f.rsa, f.csa)
        if even and plain and f.x == 0 and alpha == 1 and not large:
            way = EVEN
        if _single(m, n, k, stride(a, 1), stride(a, 2), stride(b, 1), stride(b, 2), size, way == TINY):
            way = VECTOR
        kernel, launch = ways[way], threads.pool_at(ways[0])
        if own == 0 and large:
            return LARGE
        if kernel == 0 or own != 0:
            return way
        f.next = 0
        if not _gains(count, m * n * k, total, each):
            call(kernel, words, 0)
            return DONE
        if launch.share == 0:
            return CLOSED
        invoke(launch.share, (ways[0], kernel, words, words + TASKS))
        return DONE

    kind = types.int64(types.int64, OBJECT, types.int64, OBJECT, OBJECT, types.float64, types.float64, types.int64)
    return entry(run, kind, f"gemm_batch_entry_{tile}")


_tables = {}  # dtype -> the entry, its table and the table's address


def _table(dtype):
    """The same of a dtype, compiled or loaded at its first use; else None."""
    if dtype in NAMES and layout_is_known():
        table = np.array([threads.WORDS, 0, 0, 0, 0], np.int64)
        _tables[dtype] = _entry(small_tile(NAMES[dtype])), table, table.ctypes.data
    return _tables.get(dtype)


def _run(out, x, a, b, beta, alpha) -> bool:
    """Whether the compiled loops took the batch. x is an id, or 0."""
    found = _tables.get(a.dtype) or _table(a.dtype)
    if found is None:
        return False
    run, table, address = found
    way = run(address, out, x, a, b, beta, alpha, 0)
    if way in (ONE_BLOCK, TINY, VECTOR, EVEN):
        _kernel(table, way, a.dtype)
        way = run(address, out, x, a, b, beta, alpha, 0)
    if way == CLOSED and threads.open_up():
        way = run(address, out, x, a, b, beta, alpha, 0)
    workers = threads.count() if way in (CLOSED, LARGE) else 1
    if way == LARGE and not _even(len(out), workers):
        return False
    if way in (CLOSED, LARGE):
        words = STACK.array()
        own = words.buffer_info()[0]
        kernel = _kernel(table, run(address, out, x, a, b, beta, alpha, own), a.dtype)
        if way == LARGE and not stays.py_func(small_tile(NAMES[a.dtype]), words.csa, words.n):
            with room(workers * PANELS) as words.rooms:
                threads.launch(kernel, own, workers)
        else:
            threads.launch(kernel, own, workers)
    return way != DECLINED


def _kernel(table, way, dtype) -> int:
    """The address of the way's kernel, which is compiled or loaded at its first use."""
    if not table[way]:
        by = {ONE_BLOCK: by_small, TINY: by_tiny, VECTOR: by_vectors, EVEN: by_even}[way]
        table[way] = by(small_tile(NAMES[dtype]))
    return int(table[way])


def baddbmm(out, self, batch1, batch2, beta, alpha, mode=None, conj=None, tiles=None) -> None:
    """out[i] = beta * self[i] + alpha * (batch1[i] @ batch2[i])."""
    x = None if beta == 0 else np.broadcast_to(self, out.shape)
    if tiles is None and _run(out, 0 if x is None else id(x), batch1, batch2, beta, alpha):
        return
    kind = kind_of(*(name_of(each.dtype) for each in (batch1, batch2, out)), conj or "", mode)
    reads = [batch1, batch2] + ([] if x is None or same(out, x) else [x])
    if any(clash(out, each) for each in reads):
        temporary = np.empty(out.shape, out.dtype)
        baddbmm(temporary, self, batch1, batch2, beta, alpha, mode, conj, tiles)
        out[...] = temporary
        return
    factors = wrapped(beta, kind), wrapped(alpha, kind)
    if tiles is None and 0 not in (*batch1.shape, alpha) and stack(out, x, batch1, batch2, *factors, kind):
        return
    with one_room():
        for i in range(len(out)):
            gemm(out[i], None if x is None else x[i], batch1[i], batch2[i], beta, alpha, tiles, conj or "", mode)


def bmm(out, self, mat2, mode=None, conj=None, tiles=None) -> None:
    """out[i] = self[i] @ mat2[i]."""
    baddbmm(out, None, self, mat2, 0, 1, mode, conj, tiles)


def baddbmm_fast(self, batch1, batch2, beta, alpha, out):
    """baddbmm of plain arrays in few calls; None, with nothing written, where more care is needed."""
    if type(beta) not in REAL or type(alpha) not in REAL:
        return None
    return _fast(id(self), batch1, batch2, beta, alpha, out)


def bmm_fast(self, mat2, out):
    """bmm of plain arrays in few calls; None, with nothing written, where more care is needed."""
    return _fast(0, self, mat2, 0.0, 1.0, out)


def _fast(x, a, b, beta, alpha, out):
    try:
        if out is None:
            (count, m, _), (_, _, n) = a.shape, b.shape
            out = empty((count, m, n), a.dtype)
        elif type(out) is not np.ndarray:
            return None
        return out if _run(out, x, a, b, beta, alpha) else None
    except (ValueError, OverflowError):  # not 3-D, an int too large for a float: the checks will say it properly
        return None
