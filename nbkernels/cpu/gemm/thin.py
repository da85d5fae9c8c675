"""Products of few steps of k: C is written once, row by row, and read never.

A block of rows of C goes along B, whose few rows stay in L1 or L2: for a product of stacks (tiny.py) that is a stack of
matrices side by side, each a register tile wide. Column by column every panel of C would touch every page of it again
(2000x2000x3 of float32, Zen 4: 2.9 ms, by rows 0.63).
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.address import peek, scratch
from ...jit.cache import compiled, jit, plain
from ...jit.sharing import arrive, take, wait
from ..runtime import threads
from ..runtime.launch import launch_table, launchable, table_at
from ..runtime.status import DECLINED, DONE, LARGE
from ..runtime.workspace import room
from .blocking import small
from .context import BYTES, FINISHED, NEXT, WORDS, WORKERS, alone, up, words_at
from .door import factored, whole_call
from .ger import outer
from .kinds import default_tiles, kind_of
from .pack import pack
from .paths import PANEL, THIN_LEAST
from .setup import filled
from .tiny import absent, known, table, tall, tiny

JOB = 4  # blocks of rows of a job


@jit(forceinline=True)
def _rows(tile, f, i, h, b, panel, rsb, alpha, beta):
    """C[i:i+h], h rows as `tall` says; panels of B are `panel` elements apart."""
    size, n, whole = tile.itemsize, f.n, f.n // tile.nr
    if f.k == 1 and n >= tile.lanes:  # whole rows: 256x256 of float64 4.1 us, by blocks 5.2 (AVX-512)
        x = f.x + i * f.rsx * size if f.x != 0 else 0
        outer(tile, h, n, f.a + i * f.rsa * size, f.rsa, b, f.c + i * f.rsc * size, f.rsc, alpha, x, f.rsx, beta)
        return
    for start, count, width in ((0, whole, tile.nr), (whole, 1, n - whole * tile.nr)):
        if width > 0 and count > 0:
            first = start * tile.nr
            a, c = f.a + i * f.rsa * size, f.c + (i * f.rsc + first) * size
            x = f.x + (i * f.rsx + first) * size if f.x != 0 else 0
            tiny(tile, h, count, f.k, a, 0, f.rsa, f.csa, b + start * panel * size, panel, rsb, c, tile.nr, f.rsc,
                 x, tile.nr, f.rsx, width, alpha, beta)  # fmt: skip


@plain
def _lacking(tile, words, m, n):
    """The place of what `_rows` need of tiny.py's table and is not there; or -1."""
    height, at = tall(tile, tile.nr), -1
    for h in (min(m, height), m % height):
        at = max(at, max(absent(tile, words, h, min(n, tile.nr)), absent(tile, words, h, n % tile.nr)))
    return at


@functools.cache
def _thin(tile) -> int:
    """The jobs of one thread: void(words, task). Panels of B are BPANELS elements apart; where its rows are not
    contiguous they are packed first."""

    def work(f, task):
        size, m, n, k, height = tile.itemsize, f.m, f.n, f.k, tall(tile, tile.nr)
        alpha, beta = peek(tile, f.scalars), peek(tile, f.scalars + size)
        b, panel, rsb, first = f.b, f.bpanels, f.rsb, 0
        if f.csb != 1:
            b, panel, rsb, first = f.room, k * tile.nr, tile.nr, (n + tile.nr - 1) // tile.nr
        job = take(f, NEXT)
        while job < first:
            j = job * tile.nr
            w = min(tile.nr, n - j)
            pack(tile, f.b + j * f.csb * size, f.csb, f.rsb, w, k, b + j * k * size, tile.nr)
            arrive(f, FINISHED)
            job = take(f, NEXT)
        wait(f, FINISHED, first)
        while (job - first) * JOB * height < m:
            for i in range((job - first) * JOB * height, min(m, (job - first + 1) * JOB * height), height):
                _rows(tile, f, i, min(height, m - i), b, panel, rsb, alpha, beta)
            job = take(f, NEXT)

    return compiled(work, WORDS.kernel, f"gemm_thin_{tile}")


@functools.cache
def _whole(tile):
    """int64(table, out, x, a, b, beta, alpha), on checked arrays: their ids, x's or 0; from Python, and its address.
    From THIN_LEAST elements on it launches threads, and comes back when they are done."""
    size, element = tile.itemsize, getattr(np, tile.dtype)

    def run(table, out, x, a, b, beta, alpha):
        panels, factors, address = scratch(PANEL), scratch(16), scratch(BYTES)
        f, t = words_at(address), table_at(table)
        alone(tile, f, out, x, a, b, beta, 1)
        if f.csc != 1 or (f.x != 0 and f.csx != 1):
            return LARGE
        if _lacking(tile, known(tile), f.m, f.n) >= 0:
            return LARGE
        many = f.m * f.n >= THIN_LEAST
        if many and (t.kernel == 0 or launchable(table) == 0):
            return LARGE
        f.bpanels = tile.nr
        if f.csb != 1:
            if up(f.n, tile.nr) * f.k * size > PANEL:
                return LARGE
            for j in range(0, f.n, tile.nr):
                source, width = f.b + j * f.csb * size, min(tile.nr, f.n - j)
                pack(tile, source, f.csb, f.rsb, width, f.k, panels + j * f.k * size, tile.nr)
            f.b, f.rsb, f.csb, f.bpanels = panels, tile.nr, 1, f.k * tile.nr
        if many:
            factored(tile, f, factors, element(alpha), element(beta))
            threads.shared(t.launch, t.kernel, address, address + WORKERS)
            return DONE
        height = tall(tile, tile.nr)
        for i in range(0, f.m, height):
            _rows(tile, f, i, min(height, f.m - i), f.b, f.bpanels, f.rsb, element(alpha), element(beta))
        return DONE

    return whole_call(run, f"gemm_thin_whole_{tile}")


@functools.cache
def _table(tile):
    return launch_table()  # the kernel comes when threads are to be launched


def whole(dtype: str) -> tuple[int, int]:
    """The address of the whole call, and its first argument. It answers LARGE, with nothing done, where rows of out or
    x are not contiguous, something is not compiled, B's panels have no room on the stack, or threads have not been
    launched by `thin` before."""
    tile = small(dtype)
    return _whole(tile)[1], _table(tile).buffer_info()[0]


def thin(out, x, a, b, beta, alpha, dtype: str, workers: int, trusted: bool = True) -> int:
    """out = alpha * a @ b + beta * x for rows of out and x that are contiguous; DECLINED, with nothing done, if not."""
    kind, tile = kind_of(dtype, dtype, dtype), small(dtype)
    m, n = out.shape if out.strides[1] == out.itemsize else out.shape[::-1]
    while (at := _lacking(tile, table(tile).words, m, n)) >= 0:
        table(tile).supply(at)
    if out.size >= THIN_LEAST and threads.open_up():
        _table(tile).kernel = _thin(tile)
    if _whole(tile)[0](_table(tile).buffer_info()[0], id(out), x, id(a), id(b), beta, alpha) == DONE:
        return DONE
    f, kept = filled(out, x, a, b, beta, alpha, default_tiles(kind), kind, workers, trusted=trusted)
    if f is None or f.csc != 1 or (f.x != 0 and f.csx != 1):
        return DECLINED
    f.bpanels = tile.nr
    with room(0 if f.csb == 1 else up(f.n, tile.nr) * f.k * tile.itemsize) as f.room:
        threads.launch(_thin(tile), f.own, workers)
    return DONE
