"""Which path a product takes: one function, read by compiled code, the general path, explain and describe.

All paths give the same bits, so that a choice is about time alone. Each constant says where another path gets faster,
with one measurement: us, "so" by the path that is chosen. Zen 3 has 16 vector registers, Zen 4 has 32.
"""

from __future__ import annotations

import functools

from numba.extending import register_jitable

from .status import COLUMNS, DEEP, GEMV, PACKED, SHORT, SMALL, THIN
from .tiles import SEGMENT, caches, small, vector_registers

# How a matrix lies: its rows or its columns are contiguous, or neither.
BY_ROWS, BY_COLUMNS, STRIDED = range(3)
NARROW = vector_registers() == 16

# Multiply-adds, m*n*k, up to which one thread is fastest: two save nothing of 25 us of float32.
ALONE = 112**3
# The same, times bytes of an element, of more than SLIM rows and columns, which columns.py shares from compiled code:
# Zen 3, 64^3 by one thread and two, f32 7.5-11 and 6-9. Vectors of 512 bits are twice as fast.
SHARED = 4 * (80**3 if NARROW else ALONE)
SLIM = 64 if NARROW else 16
SERIAL = 320**3  # the same where there is only one thread to use: the block fits in L2
BRIEF = 60**3  # multiply-adds of a deep product up to which a launch over threads costs more than it saves
# Those up to which one row or column is as fast in small.py; of a matrix that is contiguous along neither side, which
# gemv.py does not take, faster. With 16 registers gemv.py never loses (Zen 3, 16x1x128 of f32 2.0, so 1.7).
LINEAR, LINEAR_STRIDED = 0 if NARROW else 4096, 4096
# Rows or columns up to which products of more than DEEPEST steps go by gemv: f64, 2x1000x1000: 200 us; each panel of B
# twice, 980. Tiles of 16 registers are as fast with three, or with two where k is not along the larger matrix.
VECTORS, NARROW_VECTORS, NARROW_VECTORS_ALONG = 3, 1, 2
PANEL = 64 << 10  # bytes of a panel of B that the small path packs
DEEPEST = 512  # steps of k up to which one fits that has 128 bytes a row

# C is written by rows (thin.py) for so many steps, from so many elements and rows on: 1000x1000x1 of f64 takes 190 us
# in place of 1600, k = 32 1500 in place of 2800, k = 64 the same. Of FEW_STEPS, C may be in L2: 256x256x1 14, so 9. Of
# one step, with 16 registers, outer.py's rows gain earlier.
THIN_STEPS, THIN_LEAST, THIN_ROWS = 48, 1 << 17, 64
FEW_STEPS, FEW_LEAST = 16, 1 << 15
ONE_STEP_LEAST, ONE_STEP_ROWS = (1 << 10, 16) if NARROW else (FEW_LEAST, THIN_ROWS)

# k > DEEPEST is deep up to so many rows or columns, or so many elements of C, by one thread or several: five loops
# would pack more than they use (32x32x10000 339, so 206), and threads wait for each other at every block of k
# (64x64x10000 740, so 512). With 16 registers, of more than LONG steps, there is more (Zen 3, 100x100x5000 1522, 1382).
DEEP_ROWS, DEEP_ALONE, DEEP_SHARED = 16, (96 if NARROW else 48) ** 2, 128 * 128
LONG, LONG_ALONE = 1024, 160 * 160 if NARROW else DEEP_SHARED
# Steps from which few outputs, in rows of one vector at most, are deep with 16 registers: tiles would be half empty.
# Zen 3, 8x8x1000 of f32 4.7, so 2.5.
LEAN = 128
# With 16 registers, columns of C that are few beside its rows, OBLONG times as many, or SLOPING where A and B are
# stored by rows: one job's panels of B against rows of A as they lie (Zen 3, two threads, 1024x8x256 80, so 74;
# 1000x32x500 of f64 1177, so 605).
TALL, OBLONG, SLOPING = 48, 8, 4

# Few rows against a B of which such rows are wide and beyond L2 (short.py), with 16 registers: Zen 3, 16x2048x512 of
# f32 866, so 666; two threads 713, so 418. FAR times L2, L3, which others use, may not hold B.
SHORT_ROWS, SHORT_BYTES, FAR = 64, 1024, 12

# Panels of B up to which packing A costs more than it saves; and where vectors are narrower than a line: a step takes
# fewer cycles then, and loads of A's elements, from rows that share banks of L1, as many (Zen 3, f32, n = 100, of
# NumPy's speed .89, so .98).
IN_PLACE, NARROW_IN_PLACE = 5, 2
# Quarters of L2 that an A which panels of B go over may take: Zen 4, n = 384, 0.6 MB, two threads 643, so 565; where
# vectors are narrow, of L3: Zen 3, n = 512, 1 MB 2251, so 2094.
NEAR = 8 if NARROW else 3


@register_jitable
def is_thin(m, n, k):
    """Whether C is better written by rows."""
    if k == 1:
        return min(m, n) >= ONE_STEP_ROWS and m * n >= ONE_STEP_LEAST
    return min(m, n) >= THIN_ROWS and m * n >= (FEW_LEAST if k <= FEW_STEPS else THIN_LEAST) and k <= THIN_STEPS


@register_jitable
def choose(tile, m, n, k, a, b, rows, workers, cache):
    """The path of C = A B, m x n over k steps, all at least 1, for `workers` threads and so many bytes of L2.

    `a` and `b` say how the matrices lie; `rows`: the rows of C, and of what is added, are contiguous. If C is stored by
    columns this is asked of C' = B' A'.
    """
    size, lanes, narrow, work = tile.itemsize, tile.lanes, tile.narrow, m * n * k
    few, many, longest = min(m, n), max(m, n), PANEL // (tile.nr * size)
    vectors = (b if m <= n else a) != STRIDED or many == 1  # gemv.py takes the larger matrix
    along = a != BY_COLUMNS if m >= n else b == BY_COLUMNS  # k is contiguous in the larger matrix
    if few == 1:
        if work <= (LINEAR if vectors else LINEAR_STRIDED) and k <= longest:
            return SMALL
        if vectors:
            return GEMV
    brief = few > 1 and work <= BRIEF
    lean = narrow and k >= LEAN and a == BY_ROWS and (n == lanes <= m if b == BY_COLUMNS else n <= lanes)
    if brief and (k > longest or (lean and b != STRIDED)):
        return DEEP
    half = max(1, lanes // 2)
    filled = 3 <= m <= tile.nr and 4 * m >= 3 * ((m + half - 1) // half * half)  # rows of C' fill vectors
    if narrow and b == BY_COLUMNS and filled and 8 * m <= n and k <= DEEPEST and n * k * size > cache:
        return DEEP  # C' = B' A', with B read along its columns: Zen 3, 8x300x300 of f64 80, so 51
    if rows and is_thin(m, n, k):
        return THIN
    most = ALONE if few <= SLIM else SHARED // size
    if k <= longest and max(m, n) <= most and m * max(n, lanes) * k <= most:  # few columns take as long as a vector
        return SMALL
    single = VECTORS if not narrow else NARROW_VECTORS_ALONG if along else NARROW_VECTORS
    if k > DEEPEST and few <= single and vectors:
        return GEMV
    wide = many * size >= SHORT_BYTES and 2 * many * k * size > cache and not along
    far = many * k * size > FAR * cache
    enough = few > tile.mr or (few > 2 and (m > n or k > DEEPEST or far))
    if narrow and wide and enough and few <= SHORT_ROWS and few < many and k <= SEGMENT:
        return SHORT
    if narrow and wide and m <= tile.mr and far:
        return DEEP  # a panel of B is a line or two of each row: Zen 3, 3x10000x100 of f64 1659, so 818
    if k > DEEPEST and (few <= DEEP_ROWS or m * n <= (DEEP_ALONE if workers == 1 else DEEP_SHARED)):
        return DEEP
    apart = a == BY_COLUMNS and b != BY_COLUMNS
    if narrow and k > LONG and m * n <= LONG_ALONE and workers == 1 and not apart:
        return DEEP
    if 2 * few <= lanes and many * lanes * k > ALONE:  # half a vector does for the rows: 1024x8x256 79, so 60
        if along:
            return DEEP
        if few == 2 and vectors:  # one after the other: 1024x2x256 TT 333, so 65
            return GEMV
    oblong = OBLONG if a == BY_COLUMNS or b == BY_COLUMNS else SLOPING
    several = workers > 1 or oblong == OBLONG or work > SERIAL or n <= lanes
    tall = n <= min(TALL, m // oblong) and several
    turned = n >= 8 * m and m <= TALL and b == BY_COLUMNS
    if narrow and k <= DEEPEST and m * max(n, lanes) * k > ALONE and (tall or turned):
        return DEEP
    if k > DEEPEST:
        return PACKED
    if workers == 1 and work <= SERIAL:
        return SMALL
    # A is used up at once, in place (20000x16x256 of f32 3500, so 2700), or it is read again and again, from L2.
    once = n <= IN_PLACE * tile.nr and not (a == BY_COLUMNS and workers == 1)
    held = workers > 1 and m * k * size <= cache * NEAR // 4
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
    m, n, *lies, rows = _seen(out, x, a, b)
    return path(m, n, a.shape[-1], workers, out.dtype.name, *lies, rows)


def legal(out, x, a, b) -> list[int]:
    """Every path that can compute it: all give the same bits, and are timed against each other by bench_choice.py."""
    (m, n, left, right, rows), k, tile = _seen(out, x, a, b), a.shape[-1], small(out.dtype.name)
    few, brought = min(m, n) <= VECTORS, (right if m <= n else left) != STRIDED
    found = {
        GEMV: few and brought,
        THIN: rows and k <= DEEPEST,
        DEEP: True,
        SHORT: k <= SEGMENT,
        COLUMNS: k <= DEEPEST,
        SMALL: k <= PANEL // (tile.nr * tile.itemsize),
        PACKED: True,
    }
    return [way for way, possible in found.items() if possible]


def _seen(out, x, a, b) -> tuple:
    """m, n, how A and B lie, and whether rows of C are contiguous: of C' = B' A' where C is stored by columns."""
    (m, n), size, lies, (row, step) = out.shape[-2:], out.dtype.itemsize, (lie(a), lie(b)), out.strides[-2:]
    xrow, xstep = (row, step) if x is None else steps(x)
    if row == size and (step != size or n == 1):
        m, n, lies, step, xstep = n, m, (flipped(lies[1]), flipped(lies[0])), row, xrow
    return m, n, *lies, step == size == xstep


def steps(x) -> tuple[int, int]:
    """Strides of an array that is broadcast to a matrix."""
    row = x.strides[-2] if len(x.shape) > 1 and x.shape[-2] > 1 else 0
    return row, x.strides[-1] if len(x.shape) > 0 and x.shape[-1] > 1 else 0


def lie(x) -> int:
    """How a matrix lies."""
    size, (row, step) = x.dtype.itemsize, x.strides[-2:]
    return BY_ROWS if step == size else BY_COLUMNS if row == size else STRIDED


def flipped(lies: int) -> int:
    """How its transpose does."""
    return (BY_COLUMNS, BY_ROWS, STRIDED)[lies]
