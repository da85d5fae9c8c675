"""Weights that are packed once for many products: pack and Packed."""

from __future__ import annotations

from importlib import import_module
from math import prod

import numpy as np

from .dispatch import Adapter, ArgumentError, arrays, run
from .dispatch.adapter import CPU, Spec
from .dispatch.errors import describe
from .dispatch.layout import c_strides

KERNELS = "nbkernels.cpu.gemm.panels"  # by name, where a matrix is packed
SIDES = {"mat2": "mat2 of mm, addmm and matmul", "weight": "the weight of linear"}
DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
)
TAKEN = {"mm": 1, "addmm": 2}  # the operations, and which of their arguments may be packed,
BODIES = "linear", "matmul"  # and those that are written over them


class Packed:
    """A matrix in the layout of this machine's kernels: what `pack` makes, and mm, addmm, matmul or linear take in its
    place

    `shape` and `dtype` are the matrix's, `for_` is the side, `nbytes` the memory; `unpack()` is the matrix as a new
    array. It does not change. It pickles as the matrix, and is packed anew where it is read.

    >>> import numpy as np, nbkernels
    >>> w = nbkernels.pack(np.arange(6.0).reshape(2, 3), for_="weight")
    >>> w
    Packed(2 x 3, float64, for weight)
    >>> w.unpack()
    array([[0., 1., 2.],
           [3., 4., 5.]])
    """

    __slots__ = ("for_", "panels", "shape", "strides")

    def __init__(self, panels, for_, shape, strides):
        self.panels, self.for_, self.shape, self.strides = panels, for_, tuple(shape), tuple(strides)

    dtype = property(lambda self: self.panels.dtype)
    nbytes = property(lambda self: self.panels.memory.nbytes)
    ndim = property(lambda self: len(self.shape))

    def unpack(self) -> np.ndarray:
        """The matrix, as a new array."""
        b = import_module(KERNELS).unpacked(self.panels)
        return np.ascontiguousarray(b.T) if self.for_ == "weight" else b

    def __repr__(self):
        return f"Packed({' x '.join(map(str, self.shape))}, {self.dtype}, for {self.for_})"

    def __array__(self, *args, **kwargs):
        raise TypeError("packed weights are no array: unpack() gives the matrix")

    def __reduce__(self):
        return pack, (self.unpack(), self.for_)


def pack(matrix, for_: str = "mat2") -> Packed:
    """A matrix of weights in the layout of this machine's kernels, for products that take it in its place

    matrix is 2-D, of floats or whole numbers, in any layout: NumPy's, or any that is on the CPU.
    for_="mat2": (k, n), for `mm(x, w)`, `addmm(b, x, w)` and `matmul(x, w)`; for_="weight": (n, k), for
    `linear(x, w)`. The products have the same bits as with the matrix itself, and take the same keywords but tiles. It
    takes as many bytes as the matrix; of float16, of bfloat16 by chains, and of int8 without AVX-512's VNNI, twice as
    many. It is worth it where 2 to 64 rows meet large weights, again and again. One row of floats is as fast without
    it, and faster where the weights stay in the caches; one of int8 gains most.

    Raises TypeError for another dtype, ValueError for another side or number of dimensions.

    >>> import numpy as np, nbkernels
    >>> x, weight = np.ones((2, 3), np.float32), np.arange(12, dtype=np.float32).reshape(4, 3)
    >>> nbkernels.linear(x, nbkernels.pack(weight, for_="weight"))
    array([[ 3., 12., 21., 30.],
           [ 3., 12., 21., 30.]], dtype=float32)
    """
    adapter = arrays.adapter_for(matrix)
    if adapter is None or isinstance(adapter, Weights) or adapter.intercept or adapter.device(matrix) != CPU:
        raise TypeError(f"pack: a matrix on the CPU is wanted, not {describe(matrix)}")
    if for_ not in SIDES:
        raise ValueError(f"pack: for_ is {' or '.join(map(repr, SIDES))}, not {for_!r}")
    b = np.asarray(adapter.view(matrix))
    if b.ndim != 2:
        raise ValueError(f"pack: a matrix is wanted, not an array of shape {b.shape}")
    if b.dtype.name not in DTYPES:
        raise TypeError(f"pack: {b.dtype} is none of {', '.join(DTYPES)}")
    b = b.astype(b.dtype.newbyteorder("="), copy=False)
    panels = import_module(KERNELS).panels(b.T if for_ == "weight" else b)
    return Packed(panels, for_, b.shape, c_strides(b.shape, b.dtype.itemsize))


class Weights(Adapter):
    """Products see the matrix's shape and strides; nothing else may read it."""

    name, hands_on = "packed", False

    def owns(self, cls):
        return cls is Packed

    def lends(self, cls):
        return True

    def spec(self, x):
        return Spec(x.shape, x.dtype, x.strides)

    def view(self, x):
        return x.panels

    def flaw(self, x):
        return "packed weights do not change"

    def version(self, x):
        return 0

    def whole(self, x):
        return x.unpack()

    def restride(self, x, shape, strides):
        return Packed(x.panels, x.for_, shape, strides)

    def intercept(self, op, row, args, out, in_place):
        name = op.named(args, in_place)
        slots, operands = op.bind(name, args)
        if op.schema.name not in BODIES:
            for i, slot in enumerate(slots):
                if isinstance(getattr(slot, "value", None), Packed):
                    self.usable(name, op.names[i], slot.value, i == TAKEN.get(op.schema.name))
        target = None if out is None else op.target(name, out, in_place)
        if target is not None and isinstance(target.value, Packed):
            raise target.adapter.unwritable(f"{name}: {target.name} cannot be written: {self.flaw(target.value)}")
        lead = op.lead(name, operands, target)
        with lead.adapter.guard(lead.device):
            return run.run(op, name, row, slots, lead, target, in_place)

    @staticmethod
    def usable(name, word, x, taken):
        """Raise where packed weights are not the matrix that the products read, or are not packed for this one."""
        k, n = x.panels.shape
        step = x.dtype.itemsize
        wanted = (step, k * step) if x.for_ == "weight" else (n * step, step)
        if not taken or x.shape != (k, n) or (prod(x.shape) and x.strides != wanted):
            raise ArgumentError(f"{name}: {word} is packed for {SIDES[x.for_]}; unpack() gives the matrix")


def at_once(op, types, fast, again):
    """The fast path of products of NumPy's arrays and packed weights."""
    name, usual = op.schema.name, (np.ndarray, type(None), Packed)
    if name not in ("mm", "linear") or types[0] is not np.ndarray or types[1] is not Packed or {*types} - {*usual}:
        return None
    times, side = import_module(KERNELS).times, "weight" if name == "linear" else "mat2"

    def linear(x, w, bias, out, out_dtype=None):
        return times(x, w.panels, bias, out, out_dtype) if w.for_ == side else None

    def mm(x, w, out, out_dtype=None):
        return linear(x, w, None, out, out_dtype) if x.ndim == 2 else None

    def keywords(*given):
        *arrays, out_dtype, mode, conj, tiles, out = given
        return made(*arrays, out, out_dtype) if mode is conj is tiles is None else None

    made = mm if name == "mm" else linear
    made.with_keywords = keywords
    return made


arrays.register_adapter(Weights())
