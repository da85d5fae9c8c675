"""Batches of products: C[t] = alpha * A[t] @ B[t] + beta * X[t], each with the bits of addmm.

- tiny and small matrices, vectors, and larger ones that threads share evenly: a thread each (stacks_float.py)
- those of other dtypes and modes: likewise (stacks_other.py)
- larger ones: all threads on one product after another (gemm.py)
"""

from __future__ import annotations

import functools

import numpy as np
from numpy import empty

from ... import background
from ...jit.abi.address import invoke, pointer, poke, scratch
from ...jit.abi.ndarray import WRITEABLE, address_of, data, descr, flags, layout_is_known, ndim, shape, stride
from ...jit.compile.cache import entry
from ...jit.compile.lazy import jit, plain
from ...jit.ir.kind import wrapped
from ..runtime import threads
from ..runtime.arrays import apart, distinct
from ..runtime.machine import l2
from ..runtime.status import LACKING
from ..runtime.workspace import one_room, room
from . import first_products
from .block import ROOM as PANELS
from .block import stays
from .blocking import SEGMENT, caches
from .gemm import NAMES, REAL, clash, gemm, name_of, same, small_tile
from .kinds import kind_of, of_depth
from .paths import ALONE, DEEPEST, PARALLEL, SERIAL, steps
from .stacks_float import EVEN, NONE, STACK, TINY, WAYS, bytes_of, chosen, job, lacking
from .stacks_other import stack
from .tiny import known
from .tiny import table as tinies

# Rows and columns at least, and steps at most, of products of a stack that are written by rows; steps that are few.
THIN_ROWS, THIN_STEPS, FEW_STEPS = 64, 32, 4
OVERHEAD = 200  # multiply-adds in the time that a product takes beside them, 5 ns: for the question of threads

# What the entry answers: a kernel, which the caller is to compile or to launch; CLOSED where threads would gain and
# compiled code may not launch them; LARGE where it is the caller's to ask if there are enough products.
DECLINED, DONE, CLOSED, LARGE = 0, EVEN + 1, EVEN + 2, EVEN + 3
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


@plain
def _gains(tile, f):
    """Whether threads share the products, two of which take the time of one (200x1x64x64)."""
    return f.count > f.each and f.count * (f.m * f.n * f.k + OVERHEAD) + bytes_of(tile, f) // 2 > PARALLEL


@plain
def _is_thin(m, n, k, size, cache):
    """Whether C, of elements of so many bytes, is better written by rows (thin.py): from beyond L2, by its bytes for
    some steps, by twice as many for few."""
    bytes_ = m * n * size if k > FEW_STEPS else 2 * m * n * size
    return min(m, n) >= THIN_ROWS and k <= THIN_STEPS and bytes_ > cache


@plain
def _served(m, n, k, size, cache):
    """Whether one thread may take a product of a stack at once: for few rows and few steps there are others."""
    larger = k <= DEEPEST and m * n * k <= SERIAL and min(m, n) > 3 and not _is_thin(m, n, k, size, cache)
    return k <= SEGMENT and (m * n * k <= ALONE or larger)


def _even(count, workers) -> bool:
    """Whether threads that take a product each are done together, or nearly; else all of them share each."""
    return count % workers == 0 or count > 4 * workers


def choose(out, x, a, b, workers: int, dtype: str, alpha=1) -> tuple[str, int] | None:
    """('tiny', 'small', 'even' or 'vectors', threads) of a stack that has a path of its own, None where each product
    goes its own way. Arrays, of which x may be None, tell their shapes and strides; none is empty.
    """
    (count, m, n), k, tile, f = out.shape, a.shape[2], small_tile(dtype), STACK.array()
    size, large = tile.itemsize, m * n * k > ALONE
    if not _served(m, n, k, size, caches()[1]) or (large and not _even(count, workers)):
        return None
    swap = abs(out.strides[2]) != size and abs(out.strides[1]) == size
    turn = slice(None, None, -1 if swap else 1)
    (f.m, f.n), f.k, f.count = out.shape[:0:-1] if swap else out.shape[1:], k, count
    for operand, each in ("a", b if swap else a), ("b", a if swap else b), ("c", out):
        for name, step in zip(("rs", "cs"), each.strides[1:][turn]):
            setattr(f, name + operand, step // size)
    if x is not None:
        f.x, f.csx = 1, steps(x)[turn][1] // size
    f.each, way = job(tile, f), chosen(tile, f, alpha == 1)
    if way == NONE:
        return None
    return WAYS[way][0], min(count, workers) if large or _gains(tile, f) else 1


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
        f.m = n if swap else m
        f.n = m if swap else n
        f.k = k
        f.count = count
        f.each = job(tile, f)
        f.rooms = 0
        scalars = words + SCALARS
        f.scalars = scalars
        poke(tile, scalars, element(alpha))
        poke(tile, scalars + size, element(beta))
        way, ways = chosen(tile, f, alpha == 1), pointer(table)
        kernel, launch = ways[way], threads.pool_at(ways[0])
        if way == NONE:
            return DECLINED
        if way == TINY:
            at = lacking(tile, known(tile), f)
            if at >= 0:
                return LACKING + at
        if own == 0 and m * n * k > ALONE:
            return LARGE
        if kernel == 0 or own != 0:
            return way
        f.next = 0
        if not _gains(tile, f):
            invoke(kernel, (words, 0))
            return DONE
        if launch.share == 0:
            return CLOSED
        invoke(launch.share, (ways[0], kernel, words, words + TASKS))
        return DONE

    kind = "int64(int64, object, int64, object, object, float64, float64, int64)"
    return entry(run, kind, f"gemm_batch_entry_{tile}")


_tables = {}  # dtype -> the entry, its table and the table's address


def _table(dtype):
    """Return a dtype's entry, compiled or loaded at its first use, its table and the table's address; or None."""
    if dtype not in NAMES or not layout_is_known():
        return None
    table = np.array([threads.WORDS, 0, 0, 0, 0], np.int64)
    found = _entry(small_tile(NAMES[dtype])), table, table.ctypes.data
    return background.kept(_tables, dtype, found)


def _run(out, x, a, b, beta, alpha) -> bool:
    """Whether the compiled loops took the batch. x is an id, or 0."""
    found = _tables.get(a.dtype) or _table(a.dtype)
    if found is None:
        return False
    run, table, address = found
    way = run(address, out, x, a, b, beta, alpha, 0)
    while way >= LACKING:
        tinies(small_tile(NAMES[a.dtype])).supply(way - LACKING)
        way = run(address, out, x, a, b, beta, alpha, 0)
    if way in WAYS:
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
        if way == LARGE and not stays.py_func(small_tile(NAMES[a.dtype]), words.rsa, words.csa, words.n):
            with room(workers * PANELS) as words.rooms:
                threads.launch(kernel, own, workers)
        else:
            threads.launch(kernel, own, workers)
    return way != DECLINED


def _kernel(table, way, dtype) -> int:
    """The address of the way's kernel, which is compiled or loaded at its first use."""
    if not table[way]:
        table[way] = WAYS[way][1](small_tile(NAMES[dtype]))
    return int(table[way])


def baddbmm(out, self, batch1, batch2, beta, alpha, mode=None, conj=None, tiles=None) -> None:
    """out[i] = beta * self[i] + alpha * (batch1[i] @ batch2[i])."""
    x = None if beta == 0 else np.broadcast_to(self, out.shape)
    stacked = tiles is None and (out.dtype in _tables or not first_products.suits(batch1, batch2, out_dtype=out.dtype))
    if stacked and _run(out, 0 if x is None else id(x), batch1, batch2, beta, alpha):
        return
    kind = kind_of(*(name_of(each.dtype) for each in (batch1, batch2, out)), conj or "", mode)
    kind = of_depth(kind, batch1.shape[-1])
    reads = [batch1, batch2] + ([] if x is None or same(out, x) else [x])
    if any(clash(out, each) for each in reads):
        temporary = np.empty(out.shape, out.dtype)
        baddbmm(temporary, self, batch1, batch2, beta, alpha, mode, conj, tiles)
        out[...] = temporary
        return
    factors = wrapped(beta, kind), wrapped(alpha, kind)
    if stacked and 0 not in (*batch1.shape, alpha) and stack(out, x, batch1, batch2, *factors, kind):
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
    if batch1.dtype not in NAMES:
        return _stacked(batch1, batch2, out, self, beta, alpha)
    return _fast(id(self), batch1, batch2, beta, alpha, out)


def bmm_fast(self, mat2, out):
    """bmm of plain arrays in few calls; None, with nothing written, where more care is needed."""
    return _stacked(self, mat2, out) if self.dtype not in NAMES else _fast(0, self, mat2, 0.0, 1.0, out)


def _stacked(a, b, out, x=None, beta=0, alpha=1):
    """bmm, or baddbmm with x, of a dtype other than float32 and float64; None where more care is needed."""
    dtype, name = a.dtype, a.dtype.name
    if b.dtype != dtype or not a.ndim == b.ndim == 3 or not dtype.isnative or name not in first_products.DTYPES:
        return None
    mistaken = dtype.kind in "biu" and float in (type(beta), type(alpha))
    if alpha == 0 or mistaken or (x is not None and x.dtype != dtype):
        return None
    (count, m, k), (other, steps, n) = a.shape, b.shape
    if other != count or steps != k or 0 in (count, m, n, k) or first_products.suits(a, b):
        return None
    kind = of_depth(kind_of(name, name, name), k)
    try:
        x = None if x is None or beta == 0 else np.broadcast_to(x, (count, m, n))
        if out is None:
            out = empty((count, m, n), dtype)
        elif not takes(out, (count, m, n), dtype) or any(
            np.may_share_memory(out, each) for each in (a, b, x) if each is not None
        ):
            return None
        return out if stack(out, x, a, b, wrapped(beta, kind), wrapped(alpha, kind), kind) else None
    except (ValueError, OverflowError):  # of another shape, or too large for a float: the checks will say it properly
        return None


def takes(out, shape, dtype) -> bool:
    """Whether it is an array of a result that compiled code may write at once."""
    alike = type(out) is np.ndarray and out.shape == shape and out.dtype == dtype
    return alike and out.flags.c_contiguous and out.flags.writeable


def _fast(x, a, b, beta, alpha, out):
    try:
        if out is None:
            (count, m, _), (_, _, n) = a.shape, b.shape
            out = empty((count, m, n), a.dtype)
        elif type(out) is not np.ndarray:
            return None
        if a.dtype not in _tables and (a.dtype != b.dtype or first_products.first(a, b)):
            return None
        return out if _run(out, x, a, b, beta, alpha) else None
    except (ValueError, OverflowError):  # not 3-D, an int too large for a float: the checks will say it properly
        return None
