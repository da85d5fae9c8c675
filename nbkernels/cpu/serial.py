"""Small products of any kind in one call: the packed path by one thread, all that the arrays do not say made ready."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from numba import types

from ..jit import made
from ..jit.address import call, invoke, pointer, scratch, static
from ..jit.cache import entry, jit
from ..jit.kind import Kind
from ..jit.made import ANSWER, NONE, answer
from ..jit.ndarray import OBJECT, address_of, stride
from .finish import MEMORY, ending
from .kinds import default_tiles
from .packed import kernels, loops
from .paths import SERIAL
from .small import GIL, ROOM, SERIALLY, SQUARE, alike, large, new_matrix
from .status import DECLINED, DONE, LARGE, UNMADE
from .tiles import Tiles
from .words import cuts, operands, started

from .words import (  # isort: skip
    BLOCKS, CSA, CSB, CSC, CSX, FINISHED, FROM, GROUP, KC, LOOPS, MIXED, MR, MULTIPLY, NEED, NEXT, NR, NUMPY, PACK,
    RESULT, RSA, RSB, RSC, SELF, SIDED, SIZE_C, TO, UNIT, A, B, C, K, M, N, X,
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


@jit(forceinline=True)
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
    """answer(address of a plan's words, out or None, x or None, a, b): out, or made; or DECLINED with nothing written;
    LARGE: sound, but too much for one thread, unless the address has the bit SERIALLY, or for the room; UNMADE, as
    small.py.

    It holds the GIL, so the words and the room are its own.
    """

    def run(words, out, x, a, b):
        given, x, a, b, made = address_of(out), address_of(x), address_of(a), address_of(b), 0
        limit, words = SERIAL if words & SERIALLY != 0 else LIMIT, words & ~SERIALLY
        f = pointer(words)
        none = pointer(f[NUMPY])[NONE]
        x = 0 if x == none else x
        if given == none:
            if large(a, b, f[SIZE_C]):
                return answer(UNMADE, 0, 0)
            given, made = 0, new_matrix(f[NUMPY], f[RESULT], a, b)
            if made == 0:
                return answer(DONE, 0, 0)
        out = given + made
        if f[MIXED] == 0 and not alike(out, x, a, b):
            return answer(DECLINED, given, made)
        status = operands(f, out, x, a, b)
        if status != DONE:
            return answer(status, given, made)
        turned = stride(out, 1) != f[SIZE_C] and stride(out, 0) == f[SIZE_C] and f[SIDED] != 0
        m, n, k = f[M], f[N], f[K]
        if turned or max(m, n, k) > limit or m * n * k > limit or not GIL:
            return answer(LARGE, given, made)
        f[PANELS] = static(ROOM)
        if m <= f[MR] and n <= f[NR] and k <= f[KC]:
            one_tile(f, f[PANELS] + ROOM // 2)
            return answer(DONE, given, made)
        cuts(f)
        if f[NEED] > ROOM:
            return answer(LARGE, given, made)
        f[NEXT], f[FINISHED], f[FROM], f[TO] = 0, 0, 0, f[BLOCKS]
        call(f[LOOPS], words, 0)
        return answer(DONE, given, made)

    return entry(run, ANSWER(types.int64, *[OBJECT] * 4), "gemm_serial")


def planned(kind: Kind, beta, alpha, dtype, mixed: bool):
    """`serial` of a plan; `mixed`: the arrays' dtypes are not alike, and the caller has looked at them."""
    tiles = default_tiles(kind)
    f, factors = started(beta, alpha, tiles, kind, 1)
    f[PACK], f[MULTIPLY] = kernels(tiles.tile(kind))
    f[LOOPS], f[MIXED], f[SIDED] = loops(), mixed, kind.swapped() != kind
    f[NUMPY], f[RESULT] = made.words().ctypes.data, id(dtype)
    run = functools.partial(serial(), f[SELF])
    run.serially = functools.partial(serial(), f[SELF] | SERIALLY)
    run.plan = Plan(kind, tiles, beta, alpha, dtype, (f, factors))
    return run
