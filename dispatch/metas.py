"""Arrays without data: what comes out of an op, without running it or compiling anything."""

from operator import index

from . import keys, layout
from .adapter import Adapter, Device, library
from .operators import Operators


class MetaArray(Operators):
    """Shape, dtype and strides in bytes (None: C order), and no memory. Its ops run on the Meta key.

    >>> from nbkernels.dispatch import MetaArray
    >>> MetaArray((2, 3), "float32")[0]
    MetaArray((3,), float32)
    """

    __slots__ = ("dtype", "shape", "strides")

    def __init__(self, shape, dtype, strides=None):
        try:
            shape = tuple(map(index, shape if hasattr(shape, "__iter__") else (shape,)))
        except TypeError:
            raise TypeError(f"a meta array of shape {shape!r}: sizes must be ints") from None
        try:
            dtype = library("numpy").dtype(dtype)
        except (TypeError, ValueError, SyntaxError):
            raise TypeError(f"a meta array of dtype {dtype!r}: NumPy knows no such dtype") from None
        strides = layout.c_strides(shape, dtype.itemsize) if strides is None else tuple(map(int, strides))
        if min(shape, default=0) < 0:
            raise ValueError(f"a meta array of shape {shape}: sizes must not be negative")
        if len(strides) != len(shape):
            raise ValueError(f"a meta array of shape {shape} needs as many strides, not {strides}")
        for name, value in (("shape", shape), ("dtype", dtype), ("strides", strides)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name, value):
        raise AttributeError(f"a meta array does not change: {name}")

    @property
    def ndim(self):
        return len(self.shape)

    def __getitem__(self, key):
        """A view, by integers, slices, None and ..."""
        return self.like(*layout.indexed(self.shape, self.strides, key)[:2])

    def like(self, shape, strides):
        """Another array of the same dtype and device."""
        return MetaArray(shape, self.dtype, strides)

    def __len__(self):
        if not self.shape:
            raise TypeError("a 0-d meta array has no length")
        return self.shape[0]

    def __eq__(self, other):
        """Whether both have the same shape, dtype and strides."""
        if not isinstance(other, MetaArray):
            return NotImplemented
        return (self.shape, self.dtype, self.strides) == (other.shape, other.dtype, other.strides)

    def __hash__(self):
        return hash((self.shape, self.dtype, self.strides))

    def __repr__(self):
        dense = self.strides == layout.c_strides(self.shape, self.dtype.itemsize)
        return f"MetaArray({self.shape}, {self.dtype}{'' if dense else f', strides={self.strides}'})"

    def __reduce__(self):
        return MetaArray, (self.shape, self.dtype, self.strides)


class Ghost(MetaArray):
    """An array that a call would make on a device, were it to run."""

    __slots__ = ("device",)

    def __init__(self, shape, dtype, strides, device):
        super().__init__(shape, dtype, strides)
        object.__setattr__(self, "device", device)

    def like(self, shape, strides):
        return Ghost(shape, self.dtype, strides, self.device)


class Meta(Adapter):
    name = "nbkernels.MetaArray"

    def owns(self, cls):
        return issubclass(cls, MetaArray)

    def device(self, x):
        return x.device if isinstance(x, Ghost) else Device(keys.META)

    def spec(self, x):
        return x

    def empty(self, like, shape, dtype, strides):
        return MetaArray(shape, dtype, strides)

    def restride(self, x, shape, strides):
        return x.like(shape, strides)
