"""The element-wise operations of two: what each computes, and the shape, dtype and order of what comes out.

Pure, as meta.py: specs and Python numbers in, a Result or an error out. `rule(op)` is the meta function of an
operation, its docstring made from its row in operations.py.
"""

from typing import NamedTuple

import numpy as np

from .dtypes import DTYPES, kind, known, resolve, settled, stated
from .meta import real
from .operations import BINARY
from .strides import broadcast_shapes, output_strides

CASTINGS = "no", "equiv", "safe", "same_kind", "unsafe"
DOCSTRING = """\
out = {formula}

{note}
Broadcasts, with NumPy 2's dtypes: a Python number takes the array's where its kind can hold it. Any integers, floats
(bfloat16 too), complex numbers and bools, where the operation is defined.

out      of any dtype that the result may be cast to
where    bools; where False, out keeps what it had (and a new result has anything)
casting  "no", "equiv", "safe", "same_kind" (the default) or "unsafe": what `dtype` and `out` may ask for
order    "K" (the default: as the operands lie), "C", "F" or "A", of a new result
dtype    what to compute in, NumPy's way

Raises ValueError for shapes that do not broadcast, OverflowError for a Python int that the dtype cannot hold, TypeError
where the dtypes have no such operation. Source: NumPy's {op}, whose RuntimeWarnings for floats are not given.

>>> import numpy as np, nbkernels
>>> nbkernels.{op}({example})
{result}
"""


class Result(NamedTuple):
    """What comes out: strides in bytes of the dense array to allocate, and how it may be cast."""

    shape: tuple
    dtype: np.dtype
    strides: tuple
    casting: str

    def casts(self, out):
        """Whether the result may be cast into an out of another dtype."""
        return known(out) and np.can_cast(self.dtype, out, self.casting)


def rule(op):
    """The meta function of an operation: (self, other, [alpha,] where, casting, order, dtype) -> Result."""
    if BINARY[op].scaled:

        def meta(self, other, alpha=1, where=None, casting=None, order=None, dtype=None):
            result = binary(op, self, other, where, casting, order, dtype)
            factor(op, result.dtype, alpha)
            return result
    else:

        def meta(self, other, where=None, casting=None, order=None, dtype=None):
            return binary(op, self, other, where, casting, order, dtype)

    meta.__name__ = meta.__qualname__ = op
    meta.__doc__ = DOCSTRING.format(op=op, **BINARY[op]._asdict())
    return meta


def binary(op, self, other, where=None, casting=None, order=None, dtype=None):
    """What comes out of an operation on specs or Python numbers, at least one of them a spec."""
    tensors = {"self": self, "other": other, "where": where}
    arrays = {name: x for name, x in tensors.items() if hasattr(x, "dtype")}
    for name, x in arrays.items():
        supported(op, name, x.dtype)
    if where is not None and kind(where) is not np.dtype(bool):
        raise TypeError(f"{op}: where must be bool, and it is {getattr(kind(where), '__name__', kind(where))}")
    casting = "same_kind" if casting is None else casting
    if casting not in CASTINGS:
        raise ValueError(f"{op}: casting must be one of {', '.join(map(repr, CASTINGS))}, not {casting!r}")
    try:
        shape = broadcast_shapes(*(tuple(x.shape) for x in arrays.values()))
    except ValueError as error:
        raise ValueError(f"{op}: {error}") from None
    values = settled(op, self, other), settled(op, other, self)
    work = resolve(op, *map(kind, values), stated(op, dtype), casting)
    for name, value, to in zip(("self", "other"), values, work):
        holds(op, name, value, to)
    if op == "pow" and type(other) is int and other < 0 and work[1].kind in "iu":
        raise ValueError(f"pow: other={other} is negative: integers to negative integer powers are not allowed")
    inputs = [arrays[name] for name in ("self", "other") if name in arrays]
    return Result(shape, work[2], ordered(op, order, shape, inputs, work[2].itemsize), casting)


def supported(op, name, dtype):
    """Raise where elements of a dtype cannot be read."""
    if not known(dtype):
        swapped = dtype.name in DTYPES
        why = f"is byte-swapped ({dtype.str}): pass x.astype({dtype.name!r})" if swapped else f"has dtype {dtype}"
        raise TypeError(f"{op}: {name} {why}" + ("" if swapped else f"; supported are {', '.join(DTYPES)}"))


def holds(op, name, value, dtype):
    """Raise an OverflowError where a Python int is out of a dtype's range, as NumPy does."""
    if type(value) is int and dtype.kind in "biu":
        info = np.iinfo(np.int64 if dtype.kind == "b" else dtype)
        if not info.min <= value <= info.max:
            raise OverflowError(f"{op}: {name}={value} is out of bounds for {dtype} ({info.min} to {info.max})")
    elif type(value) is int:
        real(op, **{name: value})


def factor(op, dtype, alpha):
    """Raise where alpha is not a number of the result's kind."""
    kinds = {bool: "b", int: "biufcV", float: "fcV", complex: "c"}[type(alpha)]
    if dtype.kind not in kinds:
        name = "complex" if type(alpha) is complex else f"a {type(alpha).__name__}"
        raise TypeError(f"{op}: alpha={alpha} is {name} and the result is {dtype}")
    if dtype.kind in "fcV":
        real(op, alpha=alpha.real)


def compact(*layout):
    """output_strides, also of sizes that have no hash: torch's symbols."""
    try:
        return output_strides(*layout)
    except TypeError:
        return output_strides.__wrapped__(*layout)


def ordered(op, order, shape, inputs, itemsize):
    """Strides of a new result in one of NumPy's orders."""
    if order not in (None, "K", "C", "F", "A"):
        raise ValueError(f"{op}: order must be one of 'K', 'C', 'F' and 'A', not {order!r}")
    if order in (None, "K"):
        shapes, strides = [tuple(x.shape) for x in inputs], [tuple(x.strides) for x in inputs]
        return compact(shape, tuple(shapes), tuple(strides), itemsize)
    fortran = order == "F" or (order == "A" and all(map(columns_first, inputs)))
    return columns(shape, itemsize) if fortran else columns(shape[::-1], itemsize)[::-1]


def columns(shape, itemsize):
    """Strides of a dense array whose first index is the fastest."""
    strides, step = [], itemsize
    for size in shape:
        strides.append(step)
        step *= max(size, 1)
    return tuple(strides)


def columns_first(x):
    """Whether an array lies densely in Fortran's order."""
    wanted = columns(tuple(x.shape), x.dtype.itemsize)
    return 0 in x.shape or all(n == 1 or s == w for n, s, w in zip(x.shape, x.strides, wanted))
