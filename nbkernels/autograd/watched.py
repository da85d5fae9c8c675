"""Watched arrays: what a function sees of an array while a tape notes what is done to it."""

from itertools import count

from numpy import ndarray

from .. import ops
from ..dispatch import arrays, derive, layout, views
from ..dispatch.errors import ArgumentError
from ..dispatch.traced import Traced, bare

KINDS = frozenset(derive.REAL + derive.COMPLEX)
following = count().__next__


class Watched(Traced):
    """An array that a tape sees, in memory that it alone has; `root` is (what it is a view of, offset in bytes), or
    None, `number` what the steps of tapes know it by; `shape` is kept, which is asked for more often than it is made.
    """

    __slots__ = ("number", "root", "shape")

    def __init__(self, value, mode):
        self.value, self.mode, self.root, self.number = value, mode, None, following()
        if type(value) is ndarray:
            self.shape = value.shape
            value.setflags(False)
        else:
            adapter = arrays.adapter_for(value)
            self.shape = tuple(adapter.spec(value).shape)
            adapter.seal(value)

    def __getattr__(self, name):
        raise AttributeError(f"an array that a tape watches has no {name!r}: its `value` is the plain array")

    def __setitem__(self, key, value):
        raise ArgumentError("a tape cannot go back through what is written into an array")

    def __bool__(self):
        return bool(bare(self))

    def __repr__(self):
        return f"Watched({self.value!r})"


def is_differentiable(x):
    """Whether gradients go through an array."""
    if type(x) is ndarray:
        return x.dtype.kind in KINDS
    adapter = arrays.adapter_for(x)
    return adapter is not None and derive.differentiable(adapter.spec(x))


def repeats(x):
    """Whether some elements of an array share memory."""
    if type(x) is ndarray:
        return not x.flags.forc and layout.overlaps_itself(x.shape, x.strides, x.itemsize)
    s = views.spec(x)
    return layout.overlaps_itself(s.shape, s.strides, s.dtype.itemsize)


def apart(x):
    """x, or a copy where it `repeats` elements: each has a gradient of its own, also in a view of x."""
    return ops.copy(x) if repeats(x) else x


def numbers(arrays):
    """The numbers by which a tape knows watched arrays, and None for other arguments."""
    return [x.number if type(x) is Watched else None for x in arrays]
