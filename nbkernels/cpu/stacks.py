"""Stacks of small products of any kind: one thread a product, taken in turns, by the packed path's loops.

Float32 and float64 have paths of their own (batch.py).
"""

from __future__ import annotations

import functools
from array import array

from ..jit.address import call, pointer, scratch, take
from ..jit.cache import compiled
from ..jit.kind import Kind
from . import threads
from .kinds import default_tiles
from .packed import kernels, loops
from .serial import LIMIT, one_tile
from .words import BLOCKS as PIECES
from .words import (
    BPANELS,
    FINISHED,
    FROM,
    KC,
    MR,
    MULTIPLY,
    NEED,
    NEXT,
    NR,
    PACK,
    ROOM,
    SELF,
    TO,
    WORDS,
    A,
    B,
    C,
    K,
    M,
    N,
    X,
    filled,
    room,
    up,
)
from .words import LOOPS as RUN

GAIN = 48**3  # multiply-adds of a stack from which threads share it: a launch takes as long as 10 us of them
OVERHEAD = 2000  # multiply-adds in the time that a product takes beside them
BYTES = 8 * WORDS
# What threads share: the next job, then the words of the first product, how many there are, how many are a job, how far
# operands lie apart, in bytes, and rooms for panels with their size.
FIRST, COUNT, EACH, STEP_A, STEP_B, STEP_C, STEP_X, ROOMS, SIZE = range(8, 17)


@functools.cache
def jobs() -> int:
    """The jobs of one thread: void(shared words, task)."""

    def work(f, task):
        address, first = scratch(BYTES), pointer(f[FIRST])
        mine = pointer(address)
        for i in range(WORDS):
            mine[i] = first[i]
        mine[SELF], mine[ROOM] = address, f[ROOMS] + task * f[SIZE]
        tile = mine[M] <= mine[MR] and mine[N] <= mine[NR] and mine[K] <= mine[KC]
        start = take(f, 0) * f[EACH]
        while start < f[COUNT]:
            for t in range(start, min(start + f[EACH], f[COUNT])):
                mine[A], mine[B] = first[A] + t * f[STEP_A], first[B] + t * f[STEP_B]
                mine[C] = first[C] + t * f[STEP_C]
                mine[X] = first[X] + t * f[STEP_X] if first[X] != 0 else 0
                if tile:
                    one_tile(mine, mine[ROOM] + mine[BPANELS])
                else:
                    mine[NEXT], mine[FINISHED], mine[FROM], mine[TO] = 0, 0, 0, mine[PIECES]
                    call(mine[RUN], address, 0)
            start = take(f, 0) * f[EACH]

    return compiled(work, "void(CPointer(int64), int64)", "gemm_stack")


def choose(out, operands, k: int, workers: int) -> int:
    """Threads for a stack of products into `out`, 0 where it is none: one product, a large one, or strides that are no
    whole elements."""
    count, m, n = out.shape
    whole = all(step % x.dtype.itemsize == 0 for x in (out, *operands) for step in x.strides[1:])
    if count < 2 or m * n * k > LIMIT or not whole:
        return 0
    return min(workers, count) if count * (m * n * k + OVERHEAD) > GAIN else 1


def stack(out, x, a, b, beta, alpha, kind: Kind) -> bool:
    """out[t] = alpha * a[t] @ b[t] + beta * x[t] after all checks, x of out's shape or None; False where it is no
    stack, with nothing written."""
    workers = choose(out, [each for each in (x, a, b) if each is not None], a.shape[2], threads.count())
    if not workers:
        return False
    if out.strides[2] != out.itemsize and out.strides[1] == out.itemsize:
        kind, left, right = kind.swapped(), b, a
    else:
        left, right = a, b
    tiles, x0 = default_tiles(kind), None if x is None else x[0]
    f, kept = filled(out[0], 0 if x is None else id(x0), a[0], b[0], beta, alpha, tiles, kind, 1, True)
    f[PACK], f[MULTIPLY] = kernels(tiles.tile(kind))
    f[RUN], size = loops(), up(f[NEED], 64)
    steps = [0 if each is None else each.strides[0] for each in (left, right, out, x)]
    with room(workers * size) as rooms:
        each = max(1, min(len(out) // (4 * workers), GAIN // (f[M] * f[N] * f[K] + OVERHEAD)))
        shared = array("q", [*[0] * 8, f[SELF], len(out), each, *steps, rooms, size])
        threads.launch(jobs(), shared.buffer_info()[0], workers)
    return True
