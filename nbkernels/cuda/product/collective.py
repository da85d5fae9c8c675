"""A tile of C by the matrix units of a block's warps together, as calls in a kernel of one's own (cuda/block.py).

What kernels of tiers M and D are made of: the loop over k, whose slices come by plain loads, from global or from shared
memory, and the epilogue.
"""

from __future__ import annotations

import functools

from numba import cuda, types

from ...jit.ir.kind import Kind
from ..kernels.chain import word
from ..kernels.functions import inlined
from . import ptx
from .atom import chains
from .config import WARP, GemmConfig, legal
from .epilogue import epilogue
from .layout import Access, part, shared
from .mainloop import atom_of, lanes, mainloop
from .variant import Variant

MOST = 48 << 10  # bytes of shared memory that a kernel can declare
CC = {"M": (8, 0), "D8": (8, 0), "D": (9, 0)}
I64 = types.int64


def variant(config: GemmConfig, kind: Kind) -> Variant:
    """Of any strides: rows of A and of B are contiguous in the fastest case."""
    return Variant(config, kind, *(Access(order, 1, plain=True, generic=True) for order in "kl"), 1, True)


def size(config: GemmConfig, kind: Kind) -> int:
    """Bytes of shared memory."""
    made = variant(config, kind)
    return shared(config, kind.chain, made.a, made.b, made.held)


def fragment(config: GemmConfig, kind: Kind) -> tuple[int, int]:
    """Shape of a thread's chains: pairs of neighbours in two rows, 8 rows apart, of each 16 x 8 elements."""
    mine = part(config, kind.chain)
    return mine.tm // 2, 2 * mine.tn


def refused(config: GemmConfig, kind: Kind) -> list[str]:
    """Why a block cannot make the tile, one reason a line; empty if it can."""
    if config.tier not in CC:
        return [f"tier {config.tier!r} is none of {', '.join(CC)}"]
    found = legal(config, kind.a if config.tier == "M" else kind.chain, CC[config.tier])
    if not found and config.tier == "M" and kind.a != kind.b and kind.chain != "int32":
        found = [f"tier M multiplies one dtype, not {kind.a} by {kind.b}"]
    if not found and (bytes_ := size(config, kind)) > MOST:
        found = [f"{bytes_} bytes of shared memory are more than the {MOST} that a kernel can declare"]
    return found


@functools.cache
def functions(config: GemmConfig, kind: Kind):
    """zeros(), scratch(), multiply(chains, base, thread, a, m, b, n, k), store(chains, thread, c, m, n, beta, alpha,
    reads) and place(thread, i, j); a, b and c are (pointer, strides of rows and columns in elements)."""
    made = variant(config, kind)
    SHAPE, WORD, BYTES = fragment(config, kind), word(kind), size(config, kind)
    mine = part(config, kind.chain)
    WN, ACROSS, WIDE, COUNT = mine.wn, mine.across, SHAPE[1], SHAPE[0] * SHAPE[1]
    loop, finish, (clear, *_) = mainloop(made, True), epilogue(made), chains(atom_of(made), WARP * config.warps)
    at = lanes(made)

    @inlined
    def zeros():
        sums = cuda.local.array(SHAPE, WORD)
        clear(sums)
        return sums

    @inlined
    def scratch():
        return cuda.shared.array(BYTES, types.uint8, alignment=128)

    @inlined
    def multiply(sums, scratch, thread, a, m, b, n, k):
        base = ptx.shared_address(scratch)
        loop(sums, base, thread, (a[0], a[1], a[2], I64(0)), m, (b[0], b[2], b[1], I64(0)), n, k)

    @inlined
    def store(sums, thread, c, m, n, beta, alpha, reads):
        line, to = cuda.local.array(COUNT, WORD), (c[0], c[1], c[2], I64(0))
        for q in range(COUNT):  # registers that change their names
            line[q] = sums[q // WIDE, q % WIDE]
        finish(line, thread, to, to, I64(0), I64(0), (m, n, reads), beta, alpha, ((), (), I64(0)))

    @inlined
    def place(thread, i, j):
        row, _, pair = at(thread)
        column = thread // WARP % ACROSS * WN + 2 * pair
        return I64(row) + 16 * i + j % 4 // 2 * 8, I64(column) + j // 4 * 8 + j % 2

    return zeros, scratch, multiply, store, place
