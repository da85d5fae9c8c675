"""Products of few steps of k: C is written once, row by row, and read never.

A block of rows of C goes along B, whose few rows stay in L1 or L2: for a product of stacks (tiny.py) that is a stack of
matrices side by side, each a register tile wide. Column by column every panel of C would touch every page of it again
(2000x2000x3 of float32, Zen 4: 2.9 ms, by rows 0.63).
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.address import invoke, peek, scratch
from ...jit.cache import compiled, jit, plain
from ..runtime import threads
from ..runtime.launch import launch_table, launchable, table_at
from ..runtime.status import DECLINED, DONE, LARGE
from ..runtime.workspace import room
from .blocking import small
from .context import BYTES, WORDS, WORKERS, alone, grid, part, up, words_at
from .door import factored, whole_call
from .ger import outer
from .kinds import default_tiles, kind_of
from .pack import pack
from .paths import PANEL, THIN_LEAST
from .setup import filled
from .tiny import absent, known, table, tall, tiny


@jit(forceinline=True)
def _rows(tile, f, rows, columns, panels, alpha, beta):
    """Some rows of C, (first, end), in columns j to j+n. `panels`: the address of those of B, in elements how far they
    are apart, and a panel's rows."""
    (low, high), (j, n), (b, panel, rsb), size, height = rows, columns, panels, tile.itemsize, tall(tile, tile.nr)
    for i in range(low, high, height):
        h, a, c = min(height, high - i), f.a + i * f.rsa * size, f.c + (i * f.rsc + j) * size
        x = f.x + (i * f.rsx + j) * size if f.x != 0 else 0
        if f.k == 1 and n >= tile.lanes:  # whole rows: 256x256 of float64 4.1 us, by blocks 5.2 (AVX-512)
            outer(tile, h, n, a, f.rsa, b, c, f.rsc, alpha, x, f.rsx, beta)
            continue
        whole = n // tile.nr
        for start, count, width in ((0, whole, tile.nr), (whole, 1, n - whole * tile.nr)):
            if width > 0 and count > 0:
                first = start * tile.nr * size
                tiny(tile, h, count, f.k, a, 0, f.rsa, f.csa, b + start * panel * size, panel, rsb, c + first, tile.nr,
                     f.rsc, x + first if x != 0 else 0, tile.nr, f.rsx, width, alpha, beta)  # fmt: skip


@jit(forceinline=True)
def _packed(tile, f, j, n, to):
    """Columns j to j+n of B as panels, as `_rows` takes them."""
    for at in range(0, n, tile.nr):
        source, width = f.b + (j + at) * f.csb * tile.itemsize, min(tile.nr, n - at)
        pack(tile, source, f.csb, f.rsb, width, f.k, to + at * f.k * tile.itemsize, tile.nr)
    return to, f.k * tile.nr, tile.nr


@plain
def _lacking(tile, words, m, n):
    """The place of what `_rows` need of tiny.py's table and is not there; or -1."""
    height, at = tall(tile, tile.nr), -1
    for h in (min(m, height), m % height):
        at = max(at, max(absent(tile, words, h, min(n, tile.nr)), absent(tile, words, h, n % tile.nr)))
    return at


@functools.cache
def _thin(tile) -> int:
    """The pieces of one thread: void(words, task). Where B's rows are not contiguous it packs what it needs of them, in
    the room or, without one, on its stack."""

    def work(f, task):
        size, m, n = tile.itemsize, f.m, f.n
        alpha, beta, stack = peek(tile, f.scalars), peek(tile, f.scalars + size), scratch(PANEL)
        rows, columns = part(m, f.down, tall(tile, tile.nr)), part(n, f.across, tile.nr)
        for piece in range(task, f.down * f.across, f.workers):
            i, j = piece % f.down * rows, piece // f.down * columns
            if i < m and j < n:
                wide, panels = min(columns, n - j), (f.b + j * size, tile.nr, f.rsb)
                if f.csb != 1:
                    panels = _packed(tile, f, j, wide, f.room + j * f.k * size if f.room != 0 else stack)
                _rows(tile, f, (i, min(i + rows, m)), (j, wide), panels, alpha, beta)

    return compiled(work, WORDS.kernel, f"gemm_thin_{tile}")


@functools.cache
def _whole(tile):
    """int64(table, out, x, a, b, beta, alpha), on checked arrays: their ids, x's or 0; from Python, and its address.
    From THIN_LEAST elements on it launches threads, and comes back when they are done."""
    size, element = tile.itemsize, getattr(np, tile.dtype)

    def run(table, out, x, a, b, beta, alpha):
        factors, address = scratch(16), scratch(BYTES)
        f, t = words_at(address), table_at(table)
        alone(tile, f, out, x, a, b, beta, 1)
        if f.csc != 1 or (f.x != 0 and f.csx != 1):
            return LARGE
        if _lacking(tile, known(tile), f.m, f.n) >= 0:
            return LARGE
        workers = launchable(table) if f.m * f.n >= THIN_LEAST else 1
        if workers == 0 or (f.csb != 1 and up(f.n, tile.nr) * f.k * size > PANEL):
            return LARGE
        if workers == 1 and f.csb == 1:
            _rows(tile, f, (0, f.m), (0, f.n), (f.b, tile.nr, f.rsb), element(alpha), element(beta))
            return DONE
        factored(tile, f, factors, element(alpha), element(beta))
        f.room, f.workers, f.down, f.across = 0, 1, 1, 1
        if workers > 1:
            f.down, f.across = grid(f.m, f.n, tall(tile, tile.nr), tile.nr, workers)
            threads.shared(t.launch, t.kernel, address, address + WORKERS)
        else:
            invoke(t.kernel, (address, 0))
        return DONE

    return whole_call(run, f"gemm_thin_whole_{tile}")


@functools.cache
def _table(tile):
    return launch_table(_thin(tile))


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
    if out.size >= THIN_LEAST:
        threads.open_up()
    if _whole(tile)[0](_table(tile).buffer_info()[0], id(out), x, id(a), id(b), beta, alpha) == DONE:
        return DONE
    f, kept = filled(out, x, a, b, beta, alpha, default_tiles(kind), kind, workers, trusted=trusted)
    if f is None or f.csc != 1 or (f.x != 0 and f.csx != 1):
        return DECLINED
    # Of panels that no stack holds each thread packs its own.
    f.down, f.across = (1, workers) if f.csb != 1 else grid(f.m, f.n, tall(tile, tile.nr), tile.nr, workers)
    with room(0 if f.csb == 1 else up(f.n, tile.nr) * f.k * tile.itemsize) as f.room:
        threads.launch(_thin(tile), f.own, workers)
    return DONE
