"""Batches of products on a CUDA device: C[i] = alpha * A[i] @ B[i] + beta * X[i].

From compute capability 8.0 on the batch is a dimension of the grid; before, each matrix is a launch.
"""

from __future__ import annotations

from ..strides import broadcast_strides
from .gemm import gemm
from .kinds import kind_of
from .launch import capability
from .memory import clash, empty, item, same
from .product.gemm import multiply


def baddbmm(out, self, batch1, batch2, beta, alpha, mode=None, conj=None, tiles=None) -> None:
    """out[i] = beta * self[i] + alpha * (batch1[i] @ batch2[i])."""
    reads, x = [batch1, batch2] if alpha != 0 else [], None if beta == 0 else self
    if x is not None and not same(out, x, broadcast_strides(out.shape, x.shape, x.strides)):
        reads.append(x)
    if any(clash(out, each) for each in reads):
        temporary = empty(out.shape, out)
        baddbmm(temporary, self, batch1, batch2, beta, alpha, mode, conj, tiles)
        baddbmm(out, temporary, batch1, batch2, 1, 0)  # a copy
        return
    if tiles is None and out.size and capability() >= (8, 0):
        names, k = [each.dtype.name for each in (batch1, batch2, out)], batch1.shape[2]
        kind = kind_of(*names, conj or "", None if mode == "tf32" else mode)
        if alpha == 0 or k == 0:
            k, alpha = 0, 1 if x is None else -1
        multiply(out, x, batch1, batch2, beta, alpha, kind, k, mode=mode)
        return
    for i in range(out.shape[0]):
        matrix = item(x, i if x.shape[0] > 1 else 0) if x is not None and len(x.shape) == 3 else x
        gemm(item(out, i), matrix, item(batch1, i), item(batch2, i), beta, alpha, tiles, conj or "", mode)


def bmm(out, self, mat2, mode=None, conj=None, tiles=None) -> None:
    """out[i] = self[i] @ mat2[i]."""
    baddbmm(out, None, self, mat2, 0, 1, mode, conj, tiles)
