"""Products of complex and of whole numbers with one column or one row: the matrix is read once, as it lies.

Each output is one chain, as in every product. Threads take blocks of outputs, whose chains stay in L1.
"""

from __future__ import annotations

import functools

from ...jit.abi.address import peek, scratch
from ...jit.compile.cache import compiled
from ..gemm.blocking import SEGMENT
from ..gemm.context import WORDS, even, matrices, part, sub
from ..gemm.store import finish
from .jobs import sums_of

BLOCK = 4 * SEGMENT  # bytes of stack for the chains of a block, and for their sums


@functools.cache
def work(tile) -> int:
    """The blocks of one thread: void(a product's words, task), for kinds whose first operand is the matrix: A with one
    column, B' with one row."""
    most = BLOCK // tile.size_t

    def run(f, task):
        (a, v, c, x), m, size = matrices(f), f.m, tile.size_t
        if f.n > 1:
            m, a, v = f.n, (f.b, f.csb, f.rsb), (f.a, f.csa, 0)
            c, x = (f.c, f.csc, 0), (f.x, f.csx, 0)
        direct = f.k <= SEGMENT and f.x == 0 and f.unit != 0 and c[1] == 1  # sums are results
        chains, sums, held = scratch(BLOCK), scratch(BLOCK), m * f.k * size
        alpha, beta = peek(tile, f.scalars), peek(tile, f.scalars + size)
        each = even(part(m, f.tasks, tile.lanes), most, tile.lanes)  # as many blocks for each thread
        for i in range(task * each, m, f.tasks * each):
            h, ci, xi = min(each, m - i), sub(c, i, 0, size), sub(x, i, 0, size)
            for p in range(0, f.k, SEGMENT):
                steps = min(SEGMENT, f.k - p)
                t = ci[0] if direct else chains
                sums_of(tile, h, sub(a, i, p, size), sub(v, p, 0, size), steps, t, held)
                if not direct:
                    finish(tile, (h, 1), (chains, 1), (sums, 1), p == 0, p + steps == f.k, ci, xi, alpha, beta)

    return compiled(run, WORDS.kernel, f"gemv_{tile}")
