"""C = alpha * A @ B + beta * X on a CUDA device.

From compute capability 8.0 on product/ computes it. Here is what comes before that, and the kernel of older devices, of
the simulator and of tiles that a call asks for: SIMT, each of whose blocks makes a tile (kernels/collective.py).

Order of summation as on the CPU, to the bit: segments of 4096 steps of k, each one chain of fused multiply-adds from
zero, added in order; then fma(beta, x, alpha*sum), once. A thread keeps its elements' chains in registers, so that no
tile size shows in the result. A segment is a launch of its own. What a step is in each dtype stands in chain.py.

Operands are read through their strides and never copied; a temporary is made only where out really overlaps an input.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from ..jit.ir.kind import BYTES, Kind
from ..modes import asked
from ..problem import GemmProblem
from ..strides import broadcast_strides
from .call import settled
from .kinds import kind_of
from .launch import KERNELS, Kernel, capability, elements, launch, multiprocessors, pointer, stored
from .memory import clash, empty, item
from .product.gemm import factor, multiply
from .tiles import SEGMENT, Tiles, default, given
from .tuned import winner


@functools.cache
def kernel(tiles: Tiles, kind: Kind) -> Kernel:
    """The SIMT kernel for a kind and tiles."""
    return Kernel(f"{KERNELS}.gemm:make", (tiles, kind), tiles.threads, tiles.blocks(BYTES[kind.chain]))


def gemm(
    out, x, a, b, beta, alpha, tiles: Tiles | None = None, conj: str = "", mode: str | None = None, after=None
) -> None:
    """out = alpha * a @ b + beta * x after all checks, of matrices or of stacks of them; or of that what an
    epilogue.After makes of it.

    x may be None or expand to out's shape; beta == 0 ignores it.
    """
    engine = tiles is None and capability() >= (8, 0)
    if engine and mode is None:
        mode = asked(a.dtype.name, of_gpus=True)
    if after and not (engine and after.fits((x, a, b))):
        product = after.room(out)
        gemm(product, x, a, b, beta, alpha, tiles, conj, mode)
        after.over(out, product)
        return
    names = a.dtype.name, b.dtype.name, after.dtype if after else out.dtype.name
    kind = kind_of(*names, conj, None if engine and mode == "tf32" else mode)
    if out.size == 0:
        return
    tiles = None if tiles is None else given(tiles, kind.chain)
    with settled(out, x, (a, b), beta, alpha, tuple(a.shape)[-1]) as (target, x, alpha, k):
        if engine:
            multiply(target, x, a, b, beta, alpha, kind, k, mode=mode, ending=after and after.ending(target))
            return
        if len(out.shape) == 2:
            by_segments(target, x, a, b, beta, alpha, kind, k, tiles)
        else:
            for i in range(out.shape[0]):
                addend = item(x, i if x.shape[0] > 1 else 0) if x is not None and len(x.shape) == 3 else x
                by_segments(item(target, i), addend, item(a, i), item(b, i), beta, alpha, kind, k, tiles)


def by_segments(out, x, a, b, beta, alpha, kind: Kind, k: int, tiles: Tiles | None) -> None:
    """The product of two matrices by the SIMT kernel, a launch for each segment of k."""
    m, n = out.shape
    swap = abs(out.strides[0]) < abs(out.strides[1])  # C' = B' A': stored along the contiguous side
    problem, kind = GemmProblem(*((n, m) if swap else (m, n)), k, kind.chain), kind.swapped() if swap else kind
    tiles = tiles or winner(out, a, b, kind) or default(problem, multiprocessors())
    partial = replace(kind, out=kind.chain)
    # The sum of finished segments waits in out, unless that holds other numbers than chains, or x is read from there.
    waits = k > SEGMENT and not (kind.direct and (x is None or not clash(out, x)))
    total = empty((m, n), out, np.dtype(kind.chain)) if waits else out
    for start in range(0, k or 1, SEGMENT):
        last = start + SEGMENT >= k
        of, to, addend, by = (kind, out, x, (beta, alpha)) if last else (partial, total, None, (0, 1))
        _multiply(of, to, addend, a, b, total, *(factor(each, of) for each in by), start, tiles, problem, swap)


def _multiply(kind, c, x, a, b, total, beta, alpha, start, tiles, problem, swap) -> None:
    """c = beta*x + alpha*(total + a[:, start:] @ b[start:]), one segment of k long; without total where start is 0."""

    def matrix(dtype, array, strides, skipped=0):
        """(pointer to what kernels call `dtype`, strides in elements) after `skipped` bytes."""
        (row, column), at = elements(array, strides), pointer(array, skipped, stored(dtype))
        return (at, column, row) if swap else (at, row, column)

    left, right = (a, a.strides, start * a.strides[1]), (b, b.strides, start * b.strides[0])
    left, right = (right, left) if swap else (left, right)
    target = matrix(kind.out, c, c.strides)
    addend = target if x is None else matrix(kind.out, x, broadcast_strides(c.shape, x.shape, x.strides))
    sums = target if start == 0 else matrix(kind.chain, total, total.strides)
    blocks = -(-problem.m // tiles.bm) * -(-problem.n // tiles.bn)
    launch(kernel(tiles, kind), blocks, problem.m, problem.n, np.int32(min(SEGMENT, problem.k - start)),
           *target, *addend, *matrix(kind.a, *left), *matrix(kind.b, *right), *sums, beta, alpha, int(x is not None),
           int(start > 0), stream=c.stream)  # fmt: skip


def addmm(out, self, mat1, mat2, beta, alpha, mode=None, conj=None, tiles=None) -> None:
    """out = beta * self + alpha * (mat1 @ mat2)."""
    gemm(out, self, mat1, mat2, beta, alpha, tiles, conj or "", mode)


def mm(out, self, mat2, mode=None, conj=None, tiles=None) -> None:
    """out = self @ mat2."""
    gemm(out, None, self, mat2, 0, 1, tiles, conj or "", mode)


def baddbmm(out, self, batch1, batch2, beta, alpha, mode=None, conj=None, tiles=None) -> None:
    """out[i] = beta * self[i] + alpha * (batch1[i] @ batch2[i])."""
    gemm(out, self, batch1, batch2, beta, alpha, tiles, conj or "", mode)


def bmm(out, self, mat2, mode=None, conj=None, tiles=None) -> None:
    """out[i] = self[i] @ mat2[i]."""
    gemm(out, None, self, mat2, 0, 1, tiles, conj or "", mode)
