"""Places: how arrays lie in a stretch of memory, and the derivatives of views, which move gradients between two."""

from functools import reduce
from math import gcd

from .. import ops
from ..dispatch import layout, views
from ..dispatch.traced import Traced
from .saved import copied


class Place:
    """How an array lies in a stretch of memory: strides and offset in bytes."""

    def __init__(self, shape, strides, offset):
        self.shape, self.offset = tuple(shape), offset
        self.strides = tuple(0 if n == 1 else s for n, s in zip(shape, strides, strict=True))


def moved(grad, source, target):
    """Return a gradient moved from one Place to another: it is added into memory of zeros by the strides of `source`,
    and read from there by those of `target`. Elements that source repeats are summed.

    From a view's place to that of its array this is the derivative of the view, transposed; the reverse is the view.
    """
    if isinstance(grad, Traced):
        return grad.mode.record(moved(grad.value, source, target), (grad,), lambda g: (moved(g, target, source),))
    found = _turned(grad, source, target)
    if found is not None:
        return found
    dtype = views.spec(grad).dtype
    ends = [0, 0]
    for place in (source, target):
        low, high = layout.reach(place.shape, place.strides) if 0 not in place.shape else (0, 0)
        ends = [min(ends[0], place.offset + low), max(ends[1], place.offset + high)]
    unit = reduce(gcd, (*source.strides, *target.strides, source.offset, target.offset, *ends)) or 1
    room = zeros(grad, (ends[1] - ends[0]) // unit + 1)

    def seen(place, shape):
        first = views.index(room, slice((place.offset - ends[0]) // unit, None))
        return views.restride(first, shape, tuple(s // unit * dtype.itemsize for s in place.strides))

    once = tuple(1 if s == 0 else n for n, s in zip(source.shape, source.strides, strict=True))
    ops.add_(seen(source, once), ops.sum_to(grad, once))
    return seen(target, target.shape)


def _turned(grad, source, target):
    """`moved` between places that differ in the order of their dimensions alone; None of others."""
    here, there = list(zip(source.strides, source.shape)), list(zip(target.strides, target.shape))
    dense = sorted(here, reverse=True)
    if source.offset != target.offset or 0 in source.strides or dense != sorted(there, reverse=True):
        return None
    if len(set(dense)) < len(dense):
        return None
    grad = copied(views.permute(grad, [here.index(each) for each in dense]))
    return views.permute(grad, [dense.index(each) for each in there])


def zeros(like, *shape):
    """Zeros of like's kind and dtype: sums of nothing."""
    return ops.sum_to(views.empty(like, (0, *shape), views.spec(like).dtype), shape)
