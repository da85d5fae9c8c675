"""One block of a product, k <= 512, by one thread: panels of B in place or packed, against all of A.

The small path is one block, or where it suits one call of even.py's; the jobs of columns.py and of stacks are
some panels of one each.
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.abi.address import scratch, static
from ...jit.abi.workspaces import acquire, release
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit, plain
from ...jit.ir.turn import turned
from ..runtime.arrays import GIL
from ..runtime.status import BY_COLUMNS, BY_ROWS, DONE, LACKING, SMALL
from .blocking import WAY, small
from .context import WORDS, matrices, sub
from .even import even, suits
from .microkernel import PACKED, STRIDED, absent, every, known, ukernel, ukernel_packed
from .pack import pack, pack_rows_a, pack_rows_b
from .paths import IN_PLACE, NARROW_IN_PLACE, PANEL
from .store import MEMORY, PARTIAL, ending, finish

own = static if GIL else scratch  # what gives a room to code that holds the GIL
ROOM = 1 << 20  # bytes that A may be packed in
SQUARE = 4 << 10  # bytes of stack for one tile of C
KERNEL = f"int64({WORDS}, float64, float64)"  # status(words, beta, alpha)
PRODUCT = f"void({WORDS}, float64, float64)"  # likewise


@jit(forceinline=True)
def stays(tile, rsa, csa, n):
    """Whether A is read where it lies, rather than packed, against n columns of B: with 32 registers, where rows or
    columns are contiguous and do not crowd each other out of L1 (256^3 TN of f64, one thread, us: packed 279, so 262;
    two threads 164, 145)."""
    if tile.narrow:
        return n <= NARROW_IN_PLACE * tile.nr
    return csa == 1 or n <= IN_PLACE * tile.nr or (rsa == 1 and csa * tile.itemsize % WAY != 0)


@jit(forceinline=True)
def packs(tile, m, n, k, rsa, csa):
    """Whether A is packed, which takes up to ROOM bytes, where there is a room."""
    return not stays(tile, rsa, csa, n) and (m + tile.mr) * k * tile.itemsize <= ROOM


@jit(forceinline=True)
def _row_tile(tile, t, m, packed):
    """First row and height of tile t: heights differ by one at most; of packed panels only the last may be lower."""
    tiles = (m + tile.mr - 1) // tile.mr
    low, more = m // tiles, m % tiles
    if packed:
        return t * tile.mr, min(tile.mr, m - t * tile.mr)
    return t * low + min(t, more), low + (1 if t < more else 0)


@jit(forceinline=True)
def _column_panel(tile, stop, rooms, j, sizes, operands, alpha, beta):
    """C[:, j:j+nr], k <= 512: the panel of B is read in place or packed at `panel`; A in place or, packed, at `room` if
    that is not 0."""
    (m, n, k), (panel, square, room), (a, b, c, x) = sizes, rooms, operands
    size, w, tiles = tile.itemsize, min(tile.nr, n - j), (m + tile.mr - 1) // tile.mr
    bj, rsb, csb = sub(b, 0, j, size)
    rsbj = rsb
    panels = tile.narrow and room != 0 and tiles > 1 and stop != MEMORY
    if panels or csb != 1 or w < tile.nr or tiles > 8:  # packing pays from the ninth pass over the panel
        if csb == 1 and tile.narrow:
            pack_rows_b(tile, bj, rsb, w, k, panel, k)
        else:
            pack(tile, bj, csb, rsb, w, k, panel, tile.nr)
        bj, rsbj = panel, tile.nr
    for t in range(tiles):
        i, h = _row_tile(tile, t, m, room != 0)
        ai, rsai, csai = sub(a, i, 0, size)
        if room != 0:
            ai, rsai, csai = room + t * tile.mr * k * size, 1, tile.mr
        own, old = sub(c, i, j, size), sub(x, i, j, size)
        (ci, rsc, _), (xi, rsx, _) = own, old
        if stop == MEMORY:
            ukernel(tile, h, ai, rsai, csai, bj, rsbj, k, square, tile.nr, square, tile.nr, w, 0, PARTIAL,
                    0, 0, alpha, beta)  # fmt: skip
            finish(tile, (h, w), (square, tile.nr), (0, 0), True, True, own, old, alpha, beta)
        elif tile.narrow and room != 0 and bj == panel:
            ukernel_packed(tile, h, ai, 1, tile.mr, bj, tile.nr, k, ci, rsc, ci, rsc, w, 0, stop, xi, rsx, alpha, beta)
        else:
            ukernel(tile, h, ai, rsai, csai, bj, rsbj, k, ci, rsc, ci, rsc, w, 0, stop, xi, rsx, alpha, beta)


@jit(forceinline=True)
def one_block(tile, room, panel, sizes, operands, alpha, beta):
    """One block, k <= 512: A is packed at `room` or, if that is 0, read in place; a panel of B has PANEL bytes at
    `panel`."""
    (m, n, k), ((a, rsa, csa), _, c, x) = sizes, operands
    square = scratch(SQUARE)  # a tile of C, for endings through memory
    stop = ending(c[2], x[0], x[2], alpha == 1)
    if room != 0 and rsa == 1:
        pack_rows_a(tile, a, csa, m, k, room, k)
    for i in range(0, m if room != 0 and rsa != 1 else 0, tile.mr):
        target = room + i * k * tile.itemsize
        pack(tile, a + i * rsa * tile.itemsize, rsa, csa, min(tile.mr, m - i), k, target, tile.mr)
    for j in range(0, n, tile.nr):
        _column_panel(tile, stop, (panel, square, room), j, sizes, operands, alpha, beta)


@jit(forceinline=True)
def lacking(tile, stop, packed, least, most, m, n, csb, cut):
    """The place in their table of a micro-kernel that `_column_panel` needs and that is not compiled; or -1. A is
    packed, or in place and cut into tiles of `least` to `most` rows; `cut`: it may be in parts of few tiles."""
    tiles = (m + tile.mr - 1) // tile.mr
    panels = packed and tile.narrow and stop != MEMORY  # B is packed, too, unless one tile meets it
    strided, at, words = not panels or (csb == 1 and (cut or tiles == 1)), -1, known(tile)
    if packed:
        least, most = m - (tiles - 1) * tile.mr, tile.mr if tiles > 1 else m
    for h in range(least, most + 1):
        if not packed or h in (least, most):
            if strided:
                at = max(at, absent(tile, words, STRIDED, h, n))
            if panels:
                at = max(at, absent(tile, words, PACKED, h, n))
    return at


@plain
def kernel_for(tile, plain, m, n, k, rsa, csa, rsb, csb):
    """Which of the small path's kernels does a product. `plain`: rows of C are contiguous, nothing is added to them and
    alpha is 1."""
    if plain and (csb == 1 or rsb == 1) and suits(tile, m, n, k, rsa, csa):
        return BY_ROWS if csa == 1 else BY_COLUMNS
    return SMALL


def block(dtype: str) -> tuple[int, int]:
    """The small path's kernel, and nothing: DONE, or LACKING + the place of a micro-kernel, with nothing written."""
    return _block(small(dtype)), 0


@functools.cache
def _block(tile) -> int:
    element = getattr(np, tile.dtype)

    def run(f, beta, alpha):
        m, n, k = f.m, f.n, f.k
        packed, stop = GIL and packs(tile, m, n, k, f.rsa, f.csa), ending(f.csc, f.x, f.csx, alpha == 1)
        tiles = (m + tile.mr - 1) // tile.mr
        low = m if tiles == 1 else m // tiles  # and some tiles are one row higher
        at = lacking(tile, stop, packed, low, low + (low * tiles < m), m, n, f.csb, False)
        if at >= 0:
            return LACKING + at
        room = static(ROOM) if packed else 0
        one_block(tile, room, own(PANEL), (m, n, k), matrices(f), element(alpha), element(beta))
        return DONE

    return compiled(run, KERNEL, f"gemm_block_{tile}")


@functools.cache
def straight(dtype: str, upright: bool) -> tuple[int, int]:
    """(address of the straight-line kernel for products that `even.suits` accepts, 0). `upright`: whether A is stored
    by columns; else it is stored by rows."""
    tile, columns = small(dtype), int(upright)  # a constant number, of which `even` emits one layout alone

    def run(f, beta, alpha):
        b, rsb, step = f.b, f.rsb, f.csa if upright else f.rsa
        if f.csb != 1:
            b, rsb = scratch(PANEL), f.n
            turned(tile, 1, f.n, f.k, f.b, 0, f.csb, b)
        even(tile, columns, 0, 1, f.m, f.n, f.k, f.a, 0, step, b, 0, rsb, f.c, 0, f.rsc)
        return DONE

    return compiled(run, KERNEL, f"gemm_even_{'upright' if upright else 'rows'}_{tile}"), 0


@functools.cache
def native(dtype: str) -> int:
    """C = alpha*A@B + beta*X, k <= 512, by one thread that need not hold the GIL: void(words, beta, alpha). C is stored
    by rows, if by either.

    C shares no memory with A and B, and with X only where it is X. All sizes are at least 1.
    """
    tile, element = small(dtype), getattr(np, dtype)

    def run(f, beta, alpha):
        packed = not tile.narrow and packs(tile, f.m, f.n, f.k, f.rsa, f.csa)
        room = acquire(ROOM) if packed else 0
        one_block(tile, room, scratch(PANEL), (f.m, f.n, f.k), matrices(f), element(alpha), element(beta))
        if packed:
            release(ROOM, room)

    every(tile, STRIDED)
    return compiled(run, PRODUCT, f"gemm_native_{tile}")
