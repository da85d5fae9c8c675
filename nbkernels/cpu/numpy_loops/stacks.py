"""Stacks of small matrices of float32 and float64 for NumPy's matmul, which calls BLAS for each: by turns.py's kernels.

1000 products of 8x8x8 float32: NumPy 550 us, so 77 (AVX2, 2026-11).
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.address import call, number, pointer, scratch
from ...jit.cache import compiled, jit
from ..gemm import turns
from ..gemm.blocking import small
from ..gemm.turns import STACK
from ..runtime import threads

FEW, MOST, WORK = 8, 32, 24**3  # products at least; rows, columns and steps of one, and multiply-adds, at most
GAIN = 80**3  # multiply-adds of a stack from which threads share it
SIZE, TASKS, stack_at = STACK.bytes, 8 * STACK["tasks"], STACK.pointer()
A, B, C = (STACK[name] for name in "abc")
TINY, SMALL, LAUNCH, FLAGGED, FACTORS = range(5)  # what stands in the table
BY, CONTEXT = range(2)


@jit(forceinline=True)
def suits(many, m, n, k):
    """Whether a stack is for these kernels: others BLAS does in the same time, or rows and columns."""
    return many >= FEW and min(m, n) > 1 and max(m, max(n, k)) <= MOST and m * n * k <= WORK


@functools.cache
def stacks(dtype: str) -> int:
    """void(what products.py knows of the stack, in bytes; table; what its launches read)."""
    tile = small(dtype)

    def run(stack, table, launch):
        q, t, w = pointer(stack), pointer(table), pointer(launch)
        size, address = tile.itemsize, scratch(SIZE)
        f = stack_at(address)
        f.next, f.x, f.rooms = 0, 0, 0
        f.count, f.m, f.n, f.k = q[0], q[1], q[2], q[3]
        for operand, at in ((A, 4), (B, 8), (C, 12)):
            f[operand], f[operand + 1] = q[at], q[at + 3] // size
            f[operand + 2], f[operand + 3] = q[at + 1] // size, q[at + 2] // size
        one = f.m * f.n * f.k
        f.each = turns.job(tile, f)
        f.scalars = t[FACTORS]
        w[BY] = t[TINY if turns.chosen(tile, f, False) == turns.TINY else SMALL]
        w[CONTEXT] = address
        pool = threads.pool_at(t[LAUNCH])
        if f.count * one > GAIN and pool.share != 0 and number(pool.count) > 1:
            threads.unheld(t[LAUNCH], t[FLAGGED], launch, address + TASKS)
        else:
            call(t[FLAGGED], launch, 0)

    return compiled(run, "void(int64, int64, int64)", f"inner_stacks_{tile}")


@functools.cache
def table(dtype: str, flagged: int):
    """What `stacks` reads of the process: kernels, threads.WORDS, the jobs that keep flags, alpha = 1 and beta = 0."""
    tile = small(dtype)
    factors = np.array([1, 0], dtype)
    words = [turns.by_tiny(tile), turns.by_small(tile), threads.WORDS, flagged, factors.ctypes.data]
    return np.array(words, np.int64), factors
