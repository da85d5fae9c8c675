"""Fill in the record of a product (context.py) from Python: by its tiles and kind, its factors, its arrays."""

from __future__ import annotations

import functools

import numpy as np

from ...jit.ir.kind import UNIT, Kind
from ..runtime.status import PACKED
from . import matrix_unit
from .blocking import Tiles, caches
from .context import EITHER, FIXED, NARROW, ROWWISE, WORDS, prepare, shift, turns
from .kernels import ready
from .kinds import default_tiles, in_place
from .microkernel import table


def swapped(out, b, kind: Kind) -> bool:
    """Whether out = a @ b, which may have panels.py's b, is computed as C' = B' A'."""
    return turns(out, b, FIXED if hasattr(b, "memory") else sides(kind), default_tiles(kind).tile(kind).lanes)


def sides(kind: Kind) -> int:
    """How products of a kind may be turned; where its operands differ, the kind is turned before. A narrow C of complex
    numbers or of bytes takes as long either way, and small float32 and float64 have other paths."""
    if kind != kind.swapped():
        return ROWWISE
    single = kind.group == kind.planes == 1 and kind != Kind.plain(kind.chain)
    return EITHER if kind.way == UNIT else NARROW if single else ROWWISE


@functools.cache
def template(tiles: Tiles, kind: Kind, workers: int) -> bytes:
    """The words that come with the tiles."""
    tile = tiles.tile(kind)
    f = WORDS.array()
    f.mr, f.nr, f.kc, f.nb, f.mc, f.nc = tiles.mr, tiles.nr, tiles.kc, tiles.nb, tiles.mc, tiles.nc
    f.group, f.step, f.head, f.direct, f.rowwise = tile.group, tile.step, tile.head, kind.direct, kind.same
    f.size_a, f.size_b, f.size_c, f.size_t = tile.size_a, tile.size_b, tile.size_c, tile.size_t
    f.shift_a, f.shift_b, f.shift_c = (shift(size) for size in (tile.size_a, tile.size_b, tile.size_c))
    f.workers, f.tasks, f.cache = workers, workers, caches()[1]
    f.micro, f.nv, f.lanes = table(tile).address, tile.nv, tile.lanes
    f.packs, f.in_place, f.sides = ready(tile).ctypes.data, in_place(kind), sides(kind)
    f.brackets = matrix_unit.brackets(kind.a) if kind.way == UNIT else 0
    return f.tobytes()


def _scalars(alpha, beta, dtype: str):
    """Address of the two factors in a chain's dtype, and the array that keeps it."""
    factors = np.array([alpha, beta], dtype)
    return factors.ctypes.data, factors


_known_scalars = functools.lru_cache(256)(_scalars)  # of real numbers: 0j and -0j are one key, and two factors


def filled(out, x, a, b, beta, alpha, tiles: Tiles, kind: Kind, workers: int, way: int = PACKED, *, fixed=False):
    """A path's words of a product of checked arrays, x by its id or 0, and what must live while they are read; `fixed`:
    it is not turned."""
    f = WORDS.array(template(tiles, kind, workers))
    f.own = f.buffer_info()[0]
    f.scalars, kept = (_scalars if kind.planes > 1 else _known_scalars)(alpha, beta, kind.chain)
    f.reads, f.unit = beta != 0, alpha == 1
    if hasattr(b, "memory"):  # panels.py's
        f.ready, fixed = b.memory.ctypes.data, True
    f.sides = FIXED if fixed else f.sides
    prepare()(id(out), x, id(a), id(b), f.own, way)
    return f, kept
