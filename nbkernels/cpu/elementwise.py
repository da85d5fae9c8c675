"""out[i] = fn(self[i], other[i]) over broadcast NumPy arrays of any strides.

Kernels get an `out` of the broadcast shape, every check passed. Inputs are read through their strides and converted in
the loop; an input that really overlaps out other than element for element is copied first. The fast forms serve small
contiguous calls in one step and decline the rest.
"""

from __future__ import annotations

import functools

import numpy as np

from .. import scalar
from ..jit.address import scratch
from ..jit.cache import entry, jit
from ..jit.loops import Loop, address, call_loop, direct, set_word, word
from ..jit.ndarray import C_CONTIGUOUS, F_CONTIGUOUS, WRITEABLE, data, descr, flags, ndim, shape
from ..strides import plan
from . import nest

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


def binary(op: str, out, self, other, alpha=1) -> None:
    """out = op(self, other), or op_scaled(self, other, alpha) for an alpha that is not 1."""
    if not isinstance(self, np.ndarray):
        self = np.asarray(self, weak(other.dtype, self))
    if not isinstance(other, np.ndarray):
        other = np.asarray(other, weak(self.dtype, other))
    name = op if alpha == 1 else f"{op}_scaled"
    scalars = NO_SCALARS if alpha == 1 else _wrapped(alpha, computing(name, self.dtype, other.dtype))
    self, other = _settled(out, self), _settled(out, other)
    arrays = (out, self, other)
    itemsizes = (out.itemsize, self.itemsize, other.itemsize)
    loops = plan(tuple(x.shape for x in arrays), tuple(x.strides for x in arrays), itemsizes)
    streamed = nest.streamed(loops, out.itemsize)
    nest.run(loops, loop(name, self.dtype, other.dtype, out.dtype, streamed), scalars, *arrays)


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
        loops = loop(self.op, first, second, out)
        self.rows[len(self.dtypes), :7] = (*map(id, dtypes), *(d.itemsize for d in dtypes), loops)
        self.dtypes.append(dtypes)
        return True


DONE, DECLINED, LARGE, UNKNOWN = 0, 1, 2, 3  # what the small entry answers
# Elements up to which one call under the GIL does all the work, about 5 us of it.
SMALL = 1 << 14


@jit
def _period(out, x):
    """After how many elements a C-ordered x starts again as it fills `out`; -1 where it is not repeated so simply."""
    lead, period, whole = ndim(out) - ndim(x), 1, True
    if lead < 0:
        return -1
    for d in range(ndim(x) - 1, -1, -1):
        n = shape(x, d)
        if n != 1 and not whole:
            return -1
        if n != shape(out, lead + d):
            if n != 1:
                return -1
            whole = False
        period *= n
    return period


@jit
def _clear(out, size, width, x, period, x_width):
    """Whether x may be read while out is written: element for element the same memory, or apart."""
    if data(x) == data(out) and period == size and x_width == width:
        return True
    return data(x) + period * x_width <= data(out) or data(out) + size * width <= data(x)


@functools.cache
def _small():
    def run(row, out, x, y):
        """All of a small call: contiguous, one order; one input of out's shape, the other of its last sizes."""
        while word(row) != descr(out) or word(row + 8) != descr(x) or word(row + 16) != descr(y):
            row += 64
            if word(row) == 0:
                return UNKNOWN
        order = flags(out) & flags(x) & flags(y) & (C_CONTIGUOUS | F_CONTIGUOUS)
        if order == 0 or flags(out) & WRITEABLE == 0 or ndim(out) != max(ndim(x), ndim(y)):
            return DECLINED
        size = 1
        for d in range(ndim(out)):
            size *= shape(out, d)
        px, py = _period(out, x), _period(out, y)
        wo, wx, wy = word(row + 24), word(row + 32), word(row + 40)
        if size == 0 or max(px, py) != size or min(px, py) < 1:
            return DECLINED
        columns = min(px, py) if min(px, py) > 1 else size
        if order == F_CONTIGUOUS and columns != size:
            return DECLINED
        if not (_clear(out, size, wo, x, px, wx) and _clear(out, size, wo, y, py, wy)):
            return DECLINED
        if size > SMALL:
            return LARGE
        pointers = scratch(128)
        rows, steps = pointers + 24, pointers + 48
        set_word(pointers, data(out))
        set_word(pointers + 8, data(x))
        set_word(pointers + 16, data(y))
        set_word(rows, columns * wo)
        set_word(rows + 8, columns * wx if px == size else 0)
        set_word(rows + 16, columns * wy if py == size else 0)
        set_word(steps, wo)
        set_word(steps + 8, wx if px > 1 else 0)
        set_word(steps + 16, wy if py > 1 else 0)
        call_loop(word(row + 48), pointers, size // columns, columns, rows, steps, 0)
        return DONE

    return direct(entry(run, "int64(int64, int64, int64, int64)", "elementwise_small"))


def _fast(op: str):
    """The fast form of an operation: the result, or None where the general path has to do it or say what is wrong."""
    table = Table(op)
    row = table.address

    def small(*args):  # until the first call, so that importing this module compiles nothing
        nonlocal small
        small = _small()
        return small(*args)

    def fast(self, other, out, ndarray=np.ndarray, empty_like=np.empty_like):
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
        status = small(row, id(result), id(self), id(other))
        if status == DONE:
            return result
        if out is None and self.ndim < other.ndim:
            result = empty_like(other)
            status = small(row, id(result), id(self), id(other))
        if status == UNKNOWN and table.add(result.dtype, self.dtype, other.dtype):
            status = small(row, id(result), id(self), id(other))
        if status == LARGE:
            binary(op, result, self, other)
        return result if status in (DONE, LARGE) else None

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


_add, _subtract = _fast("add"), _fast("subtract")
multiply_fast, divide_fast = _fast("multiply"), _fast("divide")
maximum_fast, minimum_fast = _fast("maximum"), _fast("minimum")
ONE = 1


def add_fast(self, other, alpha, out):
    return _add(self, other, out) if alpha is ONE else None


def subtract_fast(self, other, alpha, out):
    return _subtract(self, other, out) if alpha is ONE else None
