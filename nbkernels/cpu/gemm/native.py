"""A product of any size by one thread that needs nothing but addresses: what jitted code of others calls.

C is cut into strips of STRIP rows and one register tile's columns. A strip goes through all of k before the next: its
chains and sums stay on the stack, pieces of B are packed there, A is read in place.
"""

from __future__ import annotations

import functools

from ...jit.address import scratch
from ...jit.cache import compiled, jit
from .blocking import SEGMENT, small
from .microkernel import STRIDED, every, ukernel
from .pack import pack
from .paths import PANEL
from .store import PARTIAL, finish

STRIP = 96  # rows: a piece of B is packed once for as many
PIECE = 256  # steps of k: with 128 bytes of B each, 32 KiB
PACKED = PANEL // 2  # bytes of stack for them: a PANEL is 512
PLANE = 16 << 10  # bytes of a strip's chains


@jit(forceinline=True)
def chains(tile, h, w, k, a, rsa, csa, b, rsb, csb, part):
    """part (h x w, rows tile.nr apart) = the chains of one segment: h <= STRIP, w <= tile.nr, k <= SEGMENT."""
    size, panel = tile.itemsize, scratch(PACKED)
    for p in range(0, k, PIECE):
        kb = min(PIECE, k - p)
        pack(tile, b + p * rsb * size, csb, rsb, w, kb, panel, tile.nr)
        for i in range(0, h, tile.mr):
            t = part + i * tile.nr * size
            ukernel(tile, min(tile.mr, h - i), a + (i * rsa + p * csa) * size, rsa, csa, panel, tile.nr, kb, t, tile.nr,
                    t, tile.nr, w, p > 0, PARTIAL, 0, 0, 0, 0)  # fmt: skip


@functools.cache
def native(dtype: str) -> int:
    """C = alpha*A@B + beta*X: void(m, n, k, a, rsa, csa, b, rsb, csb, c, rsc, csc, x, rsx, csx, beta, alpha).

    Addresses and strides, in elements, are int64, beta and alpha float64. x is 0 for no X. C shares no memory with A
    and B, and with X only where it is X. All sizes are at least 1.
    """
    tile = small(dtype)

    def product(m, n, k, a, rsa, csa, b, rsb, csb, c, rsc, csc, x, rsx, csx, beta, alpha):
        size, part, total = tile.itemsize, scratch(PLANE), scratch(PLANE)
        for i in range(0, m, STRIP):
            h = min(STRIP, m - i)
            for j in range(0, n, tile.nr):
                w = min(tile.nr, n - j)
                cij, xij = c + (i * rsc + j * csc) * size, x + (i * rsx + j * csx) * size if x != 0 else 0
                for p in range(0, k, SEGMENT):
                    length = min(SEGMENT, k - p)
                    chains(tile, h, w, length, a + (i * rsa + p * csa) * size, rsa, csa, b + (p * rsb + j * csb) * size,
                           rsb, csb, part)  # fmt: skip
                    finish(tile, h, w, part, tile.nr, total, tile.nr, p == 0, p + length == k, cij, rsc, csc, xij, rsx,
                           csx, alpha, beta)  # fmt: skip

    every(tile, STRIDED)
    return compiled(product, f"void({', '.join(['int64'] * 15)}, float64, float64)", f"gemm_native_{tile}")
