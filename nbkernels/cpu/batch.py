"""Batches of products: C[i] = alpha * A[i] @ B[i] + beta * X[i], each with the bits of addmm."""

from __future__ import annotations

import numpy as np

from .gemm import clash, gemm, same


def baddbmm(out, self, batch1, batch2, beta, alpha) -> None:
    """out[i] = beta * self[i] + alpha * (batch1[i] @ batch2[i])."""
    x = None if beta == 0 else np.broadcast_to(self, out.shape)
    reads = [batch1, batch2] + ([] if x is None or same(out, x) else [x])
    if any(clash(out, each) for each in reads):
        temporary = np.empty(out.shape, out.dtype)
        baddbmm(temporary, self, batch1, batch2, beta, alpha)
        out[...] = temporary
        return
    for i in range(len(out)):
        gemm(out[i], None if x is None else x[i], batch1[i], batch2[i], beta, alpha)


def bmm(out, self, mat2) -> None:
    """out[i] = self[i] @ mat2[i]."""
    baddbmm(out, None, self, mat2, 0, 1)
