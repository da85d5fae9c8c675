"""mv, addmv, dot and vdot on a CUDA device, in the CPU's order.

A sum of mv has 8 chains of float32 and float64 for each segment of 4096 steps, and the one chain of a product in other
dtypes; a sum of dot has 64, and one of halves that become float32. Rows are taken by groups of threads
(kernels/mv.py); segments of dot are its rows, whose sums a second launch adds in order.
"""

from __future__ import annotations

import functools

import numpy as np

from ..jit.ir.kind import BYTES, SIZE, Kind
from ..strides import broadcast_strides
from .call import settled
from .elementwise import copy
from .gemm import factor
from .kinds import kind_of
from .launch import KERNELS, Kernel, elements, launch, pointer, stored
from .memory import empty
from .tiles import PIECE, SEGMENT

CHAINS, DOT_CHAINS = 8, 64
ROWWISE, COLUMNWISE = 64, 256  # threads of a block: small ones, so that few rows fill many multiprocessors


@functools.cache
def kernel(kind: Kind, chains: int, width: int, across: bool) -> Kernel:
    """y = beta * x + alpha * A @ v by rows; `width` neighbouring elements of A and v are moved together; across:
    neighbouring threads take neighbouring rows."""
    threads = COLUMNWISE if across else ROWWISE
    return Kernel(f"{KERNELS}.mv:make", (kind, chains, width, across, threads), threads)


@functools.cache
def final(kind: Kind) -> Kernel:
    """out = the sums of segments, added in order."""
    return Kernel(f"{KERNELS}.mv:final", (kind, COLUMNWISE), COLUMNWISE)


def rows(kind: Kind, chains: int, sizes, out, addend, left, right, beta, alpha, stream) -> None:
    """Launch it: sizes are (rows, steps, whether rows are segments), left and right (array, strides of rows, steps)."""
    count, k, cut = sizes
    width = PIECE // BYTES[kind.a] if BYTES[kind.a] == BYTES[kind.b] else 1
    bytes_ = width * BYTES[kind.a]
    if not all(step == 1 and row % width == 0 and x.address % bytes_ == 0 for x, row, step in (left, right)):
        width = 1
    across = width == 1 and abs(left[1]) < abs(left[2])
    made = kernel(kind, chains, width, across)
    group = chains // (max(width, chains // 32) if chains > 1 else 1)
    blocks = -(-count // (made.threads // group))
    at = [(pointer(x, 0, stored(name)), *steps) for name, (x, *steps) in zip((kind.a, kind.b), (left, right))]
    launch(made, blocks, (count, k, int(addend is not None), int(cut)), out, addend or out, *at,
           factor(beta, kind), factor(alpha, kind), stream=stream)  # fmt: skip


def addmv(out, self, mat, vec, beta, alpha, out_dtype=None, mode=None, conj=None) -> None:
    """out = beta * self + alpha * (mat @ vec)."""
    kind, (m, k) = kind_of(*(each.dtype.name for each in (mat, vec, out)), conj or "", mode), mat.shape
    if m == 0:
        return
    chains = CHAINS if kind == Kind.plain(kind.chain) and kind.chain in SIZE else 1
    left, right = (mat, *elements(mat, mat.strides)), (vec, 0, *elements(vec, vec.strides))
    with settled(out, self, (mat, vec), beta, alpha, k) as (target, x, alpha, k):
        written = pointer(target, 0, stored(kind.out)), *elements(target, target.strides)
        addend = None
        if x is not None:
            steps = elements(x, broadcast_strides((m,), x.shape, x.strides))
            addend = pointer(x, 0, stored(kind.out)), *steps
        rows(kind, chains, (m, k, False), written, addend, left, right, beta, alpha, out.stream)


def mv(out, self, vec, out_dtype=None, mode=None, conj=None) -> None:
    """out = self @ vec."""
    addmv(out, None, self, vec, 0, 1, out_dtype, mode, conj)


def dot(out, self, tensor, out_dtype=None, mode=None, conj=None) -> None:
    """out = the sum over i of self[i] * tensor[i]; vectors of two dtypes are converted to out's before."""
    if out_dtype is None and self.dtype != tensor.dtype:
        self, tensor = (converted(x, out.dtype) for x in (self, tensor))
    kind = kind_of(*(x.dtype.name for x in (self, tensor, out)), conj or "", mode)
    (k,), chains = self.shape, 1 if kind.way == "fma" and out.dtype != self.dtype else DOT_CHAINS
    count = max(1, -(-k // SEGMENT))
    alone = count == 1 and kind.direct
    sums = out if alone else empty((count,), out, np.dtype(kind.chain))
    left, right = ((x, SEGMENT * step, step) for x in (self, tensor) for step in elements(x, x.strides))
    partial = kind if alone else Kind(kind.a, kind.b, kind.chain, kind.chain, kind.way, kind.conj, kind.turned)
    target = pointer(sums, 0, stored(kind.chain)), 1
    rows(partial, chains, (count, k, True), target, None, left, right, 0, 1, out.stream)
    if not alone:
        launch(final(kind), 1, count, pointer(out, 0, stored(kind.out)), pointer(sums), stream=out.stream)


def converted(x, dtype):
    """x, or a copy of another dtype."""
    if x.dtype == dtype:
        return x
    made = empty(x.shape, x, dtype)
    copy(made, x)
    return made


def vdot(out, self, other, out_dtype=None, mode=None) -> None:
    """out = the sum over i of conj(self[i]) * other[i]."""
    dot(out, self, other, out_dtype, mode, "a" if self.dtype.kind == "c" else None)
