"""y = alpha * A @ v + beta * x of float32 and float64, in an order of their own: 8 chains where a product has one.

k is cut into segments of 4096. Within one chain c takes the steps c, c + 8, c + 16, ... in order, each a fused
multiply-add, from zero; then chain c takes in chain c + h, for h = 4, 2 and 1, and the first is the sum of the segment.
Segments are added in order; fma(beta, x, alpha * sum) comes once. So the bits depend on the numbers alone: not on
layout, vectors or threads.

How rows and columns of A are read is told in chains8.py; an A that is contiguous along neither is copied row by row.

256x256 float32 in L2, rows and columns: 3.3 and 3.8 us, gemv.py 7.5 and 3.2 (one thread of Zen 4, 2026-11).
"""

from __future__ import annotations

import functools
from array import array

import numpy as np
from numba import types
from numpy import empty

from ...jit.address import peek, pointer, poke, scratch, set_word, take_from
from ...jit.cache import compiled, entry, jit
from ...jit.made import ANSWER, NONE, answer, new_strided, words
from ...jit.ndarray import OBJECT, WRITEABLE, address_of, data, descr, flags, layout_is_known, ndim, shape, stride
from ...jit.rooms import lent, returned
from ..gemm.blocking import SEGMENT, small
from ..gemm.entry import MADE, alike, apart
from ..gemm.gemm import NAMES, REAL, accepted, clash, gemm, same, whole
from ..gemm.store import finish
from ..runtime import threads
from ..runtime.launch import SIZE, TABLE, launch_table, launchable, table_at
from ..runtime.status import DECLINED, DONE, LARGE, UNMADE
from .chains8 import WAITING, WIDE, columns_sums, far_rows_of, rows_of
from .gemv import (
    AHEAD,
    ALPHA,
    BETA,
    BY_COLUMNS,
    BY_ROWS,
    FAR,
    HEAD,
    HERE,
    NEXT,
    ROWS_SHARED,
    SHARED,
    TASKS,
    VECTOR,
    end,
    ending,
    run_jobs,
    share,
    vector_at,
)

KEPT = 8 * SEGMENT  # bytes for a row or a v that is not contiguous
APART = max(2 * KEPT, WAITING)  # bytes for what is not read as it lies
BLOCK = 8 * WIDE  # bytes of stack for the sums of a block of outputs


# -- jobs --------------------------------------------------------------------------------------------------------------


@jit(forceinline=True)
def _sums(tile, form, h, a, rsa, csa, v, sv, k, t, far):
    """t[i] = the sum of a[i, p] * v[p] over the k steps of a segment, for i < h."""
    room = lent(APART) if form == BY_COLUMNS or sv != 1 or csa != 1 else 0
    if form == BY_COLUMNS:
        columns_sums(tile, h, a, csa, v, sv, k, t, far, room)
    else:
        if sv != 1:
            _copy(tile, k, v, sv, room)
            v = room
        if csa != 1:
            row = room + KEPT
            for r in range(h):
                _copy(tile, k, a + r * rsa * tile.itemsize, csa, row)
                rows_of(tile, 1, row, 0, v, k, t + r * tile.itemsize)
        elif far:
            far_rows_of(tile, h, a, rsa, v, k, t)
        else:
            rows_of(tile, h, a, rsa, v, k, t)
    if room != 0:
        returned(APART, room)


@jit(forceinline=True)
def _job(tile, f, job):
    """The sums of one block of outputs over one segment, in the segment's plane."""
    size, m, rsa, csa, sv = tile.itemsize, f.m, f.rsa, f.csa, f.sv
    s, i = job // f.blocks, job % f.blocks * f.each
    start, h = s * SEGMENT, min(f.each, m - i)
    k = min(SEGMENT, f.k - start)
    a, v = f.a + (i * rsa + start * csa) * size, f.v + start * sv * size
    t, far = f.planes + (s * m + i) * size, m * f.k * size > FAR and AHEAD
    _sums(tile, f.form, h, a, rsa, csa, v, sv, k, t, far)
    if f.k <= SEGMENT:
        end(tile, f, i, h)


@jit(forceinline=True)
def _copy(tile, k, source, step, target):
    """k numbers, `step` apart, to where they touch."""
    for p in range(k):
        poke(tile, target + p * tile.itemsize, peek(tile, source + p * step * tile.itemsize))


@functools.cache
def _work(tile) -> int:
    """The jobs of one thread: void(address of the words, task)."""

    def work(f, task):
        job = take_from(f, NEXT, task % 2)
        while job >= 0:
            _job(tile, f, job)
            job = take_from(f, NEXT, task % 2)

    return compiled(work, VECTOR.kernel, f"mv_work_{tile}")


@jit(forceinline=True)
def _product(tile, table, out, x, a, v, beta, alpha):
    """What the entry answers for an out."""
    size, room, workers = tile.itemsize, table_at(table).room, table_at(table).workers
    if ndim(out) != 1 or ndim(a) != 2 or ndim(v) != 1 or not alike(out, x, a, v):
        return DECLINED
    m, k, rsa, csa, sv, rsc = shape(a, 0), shape(a, 1), stride(a, 0), stride(a, 1), stride(v, 0), stride(out, 0)
    px, rsx = 0, 0
    if x != 0 and beta != 0:
        if ndim(x) > 1 or (ndim(x) == 1 and shape(x, 0) != m and shape(x, 0) != 1):
            return DECLINED
        px, rsx = data(x), stride(x, 0) if ndim(x) == 1 and shape(x, 0) > 1 else 0
    if shape(out, 0) != m or shape(v, 0) != k or min(m, k) == 0 or alpha == 0 or flags(out) & WRITEABLE == 0:
        return DECLINED
    if (rsa | csa | sv | rsc | rsx) & (size - 1) != 0 or (rsc == 0 and m > 1):
        return DECLINED
    if room == 0 and not (apart(out, a, size) and apart(out, v, size)):
        return DECLINED
    if room == 0 and px != 0 and not (px == data(out) and rsx == rsc) and not apart(out, x, size):
        return DECLINED
    by_columns = rsa == size and m > 1
    segments = (k + SEGMENT - 1) // SEGMENT
    direct = segments == 1 and rsc == size and px == 0 and alpha == 1  # sums are results
    words, here = room, scratch(HERE)
    if room == 0:
        workers = launchable(table) if m * k * size > (SHARED if by_columns else ROWS_SHARED) else 1
        if workers == 0 or (not direct and segments * m * size > HERE):
            return LARGE
        words = scratch(HEAD)
    planes = data(out) if direct else here if room == 0 else words + HEAD
    form = BY_COLUMNS if by_columns else BY_ROWS
    each = share(form, m, k, size, workers, WIDE)
    f = vector_at(words)
    f.next = 0
    f.form = form
    f.m = m
    f.k = k
    f.a = data(a)
    f.rsa = rsa // size
    f.csa = csa // size if k > 1 or form == BY_COLUMNS else 1
    f.v = data(v)
    f.sv = sv // size if k > 1 else 1
    f.planes = planes
    f.each = each
    f.blocks = (m + each - 1) // each
    f.jobs = (m + each - 1) // each * segments
    f.c = data(out)
    f.rsc = rsc // size
    f.x = px
    f.rsx = rsx // size
    poke(tile, words + ALPHA, alpha)
    poke(tile, words + BETA, beta)
    if room != 0:
        return LARGE
    run_jobs(table, words, f.jobs, workers, TASKS)
    if segments > 1:
        end(tile, f, 0, m)
    return DONE


@functools.cache
def _entry(tile):
    """The call from Python: answer(address of made.words(), out or None, x or None, a, v, beta, alpha): out, or made;
    else a status. Before made.words() is a table as gemv's.

    DECLINED, with nothing written, where arrays are unusual; UNMADE: a result so large is the caller's to make. LARGE
    without a room: to be called again with one, of WORDS and a number for each output and segment; with one arrays are
    only planned, for `_work` and `ending`.
    """
    size = tile.itemsize

    def run(numpy, out, x, a, v, beta, alpha):
        given, x, a, v, made = address_of(out), address_of(x), address_of(a), address_of(v), 0
        none = pointer(numpy)[NONE]
        x = 0 if x == none else x
        if given == none:
            given, sizes = 0, scratch(8)
            if ndim(a) != 2 or shape(a, 0) > MADE // size:
                return answer(UNMADE, 0, 0)
            set_word(sizes, shape(a, 0))
            made = new_strided(numpy, descr(a), 1, sizes, 0)
            if made == 0:
                return answer(DONE, 0, 0)
        status = _product(tile, numpy - SIZE, given + made, x, a, v, beta, alpha)
        return answer(status, given, made)

    kind = ANSWER(types.int64, OBJECT, OBJECT, OBJECT, OBJECT, types.float64, types.float64)
    return entry(run, kind, f"mv_{tile}")


@functools.cache
def native(dtype: str) -> int:
    """y = alpha*A@v + beta*x by one thread, of what addresses say: void(m, k, a, rsa, csa, v, sv, y, sy, x, sx, beta,
    alpha), sizes at least 1, strides in elements, x 0 for none. y shares no memory with A and v, and with x only where
    it is x."""
    tile = small(dtype)

    def product(m, k, a, rsa, csa, v, sv, y, sy, x, sx, beta, alpha):
        size, part, total = tile.itemsize, scratch(BLOCK), scratch(BLOCK)
        form, far = BY_COLUMNS if rsa == 1 and m > 1 else BY_ROWS, m * k * size > FAR and AHEAD
        for i in range(0, m, WIDE):
            h, xi = min(WIDE, m - i), x + i * sx * size if x != 0 else 0
            for p in range(0, k, SEGMENT):
                steps = min(SEGMENT, k - p)
                ai, vp = a + (i * rsa + p * csa) * size, v + p * sv * size
                _sums(tile, form, h, ai, rsa, csa, vp, sv, steps, part, far)
                finish(tile, h, 1, part, 1, total, 1, p == 0, p + steps == k, y + i * sy * size, sy, 0, xi, sx, 0,
                       alpha, beta)  # fmt: skip

    return compiled(product, f"void({', '.join(['int64'] * 11)}, float64, float64)", f"mv_native_{tile}")


_entries = {}  # dtype -> the entry, the address that it goes by, and the words there


def _found(dtype):
    """The entry for float32 or float64, compiled or loaded at its first use; else None."""
    if dtype in NAMES and layout_is_known():
        tile = small(NAMES[dtype])
        known = np.concatenate([launch_table(_work(tile)), words()])
        _entries[dtype] = _entry(tile), known.ctypes.data + SIZE, known
    return _entries.get(dtype)


def _large(found, out, x, a, v, beta, alpha) -> int:
    """What the entry left to its caller: to let it launch threads, or to give it a room."""
    run, numpy, known = found
    if threads.open_up():
        status = run(numpy, out, x, a, v, beta, alpha)
        if status is out:
            return DONE
        if status != LARGE:
            return status
    return _roomy(run, known, out, x, a, v, beta, alpha)


def _roomy(run, known, out, x, a, v, beta, alpha) -> int:
    """With a room and threads, of arrays that are known to be apart."""
    segments, workers = (a.shape[1] + SEGMENT - 1) // SEGMENT, threads.count() if a.nbytes > SHARED else 1
    room = array("q", bytes(HEAD + 8 * segments * len(a)))  # of 8 bytes at most
    tile, known = small(NAMES[a.dtype]), known.copy()
    f = room.buffer_info()[0]
    known[TABLE["room"]], known[TABLE["workers"]] = f, workers
    if run(known.ctypes.data + SIZE, out, x, a, v, beta, alpha) == DECLINED:
        return DECLINED
    threads.launch(_work(tile), f, workers)
    if segments > 1:
        ending(tile)(f)
    return DONE


# -- the operations ----------------------------------------------------------------------------------------------------


def _general(out, x, a, v, beta, alpha, out_dtype, mode, conj) -> None:
    """Other dtypes, modes and a wider out have the order of mm, with v as a column."""
    found, x = _found(a.dtype) if a.size and alpha != 0 else None, None if beta == 0 else x
    if found is None or out.dtype != a.dtype or mode is not None:
        column = x[:, None] if x is not None and x.ndim else x
        gemm(out[:, None], column, a, v[:, None], beta, alpha, conj=conj or "", mode=mode)
        return
    overlap = clash(out, a) or clash(out, v) or (x is not None and not same(out, x) and clash(out, x))
    direct = not overlap and out.strides[0] % out.itemsize == 0
    into = whole(out) if direct else empty(out.shape, out.dtype.type)
    arrays = into, None if x is None else whole(x), whole(a), whole(v)
    accepted(_roomy(found[0], found[2], *arrays, float(beta), float(alpha)), out, a, v)
    if not direct:
        out[...] = into


def mv(out, self, vec, out_dtype=None, mode=None, conj=None) -> None:
    """out = self @ vec."""
    _general(out, None, self, vec, 0, 1, out_dtype, mode, conj)


def addmv(out, self, mat, vec, beta, alpha, out_dtype=None, mode=None, conj=None) -> None:
    """out = beta * self + alpha * (mat @ vec)."""
    _general(out, self, mat, vec, beta, alpha, out_dtype, mode, conj)


def addmv_fast(self, mat, vec, beta, alpha, out):
    """addmv of plain arrays in few calls; None, with nothing written, where more care is needed."""
    return mv_fast(mat, vec, out, self, beta, alpha) if type(beta) in REAL and type(alpha) in REAL else None


def mv_fast(self, vec, out, x=None, beta=0, alpha=1, ndarray=np.ndarray):
    """mv, likewise; and what addmv adds."""
    found = _entries.get(self.dtype) or _found(self.dtype)
    if found is None or not (out is None or type(out) is ndarray):
        return None
    try:
        status = found[0](found[1], out, x, self, vec, beta, alpha)
        if type(status) is ndarray:
            return status
        if status == DECLINED or self.ndim != 2:
            return None
        if out is None:
            out = empty(len(self), self.dtype)
            status = found[0](found[1], out, x, self, vec, beta, alpha)
            if status is out:
                return out
        if status == LARGE:
            status = _large(found, out, x, self, vec, beta, alpha)
    except OverflowError:  # a factor that is no float: the checks will say it properly
        return None
    return out if status == DONE else None
