"""Outer products, and matmul, of plain arrays in few calls: None, with nothing written, to ask for more care."""

from __future__ import annotations

from ..gemm.batch import bmm_fast
from ..gemm.fast import addmm_fast, mm_fast
from .dot import dot_fast
from .mv import mv_fast


def outer_fast(self, vec2, out):
    return mm_fast(self[:, None], vec2[None], out) if self.ndim == 1 == vec2.ndim else None


def addr_fast(self, vec1, vec2, beta, alpha, out):
    return addmm_fast(self, vec1[:, None], vec2[None], beta, alpha, out) if vec1.ndim == 1 == vec2.ndim else None


def matmul_fast(input, other, out):
    """The usual dimensions; batches that must be broadcast are declined."""
    if input.ndim == 2 == other.ndim:
        return mm_fast(input, other, out)
    way = WAYS.get((input.ndim, other.ndim))
    return way(input, other, out) if way else None


def _row(self, mat, out):
    return mv_fast(mat.T, self, out)


WAYS = {(3, 3): bmm_fast, (2, 1): mv_fast, (1, 2): _row, (1, 1): dot_fast}
