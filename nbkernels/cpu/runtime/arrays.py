"""Checks of arrays by compiled entries: their dtype, whether a product takes them; and new result arrays."""

from __future__ import annotations

import functools
import sys

import numpy as np

from ...dtypes import CONVERTED, known
from ...jit.abi.address import scratch, set_word
from ...jit.abi.ndarray import WRITEABLE, data, descr, flags, ndim, shape, stride
from ...jit.abi.new_arrays import new_strided
from ...jit.compile.lazy import jit

GIL = getattr(sys, "_is_gil_enabled", lambda: True)()  # without it no room is shared


@functools.lru_cache(1024)
def common(*dtypes):
    """The dtype that holds the numbers of all; None where there is none, or one has no kernel."""
    try:
        return np.result_type(*dtypes) if all(map(known, dtypes)) else None
    except TypeError:
        return None


def promoted(*arrays):
    """Arrays of dtypes of their own as of one: those of others are copied. None where that cannot be, or is work."""
    dtype = common(*(x.dtype for x in arrays))
    if dtype is None or max(x.size for x in arrays if x.dtype != dtype) > CONVERTED:
        return None
    return [x.astype(dtype, copy=False) for x in arrays]


@jit
def apart(p, q, size):
    """Whether two arrays' memory is disjoint, by their extents; `size` is the larger item's."""
    plo, phi, qlo, qhi = data(p), data(p) + size, data(q), data(q) + size
    for d in range(ndim(p)):
        reach = (shape(p, d) - 1) * stride(p, d)
        plo, phi = plo + min(reach, 0), phi + max(reach, 0)
    for d in range(ndim(q)):
        reach = (shape(q, d) - 1) * stride(q, d)
        qlo, qhi = qlo + min(reach, 0), qhi + max(reach, 0)
    return phi <= qlo or qhi <= plo


@jit
def distinct(m, rs, n, cs, size):
    """Whether an m x n array's elements provably lie apart: one dimension's step clears all of the other's extent."""
    rs, cs = rs if m > 1 else n * cs, cs if n > 1 else m * rs
    return min(rs, cs) >= size and (rs >= n * cs or cs >= m * rs)


@jit(forceinline=True)
def alike(out, x, a, b):
    """Whether arrays, by their ids, have one dtype."""
    return descr(b) == descr(a) and descr(out) == descr(a) and (x == 0 or descr(x) == descr(a))


@jit
def unusual(out, x, a, b, size):
    """Whether arrays of one dtype, by their ids, are anything but a product's operands, sound and apart from out."""
    if ndim(out) != 2 or ndim(a) != 2 or ndim(b) != 2:
        return True
    m, n, k, rsc, csc = shape(a, 0), shape(b, 1), shape(a, 1), stride(out, 0), stride(out, 1)
    if shape(b, 0) != k or shape(out, 0) != m or shape(out, 1) != n or min(m, n, k) < 1:
        return True
    if flags(out) & WRITEABLE == 0 or not (apart(out, a, size) and apart(out, b, size)):
        return True
    if not distinct(m, abs(rsc), n, abs(csc), size):
        return True
    steps = rsc | csc | stride(a, 0) | stride(a, 1) | stride(b, 0) | stride(b, 1)
    if x != 0:
        if ndim(x) > 2:
            return True
        rows = shape(x, 0) if ndim(x) == 2 else 1
        columns = shape(x, ndim(x) - 1) if ndim(x) > 0 else 1
        if (rows != 1 and rows != m) or (columns != 1 and columns != n):
            return True
        rsx = stride(x, 0) if rows > 1 else 0
        csx = stride(x, ndim(x) - 1) if columns > 1 else 0
        steps |= rsx | csx
        same = data(x) == data(out) and (rsx == rsc or m == 1) and (csx == csc or n == 1)
        if not same and not apart(out, x, size):
            return True
    return steps & (size - 1) != 0


@jit(forceinline=True)
def new_matrix(numpy, dtype, a, b):
    """The address of a new result; 0, and an exception set, without memory."""
    sizes = scratch(16)
    set_word(sizes, shape(a, 0))
    set_word(sizes + 8, shape(b, 1))
    return new_strided(numpy, dtype, 2, sizes, 0)  # no strides: in C order
