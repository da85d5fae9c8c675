"""Outer products, matmul and linear of plain arrays in few calls; None, with nothing written, where they decline.

Arrays of two dtypes are converted to the one that holds the numbers of both, as composites.py does it.
"""

from __future__ import annotations

import numpy as np

from ...dtypes import widens
from ..gemm.batch import bmm_fast, takes
from ..gemm.fast import addmm_fast, addmm_keywords, general_fast, mm_fast, mm_keywords
from ..runtime.arrays import common, promoted
from .dot import dot_fast
from .mv import mv_fast, mv_widened_fast


def outer_fast(self, vec2, out):
    if self.ndim != 1 or vec2.ndim != 1:
        return None
    made = mm_fast(self[:, None], vec2[None], out)
    if made is None and self.dtype != vec2.dtype and (found := promoted(self, vec2)):
        return outer_fast(*found, out)
    return made


def addr_fast(self, vec1, vec2, beta, alpha, out):
    return addmm_fast(self, vec1[:, None], vec2[None], beta, alpha, out) if vec1.ndim == 1 == vec2.ndim else None


def matmul_fast(input, other, out):
    """The usual dimensions; of what must be broadcast, a stack and a matrix."""
    if input.ndim == 2 == other.ndim:  # each asks for one dtype itself: to ask before takes 40 ns
        way, made = mm_fast, mm_fast(input, other, out)
    else:
        way = WAYS.get((input.ndim, other.ndim), _stack)
        made = way(input, other, out)
    if made is not None or not way or input.dtype == other.dtype:
        return made
    if found := promoted(input, other):
        return way(*found, out)
    return _widened(input, other, out) if way in (mv_fast, _row) else None


def linear_fast(input, weight, bias, out):
    """As addmm; a vector is a row."""
    if weight.ndim != 2 or not input.ndim or not (bias is None or bias.shape == weight.shape[:1]):
        return None
    if input.dtype != weight.dtype or (bias is not None and bias.dtype != weight.dtype):
        found = promoted(input, weight, *[bias] * (bias is not None))
        return linear_fast(*found, *[None] * (bias is None), out) if found else None
    if input.ndim > 1:
        return (_matrix if input.ndim == 2 else _stack_by_matrix)(input, weight.T, bias, out)
    made = _matrix(input[None], weight.T, bias, None) if out is None else None
    return None if made is None else made[0]


def _matrix(a, b, x, out):
    return mm_fast(a, b, out) if x is None else addmm_fast(x, a, b, 1, 1, out)


def _stack_by_matrix(a, b, x, out):
    """A stack times a matrix, and x is added: where each of the stack has fewer rows than b columns, as one matrix of
    all rows if that can be (AVX-512, us: 500x2x64 by 64x64 of float64 122, so 202; 8x8x8 by 8x8 2.3, so .74)."""
    few = a.shape[-2] < b.shape[1]
    made = _rows(_matrix, b.shape[1], a, b, x, out) if few else None
    made = general_fast(a, b, out, x) if made is None else made
    return _rows(_matrix, b.shape[1], a, b, x, out) if made is None and not few else made


def _stack(input, other, out):
    """Any other dimensions."""
    if other.ndim == 2 < input.ndim:
        made = _stack_by_matrix(input, other, None, out)
    else:
        made = general_fast(input, other, out)
    if made is not None or not {input.ndim, other.ndim} <= {2, 3}:
        return made
    pair = (x if x.ndim == 3 else np.broadcast_to(x, (len(y), *x.shape)) for x, y in ((input, other), (other, input)))
    return bmm_fast(*pair, out)


def _rows(way, n, input, *given):
    """A contiguous stack of matrices as one matrix of all their rows; `way` takes it, `given`, and out as the last."""
    *others, out = given
    shape = *input.shape[:-1], n
    if not (input.flags.c_contiguous and input.size and n) or not (out is None or takes(out, shape, out.dtype)):
        return None
    made = way(input.reshape(-1, input.shape[-1]), *others, None if out is None else out.reshape(-1, n))
    if made is None:
        return None
    return made.reshape(shape) if out is None else out


def _matmul_keywords(input, other, out_dtype, mode, conj, tiles, out):
    """matmul_fast where a keyword is given: of matrices, and of stacks of which one is conjugated."""
    if input.ndim == 2 == other.ndim:
        return mm_keywords(input, other, out_dtype, mode, None, tiles, out) if conj is None else None
    stacks = max(input.ndim, other.ndim) > 2 and min(input.ndim, other.ndim) > 0
    return general_fast(input, other, out, conj=conj) if stacks and out_dtype is mode is tiles is None else None


def _linear_keywords(input, weight, bias, *words):
    """linear_fast of matrices where a keyword is given."""
    if bias is None or weight.ndim != 2:
        return _matmul_keywords(input, weight.T, *words)
    fits = input.ndim == 2 and bias.shape == weight.shape[:1] and words[2] is None
    return addmm_keywords(bias, input, weight.T, 1, 1, *words) if fits else None


matmul_fast.with_keywords, linear_fast.with_keywords = _matmul_keywords, _linear_keywords


def _row(self, mat, out):
    """By mv of mat's transpose; not of complex numbers, whose steps have an order within."""
    return general_fast(self, mat, out) if mat.dtype.kind == "c" else mv_fast(mat.T, self, out)


def _widened(input, other, out):
    """A matrix and a vector, in either order, where the matrix is converted as it is read."""
    matrix, vec = (input, other) if input.ndim == 2 else (other.T, input)
    dtype = common(input.dtype, other.dtype)
    if dtype is None or not widens(matrix, dtype):
        return None
    return mv_widened_fast(matrix, vec.astype(dtype, copy=False), out)


WAYS = {(3, 3): bmm_fast, (2, 1): mv_fast, (1, 2): _row, (1, 1): dot_fast}
