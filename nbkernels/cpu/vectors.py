"""Products with vectors, and matmul, of plain arrays in few calls: None, with nothing written, to ask for more care."""

from __future__ import annotations

from numpy import empty

from .batch import bmm_fast
from .gemm import addmm_fast, mm_fast


def mv_fast(self, vec, out):
    if self.ndim != 2 or vec.ndim != 1:
        return None
    out = empty(len(self), self.dtype) if out is None else out
    return out if mm_fast(self, vec[:, None], out[:, None]) is not None else None


def addmv_fast(self, mat, vec, beta, alpha, out):
    if mat.ndim != 2 or vec.ndim != 1 or self.ndim > 1:
        return None
    out = empty(len(mat), mat.dtype) if out is None else out
    column = self[:, None] if self.ndim else self
    return out if addmm_fast(column, mat, vec[:, None], beta, alpha, out[:, None]) is not None else None


def outer_fast(self, vec2, out):
    return mm_fast(self[:, None], vec2[None], out) if self.ndim == 1 == vec2.ndim else None


def addr_fast(self, vec1, vec2, beta, alpha, out):
    return addmm_fast(self, vec1[:, None], vec2[None], beta, alpha, out) if vec1.ndim == 1 == vec2.ndim else None


def dot_fast(self, tensor, out):
    if self.ndim != 1 or tensor.ndim != 1 or (out is not None and out.ndim):
        return None
    into = empty((), self.dtype) if out is None else out
    if mm_fast(self[None], tensor[:, None], into.reshape(1, 1)) is None:
        return None
    return into[()] if out is None else out


def vdot_fast(self, other, out):
    return None if self.dtype.kind == "c" else dot_fast(self, other, out)


def matmul_fast(input, other, out):
    """The usual dimensions; batches that must be broadcast are declined."""
    if input.ndim == 2 == other.ndim:
        return mm_fast(input, other, out)
    ways = {(3, 3): bmm_fast, (2, 1): mv_fast, (1, 1): dot_fast}
    way = ways.get((input.ndim, other.ndim))
    return way(input, other, out) if way else None
