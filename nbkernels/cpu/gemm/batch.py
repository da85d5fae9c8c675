"""Batches of products: C[t] = alpha * A[t] @ B[t] + beta * X[t], each with the bits of addmm.

A thread takes each (call.py, stacks.py); all threads share larger ones, one after another (gemm.py)."""

from __future__ import annotations

import numpy as np

from ...dtypes import name_of
from ...jit.ir.kind import wrapped
from ..runtime.workspace import one_room
from . import first_products
from .call import STRICT
from .fast import general_fast
from .gemm import ONE, clash, gemm, same
from .general_entry import general
from .kinds import kind_of, of_depth


def baddbmm(out, self, batch1, batch2, beta, alpha, mode=None, conj=None, tiles=None) -> None:
    """out[i] = beta * self[i] + alpha * (batch1[i] @ batch2[i])."""
    x = None if beta == 0 else np.broadcast_to(self, out.shape)
    stacked = tiles is None and not first_products.suits(batch1, batch2, out_dtype=out.dtype)
    kind = kind_of(*(name_of(each.dtype) for each in (batch1, batch2, out)), conj, mode)
    kind = of_depth(kind, batch1.shape[-1])
    reads = [batch1, batch2] + ([] if x is None or same(out, x) else [x])
    if any(clash(out, each) for each in reads):
        temporary = np.empty(out.shape, out.dtype)
        baddbmm(temporary, self, batch1, batch2, beta, alpha, mode, conj, tiles)
        out[...] = temporary
        return
    factors = wrapped(beta, kind), wrapped(alpha, kind)
    stacked = stacked and 0 not in (*batch1.shape, alpha) and len(out) > 1
    if stacked and general(kind, *factors, out.dtype, mixed=True).stack(out, x, batch1, batch2):
        return
    with one_room():
        for i in range(len(out)):
            gemm(out[i], None if x is None else x[i], batch1[i], batch2[i], beta, alpha, tiles, conj, mode)


def bmm(out, self, mat2, mode=None, conj=None, tiles=None) -> None:
    """out[i] = self[i] @ mat2[i]."""
    baddbmm(out, None, self, mat2, 0, 1, mode, conj, tiles)


def baddbmm_fast(self, batch1, batch2, beta, alpha, out):
    """baddbmm of plain arrays in few calls; None, with nothing written, where more care is needed."""
    return general_fast(batch1, batch2, out, self, beta, alpha, STRICT)


def bmm_fast(self, mat2, out):
    """bmm, likewise."""
    return general_fast(self, mat2, out, None, ONE, ONE, STRICT)


def takes(out, shape, dtype) -> bool:
    """Whether it is an array of a result that compiled code may write at once."""
    alike = type(out) is np.ndarray and out.shape == shape and out.dtype == dtype
    return alike and out.flags.c_contiguous and out.flags.writeable
