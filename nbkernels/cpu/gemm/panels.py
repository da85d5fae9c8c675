"""Panels: a matrix B that is packed once, as the packed path reads it, for many products."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...dtypes import asked, name_of
from ..runtime import threads
from .batch import takes
from .blocking import Tiles
from .kinds import WIDENED, default_tiles, kind_of, kind_of_panels
from .packed import packed, packed_ahead, runs
from .paths import PARALLEL


class Panels(np.ndarray):
    """What stands for B: an array of its shape and dtype without its elements, which are in `memory`."""

    memory: np.ndarray
    kind: object
    tiles: Tiles


def panels(b) -> Panels:
    """B packed for products of its dtype by the default mode and the tiles of this machine."""
    kind = kind_of_panels(name_of(b.dtype), len(b))
    tiles = default_tiles(kind)
    found = np.broadcast_to(np.zeros((), b.dtype), b.shape).view(Panels)
    found.kind, found.tiles = kind, tiles
    found.memory = packed_ahead(b, tiles, kind) if b.size else np.empty(0, np.uint8)
    return found


def times(x, b: Panels, bias, out, out_dtype=None) -> np.ndarray | None:
    """x @ b + bias of plain arrays in few steps, x of any number of dimensions; None, with nothing written, where more
    care is needed."""
    dtype, (k, n), name = b.dtype, b.shape, name_of(b.dtype)
    if x.dtype != dtype or x.ndim < 2 or x.shape[-1] != k or not x.flags.c_contiguous or not x.size or not b.size:
        return None
    if out_dtype is not None and (wanted := asked(out_dtype)) != name:
        if WIDENED.get(name) != wanted:
            return None
        dtype = np.dtype(wanted)
    if bias is not None and (bias.dtype != dtype or bias.shape != (n,) or bias.strides != (dtype.itemsize,)):
        return None
    if kind_of_panels(name, k) != b.kind:  # of another mode
        return None
    shape, kind = (*x.shape[:-1], n), replace(b.kind, out=kind_of(name, name, name_of(dtype)).out)
    if out is None:
        out = np.empty(shape, dtype)
    elif not takes(out, shape, dtype) or any(np.may_share_memory(out, y) for y in (x, bias) if y is not None):
        return None
    rows, a = out.reshape(-1, n), x.reshape(-1, k)
    workers = threads.count() if rows.size * k > PARALLEL else 1
    added = (0, 0) if bias is None else (id(bias), 1)
    packed(rows, added[0], a, b, added[1], 1, b.tiles, kind, workers)
    return out


def unpacked(b: Panels) -> np.ndarray:
    """B's elements, as a new array."""
    (k, n), tile, items = b.shape, b.tiles.tile(b.kind), b.kind.items
    stored = tile.dtype if items == 1 else b.dtype if items * b.itemsize == tile.itemsize else np.int16
    words = b.memory[: b.memory.size // tile.itemsize * tile.itemsize].view(stored)
    found, at, wide = np.empty((k, n), b.dtype), 0, -(-n // tile.nr)
    for first, kb in runs(k, b.tiles, tile):
        steps = -(-kb // tile.group) * tile.group
        down = steps // items + tile.head
        size = wide * down * tile.nr * items
        block = words[at : at + size].reshape(wide, down, tile.nr, items)[:, tile.head :]
        rows = block.transpose(1, 3, 0, 2).reshape(steps, wide * tile.nr)
        found[first : first + kb] = rows[:kb, :n]
        at += size
    return found
