"""Stacks of small matrices of float32 and float64 for NumPy's matmul, which calls BLAS for each, by stacks_float.py.

1000 products of 8x8x8 float32: NumPy 550 us, so 77 (AVX2, 2026-11).
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.abi.address import invoke, scratch
from ...jit.abi.record import Record
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit
from ..gemm import stacks_float
from ..gemm.blocking import small
from ..gemm.stacks_float import STACK
from ..gemm.tiny import every
from ..runtime import threads

FEW, MOST, WORK = 8, 32, 24**3  # products at least; rows, columns and steps of one, and multiply-adds, at most
GAIN = 80**3  # multiply-adds of a stack from which threads share it
SIZE, TASKS, stack_at = STACK.bytes, 8 * STACK["tasks"], STACK.pointer()
# A stack of products: how many, their sizes, each operand's address, row and column strides and step from one to the
# next, all in bytes. What such stacks read of the process.
STACKED = Record("Stacked", "count rows columns steps a ra ca sa b rb cb sb c rc cc sc")
TABLE = Record("Table", "tiny small launch factors")
stacked_at, table_at = STACKED.pointer(), TABLE.pointer()


@jit(forceinline=True)
def suits(many, m, n, k):
    """Whether a stack is for these kernels: others BLAS does in the same time, or rows and columns."""
    return many >= FEW and min(m, n) > 1 and max(m, max(n, k)) <= MOST and m * n * k <= WORK


@functools.cache
def stacks(dtype: str) -> int:
    """void(what products.py knows of the stack, in bytes; table)."""
    tile = small(dtype)

    def run(stack, table):
        q, t = stacked_at(stack), table_at(table)
        size, address = tile.itemsize, scratch(SIZE)
        f = stack_at(address)
        f.next, f.x = 0, 0
        f.count, f.m, f.n, f.k = q.count, q.rows, q.columns, q.steps
        f.a, f.sa, f.rsa, f.csa = q.a, q.sa // size, q.ra // size, q.ca // size
        f.b, f.sb, f.rsb, f.csb = q.b, q.sb // size, q.rb // size, q.cb // size
        f.c, f.sc, f.rsc, f.csc = q.c, q.sc // size, q.rc // size, q.cc // size
        one = f.m * f.n * f.k
        f.each = stacks_float.job(tile, f)
        f.scalars = t.factors
        kernel = t.tiny if stacks_float.chosen(tile, f, False) == stacks_float.TINY else t.small
        pool = threads.pool_at(t.launch)
        if f.count * one > GAIN and pool.share != 0 and threads.own(pool) > 1:
            threads.unheld(t.launch, kernel, address, address + TASKS)
        else:
            invoke(kernel, (address, 0))

    return compiled(run, "void(int64, int64)", f"inner_stacks_{tile}")


@functools.cache
def table(dtype: str):
    """Make what `stacks` reads of the process: kernels, threads.WORDS, alpha = 1 and beta = 0."""
    tile = small(dtype)
    factors = np.array([1, 0], dtype)
    t = TABLE.array()
    every(tile)  # loops of NumPy cannot ask for more
    t.tiny, t.small = (stacks_float.WAYS[way][1](tile) for way in (stacks_float.TINY, stacks_float.ONE_BLOCK))
    t.launch, t.factors = threads.WORDS, factors.ctypes.data
    return t, factors
