"""Small products of any kind in one call: the packed path by one thread, all that the arrays do not say made ready."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ..jit.address import call, invoke, pointer, scratch, static
from ..jit.cache import entry, jit
from ..jit.kind import Kind
from ..jit.ndarray import stride
from .finish import MEMORY, ending
from .kinds import default_tiles
from .packed import kernels, loops
from .small import DECLINED, DONE, GIL, LARGE, ROOM, SQUARE, alike
from .tiles import Tiles
from .words import cuts, operands, started

from .words import (  # isort: skip
    BLOCKS, CSA, CSB, CSC, CSX, FINISHED, FROM, GROUP, KC, LOOPS, MIXED, MR, MULTIPLY, NEED, NEXT, NR, PACK, RSA,
    RSB, RSC, SELF, SIDED, SIZE_C, TO, UNIT, A, B, C, K, M, N, X,
)  # fmt: skip
from .words import ROOM as PANELS  # small.ROOM is a size

LIMIT = 96**3  # m*n*k up to which threads do not pay: two launches of 3-10 us cost more than they save


@dataclass(frozen=True)
class Plan:
    """A product without its arrays: kind, tiles, factors and the result's dtype, and the words that say so."""

    kind: Kind
    tiles: Tiles
    beta: object
    alpha: object
    dtype: object
    words: tuple


@jit(inline="always")
def one_tile(f, b):
    """What the loops do where there is nothing to loop over, 80 ns less; b is where the panel of B goes."""
    a, c, x = f[PANELS], f[C], f[X]
    square, stop = scratch(SQUARE), ending(f[CSC], x, f[CSX], f[UNIT])
    to, rst = (square, f[NR]) if stop == MEMORY else (c, f[RSC])
    invoke(f[PACK], (A, f[A], f[RSA], f[CSA], f[M], f[K], a))
    invoke(f[PACK], (B, f[B], f[CSB], f[RSB], f[N], f[K], b))
    words = (f[K] + f[GROUP] - 1) // f[GROUP]
    invoke(f[MULTIPLY], (f[M], f[N], a, b, words, 1, stop, 1, 1, square, f[NR], to, rst, c, f[RSC], c, x, f[SELF]))


@functools.cache
def serial():
    """int64(address of a plan's words, id of out, of x or 0, of a, of b, and two that are ignored, for the small path's
    sake): DONE, DECLINED with nothing written, or LARGE: sound, but too much for one thread or for the room.

    It holds the GIL, so the words and the room are its own.
    """

    def run(words, out, x, a, b, beta, alpha):
        f = pointer(words)
        if f[MIXED] == 0 and not alike(out, x, a, b):
            return DECLINED
        status = operands(f, out, x, a, b)
        if status != DONE:
            return status
        turned = stride(out, 1) != f[SIZE_C] and stride(out, 0) == f[SIZE_C] and f[SIDED] != 0
        m, n, k = f[M], f[N], f[K]
        if turned or max(m, n, k) > LIMIT or m * n * k > LIMIT or not GIL:
            return LARGE
        f[PANELS] = static(ROOM)
        if m <= f[MR] and n <= f[NR] and k <= f[KC]:
            one_tile(f, f[PANELS] + ROOM // 2)
            return DONE
        cuts(f)
        if f[NEED] > ROOM:
            return LARGE
        f[NEXT], f[FINISHED], f[FROM], f[TO] = 0, 0, 0, f[BLOCKS]
        call(f[LOOPS], words, 0)
        return DONE

    return entry(run, "int64(int64, int64, int64, int64, int64, float64, float64)", "gemm_serial")


def planned(kind: Kind, beta, alpha, dtype, mixed: bool):
    """`serial` of a plan; `mixed`: the arrays' dtypes are not alike, and the caller has looked at them."""
    tiles = default_tiles(kind)
    f, factors = started(beta, alpha, tiles, kind, 1)
    f[PACK], f[MULTIPLY] = kernels(tiles.tile(kind))
    f[LOOPS], f[MIXED], f[SIDED] = loops(), mixed, kind.swapped() != kind
    run = functools.partial(serial(), f[SELF])
    run.plan = Plan(kind, tiles, beta, alpha, dtype, (f, factors))
    return run
