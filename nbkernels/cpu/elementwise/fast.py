"""Fast paths of element-wise calls: layouts and dtypes that were met before, in one call of compiled code.

`add_fast` is the fast form of add: the result, or None where the general path has to do it or say what is wrong; its
attribute `with_keywords` takes them too. What the small entry (entry.py) does not serve is recalled (plan_cache.py), or
planned and remembered. Whatever is checked here is checked once for a layout, or by the entries.
"""

from __future__ import annotations

import cmath
import functools
import math
import sys
from types import BuiltinFunctionType

import numpy as np

from ... import background, scalar
from ...dtypes import ALONE, kind, known, resolve, settled
from ...jit.compile.python_first import Patience
from ...strides import broadcast_shapes, distinct, output_strides
from .elementwise import binary, nested, warn
from .entry import DECLINED, HEAD, NOTED, UNKNOWN, WAITING
from .plan_cache import Memory, recall_entry
from .table import Table, joins

WEAK, STRONG = (int, float, complex), (bool, np.generic)  # numbers that take an array's dtype, and that bring one
ORDERS = "K", "C", "F"
CASTINGS = "same_kind", "no", "equiv", "safe", "unsafe"
NUMBERS = 256  # that an operation keeps as arrays
NOTHING = np.zeros((), bool)  # a mask
ONE, REAL = 1, (int, float)

# Calls without the small entry, and without plans that are kept.
at_first, unplanned = Patience("elementwise_small"), Patience("elementwise_recall")


@functools.lru_cache(maxsize=4096)
def _outcome(op, first, second, shapes, strides, mask, dtype, casting):
    """Shape, dtype and strides of a result, or None where there is none; `mask` is the shape of `where`."""
    try:
        shape, result = broadcast_shapes(*shapes, mask), resolve(op, first, second, dtype, casting)[2]
    except (TypeError, ValueError):
        return None
    if not (known(first) and known(second)):
        return None
    return shape, result, output_strides(shape, shapes, strides, result.itemsize)


class Calls:
    """What one operation, or its scaled form, has compiled and planned."""

    def __init__(self, op: str):
        self.scaled, self.op = op, op.removesuffix("_scaled")
        self.table, self.memory = Table(op), Memory(joins(op))
        self.results = {}  # two dtypes -> that of the result
        self.numbers = {}  # (an array's dtype, a number, ...) -> the number as an array

    def go_on(self, x, y, alpha, out, asked=True):
        """What the small entry did not do with these arguments, or was not asked."""
        if type(x) is not np.ndarray or type(y) is not np.ndarray:
            x, y = self.arrays(x, y)
            if x is None:
                return None
        dtype = self.result(x.dtype, y.dtype)
        if dtype is None or (out is not None and type(out) is not np.ndarray):
            return None
        if not asked:
            return self.planned(x, y, alpha, out)
        given = (x, y, out) if self.scaled == self.op else (x, y, alpha, out)
        dtypes = (dtype, x.dtype, y.dtype) if out is None or out.dtype == dtype else None
        result = self.table.again(self.table.small(*given), dtypes, *given)
        return self.warned(result) if type(result) is not int else self.planned(x, y, alpha, out)

    def result(self, *given):
        """The dtype of a new result by what resolve() takes, kept; None where there is none."""
        dtype = self.results.get(given)
        if dtype is None:
            try:
                self.results[given] = dtype = resolve(self.op, *given)[2]
            except (TypeError, ValueError):
                return None
        return dtype

    def arrays(self, x, y, dtype=None, casting="same_kind"):
        """Return x and y as arrays, where at most one is a Python number; (None, None) where that is impossible."""
        if type(x) is not np.ndarray and isinstance(x, STRONG):
            x = np.asarray(x)
        if type(y) is not np.ndarray and isinstance(y, STRONG):
            y = np.asarray(y)
        if type(y) in WEAK and type(x) is np.ndarray:
            y = self.number(y, x.dtype, 1, dtype, casting)
        elif type(x) in WEAK and type(y) is np.ndarray:
            x = self.number(x, y.dtype, 0, dtype, casting)
        return (x, y) if type(x) is type(y) is np.ndarray else (None, None)

    def number(self, value, other, place, dtype, casting):
        """A Python number as an array of no dimensions that gives what the number does; None where there is none."""
        value = settled(self.op, value, other)
        key = other, type(value), value, _signs(value), place, dtype, casting
        array = self.numbers.get(key)
        if array is not None:
            return array
        kinds = (other, kind(value)) if place else (kind(value), other)
        try:
            wanted = resolve(self.op, *kinds, dtype, casting)
            array = np.array(value, wanted[place])
            if wanted != resolve(self.op, *((other, array.dtype) if place else (array.dtype, other)), dtype, casting):
                return None
        except (TypeError, ValueError, OverflowError):
            return None
        held = type(value) is int or cmath.isinf(value) == cmath.isinf(array)  # others NumPy warns of each time
        if held and len(self.numbers) < NUMBERS:
            self.numbers[key] = array
        return array

    def planned(self, x, y, alpha, out, where=None, words=(None,) * 3, casting="same_kind", order="K", dtype=None):
        """The result by way of a plan, of any layout and size; None where anything is unusual, and nothing is done.

        `words` are the keywords casting, order and dtype as they were given, with which the plan is kept.
        """
        if self.op == "pow" and (work := dtype or y.dtype).kind == "i" and not _natural(y.astype(work, copy=False)):
            return None
        result, first = DECLINED, unplanned()
        if not first:
            entry = functools.partial(recall_entry(), self.memory.address, out, x, y, where, alpha, *words)
            result = entry(0)
            if type(result) is not int:
                return self.warned(result)
        layouts, mask = ((x.shape, y.shape), (x.strides, y.strides)), () if where is None else where.shape
        outcome = _outcome(self.op, x.dtype, y.dtype, *layouts, mask, dtype, casting)
        if outcome is None or (
            self.scaled != self.op and type(alpha) is float and outcome[1].name not in ("float32", "float64")
        ):
            return None
        fresh, made, (shape, kind, strides) = out is None, out, outcome
        if fresh:
            made = np.ndarray(shape, kind, strides=strides) if order == "K" else np.empty(shape, kind, order)
        elif not self.fits(out, shape, kind, casting):
            return None
        if 0 in shape:
            return made
        if result is UNKNOWN:
            arrays = (made, x, y) if where is None else (made, x, y, where)
            result = self.memory.run(self.found(arrays, casting, dtype, fresh), arrays, entry, words)
        if result is not DECLINED:
            return self.warned(result)
        binary(self.op, made, x, y, alpha, where, casting, dtype, fresh, first)
        return made[()] if fresh and made.ndim == 0 else made

    @staticmethod
    def fits(out, shape, result, casting):
        """Whether an out can take a result."""
        castable = out.dtype == result or (known(out.dtype) and np.can_cast(result, out.dtype, casting))
        return castable and out.shape == shape and out.flags.writeable and distinct(shape, out.strides, out.itemsize)

    def found(self, arrays, casting, dtype, fresh):
        """The planned loops of a call, and what they read beside the arrays: bytes of alpha, NOTED, or 0; None where
        alpha is no float."""
        _, x, y = arrays[:3]
        scaled, work = self.scaled != self.op, resolve(self.op, x.dtype, y.dtype, dtype, casting)[0]
        if scaled and work.name not in ("float32", "float64"):
            return None
        noted = NOTED * (scalar.find(f"{self.op}_faults", work) is not None)
        layouts = tuple(z.shape for z in arrays), tuple(z.strides for z in arrays)
        loops = nested(self.scaled, tuple(z.dtype for z in arrays), *layouts, dtype, casting, fresh)
        return loops, scaled * work.itemsize or noted

    def warned(self, result):
        """What an entry made, after the warnings of the faults that it met."""
        if type(result) is not tuple:
            return result
        result, faults = result
        warn(self.op, (faults & 1, faults & 2))
        return result

    def with_keywords(self, x, y, alpha, where, casting, order, dtype, out):
        """Return the result of a call with keywords; None, with nothing done, where the general path has to do it."""
        words = tuple(sys.intern(word) if type(word) is str else word for word in (casting, order, dtype))
        casting, order = "same_kind" if casting is None else casting, "K" if order is None else order
        if where is True or where is False:
            where = None if where else NOTHING
        elif where is not None and (type(where) is not np.ndarray or where.dtype != bool):
            return None
        if type(order) is not str or order not in ORDERS or type(casting) is not str or casting not in CASTINGS:
            return None
        try:
            dtype = None if dtype is None else _asked(dtype)
        except TypeError:
            return None
        if type(x) is not np.ndarray or type(y) is not np.ndarray:
            x, y = self.arrays(x, y, dtype, casting)
            if x is None:
                return None
        result = self.result(x.dtype, y.dtype, dtype, casting)
        if result is None or (out is not None and type(out) is not np.ndarray):
            return None
        return self.planned(x, y, alpha, out, where, words, casting, order, dtype)


def _natural(power):
    """Whether an exponent is a number that is not negative, or an array that holds no negative integers."""
    if type(power) is not np.ndarray:
        return type(power) in REAL and power >= 0
    return power.dtype.kind != "i" or np.bitwise_or.reduce(power, axis=None) >= 0


def _signs(value):
    """What tells numbers apart that are equal: the signs of zeros."""
    if type(value) is complex:
        return math.copysign(1, value.real), math.copysign(1, value.imag)
    return math.copysign(1, value) if type(value) is float else 1


@functools.lru_cache(maxsize=256)
def _asked(dtype):
    """What the keyword asks for; a TypeError where that is no dtype of this library's."""
    dtype = np.dtype(dtype)
    if not known(dtype):
        raise TypeError
    return dtype


def _fast(op: str, scaled=None):
    """The fast form of an operation; of one that takes alpha, `scaled` is that for an alpha other than 1."""
    calls = Calls(op)
    slots, plans, at_once = calls.memory.address, calls.memory.records, op != "pow"

    def small(*given):  # until the first call, so that importing this module compiles nothing
        nonlocal small
        if at_first():
            return WAITING
        entry = calls.table.small
        if not background.here():  # or calls would take it before all that they need is compiled
            small = entry
            made.ready()
        return entry(*given)

    def recall(*args):
        nonlocal recall
        recall = recall_entry()
        return recall(*args)

    def go_on(result, x, y, out, alpha=1.0):
        if type(result) is not int:
            return calls.warned(result)
        if plans and result <= UNKNOWN and (at_once or _natural(y)):  # planned before: two calls of compiled code
            result = recall(slots, out, x, y, None, alpha, None, None, None, 0)
            if type(result) is not int:
                return calls.warned(result)
        return calls.go_on(x, y, alpha, out, result is not WAITING)

    def by_alpha(result, x, y, alpha, out):
        if alpha is ONE or scaled is None:
            return go_on(result, x, y, out, alpha)
        if not _plain(alpha):
            return None
        result = small(x, y, float(alpha), out)
        return result if type(result) is np.ndarray else scaled(x, y, alpha, out)

    def keywords(self, other, where, casting, order, dtype, out, ndarray=np.ndarray):
        if at_once and plans:
            result = recall(slots, out, self, other, where, 1.0, casting, order, dtype, 0)
            if type(result) is ndarray:
                return result
            if type(result) is not int:
                return calls.warned(result)
        return calls.with_keywords(self, other, 1, where, casting, order, dtype, out)

    def alpha_keywords(self, other, alpha, where, casting, order, dtype, out):
        if alpha is ONE:
            return keywords(self, other, where, casting, order, dtype, out)
        words = where, casting, order, dtype, out
        return scaled.calls.with_keywords(self, other, alpha, *words) if _plain(alpha) else None

    def fast(x, y, out, ndarray=np.ndarray):
        result = small(x, y, out)
        return result if type(result) is ndarray else go_on(result, x, y, out)

    def with_alpha(x, y, alpha, out, ndarray=np.ndarray):
        result = small(x, y, alpha, out)
        return result if type(result) is ndarray else by_alpha(result, x, y, alpha, out)

    def alone(x, out, ndarray=np.ndarray):
        result = small(x, out)
        return result if type(result) is ndarray else go_on(result, x, x, out)

    if op in ALONE:
        made, made.go_on = alone, lambda result, x, out: go_on(result, x, x, out)
        made.with_keywords = lambda x, *words: keywords(x, x, *words)
    elif scaled is not None or calls.scaled != calls.op:
        made, made.go_on, made.with_keywords = with_alpha, by_alpha, alpha_keywords if scaled else keywords
        calls.table.rows[0, HEAD["scaled"]] = (scaled.calls if scaled else calls).table.address
    else:
        made, made.go_on, made.with_keywords = fast, go_on, keywords
    made.calls, made.ready = calls, lambda: None
    made.direct = lambda: small if type(small) is BuiltinFunctionType else None
    return made


def _whole(fast):
    """The fast form of round: to whole numbers; that to decimals is the general path's."""

    def whole(self, decimals, out):
        return None if decimals else fast(self, out)

    def keywords(self, decimals, *words):
        return None if decimals else fast.with_keywords(self, *words)

    whole.calls, whole.with_keywords = fast.calls, keywords
    return whole


def _plain(alpha) -> bool:
    """Whether alpha is a number that a float64 holds exactly."""
    return type(alpha) is float or (type(alpha) is int and abs(alpha) <= 1 << 53)


def __getattr__(name: str):
    """The fast form of an operation, as `add_fast`: made when it is first asked for."""
    op = name.removesuffix("_fast")
    if not scalar.exists(op) or op == name:
        raise AttributeError(f"no element-wise operation has a fast form {name}")
    made = _fast(op, _fast(f"{op}_scaled") if scalar.exists(f"{op}_scaled") else None)
    if op == "round":
        made = _whole(made)
    globals()[name] = made
    return made
