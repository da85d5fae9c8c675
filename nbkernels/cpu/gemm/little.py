"""Products of few whole numbers as they lie, without panels."""

from __future__ import annotations

import functools

import numpy as np

from ...jit.abi.address import peek, poke
from ...jit.compile.cache import compiled
from ...jit.ir.kind import BYTES, Kind
from ...jit.ir.tile import Tile
from .context import WORDS

# Outputs of a product of whole numbers, and multiply-adds, up to which panels cost more than they save: 10000x3x3x3 of
# int32 by panels 2250 us, so 550.
OUTPUTS, LITTLE = 16, 12**3


@functools.cache
def little(size: int) -> int:
    """A product of few whole numbers of so many bytes, as they lie: void(words, beta, alpha). They wrap, so that signs
    and the order of terms do not matter."""
    tile = Tile(f"int{8 * size}", 1, 1, 1)
    element = getattr(np, tile.dtype)

    def run(f, beta, alpha):
        for i in range(f.m):
            for j in range(f.n):
                total, x, y = 0, f.a + i * f.rsa * size, f.b + j * f.csb * size
                for _ in range(f.k):
                    total += peek(tile, x) * peek(tile, y)
                    x, y = x + f.csa * size, y + f.rsb * size
                poke(tile, f.c + (i * f.rsc + j * f.csc) * size, element(total))

    return compiled(run, f"void({WORDS}, float64, float64)", f"gemm_little_{tile}")


def little_of(kind: Kind) -> int:
    """`little` for a kind of whole numbers of one width throughout; 0 for others."""
    whole = kind.chain.startswith("int") and "bool" not in (kind.a, kind.b, kind.out)
    return little(BYTES[kind.out]) if whole and BYTES[kind.a] == BYTES[kind.b] == BYTES[kind.out] else 0
