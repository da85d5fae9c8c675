"""out[i] = fn(self[i], other[i]) over broadcast NumPy arrays of any strides.

Kernels get an `out` of the broadcast shape, every check passed. Inputs are read through their strides and converted in
the loop; an input that really overlaps out other than element for element is copied first. The fast forms serve small
contiguous calls in one step and decline the rest.
"""

from __future__ import annotations

import functools

import numpy as np

from .. import scalar
from ..dtypes import COMPARISONS, HALVES, kind, known, resolve, settled
from ..jit.loops import Loop, address
from ..strides import broadcast_shapes, distinct, output_strides, plan
from . import nest, threads
from .quick import DONE, FAULTY, LARGE, NOTED, SHARED, UNKNOWN, allow, small_entry
from .recall import Memory, recall_entry

NO_SCALARS = np.empty(0)
# Operations that take 0.5 to 3 ns an element where an addition in L2 takes 0.1: sizes at which calls go another way are
# smaller for them by this power of two.
COSTLY = ("pow", "float_power", "atan2", "hypot", "logaddexp", "floor_divide", "remainder", "fmod", "gcd", "lcm")
COSTS_MORE = 3
# Operations that wait for memory, and that LLVM vectorises: it complains where it is told to and cannot.
LIGHT = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor",
         "bitwise_left_shift", "bitwise_right_shift", *COMPARISONS)  # fmt: skip
# Operations on floats whose steps wait for each other.
PAIRED = ("pow", "float_power", "logaddexp")


@functools.cache
def loop(
    op: str,
    first: np.dtype,
    second: np.dtype,
    out: np.dtype,
    dtype: np.dtype | None = None,
    casting: str = "same_kind",
    streamed: bool = False,
    masked: bool = False,
    checked: bool = True,
    steps: tuple[int, ...] = (),
) -> int:
    """Address of the compiled loops of an operation over inputs and an output of these dtypes.

    Those that are not `checked` take no note of faults.
    """
    for given in (first, second, out):
        if not known(given):
            raise TypeError(f"{op}: no loop for dtype {given!r}")
    name = op.removesuffix("_scaled")
    *inputs, result = resolve(name, first, second, dtype, casting)
    if not np.can_cast(result, out, casting):
        raise TypeError(f"{name}: cannot cast the result from {result} to {out!r} under casting={casting!r}")
    names = tuple(d.name for d in (*inputs, result))
    return address(
        Loop(
            scalar.find(op, *inputs) if name in COMPARISONS else scalar.find(op, inputs[0]),
            (first.name, second.name),
            names,
            out.name,
            int(op != name),
            streamed,
            masked,
            scalar.find(f"{op}_faults", inputs[0]) if checked else None,
            name in LIGHT and inputs[0].kind in ("f" if name == "divide" else "fiu"),
            name in PAIRED and inputs[0].kind == "f",
            steps,
        )
    )


@functools.lru_cache(maxsize=4096)
def _nest(op, dtypes, shapes, strides, dtype, casting, fresh) -> nest.Nest:
    """The loops of a call, planned and compiled."""
    itemsizes = tuple(d.itemsize for d in dtypes)
    loops, (out, first, second, *mask) = plan(shapes, strides, itemsizes), dtypes
    streamed = not (fresh or mask) and nest.streamed(loops, out.itemsize)
    compiled = loop(op, first, second, out, dtype, casting, streamed, bool(mask), steps=nest.steps(loops, itemsizes))
    parallel = nest.PARALLEL >> COSTS_MORE if op in COSTLY else nest.PARALLEL
    return nest.Nest(loops, compiled, itemsizes, parallel)


def binary(op: str, out, self, other, alpha=1, where=None, casting=None, dtype=None, fresh=False) -> None:
    """out = op(self, other), or op_scaled(self, other, alpha) for an alpha that is not 1, where `where` is not False.

    `fresh` says that nobody has touched out's memory. The system zeroes such a page at the first store, in the cache:
    streaming stores would wait for it to be written back (16 M f32, one thread: 21 ms against 17).
    """
    casting = casting or "same_kind"
    self, other, work = _arrays(op, self, other, dtype, casting)
    scalars, checked = NO_SCALARS, scalar.find(f"{op}_faults", work)
    if op == "pow" and work.kind == "i":
        _refuse_negative(other, where)
    if alpha != 1:
        op += "_scaled"
        scalars = _wrapped(alpha, work)
    if out.size == 0:
        return
    if checked:
        scalars = np.zeros(2, np.int64)
    inputs = (self, other) if where is None else (self, other, np.asarray(where))
    if not _run(op, scalars, out, inputs, dtype, casting, fresh, apart=False):
        _run(op, scalars, out, tuple(apart(out, x) for x in inputs), dtype, casting, fresh, apart=True)
    if checked and scalars.any():
        _warn(op, scalars)


def _arrays(op, self, other, dtype, casting):
    """Both operands as arrays, and the dtype that the first is computed in: Python numbers take what NEP 50 gives."""
    if isinstance(self, np.ndarray) and isinstance(other, np.ndarray):
        return self, other, resolve(op, self.dtype, other.dtype, dtype, casting)[0]
    values = settled(op, self, other), settled(op, other, self)
    work = resolve(op, *map(kind, values), dtype, casting)
    self, other = (x if isinstance(x, np.ndarray) else np.asarray(x, d) for x, d in zip(values, work))
    return self, other, work[0]


def _run(op, scalars, out, inputs, dtype, casting, fresh, apart):
    arrays = (out, *inputs)
    dtypes, shapes = tuple(x.dtype for x in arrays), tuple(x.shape for x in arrays)
    loops = _nest(op, dtypes, shapes, tuple(x.strides for x in arrays), dtype, casting, fresh)
    return loops.run(scalars, out, inputs, apart)


def _refuse_negative(exponents, where):
    """Raise for a negative exponent of integers, before anything is written."""
    if exponents.size and exponents.min() < 0 and (where is None or np.any(where & (exponents < 0))):
        raise ValueError("pow: integers to negative integer powers are not allowed")


def _warn(op, faults):
    """NumPy's warning (or what its errstate asks for) of the kinds of faults that were met."""
    smallest = np.iinfo(np.int64).min
    for met, pair in zip(faults, ((1, 0), (smallest, -1))):
        if met:
            getattr(np, op)(np.int64(pair[0]), np.int64(pair[1]))


def _warned(op, status, result):
    """The result of a call of the small entry that met faults."""
    _warn(op, (status & 1, status & 2))
    return result


def _wrapped(value, dtype: np.dtype) -> np.ndarray:
    """A scalar as an array of one element, an integer modulo 2^bits, of the dtype that is computed in."""
    if dtype.kind in "iu":
        return np.array([int(value) % (1 << 8 * dtype.itemsize)], f"u{dtype.itemsize}").view(dtype)
    return np.array([value], np.float32 if dtype.name in HALVES else dtype)


def apart(out, x):
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
        self.rows[0, :6] = threads.WORDS, 0, *map(id, (np.ndarray, float, np.dtype("f4"), np.dtype("f8")))
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
        row = (*map(id, dtypes), *sizes, loops, most << 8 | (out.itemsize if scaled else NOTED * noted))
        self.dtypes.append(dtypes)
        self.rows[len(self.dtypes)] = row
        return True


def _fast(op: str, scaled=None):
    """The fast form of an operation: the result, or None where the general path has to do it or say what is wrong.

    Of one that takes alpha, `scaled` is the fast form for an alpha other than 1.
    """
    table, memory = Table(op), Memory()
    rows, slots = table.address, memory.address
    empty = functools.partial(np.empty_like, dtype=bool) if op in COMPARISONS else np.empty_like

    def small(*args):  # until the first call, so that importing this module compiles nothing
        nonlocal small
        small = small_entry()
        return small(*args)

    def recall(*args):
        nonlocal recall
        recall = recall_entry()
        return recall(*args)

    def fast(self, other, out, alpha=1, ndarray=np.ndarray, empty_like=empty):
        result = out if out is not None else empty_like(self) if type(self) is ndarray else None
        status = small(rows, result, self, other, alpha)
        if status == DONE:
            return result
        if status >= FAULTY:
            return _warned(op, status, result)
        if type(self) is not ndarray or type(other) is not ndarray:
            self, other = _with_scalar(self, other) if op != "ldexp" else (None, None)  # whose two dtypes differ
            if self is None:
                return None
            result = empty_like(self) if out is None else out
            status = small(rows, result, self, other, alpha)
        if type(result) is not ndarray:
            return None
        if out is None and self.ndim < other.ndim:
            result = empty_like(other)
            status = small(rows, result, self, other, alpha)
        if status == UNKNOWN and table.add(result.dtype, self.dtype, other.dtype):
            status = small(rows, result, self, other, alpha)
        if status == LARGE and allow(table.rows[0]):
            status = small(rows, result, self, other, alpha)
        if status >= FAULTY:
            return _warned(op, status, result)
        if status == DONE or recall(slots, result, self, other, alpha, out is None, 0) == DONE:
            return result
        return _planned(op, self, other, alpha, out, result, memory)

    def with_alpha(self, other, alpha, out):
        if alpha is ONE:
            if out is not None and small(rows, out, self, other, 1.0) == DONE:  # at once, 45 ns sooner
                return out
            return fast(self, other, out)
        return scaled(self, other, out, alpha) if _plain(alpha) else None

    return fast if scaled is None else with_alpha


_numbers = {}  # (dtype, type, Python number) -> the number as an array, up to NUMBERS of them
NUMBERS = 256


def _with_scalar(self, other):
    """An array and a Python scalar as two arrays of one dtype; (None, None) where the general path knows better."""
    array, value = (self, other) if type(self) is np.ndarray else (other, self)
    number = type(value)
    if number is not float and number is not int:
        return None, None
    known = _numbers.get((array.dtype, number, value))
    if known is None:
        if array.dtype.kind not in ("f" if number is float else "iuf"):
            return None, None
        try:
            known = np.array(value, array.dtype)
        except OverflowError:
            return None, None
        if value and len(_numbers) < NUMBERS:  # 0.0 and -0.0 are one key
            _numbers[array.dtype, number, value] = known
    return (array, known) if array is self else (known, array)


@functools.lru_cache(maxsize=4096)
def _outcome(op, first, second, shapes, strides):
    """Shape, dtype and strides of a result, or None where there is none."""
    try:
        shape, dtype = broadcast_shapes(*shapes), resolve(op, first, second)[2]
    except (TypeError, ValueError):
        return None
    if not (known(first) and known(second)):
        return None
    return shape, dtype, output_strides(shape, shapes, strides, dtype.itemsize)


def _planned(op, self, other, alpha, out, made, memory):
    """The result by way of a plan, of any layout and size; None where anything is unusual, and nothing is done.

    `made` is an array that the result may go to where there is no out, if it fits; the plan goes to `memory`.
    """
    scaled, op = op, op.removesuffix("_scaled")
    layouts = (self.shape, other.shape), (self.strides, other.strides)
    outcome = _outcome(op, self.dtype, other.dtype, *layouts)
    if outcome is None:
        return None
    shape, dtype, strides = outcome
    if 0 in shape or (type(alpha) is float and dtype.name not in ("float32", "float64")):
        return None
    fresh = out is None
    if fresh:
        fits = made.shape == shape and made.dtype == dtype and made.strides == strides
        out = made if fits else np.ndarray(shape, dtype, strides=strides)
    elif (
        out.dtype != dtype
        or out.shape != shape
        or not (out.flags.writeable and distinct(shape, out.strides, dtype.itemsize))
    ):
        return None
    if not (shape and memory.run(_recallable(scaled, out, self, other, fresh), out, self, other, alpha, fresh)):
        binary(op, out, self, other, alpha, fresh=fresh)
    return out if shape or not fresh else out[()]


def _recallable(op, out, self, other, fresh):
    """The planned loops of a call, and bytes of alpha that they read; None where they take note of faults or powers
    of integers are to be checked first, or alpha is no float."""
    name, scaled = op.removesuffix("_scaled"), op.endswith("_scaled")
    work = resolve(name, self.dtype, other.dtype)[0]
    if scalar.find(f"{name}_faults", work) or (name == "pow" and work.kind == "i"):
        return None
    if scaled and out.dtype.name not in ("float32", "float64"):
        return None
    arrays = out, self, other
    layouts = tuple(x.shape for x in arrays), tuple(x.strides for x in arrays)
    return _nest(op, tuple(x.dtype for x in arrays), *layouts, None, "same_kind", fresh), scaled * out.itemsize


def _squared(power, multiply):
    """The fast form of pow, where x**2 is x*x: the bits that it has elsewhere, sooner."""

    def fast(self, other, out):
        number = type(other)
        if number is int or number is float:
            kind = self.dtype.kind if type(self) is np.ndarray else ""
            if other == 2 and (kind == "f" or (number is int and kind in ("i", "u"))):
                return multiply(self, self, out)
        return power(self, other, out)

    return fast


ONE = 1


def _plain(alpha) -> bool:
    """Whether alpha is a number that a float64 holds exactly."""
    return type(alpha) is float or (type(alpha) is int and abs(alpha) <= 1 << 53)


def __getattr__(name: str):
    """The kernel of an operation, by its name, or its fast form, as `add_fast`: made when it is first asked for."""
    op = name.removesuffix("_fast")
    if not scalar.exists(op):
        raise AttributeError(f"no element-wise operation is called {name}")
    scaled = scalar.exists(f"{op}_scaled")
    if name == op:
        made = functools.partial(binary if scaled else _unscaled, op)
    else:
        made = _fast(op, _fast(f"{op}_scaled") if scaled else None)
        if op == "pow":
            made = _squared(made, globals().get("multiply_fast") or __getattr__("multiply_fast"))
    globals()[name] = made
    return made


def _unscaled(op, out, self, other, where=None, casting=None, dtype=None) -> None:
    binary(op, out, self, other, 1, where, casting, dtype)
