"""Rows of a matrix against a vector, both contiguous along k, of every dtype: c[i] = the sum of a[i, p] * v[p].

Chains are those of dot.py, 64 of them; integers have one sum in any order.
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.compile.cache import compiled
from ..gemv.dot import inner, tile_of


def rows(name: str, conj: str) -> int:
    """The kernel of a dtype: void(m, k, a, rsa, v, c, rsc), strides in elements."""
    return _rows(tile_of(name, conj))


@functools.cache  # signed and unsigned numbers have one
def _rows(tile) -> int:
    one = getattr(np, tile.kind.chain)

    def run(m, k, a, rsa, v, c, rsc):
        for i in range(m):
            inner(tile, k, a + i * rsa * tile.size_a, 1, v, 1, c + i * rsc * tile.size_c, one(1))

    return compiled(run, f"void({', '.join(['int64'] * 7)})", f"inner_rows_{tile}")
