"""Which path a product takes: one function, read by compiled code, the general path, explain and describe.

All paths give the same bits, so that a choice is about time alone. Figures are of 2026-11, us by the path that would be
next and by the one that is chosen; what differs between kinds of processor is a row of KINDS.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from numba.extending import register_jitable

from .status import COLUMNS, DEEP, GEMV, PACKED, SHORT, SMALL, THIN
from .tiles import SEGMENT, caches, small, vector_registers

# How a matrix lies: its rows or its columns are contiguous, or neither.
BY_ROWS, BY_COLUMNS, STRIDED = range(3)


class Limits(NamedTuple):
    """What differs between kinds of processor."""

    sparing: bool  # with registers: short.py, and deep products of fewer steps than DEEPEST, gain
    shared: int  # bytes of an element times multiply-adds up to which one thread is fastest, beyond `slim`
    slim: int  # rows or columns up to which that is ALONE
    linear: int  # multiply-adds up to which one row or column is as fast in small.py
    deep_alone: int  # elements of C up to which more than DEEPEST steps are deep by one thread
    long_alone: int  # the same of more than LONG steps
    step_least: int  # elements and rows from which one step is done by rows
    step_rows: int
    tall: int  # columns that are few beside OBLONG times as many rows: deep.py holds them in a tile as rows of C'
    held: int  # quarters of L2 that an A which panels of B go over may take, where L3 is near: more than it has


FEW_LEAST, THIN_ROWS = 1 << 15, 64
# By vector registers. Measured on processors of AVX2 and of AVX-512; 64-bit Arm has 32 registers, and was not.
KINDS = {
    16: Limits(True, 4 * 80**3, 64, 0, 96**2, 160**2, 1 << 10, 16, 16, 8),
    32: Limits(False, 4 * 112**3, 16, 4096, 48**2, 128**2, FEW_LEAST, THIN_ROWS, 8, 3),
}
LIMITS = KINDS[vector_registers()]

ALONE = 112**3  # multiply-adds up to which one thread is fastest: two save nothing of 25 us of float32
SERIAL = 320**3  # the same where there is only one thread to use: the block fits in L2
BRIEF = 60**3  # multiply-adds of a deep product up to which a launch over threads costs more than it saves
LITTLE = 50_000  # those of few columns up to which a tall product is small
SCATTERED = 4096  # those of one row or column up to which a matrix contiguous along neither side is small
PANEL = 64 << 10  # bytes of a panel of B that the small path packs
DEEPEST = 512  # steps of k up to which one fits that has 128 bytes a row

# C is written by rows (thin.py) for so many steps, from so many elements and THIN_ROWS on: 1000x1000x1 of f64 1600,
# 190, k = 32 2800, 1500, k = 64 the same. Of FEW_STEPS, C may be in L2: 256x256x1 14, 9.
THIN_STEPS, THIN_LEAST, FEW_STEPS = 48, 1 << 17, 16
# Rows or columns (twice as many unless A is stored by columns and B by rows), or elements of C by several threads, up
# to which k > DEEPEST is deep: five loops would pack more than they use (32x32x10000 339, 206), and threads wait for
# each other at every block of k (64x64x10000 740, 512).
DEEP_ROWS, DEEP_SHARED, LONG = 16, 128 * 128, 1024
# Steps from which few outputs, in rows of one narrow vector at most, are deep: tiles would be half empty. 8x8x1000 of
# f32 4.7, 2.5.
LEAN = 128
# Columns of C that are few beside its rows, OBLONG times as many, or SLOPING where A and B are stored by rows: one
# job's panels of B against rows of A as they lie (16 registers, two threads, 1000x32x500 of f64 1177, 605).
TALL, OBLONG, SLOPING = 48, 8, 4
# Few rows against a B of which such rows are wide and beyond L2 (16 registers, 16x2048x512 of f32 866, 666). FAR times
# L2, L3, which others use, may not hold B.
SHORT_ROWS, SHORT_BYTES, FAR = 64, 1024, 12
# Panels of B up to which packing A costs more than it saves; and where vectors are narrower than a line: a step takes
# fewer cycles then, and loads of A's elements, from rows that share banks of L1, as many.
IN_PLACE, NARROW_IN_PLACE = 5, 2


@register_jitable
def lies(row, step, one):
    """How a matrix lies, by its strides and that of contiguous elements."""
    return BY_ROWS if step == one else BY_COLUMNS if row == one else STRIDED


@register_jitable
def longest(tile):
    """Steps of k up to which the small path packs a panel of B."""
    return PANEL // (tile.nr * tile.itemsize)


@register_jitable
def along_vectors(m, n, a, b):
    """Whether gemv.py takes the larger matrix: contiguous along one side, or a vector."""
    return (b if m <= n else a) != STRIDED or max(m, n) == 1


@register_jitable
def is_thin(m, n, k):
    """Whether C is better written by rows."""
    if k == 1:
        return min(m, n) >= LIMITS.step_rows and m * n >= LIMITS.step_least
    return min(m, n) >= THIN_ROWS and m * n >= (FEW_LEAST if k <= FEW_STEPS else THIN_LEAST) and k <= THIN_STEPS


@register_jitable
def choose(tile, m, n, k, a, b, rows, workers, cache):
    """The path of C = A B, m x n over k steps, all at least 1, for `workers` threads and so many bytes of L2.

    `a` and `b` say how the matrices lie; `rows`: the rows of C, and of what is added, are contiguous. If C is stored by
    columns this is asked of C' = B' A'.
    """
    size, lanes, narrow, work = tile.itemsize, tile.lanes, tile.narrow, m * n * k
    few, many, fits, sparing = min(m, n), max(m, n), k <= longest(tile), LIMITS.sparing
    along = a != BY_COLUMNS if m >= n else b == BY_COLUMNS  # k is contiguous in the larger matrix
    if few == 1:
        vectors = along_vectors(m, n, a, b)
        if work <= (LIMITS.linear if vectors else SCATTERED) and fits:
            return SMALL
        if vectors:
            return GEMV
    brief = few > 1 and work <= BRIEF
    lean = narrow and k >= LEAN and a == BY_ROWS and (n == lanes <= m if b == BY_COLUMNS else n <= lanes)
    if brief and (not fits or (lean and b != STRIDED)):
        return DEEP
    half = max(1, lanes // 2)
    filled = 3 <= m <= tile.nr and 4 * m >= 3 * ((m + half - 1) // half * half)  # rows of C' fill vectors
    if narrow and b == BY_COLUMNS and filled and 8 * m <= n and k <= DEEPEST and n * k * size > cache:
        return DEEP  # C' = B' A', with B read along its columns: 8x300x300 of f64 80, 51
    steps = (32 if a == BY_ROWS else 128) // LIMITS.tall * n  # TT of f32: 228x2x409 29, 8, 609x6x287 58, 29
    if 1 < n <= LIMITS.tall and m >= OBLONG * n and k >= steps and work > LITTLE:
        return DEEP
    if rows and is_thin(m, n, k):
        return THIN
    most = ALONE if few <= LIMITS.slim else LIMITS.shared // size
    if fits and max(m, n) <= most and m * max(n, lanes) * k <= most:  # few columns take as long as a vector
        return SMALL
    wide = many * size >= SHORT_BYTES and 2 * many * k * size > cache and not along
    far = many * k * size > FAR * cache
    enough = few > tile.mr or (few > 2 and (m > n or k > DEEPEST or far))
    if sparing and wide and enough and few <= SHORT_ROWS and few < many and k <= SEGMENT:
        return SHORT
    if sparing and wide and m <= tile.mr and far:
        return DEEP  # a panel of B is a line or two of each row: 3x10000x100 of f64 1659, 818
    apart = a == BY_COLUMNS and b != BY_COLUMNS
    most = LIMITS.deep_alone if workers == 1 else DEEP_SHARED
    if k > DEEPEST and (few <= (DEEP_ROWS if apart else 2 * DEEP_ROWS) or m * n <= most):
        return DEEP
    if sparing and k > LONG and m * n <= LIMITS.long_alone and workers == 1 and not apart:
        return DEEP
    if 2 * few <= lanes and many * lanes * k > ALONE and along:  # half a vector does for the rows: 1024x8x256 79, 60
        return DEEP
    oblong = OBLONG if a == BY_COLUMNS or b == BY_COLUMNS else SLOPING
    several = workers > 1 or oblong == OBLONG or work > SERIAL or n <= lanes
    slender = n <= min(TALL, m // oblong) and several
    turned = n >= 8 * m and m <= TALL and b == BY_COLUMNS
    if sparing and k <= DEEPEST and m * max(n, lanes) * k > ALONE and (slender or turned):
        return DEEP
    if k > DEEPEST:
        return PACKED
    if workers == 1 and work <= SERIAL:
        return SMALL
    # A is used up at once, in place (20000x16x256 of f32 3500, 2700), or it is read again and again, from L2.
    once = n <= IN_PLACE * tile.nr and not (a == BY_COLUMNS and workers == 1)
    held = workers > 1 and m * k * size <= cache * LIMITS.held // 4
    return COLUMNS if once or held else PACKED


@functools.lru_cache(4096)  # 3 us
def path(m: int, n: int, k: int, workers: int, dtype: str = "float32", a=BY_ROWS, b=BY_ROWS, rows=True) -> int:
    """The choice for a dtype, from Python.

    >>> from nbkernels.cpu.status import PATHS
    >>> [PATHS[path(n, 256, 256, workers)] for n, workers in ((1, 2), (64, 1), (256, 2))]
    ['gemv', 'small', 'columns']
    >>> PATHS[path(512, 512, 512, 1)]
    'packed'
    """
    return choose(small(dtype), m, n, k, a, b, rows, workers, caches()[1])


def path_of(out, x, a, b, workers: int) -> int:
    """The path of out = a @ b + x, x or None: arrays, or what has their shapes, strides and dtype."""
    m, n, *layout = _seen(out, x, a, b)
    return path(m, n, a.shape[-1], workers, out.dtype.name, *layout)


def legal(out, x, a, b) -> list[int]:
    """Every path that can compute it: all give the same bits, and are timed against each other by bench_choice.py."""
    (m, n, left, right, rows), k = _seen(out, x, a, b), a.shape[-1]
    found = {
        GEMV: min(m, n) == 1 and along_vectors(m, n, left, right),
        THIN: rows and k <= DEEPEST,
        DEEP: True,
        SHORT: k <= SEGMENT,
        COLUMNS: k <= DEEPEST,
        SMALL: k <= longest(small(out.dtype.name)),
        PACKED: True,
    }
    return [way for way, possible in found.items() if possible]


def _seen(out, x, a, b) -> tuple:
    """m, n, how A and B lie, and whether rows of C are contiguous: of C' = B' A' where C is stored by columns."""
    (m, n), size, (row, step) = out.shape[-2:], out.dtype.itemsize, out.strides[-2:]
    left, right = (lies(*x.strides[-2:], size) for x in (a, b))
    xrow, xstep = (row, step) if x is None else steps(x)
    if row == size and (step != size or n == 1):
        m, n, left, right, step, xstep = n, m, flipped(right), flipped(left), row, xrow
    return m, n, left, right, step == size == xstep


def steps(x) -> tuple[int, int]:
    """Strides of an array that is broadcast to a matrix."""
    row = x.strides[-2] if len(x.shape) > 1 and x.shape[-2] > 1 else 0
    return row, x.strides[-1] if len(x.shape) > 0 and x.shape[-1] > 1 else 0


def flipped(form: int) -> int:
    """How its transpose does."""
    return (BY_COLUMNS, BY_ROWS, STRIDED)[form]
