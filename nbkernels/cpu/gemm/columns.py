"""The small path over threads: C in as many pieces as there are threads, each a block of its own (block.py).

What is larger than one thread's work and fits in L2 all the same gains nothing from blocks of k (f32, two threads,
n = 256: 176 us, in five loops 232).
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.address import peek, pointer, scratch
from ...jit.cache import compiled, entry, jit
from ..runtime import threads
from ..runtime.launch import launch_table, launchable, table_at
from ..runtime.machine import l2
from ..runtime.status import DECLINED, DONE, LACKING, LARGE
from ..runtime.workspace import ROOMS, borrow, returned, room, without
from .block import PANEL, lacking, one_block, packs
from .blocking import small
from .context import BYTES, WORDS, WORKERS, alone, grid, part, up, words_at
from .door import factored, whole_call
from .kinds import default_tiles, kind_of
from .matrix import matrices, sub
from .microkernel import table
from .setup import filled
from .store import ending


@functools.cache
def _columns(tile) -> int:
    """The pieces of one thread: void(words, task). A is read in place where it can be, or packed for each."""

    def work(f, task):
        size, m, n, k, panel = tile.itemsize, f.m, f.n, f.k, scratch(PANEL)
        alpha, beta = peek(tile, f.scalars), peek(tile, f.scalars + size)
        a, b, c, x = matrices(f)
        for piece in range(task, f.down * f.across, f.workers):
            rows, columns, high = _cut(tile, f)
            i, j = piece % f.down * rows, piece // f.down * columns
            rows, columns = min(rows, m - i), min(columns, n - j)
            own = f.room + piece * f.share if f.room != 0 else 0
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
def _room(tile, f, workers):
    """Cut C into pieces; bytes for their panels of A, or 0 where it is read in place."""
    f.down, f.across = grid(f.m, f.n, tile.mr, tile.nr, workers)
    _, columns, high = _cut(tile, f)
    f.share = up(high, tile.mr) * f.k * tile.itemsize if packs(tile, high, columns, f.k, f.rsa, f.csa) else 0
    return f.share * f.down * f.across


@jit
def _lacking(tile, f, need, unit):
    """The place of a micro-kernel that pieces need and that is not compiled; or -1. An A in place may be cut anyhow."""
    stop = ending(f.csc, f.x, f.csx, unit)
    return lacking(tile, stop, need > 0, 1, min(f.m, tile.mr), f.m, f.n, f.csb, True)


@functools.cache
def _need(tile):
    """`_room` from Python: int64(address of the words); or what `_lacking` says, less than 0."""

    def run(address):
        f = words_at(address)
        need = _room(tile, f, f.workers)
        at = _lacking(tile, f, need, f.unit)
        return need if at < 0 else -1 - at

    return entry(run, "int64(int64)", f"gemm_columns_room_{tile}")


@functools.cache
def _whole(tile):
    """int64(table, out, x, a, b, beta, alpha), on checked arrays, their ids, x's or 0: the address of what launches
    threads and comes back when they are done."""
    element = getattr(np, tile.dtype)

    def run(table, out, x, a, b, beta, alpha):
        t, workers = table_at(table), launchable(table)
        kept = pointer(t.kept)
        if workers == 0:
            return LARGE
        address, factors = scratch(BYTES), scratch(16)
        f = words_at(address)
        alone(tile, f, out, x, a, b, beta, 1)
        need = _room(tile, f, workers)
        at = _lacking(tile, f, need, alpha == 1)
        if at >= 0:
            return LACKING + at
        f.room = borrow(kept, need) if need > 0 else 0
        if need > 0 and f.room == 0:
            return without(kept, need)
        factored(tile, f, factors, element(alpha), element(beta))
        threads.shared(t.launch, t.kernel, address, address + WORKERS)
        if need > 0:
            returned(kept)
        return DONE

    return whole_call(run, f"gemm_columns_whole_{tile}")[1]


@functools.cache
def _table(tile):
    return launch_table(_columns(tile), ROOMS)


def whole(dtype: str) -> tuple[int, int]:
    """The address of the whole call, and its first argument. It answers, with nothing done, LARGE where somebody has
    the kept room or nothing says how many threads there are, WANTED + bytes where it is too small, LACKING + its place
    where a micro-kernel is not compiled."""
    threads.open_up()
    tile = small(dtype)
    return _whole(tile), _table(tile).buffer_info()[0]


def columns(out, x, a, b, beta, alpha, dtype: str, workers: int, trusted: bool = True) -> int:
    """out = alpha * a @ b + beta * x for k <= 512, as `packed` does it for any k."""
    kind, tile = kind_of(dtype, dtype, dtype), small(dtype)
    f, kept = filled(out, x, a, b, beta, alpha, default_tiles(kind), kind, workers, trusted=trusted)
    if f is None:
        return DECLINED
    while (need := _need(tile)(f.own)) < 0:
        table(tile).supply(-1 - need)
    with room(need) as apanels:
        f.room = apanels if need else 0
        threads.launch(_columns(tile), f.own, workers)
    return DONE
