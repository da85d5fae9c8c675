"""C = alpha * A @ B + beta * X on a CUDA device: one SIMT kernel, tiles in shared memory and in registers.

Order of summation as on the CPU, to the bit: segments of 4096 steps of k, each one chain of fused multiply-adds from
zero, added in order; then fma(beta, x, alpha*sum), once. A thread keeps its elements' chains in registers, so that no
tile size shows in the result. A segment is a launch of its own.

Operands are read through their strides and never copied; a temporary is made only where out really overlaps an input.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numba import cuda, types

from ..problem import GemmProblem
from ..strides import broadcast_strides
from .elementwise import copy, fill, multiply
from .launch import Kernel, elements, empty, inlined, launch, multiprocessors, pointer
from .memory import clash, same
from .stage import AT, SHORT, stager
from .tiles import PIECE, SEGMENT, WARP_M, WARP_N, Tiles, default, illegal

DTYPES = "float32", "float64"
BAND = 8  # tile rows that are worked through column by column, so that blocks at work together share B in L2


@functools.cache
def kernel(tiles: Tiles, dtype: str) -> Kernel:
    """The GEMM kernel for a dtype and tiles; sizes in capitals are constants in it, and its loops over them unroll."""
    BM, BN, BK, TM, TN = tiles.bm, tiles.bn, tiles.bk, tiles.tm, tiles.tn
    REAL = types.float32 if dtype == "float32" else types.float64
    WIDE = PIECE // np.dtype(dtype).itemsize  # elements of a piece, by which slices are padded against bank conflicts
    DOWN, ACROSS = BM // TM, BN // TN  # threads
    JUMP_M, JUMP_N = (DOWN - 1) * WIDE + 1, (ACROSS - 1) * WIDE + 1  # from a thread's last line of a piece to its next
    PITCH_A, PITCH_B = BM + WIDE, BN + WIDE
    SIZE_A, SIZE_B = 2 * BK * PITCH_A, 2 * BK * PITCH_B
    HELD_A, HELD_B = BM * BK // tiles.threads, BN * BK // tiles.threads
    place_a, fetch_a, store_a = stager(BM, BK, tiles.threads, PITCH_A)
    place_b, fetch_b, store_b = stager(BN, BK, tiles.threads, PITCH_B)

    @inlined
    def step(chain, slices_a, slices_b, depth, i0, j0):
        """chain += A[i0:, depth] * B[depth, j0:], one step of k"""
        column, row = cuda.local.array(TM, REAL), cuda.local.array(TN, REAL)
        for i in range(TM):
            column[i] = slices_a[AT(depth * PITCH_A + i0 + i // WIDE * DOWN * WIDE + i % WIDE)]
        for j in range(TN):
            row[j] = slices_b[AT(depth * PITCH_B + j0 + j // WIDE * ACROSS * WIDE + j % WIDE)]
        for i in range(TM):
            for j in range(TN):
                chain[i, j] = cuda.fma(column[i], row[j], chain[i, j])

    @inlined
    def blend(line, scale, x, place, step, left):
        """line += scale * x[place:], fused; places are running sums, as in stage.py."""
        for j in range(TN):
            if j // WIDE * ACROSS * WIDE + j % WIDE < left:
                line[j] = cuda.fma(scale, x[place], line[j])
            place += step if (j + 1) % WIDE != 0 else step * JUMP_N

    def gemm(m, n, k, c, rsc, csc, x, rsx, csx, a, rsa, csa, b, rsb, csb, total, rst, cst, beta, alpha, reads_x, adds):
        slices_a = cuda.shared.array(SIZE_A, REAL, alignment=16)  # A[row:row+BM, p:p+BK], transposed
        slices_b = cuda.shared.array(SIZE_B, REAL, alignment=16)  # B[p:p+BK, column:column+BN]
        chain = cuda.local.array((TM, TN), REAL)
        next_a, next_b = cuda.local.array(HELD_A, REAL), cuda.local.array(HELD_B, REAL)

        # Which tile of C: down a band of BAND tile rows, then the next column of tiles.
        rows, columns, block = (m + BM - 1) // BM, (n + BN - 1) // BN, cuda.blockIdx.x
        band = block // (BAND * columns) * BAND
        height, inside = min(BAND, rows - band), block % (BAND * columns)
        row, column = (band + inside % height) * BM, inside // height * BN

        # Which part of the tile: a warp's lanes stand 4 x 8, warps row by row.
        thread = cuda.threadIdx.x
        warp, lane = thread // 32, thread % 32
        i0 = SHORT((warp // (ACROSS // WARP_N) * WARP_M + lane // WARP_N) * WIDE)
        j0 = SHORT((warp % (ACROSS // WARP_N) * WARP_N + lane % WARP_N) * WIDE)

        # Beyond k, A is 0 and B is -0: their product -0 is the one number that changes no sum, not even a chain at -0.
        at_a, at_b = place_a(thread, rsa, csa), place_b(thread, csb, rsb)
        fetch_a(next_a, a, rsa, csa, at_a, row, m, 0, k, REAL(0.0))
        fetch_b(next_b, b, csb, rsb, at_b, column, n, 0, k, REAL(-0.0))
        store_a(slices_a, 0, next_a, at_a)
        store_b(slices_b, 0, next_b, at_b)
        cuda.syncthreads()
        for i in range(TM):
            for j in range(TN):
                chain[i, j] = REAL(0.0)
        half = 0
        for p in range(SHORT(0), k, SHORT(BK)):
            more = p + BK < k
            if more:
                fetch_a(next_a, a, rsa, csa, at_a, row, m, p + BK, k, REAL(0.0))
                fetch_b(next_b, b, csb, rsb, at_b, column, n, p + BK, k, REAL(-0.0))
            for q in range(0, BK, 2):
                step(chain, slices_a, slices_b, half * BK + q, i0, j0)
                step(chain, slices_a, slices_b, half * BK + q + 1, i0, j0)
            if more:
                half = 1 - half
                store_a(slices_a, half, next_a, at_a)
                store_b(slices_b, half, next_b, at_b)
                cuda.syncthreads()

        # C = beta*X + alpha*(total + chain), row by row. Rows move up one place instead of being indexed: an index that
        # is not constant would send chain to memory, and unrolling this would take more registers than there are.
        line, place = cuda.local.array(TN, REAL), (row + i0) * rsc + (column + j0) * csc
        place_x, place_total = (row + i0) * rsx + (column + j0) * csx, (row + i0) * rst + (column + j0) * cst
        for i in range(TM):
            if row + i0 + i // WIDE * DOWN * WIDE + i % WIDE < m:
                for j in range(TN):
                    line[j] = chain[0, j]
                if adds:
                    blend(line, REAL(1.0), total, place_total, cst, n - column - j0)
                for j in range(TN):
                    line[j] = alpha * line[j]
                if reads_x:
                    blend(line, beta, x, place_x, csx, n - column - j0)
                at = place
                for j in range(TN):
                    if j // WIDE * ACROSS * WIDE + j % WIDE < n - column - j0:
                        c[at] = line[j]
                    at += csc if (j + 1) % WIDE != 0 else csc * JUMP_N
            rows = 1 if (i + 1) % WIDE != 0 else JUMP_M
            place, place_x, place_total = place + rows * rsc, place_x + rows * rsx, place_total + rows * rst
            for above in range(TM - 1):
                for j in range(TN):
                    chain[above, j] = chain[above + 1, j]

    at = types.CPointer(REAL)
    matrix = (at, types.int64, types.int64)
    signature = (types.int64, types.int64, SHORT) + matrix * 5 + (REAL, REAL, types.int64, types.int64)
    name = f"gemm {dtype} {tiles}"
    return Kernel(name, gemm, signature, tiles.threads, tiles.blocks(np.dtype(dtype).itemsize))


def gemm(out, x, a, b, beta, alpha, tiles: Tiles | None = None) -> None:
    """out = alpha * a @ b + beta * x after all checks; x may be None or expand to out's shape; beta == 0 ignores x."""
    (m, n), k = out.shape, a.shape[1]
    if str(a.dtype) not in DTYPES or a.dtype != out.dtype:
        raise TypeError(f"no kernel on CUDA multiplies {a.dtype} to {out.dtype}; {' and '.join(DTYPES)} have one")
    if out.size == 0:
        return
    x = None if beta == 0 else x
    if k == 0 or alpha == 0:
        fill(out, 0) if x is None else multiply(out, x, beta)
        return
    xs = None if x is None else broadcast_strides((m, n), x.shape, x.strides)
    if clash(out, a) or clash(out, b) or (x is not None and not same(out, x, xs) and clash(out, x)):
        temporary = empty((m, n), out)
        gemm(temporary, x, a, b, beta, alpha, tiles)
        copy(out, temporary)
        return
    swap = abs(out.strides[0]) < abs(out.strides[1])  # C' = B' A': stored along the contiguous side
    problem = GemmProblem(n, m, k, str(out.dtype)) if swap else GemmProblem(m, n, k, str(out.dtype))
    tiles = tiles or default(problem, multiprocessors())
    if reasons := illegal(tiles, problem.dtype):
        raise ValueError("tiles cannot be used: " + "; ".join(reasons))
    # The sum of finished segments waits in out, unless x is read from there at the end.
    total = empty((m, n), out) if k > SEGMENT and x is not None and clash(out, x) else out
    for start in range(0, k, SEGMENT):
        if start + SEGMENT < k:
            _multiply(total, None, a, b, total, 0, 1, start, tiles, problem, swap)
        else:
            _multiply(out, x, a, b, total, beta, alpha, start, tiles, problem, swap)


def _multiply(c, x, a, b, total, beta, alpha, start, tiles, problem, swap) -> None:
    """c = beta*x + alpha*(total + a[:, start:] @ b[start:]), one segment of k long; without total where start is 0."""

    def matrix(array, strides, skipped=0):
        """(pointer, strides in elements) after `skipped` bytes."""
        row, column = elements(array, strides)
        return (pointer(array, skipped), column, row) if swap else (pointer(array, skipped), row, column)

    left, right = matrix(a, a.strides, start * a.strides[1]), matrix(b, b.strides, start * b.strides[0])
    left, right = (right, left) if swap else (left, right)
    target, sums = matrix(c, c.strides), matrix(total, total.strides)
    addend = target if x is None else matrix(x, broadcast_strides(c.shape, x.shape, x.strides))
    real = c.dtype.type
    blocks = -(-problem.m // tiles.bm) * -(-problem.n // tiles.bn)
    launch(kernel(tiles, problem.dtype), blocks, problem.m, problem.n, np.int32(min(SEGMENT, problem.k - start)),
           *target, *addend, *left, *right, *sums, real(beta), real(alpha), int(x is not None), int(start > 0),
           stream=c.stream)  # fmt: skip


def addmm(out, self, mat1, mat2, beta, alpha, mode=None, conj=None) -> None:
    """out = beta * self + alpha * (mat1 @ mat2)."""
    gemm(out, self, mat1, mat2, beta, alpha)


def mm(out, self, mat2, mode=None, conj=None) -> None:
    """out = self @ mat2."""
    gemm(out, None, self, mat2, 0, 1)


@dataclass(frozen=True)
class Choice:
    """What a product will run on: prints as `simt 128x128x8 8x8, 4 blocks of 256 threads`."""

    problem: GemmProblem
    tiles: Tiles

    @property
    def blocks(self) -> int:
        return -(-self.problem.m // self.tiles.bm) * -(-self.problem.n // self.tiles.bn)

    def __str__(self) -> str:
        return f"simt {self.tiles}, {self.blocks} block{'s' * (self.blocks > 1)} of {self.tiles.threads} threads"


def describe(m: int, n: int, k: int, dtype: str = "float32") -> Choice:
    """The tiles that an m x k by k x n product with a C-ordered out takes on the current device; nothing runs."""
    problem = GemmProblem(m, n, k, str(np.dtype(dtype)))
    return Choice(problem, default(problem, multiprocessors()))
