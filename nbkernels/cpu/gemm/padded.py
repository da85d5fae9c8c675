"""Products of any kind in one call that needs nothing but addresses: the packed path with micro-kernels of full height.

A tile of fewer rows is computed whole, and those that C has are stored: what stands in a panel behind its last row
meets only what is left out. So a kind takes one micro-kernel for each width to compile, where products that Python
calls have them for each height, and compiled code that has nobody to ask for another one lacks none.
"""

from __future__ import annotations

from ...jit.abi.address import invoke, pointer, scratch
from ...jit.abi.record import Record
from ...jit.abi.workspaces import acquire, allocate, free, release
from ...jit.compile.lazy import jit
from ...jit.ir.kind import Kind
from ..runtime import threads, workspace
from ..runtime.status import DONE
from .block import ROOM, SQUARE
from .context import FIXED, TASKS, WORDS, cuts
from .context_setup import template
from .kernels import PACKS, PANEL_A, PANEL_B, TILE_BYTES, few_tiles, multiplier, single, supply, tile_at
from .kinds import default_tiles
from .loops import loops
from .microkernel import PACKED, place, table
from .paths import PARALLEL, SERIAL
from .store import ending

# Of a kind of product: the address of the words of a small one, of the words of a large one, and of the launch table;
# the jobs of a stack, and what takes few whole numbers or 0 (call.py); whether words may lack kernels; workspace.ROOMS;
# what takes a stack of floats at once, or 0, and its kernels (stacks.py); bytes of an element of a, b and the result.
PLAN = Record("ProductPlan", "words larger launch jobs little asks rooms stacks ready size_a size_b size")
plan_at = PLAN.pointer()


def words(kind: Kind, asks=False):
    """The words of products of a kind: `asks` where kernels are compiled as they are missed, else all of them are."""
    tiles = default_tiles(kind)
    tile, f = tiles.tile(kind), WORDS.array(template(tiles, kind, 1))
    f.sides = FIXED if kind != kind.swapped() else f.sides
    f.loops, f.multiply = loops(), multiplier(tile, not asks)
    if asks:
        return f
    f.rowwise = 0
    for panel in (PANEL_A, PANEL_B):
        supply(tile, PACKS + panel)
    for across in range(1, tile.nv + 1):
        table(tile).supply(place(tile, PACKED, tile.mr, across))
    return f


@jit(forceinline=True)
def by_tiles(f):
    """Compute a product of few tiles: pack all panels of A, then one of B after the other, which meets them all (8x8 to
    40x16x40 of whole numbers, halves and complex numbers take .8 to .9 of the loops' time)."""
    own, packs, b, words = scratch(TILE_BYTES), pointer(f.packs), f.room + ROOM // 2, (f.k + f.group - 1) // f.group
    for i in range(0, f.m, f.mr):
        to = f.room + i * words * f.step
        invoke(packs[PANEL_A], (f.a + i * f.rsa * f.size_a, f.rsa, f.csa, min(f.mr, f.m - i), f.k, to))
    t = tile_at(own)
    t.b, t.words, t.rsa, t.csa, t.stop = b, words, f.step, f.mr * f.step, ending(f.csc, f.x, f.csx, f.unit)
    t.starts = t.first = t.last = 1
    t.part, t.rsp, t.rst = scratch(SQUARE), f.nr, f.rsc
    t.unit = t.pace = 0
    for j in range(0, f.n, f.nr):
        t.width = min(f.nr, f.n - j)
        invoke(packs[PANEL_B], (f.b + j * f.csb * f.size_b, f.csb, f.rsb, t.width, f.k, b))
        for i in range(0, f.m, f.mr):
            t.height, t.a = min(f.mr, f.m - i), f.room + i * words * f.step
            t.c = t.total = f.c + (i * f.rsc + j * f.csc) * f.size_c
            t.x = f.x + (i * f.rsx + j * f.csx) * f.size_c if f.x != 0 else 0
            invoke(f.multiply, (own, f.own))
    if f.brackets != 0:
        invoke(f.brackets, (0,))


@jit
def workers(launch, size, shared):
    """Threads for so many multiply-adds: one or, where it is worth that, several, of a caller who may share (`shared`)
    or is in a block of nbkernels.threads."""
    w = threads.pool_at(launch)
    several = size > PARALLEL and w.share != 0 and (shared or pointer(w.limits)[0] > 1)
    return threads.workers(w) if several else 1


@jit
def _launched(launch, kernel, f, held):
    """Run a kernel of these words by their threads."""
    f.tasks = 1
    if held and (f.workers > 1 or f.m * f.n * f.k > SERIAL):
        threads.shared(launch, kernel, f.own, f.own + TASKS)
    elif f.workers > 1:
        threads.unheld(launch, kernel, f.own, f.own + TASKS)
    else:
        invoke(kernel, (f.own, 0))


@jit
def product(launch, f, rooms, held):
    """The product of these words, which have a plan's, workers, factors, sizes and matrices, C by rows if it can be:
    DONE. `rooms`: workspace.ROOMS, or 0; `held`: the caller has the GIL, and may be told what workspace.without says.
    """
    way = single(f)
    kernel = pointer(f.packs)[way] if way >= 0 else 0
    if kernel != 0:
        _launched(launch, kernel, f, held)
        return DONE
    if few_tiles(f):
        f.room = acquire(ROOM)
        by_tiles(f)
        release(ROOM, f.room)
        return DONE
    cuts(f)
    f.start, f.stop, kept = 0, f.blocks, 0
    if f.need <= ROOM:
        f.room = acquire(ROOM)
    else:
        kept = workspace.acquire(pointer(rooms), f.need) if rooms != 0 else 0
        if kept == 0 and held:
            return workspace.without(pointer(rooms), f.need)
        f.room = kept if kept != 0 else allocate(f.need)
    _launched(launch, f.loops, f, held)
    if f.need <= ROOM:
        release(ROOM, f.room)
    elif kept != 0:
        workspace.release(pointer(rooms))
    else:
        free(f.room)
    return DONE
