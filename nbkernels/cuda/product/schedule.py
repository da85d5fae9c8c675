"""The tile of a block: from the block's number to the item of the batch, segment of k, row and column of C."""

from __future__ import annotations

import functools

from numba import types

from ..kernels.functions import inlined
from .config import GemmConfig

U32, I64 = types.uint32, types.int64


@functools.cache
def schedule(config: GemmConfig):
    """place(number, m, n, segments): (item, segment, row, column), and the number of a tile among all.

    Tiles of an item and a segment follow each other: down a band of `raster` rows of tiles, then the next column.
    Divisions are of 32 bits, which take a fifth of those of 64.
    """
    BM, BN, RASTER = config.bm, config.bn, config.raster

    @inlined
    def place(number, m, n, segments):
        rows, columns = U32((m + BM - 1) // BM), U32((n + BN - 1) // BN)
        tiles, number = U32(rows * columns), U32(number)
        unit, tile = U32(number // tiles), U32(number % tiles)
        item, segment = U32(unit // U32(segments)), U32(unit % U32(segments))
        size = U32(columns * U32(RASTER))
        band, inside = U32(U32(tile // size) * U32(RASTER)), U32(tile % size)
        height = U32(min(U32(RASTER), U32(rows - band)))
        row, column = U32(band + U32(inside % height)), U32(inside // height)
        return I64(item), I64(segment), I64(row) * BM, I64(column) * BN, I64(item) * I64(tiles) + I64(tile)

    return place
