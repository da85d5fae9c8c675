"""Products of any kind in one call that needs nothing but addresses: the packed path with one micro-kernel a kind.

A tile at an edge of C is computed whole, on the stack, and the part that C has is stored: what stands in a panel behind
its last row or column meets only what is left out. So a kind takes one micro-kernel to compile, where products that
Python calls have one for each height and width (of int32 by AVX2 0.9 s in place of 12.8), and compiled code that has
nobody to ask for another one lacks none.
"""

from __future__ import annotations

import functools

from ...jit.abi.address import copy, invoke, peek, pointer, scratch
from ...jit.abi.record import Record
from ...jit.abi.workspaces import acquire, allocate, free, release
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit
from ...jit.ir.kind import Kind
from ..runtime import threads
from .block import ROOM, SQUARE
from .context import TASKS, WORDS, cuts, swap_sides
from .context_setup import template
from .kernels import PACKS, PANEL_A, PANEL_B, TILE, supply
from .kinds import default_tiles
from .loops import loops
from .microkernel import PACKED, place, table, ukernel_packed
from .paths import PARALLEL
from .store import MEMORY, PARTIAL, finish

# What comes with a kind: the words of a product, and the table that launches go by.
PLAN = Record("PaddedPlan", "words launch")
plan_at = PLAN.pointer()


@jit
def _rows(tile, t, to, rst, part, rsp):
    """Copy the chains of a tile's rows to `to`."""
    for i in range(t.height):
        copy(to + i * rst * tile.size_t, part + i * rsp * tile.size_t, t.width * tile.size_t)


@functools.cache
def multiplier(tile) -> int:
    """As kernels.multiplier; of an edge the whole tile."""

    def multiply(t, f):
        alpha, beta = peek(tile, f.scalars), peek(tile, f.scalars + tile.size_t)
        whole = t.height == tile.mr and t.width == tile.nr
        registers = whole and t.stop != PARTIAL and t.stop != MEMORY
        part, rsp = t.part, t.rsp
        if not whole:
            part, rsp = scratch(SQUARE), tile.nr
            if t.starts == 0:
                _rows(tile, t, part, rsp, t.part, t.rsp)
        code, to, rst = (t.stop, t.c, f.rsc) if registers else (PARTIAL, part, rsp)
        ukernel_packed(tile, tile.mr, t.a, 1, tile.mr, t.b, tile.nr, t.words, part, rsp, to, rst, tile.nr,
                       not t.starts, code, t.x, f.rsx, alpha, beta)  # fmt: skip
        if t.stop == PARTIAL:
            if not whole:
                _rows(tile, t, t.part, t.rsp, part, rsp)
        elif not registers:
            finish(tile, (t.height, t.width), (part, rsp), (t.total, t.rst), t.first != 0, t.last != 0,
                   (t.c, f.rsc, f.csc), (t.x, f.rsx, f.csx), alpha, beta)  # fmt: skip

    return compiled(multiply, f"void({TILE}, {WORDS})", f"gemm_multiply_padded_{tile}")


@functools.cache
def plan(kind: Kind) -> tuple:
    """The address of a PLAN, all of whose kernels are compiled; and what must live while it is read."""
    tiles = default_tiles(kind)
    tile = tiles.tile(kind)
    f = WORDS.array(template(tiles, kind, 1))
    f.rowwise, f.multiply, f.loops = 0, multiplier(tile), loops()
    for panel in (PANEL_A, PANEL_B):
        supply(tile, PACKS + panel)
    table(tile).supply(place(tile, PACKED, tile.mr, tile.nv))
    threads.open_up()
    made = PLAN.array()
    made.words, made.launch = f.buffer_info()[0], threads.WORDS
    return made.buffer_info()[0], made, f


@jit
def product(launch, f):
    """The product of these words, which have a plan's, factors, sizes and matrices. One thread computes it, or where
    a block of nbkernels.threads says so, and it is worth that, several."""
    if f.csc != 1 and f.rsc == 1 and f.sided == 0:
        swap_sides(f)
    said, w = pointer(threads.pool_at(launch).limits), threads.pool_at(launch)
    f.workers = 1
    if f.m * f.n * f.k > PARALLEL and w.share != 0 and said[0] > 1:
        f.workers = threads.workers(w)
    f.tasks = 1
    cuts(f)
    kept = f.need <= ROOM
    f.room = acquire(ROOM) if kept else allocate(f.need)
    f.start, f.stop = 0, f.blocks
    if f.workers > 1:
        threads.unheld(launch, f.loops, f.own, f.own + TASKS)
    else:
        invoke(f.loops, (f.own, 0))
    if kept:
        release(ROOM, f.room)
    else:
        free(f.room)
