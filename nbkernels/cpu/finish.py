"""How a chain of fused multiply-adds ends as an element of C."""

from __future__ import annotations

from ..jit.address import fma, peek, poke
from ..jit.cache import jit

PARTIAL, PLAIN, REGISTERS, MEMORY = 0, 1, 2, 3  # the micro-kernel's stops, and finish() below


@jit(inline="always")
def finish(tile, h, w, part, rsp, total, rst, first, last, c, rsc, csc, x, rsx, csx, alpha, beta):
    """End a segment of an h x w tile, its chain at `part`: C = fma(beta, X, alpha*(total + chain)), any strides."""
    size = tile.itemsize
    for i in range(h):
        for j in range(w):
            value = peek(tile, part + (i * rsp + j) * size)
            if not first:
                value = peek(tile, total + (i * rst + j) * size) + value
            if not last:
                poke(tile, total + (i * rst + j) * size, value)
                continue
            value = alpha * value
            if x != 0:
                value = fma(beta, peek(tile, x + (i * rsx + j * csx) * size), value)
            poke(tile, c + (i * rsc + j * csc) * size, value)


@jit(inline="always")
def ending(csc, x, csx, alpha):
    """How a finished chain becomes C: in registers where a row of C (and X) is contiguous, else through memory."""
    if csc == 1 and x == 0 and alpha == 1:
        return PLAIN
    if csc == 1 and x != 0 and csx == 1:
        return REGISTERS
    return MEMORY
