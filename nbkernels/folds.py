"""Rules of reduce and accumulate by the operations of two: dtype, identity, order. Pure, as binary.py.

A fold is associative, and goes in any order (the pairwise one of sum_to), or in order along one axis.
"""

import warnings
from operator import index

import numpy as np

from .binary import Result, compact, supported
from .dtypes import ASSOCIATIVE, NUMBERS, resolve_fold, stated, ufunc
from .operations import BINARY


def normal(op, axis, ndim):
    """Axes as a tuple of dimensions in increasing order; None is all of them, and so is 0 where there are none."""
    given = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    try:
        if any(isinstance(a, bool) for a in given):
            raise TypeError
        axes = tuple(map(index, given))
    except TypeError:
        raise TypeError(f"{op}: axis must be an int, a tuple of ints or None, not {axis!r}") from None
    if ndim == 0 and axis in (0, -1):
        return ()
    for a in axes:
        if not -ndim <= a < ndim:
            raise np.exceptions.AxisError(a, ndim, op)
    axes = tuple(sorted(a % ndim for a in axes))
    if len(set(axes)) < len(axes):
        raise ValueError(f"{op}: the axes {axes} name a dimension twice")
    return axes


NOTHING = np.zeros((), bool)  # what `where=False` chooses


def strong(x):
    """A Python number as an array, which brings its own dtype."""
    return np.asarray(x) if type(x) in NUMBERS else x


def casting(dtype):
    """How a fold of a dtype goes to an out: as NumPy's anyhow, but no imaginary part is dropped."""
    return "same_kind" if dtype.kind == "c" else "unsafe"


def warn_of_real(op, x, dtype):
    """Warn as NumPy does where complex numbers are to be folded in a real dtype."""
    if getattr(getattr(x, "dtype", None), "kind", "") == "c" and stated(op, dtype).kind != "c":
        says = f"{op}: casting complex values to {stated(op, dtype)} discards the imaginary part"
        warnings.warn(says, np.exceptions.ComplexWarning, stacklevel=4)


def known(op, x, name="self"):
    """Raise where there is no such operation, or none on elements of this dtype."""
    if op not in BINARY:
        raise ValueError(f"{op!r} is no element-wise operation of two")
    supported(op, name, x.dtype)


def reduce(self, op, axis, keepdims=False, initial=None, where=None, dtype=None):
    """out = self folded by an operation of two over `axis`, a tuple of dimensions"""
    known(op, self)
    result = resolve_fold(op, self.dtype, dtype)
    axes, shape = normal(op, axis, len(self.shape)), tuple(self.shape)
    if where is not None and where.dtype != bool:
        raise TypeError(f"{op}.reduce: where must be bool, and it is {where.dtype}")
    if type(initial) is complex and result.kind != "c":
        raise TypeError(f"{op}.reduce: initial={initial} is complex and the result is {result}")
    if op not in ASSOCIATIVE and len(axes) > 1:
        raise ValueError(f"{op}.reduce: the order matters, so at most one axis may be given, not {axes}")
    if initial is None and ufunc(op).identity is None:
        if where is not None:
            raise ValueError(f"{op}.reduce has no identity: with where, give initial")
        if any(shape[a] == 0 for a in axes):
            raise ValueError(f"{op}.reduce has no identity: of {shape} over {axes} there is nothing to reduce")
    kept = tuple(1 if a in axes else n for a, n in enumerate(shape) if keepdims or a not in axes)
    steps = tuple(s for a, s in enumerate(self.strides) if keepdims or a not in axes)
    return Result(kept, result, compact(kept, (kept,), (steps,), result.itemsize), casting(result))


def accumulate(self, op, axis, dtype=None):
    """out[k] = op(out[k - 1], self[k]) along one axis, out[0] = self[0]"""
    known(op, self)
    axes = normal(op, axis, len(self.shape))
    if not self.shape:
        raise TypeError(f"{op}.accumulate: self has no dimensions to go along")
    if len(axes) != 1:
        raise ValueError(f"{op}.accumulate goes along one axis, not {axes}")
    result, shape = resolve_fold(op, self.dtype, dtype), tuple(self.shape)
    strides = compact(shape, (shape,), (tuple(self.strides),), result.itemsize)
    return Result(shape, result, strides, casting(result))
