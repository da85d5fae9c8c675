"""The small path over threads: a job is a panel of B, packed by the thread that multiplies it, against all of A, or
against some rows of it where panels are few.

What is larger than one thread's work and fits in L2 all the same gains nothing from blocks of k (f32, two threads,
n = 256: 176 us, in five loops 232). Nor does a C of few columns, for which each element of A is used once or twice.
"""

from __future__ import annotations

import functools

from ..jit.address import arrive, peek, scratch, take, wait
from ..jit.cache import compiled, jit
from . import threads
from .finish import ending
from .kinds import default_tiles, kind_of
from .pack import pack, pack_rows_a
from .small import DECLINED, DONE, PANEL, SQUARE, column_panel, stays
from .tiles import caches, small
from .words import bare, filled, in_place, room

from .words import (  # isort: skip
    CSA, CSB, CSC, CSX, FINISHED, NEAR, NEXT, ROOM, RSA, RSB, RSC, RSX, SCALARS, SELF, UNIT, WORKERS, A, B, C, K, M, N,
    X,
)  # fmt: skip

STRIP = 16  # steps of k in a job of packing
FEW, MANY, LEAST = 4, 8, 4  # jobs for each thread, which start at different times; tiles of a job at least


@jit(inline="always")
def _pack_job(tile, t, a, rsa, csa, m, k, room):
    """Panel t of A, or of an A whose columns are contiguous the t-th STRIP of steps of all panels."""
    if rsa == 1:
        p = t * STRIP
        pack_rows_a(tile, a + p * csa * tile.itemsize, csa, m, min(STRIP, k - p), room + p * tile.mr * tile.itemsize, k)
    else:
        i = t * tile.mr
        target = room + i * k * tile.itemsize
        pack(tile, a + i * rsa * tile.itemsize, rsa, csa, min(tile.mr, m - i), k, target, tile.mr)


@jit(inline="always")
def _pack_jobs(tile, rsa, m, k):
    """How many calls of `_pack_job` pack all of A."""
    return (k + STRIP - 1) // STRIP if rsa == 1 else (m + tile.mr - 1) // tile.mr


@jit(inline="always")
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
    cache = caches()[1]

    def work(f, task):
        size, m, n, k = tile.itemsize, f[M], f[N], f[K]
        panel, square = scratch(PANEL), scratch(SQUARE)
        alpha, beta = peek(tile, f[SCALARS]), peek(tile, f[SCALARS] + size)
        stop = ending(f[CSC], f[X], f[CSX], f[UNIT])
        job, apanels, first = take(f, NEXT), f[ROOM], 0
        if apanels != 0:
            first = _pack_jobs(tile, f[RSA], m, k)
        panels = (n + tile.nr - 1) // tile.nr
        h = _height(tile, m, k, panels, f[WORKERS], cache)
        parts, kept = (m + h - 1) // h, -1
        while job < first:
            _pack_job(tile, job, f[A], f[RSA], f[CSA], m, k, apanels)
            arrive(f, FINISHED)
            job = take(f, NEXT)
        wait(f, FINISHED, first)
        while job - first < panels * parts:
            j, i = (job - first) % panels * tile.nr, (job - first) // panels * h
            x = f[X] + i * f[RSX] * size if f[X] != 0 else 0
            own = apanels + i * k * size if apanels != 0 else 0
            column_panel(tile, stop, panel, j == kept, square, own, j, min(h, m - i), n, k, f[A] + i * f[RSA] * size,
                         f[RSA], f[CSA], f[B], f[RSB], f[CSB], f[C] + i * f[RSC] * size, f[RSC], f[CSC], x, f[RSX],
                         f[CSX], alpha, beta)  # fmt: skip
            kept = j
            job = take(f, NEXT)

    return compiled(work, "void(CPointer(int64), int64)", f"gemm_columns_{tile}")


def columns(out, x, a, b, beta, alpha, dtype: str, workers: int, trusted: bool = True) -> int:
    """out = alpha * a @ b + beta * x for k <= 512, as `packed` does it for any k."""
    kind, tile = kind_of(dtype, dtype, dtype), small(dtype)
    f, kept = filled(out, x, a, b, beta, alpha, default_tiles(kind), kind, workers, trusted)
    if f is None:
        return DECLINED
    # By two threads, TN, share of the peak by panels and in place: f32 n = 256 .69 and .78, f64 .68 and .85.
    there = bare(kind) and in_place.py_func(f[M], f[K], f[RSA], f[CSA], 1, tile.itemsize, f[NEAR])
    there = there or stays.py_func(tile, f[CSA], f[N])
    with room(0 if there else (f[M] + tile.mr - 1) // tile.mr * tile.mr * f[K] * tile.itemsize) as apanels:
        f[ROOM] = 0 if there else apanels
        threads.launch(_columns(tile), f[SELF], workers)
    return DONE
