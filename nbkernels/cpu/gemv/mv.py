"""y = alpha * A @ v + beta * x of float32 and float64, in an order of their own: 8 chains where a product has one.

k is cut into segments of 4096. Within one chain c takes the steps c, c + 8, c + 16, ... in order, each a fused
multiply-add, from zero; then chain c takes in chain c + h, for h = 4, 2 and 1, and the first is the sum of the segment.
Segments are added in order; fma(beta, x, alpha * sum) comes once. So the bits depend on the numbers alone: not on
layout, vectors or threads.

How rows and columns of A are read is told in chains.py; an A that is contiguous along neither is copied row by row.
An A of another dtype, whose numbers those of v hold (`matmul` takes one), is converted as it is read: 992x1000 float32
and a v of float64 take 190 us, with a copy before 970.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
from numpy import empty

from ... import background
from ...dtypes import name_of
from ...jit.abi.address import scratch
from ...jit.abi.ndarray import address_of, descr, dims, layout_is_known, ndim
from ...jit.abi.new_arrays import answer, new_strided, words
from ...jit.abi.workspaces import acquire, release
from ...jit.compile.cache import compiled, entry
from ...jit.compile.lazy import jit
from ...jit.compile.python_first import Patience
from ...jit.ir.kind import Kind
from ..gemm import fast, first_products
from ..gemm.block import PRODUCT
from ..gemm.blocking import SEGMENT, small
from ..gemm.checks import unsound
from ..gemm.context import BYTES, FIXED, matrices, operands, shift, sub, words_at
from ..gemm.gemm import NAMES, REAL, UNIT, accepted, gemm, same, whole
from ..gemm.store import finish
from ..runtime.arrays import alike, optional
from ..runtime.launch import SIZE
from ..runtime.status import DECLINED, DONE, LARGE
from . import jobs
from .chains import CHAINS, WAITING, WIDE, columns_sums, rows_of
from .jobs import BY_COLUMNS, BY_ROWS, copied, product

KEPT = 8 * SEGMENT  # bytes for a row or a v that is not contiguous
APART = max(2 * KEPT, WAITING)  # bytes for what is not read as it lies
BLOCK = 8 * WIDE  # bytes of stack for the sums of a block of outputs


@jit(forceinline=True)
def _sums(tile, form, h, matrix, vector, k, t):
    """t[i] = the sum of a[i, p] * v[p] over the k steps of a segment, for i < h."""
    (a, rsa, csa), (v, sv, _) = matrix, vector
    room = acquire(APART) if form == BY_COLUMNS or sv != 1 or csa != 1 else 0
    if form == BY_COLUMNS:
        columns_sums(tile, h, a, csa, v, sv, k, t, room)
    else:
        if sv != 1:
            copied(tile, k, v, sv, room)
            v = room
        if csa != 1:
            row = room + KEPT
            for r in range(h):
                copied(tile, k, a + r * rsa * tile.itemsize, csa, row)  # never of another dtype
                rows_of(tile, 1, row, 0, v, k, t + r * tile.itemsize)
        else:
            rows_of(tile, h, a, rsa, v, k, t)
    if room != 0:
        release(APART, room)


@jit(forceinline=True)
def _of_job(tile, f, i, h, k, a, v, t):
    """Compute one job's h sums, each of the k steps of a segment, into t."""
    _sums(tile, f.pack, h, (a, f.rsa, f.csa), (v, f.rsb, 0), k, t)


@jit(forceinline=True)
def _into(tile, table, out, made, x, a, v, beta, alpha):
    """Compute the product into `out`, which is the caller's or, where `made`, new; return the entry's status."""
    width, width_a, f = tile.itemsize, tile.size_a, words_at(scratch(BYTES))
    usual = ndim(out) == 1 and ndim(a) == 2 and ndim(v) == 1 and alike(out, x, a if tile.same else v, v) and alpha != 0
    if not usual or unsound(out, x, a, v, (width, width_a, width), beta, made):
        return DECLINED
    f.reads, f.sides, f.shift_a, f.shift_b, f.shift_c = beta != 0, FIXED, shift(width_a), shift(width), shift(width)
    operands(f, out, x, a, v)
    along = f.rsa == 1 and f.m > 1
    if not (tile.same or along or (f.csa == 1 and f.k > 1)):
        return DECLINED
    return product(tile, table, f, BY_COLUMNS if along else BY_ROWS, alpha, beta)


@functools.cache
def _entry(tile):
    """The call from Python: answer(address of made.words(), out or None, x or None, a, v, beta, alpha): out, or made;
    else a status. Before made.words() is a table of its launches.

    DECLINED, with nothing written, where arrays are unusual; LARGE as `product` says.
    """

    def run(numpy, out, x, a, v, beta, alpha):
        given, x, a, v, made = optional(numpy, out), optional(numpy, x), address_of(a), address_of(v), 0
        if given == 0:
            made = new_strided(numpy, descr(v), 1, dims(a), 0, 0, 0) if ndim(a) == 2 else 0
            if made == 0:
                return answer(DONE if ndim(a) == 2 else DECLINED, 0, 0)
        status = _into(tile, numpy - SIZE, given + made, made != 0, x, a, v, beta, alpha)
        return answer(status, given, made)

    kind = "answer(int64, object, object, object, object, float64, float64)"
    return entry(run, kind, f"mv_{tile}")


@functools.cache
def native(dtype: str) -> int:
    """y = alpha*A@v + beta*x by one thread: gemm/block.py's, of one column and any k, in the order of mv."""
    tile = small(dtype)

    def product(f, beta, alpha):
        size, (a, v, y, x), part, total = tile.itemsize, matrices(f), scratch(BLOCK), scratch(BLOCK)
        form = BY_COLUMNS if f.rsa == 1 and f.m > 1 else BY_ROWS
        for i in range(0, f.m, WIDE):
            h, yi, xi = min(WIDE, f.m - i), sub(y, i, 0, size), sub(x, i, 0, size)
            for p in range(0, f.k, SEGMENT):
                steps = min(SEGMENT, f.k - p)
                _sums(tile, form, h, sub(a, i, p, size), sub(v, p, 0, size), steps, part)
                finish(tile, (h, 1), (part, 1), (total, 1), p == 0, p + steps == f.k, yi, xi, alpha, beta)

    return compiled(product, PRODUCT, f"mv_native_{tile}")


_entries = {}  # v's dtype, or A's and v's -> the entry, as jobs.known has it
_patience = {}  # A's dtype and v's -> of the first calls, which convert A before


def _found(dtype):
    """The entry for float32 or float64, compiled or loaded at its first use; else None."""
    if dtype not in _entries and dtype in NAMES and layout_is_known():
        return background.kept(_entries, dtype, _known(small(NAMES[dtype])))
    return _entries.get(dtype)


def _known(tile):
    return jobs.known(_entry(tile), jobs.work(tile, _of_job, "mv"), words())


def _widening(a, v):
    """The entry for these dtypes, compiled or loaded after the first calls; else None."""
    dtypes = a.dtype, v.dtype
    if dtypes not in _entries and layout_is_known():
        stored, dtype = map(name_of, dtypes)
        tile = replace(small(dtype), kind=Kind(stored, dtype, dtype, dtype))
        if not _patience.setdefault(dtypes, Patience(f"mv_{tile}*"))():
            return background.kept(_entries, dtypes, _known(tile))
    return _entries.get(dtypes)


# -- the operations ----------------------------------------------------------------------------------------------------


def _general(out, x, a, v, beta, alpha, out_dtype, mode, conj) -> None:
    """Other dtypes, modes and a wider out have the order of mm, with v as a column."""
    x = None if beta == 0 else x
    plain = x is None and alpha == 1 and mode is None and out.dtype == a.dtype
    if plain and (sums := first_products.sums(a, v, CHAINS)) is not None:
        out[...] = sums
        return
    found = _found(a.dtype) if a.size and alpha != 0 else None
    if found is None or out.dtype != a.dtype or mode is not None:
        column = x[:, None] if x is not None and x.ndim else x
        gemm(out[:, None], column, a, v[:, None], beta, alpha, conj=conj, mode=mode)
        return
    _by_entry(found, out, x, a, v, beta, alpha)


def _by_entry(found, out, x, a, v, beta, alpha) -> None:
    near = [y for y in (a, v, x) if y is not None and np.may_share_memory(out, y)]
    direct = not [y for y in near if y is not x or not same(out, x)] and out.strides[0] % out.itemsize == 0
    into = whole(out) if direct else empty(out.shape, out.dtype.type)
    arrays = into, None if x is None else whole(x), whole(a), whole(v)
    if (status := jobs.answered(found, *arrays, float(beta), float(alpha))) is not into:
        accepted(status, out, a, v)
    if not direct:
        out[...] = into


def mv(out, self, vec, out_dtype=None, mode=None, conj=None) -> None:
    """out = self @ vec."""
    _general(out, None, self, vec, 0, 1, out_dtype, mode, conj)


def addmv(out, self, mat, vec, beta, alpha, out_dtype=None, mode=None, conj=None) -> None:
    """out = beta * self + alpha * (mat @ vec)."""
    _general(out, self, mat, vec, beta, alpha, out_dtype, mode, conj)


def mv_widened(out, self, vec) -> None:
    """out = self @ vec, of a self that `widens`; where its lines begin at odd addresses it is converted before."""
    found = _widening(self, vec)
    if found is None or any(stride % self.itemsize for stride in self.strides):
        mv(out, self.astype(vec.dtype), vec)
    else:
        _by_entry(found, out, None, self, vec, 0, 1)


def mv_widened_fast(self, vec, out):
    """self @ vec in few calls, for a self that `widens`; None, with nothing written, where more checks are needed."""
    found = _widening(self, vec)
    return mv_fast(self, vec, out, found=found) if found else mv_fast(self.astype(vec.dtype), vec, out)


def addmv_fast(self, mat, vec, beta, alpha, out):
    """addmv of plain arrays in few calls; None, with nothing written, where more care is needed."""
    return mv_fast(mat, vec, out, self, beta, alpha) if type(beta) in REAL and type(alpha) in REAL else None


def mv_fast(self, vec, out, x=None, beta=0.0, alpha=UNIT, found=None, ndarray=np.ndarray):
    """mv, likewise; and what addmv adds. `found`: the entry, where it is not that of one dtype."""
    found = found or _entries.get(self.dtype)
    if found is None:
        if self.dtype not in NAMES:
            return fast.general_fast(self, vec, out, x, beta, alpha) if self.ndim == 2 and vec.ndim == 1 else None
        if self.dtype != vec.dtype or (x is None and self.ndim == 2 and first_products.first_sums(self, vec, CHAINS)):
            return None
        if (found := _found(self.dtype)) is None:
            return None
    if not (out is None or type(out) is ndarray):
        return None
    try:
        status = found[0](found[1], out, x, self, vec, beta, alpha)
        if type(status) is ndarray:
            return status
        status = jobs.answered(found, out, x, self, vec, beta, alpha) if status == LARGE else status
    except OverflowError:  # a factor that is no float: the checks will say it properly
        return None
    return status if type(status) is ndarray else None
