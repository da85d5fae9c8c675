"""Arrays that a mode watches: calls with them are handed to the mode instead of being run.

A composite's body sees them as it would see any array, through `views`, operators, shape, dtype and strides; there is
nothing else. compliance.py, the library's explain() and its tapes are modes; an adapter of your own may `intercept` as
well.
"""

from . import arrays, layout, views
from .adapter import Adapter
from .errors import ComplianceError
from .operators import FUNCTIONS, Operators


class Traced(Operators):
    """`value` as `mode` watches it.

    The mode has `call(op, row, args, out, in_place)`, `apply(function, args, out, where, shape, dtypes)` and
    `made(value)`; it may have `empty(like, shape, dtype, strides)`, `view(x, value, offset)` for views of x that lie
    `offset` bytes after its first element, and `opens(op, key)`: whether the body of a composite is run.
    """

    __slots__ = ("mode", "value")

    def __init__(self, value, mode):
        self.value, self.mode = value, mode

    @property
    def spec(self):
        return arrays.adapter_for(self.value).spec(self.value)

    shape = property(lambda self: tuple(self.spec.shape))
    dtype = property(lambda self: self.spec.dtype)
    strides = property(lambda self: tuple(self.spec.strides))
    ndim = property(lambda self: len(self.spec.shape))

    def __eq__(self, other):
        return FUNCTIONS["equal"](self, other)

    def __ne__(self, other):
        return FUNCTIONS["not_equal"](self, other)

    __hash__ = object.__hash__

    def __getitem__(self, key):
        """A view, by integers, slices, None and ..."""
        offset = layout.indexed(self.shape, self.strides, key)[2]
        return viewed(self, arrays.adapter_for(self.value).index(self.value, key), offset)

    def __len__(self):
        if not self.shape:
            raise TypeError("a 0-d array has no length")
        return self.shape[0]

    def __getattr__(self, name):
        raise ComplianceError(f"a composite asked an array for {name!r}; it has shape, dtype, strides, ndim and views")

    def __array__(self, *args, **kwargs):
        return self.__getattr__("__array__")

    def __setitem__(self, index, value):
        self.__getattr__("__setitem__")


class Tracing(Adapter):
    """The adapter: what the array inside would say."""

    name = "traced"

    def owns(self, cls):
        return issubclass(cls, Traced)

    def lends(self, cls):
        return True

    def intercept(self, op, row, args, out, in_place):
        return mode_of(*args, out).call(op, row, args, out, in_place)

    def opens(self, op, key, x):
        return not hasattr(x.mode, "opens") or x.mode.opens(op, key)

    def apply(self, function, args, out, where, shape, dtypes):
        """Pass a function that is no op of a table to its arrays' mode; its results have this shape and dtypes."""
        return mode_of(*args, out, where).apply(function, args, out, where, shape, dtypes)

    def device(self, x):
        return arrays.adapter_for(x.value).device(x.value)

    def spec(self, x):
        return x.spec

    def address(self, x):
        return arrays.adapter_for(x.value).address(x.value)

    def flaw(self, x):
        return arrays.adapter_for(x.value).flaw(x.value)

    def empty(self, like, shape, dtype, strides):
        if hasattr(like.mode, "empty"):
            return like.mode.empty(like.value, shape, dtype, strides)
        inner = arrays.adapter_for(like.value)
        with inner.guard(inner.device(like.value)):
            return inner.wrap(inner.empty(like.value, shape, dtype, strides), like.value)

    def wrap(self, x, like):
        like.mode.made(x)
        return Traced(x, like.mode)

    def restride(self, x, shape, strides):
        return viewed(x, arrays.adapter_for(x.value).restride(x.value, shape, strides), 0)

    def permute(self, x, axes):
        return viewed(x, arrays.adapter_for(x.value).permute(x.value, axes), 0)

    def flip(self, x, axis):
        value = views.flip(x.value, axis)
        record = getattr(x.mode, "record", None)  # of a tape: the gradient is flipped back
        return Traced(value, x.mode) if record is None else record(value, (x,), lambda grad: (views.flip(grad, axis),))


def viewed(x, value, offset):
    """A view of what x has inside, as x's mode watches it."""
    return x.mode.view(x, value, offset) if hasattr(x.mode, "view") else Traced(value, x.mode)


def mode_of(*args):
    """The mode of the first array that is watched."""
    return next(x.mode for x in flat(args) if isinstance(x, Traced))


LISTS = tuple, list


def flat(args):
    """A list of arguments, those in lists one by one."""
    found = []
    for x in args:
        if isinstance(x, LISTS):
            found += x
        else:
            found.append(x)
    return found


def each(function, x):
    """`function` of x, or of each item of a list."""
    return type(x)(map(function, x)) if isinstance(x, LISTS) else function(x)


def bare(x):
    """x, or what is inside of a Traced one."""
    if isinstance(x, Traced):
        return x.value
    return each(bare, x) if isinstance(x, LISTS) else x
