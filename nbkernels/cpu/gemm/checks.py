"""Check the arrays of a product: sizes, memory, strides, before it is written; a dot, written last, may overlap.

An array is its id or, in users' jitted code and NumPy's loops, the address of a header (jit/abi/ndarray.py)."""

from __future__ import annotations

from ... import strides
from ...jit.abi.address import pointer
from ...jit.abi.ndarray import C_CONTIGUOUS, WRITEABLE, data, dims, flags, ndim, shape, steps, stride
from ...jit.compile.lazy import jit
from ..runtime import status
from ..runtime.status import DONE

steps_over = jit(forceinline=True)(strides.steps_over)


@jit(forceinline=True)
def size(x, d):
    """The size of the dimension that is the d-th from the end; 1 where there is none."""
    return shape(x, ndim(x) - 1 - d) if d < ndim(x) else 1


@jit(forceinline=True)
def step(x, d):
    """The stride of that dimension, in bytes; 0 where its size is 1."""
    return stride(x, ndim(x) - 1 - d) if size(x, d) > 1 else 0


@jit(forceinline=True)
def unfit(out, x, a, b, strict):
    """Return what is wrong with the sizes, or DONE. A vector a is a row, a vector b a column, which out has not.
    `strict`: batches must be alike, not broadcast."""
    rows, columns = ndim(a) > 1, ndim(b) > 1
    inner = rows + columns
    if size(a, 0) != size(b, 1 if columns else 0):
        return status.INNER
    batches = max(ndim(a) - 2, ndim(b) - 2, 0)
    if ndim(out) != batches + inner:
        return status.OUT
    for d in range(batches):
        p, q = size(a, d + 2), size(b, d + 2)
        if p != q and (strict or (p != 1 and q != 1)):
            return status.BATCHES
        if size(out, d + inner) != (q if p == 1 else p):
            return status.OUT
    if (columns and size(out, 0) != size(b, 0)) or (rows and size(out, inner - 1) != size(a, 1)):
        return status.OUT
    if ndim(x) > ndim(out):
        return status.SELF
    for d in range(ndim(x) if x != out else 0):
        if size(x, d) != 1 and size(x, d) != size(out, d):
            return status.SELF
    return DONE


@jit(forceinline=True)
def _extent(x, width):
    """Where an array's memory begins and ends, nowhere if it has no elements, and bits of strides that leave elements
    of `width` bytes uneven."""
    low, high, bits = data(x), data(x) + width, 0
    for d in range(ndim(x)):
        if shape(x, d) == 0:
            return 0, 0, 0
        if shape(x, d) > 1:
            reach = (shape(x, d) - 1) * stride(x, d)
            low, high, bits = low + min(reach, 0), high + max(reach, 0), bits | stride(x, d)
    return low, high, bits & (width - 1)


@jit(forceinline=True)
def _lies(out, x):
    """Tell whether x, expanded, is element for element out."""
    for d in range(ndim(out)):
        if size(out, d) > 1 and step(out, d) != step(x, d):
            return False
    return data(out) == data(x)


@jit(forceinline=True)
def wrong(out, x, a, b, widths, beta, new, distinct):
    """Return what is wrong with the memory, or DONE; an out of no elements may have strides of 0. `widths`: bytes of an
    element of out and x, of a and of b; `new`: out was made for this product; `distinct`: its elements are apart."""
    width, width_a, width_b = widths
    (a0, a1, odd), (b0, b1, odd_b) = _extent(a, width_a), _extent(b, width_b)
    x0, x1, odd_x = _extent(x, width) if beta != 0 else (0, 0, 0)
    odd |= odd_b | odd_x
    if not new:
        low, high, odd_c = _extent(out, width)
        odd |= odd_c
        if low == high:
            return DONE
        if (a0 < high and low < a1) or (b0 < high and low < b1):
            return status.OVERLAPS
        if x0 < high and low < x1 and not _lies(out, x):
            return status.OVERLAPS_SELF
        if not distinct and not steps_over(pointer(dims(out)), pointer(steps(out)), ndim(out), width):
            return status.TWICE
    return status.UNEVEN if odd != 0 else DONE


@jit(forceinline=True)
def unsound(out, x, a, b, widths, beta, new):
    """Tell whether arrays, by their ids, x or 0, are anything but sound operands of a product that is not empty."""
    if flags(out) & WRITEABLE == 0 or size(a, 0) * size(out, 0) * size(out, 1) == 0:
        return True
    x, beta = (x, beta) if x != 0 else (out, 0.0)
    fit = unfit(out, x, a, b, False) == DONE
    return not fit or wrong(out, x, a, b, widths, beta, new, flags(out) & C_CONTIGUOUS != 0) != DONE
