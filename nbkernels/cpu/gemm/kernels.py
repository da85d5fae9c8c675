"""The packed path's kernels, each compiled alone: micro-kernels, and the code that packs and multiplies for them.
`missing` names those that a product needs and that are not compiled yet; of one column or row gemv/other_dtypes's."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from ...jit.abi.address import copy, invoke, peek, pointer, scratch
from ...jit.abi.record import Record, lasting
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit, plain
from ..gemv import other_dtypes
from . import tiny
from .block import ROOM, SQUARE
from .context import WORDS
from .microkernel import PACKED, STREAMED, absent_of, table, ukernel_packed, ukernel_streamed
from .pack import pack_rows_a, pack_rows_b
from .pack_converting import pack_a, pack_b
from .paths import AWAKE
from .stacks_float import NATIVE, WAYS
from .store import PARTIAL, PLAIN, REGISTERS, finish

# A tile of C: its size, A with the strides of its rows and groups of k, B, words of k; whether a chain begins, how it
# ends, whether its segment is the first one and the last; where chains and sums wait, and their rows' strides; C and X;
# what is asked for of the panels of B that come next; the height for which a matrix unit is configured, 0 before it is.
TILE = Record("Tile", """height width a rsa csa b words starts stop first last part rsp total rst c x
                         ahead pace gap unit""")  # fmt: skip
tile_at, TILE_BYTES = TILE.pointer(), TILE.bytes

# A tile's kernels: four pack panels, or some rows of panels; two are for one column or one row; one multiplies; those
# of stacks_float.py come after it. `supply` takes the place of a micro-kernel, PACKS + a kernel before the one that
# multiplies, TINY + a place in tiny.py's table, or STACKS + a kernel of stacks.
PANEL_A, PANEL_B, STRIP_A, STRIP_B, COLUMN, ROW, MULTIPLIER = range(7)
PACKS, TINY, STACKS = 1 << 12, 1 << 16, 1 << 17


@lasting
def ready(tile):
    """A tile's kernels, by these numbers: 0 until they are compiled."""
    return np.zeros(MULTIPLIER + 1 + NATIVE, np.int64)


@plain
def few_tiles(f):
    """Whether a product is small enough for padded.by_tiles, and its panels of A for half of the room there: with a
    matrix unit of one tile, since loops.py reads A in place there."""
    fits = (f.m + f.mr) * (f.k + f.group) * f.step <= ROOM // 2 and f.k <= f.kc
    return fits and f.m * f.n * f.k <= AWAKE and (f.brackets == 0 or (f.m <= f.mr and f.n <= f.nr))


@plain
def packers(f, few):
    """Which kernels pack A and B: of panels, where tiles are `few`; else of rows, where these lie as in panels and keep
    their dtype (f64 1000x1000, A by columns, 33.0 -> 28.3 ms; f16 and int8 gain nothing)."""
    a_rows = not few and f.rowwise != 0 and f.rsa == 1
    b_rows = not few and f.rowwise != 0 and f.csb == 1
    return STRIP_A if a_rows else PANEL_A, STRIP_B if b_rows else PANEL_B


@plain
def single(f):
    """Which kernel reads the matrix that meets one column or one row as it lies, of kinds that have one; or -1."""
    if f.in_place == 0 or (f.m > 1 and f.n > 1):
        return -1
    if f.n == 1:
        return COLUMN if f.rsa == 1 or f.csa == 1 else -1
    return ROW if f.rsb == 1 or f.csb == 1 else -1


@jit(forceinline=True)
def missing(f, few):
    """The place of a micro-kernel, or PACKS + another kernel, that a product of `few` tiles or more lacks; or -1."""
    (a, b), packs, way = packers(f, few), pointer(f.packs), single(f)
    if way >= 0:
        return PACKS + way if packs[way] == 0 else -1
    if packs[b] == 0:
        return PACKS + b
    if packs[a] == 0:
        return PACKS + a
    return absent_of(f, pointer(f.micro), PACKED, f.m, f.n)


@functools.cache
def _pack_kernel(tile, what: int) -> int:
    """void(source, along, down, width, kb, target): a panel or, of operands that lie as panels do, some rows, of which
    `along` is the number."""
    panel, strip = (pack_a, pack_rows_a) if what in (PANEL_A, STRIP_A) else (pack_b, pack_rows_b)

    def pack_panel(source, along, down, width, kb, target):
        panel(tile, source, along, down, width, kb, target)

    def pack_rows(source, along, down, width, kb, target):
        strip(tile, source, down, width, along, target, kb)

    name = ("a", "b", "rows_a", "rows_b")[what]
    pack = pack_panel if what in (PANEL_A, PANEL_B) else pack_rows
    return compiled(pack, f"void({', '.join(['int64'] * 6)})", f"gemm_pack_{tile}_{name}")


@jit(forceinline=True)
def configure(t, f, height):
    """Configure the matrix unit, if there is one, for micro-kernels of a height: once for all that follow."""
    if f.brackets != 0 and t.unit != height:
        t.unit = height
        invoke(f.brackets, (height,))


@jit
def _rows(t, size, to, rst, part, rsp):
    """Copy a tile's rows, of items of `size` bytes, to `to`."""
    for i in range(t.height):
        copy(to + i * rst * size, part + i * rsp * size, t.width * size)


@functools.cache
def multiplier(tile, padded=False) -> int:
    """A tile of C and how it ends: void(the tile's words, the product's). `padded`: by micro-kernels of full height, so
    that of an edge all of the tile's rows are computed, and those that C has are copied (padded.py)."""

    def multiply(t, f):
        height = tile.mr if padded else t.height
        configure(t, f, height)
        alpha, beta = peek(tile, f.scalars), peek(tile, f.scalars + tile.size_t)
        edge, part, rsp, c, rsc = padded and t.height < tile.mr, t.part, t.rsp, t.c, f.rsc
        if edge:
            part, c, rsp, rsc = scratch(SQUARE), scratch(SQUARE), tile.nr, tile.nr
            if t.starts == 0:
                _rows(t, tile.size_t, part, rsp, t.part, t.rsp)
        registers = t.stop == PLAIN or (t.stop == REGISTERS and not edge)
        code, to, rst = (t.stop, c, rsc) if registers else (PARTIAL, part, rsp)
        if t.pace == 0:
            ukernel_packed(tile, height, t.a, t.rsa, t.csa, t.b, tile.nr, t.words, part, rsp, to, rst, t.width,
                           not t.starts, code, t.x, f.rsx, alpha, beta)  # fmt: skip
        else:
            ukernel_streamed(tile, height, t.a, t.rsa, t.csa, t.b, tile.nr, t.words, part, rsp, to, rst, t.width,
                             not t.starts, code, t.x, f.rsx, alpha, beta, t.ahead, t.pace, t.gap)  # fmt: skip
        if t.stop != PARTIAL and not registers:
            finish(tile, (t.height, t.width), (part, rsp), (t.total, t.rst), t.first != 0, t.last != 0,
                   (t.c, f.rsc, f.csc), (t.x, f.rsx, f.csx), alpha, beta)  # fmt: skip
        elif edge and registers:
            _rows(t, tile.size_c, t.c, f.rsc, c, rsc)
        elif edge:
            _rows(t, tile.size_t, t.part, t.rsp, part, rsp)

    return compiled(multiply, f"void({TILE}, {WORDS})", f"gemm_multiply_{'padded_' * padded}{tile}")


def supply(tile, at: int) -> None:
    """Compile or load what `missing` names, a path's `lacking`, or stacks.py."""
    if at >= STACKS:
        ready(tile)[MULTIPLIER + at - STACKS] = WAYS[at - STACKS][1](tile)
    elif at >= TINY:
        tiny.table(tile).supply(at - TINY)
    elif at >= PACKS:
        at -= PACKS
        first = replace(tile, kind=tile.kind.swapped()) if at == ROW else tile  # the matrix
        ready(tile)[at] = other_dtypes.work(first) if at in (COLUMN, ROW) else _pack_kernel(tile, at)
    else:
        table(tile).supply(at)


def kernels_of(f, tile) -> None:
    """Compile what the product of these words, which is cut, needs of the loops' kernels."""
    m, n = (size if size < step else step + size % step for size, step in ((f.m, tile.mr), (f.n, tile.nr)))
    f.multiply = _supplied(tile, packers(f, False), f.ready != 0, m, n)


@functools.lru_cache(4096)
def _supplied(tile, packs, streams, m, n) -> int:
    """What multiplies, with all that it calls for m rows and n columns, or any that leave the same over. Each product
    asks."""
    for what in packs:
        supply(tile, PACKS + what)
    for lie in (PACKED, STREAMED)[: 1 + streams]:
        while (at := absent_of(tile, table(tile).words, lie, m, n)) >= 0:
            supply(tile, at)
    found = ready(tile)[MULTIPLIER] = multiplier(tile)
    return found
