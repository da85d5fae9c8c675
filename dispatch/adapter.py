"""Adapter: the interface to an array library, which tells the device of an array and its spec, and views it."""

import sys
from collections import namedtuple
from contextlib import nullcontext
from importlib import import_module

from . import keys
from .errors import OutError


class Device(namedtuple("Device", "key index", defaults=(0,))):
    """A dispatch key and which of its devices: `CUDA:1`; there is one CPU."""

    __slots__ = ()

    def __str__(self):
        return self.key if self.key in (keys.CPU, keys.META) else f"{self.key}:{self.index}"


CPU = Device(keys.CPU)


class Spec(namedtuple("Spec", "shape dtype strides")):
    """What meta functions see of an array; strides in bytes."""

    __slots__ = ()


def library(name):
    """An array library's module: the loaded one where its arrays are at hand, imported where an operation needs it."""
    return sys.modules.get(name) or import_module(name)


def imported(name):
    """The module of an array library, imported to its end: `library` may find one that another thread is importing."""
    return import_module(name)


class Adapter:
    """What the dispatcher asks of an array library. `classes` are "package.Class" names, looked for in the MRO."""

    name = ""
    classes = ()
    scalar = False  # whether its arrays are NumPy's scalars, which element-wise fast paths take
    foreign = False  # whether its arrays may tell something else at every look
    intercept = None  # a method (op, row, args, out, in_place) that takes over calls of ops with kernels; see traced.py

    hands_on = True  # whether that is to something else than the kernels here
    unwritable = OutError  # what is raised where an array that has a flaw would be written

    def opens(self, op, key, x):
        """Whether the body of a composite is run with such arrays, in place of being taken over whole."""
        return True

    def owns(self, cls):
        names = {f"{base.__module__.partition('.')[0]}.{base.__qualname__}" for base in cls.__mro__}
        return not names.isdisjoint(self.classes)

    def exact(self, cls):
        """Whether arrays of this very class may take an op's fast path."""
        return False

    def lends(self, cls):
        """Whether arrays of this class may take an op's fast path by views of them, as `Library.lenders` does it."""
        return False

    def repeats(self):
        """Whether calls on its arrays may take a fast path that repeats what an earlier one launched."""
        return True

    def device(self, x):
        return CPU

    def spec(self, x):
        """The array as meta functions see it."""
        return Spec(x.shape, x.dtype, x.strides)

    def view(self, x):
        """x as kernels take it: a NumPy array, or a DeviceView if x is on a CUDA device, of the same memory."""
        return x

    def host(self, x):
        """The elements as a NumPy array."""
        return self.view(x)

    def item(self, x):
        """A 0-d array as a number, for arguments that are numbers; a ValueError of one that has no data, or a shape."""
        if self.intercept is not None or self.device(x).key == keys.META or tuple(self.spec(x).shape):
            raise ValueError
        return (x if hasattr(x, "item") else self.host(x)).item()

    def whole(self, x):
        """x as derivatives read it."""
        return x

    def address(self, x):
        """Where x[0, 0, ...] is in its device's memory, or None where x has none."""

    def flaw(self, x):
        """Why x cannot be written, or ""."""
        return ""

    def written(self, x):
        """Called after a kernel has written into x, which a caller gave: for libraries that count such writes."""

    def seal(self, x):
        """Make x read-only, where its library can, and say whether it did."""
        return False

    def version(self, x):
        """How often the memory of x has been written, or None where its library does not count that."""

    def empty(self, like, shape, dtype, strides):
        """A new array on like's device, dense, with these strides in bytes."""
        raise self.lacks("empty")

    def wrap(self, x, like):
        """An `empty` as an array of like's kind."""
        return x

    def result(self, x, like):
        """A filled `empty` as the user gets it."""
        return self.wrap(x, like)

    def restride(self, x, shape, strides):
        """A view of the same memory from its first element on."""
        raise self.lacks("restride")

    def permute(self, x, axes):
        """x with its dimensions in the order of `axes`."""
        s = self.spec(x)
        return self.restride(x, tuple(s.shape[axis] for axis in axes), tuple(s.strides[axis] for axis in axes))

    def turned(self, x):
        """x with its last two dimensions exchanged."""
        s = self.spec(x)
        return self.restride(x, s.shape[:-2] + s.shape[:-3:-1], s.strides[:-2] + s.strides[:-3:-1])

    def index(self, x, key):
        """The view x[key], for a key of integers, slices, None and ...."""
        return x[key]

    def flip(self, x, axis):
        """x from its end on along an axis: a view, or a copy where the library's arrays have no negative strides."""
        return self.index(x, (*(slice(None),) * axis, slice(None, None, -1)))

    def upload(self, x, like):
        """A 0-d NumPy array as an array on like's device."""
        raise self.lacks("upload")

    def lacks(self, method):
        """The error of a call that needs a method which an adapter does not have."""
        return NotImplementedError(f"{type(self).__name__}, the adapter of {self.name} arrays, has no {method!r}")

    limited = staticmethod(nullcontext)  # a context of kernels that run on the CPU

    def guard(self, device):
        """A context in which `device` is current; the former one comes back at the end, also after an exception."""
        return self.limited()
