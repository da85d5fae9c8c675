"""Rows of a matrix against a vector, both contiguous along k, of every dtype: c[i] = the sum of a[i, p] * v[p].

Chains are those of dot.py, 64 of them; integers have one sum in any order.
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.address import set_word, word
from ...jit.cache import compiled
from ...jit.kind import BYTES, SIGNLESS, Kind
from ...jit.tile import Tile
from ...jit.vector import width_bits
from ..gemm.kinds import kind_of
from ..gemv.dot import inner


def rows(name: str, conj: str) -> int:
    """The kernel of a dtype: void(m, k, a, rsa, v, c, rsc), strides in elements."""
    return _rows_of_words() if name in ("int64", "uint64") else _rows(_one_by_one(name, conj))


@functools.cache
def _rows(kind: Kind) -> int:
    tile = Tile(kind.word, 1, 1, width_bits() // 8 // BYTES[kind.word], kind)
    one = getattr(np, kind.chain)

    def run(m, k, a, rsa, v, c, rsc):
        for i in range(m):
            inner(tile, k, a + i * rsa * tile.size_a, 1, v, 1, c + i * rsc * tile.size_c, one(1))

    return compiled(run, f"void({', '.join(['int64'] * 7)})", f"inner_rows_{tile}")


def _words(m, k, a, rsa, v, c, rsc):
    for i in range(m):
        row, total = a + 8 * i * rsa, 0
        for p in range(k):
            total += word(row + 8 * p) * word(v + 8 * p)
        set_word(c + 8 * i * rsc, total)


@functools.cache
def _rows_of_words() -> int:
    """The same of 64-bit integers, which LLVM vectorises by itself."""
    return compiled(_words, f"void({', '.join(['int64'] * 7)})", "inner_rows_int64", loops=True)


@functools.cache
def _one_by_one(name: str, conj: str) -> Kind:
    """The kind of a product whose operands are read as they lie, a chain of each element."""
    kind = kind_of(name, name, name, conj)
    if kind.group == 1:
        return kind
    name = SIGNLESS.get(name, name)
    return Kind(name, name, "int32", name, "mul")
