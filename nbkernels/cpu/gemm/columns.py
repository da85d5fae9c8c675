"""The small path over threads: C in as many pieces as there are threads, each a block of its own (block.py).

What is larger than one thread's work and fits in L2 all the same gains nothing from blocks of k (f32, two threads,
n = 256: 176 us, in five loops 232).
"""

from __future__ import annotations

import functools

from ...jit.abi.address import peek, scratch
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit
from ..runtime.launch import available
from ..runtime.machine import l2
from ..runtime.status import LARGE
from .block import PANEL, lacking, one_block, packs
from .context import WORDS, grid, matrices, part, sub, up
from .plan_entry import doors
from .store import ending


@functools.cache
def _columns(tile) -> int:
    """The pieces of one thread: void(words, task). A is read in place where it can be, or packed for each."""

    def work(f, task):
        size, m, n, k, panel = tile.itemsize, f.m, f.n, f.k, scratch(PANEL)
        alpha, beta = peek(tile, f.scalars), peek(tile, f.scalars + size)
        a, b, c, x = matrices(f)
        for piece in range(task, f.down * f.across, f.tasks):
            rows, columns, high = _cut(tile, f)
            i, j = piece % f.down * rows, piece // f.down * columns
            rows, columns = min(rows, m - i), min(columns, n - j)
            own = f.room + piece * f.share if f.share != 0 else 0
            for low in range(i, i + rows if columns > 0 else i, high):
                sizes = min(high, i + rows - low), columns, k
                parts = sub(a, low, 0, size), sub(b, 0, j, size), sub(c, low, j, size), sub(x, low, j, size)
                one_block(tile, own, panel, sizes, parts, alpha, beta)

    return compiled(work, WORDS.kernel, f"gemm_columns_{tile}")


@jit(forceinline=True)
def _cut(tile, f):
    """Rows and columns of a piece, and rows of it that go through B at a time, which half of L2 keeps."""
    rows, columns = part(f.m, f.down, tile.mr), part(f.n, f.across, tile.nr)
    return rows, columns, part(rows, max(1, rows * f.k * tile.itemsize // (l2() // 2)), tile.mr)


@jit(forceinline=True)
def _plan(tile, f, table):
    """Cut C into pieces; the bytes of their panels of A, 0 where it is read in place."""
    f.workers = available(table)
    if f.workers == 0:
        return -LARGE
    f.down, f.across = grid(f.m, f.n, tile.mr, tile.nr, f.workers)
    _, columns, high = _cut(tile, f)
    f.share = up(high, tile.mr) * f.k * tile.itemsize if packs(tile, high, columns, f.k, f.rsa, f.csa) else 0
    return f.share * f.down * f.across


@jit
def _lacking(tile, f, need):
    """The place of a micro-kernel; an A in place may be cut anyhow."""
    stop = ending(f.csc, f.x, f.csx, f.unit)
    return lacking(tile, stop, need > 0, 1, min(f.m, tile.mr), f.m, f.n, f.csb, True)


# out = alpha * a @ b + beta * x for k <= 512, as `packed` does it for any k.
door = doors(_columns, _plan, "columns", lacking=_lacking)
