"""Products of few steps of k: C is written once, row by row, and read never.

A block of rows of C goes along B, whose few rows stay in L1 or L2: for a product of stacks (tiny.py) that is a stack of
matrices side by side, each a register tile wide. Column by column every panel of C would touch every page of it again
(2000x2000x3 of float32, Zen 4: 2.9 ms, by rows 0.63).
"""

from __future__ import annotations

import functools

from ...jit.abi.address import peek, scratch
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit
from ..runtime.launch import available
from ..runtime.status import DECLINED, LARGE
from .context import WORDS, grid, part, up
from .ger import outer
from .kernels import TINY
from .pack import pack
from .paths import AWAKE, PANEL
from .plan_entry import doors
from .stacks_float import by_rows, lacking_by_rows
from .tiny import known, tall


@jit(forceinline=True)
def _rows(tile, f, rows, columns, panels, alpha, beta):
    """Some rows of C, (first, how many), in n columns from j on, (j, n)."""
    (i, m), (j, n), size = rows, columns, tile.itemsize
    a, c = f.a + i * f.rsa * size, f.c + (i * f.rsc + j) * size
    x = f.x + (i * f.rsx + j) * size if f.x != 0 else 0
    if f.k == 1 and n >= tile.lanes:  # 256x256 of float64 4.1 us, by `by_rows` 5.2 (AVX-512)
        outer(tile, m, n, a, f.rsa, panels[0], c, f.rsc, alpha, x, f.rsx, beta)
    else:
        by_rows(tile, f, (m, n), a, panels, c, x, alpha, beta)


@jit(forceinline=True)
def _packed(tile, f, j, n, to):
    """Columns j to j+n of B as panels, as `by_rows` takes them."""
    for at in range(0, n, tile.nr):
        source, width = f.b + (j + at) * f.csb * tile.itemsize, min(tile.nr, n - at)
        pack(tile, source, f.csb, f.rsb, width, f.k, to + at * f.k * tile.itemsize, tile.nr)
    return to, f.k * tile.nr, tile.nr


@functools.cache
def _thin(tile) -> int:
    """The pieces of one thread: void(words, task). Where B's rows are not contiguous it packs what it needs of them, in
    the room or, without one, on its stack."""

    def work(f, task):
        size, m, n = tile.itemsize, f.m, f.n
        alpha, beta, stack = peek(tile, f.scalars), peek(tile, f.scalars + size), scratch(PANEL)
        rows, columns = part(m, f.down, tall(tile, tile.nr)), part(n, f.across, tile.nr)
        for piece in range(task, f.down * f.across, f.tasks):
            i, j = piece % f.down * rows, piece // f.down * columns
            if i < m and j < n:
                wide, panels = min(columns, n - j), (f.b + j * size, tile.nr, f.rsb)
                if f.csb != 1:
                    panels = _packed(tile, f, j, wide, f.room + j * f.k * size if f.part > 0 else stack)
                _rows(tile, f, (i, min(rows, m - i)), (j, wide), panels, alpha, beta)

    return compiled(work, WORDS.kernel, f"gemm_thin_{tile}")


@jit(forceinline=True)
def _plan(tile, f, table):
    """Cut a C of more than AWAKE elements into pieces; return the bytes of B's panels where no stack holds them: then
    each thread packs some of its columns."""
    if f.csc != 1 or (f.x != 0 and f.csx != 1):
        return -DECLINED
    f.workers = available(table) if f.m * f.n > AWAKE else 1
    if f.workers == 0:
        return -LARGE
    panels = up(f.n, tile.nr) * f.k * tile.itemsize if f.csb != 1 else 0
    f.down, f.across = 1, f.workers
    if panels <= PANEL:
        panels = 0
        if f.workers > 1:
            f.down, f.across = grid(f.m, f.n, tall(tile, tile.nr), tile.nr, f.workers)
    f.part = panels
    return panels


@jit(forceinline=True)
def _lacking(tile, f, need):
    """The place of what `by_rows` needs of tiny.py's table."""
    at = lacking_by_rows(tile, known(tile), f.m, f.n)
    return TINY + at if at >= 0 else -1


# out = alpha * a @ b + beta * x for k <= 512 and rows of out and x that are contiguous; DECLINED, with nothing done,
# if not.
door = doors(_thin, _plan, "thin", lacking=_lacking)
