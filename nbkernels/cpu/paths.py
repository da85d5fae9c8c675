"""Which path a product takes: one rule for each class of shapes, with its measurements."""

from __future__ import annotations

import functools

from .deep import FEW, LONG, MORE, NARROW, SHARED
from .short import BROAD
from .small import DEEPEST, IN_PLACE, SERIAL, SMALL, is_brief, is_held, is_lean, is_thin, is_turned, most
from .tiles import SEGMENT, caches, small, vector_registers

# Rows or columns up to which deep products go by gemv: f64, 2x1000x1000: 200 us; each panel of B twice, 980.
VECTORS = 3
FEWER, TALL = 64, 48  # rows and columns of C that are few with 16 registers
FAR = 12  # times L2: bytes of B from which L3, which others use, may not hold it


@functools.lru_cache(4096)  # 1.7 us
def choose(m: int, n: int, k: int, workers: int, itemsize: int = 4, upright: tuple = (False, False)) -> str:
    """'gemv', 'thin', 'short', 'deep', 'small', 'columns' or 'packed'. Upright: whether A and B are stored by columns.

    >>> choose(64, 64, 64, 2), choose(256, 256, 256, 1), choose(256, 256, 256, 2), choose(1, 256, 256, 2)
    ('small', 'small', 'columns', 'gemv')
    >>> choose(512, 512, 512, 1)
    'packed'
    """
    along = not upright[0] if m >= n else upright[1]  # k is, in the larger matrix
    # Tiles of 16 registers are as fast with three, or with two where k is not along: Zen 3, one thread, us, f32
    # 3x40x30000 482 and 317, 2x1000x1000 201 and 170, NT 329 and 376; f64 3000x3x3000 NT 14957 and 5096.
    single = VECTORS if vector_registers() == 32 else 2 if along else 1
    if min(m, n) <= (single if k > DEEPEST and not is_brief.py_func(m, n, k) else 1):
        return "gemv"
    if is_thin.py_func(m, n, k):
        return "thin"
    tile, narrow = small("float32"), vector_registers() == 16
    # Few rows, but more than a tile's, against a wide B (up to 6 read it once). Zen 3, us, as before and so, one thread
    # and two: f32 8x1024x256 134 and 113, 158 and 96, 16x2048x512 866 and 666, 713 and 418, 13x997x499 334 and 312, 279
    # and 212, 32x256x512 212 and 155, 137 and 84, 64x2000x512 2447 and 2186, 1468 and 1150. Few columns, where
    # A is stored by columns: 1024x8x1024 364 and 372, 736 and 310, 1024x8x256 156 and 108, 146 and 67, 2000x64x512 2050
    # and 1725, 1230 and 1088, 300x64x600 347 and 363, 367 and 258, f64 5000x20x200 2737 and 1423, 1397 and 726.
    # Fewer than a tile's, but not two, where they were deep: f32 6x2000x1000 624 and 583, 512 and 336, 3x1000x1000
    # 251 and 213, 194 and 130, 1000x5x500 TN 200 and 142, 154 and 89, 3000x4x500 TN 301 and 345, 251 and 220; f64
    # 6x3000x500 1237 and 963, 815 and 547. B in L2 is best read in place, once: f64 5x1000x500 203 and 254, 159, 148.
    few, many = min(m, n), max(m, n)
    wide = many * itemsize >= BROAD // 2 and 2 * many * k * itemsize > caches()[1] and not along
    far = many * k * itemsize > FAR * caches()[1]
    enough = few > tile.mr or (few > 2 and (m > n or k > DEEPEST or far))
    if narrow and wide and enough and few <= FEWER and few < many and k <= SEGMENT and m * n * k > SMALL:
        return "short"
    # Two rows against a B that L3 may not hold, of which a panel is a line or two of each row: f64, one thread, us, as
    # small and so, 3x3000x500 863 and 759, 3x10000x100 1659 and 818.
    if narrow and wide and m <= tile.mr and far:
        return "deep"
    if k > DEEPEST and (min(m, n) <= NARROW or m * n <= (FEW if workers == 1 else SHARED)):
        return "deep"
    if narrow and k > LONG and m * n <= MORE and workers == 1 and upright != (True, False):
        return "deep"
    lanes, own = tile.lanes * 4 // itemsize, small(f"float{8 * itemsize}")
    if not upright[0] and is_lean.py_func(own, m, n, k, upright[1]):
        return "deep"
    if is_turned.py_func(own, m, n, k, upright[1], caches()[1]):
        return "deep"
    # Half a vector is enough for its rows, and two of these are multiplied in a cycle: f32, one thread, 1024x8x256
    # 79 -> 60 us, 700x5x300 63 -> 49; two threads 48 -> 34 and 39 -> 30.
    # Or two columns, one after the other: f32, one thread, 1024x2x256 TT 333 -> 65 us, f64 130 -> 96.
    if 2 * min(m, n) <= lanes and max(m, n) * lanes * k > SMALL and (along or min(m, n) == 2):
        return "deep" if along else "gemv"
    # A C of few columns is one job's panels of B against rows of A as they lie. Zen 3, us, two threads, as columns and
    # deep: f32 1024x8x256 80 and 74, 997x13x499 177 and 161, 5000x24x200 672 and 545, f64 1000x32x500 1177 and 605,
    # NT 1149 and 525; one thread, as small and deep: f32 NT 508 and 466, 2000x8x500 TN 536 and 439.
    # Of one vector at most, one thread, small and deep: f32 1024x8x256 122 and 114, 8000x8x50 205 and 161, f64
    # 1024x4x512 244 and 231. Of few rows, where B is stored by columns, one thread and two: f32 16x1000x400 270 and
    # 206, 175 and 140, f64 8x1024x256 241 and 141, 157 and 113, 32x1000x500 1111 and 932, 560 and 460. Not where C is
    # less than so oblong: TN 80x40x500 of f32 48 and 60, 200x40x400 92 and 108; two threads NN 64x48x512 55 and 79.
    oblong, turned = 8 if True in upright else 4, n >= 8 * m and m <= TALL and upright[1]
    tall = n <= min(TALL, m // oblong) and (workers > 1 or True in upright or m * n * k > SERIAL or n <= lanes)
    if narrow and k <= DEEPEST and m * max(n, lanes) * k > SMALL and (tall or turned):
        return "deep"
    brief = m * n * k <= SERIAL if workers == 1 else m * max(n, lanes) * k <= most.py_func(m, n, itemsize)
    if k <= DEEPEST and brief:
        return "small"
    # A is used up at once, in place: f32, one thread, 20000x16x256 3.5 -> 2.7 ms, 20000x128x256 the same as in five
    # loops; a tall one stored by columns 3.1 -> 3.8. Or it is read again and again, from L2.
    few = n * itemsize <= IN_PLACE * tile.nr * 4 and not (upright[0] and workers == 1)
    held = workers > 1 and is_held.py_func(m, k, itemsize, caches()[1])
    return "columns" if k <= DEEPEST and (few or held) else "packed"


def upright(a, b) -> tuple:
    """Whether each of two matrices is stored by columns."""
    sa, sb, size_a, size_b = a.strides, b.strides, a.itemsize, b.itemsize
    return sa[-2] == size_a != sa[-1], sb[-2] == size_b != sb[-1]
