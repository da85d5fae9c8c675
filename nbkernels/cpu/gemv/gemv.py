"""Products with one row or one column: y = alpha * A @ v + beta * x. Each output is one chain, as in every product.
The matrix is read by rows, columns or segments: see dotxf.py and axpyf.py."""

from __future__ import annotations

import functools

import numpy as np

from ...jit.abi.address import poke, scratch
from ...jit.abi.ndarray import data, descr, ndim, shape, stride
from ...jit.compile.cache import both
from ...jit.compile.lazy import jit
from ..gemm.blocking import SEGMENT, small
from ..runtime import threads
from ..runtime.launch import SIZE
from ..runtime.machine import l2
from ..runtime.status import DECLINED, LARGE
from . import jobs
from .axpyf import columns
from .dotxf import one, pairs_of, rows_of
from .jobs import BY_COLUMNS, BY_ROWS, BY_SEGMENTS, FAR, HEAD, SHARED, copied, product, vector_at

WIDE = 4096  # outputs of a job of columns at most: their chains stay in L1
KEPT = 8 * SEGMENT  # bytes of stack for a strided v


@jit(forceinline=True)
def _segments(tile, f, i):
    """The sums of a job's segments, of one output, from the i-th on."""
    size, start = tile.itemsize, i * SEGMENT
    a, v, t = f.a + start * size, f.v + start * size, f.planes + i * size
    whole = min(f.each, (f.k - start) // SEGMENT)
    if whole > 0:
        pairs_of(tile, whole, a, SEGMENT, v, SEGMENT, SEGMENT, t)
    left, done = f.k - start - whole * SEGMENT, whole * SEGMENT * size
    if whole < f.each and left > 0:
        poke(tile, t + whole * size, one(tile, a + done, 1, v + done, 1, left))


@jit(forceinline=True)
def _sums(tile, f, i, h, k, a, v, t):
    """Compute one job's sums into t, one accumulator each."""
    held = f.m * f.k * tile.itemsize
    if f.form == BY_COLUMNS:
        columns(tile, h, a, f.csa, v, f.sv, k, t, 0)
    elif f.form == BY_SEGMENTS:
        _segments(tile, f, i)
    elif f.m == 1:
        poke(tile, t, one(tile, a, f.csa, v, f.sv, k))
    else:
        if f.sv != 1:
            kept = scratch(KEPT)
            copied(tile, k, v, f.sv, kept)
            v = kept
        rows_of(tile, h, a, f.rsa, v, k, t, held <= l2(), held > FAR)


@functools.cache
def _entry(dtype: str):
    """The call, and its address: int64(address behind a table of its launches, ids of out, of x or 0, of a and b, beta,
    alpha), after all checks. DECLINED where A is contiguous along neither side; else what `product` answers."""
    tile, element = small(dtype), getattr(np, dtype)
    size = tile.itemsize

    def run(table, out, x, a, b, beta, alpha):
        m, n, f = shape(out, 0), shape(out, 1), vector_at(scratch(HEAD))
        turned = m == 1 and n > 1  # y' = b' a'
        mat, vec, along, down = (b, a, 1, 0) if turned else (a, b, 0, 1)
        f.m, f.k = n if turned else m, shape(a, 1)
        f.a, f.rsa, f.csa = data(mat), stride(mat, along), stride(mat, down)
        f.v, f.sv = data(vec), stride(vec, along)
        f.c, f.rsc, f.x, f.rsx = data(out), stride(out, along), 0, 0
        if x != 0 and beta != 0:
            side = ndim(x) - 2 + along
            f.x, f.rsx = data(x), stride(x, side) if side >= 0 and shape(x, side) > 1 else 0
        if (f.rsa | f.csa | f.sv | f.rsc | f.rsx) & (size - 1) != 0 or descr(a) != descr(b):
            return DECLINED
        form = BY_COLUMNS if f.rsa == size and f.m > 1 else BY_ROWS
        if f.m == 1 and f.k > SEGMENT and f.csa == size and f.sv == size:
            form = BY_SEGMENTS
        if form == BY_ROWS and f.csa != size and f.m > 1:
            return DECLINED
        return product(tile, table - SIZE, f, form, WIDE, element(alpha), element(beta))

    return both(run, f"int64({'int64, ' * 5}float64, float64)", f"gemv_{tile}")


@functools.cache
def _known(dtype: str):
    run, address = _entry(dtype)
    return address, jobs.known(run, jobs.work(small(dtype), _sums, "gemv"))


def whole(dtype: str) -> tuple[int, int]:
    """The address of the whole call, and its first argument. It answers LARGE, with nothing done, where `gemv` has to
    be called."""
    address, (_, table, _) = _known(dtype)
    return address, table


def gemv(dtype: str, out, x, a, b, beta, alpha) -> bool:
    """out = alpha * a @ b + beta * x after all checks, where out has one row or one column; x is an id, or 0.

    False, with nothing written, where the matrix is contiguous along neither side.
    """
    (run, table, _), arrays = _known(dtype)[1], (id(out), x, id(a), id(b), beta, alpha)
    status = run(table, *arrays)
    if status == LARGE:
        planes, workers = -(-a.shape[1] // SEGMENT), threads.count() if max(a.nbytes, b.nbytes) > SHARED else 1
        status = jobs.enlarged(_known(dtype)[1], 8 * planes * out.size, workers, *arrays)  # of 8 bytes at most
    return status != DECLINED
