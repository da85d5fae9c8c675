"""The small path: one compiled call from Python to the finished product.

The entry takes the arrays, checks what it can, declines what is unusual and makes the result, so that a 4x4 product
costs one call.
"""

from __future__ import annotations

import functools
import sys

import numpy as np
from numba import types

from ...jit.address import answered, pointer, scratch, set_word, static
from ...jit.cache import entry, jit
from ...jit.made import ANSWER, NONE, answer, new_strided
from ...jit.ndarray import OBJECT, WRITEABLE, address_of, data, descr, flags, ndim, shape, stride
from ...jit.turn import turned
from ..runtime.launch import launchable
from ..runtime.machine import l2
from ..runtime.status import DECLINED, DONE, GEMV, LARGE, SMALL, SYMMETRIC, UNMADE
from .cost import known
from .microkernel import ukernel, ukernel_copying_whole, ukernel_packed
from .pack import pack, pack_rows_a, pack_rows_b
from .paths import IN_PLACE, NARROW_IN_PLACE, PANEL, choose, longest, mirrors
from .store import MEMORY, PARTIAL, PLAIN, ending, finish
from .tiny import even_near, suits

# Words before made.words(): threads.WORDS, and what each `whole` of the paths from GEMV to PACKED says, or zeros.
KNOWN = 13
SERIALLY = 1  # the bit of made.words()' address, free in one, that asks for this path
MADE = 1 << 16  # bytes of a result that the entry makes
GIL = getattr(sys, "_is_gil_enabled", lambda: True)()  # without it no room is shared: A is then read in place
own = static if GIL else scratch  # what gives a room to code that holds the GIL
ROOM = 1 << 20  # bytes that A may be packed in
SQUARE = 4 << 10  # bytes of stack for one tile of C


@jit(forceinline=True)
def stays(tile, csa, n):
    """Whether A is read where it lies, rather than packed, against n columns of B."""
    if tile.narrow:
        return n <= NARROW_IN_PLACE * tile.nr
    return csa == 1 or n <= IN_PLACE * tile.nr


@jit(forceinline=True)
def _row_tile(tile, t, m, packed):
    """First row and height of tile t: heights differ by one at most; of packed panels only the last may be lower."""
    tiles = (m + tile.mr - 1) // tile.mr
    low, more = m // tiles, m % tiles
    if packed:
        return t * tile.mr, min(tile.mr, m - t * tile.mr)
    return t * low + min(t, more), low + (1 if t < more else 0)


@jit(forceinline=True)
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


@jit(forceinline=True)
def one_block(tile, room, panel, m, n, k, a, rsa, csa, b, rsb, csb, c, rsc, csc, x, rsx, csx, alpha, beta):
    """One block, k <= 512: A is read in place or packed into the ROOM bytes at `room`, if it is not 0; PANEL bytes at
    `panel` are for a panel of B."""
    square = scratch(SQUARE)  # a tile of C, for endings through memory
    stop = ending(csc, x, csx, alpha == 1)
    if stop == PLAIN and (csb == 1 or rsb == 1) and suits(tile, m, n, k, rsa, csa):
        upright = int(csa != 1)
        if csb != 1:
            turned(tile, 1, n, k, b, 0, csb, panel)
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


@jit
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


@jit
def distinct(m, rs, n, cs, size):
    """Whether an m x n array's elements provably lie apart: one dimension's step clears all of the other's extent."""
    rs, cs = rs if m > 1 else n * cs, cs if n > 1 else m * rs
    return min(rs, cs) >= size and (rs >= n * cs or cs >= m * rs)


@jit(forceinline=True)
def alike(out, x, a, b):
    """Whether arrays, by their ids, have one dtype."""
    return descr(b) == descr(a) and descr(out) == descr(a) and (x == 0 or descr(x) == descr(a))


@jit
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
        same = data(x) == data(out) and (rsx == rsc or m == 1) and (csx == csc or n == 1)
        if not same and not apart(out, x, size):
            return True
    return steps & (size - 1) != 0


@jit(forceinline=True)
def large(a, b, size):
    """Whether the result of two arrays, by their ids, is the caller's to make: it may be none."""
    most = MADE // size
    return ndim(a) != 2 or ndim(b) != 2 or shape(a, 0) > most or shape(b, 1) > most // max(shape(a, 0), 1)


@jit(forceinline=True)
def new_matrix(numpy, dtype, a, b):
    """The address of a new result; 0, and an exception set, without memory."""
    sizes = scratch(16)
    set_word(sizes, shape(a, 0))
    set_word(sizes + 8, shape(b, 1))
    return new_strided(numpy, dtype, 2, sizes, 0)  # no strides: in C order


@functools.cache
def small_entry(tile):
    """The call from Python for small products: checks what it can, declines what is unusual, keeps the GIL.

    answer(address of made.words(), out or None, x or None, a, b, beta, alpha): out, or made; else a status. Another
    path's product it hands on to that path's `whole`, if it is known; else the path is the answer.
    """
    size, element = tile.itemsize, getattr(np, tile.dtype)

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
        if serially:
            if k > longest(tile):
                return answer(LARGE, given, made)
        else:
            whole, rows = numpy - 8 * KNOWN, csc == 1 and (px == 0 or csx == 1)
            workers = launchable(whole)
            workers = workers if workers > 0 else 2  # nothing says how many there are
            if x == 0 and alpha == 1 and pa == pb and rsa == csb and csa == rsb and mirrors(m, n, k, workers):
                return answer(SYMMETRIC, given, made)
            path = choose(tile, m, n, k, rsa, csa, rsb, csb, rows, workers, l2(), known())
            if path != SMALL:
                whole += 8 + 16 * (path - GEMV)
                found = answered(whole, path, out, x, a, b, beta, alpha)
                return answer(path if found == LARGE else found, given, made)
        room = static(ROOM) if GIL else 0
        one_block(tile, room, own(PANEL), m, n, k, pa, rsa, csa, pb, rsb, csb, c, rsc, csc, px, rsx, csx,
                  element(alpha), element(beta))  # fmt: skip
        return answer(DONE, given, made)

    kind = ANSWER(types.int64, OBJECT, OBJECT, OBJECT, OBJECT, types.float64, types.float64)
    return entry(run, kind, f"gemm_small_{tile}")
