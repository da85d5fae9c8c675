"""A matrix B that lies in panels already, as the packed path's products read it: packed once, for many of them."""

from __future__ import annotations

import numpy as np

from ...jit.kind import ITEMS, UNIT
from .blocking import Tiles
from .gemm import name_of
from .kinds import default_tiles, kind_of
from .packed import packed_ahead, runs


class Panels(np.ndarray):
    """What stands for B: an array of its shape and dtype without its elements, which are in `memory`."""

    memory: np.ndarray
    kind: object
    tiles: Tiles


def panels(b) -> Panels:
    """B, a matrix of floats, packed for products of its dtype by the default mode and the tiles of this machine."""
    name = name_of(b.dtype)
    kind = kind_of(name, name, name)
    if kind.way == UNIT:
        raise ValueError("pack: products of mode 'amx' pack their own; pack within nbkernels.modes('chain')")
    tiles = default_tiles(kind)
    found = np.broadcast_to(np.zeros((), b.dtype), b.shape).view(Panels)
    found.kind, found.tiles = kind, tiles
    found.memory = packed_ahead(b, tiles, kind) if b.size else np.empty(0, np.uint8)
    return found


def unpacked(b: Panels) -> np.ndarray:
    """B's elements, as a new array."""
    (k, n), tile, items = b.shape, b.tiles.tile(b.kind), ITEMS.get(b.kind.way, 1)
    words = b.memory[: b.memory.size // tile.itemsize * tile.itemsize].view(b.dtype if items > 1 else tile.dtype)
    found, at, wide = np.empty((k, n), b.dtype), 0, -(-n // tile.nr)
    for first, kb in runs(k, b.tiles, tile):
        count = -(-kb // tile.group)
        size = wide * count * tile.nr * items
        block = words[at : at + size].reshape(wide, count, tile.nr, items)
        rows = block.transpose(1, 3, 0, 2).reshape(count * items, wide * tile.nr)
        found[first : first + kb] = rows[:kb, :n]
        at += size
    return found
