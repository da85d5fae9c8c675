"""The choice of the path of a product: one function, read by compiled code, the general path and explain.

All paths give the same bits, so that a choice is about time alone: of the legal paths that which is predicted to take
the least (cost.py). What bounds it beside are rooms, and launches of threads, which may sleep.
"""

from __future__ import annotations

import contextlib
import functools
import math

from ...jit.compile.lazy import plain
from ..runtime.status import COLUMNS, DEEP, GEMV, PACKED, SHORT, SMALL, THIN
from . import cost
from .blocking import SEGMENT, caches, small
from .context import turns
from .cost import has, place, swaps, takes

# How a matrix lies: its rows or its columns are contiguous, or neither.
BY_ROWS, BY_COLUMNS, STRIDED = range(3)

ALONE = 112**3  # multiply-adds of a small product of a stack
LITTLE, STORED = 16**3, 8  # those of a product up to which there is no other path; those that an element of C costs
# Those, of a stack too, up to which threads are not launched, as to wake them takes 50 us. A thin product takes the
# time of its stores, so that each element of C counts as one.
AWAKE = 48**3
BRIEF = 60**3  # those of a deep or a quantised product up to which a launch over threads costs more than it saves
PARALLEL = 96**3  # those up to which two launches of 3-10 us cost more than they save
SERIAL = 320**3  # those up to which one thread has room for a product
PANEL = 64 << 10  # bytes of a panel of B that the small path packs
DEEPEST = 512  # steps of k up to which one fits that has 128 bytes a row
SHORT_ROWS = 64  # of a short product, of which each thread packs all of A
# Panels of B up to which packing A costs more than it saves; and where vectors are narrower than a line: a step takes
# fewer cycles then, and loads of A's elements, from rows that share banks of L1, as many.
IN_PLACE, NARROW_IN_PLACE = 5, 2
# Rows of A and steps from which A A' is computed by one triangle (bench/results/mirror-avx2.json).
MIRRORED, MIRRORED_STEPS = 192, 16


@plain
def lies(row, step):
    """How a matrix lies, by its strides in elements."""
    return BY_ROWS if step == 1 else BY_COLUMNS if row == 1 else STRIDED


@plain
def longest(tile):
    """Steps of k up to which the small path packs a panel of B."""
    return PANEL // (tile.nr * tile.itemsize)


@plain
def along_vectors(m, n, a, b):
    """Whether gemv.py takes the larger matrix: contiguous along one side, or a vector."""
    return (b if m <= n else a) != STRIDED or max(m, n) == 1


@plain
def mirrors(m, n, k, workers):
    """Whether a product of a matrix and its own transpose is better computed by one triangle: in parts that so many
    threads can share."""
    return m == n and m >= MIRRORED * workers and k >= MIRRORED_STEPS


@plain
def shared(way, m, n, k):
    """Whether threads share a product that takes this path; in gemv each layout has its own answer."""
    if way == THIN:
        return m * n > AWAKE
    if way in (DEEP, PACKED):
        return m * n * k > (BRIEF if way == DEEP else PARALLEL)
    return way in (SHORT, COLUMNS)


@plain
def possible(tile, way, k, rows):
    """Whether a path but gemv can compute a product of k steps; `rows`: those of C and of what is added are
    contiguous."""
    if way == THIN:
        return rows and k <= DEEPEST
    if way == SMALL:
        return k <= longest(tile)
    return way in (DEEP, PACKED) or k <= (SEGMENT if way == SHORT else DEEPEST)


@plain
def bounded(way, m, n, k):
    """Whether a path, which can, may compute a product."""
    if way == SMALL:
        return m * n * k <= SERIAL
    if way == SHORT and min(m, n) > SHORT_ROWS:
        return False
    return m * n * k > AWAKE or not shared(way, m, n, k)


@plain(forceinline=True)
def _time(tile, way, product, features, rows, workers, costs):
    """Microseconds by a path, infinite where it cannot or may not compute a product."""
    m, n, k = product[:3]
    if not (possible(tile, way, k, rows) and bounded(way, m, n, k)):
        return math.inf
    many = workers > 1 and shared(way, m, n, k)
    return takes(costs, place(tile.itemsize, way, many), features, 2.0 / workers if many else 1.0)


@plain
def _better(best, way, time):
    return (way, time) if time < best[1] else best


@plain
def little(m, n, k):
    """Whether a product is small without a question: 50x50x1 of float32 takes 3.3 us so, by thin 1.2; 1x64x64 1.8, by
    gemv 1.2."""
    return min(m, n) > 1 and m * n * max(k, STORED) <= LITTLE and k <= DEEPEST


@plain
def choose(tile, product, rows, workers, cache, costs):
    """The path of C = A B, m x n over k steps, all at least 1, for `workers` threads and so many bytes of L2.

    The product is m, n, k and A's and B's strides in elements; `rows`: the rows of C, and of what is added, are
    contiguous. If C is stored by columns this is asked of C' = B' A'.
    """
    m, n, k, rsa, csa, rsb, csb = product
    if little(m, n, k):
        return SMALL
    if min(m, n) == 1 and along_vectors(m, n, lies(rsa, csa), lies(rsb, csb)):
        return GEMV
    turns_deep, turns_short = swaps(DEEP, m, n, rsa, csb), swaps(SHORT, m, n, rsa, csb)
    straight = has(tile, product, False, cache)
    turned = has(tile, product, True, cache) if turns_deep or turns_short else straight
    of_deep, of_short = turned if turns_deep else straight, turned if turns_short else straight
    best = PACKED, _time(tile, PACKED, product, straight, rows, workers, costs)  # no loop: twice as long
    best = _better(best, SMALL, _time(tile, SMALL, product, straight, rows, workers, costs))
    best = _better(best, THIN, _time(tile, THIN, product, straight, rows, workers, costs))
    best = _better(best, DEEP, _time(tile, DEEP, product, of_deep, rows, workers, costs))
    best = _better(best, SHORT, _time(tile, SHORT, product, of_short, rows, workers, costs))
    return _better(best, COLUMNS, _time(tile, COLUMNS, product, straight, rows, workers, costs))[0]


@functools.lru_cache(4096)
def _path(dtype, product, rows, workers) -> int:
    return choose(small(dtype), product, rows, workers, caches()[1], cost.table)


def path(m: int, n: int, k: int, workers: int, dtype: str = "float32", layout: str = "NN") -> int:
    """The choice for matrices without gaps, from Python.

    >>> from nbkernels.cpu.runtime.status import PATHS
    >>> PATHS[path(1, 256, 256, 2)], PATHS[path(16, 16, 16, 2)]
    ('gemv', 'small')
    >>> with only(PACKED):
    ...     PATHS[path(100, 100, 100, 1)]
    'packed'
    """
    left, right = strides(layout, m, n, k)
    return _path(dtype, (m, n, k, *left, *right), True, workers)


def strides(layout: str, m: int, n: int, k: int) -> list[tuple[int, int]]:
    """The strides in elements of contiguous A and B in a layout such as "NT", whose B is column-major."""
    return [(1, rows) if t == "T" else (columns, 1) for t, rows, columns in zip(layout, (m, k), (k, n))]


def path_of(out, x, a, b, workers: int) -> int:
    """The path of out = a @ b + x, x or None: arrays, or what has their shapes, strides and dtype."""
    *product, rows = seen(out, x, a, b)
    return _path(out.dtype.name, tuple(product), rows, workers)


def legal(out, x, a, b) -> list[int]:
    """Every path that can compute it: all give the same bits, and are timed against each other by bench_choice.py."""
    m, n, k, *strides, rows = seen(out, x, a, b)
    forms = lies(*strides[:2]), lies(*strides[2:])
    vector = [GEMV] if min(m, n) == 1 and along_vectors(m, n, *forms) else []
    return vector + [way for way in cost.WAYS if possible(small(out.dtype.name), way, k, rows)]


@contextlib.contextmanager
def only(way: int):
    """Within, products take this path where it is possible and bounds allow it, if they are not little or gemv's."""
    global _forced
    before, _forced = _forced, way
    renew()
    try:
        yield
    finally:
        _forced = before
        renew()


_forced: int | None = None  # the path that is taken, whatever costs say


def renew() -> None:
    """Go by the costs of the machine as it is known now."""
    costs = cost.of_machine()
    cost.fill(costs if _forced is None else cost.without(costs, _forced))
    _path.cache_clear()


def seen(out, x, a, b) -> tuple:
    """m, n, k, the strides of A and B, and whether rows of C are contiguous: of C' = B' A' where C is stored by
    columns."""
    (m, n), k, size, (row, step) = out.shape[-2:], a.shape[-1], out.dtype.itemsize, out.strides[-2:]
    rsa, csa, rsb, csb = (stride // size for each in (a, b) for stride in each.strides[-2:])
    xrow, xstep = (row, step) if x is None else steps(x)
    if turns(out, b):
        m, n, rsa, csa, rsb, csb, step, xstep = n, m, csb, rsb, csa, rsa, row, xrow
    return m, n, k, rsa, csa, rsb, csb, step == size == xstep


def steps(x) -> tuple[int, int]:
    """Strides of an array that is broadcast to a matrix."""
    row = x.strides[-2] if len(x.shape) > 1 and x.shape[-2] > 1 else 0
    return row, x.strides[-1] if len(x.shape) > 0 and x.shape[-1] > 1 else 0
