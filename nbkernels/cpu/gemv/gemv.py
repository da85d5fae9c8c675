"""Products with one row or one column: y = alpha * A @ v + beta * x. Each output is one chain, as in every product.
The matrix is read by rows, columns or segments: see dotxf.py and axpyf.py."""

from __future__ import annotations

import functools

import numpy as np

from ...jit.abi.record import lasting
from ...jit.compile.cache import both
from ...jit.compile.lazy import jit
from ..gemm.blocking import SEGMENT, small
from ..gemm.context import words_at
from ..runtime.launch import SIZE
from ..runtime.status import DECLINED
from . import jobs
from .dotxf import one, pairs_of
from .jobs import BY_COLUMNS, BY_ROWS, BY_SEGMENTS, product, sums_of


@jit(forceinline=True)
def _segments(tile, f, i):
    """The sums of a job's segments, of one output, from the i-th on."""
    size, start = tile.itemsize, i * SEGMENT
    a, v, t = f.a + start * size, f.b + start * size, f.room + i * size
    whole = min(f.block, (f.k - start) // SEGMENT)
    if whole > 0:
        pairs_of(tile, whole, a, SEGMENT, v, SEGMENT, SEGMENT, t)
    left, done = f.k - start - whole * SEGMENT, whole * SEGMENT * size
    if whole < f.block and left > 0:
        one(tile, a + done, 1, v + done, 1, left, t + whole * size)


@jit(forceinline=True)
def _sums(tile, f, i, h, k, a, v, t):
    """Compute one job's sums into t, one accumulator each."""
    if f.pack == BY_SEGMENTS:
        _segments(tile, f, i)
    elif f.m == 1:
        one(tile, a, f.csa, v, f.rsb, k, t)
    else:
        sums_of(tile, h, (a, f.rsa, f.csa), (v, f.rsb, 0), k, t, f.m * f.k * tile.itemsize)


@functools.cache
def _entry(dtype: str):
    """The call, and its address: int64(address behind a table of its launches, words of checked arrays, beta, alpha).
    DECLINED where A is contiguous along neither side; else what `product` answers."""
    tile, element = small(dtype), getattr(np, dtype)

    def run(table, words, beta, alpha):
        f = words_at(words)
        form = BY_COLUMNS if f.rsa == 1 and f.m > 1 else BY_ROWS
        if f.m == 1 and f.k > SEGMENT and f.csa == 1 and f.rsb == 1:
            form = BY_SEGMENTS
        if form == BY_ROWS and f.csa != 1 and f.m > 1:
            return DECLINED
        return product(tile, table - SIZE, f, form, element(alpha), element(beta))

    return both(run, "int64(int64, int64, float64, float64)", f"gemv_{tile}")


@lasting
def _known(dtype: str):
    run, address = _entry(dtype)
    return address, jobs.known(run, jobs.work(small(dtype), _sums, "gemv"))


def whole(dtype: str) -> tuple[int, int]:
    """The address of the whole call, and its first argument. It answers LARGE, with nothing done, where `gemv` has to
    be called."""
    address, (_, table, _) = _known(dtype)
    return address, table


def gemv(dtype: str, f, beta, alpha) -> int:
    """out = alpha * a @ b + beta * x of these words, where out has one row or one column: a status, DECLINED where the
    matrix is contiguous along neither side."""
    return jobs.answered(_known(dtype)[1], f.buffer_info()[0], beta, alpha)
