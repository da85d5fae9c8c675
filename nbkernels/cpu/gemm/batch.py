"""Batches of products: C[t] = alpha * A[t] @ B[t] + beta * X[t], each with the bits of addmm.

- tiny and small matrices, vectors, and larger ones that threads share evenly: a thread each (stacks_float.py)
- those of other dtypes and modes: likewise (call.py)
- larger ones: all threads on one product after another (gemm.py)
"""

from __future__ import annotations

import functools

import numpy as np
from numpy import empty

from ... import background
from ...jit.abi.address import invoke, pointer, poke, scratch
from ...jit.abi.ndarray import WRITEABLE, address_of, flags, layout_is_known, ndim, shape
from ...jit.compile.cache import entry
from ...jit.compile.lazy import jit, plain
from ...jit.ir.kind import wrapped
from ..elementwise.planner import steps_over
from ..runtime import threads
from ..runtime.arrays import alike
from ..runtime.machine import l2
from ..runtime.status import LACKING
from ..runtime.workspace import one_room
from . import first_products
from .blocking import SEGMENT, caches
from .blocking import small as small_tile
from .call import BLOCK, BLOCKS, STRICT, described, operand_at, step, unfit, wrong
from .fast import general_fast
from .gemm import NAMES, REAL, clash, gemm, name_of, same
from .general_entry import general
from .kinds import kind_of, of_depth
from .paths import ALONE, DEEPEST, PARALLEL, SERIAL, steps
from .stacks_float import EVEN, NONE, STACK, TINY, WAYS, bytes_of, chosen, job, lacking
from .tiny import known
from .tiny import table as tinies

# Rows and columns at least, and steps at most, of products of a stack that are written by rows; steps that are few.
THIN_ROWS, THIN_STEPS, FEW_STEPS = 64, 32, 4
OVERHEAD = 200  # multiply-adds in the time that a product takes beside them, 5 ns: for the question of threads

# Answers of the entry: the number of a kernel, which the caller compiles; CLOSED where threads would gain and compiled
# code may not launch them.
DECLINED, DONE, CLOSED = 0, EVEN + 1, EVEN + 2
ROOM, SCALARS, TASKS = STACK.bytes, 8 * STACK["alpha"], 8 * STACK["tasks"]  # in bytes
A, B, C, X = (STACK[name] for name in "abcx")
stack_at = STACK.pointer()


@jit(forceinline=True)
def _operand(f, word, x, size, swap):
    """Write an operand's address and strides in elements, from its word on."""
    f[word], f[word + 1] = x.data, step(x, 2) // size
    f[word + 2], f[word + 3] = step(x, 0 if swap else 1) // size, step(x, 1 if swap else 0) // size


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


@plain
def _even(count, workers):
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
        for name, along in zip(("rs", "cs"), each.strides[1:][turn]):
            setattr(f, name + operand, along // size)
    if x is not None:
        f.x, f.csx = 1, steps(x)[turn][1] // size
    f.each, way = job(tile, f), chosen(tile, f, alpha == 1)
    if way == NONE:
        return None
    return WAYS[way][0], min(count, workers) if large or _gains(tile, f) else 1


@functools.cache
def _entry(tile):
    """int64(table, out, x, a, b, beta, alpha): a whole call, from checks to the finished stack. The table is what
    launches go by (threads.WORDS), then the kernels' addresses, or 0."""
    size, element = tile.itemsize, getattr(np, tile.dtype)

    def run(table, out, x, a, b, beta, alpha):
        out, a, b = address_of(out), address_of(a), address_of(b)
        words, blocks = scratch(ROOM), scratch(BLOCKS)
        f = stack_at(words)
        if ndim(out) != 3 or ndim(a) != 3 or ndim(b) != 3 or not alike(out, x, a, b) or (x != 0 and ndim(x) > 3):
            return DECLINED
        count, m, n, k = shape(a, 0), shape(a, 1), shape(b, 2), shape(a, 2)
        if min(count, m, n, k) < 1 or alpha == 0 or flags(out) & WRITEABLE == 0 or not _served(m, n, k, size, l2()):
            return DECLINED
        to, added = operand_at(blocks), operand_at(blocks + BLOCK)
        left, right = operand_at(blocks + 2 * BLOCK), operand_at(blocks + 3 * BLOCK)
        described(out, size, blocks)
        described(out if x == 0 else x, size, blocks + BLOCK)
        described(a, size, blocks + 2 * BLOCK)
        described(b, size, blocks + 3 * BLOCK)
        if unfit(to, added, left, right, True) or wrong(to, added, left, right, beta):
            return DECLINED
        if not steps_over(to.shape, to.step, 3, size):
            return DECLINED
        swap = abs(to.step[2]) != size and abs(to.step[1]) == size  # C' = B' A': stored along the contiguous side
        _operand(f, C, to, size, swap)
        _operand(f, A, right if swap else left, size, swap)
        _operand(f, B, left if swap else right, size, swap)
        _operand(f, X, added, size, swap)
        f.x = f.x if x != 0 and beta != 0 else 0
        f.m, f.n, f.k, f.count = n if swap else m, m if swap else n, k, count
        f.each, scalars = job(tile, f), words + SCALARS
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
        large, f.next = m * n * k > ALONE, 0
        if kernel == 0:
            return way
        if not large and not _gains(tile, f):
            invoke(kernel, (words, 0))
            return DONE
        if launch.share == 0:
            return CLOSED
        if large and not _even(count, threads.workers(launch)):
            return DECLINED
        invoke(launch.share, (ways[0], kernel, words, words + TASKS))
        return DONE

    kind = "int64(int64, object, int64, object, object, float64, float64)"
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
    way = run(address, out, x, a, b, beta, alpha)
    while way >= LACKING:
        tinies(small_tile(NAMES[a.dtype])).supply(way - LACKING)
        way = run(address, out, x, a, b, beta, alpha)
    if way in WAYS:
        table[way] = WAYS[way][1](small_tile(NAMES[a.dtype]))
        way = run(address, out, x, a, b, beta, alpha)
    if way == CLOSED and threads.open_up():
        way = run(address, out, x, a, b, beta, alpha)
    return way == DONE


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
    stacked = stacked and 0 not in (*batch1.shape, alpha) and len(out) > 1
    if stacked and general(kind, *factors, out.dtype, mixed=True).stack(out, x, batch1, batch2):
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


def _stacked(a, b, *given):
    """bmm, or baddbmm, of a dtype other than float32 and float64."""
    return general_fast(a, b, *given, how=STRICT) if a.ndim == 3 == b.ndim else None


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
