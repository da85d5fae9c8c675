"""Element-wise calls at once: of layouts and dtypes that were met before, in one call of compiled code.

`add_fast` is the fast form of add: the result, or None where the general path has to do it or say what is wrong; its
attribute `with_keywords` takes them too. What the small entry (quick.py) does not serve is recalled (recall.py), or
planned and remembered. Whatever is checked here is checked once for a layout, or by the entries.
"""

from __future__ import annotations

import functools

import numpy as np

from .. import scalar
from ..dtypes import COMPARISONS, known, resolve
from ..strides import broadcast_shapes, distinct, output_strides
from . import threads
from .elementwise import COSTLY, COSTS_MORE, binary, loop, many, nested, warn
from .quick import DECLINED, DONE, FAULTY, LARGE, NOTED, SCALAR, SHARED, UNKNOWN, allow, small_entry
from .recall import MASKED, Memory, recall_entry

BOOLS = (*COMPARISONS, "logical_and", "logical_or", "logical_xor")
WEAK, STRONG = (int, float, complex), (bool, np.generic)  # numbers that take an array's dtype, and that bring one
ORDERS = {"K": 0, "C": 1, "F": 2}
CASTINGS = {"same_kind": 0, "no": 1, "equiv": 2, "safe": 3, "unsafe": 4}
USUAL = None, "same_kind"
NUMBERS = 256  # that an operation keeps as arrays
ALL, NOTHING = np.ones((), bool), np.zeros((), bool)  # masks
ONE = 1


class Table:
    """An operation's compiled loops by the addresses of three dtype objects: rows of eight int64 for the small entry,
    below one of how to launch.

    Only results of the computing dtype are here, so a row that matches a fresh result has found the right dtype for it.
    Of the scaled operations only those on floats are.
    """

    ROWS = 256

    def __init__(self, op: str):
        self.op = op
        self.rows = np.zeros((self.ROWS, 8), np.int64)  # the last stays zero: the end
        self.rows[0, :5] = threads.WORDS, 0, *map(id, (np.ndarray, float, int))
        self.dtypes = []  # keeps the dtype objects, hence their addresses, alive
        self.address = self.rows.ctypes.data

    def add(self, out: np.dtype, first: np.dtype, second: np.dtype) -> bool:
        """Compile and enter the loops over these dtypes; False where the small entry will not have them."""
        dtypes, name = (out, first, second), self.op.removesuffix("_scaled")
        try:
            work, _, result = resolve(name, first, second)
        except TypeError:
            return False
        scaled, noted = self.op != name, scalar.find(f"{name}_faults", work) is not None
        if result != out or len(self.dtypes) == self.ROWS - 2 or (name == "pow" and work.kind in "iu"):
            return False
        if not all(map(known, dtypes)) or (scaled and out.name not in ("float32", "float64")):
            return False
        loops = loop(self.op, first, second, out)
        sizes = tuple(d.itemsize for d in dtypes)
        most = SHARED // max(sizes) >> (COSTS_MORE if name in COSTLY else 0)
        limits = most << 24 | many(name) << 8 | (out.itemsize if scaled else NOTED * noted)
        row = (*map(id, dtypes), *sizes, loops, limits)
        self.dtypes.append(dtypes)
        self.rows[len(self.dtypes)] = row
        return True


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
        self.table, self.memory = Table(op), Memory()
        self.results = {}  # two dtypes -> that of the result
        self.numbers = {}  # (an array's dtype, a number, ...) -> the number as an array
        self.kept = {}  # (two dtypes, whether there is no mask, keywords) -> dtype, order and variant of a new result

    def small(self, *args):
        """The small entry; until the first call, so that importing this module compiles nothing."""
        self.small = small_entry()
        return self.small(*args)

    def recall(self, *args):
        self.recall = recall_entry()
        return self.recall(*args)

    def go_on(self, made, x, y, alpha, out):
        """What the small entry did not do with these arguments and `made`, a place for the result."""
        if type(x) is not np.ndarray or type(y) is not np.ndarray:
            x, y = self.arrays(x, y)
            if x is None:
                return None
        dtype = self.result(x.dtype, y.dtype)
        if dtype is None or (out is not None and type(out) is not np.ndarray):
            return None
        if out is None and (made is None or x.ndim < y.ndim or made.dtype != dtype):
            made = np.empty_like(x if x.ndim >= y.ndim else y, dtype=dtype)
        rows = self.table.address
        status = self.small(rows, made, x, y, alpha)
        if status == UNKNOWN and made.dtype == dtype and self.table.add(dtype, x.dtype, y.dtype):
            status = self.small(rows, made, x, y, alpha)
        if status == LARGE and allow(self.table.rows[0]):
            status = self.small(rows, made, x, y, alpha)
        if status == DONE:
            return made
        if status == SCALAR:
            return made if out is not None else made[()]
        return self.warned(status, made) if status >= FAULTY else self.planned(made, x, y, alpha, out)

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
        """Both operands as arrays, one of which may be a Python number; (None, None) where there are none such."""
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
        key = other, type(value), value, place, dtype, casting
        array = self.numbers.get(key)
        if array is not None:
            return array
        kinds = (other, type(value)) if place else (type(value), other)
        try:
            wanted = resolve(self.op, *kinds, dtype, casting)
            array = np.array(value, wanted[place])
            if wanted != resolve(self.op, *((other, array.dtype) if place else (array.dtype, other)), dtype, casting):
                return None
        except (TypeError, ValueError, OverflowError):
            return None
        plain = value or type(value) is int  # 0.0 and -0.0 are one key, and so are complex numbers of such parts
        if plain and type(value) is not complex and len(self.numbers) < NUMBERS:
            self.numbers[key] = array
        return array

    def planned(self, made, x, y, alpha, out, where=None, casting="same_kind", dtype=None, order="K"):
        """The result by way of a plan, of any layout and size; None where anything is unusual, and nothing is done.

        `made` is an array that the result goes to, if it fits where there is no out.
        """
        if self.op == "pow" and (dtype or y.dtype).kind == "i":  # signed powers of integers are looked at first
            powers = y if dtype is None else y.astype(dtype)
            if powers.size and (powers.min() if powers.ndim else powers[()]) < 0:
                return None
        fresh, mask = out is None, ALL if where is None else where
        variant, slots = _variant(fresh, where, order, casting, dtype), self.memory.address
        status = self.recall(slots, made, x, y, mask, alpha, variant, 0)
        if status == UNKNOWN:
            layouts = (x.shape, y.shape), (x.strides, y.strides)
            outcome = _outcome(self.op, x.dtype, y.dtype, *layouts, mask.shape, dtype, casting)
            if outcome is None or (type(alpha) is float and outcome[1].name not in ("float32", "float64")):
                return None
            shape, result, strides = outcome
            if not fresh and not self.fits(out, shape, result, casting):
                return None
            if fresh and (made.shape != shape or (order == "K" and made.strides != strides)):
                made = np.ndarray(shape, result, strides=strides) if order == "K" else np.empty(shape, result, order)
                status = self.recall(slots, made, x, y, mask, alpha, variant, 0)
            if 0 in shape:
                return made
        if status == UNKNOWN:
            found = self.found((made, x, y) if where is None else (made, x, y, where), casting, dtype, fresh)
            enter = functools.partial(self.recall, slots, made, x, y, mask, alpha, variant)
            status = self.memory.run(found, (made, x, y, mask), enter)
        if status == DECLINED:
            binary(self.op, made, x, y, alpha, where, casting, dtype, fresh)
        elif status >= FAULTY:
            self.warned(status, made)
        return made[()] if fresh and made.ndim == 0 else made

    @staticmethod
    def fits(out, shape, result, casting):
        """Whether an out can take a result."""
        castable = out.dtype == result or (known(out.dtype) and np.can_cast(result, out.dtype, casting))
        return castable and out.shape == shape and out.flags.writeable and distinct(shape, out.strides, out.itemsize)

    def found(self, arrays, casting, dtype, fresh):
        """The planned loops of a call, and what they read beside the arrays: bytes of alpha, NOTED, or 0; None where
        alpha is no float."""
        out, x, y = arrays[:3]
        scaled = self.scaled != self.op
        if scaled and out.dtype.name not in ("float32", "float64"):
            return None
        work = resolve(self.op, x.dtype, y.dtype, dtype, casting)[0]
        noted = NOTED * (scalar.find(f"{self.op}_faults", work) is not None)
        layouts = tuple(z.shape for z in arrays), tuple(z.strides for z in arrays)
        loops = nested(self.scaled, tuple(z.dtype for z in arrays), *layouts, dtype, casting, fresh)
        return loops, scaled * out.itemsize or noted

    def warned(self, status, result):
        """The result of a call that met faults."""
        faults = status - FAULTY
        warn(self.op, (faults & 1, faults & 2))
        return result

    def again(self, x, y, where, *words):
        """A new result of arrays and a mask or None, by keywords and a layout met before; None where they were not."""
        try:
            result, order, variant = self.kept[(x.dtype, y.dtype, where is None, *words)]
        except (KeyError, TypeError):  # what cannot be hashed is no dtype
            return None
        made, mask = np.empty_like(x if x.ndim >= y.ndim else y, result, order), ALL if where is None else where
        status = self.recall(self.memory.address, made, x, y, mask, 1.0, variant, 0)
        return None if status != DONE else made if made.ndim else made[()]

    def with_keywords(self, x, y, alpha, where, casting, order, dtype, out):
        """The same with keywords."""
        words = casting, order, dtype
        casting, order = casting or "same_kind", order or "K"
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
        made = np.empty_like(x if x.ndim >= y.ndim else y, result, order) if out is None else out
        if out is None and len(self.kept) < NUMBERS:
            variant = _variant(True, where, order, casting, dtype)
            self.kept[(x.dtype, y.dtype, where is None, *words)] = result, order, variant
        return self.planned(made, x, y, alpha, out, where, casting, dtype, order)


def _variant(fresh, where, order, casting, dtype) -> int:
    """What loops depend on beside the arrays, as recall.py keeps it."""
    words = fresh | (where is not None) << 1 | ORDERS[order] << 2 | CASTINGS[casting] << 4
    return words | (dtype.num + 1 if dtype else 0) << 7


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
    rows, slots, at_once = calls.table.address, calls.memory.address, op != "pow"
    plans = calls.memory.records
    empty = functools.partial(np.empty_like, dtype=bool) if op in BOOLS else np.empty_like

    def small(*args):  # until the first call, so that importing this module compiles nothing
        nonlocal small
        small = small_entry()
        return small(*args)

    def recall(*args):
        nonlocal recall
        recall = recall_entry()
        return recall(*args)

    def fast(self, other, out, alpha=1, ndarray=np.ndarray, empty_like=empty):
        result = out if out is not None else empty_like(self if type(self) is ndarray else other)
        status = small(rows, result, self, other, alpha)
        return result if status == DONE else go_on(status, result, self, other, alpha, out)

    def go_on(status, result, x, y, alpha, out):
        if status == SCALAR:
            return result if out is not None else result[()]
        arrays = type(result) is type(x) is type(y) is np.ndarray and (at_once or y.dtype.kind == "f")
        if plans and status <= UNKNOWN and arrays and result.ndim:  # planned before: two calls of compiled code
            status = recall(slots, result, x, y, ALL, alpha, out is None, 0)
            if status == DONE:
                return result
        if status >= FAULTY:
            return calls.warned(status, result)
        return calls.go_on(result, x, y, alpha, out)

    def with_alpha(self, other, alpha, out):
        if alpha is ONE:
            if out is None:
                return fast(self, other, out)
            status = small(rows, out, self, other, 1.0)  # at once, 45 ns sooner
            return out if status == DONE else go_on(status, out, self, other, 1, out)
        return scaled(self, other, out, alpha) if _plain(alpha) else None

    def keywords(self, other, where, casting, order, dtype, out):
        if at_once and type(self) is type(other) is np.ndarray:
            masked = type(where) is np.ndarray
            if masked and type(out) is np.ndarray and casting is order is dtype is None:
                if recall(slots, out, self, other, where, 1.0, MASKED, 0) == DONE:
                    return out
            elif out is None and (masked or where is None):
                result = calls.again(self, other, where, casting, order, dtype)
                if result is not None:
                    return result
        if dtype is None and (where is None or where is True) and casting in USUAL and order in (None, "K"):
            return fast(self, other, out)
        return calls.with_keywords(self, other, 1, where, casting, order, dtype, out)

    def alpha_keywords(self, other, alpha, where, casting, order, dtype, out):
        words = where, casting, order, dtype, out
        if alpha is ONE:
            return keywords(self, other, *words)
        return scaled.calls.with_keywords(self, other, alpha, *words) if _plain(alpha) else None

    made = fast if scaled is None else with_alpha
    made.calls, made.with_keywords = calls, keywords if scaled is None else alpha_keywords
    return made


def _squared(power, multiply):
    """The fast form of pow, where x**2 is x*x: the bits that it has elsewhere, sooner."""

    def fast(self, other, out):
        number = type(other)
        if number is int or number is float:
            kind = self.dtype.kind if type(self) is np.ndarray else ""
            if other == 2 and (kind == "f" or (number is int and kind in ("i", "u"))):
                return multiply(self, self, out)
        return power(self, other, out)

    fast.calls, fast.with_keywords = power.calls, power.with_keywords
    return fast


def _plain(alpha) -> bool:
    """Whether alpha is a number that a float64 holds exactly."""
    return type(alpha) is float or (type(alpha) is int and abs(alpha) <= 1 << 53)


def __getattr__(name: str):
    """The fast form of an operation, as `add_fast`: made when it is first asked for."""
    op = name.removesuffix("_fast")
    if not scalar.exists(op) or op == name:
        raise AttributeError(f"no element-wise operation has a fast form {name}")
    made = _fast(op, _fast(f"{op}_scaled") if scalar.exists(f"{op}_scaled") else None)
    if op == "pow":
        made = _squared(made, globals().get("multiply_fast") or __getattr__("multiply_fast"))
    globals()[name] = made
    return made
