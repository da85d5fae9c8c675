"""Dtypes of arrays and whether they are apart, for compiled entries; and new result arrays."""

from __future__ import annotations

import functools
import sys

import numpy as np

from ...dtypes import CONVERTED, known
from ...jit.abi.address import pointer, scratch, set_word
from ...jit.abi.ndarray import address_of, data, descr, ndim, shape, stride
from ...jit.abi.new_arrays import NONE, new_strided
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


@jit(forceinline=True)
def alike(out, x, a, b):
    """Whether arrays, by their ids, have one dtype."""
    return descr(b) == descr(a) and descr(out) == descr(a) and (x == 0 or descr(x) == descr(a))


@jit(forceinline=True)
def optional(numpy, x):
    """The address of an argument, 0 for None; `numpy`: that of made.words()."""
    found = address_of(x)
    return 0 if found == pointer(numpy)[NONE] else found


@jit(forceinline=True)
def new_matrix(numpy, dtype, a, b):
    """The address of a new result; 0, and an exception set, without memory."""
    sizes = scratch(16)
    set_word(sizes, shape(a, 0))
    set_word(sizes + 8, shape(b, 1))
    return new_strided(numpy, dtype, 2, sizes, 0, 0, 0)  # no strides: in C order
