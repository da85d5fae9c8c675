"""A product of any size by one thread that needs nothing but addresses: what jitted code of others calls.

C is cut into strips of STRIP rows and one register tile's columns. A strip goes through all of k before the next: its
chains and sums stay on the stack, pieces of B are packed there, A is read in place.
"""

from __future__ import annotations

import functools

from ...jit.abi.address import scratch
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit
from .blocking import SEGMENT, small
from .context import WORDS
from .matrix import matrices, sub
from .microkernel import STRIDED, every, ukernel
from .pack import pack
from .paths import PANEL
from .store import PARTIAL, finish

STRIP = 96  # rows: a piece of B is packed once for as many
PIECE = 256  # steps of k: with 128 bytes of B each, 32 KiB
PACKED = PANEL // 2  # bytes of stack for them: a PANEL is 512
PLANE = 16 << 10  # bytes of a strip's chains
PRODUCT = f"void({WORDS}, float64, float64)"


@jit(forceinline=True)
def chains(tile, h, w, k, a, b, part):
    """part (h x w, rows tile.nr apart) = the chains of one segment: h <= STRIP, w <= tile.nr, k <= SEGMENT."""
    size, panel = tile.itemsize, scratch(PACKED)
    for p in range(0, k, PIECE):
        kb, (bp, rsb, csb) = min(PIECE, k - p), sub(b, p, 0, size)
        pack(tile, bp, csb, rsb, w, kb, panel, tile.nr)
        for i in range(0, h, tile.mr):
            (ai, rsa, csa), t = sub(a, i, p, size), part + i * tile.nr * size
            ukernel(tile, min(tile.mr, h - i), ai, rsa, csa, panel, tile.nr, kb, t, tile.nr, t, tile.nr, w, p > 0,
                    PARTIAL, 0, 0, 0, 0)  # fmt: skip


@functools.cache
def native(dtype: str) -> int:
    """C = alpha*A@B + beta*X: void(words, beta, alpha), of the words (context.py) sizes and matrices.

    C shares no memory with A and B, and with X only where it is X. All sizes are at least 1.
    """
    tile = small(dtype)

    def product(f, beta, alpha):
        size, (a, b, c, x), part, total = tile.itemsize, matrices(f), scratch(PLANE), scratch(PLANE)
        for i in range(0, f.m, STRIP):
            h = min(STRIP, f.m - i)
            for j in range(0, f.n, tile.nr):
                w, cij, xij = min(tile.nr, f.n - j), sub(c, i, j, size), sub(x, i, j, size)
                for p in range(0, f.k, SEGMENT):
                    length = min(SEGMENT, f.k - p)
                    chains(tile, h, w, length, sub(a, i, p, size), sub(b, p, j, size), part)
                    parts, sums, last = (part, tile.nr), (total, tile.nr), p + length == f.k
                    finish(tile, (h, w), parts, sums, p == 0, last, cij, xij, alpha, beta)

    every(tile, STRIDED)
    return compiled(product, PRODUCT, f"gemm_native_{tile}")
