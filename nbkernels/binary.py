"""The element-wise operations of two: what each computes, and the shape, dtype and order of what comes out.

Pure, as meta.py: specs and Python numbers in, a Result or an error out. `rule(op)` is the meta function of an
operation, its docstring made from the row of DOCS.
"""

from typing import NamedTuple

import numpy as np

from .dtypes import DTYPES, kind, known, resolve, settled, stated
from .meta import real
from .strides import broadcast_shapes, output_strides

CASTINGS = "no", "equiv", "safe", "same_kind", "unsafe"
# operation: formula; what is special about it; the arguments of an example; its result.
DOCS = {
    "add": (
        "self + alpha * other",
        "Integers wrap; of bools it is \"or\". `alpha` is a number of the result's kind. Source: ATen's add.",
        "np.array([[1.0], [2.0]]), np.array([10.0, 20.0]), alpha=0.5",
        "array([[ 6., 11.],\n       [ 7., 12.]])",
    ),
    "subtract": (
        "self - alpha * other",
        "Integers wrap; not defined for two bools. Source: ATen's sub.",
        "np.array([5, 6]), 1, alpha=2",
        "array([3, 4])",
    ),
    "multiply": (
        "self * other",
        'Integers wrap; of bools it is "and".',
        "np.array([1, 2, 3], dtype=np.int8), 100",
        "array([100, -56,  44], dtype=int8)",
    ),
    "divide": ("self / other", "Of integers and bools it is float64.", "np.array([1, 2]), 4", "array([0.25, 0.5 ])"),
    "floor_divide": (
        "floor(self / other)",
        "Of integers x // 0 is 0, with NumPy's RuntimeWarning; the smallest integer // -1 is itself, with another.",
        "np.array([7, -7]), 2",
        "array([ 3, -4])",
    ),
    "remainder": (
        "self - floor(self / other) * other",
        "It has the sign of other, as Python's %. Of integers x % 0 is 0, with NumPy's RuntimeWarning.",
        "np.array([7, -7]), 3",
        "array([1, 2])",
    ),
    "fmod": (
        "self - trunc(self / other) * other",
        "It has the sign of self, as C's. Of integers fmod(x, 0) is 0, with NumPy's RuntimeWarning.",
        "np.array([7, -7]), 3",
        "array([ 1, -1])",
    ),
    "pow": (
        "self ** other",
        "Integers wrap; a negative power of theirs is a ValueError, on CUDA its whole part.",
        "np.array([1, 2, 3]), 2",
        "array([1, 4, 9])",
    ),
    "float_power": ("self ** other", "In float64 or complex128.", "np.array([1, 2]), -1", "array([1. , 0.5])"),
    "maximum": (
        "the larger of self and other, NaN where either is NaN; of zeros the positive one",
        'Of bools it is "or".',
        "np.array([-1.0, 2.0]), 0",
        "array([0., 2.])",
    ),
    "minimum": (
        "the smaller of self and other, NaN where either is NaN; of zeros the negative one",
        'Of bools it is "and".',
        "np.array([[1, 5], [7, 2]]), np.array([3, 4])",
        "array([[1, 4],\n       [3, 2]])",
    ),
    "fmax": (
        "the larger of self and other, the number where one is NaN; of zeros the positive one",
        'Of bools it is "or".',
        "np.array([np.nan, 2.0]), 0",
        "array([0., 2.])",
    ),
    "fmin": (
        "the smaller of self and other, the number where one is NaN; of zeros the negative one",
        'Of bools it is "and".',
        "np.array([np.nan, 2.0]), 0",
        "array([0., 0.])",
    ),
    "atan2": (
        "the angle of the point (other, self), from -pi to pi",
        "Floats; integers become some.",
        "np.array([0.0, 1.0]), 1.0",
        "array([0.        , 0.78539816])",
    ),
    "hypot": (
        "sqrt(self**2 + other**2), without overflow on the way",
        "Floats; integers become some.",
        "np.array([3.0, 6.0]), np.array([4.0, 8.0])",
        "array([ 5., 10.])",
    ),
    "copysign": (
        "|self| with the sign of other",
        "Floats; integers become some.",
        "np.array([1.0, 2.0]), np.array([-1.0, 0.0])",
        "array([-1.,  2.])",
    ),
    "nextafter": (
        "the next float from self towards other; other where they are equal",
        "Floats; integers become some.",
        "np.array([1.0]), 2.0",
        "array([1.])",
    ),
    "logaddexp": (
        "log(exp(self) + exp(other)), without overflow on the way",
        "Floats; integers become some.",
        "np.array([1000.0, 0.0]), 1000.0",
        "array([1000.69314718, 1000.        ])",
    ),
    "heaviside": (
        "0 where self < 0, other where it is 0, 1 where it is larger",
        "Floats; integers become some.",
        "np.array([-2.0, 0.0, 2.0]), 0.5",
        "array([0. , 0.5, 1. ])",
    ),
    "ldexp": ("self * 2**other", "other has integers.", "np.array([1.0, 3.0]), np.array([2, -1])", "array([4. , 1.5])"),
    "gcd": ("the greatest common divisor", "Integers.", "np.array([12, 7]), 8", "array([4, 1])"),
    "lcm": ("the least common multiple", "Integers; wraps.", "np.array([12, 7]), 8", "array([24, 56])"),
    "equal": ("self == other", "Bools.", "np.array([1, 2]), 2", "array([False,  True])"),
    "not_equal": ("self != other", "Bools.", "np.array([1, 2]), 2", "array([ True, False])"),
    "less": ("self < other", "Bools; integers are compared exactly.", "np.array([1, 2]), 2", "array([ True, False])"),
    "less_equal": ("self <= other", "Bools.", "np.array([1, 2]), 1", "array([ True, False])"),
    "greater": ("self > other", "Bools.", "np.array([1, 2]), 1", "array([False,  True])"),
    "greater_equal": ("self >= other", "Bools.", "np.array([1, 2]), 2", "array([False,  True])"),
    "logical_and": ("self != 0 and other != 0", "Bools.", "np.array([0, 2]), 3", "array([False,  True])"),
    "logical_or": ("self != 0 or other != 0", "Bools.", "np.array([0, 2]), 0", "array([False,  True])"),
    "logical_xor": ("exactly one of self and other is not 0", "Bools.", "np.array([0, 2]), 1", "array([ True, False])"),
    "bitwise_and": ("self & other", "Integers and bools.", "np.array([12, 5]), 6", "array([4, 4])"),
    "bitwise_or": ("self | other", "Integers and bools.", "np.array([12, 5]), 6", "array([14,  7])"),
    "bitwise_xor": ("self ^ other", "Integers and bools.", "np.array([12, 5]), 6", "array([10,  3])"),
    "bitwise_left_shift": (
        "self << other",
        "Integers; 0 where other is negative or not less than the bits of self.",
        "np.array([1, 3]), 2",
        "array([ 4, 12])",
    ),
    "bitwise_right_shift": (
        "self >> other",
        "Integers; the sign, 0 or -1, where other is negative or not less than the bits of self.",
        "np.array([8, -8]), 2",
        "array([ 2, -2])",
    ),
}

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


def rule(op, scaled=False):
    """The meta function of an operation: (self, other, [alpha,] where, casting, order, dtype) -> Result."""
    if scaled:

        def meta(self, other, alpha=1, where=None, casting=None, order=None, dtype=None):
            result = binary(op, self, other, where, casting, order, dtype)
            factor(op, result.dtype, alpha)
            return result
    else:

        def meta(self, other, where=None, casting=None, order=None, dtype=None):
            return binary(op, self, other, where, casting, order, dtype)

    formula, note, example, result = DOCS[op]
    meta.__name__ = meta.__qualname__ = op
    meta.__doc__ = DOCSTRING.format(op=op, formula=formula, note=note, example=example, result=result)
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
