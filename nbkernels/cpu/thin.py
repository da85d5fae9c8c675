"""Products of few steps of k: C is written once, row by row, and read never.

A block of rows of C goes along B, whose few rows stay in L1 or L2: for a product of stacks (tiny.py) that is a stack of
matrices side by side, each a register tile wide. Column by column every panel of C would touch every page of it again
(2000x2000x3 of float32, Zen 4: 2.9 ms, by rows 0.63).
"""

from __future__ import annotations

import functools

from ..jit.address import arrive, peek, take, wait
from ..jit.cache import compiled, jit
from . import threads
from .kinds import default_tiles, kind_of
from .pack import pack
from .small import DECLINED, DONE
from .tiles import small
from .tiny import HEIGHT, tiny
from .words import filled, room, up

from .words import (  # isort: skip
    CSA, CSB, CSC, CSX, FINISHED, NEXT, ROOM, RSA, RSB, RSC, RSX, SCALARS, SELF, A, B, C, K, M, N, X,
)  # fmt: skip

ROWS = 4 * HEIGHT  # of a job


@jit(inline="always")
def _rows(tile, f, i, h, b, panel, rsb, alpha, beta):
    """C[i:i+h], h <= HEIGHT; panels of B are `panel` elements apart."""
    size, n, whole = tile.itemsize, f[N], f[N] // tile.nr
    for start, count, width in ((0, whole, tile.nr), (whole, 1, n - whole * tile.nr)):
        if width > 0 and count > 0:
            first = start * tile.nr
            a, c = f[A] + i * f[RSA] * size, f[C] + (i * f[RSC] + first) * size
            x = f[X] + (i * f[RSX] + first) * size if f[X] != 0 else 0
            tiny(tile, h, count, f[K], a, 0, f[RSA], f[CSA], b + start * panel * size, panel, rsb, c, tile.nr, f[RSC],
                 x, tile.nr, f[RSX], width, alpha, beta)  # fmt: skip


@functools.cache
def _thin(tile) -> int:
    """The jobs of one thread: void(words, task). Where B's rows are not contiguous its panels are packed first."""

    def work(f, task):
        size, m, n, k = tile.itemsize, f[M], f[N], f[K]
        alpha, beta = peek(tile, f[SCALARS]), peek(tile, f[SCALARS] + size)
        b, panel, rsb, first = f[B], tile.nr, f[RSB], 0
        if f[CSB] != 1:
            b, panel, rsb, first = f[ROOM], k * tile.nr, tile.nr, (n + tile.nr - 1) // tile.nr
        job = take(f, NEXT)
        while job < first:
            j = job * tile.nr
            w = min(tile.nr, n - j)
            pack(tile, f[B] + j * f[CSB] * size, f[CSB], f[RSB], w, k, b + j * k * size, tile.nr)
            arrive(f, FINISHED)
            job = take(f, NEXT)
        wait(f, FINISHED, first)
        while (job - first) * ROWS < m:
            for i in range((job - first) * ROWS, min(m, (job - first + 1) * ROWS), HEIGHT):
                _rows(tile, f, i, min(HEIGHT, m - i), b, panel, rsb, alpha, beta)
            job = take(f, NEXT)

    return compiled(work, "void(CPointer(int64), int64)", f"gemm_thin_{tile}")


def thin(out, x, a, b, beta, alpha, dtype: str, workers: int, trusted: bool = True) -> int:
    """out = alpha * a @ b + beta * x for rows of out and x that are contiguous; DECLINED, with nothing done, if not."""
    kind, tile = kind_of(dtype, dtype, dtype), small(dtype)
    f, kept = filled(out, x, a, b, beta, alpha, default_tiles(kind), kind, workers, trusted)
    if f is None or f[CSC] != 1 or (f[X] != 0 and f[CSX] != 1):
        return DECLINED
    with room(0 if f[CSB] == 1 else up(f[N], tile.nr) * f[K] * tile.itemsize) as f[ROOM]:
        threads.launch(_thin(tile), f[SELF], workers)
    return DONE
