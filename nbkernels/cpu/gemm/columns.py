"""The small path over threads: a job is a panel of B, packed by the thread that multiplies it, against all of A, or
against some rows of it where panels are few.

What is larger than one thread's work and fits in L2 all the same gains nothing from blocks of k (f32, two threads,
n = 256: 176 us, in five loops 232). Nor does a C of few columns, for which each element of A is used once or twice.
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.address import peek, pointer, scratch
from ...jit.cache import compiled, entry, jit
from ...jit.sharing import arrive, take, take_from, wait
from ..runtime import threads
from ..runtime.launch import launch_table, launchable, table_at
from ..runtime.machine import l2
from ..runtime.status import DECLINED, DONE, LACKING, LARGE
from ..runtime.workspace import ROOMS, borrow, returned, room, without
from .block import PANEL, SQUARE, column_panel, lacking, stays
from .blocking import FEW_REGISTERS, WAY, small
from .context import BYTES, FINISHED, NEAR_L2, NEXT, WORDS, WORKERS, alone, up, words_at
from .door import factored, whole_call
from .kinds import default_tiles, kind_of
from .matrix import matrices, sub
from .microkernel import table
from .pack import pack, pack_rows_a
from .setup import filled
from .store import ending

PANEL_NEXT = WORDS["panel"]  # by which jobs are taken once A is packed
STRIP = 16  # steps of k in a job of packing
FETCHED = 1 << 16  # bytes of A up to which it is read in place
FEW, MANY, LEAST = 4, 8, 4  # jobs for each thread, which start at different times; tiles of a job at least


@jit(forceinline=True)
def _pack_job(tile, t, a, rsa, csa, m, k, room):
    """Panel t of A, or of an A whose columns are contiguous the t-th STRIP of steps of all panels."""
    if rsa == 1:
        p = t * STRIP
        pack_rows_a(tile, a + p * csa * tile.itemsize, csa, m, min(STRIP, k - p), room + p * tile.mr * tile.itemsize, k)
    else:
        i = t * tile.mr
        target = room + i * k * tile.itemsize
        pack(tile, a + i * rsa * tile.itemsize, rsa, csa, min(tile.mr, m - i), k, target, tile.mr)


@jit(forceinline=True)
def _pack_jobs(tile, rsa, m, k):
    """How many calls of `_pack_job` pack all of A."""
    return (k + STRIP - 1) // STRIP if rsa == 1 else (m + tile.mr - 1) // tile.mr


@jit(forceinline=True)
def _height(tile, m, k, panels, workers, cache):
    """Rows of a job: all, unless that makes few jobs for each thread or they do not stay in half of L2; then whole
    tiles, LEAST at least."""
    parts = m * k * tile.itemsize // (cache // 2)
    if workers > 1 and panels < FEW * workers:
        parts = max(parts, (MANY * workers + panels - 1) // panels)
    parts = min(parts, m // (LEAST * tile.mr))
    return m if parts <= 1 else ((m + parts - 1) // parts + tile.mr - 1) // tile.mr * tile.mr


@functools.cache
def _columns(tile) -> int:
    """The jobs of one thread: void(words, task). A is read in place where it can be, or packed first."""

    def work(f, task):
        size, m, n, k = tile.itemsize, f.m, f.n, f.k
        panel, square = scratch(PANEL), scratch(SQUARE)
        alpha, beta = peek(tile, f.scalars), peek(tile, f.scalars + size)
        stop = ending(f.csc, f.x, f.csx, f.unit)
        (a, b, c, x), apanels, first = matrices(f), f.room, 0
        panels = (n + tile.nr - 1) // tile.nr
        h = _height(tile, m, k, panels, f.workers, l2())
        f.panels = panels * ((m + h - 1) // h)  # each thread says so
        if apanels != 0:
            first = _pack_jobs(tile, f.rsa, m, k)
            job = take(f, NEXT)
            while job < first:
                _pack_job(tile, job, f.a, f.rsa, f.csa, m, k, apanels)
                arrive(f, FINISHED)
                job = take(f, NEXT)
            wait(f, FINISHED, first)
        job, kept = take_from(f, PANEL_NEXT, task % 2), -1
        while job >= 0:
            j, i = job % panels * tile.nr, job // panels * h
            rows = sub(a, i, 0, size), b, sub(c, i, 0, size), sub(x, i, 0, size)
            rooms = panel, square, apanels + i * k * size if apanels != 0 else 0
            column_panel(tile, stop, rooms, j == kept, j, (min(h, m - i), n, k), rows, alpha, beta)
            kept = j if i + h <= m else -1  # few rows at the end may have read B in place
            job = take_from(f, PANEL_NEXT, task % 2)

    return compiled(work, WORDS.kernel, f"gemm_columns_{tile}")


@jit(forceinline=True)
def _room(tile, f, workers):
    """Bytes for the panels of A, or 0 where it is read in place; by one thread as block.py does it.

    What one thread has packed the other must fetch: us by panels and in place, f32 n = 96 23 and 16, 128 37 and 33, 200
    TN 110 and 115 (AVX2); with 32 registers more is in place, 256 TN f32 112 and 69, f64 215 and 139 (AVX-512), by
    columns up to NEAR_L2 times L2 and unless they crowd each other out of the caches.
    """
    size = tile.itemsize
    by_columns = f.rsa == 1 and f.csa * size % WAY != 0 and f.m * f.k * size <= NEAR_L2 * l2()
    there = f.m * f.k * size <= FETCHED or (not FEW_REGISTERS and (f.csa == 1 or by_columns))
    return 0 if (workers > 1 and there) or stays(tile, f.csa, f.n) else up(f.m, tile.mr) * f.k * size


@jit
def _lacking(tile, f, need, unit):
    """The place of a micro-kernel that jobs need and that is not compiled; or -1. An A in place may be cut anyhow."""
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
