"""Views and empty arrays of any library's kind, for code that is written over arrays of all of them. Zero-copy."""

from math import prod

from . import arrays, layout


def spec(x):
    """Shape, dtype and strides of an array, as a Spec; None and Python numbers are themselves."""
    adapter = arrays.adapter_of(type(x))
    return x if adapter is None else adapter.spec(x)


def restride(x, shape, strides):
    return arrays.adapter_of(type(x)).restride(x, shape, strides)


def transpose(x):
    """x with its dimensions reversed."""
    s = spec(x)
    return restride(x, s.shape[::-1], s.strides[::-1])


def column(x):
    """A vector (m,) as a matrix (m, 1); a 0-d array is itself."""
    s = spec(x)
    return restride(x, (*s.shape, 1), (*s.strides, 0)) if s.shape else x


def row(x):
    """A vector (n,) as a matrix (1, n)."""
    s = spec(x)
    return restride(x, (1, *s.shape), (0, *s.strides))


def flatten(x):
    """x (..., k) as a matrix (rows, k), or None where its strides allow no such view."""
    s = spec(x)
    strides = layout.flat_strides(s.shape, s.strides)
    return None if strides is None else restride(x, (prod(s.shape[:-1]), s.shape[-1]), strides)


def empty(like, shape, dtype):
    """A new C-order array of like's kind, on its device."""
    adapter = arrays.adapter_of(type(like))
    with adapter.guard(adapter.device(like)):
        return adapter.wrap(adapter.empty(like, shape, dtype, layout.c_strides(shape, dtype.itemsize)), like)
