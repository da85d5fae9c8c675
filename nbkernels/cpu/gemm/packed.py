"""The packed path's calls: from Python, by as many launches as let Ctrl-C through, and whole from compiled code."""

from __future__ import annotations

import functools

import numpy as np

from ...jit.abi.address import copy, pointer, scratch
from ...jit.abi.record import Record, lasting
from ...jit.ir.kind import Kind
from ...jit.ir.vector import LINE
from ..runtime import threads
from ..runtime.launch import launchable
from ..runtime.status import DONE, LARGE
from ..runtime.workspace import ROOMS, acquire, release, room, without
from .blocking import SEGMENT, Tiles, small
from .context import BYTES, TASKS, WORDS, cuts, even, words_at
from .context_setup import filled, swapped, template
from .kernels import MULTIPLIER, PACKS, kernels_of, missing, packers, ready, single, supply
from .kinds import kind_of, tiles_of
from .loops import ahead, loops
from .plan_entry import factored, whole_call
from .tuned import SLOTS, shape_class, slot_of

# Multiplications in one launch, which Ctrl-C cannot interrupt: about a second of one thread.
LAUNCH = 1 << 36
TOLD, TOLD_BYTES = 8 * WORDS["a"], 8 * (WORDS["block"] - WORDS["a"])  # where the words tell of arrays, in bytes


def packed(out, x, a, b, beta, alpha, tiles: Tiles | None, kind: Kind, workers: int, after=None) -> int:
    """out = alpha * a @ b + beta * x, x given by its id or 0: DONE. `after`, an epilogue.After, is applied to each tile
    that is done. b may be panels.Panels; rows of out are contiguous then. Without tiles one column or one row may meet
    a matrix as it lies."""
    free, tiles = tiles is None and after is None, tiles or tiles_of(kind, slot_of(out, a, b))
    if turned := swapped(out, b, kind):
        kind = kind.swapped()
    f, kept = filled(out, x, a, b, beta, alpha, tiles, kind, workers)
    tile, way = tiles.tile(kind), single(f) if free else -1
    if way >= 0:
        supply(tile, PACKS + way)
        threads.launch(int(ready(tile)[way]), f.own, workers)
        return DONE
    kernels_of(f, tile)
    if after is not None:
        f.after, context = after.words(turned)
        f.context = context.buffer_info()[0]
    each = max(1, LAUNCH * f.blocks // (f.m * f.n * f.k))
    with room(f.need) as f.room:
        for block in range(0, f.blocks, each):  # Ctrl-C works between launches
            f.start, f.stop = block, block + each
            threads.launch(loops(), f.own, workers)
    return DONE


def packed_ahead(b, tiles: Tiles, kind: Kind) -> np.ndarray:
    """b in panels, for products with these tiles and of this kind."""
    out, a = np.broadcast_to(np.empty((), kind.out), (1, b.shape[1])), np.empty((1, len(b)), kind.a)
    f, _ = filled(out, 0, a, b, 0, 1, tiles, kind, 1, fixed=True)
    tile = tiles.tile(kind)
    supply(tile, PACKS + packers(f, False)[1])
    words = sum(-(-kb // tile.group) + tile.head for _, kb in runs(len(b), tiles, tile))
    panels = np.zeros(words * -(-b.shape[1] // tile.nr) * tile.nr * tile.step + LINE, np.uint8)
    panels = panels[-panels.ctypes.data % LINE :]
    f.ready = panels.ctypes.data
    threads.launch(ahead(), f.own, 1)
    return panels


def runs(k: int, tiles: Tiles, tile):
    """(first step, steps) of each block of k, as loops.py cuts them."""
    for segment in range(0, k, SEGMENT):
        length = min(SEGMENT, k - segment)
        step = even(length, tiles.kc, tile.group)
        for p in range(0, length, step):
            yield segment + p, min(step, length - p)


# Then, for each slot of tuned.py, the addresses of its words and of what is ready.
TABLE = Record("Packed", "launch kernel kept slots")  # the first as launch.TABLE's
table_at = TABLE.pointer()


@functools.cache
def _whole(tile):
    """int64(table, words of checked arrays, beta, alpha): its address. It launches threads and comes back when they are
    done; LARGE, with nothing done, where something is not ready yet, the room that is kept
    does not do, Ctrl-C must be heard meanwhile, or nothing says how many threads there are. Python's way to the launch
    takes 14 to 200 us.
    """
    element = getattr(np, tile.dtype)

    def run(table, words, beta, alpha):
        t, workers, g = table_at(table), launchable(table), words_at(words)
        kept = pointer(t.kept)
        if workers < 1 or g.m * g.n * g.k > LAUNCH:
            return LARGE
        address, factors = scratch(BYTES), scratch(16)
        left, right = abs(g.rsa) < abs(g.csa), abs(g.rsb) < abs(g.csb)
        own = pointer(t.slots + 16 * (4 * shape_class(g.m, g.n, g.k) + 2 * left + right))
        f, made = words_at(address), pointer(own[1])
        copy(address, own[0], BYTES)
        copy(address + TOLD, words + TOLD, TOLD_BYTES)
        f.workers, f.tasks, f.reads = workers, 1, beta != 0
        cuts(f)
        f.multiply = made[MULTIPLIER]
        if f.multiply == 0 or missing(f, False) >= 0:
            return LARGE
        f.room = acquire(kept, f.need)
        if f.room == 0:
            return without(kept, f.need)
        factored(tile, f, factors, element(alpha), element(beta))
        f.own, f.stop = address, f.blocks
        threads.shared(t.launch, t.kernel, address, address + TASKS)
        release(kept)
        return DONE

    return whole_call(run, f"gemm_packed_whole_{tile}")[1]


@lasting  # compiled code may still read those before new winners (invalidate.py)
def _table(dtype):
    """The table of `whole`, and what it tells of."""
    kind = kind_of(dtype, dtype, dtype)
    cuts = [tiles_of(kind, which) for which in range(SLOTS)]
    words = np.array([np.frombuffer(template(tiles, kind, 1), np.int64) for tiles in cuts])
    own = [(each.ctypes.data, ready(tiles.tile(kind)).ctypes.data) for each, tiles in zip(words, cuts)]
    slots = np.array(own, np.int64)
    return np.array([threads.WORDS, loops(), ROOMS, slots.ctypes.data], np.int64), slots, words


def whole(dtype: str) -> tuple[int, int]:
    """The address of the whole call, and its first argument."""
    threads.open_up()
    return _whole(small(dtype)), _table(dtype)[0].ctypes.data
