"""Which path a product takes: one function, read by compiled code, the general path, explain and describe.

All paths give the same bits, so that a choice is about time alone. Figures are of 2026-11, us by the path that would be
next and by the one that is chosen; what differs between processors is the bytes of L2 and SPARING.
"""

from __future__ import annotations

import functools

from ...jit.cache import plain
from ..runtime.status import COLUMNS, DEEP, GEMV, PACKED, SHORT, SMALL, THIN
from .blocking import SEGMENT, caches, small, vector_registers

# How a matrix lies: its rows or its columns are contiguous, or neither.
BY_ROWS, BY_COLUMNS, STRIDED = range(3)

# With 16 vector registers, in place of 32, a register tile has half of the rows: more products gain from the others.
SPARING = vector_registers() == 16

ALONE = 112**3  # multiply-adds of a small product of a stack
NEAR = 80**3  # those up to which one thread is fastest
SERIAL = 320**3  # the same where there is only one thread to use: the block fits in L2
BRIEF = 60**3  # multiply-adds of a deep product up to which a launch over threads costs more than it saves
SCATTERED = 4096  # those of one row or column up to which it is small
PANEL = 64 << 10  # bytes of a panel of B that the small path packs
DEEPEST = 512  # steps of k up to which one fits that has 128 bytes a row

# C is written by rows (thin.py), of which each has THIN_ROWS elements at least, for so many steps where it has more
# bytes than L2, for FEW_STEPS more than half: 1000x1000x1 of f64 1600, 190, k = 32 2800, 1500, k = 64 the same. Threads
# share it from THIN_LEAST elements on.
THIN_ROWS, THIN_STEPS, FEW_STEPS, THIN_LEAST = 64, 32, 4, 1 << 17
# Rows or columns, or elements of C, up to which k > DEEPEST is deep: five loops would pack more than they use
# (32x32x10000 339, 206), and threads wait for each other at every block of k (64x64x10000 740, 512).
DEEP_ROWS, DEEP_LEAST = 32, 128 * 128
# Columns that are few beside OBLONG times as many rows, in products of more than LITTLE multiply-adds, and steps for
# each column, A stored by columns and otherwise: deep.py holds them in a tile as rows of C'. 228x2x409 TN 29, 8.
TALL, COLUMN_STEPS, ROW_STEPS = (32, 8, 2) if SPARING else (8, 16, 4)
OBLONG, LITTLE = 4, 20_000
# Few rows against a B of more than an eighth of L2 of which such rows are wide, by several threads or with 16 registers
# (16x2048x512 of f32 866, 666).
SHORT_ROWS, SHORT_BYTES = 64, 1024
# Panels of B up to which packing A costs more than it saves; and where vectors are narrower than a line: a step takes
# fewer cycles then, and loads of A's elements, from rows that share banks of L1, as many.
IN_PLACE, NARROW_IN_PLACE = 5, 2
# Rows of A and steps from which A A' is computed by one triangle: 1.14 (192 rows) to 1.66 (1024) of the whole's speed
# (bench/results/mirror-avx2.json).
MIRRORED, MIRRORED_STEPS = 192, 16


@plain
def lies(row, step, one):
    """How a matrix lies, by its strides and that of contiguous elements."""
    return BY_ROWS if step == one else BY_COLUMNS if row == one else STRIDED


@plain
def longest(tile):
    """Steps of k up to which the small path packs a panel of B."""
    return PANEL // (tile.nr * tile.itemsize)


@plain
def along_vectors(m, n, a, b):
    """Whether gemv.py takes the larger matrix: contiguous along one side, or a vector."""
    return (b if m <= n else a) != STRIDED or max(m, n) == 1


@plain
def is_thin(m, n, k, size, cache):
    """Whether C, of elements of so many bytes, is better written by rows."""
    bytes_ = m * n * size if k > FEW_STEPS else 2 * m * n * size
    return min(m, n) >= THIN_ROWS and k <= THIN_STEPS and bytes_ > cache


@plain
def mirrors(m, n, k, workers):
    """Whether a product of a matrix and its own transpose is better computed by one triangle: in parts that so many
    threads can share."""
    return m == n and m >= MIRRORED * workers and k >= MIRRORED_STEPS


@plain
def choose(tile, m, n, k, a, b, rows, workers, cache):
    """The path of C = A B, m x n over k steps, all at least 1, for `workers` threads and so many bytes of L2.

    `a` and `b` say how the matrices lie; `rows`: the rows of C, and of what is added, are contiguous. If C is stored by
    columns this is asked of C' = B' A'.
    """
    size, work, few, many, fits = tile.itemsize, m * n * k, min(m, n), max(m, n), k <= DEEPEST
    if few == 1:
        if work <= SCATTERED and fits:
            return SMALL
        if along_vectors(m, n, a, b):
            return GEMV
    along = a != BY_COLUMNS if m >= n else b == BY_COLUMNS  # k is contiguous in the larger matrix
    wide = many * size >= SHORT_BYTES and 8 * many * k * size > cache and not along
    if wide and 2 < few <= SHORT_ROWS and few < many and k <= SEGMENT and (SPARING or workers > 1):
        return SHORT
    steps = n * (COLUMN_STEPS if a == BY_COLUMNS else ROW_STEPS)
    if 1 < n <= TALL and m >= OBLONG * n and k >= steps and work > LITTLE:
        return DEEP
    if rows and is_thin(m, n, k, size, cache):
        return THIN
    if fits and many <= NEAR and m * max(n, tile.lanes) * k <= NEAR:  # few columns take as long as a vector
        return SMALL
    if k > DEEPEST:
        return DEEP if few <= DEEP_ROWS or m * n <= DEEP_LEAST else PACKED
    if workers == 1:
        return SMALL if work <= SERIAL else PACKED
    return COLUMNS if m * k * size <= 2 * cache else PACKED  # an A that is read again and again, from L2


@functools.lru_cache(4096)  # 3 us
def path(m: int, n: int, k: int, workers: int, dtype: str = "float32", a=BY_ROWS, b=BY_ROWS, rows=True) -> int:
    """The choice for a dtype, from Python.

    >>> from nbkernels.cpu.runtime.status import PATHS
    >>> [PATHS[path(n, 256, 256, workers)] for n, workers in ((1, 2), (100, 1), (256, 2))]
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
