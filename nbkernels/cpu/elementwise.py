"""out[i] = fn(self[i], other[i]) over broadcast NumPy arrays of any strides.

Kernels get an `out` of the broadcast shape, every check passed. Inputs are read through their strides and converted in
the loop; an input that really overlaps out other than element for element is copied first. The fast forms serve small
contiguous calls in one step and decline the rest.
"""

from __future__ import annotations

import functools

import numpy as np

from .. import scalar
from ..jit.loops import Loop, address
from ..strides import broadcast_shapes, distinct, output_strides, plan
from . import nest
from .quick import DONE, UNKNOWN, small_entry

FLOATS = ("float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NO_SCALARS = np.empty(0)


def weak(dtype: np.dtype, value: bool | int | float) -> np.dtype:
    """The dtype in which a Python scalar joins an array of `dtype` (NEP 50): the array's, or its own kind's default."""
    if isinstance(value, float) and dtype.kind in "biu":
        return np.dtype(np.float64)
    if not isinstance(value, bool) and dtype.kind == "b":
        return np.dtype(np.int64)
    return dtype


@functools.cache
def computing(op: str, first: np.dtype, second: np.dtype) -> np.dtype:
    """The dtype that an operation computes in: NumPy's promotion, and float64 for a quotient of integers."""
    for dtype in (first, second):
        if not dtype.isnative or dtype.name not in (*FLOATS, *INTEGERS, "bool"):
            raise TypeError(f"{op}: no loop for dtype {dtype!r} ({first}, {second})")
    dtype = np.result_type(first, second)
    if op == "divide" and dtype.kind != "f":
        return np.dtype(np.float64)
    if dtype.kind == "b" and op not in scalar.BOOL:
        raise TypeError(f"{op} is not defined for two bool arrays")
    return dtype


@functools.cache
def loop(op: str, first: np.dtype, second: np.dtype, out: np.dtype, streamed: bool = False) -> int:
    """Address of the compiled loops of an operation over inputs and an output of these dtypes."""
    dtype = computing(op, first, second)
    if not out.isnative or not np.can_cast(dtype, out, "same_kind"):
        raise TypeError(f"{op}: cannot cast the result from {dtype} to {out!r} under casting='same_kind'")
    function = scalar.BOOL[op] if dtype.kind == "b" else getattr(scalar, op)
    scalars = int(op.endswith("_scaled"))
    return address(Loop(function, (first.name, second.name), dtype.name, out.name, scalars, streamed))


@functools.lru_cache(maxsize=4096)
def _nest(op, out_dtype, first_dtype, second_dtype, shapes, strides, fresh) -> nest.Nest:
    """The loops of a call, planned and compiled."""
    itemsizes = (out_dtype.itemsize, first_dtype.itemsize, second_dtype.itemsize)
    loops = plan(shapes, strides, itemsizes)
    streamed = not fresh and nest.streamed(loops, out_dtype.itemsize)
    return nest.Nest(loops, loop(op, first_dtype, second_dtype, out_dtype, streamed), itemsizes)


def binary(op: str, out, self, other, alpha=1, fresh=False) -> None:
    """out = op(self, other), or op_scaled(self, other, alpha) for an alpha that is not 1.

    `fresh` says that nobody has touched out's memory. The system zeroes such a page at the first store, in the cache:
    streaming stores would wait for it to be written back (16 M f32, one thread: 21 ms against 17).
    """
    if not isinstance(self, np.ndarray):
        self = np.asarray(self, weak(other.dtype, self))
    if not isinstance(other, np.ndarray):
        other = np.asarray(other, weak(self.dtype, other))
    scalars = NO_SCALARS
    if alpha != 1:
        op += "_scaled"
        scalars = _wrapped(alpha, computing(op, self.dtype, other.dtype))
    if out.size == 0:
        return
    if not _run(op, scalars, out, self, other, fresh, apart=False):
        _run(op, scalars, out, _settled(out, self), _settled(out, other), fresh, apart=True)


def _run(op, scalars, out, self, other, fresh, apart):
    shapes, strides = (out.shape, self.shape, other.shape), (out.strides, self.strides, other.strides)
    loops = _nest(op, out.dtype, self.dtype, other.dtype, shapes, strides, fresh)
    return loops.run(scalars, out, self, other, apart)


def _wrapped(value, dtype: np.dtype) -> np.ndarray:
    """A scalar as an array of one element, an integer modulo 2^bits."""
    if dtype.kind in "iu":
        return np.array([int(value) % (1 << 8 * dtype.itemsize)], f"u{dtype.itemsize}").view(dtype)
    return np.array([value], dtype)


def _settled(out, x):
    """x, or a copy where out really overlaps it other than element for element."""
    if x is out or not np.may_share_memory(out, x):
        return x
    layouts = [(a.ctypes.data, a.shape, a.strides, a.itemsize) for a in (out, x)]
    if layouts[0] == layouts[1]:
        return x
    try:
        overlap = np.shares_memory(out, x, max_work=10_000)
    except np.exceptions.TooHardError:
        overlap = True
    return x.copy() if overlap else x


def add(out, self, other, alpha=1) -> None:
    """out = self + alpha*other."""
    binary("add", out, self, other, alpha)


def subtract(out, self, other, alpha=1) -> None:
    """out = self - alpha*other."""
    binary("subtract", out, self, other, alpha)


def multiply(out, self, other) -> None:
    """out = self * other."""
    binary("multiply", out, self, other)


def divide(out, self, other) -> None:
    """out = self / other, of integers in float64."""
    binary("divide", out, self, other)


def maximum(out, self, other) -> None:
    """out = the larger of self and other; NaN where either is NaN."""
    binary("maximum", out, self, other)


def minimum(out, self, other) -> None:
    """out = the smaller of self and other; NaN where either is NaN."""
    binary("minimum", out, self, other)


class Table:
    """An operation's compiled loops by the addresses of three dtype objects: rows of eight int64 for the small entry.

    Only results of the computing dtype are here, so a row that matches a fresh result has found the right dtype for it.
    Of the scaled operations only those on floats are.
    """

    ROWS = 256

    def __init__(self, op: str):
        self.op = op
        self.rows = np.zeros((self.ROWS, 8), np.int64)  # the last stays zero: the end
        self.dtypes = []  # keeps the dtype objects, hence their addresses, alive
        self.address = self.rows.ctypes.data

    def add(self, out: np.dtype, first: np.dtype, second: np.dtype) -> bool:
        """Compile and enter the loops over these dtypes; False where the small entry will not have them."""
        dtypes = (out, first, second)
        try:
            if computing(self.op, first, second) != out or len(self.dtypes) == self.ROWS - 1:
                return False
        except TypeError:
            return False
        scaled = self.op.endswith("_scaled")
        if scaled and out.kind != "f":
            return False
        loops = loop(self.op, first, second, out)
        row = (*map(id, dtypes), *(d.itemsize for d in dtypes), loops, out.itemsize if scaled else 0)
        self.rows[len(self.dtypes)] = row
        self.dtypes.append(dtypes)
        return True


def _fast(op: str):
    """The fast form of an operation: the result, or None where the general path has to do it or say what is wrong."""
    table = Table(op)
    row = table.address

    def small(*args):  # until the first call, so that importing this module compiles nothing
        nonlocal small
        small = small_entry()
        return small(*args)

    def fast(self, other, out, alpha=1, ndarray=np.ndarray, empty_like=np.empty_like):
        if type(self) is not ndarray or type(other) is not ndarray:
            self, other = _with_scalar(self, other)
            if self is None:
                return None
        if out is None:
            result = empty_like(self)
        elif type(out) is ndarray:
            result = out
        else:
            return None
        status = small(row, id(result), id(self), id(other), alpha)
        if status == DONE:
            return result
        if out is None and self.ndim < other.ndim:
            result = empty_like(other)
            status = small(row, id(result), id(self), id(other), alpha)
        if status == UNKNOWN and table.add(result.dtype, self.dtype, other.dtype):
            status = small(row, id(result), id(self), id(other), alpha)
        return result if status == DONE else _planned(op.removesuffix("_scaled"), self, other, alpha, out)

    return fast


def _with_scalar(self, other):
    """An array and a Python scalar as two arrays of one dtype; (None, None) where the general path knows better."""
    array, value = (self, other) if type(self) is np.ndarray else (other, self)
    kind, number = array.dtype.kind, type(value)
    if not (number is int and kind in "iuf") and not (number is float and kind == "f"):
        return None, None
    try:
        value = np.array(value, array.dtype)
    except OverflowError:
        return None, None
    return (array, value) if array is self else (value, array)


@functools.lru_cache(maxsize=4096)
def _outcome(op, first, second, shapes, strides):
    """Shape, dtype and strides of a result, or None where there is none."""
    try:
        shape, dtype = broadcast_shapes(*shapes), computing(op, first, second)
    except (TypeError, ValueError):
        return None
    return shape, dtype, output_strides(shape, shapes, strides, dtype.itemsize)


def _planned(op, self, other, alpha, out):
    """The result by way of a plan, of any layout and size; None where anything is unusual, and nothing is done."""
    layouts = (self.shape, other.shape), (self.strides, other.strides)
    outcome = _outcome(op, self.dtype, other.dtype, *layouts)
    if outcome is None:
        return None
    shape, dtype, strides = outcome
    if 0 in shape or (type(alpha) is float and dtype.kind != "f"):
        return None
    fresh = out is None
    if fresh:
        out = np.ndarray(shape, dtype, strides=strides)
    elif (
        out.dtype != dtype
        or out.shape != shape
        or not (out.flags.writeable and distinct(shape, out.strides, dtype.itemsize))
    ):
        return None
    binary(op, out, self, other, alpha, fresh)
    return out


_add, _subtract = _fast("add"), _fast("subtract")
_add_scaled, _subtract_scaled = _fast("add_scaled"), _fast("subtract_scaled")
multiply_fast, divide_fast = _fast("multiply"), _fast("divide")
maximum_fast, minimum_fast = _fast("maximum"), _fast("minimum")
ONE = 1


def _plain(alpha) -> bool:
    """Whether alpha is a number that a float64 holds exactly."""
    return type(alpha) is float or (type(alpha) is int and abs(alpha) <= 1 << 53)


def add_fast(self, other, alpha, out):
    if alpha is ONE:
        return _add(self, other, out)
    return _add_scaled(self, other, out, alpha) if _plain(alpha) else None


def subtract_fast(self, other, alpha, out):
    if alpha is ONE:
        return _subtract(self, other, out)
    return _subtract_scaled(self, other, out, alpha) if _plain(alpha) else None
