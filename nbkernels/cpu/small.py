"""The small path: one compiled call from Python to the finished product.

The entry takes the arrays, checks what it can, declines what is unusual and makes the result, so that a 4x4 product
costs one call.
"""

from __future__ import annotations

import functools
import sys

import numpy as np
from numba import types

from ..jit.address import answered, pointer, scratch, set_word, static
from ..jit.cache import entry, helper, jit
from ..jit.made import ANSWER, NONE, answer, new_strided
from ..jit.ndarray import OBJECT, WRITEABLE, address_of, data, descr, flags, ndim, shape, stride
from .even import even_near, suits
from .finish import MEMORY, PARTIAL, PLAIN, ending, finish
from .pack import pack, pack_rows_a, pack_rows_b
from .squares import side, turned
from .tiles import caches, vector_registers
from .ukernel import ukernel, ukernel_copying_whole, ukernel_packed

# What the entry answers; from VECTOR to BULKY: sound, and better done by the `whole` of gemv.py, thin.py, deep.py,
# columns.py and packed.py, which it knows by KNOWN; UNMADE: nothing is known, and a result so large is the caller's to
# make. A `whole` answers ALONE where there is one thread, which the entry may be.
DONE, DECLINED, LARGE, VECTOR, FLAT, LONG, SQUARISH, BULKY, UNMADE, ALONE = range(10)
SMALL = 112**3  # m*n*k up to which one thread is fastest: two save nothing of 25 us of float32
# The same, times bytes of an element, of more than SLIM rows and columns, which columns.py shares from compiled code:
# Zen 3, us by one and by two threads, f32 64^3 7.5-11 and 6-9, 80^3 13-20 and 9-14, f64 64^3 14-19 and 9-16, 96^3 40-51
# and 22-32. Vectors of 512 bits are twice as fast.
SHARED = 4 * (80**3 if vector_registers() == 16 else SMALL)
SERIAL = 320**3  # the same where there is only one thread to use: the block fits in L2
# m*n*k up to which a product with one row or column is as fast here; one of a matrix that gemv.py declines, faster.
# With 16 registers gemv.py never loses (Zen 3, 2026-11, us, a call from Python by tiles and so: f32 4x1x16 1.7 and 1.5,
# 16x1x128 2.0 and 1.7, 8x1x511 5.1 and 2.4, 1x1x512 5.5 and 2.1, f64 32x1x64 2.6 and 2.0, 300x1x8 4.3 and 2.1).
LINEAR, APART = 4096 if vector_registers() == 32 else 0, 4096
# k up to which C is written by rows (thin.py), from so many elements and rows on: 1000x1000x1 of float64 then takes
# 0.19 ms in place of 1.6, k = 32 1.5 in place of 2.8, k = 64 the same.
THIN, WIDE, BROAD = 48, 1 << 17, 64
# The same for C in L2 by one thread: 256x256x1 of float64 14 -> 9 us, x2 16 -> 11.
FEW, NARROW = 16, 1 << 15
# One step, from so many elements and rows on: with 16 registers outer.py's rows gain earlier (Zen 3, 2026-11).
STEP_LEAST, STEP_BROAD = (1 << 10, 16) if vector_registers() == 16 else (NARROW, BROAD)
DEEPEST = 512  # k up to which a panel of B fits PANEL
# Quarters of L2 that an A which panels of B go over may take.
NEAR = 8 if vector_registers() == 16 else 3
# Rows or columns up to which other paths than columns.py's may be better.
SLIM = 64 if vector_registers() == 16 else 16
BRIEF = 60**3  # multiply-adds of a deep product up to which a launch over threads costs more than it saves
# Steps of k from which few outputs, in rows of one vector at most, are deep with 16 registers: tiles would be half
# empty. Zen 3, one thread, us, so and before: f32 8x8x128 1.1 and 1.4, 8x8x256 1.4, 1.9, 8x8x1000 2.5, 4.7, 32x8x300
# 3.1, 4.4, f64 6x4x500 1.6, 2.6, 40x3x400 4.5, 6.6.
LEAN = 128
KNOWN = 10  # words before made.words(): what each `whole` says, two for each, or zeros
SERIALLY = 1  # the bit of made.words()' address, free in one, that asks for the limit SERIAL
MADE = 1 << 16  # bytes of a result that the entry makes
GIL = getattr(sys, "_is_gil_enabled", lambda: True)()  # without it no room is shared: A is then read in place
own = static if GIL else scratch  # what gives a room to code that holds the GIL
PANEL = 64 << 10  # bytes of a packed panel of B: k <= 512 with nr of 128 bytes
ROOM = 1 << 20  # bytes that A may be packed in
SQUARE = 4 << 10  # bytes of stack for one tile of C
# Panels of B up to which packing A costs more than it saves; and where vectors are narrower than a line: a step takes
# fewer cycles then, and loads of A's elements, from rows that share banks of L1, as many (Zen 3, f32, micro-kernel
# alone: panels 73-78 GFLOP/s, rows 57-62; one thread, of NumPy's speed: n = 100 .89 -> .98, 256 .81 -> .93).
IN_PLACE, NARROW_IN_PLACE = 5, 2


@jit(inline="always")
def is_thin(m, n, k):
    """Whether C is written by rows."""
    if k == 1:
        return min(m, n) >= STEP_BROAD and m * n >= STEP_LEAST
    return min(m, n) >= BROAD and m * n >= (NARROW if k <= FEW else WIDE) and k <= THIN


@jit(inline="always")
def is_brief(m, n, k):
    """Whether a product of few outputs and k > 512 is one call."""
    return min(m, n) > 1 and m * n * k <= BRIEF


@jit(inline="always")
def is_lean(tile, m, n, k, upright):
    """Whether a product is deep for fewer steps than others, of an A stored by rows. B is, too, or `upright`, by
    columns, then as many as a vector has lanes: fewer are slow to pack."""
    return tile.narrow and (n == tile.lanes <= m if upright else n <= tile.lanes) and k >= LEAN and is_brief(m, n, k)


@jit(inline="always")
def is_turned(tile, m, n, k, upright, cache):
    """Whether a B of up to DEEPEST steps, from beyond L2 and `upright`, by columns, is long beside the rows of C, which
    fill vectors: C' = B' A' is deep then, with B read along its columns, as they lie. Zen 3, one thread, us, so and
    small: f64 5x700x300 116 and 138, 8x300x300 51 and 80, 3x300x300 43 and 57; f32 6x700x300 82 and 77; of B in L2
    f64 12x500x150 75 and 73."""
    half = max(1, tile.lanes // 2)
    few = 3 <= m <= tile.nr and 4 * m >= 3 * ((m + half - 1) // half * half) and 8 * m <= n
    return tile.narrow and upright and few and k <= DEEPEST and n * k * tile.itemsize > cache


@jit(inline="always")
def most(m, n, size):
    """m*n*k up to which one thread is fastest."""
    return SMALL if min(m, n) <= SLIM else SHARED // size


@jit(inline="always")
def is_held(m, k, size, cache):
    """Whether A stays near, where each panel of B goes over it: in L2 (n = 384, two threads, f32, 0.6 MB: 565 us, in
    five loops 643), or, where vectors are narrow, in L3: Zen 3, two threads, us in five loops and so, f32 320 657 and
    517, 512 (1 MB) 2251 and 2094, f64 256 690 and 530, 352 (1 MB) 1544 and 1330, 448 3108 and 2877, 512 4193, 4847."""
    return m * k * size <= cache * NEAR // 4


@jit(inline="always")
def stays(tile, csa, n):
    """Whether A is read where it lies, rather than packed, against n columns of B."""
    if tile.narrow:
        return n <= NARROW_IN_PLACE * tile.nr
    return csa == 1 or n <= IN_PLACE * tile.nr


@jit(inline="always")
def _row_tile(tile, t, m, packed):
    """First row and height of tile t: heights differ by one at most; of packed panels only the last may be lower."""
    tiles = (m + tile.mr - 1) // tile.mr
    low, more = m // tiles, m % tiles
    if packed:
        return t * tile.mr, min(tile.mr, m - t * tile.mr)
    return t * low + min(t, more), low + (1 if t < more else 0)


@jit(inline="always")
def column_panel(tile, stop, panel, kept, square, room, j, m, n, k, a, rsa, csa, b, rsb, csb, c, rsc, csc, x, rsx, csx,
                 alpha, beta):  # fmt: skip
    """C[:, j:j+nr], k <= 512: the panel of B is read in place or packed at `panel`, if it is not kept there already; A
    in place or, packed, at `room` if that is not 0."""
    size, w, tiles = tile.itemsize, min(tile.nr, n - j), (m + tile.mr - 1) // tile.mr
    bj, rsbj = b + j * csb * size, rsb
    copies = tile.narrow and room != 0 and not kept and csb == 1 and w == tile.nr and tiles > 1 and stop != MEMORY
    if not copies and (csb != 1 or w < tile.nr or tiles > 8):  # packing pays from the ninth pass over the panel
        if not kept and csb == 1 and tile.narrow:
            pack_rows_b(tile, bj, rsb, w, k, panel, k)
        elif not kept:
            pack(tile, bj, csb, rsb, w, k, panel, tile.nr)
        bj, rsbj = panel, tile.nr
    for t in range(tiles):
        i, h = _row_tile(tile, t, m, room != 0)
        ai, rsai, csai = a + i * rsa * size, rsa, csa
        if room != 0:
            ai, rsai, csai = room + t * tile.mr * k * size, 1, tile.mr
        ci, xi = c + (i * rsc + j * csc) * size, x + (i * rsx + j * csx) * size if x != 0 else 0
        if stop == MEMORY:
            ukernel(tile, h, ai, rsai, csai, bj, rsbj, k, square, tile.nr, square, tile.nr, w, 0, PARTIAL,
                    0, 0, alpha, beta)  # fmt: skip
            finish(tile, h, w, square, tile.nr, 0, 0, True, True, ci, rsc, csc, xi, rsx, csx, alpha, beta)
        elif copies and t == 0:  # Zen 3, us, copied before and so: f32 64^3 11.2 and 10.6, 64 of them 636, 606
            ukernel_copying_whole(tile, h, ai, 1, tile.mr, bj, rsb, k, ci, rsc, ci, rsc, w, 0, stop, xi, rsx, alpha,
                                  beta, panel)  # fmt: skip
            bj = panel
        elif tile.narrow and room != 0 and bj == panel:
            ukernel_packed(tile, h, ai, 1, tile.mr, bj, tile.nr, k, ci, rsc, ci, rsc, w, 0, stop, xi, rsx, alpha, beta)
        else:
            ukernel(tile, h, ai, rsai, csai, bj, rsbj, k, ci, rsc, ci, rsc, w, 0, stop, xi, rsx, alpha, beta)


@jit(inline="always")
def one_block(tile, room, panel, m, n, k, a, rsa, csa, b, rsb, csb, c, rsc, csc, x, rsx, csx, alpha, beta):
    """One block, k <= 512: A is read in place or packed into the ROOM bytes at `room`, if it is not 0; PANEL bytes at
    `panel` are for a panel of B."""
    square = scratch(SQUARE)  # a tile of C, for endings through memory
    stop = ending(csc, x, csx, alpha == 1)
    squares = side(tile, n, k) if rsb == 1 and csb != 1 else 0
    if stop == PLAIN and (csb == 1 or squares != 0) and suits(tile, m, n, k, rsa, csa):
        upright = int(csa != 1)
        if csb != 1:
            turned(tile, squares, 1, n, k, b, 0, csb, panel)
            b, rsb = panel, n
        even_near(tile, upright, 1, m, n, k, a, 0, rsa if upright == 0 else csa, b, 0, rsb, c, 0, rsc)
        return
    if stays(tile, csa, n) or (m + tile.mr) * k * tile.itemsize > ROOM:
        room = 0
    if room != 0 and rsa == 1:
        pack_rows_a(tile, a, csa, m, k, room, k)
    for i in range(0, m if room != 0 and rsa != 1 else 0, tile.mr):
        target = room + i * k * tile.itemsize
        pack(tile, a + i * rsa * tile.itemsize, rsa, csa, min(tile.mr, m - i), k, target, tile.mr)
    for j in range(0, n, tile.nr):
        column_panel(tile, stop, panel, False, square, room, j, m, n, k, a, rsa, csa, b, rsb, csb, c, rsc, csc, x, rsx,
                     csx, alpha, beta)  # fmt: skip


@helper
def apart(p, q, size):
    """Whether two arrays' memory is disjoint, by their extents; `size` is the larger item's."""
    plo, phi, qlo, qhi = data(p), data(p) + size, data(q), data(q) + size
    for d in range(ndim(p)):
        reach = (shape(p, d) - 1) * stride(p, d)
        plo, phi = plo + min(reach, 0), phi + max(reach, 0)
    for d in range(ndim(q)):
        reach = (shape(q, d) - 1) * stride(q, d)
        qlo, qhi = qlo + min(reach, 0), qhi + max(reach, 0)
    return phi <= qlo or qhi <= plo


@helper
def distinct(m, rs, n, cs, size):
    """Whether an m x n array's elements provably lie apart: one dimension's step clears all of the other's extent."""
    rs, cs = rs if m > 1 else n * cs, cs if n > 1 else m * rs
    return min(rs, cs) >= size and (rs >= n * cs or cs >= m * rs)


@jit(inline="always")
def alike(out, x, a, b):
    """Whether arrays, by their ids, have one dtype."""
    return descr(b) == descr(a) and descr(out) == descr(a) and (x == 0 or descr(x) == descr(a))


@helper
def unusual(out, x, a, b, size_a, size_b, size):
    """Whether arrays, by their ids, are anything but a product's operands, sound and apart from out."""
    if ndim(out) != 2 or ndim(a) != 2 or ndim(b) != 2:
        return True
    m, n, k, rsc, csc = shape(a, 0), shape(b, 1), shape(a, 1), stride(out, 0), stride(out, 1)
    if shape(b, 0) != k or shape(out, 0) != m or shape(out, 1) != n or min(m, n, k) < 1:
        return True
    if flags(out) & WRITEABLE == 0 or not (apart(out, a, max(size, size_a)) and apart(out, b, max(size, size_b))):
        return True
    if (stride(a, 0) | stride(a, 1)) & (size_a - 1) != 0 or (stride(b, 0) | stride(b, 1)) & (size_b - 1) != 0:
        return True
    if not distinct(m, abs(rsc), n, abs(csc), size):
        return True
    steps = rsc | csc
    if x != 0:
        if ndim(x) > 2:
            return True
        rows = shape(x, 0) if ndim(x) == 2 else 1
        columns = shape(x, ndim(x) - 1) if ndim(x) > 0 else 1
        if (rows != 1 and rows != m) or (columns != 1 and columns != n):
            return True
        rsx = stride(x, 0) if rows > 1 else 0
        csx = stride(x, ndim(x) - 1) if columns > 1 else 0
        steps |= rsx | csx
        if not (data(x) == data(out) and rsx == rsc and csx == csc) and not apart(out, x, size):
            return True
    return steps & (size - 1) != 0


@jit(inline="always")
def large(a, b, size):
    """Whether the result of two arrays, by their ids, is the caller's to make: it may be none."""
    most = MADE // size
    return ndim(a) != 2 or ndim(b) != 2 or shape(a, 0) > most or shape(b, 1) > most // max(shape(a, 0), 1)


@jit(inline="always")
def new_matrix(numpy, dtype, a, b):
    """The address of a new result; 0, and an exception set, without memory."""
    sizes = scratch(16)
    set_word(sizes, shape(a, 0))
    set_word(sizes + 8, shape(b, 1))
    return new_strided(numpy, dtype, 2, sizes, 0)  # no strides: in C order


@functools.cache
def small_entry(tile):
    """The call from Python for small products: checks what it can, declines what is unusual, keeps the GIL.

    answer(address of made.words(), out or None, x or None, a, b, beta, alpha): out, or made; else a status.
    """
    size, longest, cache, element = (
        tile.itemsize,
        PANEL // (tile.nr * tile.itemsize),
        caches()[1],
        getattr(np, tile.dtype),
    )

    def run(numpy, out, x, a, b, beta, alpha):
        serially, numpy = numpy & SERIALLY != 0, numpy & ~SERIALLY
        given, x, a, b, made = address_of(out), address_of(x), address_of(a), address_of(b), 0
        none = pointer(numpy)[NONE]
        x = 0 if x == none else x
        if given == none:
            if large(a, b, size):
                return answer(UNMADE, 0, 0)
            given, made = 0, new_matrix(numpy, descr(a), a, b)
            if made == 0:
                return answer(DONE, 0, 0)
        out = given + made
        if alpha == 0 or not alike(out, x, a, b) or unusual(out, x, a, b, size, size, size):
            return answer(DECLINED, given, made)
        m, n, k = shape(a, 0), shape(b, 1), shape(a, 1)
        matrix = b if m == 1 else a
        linear = LINEAR if stride(matrix, 0) == size or stride(matrix, 1) == size else APART
        if min(m, n) == 1 and (m * n * k > linear or k > longest) and not serially:
            return answer(answered(numpy - 80, VECTOR, out, x, a, b, beta, alpha), given, made)
        upright = stride(b, 1) != size
        lean = is_lean(tile, m, n, k, upright) and stride(a, 1) == size and (not upright or stride(b, 0) == size)
        if lean or (k > longest and is_brief(m, n, k)):
            return answer(answered(numpy - 48, LONG, out, x, a, b, beta, alpha), given, made)
        if is_turned(tile, m, n, k, stride(b, 0) == size, cache) and not serially:
            return answer(LARGE, given, made)
        if is_thin(m, n, k) and not serially:
            return answer(answered(numpy - 64, FLAT, out, x, a, b, beta, alpha), given, made)
        across = n if stride(out, 1) == size else m  # a panel of few columns takes as long as one vector of them
        padded, limit = (across, SERIAL) if serially else (max(across, tile.lanes), most(m, n, size))
        if k > longest or m > limit or n > limit or m * n // across * padded * k > limit:
            if serially or min(m, n) <= SLIM:
                return answer(LARGE, given, made)
            found = BULKY
            if k <= DEEPEST and is_held(m, k, size, cache):
                found = answered(numpy - 32, SQUARISH, out, x, a, b, beta, alpha)
                if found == ALONE and m * n * k > SERIAL:
                    found = BULKY
            if found == BULKY:
                found = answered(numpy - 16, BULKY, out, x, a, b, beta, alpha)
            if found != ALONE:
                return answer(found, given, made)
        c, rsc, csc = data(out), stride(out, 0), stride(out, 1)
        pa, rsa, csa, pb, rsb, csb = data(a), stride(a, 0), stride(a, 1), data(b), stride(b, 0), stride(b, 1)
        px, rsx, csx = 0, 0, 0
        if x != 0 and beta != 0:
            px, last = data(x), ndim(x) - 1
            rsx = stride(x, 0) if last > 0 and shape(x, 0) > 1 else 0
            csx = stride(x, last) if last >= 0 and shape(x, last) > 1 else 0
        rsc, csc, rsx, csx = rsc // size, csc // size, rsx // size, csx // size
        rsa, csa, rsb, csb = rsa // size, csa // size, rsb // size, csb // size
        if rsc == 1 and (csc != 1 or n == 1):  # C' = B' A': the same numbers, stored along the contiguous side
            m, n, rsc, csc, rsx, csx = n, m, csc, rsc, csx, rsx
            pa, rsa, csa, pb, rsb, csb = pb, csb, rsb, pa, csa, rsa
        room = static(ROOM) if GIL else 0
        one_block(tile, room, own(PANEL), m, n, k, pa, rsa, csa, pb, rsb, csb, c, rsc, csc, px, rsx, csx,
                  element(alpha), element(beta))  # fmt: skip
        return answer(DONE, given, made)

    kind = ANSWER(types.int64, OBJECT, OBJECT, OBJECT, OBJECT, types.float64, types.float64)
    return entry(run, kind, f"gemm_small_{tile}")
