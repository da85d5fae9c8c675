"""One adapter per array library, and the only place that knows their names.

A library is recognised by the classes of an array (`type(x).__mro__`), never imported for the question; what was
found is kept per type, so the next look is one dict hit. Every operation is zero-copy. The kind that went in comes
out. `register_adapter` adds one for arrays of your own.
"""

from . import keys
from .adapter import Adapter, library
from .devices import NUMBA, CuPy, Torch, Views
from .foreign import CudaInterface, DLPack
from .metas import Meta
from .table import resolve
from .traced import Tracing


class NumPy(Adapter):
    name, classes = "NumPy", ("numpy.ndarray",)

    def exact(self, cls):
        return cls is library("numpy").ndarray

    def lends(self, cls):
        return not self.exact(cls)

    def view(self, x):
        return x.view(library("numpy").ndarray)  # of any alignment: CPU kernels load and store elements at any address

    def address(self, x):
        return x.ctypes.data

    def flaw(self, x):
        return "" if x.flags.writeable else "it is read-only"

    def seal(self, x):
        x.flags.writeable = False
        return True

    def empty(self, like, shape, dtype, strides):
        return library("numpy").ndarray(shape, dtype, strides=strides)

    def wrap(self, x, like):
        numpy = library("numpy")
        if type(like) is numpy.ndarray or isinstance(like, numpy.memmap | numpy.generic):
            return x
        return like.__array_wrap__(x)

    def result(self, x, like):
        wrapped = self.wrap(x, like)
        return wrapped[()] if wrapped is x and not x.ndim else wrapped  # a 0-d result is a scalar, as NumPy's

    def restride(self, x, shape, strides):
        if (shape[: x.ndim], strides[: x.ndim]) == (x.shape, x.strides) and all(n == 1 for n in shape[x.ndim :]):
            return x.reshape(shape)  # a view, five times as soon
        return library("numpy").lib.stride_tricks.as_strided(x, shape, strides, subok=True)

    def permute(self, x, axes):
        return x.transpose(axes)

    def turned(self, x):
        return x.swapaxes(-1, -2)


class NumPyScalar(NumPy):
    """numpy.float32(1) and its like: 0-d arrays that have a dtype and cannot be written."""

    classes, scalar = ("numpy.generic",), True

    def exact(self, cls):
        return False

    lends = exact

    def view(self, x):
        return library("numpy").asarray(x)

    def address(self, x):
        return None

    def flaw(self, x):
        return "it is a NumPy scalar"

    def seal(self, x):
        return False


class Masked(NumPy):
    """Recognised in order to be refused: kernels would read what the mask hides."""

    classes = ("numpy.MaskedArray",)

    def exact(self, cls):
        return False

    lends = exact

    def device(self, x):
        raise TypeError("a masked array, whose mask would be lost: pass x.filled(value) or x.data")


class Refused(Adapter):
    """Recognised in order to say what can be done."""

    def __init__(self, name, classes, why):
        self.name, self.classes, self.why = name, classes, why

    def device(self, x):
        raise TypeError(self.why)

    spec = device


REFUSED = (
    Refused("JAX", ("jax.Tracer",), "a JAX tracer, as those of jit, grad and vmap, which has no data: use "
            "jax.pure_callback"),
    Refused("xarray", ("xarray.DataArray", "xarray.Variable", "xarray.Dataset"), "xarray's, whose arrays are inside: "
            "xarray.apply_ufunc(function, x, y) calls one on them"),
    Refused("dask", ("dask.Delayed",), "dask's Delayed, of which nobody knows shape or dtype: pass "
            "dask.array.from_delayed(x, shape, dtype)"),
)  # fmt: skip


class Named(Adapter):
    """The place of an adapter "module:name", which is imported when the first array of these classes is at hand."""

    def __init__(self, name, classes, where):
        self.name, self.classes, self.where = name, classes, where


class Immutable(DLPack):
    """Arrays that nobody may write, of libraries whose DLPack does not say so."""

    classes = ("jaxlib.ArrayImpl", "tensorflow.Tensor")

    def owns(self, cls):
        return super().owns(cls) and Adapter.owns(self, cls)

    def flaw(self, x):
        return "arrays of its library are immutable"


PROTOCOLS = DLPack(), CudaInterface()
# NumPy's come late: numba's mapped arrays are ndarrays as well. All of them speak the protocols, which come last.
_adapters = [NUMBA, Views(), CuPy(), Torch(), Meta(), Tracing(), Masked(), NumPy(), NumPyScalar(), *REFUSED,
             Immutable(), *PROTOCOLS]  # fmt: skip
_found = {}  # type -> its adapter, or None


def register_adapter(adapter):
    """Add an adapter; it is asked before the ones that are there. Returns it."""
    with keys.LOCK:
        _adapters.insert(0, adapter)
        _forget()
    return adapter


def unregister_adapter(adapter):
    with keys.LOCK:
        _adapters.remove(adapter)
        _forget()


def _forget():
    """A new dict, so that what another thread still finds among the old adapters ends up in the old one."""
    global _found
    _found = {}


def adapter_of(cls):
    """The adapter of a class of arrays, or None."""
    found = _found
    try:
        return found[cls]
    except KeyError:
        adapter = next((adapter for adapter in tuple(_adapters) if adapter.owns(cls)), None)
        return found.setdefault(cls, resolve(adapter.where) if isinstance(adapter, Named) else adapter)


def adapter_for(x):
    """The adapter of an array, also of one that speaks a protocol though its class does not; or None."""
    found = _found.get(type(x)) or adapter_of(type(x))
    return found or next((protocol for protocol in PROTOCOLS if protocol.owns(x)), None)


def names():
    """The libraries whose arrays are known."""
    known = (a.name for a in _adapters if a.intercept is None and not isinstance(a, Refused | Named))
    return tuple(dict.fromkeys(known))
