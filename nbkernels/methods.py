"""The methods that a public operation of two has, NumPy's: `add.reduce(x)`, `.accumulate`, `.outer`, `.at`."""

import functools

from .dispatch import arrays, keys, run, views
from .dispatch.errors import ArgumentError, DeviceError, describe
from .dispatch.operands import Operand, check_writable
from .folds import NOTHING, known, normal, resolve_fold, strong, warn_of_real


class First(int):
    """0 where nobody has said another: what an axis is by default, told from a 0 that was given."""


FIRST = First(0)


def chosen(name, default, axis, keepdims, dim, keepdim):
    """(axis, keepdims) of a call that says them in NumPy's words or in torch's, `dim` and `keepdim`; a TypeError where
    it says one in both."""
    if dim is not None:
        if axis is not default:
            raise TypeError(f"{name}: axis={axis!r} and dim={dim!r} are one argument: give one of them")
        axis = tuple(dim) if isinstance(dim, list) else dim
    if keepdim is not None:
        if keepdims is not False:
            raise TypeError(f"{name}: keepdims={keepdims!r} and keepdim={keepdim!r} are one argument: give one of them")
        keepdims = keepdim
    return axis, keepdims


def attach(function, reduce, accumulate, kernels):
    """Give a public function its methods: `reduce` and `accumulate` are ops that take its name, `kernels` are at's."""
    op = function.__name__

    def outer_of(self, other, **keywords):
        return outer(function, self, other, **keywords)

    def reduce_of(self, axis=FIRST, dtype=None, out=None, keepdims=False, initial=None, where=None, *, dim=None,
                  keepdim=None):  # fmt: skip
        if dim is not None or keepdim is not None:
            axis, keepdims = chosen(f"{op}.reduce", FIRST, axis, keepdims, dim, keepdim)
        axes = dimensions(op, self, axis)
        if type(keepdims) is int:
            keepdims = bool(keepdims)
        if dtype is out is initial is where is None:
            return reduce(self, op, axes, keepdims=keepdims)
        return reduce(
            self,
            op,
            axes,
            keepdims=keepdims,
            initial=initial,
            where=None if where is True else NOTHING if where is False else where,
            dtype=work(op, self, dtype, out),
            out=out,
        )

    def accumulate_of(self, axis=FIRST, dtype=None, out=None, *, dim=None):
        if dim is not None:
            axis, _ = chosen(f"{op}.accumulate", FIRST, axis, False, dim, None)
        if dtype is out is None:
            return accumulate(self, op, dimensions(op, self, axis))
        return accumulate(self, op, dimensions(op, self, axis), dtype=work(op, self, dtype, out), out=out)

    def at_of(self, indices, other):
        return at(op, kernels, self, indices, other)

    for name, method, doc in (
        ("outer", outer_of, OUTER),
        ("reduce", reduce_of, REDUCE),
        ("accumulate", accumulate_of, ACCUMULATE),
        ("at", at_of, AT),
    ):
        method.__name__, method.__qualname__, method.__doc__ = name, f"{op}.{name}", doc.format(op=op)
        method.__module__ = function.__module__  # where a pickle finds it
        setattr(function, name, method)


def work(op, self, dtype, out):
    """What a fold computes in where it is said: `dtype`, else by what an out has."""
    if dtype is not None:
        warn_of_real(op, self, dtype)
    if dtype is not None or out is None:
        return dtype
    given, to = (arrays.adapter_of(type(x)) for x in (self, out))
    return resolve_fold(op, given.spec(self).dtype, out=to.spec(out).dtype) if given and to else None


def dimensions(op, self, axis):
    """Axes of an array as the operations take them: a tuple in increasing order."""
    shape = getattr(self, "shape", None)
    if shape is None:
        shape = Operand.of(op, "self", self).spec.shape
    plain = (
        axis is None
        or type(axis) is int
        or axis is FIRST
        or (type(axis) is tuple and all(type(a) is int for a in axis))
    )
    return (kept_normal if plain else normal)(op, axis, len(shape))


kept_normal = functools.lru_cache(maxsize=4096)(normal)


def outer(function, self, other, **keywords):
    """function of every element of self with every one of other: out[i..., j...] = function(self[i...], other[j...]).

    >>> import numpy as np, nbkernels
    >>> nbkernels.subtract.outer(np.array([10, 20]), np.array([1, 2, 3]))
    array([[ 9,  8,  7],
           [19, 18, 17]])
    """
    adapter = arrays.adapter_of(type(self)) if type(self) is type(other) else None
    given = self, other
    if adapter is not None and adapter.exact(type(self)):  # NumPy's, at once
        self = self.reshape(self.shape + (1,) * other.ndim)
    else:
        self, other = strong(self), strong(other)
        left, right = views.spec(self), views.spec(other)
        if hasattr(left, "shape") and getattr(right, "shape", ()):
            ones = (1,) * len(right.shape)
            self = views.restride(self, tuple(left.shape) + ones, tuple(left.strides) + (0,) * len(ones))
    try:
        return function(self, other, **keywords)
    except MemoryError:
        left, right = map(views.spec, given)
        shape = (*getattr(left, "shape", ()), *getattr(right, "shape", ()))
        raise MemoryError(f"{function.__name__}.outer: no memory for a result of shape {shape}") from None


def at(op, kernels, self, indices, other):
    """self[i] = op(self[i], other[i]) for one index after the other, in place.

    >>> import numpy as np, nbkernels
    >>> x = np.zeros(3)
    >>> nbkernels.add.at(x, [0, 2, 2], 1.0)
    >>> x
    array([1., 0., 2.])
    """
    adapter, source = arrays.adapter_of(type(self)), arrays.adapter_of(type(other))
    if adapter is None:
        raise ArgumentError(f"{op}.at: self must be an array, not {describe(self)}")
    try:
        device = adapter.device(self)
    except TypeError as error:
        raise ArgumentError(f"{op}.at: self is {error}") from None
    row = kernels.on(device.key, f"{op}.at")
    if row.fast and adapter.exact(type(self)) and row.load_fast()(op, self, indices, other):
        return
    if source and source.device(other) != device and source.spec(other).shape:
        raise DeviceError(
            f"{op}.at: all arrays must be on one device: self on {device}, other on {source.device(other)}"
        )
    spec = adapter.spec(self)
    for name, given in (("self", spec), ("other", source and source.spec(other))):
        if given is not None:
            known(op, given, name)
    check_writable(f"{op}.at", Operand("self", self, adapter, device, spec))
    index = indices if device.key == keys.CPU else indexing(indices, device)
    written, other = adapter.view(self), source.view(other) if source else other
    with adapter.guard(device), run.ordered(written, [other, *(index if isinstance(index, tuple) else [index])]):
        row.load()(op, written, index, other)
    adapter.written(self)


def indexing(indices, device):
    """Indices as a device's kernels take them: those on a CUDA device as views where it is theirs; else NumPy's."""
    if isinstance(indices, tuple):
        return tuple([indexing(part, device) for part in indices])
    adapter = arrays.adapter_of(type(indices))
    if adapter is None:
        return indices
    near = device.key == keys.CUDA and adapter.device(indices) == device
    return adapter.view(indices) if near else adapter.host(indices)


OUTER = """{op} of every element of self with every one of other: out[i..., j...] = {op}(self[i...], other[j...])."""

REDUCE = """\
out = self folded by {op} over `axis`: a dimension, a tuple of them, or None for all

What may be folded in any order is, pairwise: the order depends on sizes alone. Anything else goes from the first
element on, along one axis. float16 and bfloat16 are folded in float32 and rounded once; sums and products of small
integers are int64's; with `out` and no `dtype`, all is computed in what holds self's numbers and out's. `keepdims`
keeps the dimensions with size 1; torch's words for both, `dim` and `keepdim`, are taken as well. `initial` comes first
(None is the identity, where there is one); `where` chooses elements.

Raises ValueError where there is nothing to fold and {op} has no identity. Source: NumPy's {op}.reduce."""

ACCUMULATE = """\
out[k] = {op}(out[k - 1], self[k]) along `axis`, out[0] = self[0]

In order, with NumPy's dtypes. Source: NumPy's {op}.accumulate."""

AT = """\
self[i] = {op}(self[i], other[i]) for one index after the other, in place: a repeated one counts each time

`indices` is anything that indexes an array. On CUDA the call waits until they are known to be in bounds; in a stream
that is captured into a graph it cannot, and leaves out those that are not. Source: NumPy's {op}.at."""
