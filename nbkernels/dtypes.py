"""The dtypes that element-wise operations work in: NumPy's own rules, asked of its ufunc of the same name.

The rules are those of NEP 50: an array, a NumPy scalar or a bool brings its dtype, a Python int, float or complex only
its kind. bfloat16 is ml_dtypes', known by its name: whoever has such an array has imported ml_dtypes.
"""

from __future__ import annotations

import contextlib
import functools
import math

import numpy as np

from .operations import BINARY, COMPARISON, ELEMENTWISE, EXTREME, UNARY

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
COMPLEXES = ("complex64", "complex128")
DTYPES = dict.fromkeys(("bool", *INTEGERS, *FLOATS, *COMPLEXES))
# Computed in float32, stored in 16 bits.
HALVES = ("float16", "bfloat16")
NUMBERS = (bool, int, float, complex)
# The dtypes of a matrix that its product with a vector converts as it is read, by the vector's: it holds their numbers,
# or rounds them, of int64, as NumPy's casts do.
_SHORT = ("bool", "int8", "uint8", "int16", *HALVES)
WIDENED = {"float32": _SHORT, "float64": (*_SHORT, "int32", "int64", "float32")}
CONVERTED = 1 << 17  # elements that NumPy converts (float16: 250 us) in the time of the general path and our copies
# Operations that may be folded in any order; those of which no element is neutral to a negative one.
ASSOCIATIVE = frozenset(op for op, row in BINARY.items() if row.fold)
SIGNLESS = frozenset(op for op in ASSOCIATIVE if BINARY[op].signless)
# Operations of one operand, of which only parts of complex numbers are no ufuncs of NumPy's.
ALONE = frozenset(UNARY)
PARTS = tuple(op for op, row in UNARY.items() if row.ufunc is None)
COMPARISONS, EXTREMES = (
    tuple(op for op, row in BINARY.items() if row.group == group) for group in (COMPARISON, EXTREME)
)


def ufunc(op: str):
    """NumPy's ufunc of an operation."""
    return getattr(np, ELEMENTWISE[op].ufunc or op)


def asked(dtype) -> str:
    """NumPy's name of the dtype that a keyword asks for: NumPy's or torch's own, a scalar type, Python's bool, int,
    float or complex, a string.

    >>> asked(int), asked("f4"), asked(np.uint8), asked("bfloat16")
    ('int64', 'float32', 'uint8', 'bfloat16')
    """
    try:
        return np.dtype(dtype).name
    except (TypeError, ValueError, SyntaxError):  # torch's; bfloat16's name; whatever else is told by those who ask
        return str(dtype).removeprefix("torch.")


def stated(op: str, dtype) -> np.dtype | None:
    """What the keyword `dtype` of an element-wise operation asks for, torch's too, or a TypeError that names it."""
    wrong = TypeError, ValueError, SyntaxError
    with contextlib.suppress(*wrong):
        return None if dtype is None else np.dtype(dtype)
    try:
        return np.dtype(asked(dtype))
    except wrong:
        raise TypeError(f"{op}: dtype={dtype!r} is none that NumPy knows") from None


@functools.lru_cache(maxsize=1024)
def name_of(dtype: np.dtype) -> str:
    """A dtype's name, which NumPy takes 1 to 3 us to spell out."""
    return dtype.name


@functools.lru_cache(maxsize=1024)
def known(dtype: np.dtype) -> bool:
    """Whether elements of this dtype can be read: one of DTYPES, in the machine's byte order."""
    return dtype.name in DTYPES and dtype.isnative


def widens(matrix, dtype: np.dtype) -> bool:
    """Whether a matrix, an array or its spec, is converted to the dtype as it is read: a large one, contiguous along
    one side."""
    touching = any(n > 1 and step == matrix.dtype.itemsize for n, step in zip(matrix.shape, matrix.strides))
    return touching and math.prod(matrix.shape) > CONVERTED and matrix.dtype.name in WIDENED.get(dtype.name, ())


def kind(x):
    """What an operand brings to the choice of dtypes: its dtype, or the type of a Python number."""
    if type(x) in NUMBERS:
        return np.dtype(bool) if type(x) is bool else type(x)
    return x.dtype


@functools.lru_cache(maxsize=4096)
def resolve(op: str, first, second, dtype=None, casting: str = "same_kind"):
    """(self, other, result): what the operands are converted to and what comes out; a TypeError where nothing fits.

    `first` and `second` are dtypes, or int, float or complex for a Python number.

    >>> resolve("divide", np.dtype("int8"), int)
    (dtype('float64'), dtype('float64'), dtype('float64'))
    >>> resolve("less", np.dtype("int64"), np.dtype("uint64"))
    (dtype('int64'), dtype('uint64'), dtype('bool'))
    """
    if op in ALONE:
        return _resolve_alone(op, first, dtype, casting)
    signature = {} if dtype is None else {"signature": (None, None, stated(op, dtype))}
    # "equiv" is "no" where all are in the machine's byte order. Of a Python number NumPy 2.4 cannot say that it is not
    # equivalent: the error ends the process.
    rule = "no" if casting == "equiv" else casting
    try:
        dtypes = ufunc(op).resolve_dtypes((first, second, None), casting=rule, **signature)
        if casting == "equiv":
            _equivalent(op, (first, second), dtypes)
    except TypeError as error:
        names = " and ".join(str(getattr(x, "__name__", x)) for x in (first, second))
        raise TypeError(f"{op}: not defined for {names}: {error}") from None
    if not all(map(known, dtypes)):
        raise TypeError(f"{op}: no loop for {first} and {second}, which NumPy computes in {dtypes[0]}")
    return dtypes


def _resolve_alone(op, first, dtype, casting):
    """`resolve` for an operation of one operand, whose dtype comes twice: (self, self, result)."""
    wanted = stated(op, dtype)
    try:
        if op in PARTS:
            found = first, np.empty(0, first).real.dtype
            if wanted not in (None, found[1]):
                raise TypeError(f"dtype={wanted} is asked for")
        else:
            how = {} if wanted is None else {"signature": (None, wanted)}
            # NumPy's round keeps them, rint does not.
            whole = op == "round" and getattr(first, "kind", "") in ("i", "u")
            rule = "no" if casting == "equiv" else casting
            found = (np.positive if whole else ufunc(op)).resolve_dtypes((first, None), casting=rule, **how)
    except TypeError as error:
        raise TypeError(f"{op}: not defined for {getattr(first, '__name__', first)}: {error}") from None
    if not all(map(known, found)):
        raise TypeError(f"{op}: no loop for {first}, which NumPy computes in {found[0]}")
    return found[0], found[0], found[1]


def _equivalent(op, given, dtypes) -> None:
    """Raise where a Python number is not of the dtype that it is computed in: int64, float64 or complex128, or any that
    takes truths, or any integers that are compared."""
    for number, to in zip(given, dtypes):
        free = to.kind == "b" or (op in COMPARISONS and to.kind in "iu")
        if type(number) is type and np.dtype(number) != to and not free:
            raise TypeError(f"cannot cast Python {number.__name__} to {to} under the casting rule 'equiv'")


@functools.lru_cache(maxsize=4096)
def resolve_fold(op: str, dtype, wanted=None, out=None):
    """What an array's elements are folded in and come out as: sums and products of small integers are int64's.

    What is wanted may be anything, as NumPy has it. With an out of a dtype and nothing wanted, it is what both are
    computed in.

    >>> resolve_fold("add", np.dtype("int8")), resolve_fold("maximum", np.dtype("int8"))
    (dtype('int64'), dtype('int8'))
    >>> resolve_fold("add", np.dtype("float32"), out=np.dtype("int8"))
    dtype('float32')
    """
    how = {} if wanted is None else {"signature": (stated(op, wanted), None, None)}
    if out is not None or how:
        how["casting"] = "unsafe"
    try:
        first, _, result = ufunc(op).resolve_dtypes((out, dtype, None), reduction=True, **how)
    except TypeError as error:
        raise TypeError(f"{op}: no fold of {dtype}: {error}") from None
    if first != result or not known(result):
        raise TypeError(f"{op}: no fold of {dtype}, which NumPy computes in {first}")
    return result


def settled(op: str, value, other):
    """A Python number as it joins `other`: one that a comparison's integers cannot hold becomes infinite, and to logic
    one that is no int is a bool, for a small one may be 0 in the dtype of `other`.

    >>> settled("less", 300, np.zeros(1, np.int8)), settled("add", 300, np.zeros(1, np.int8))
    (inf, 300)
    >>> settled("logical_or", 1e-9, np.zeros(1, np.float16))
    True
    """
    if op.startswith("logical") and type(value) in (float, complex):
        return bool(value)
    if op in COMPARISONS and type(value) is int and getattr(other, "dtype", np.dtype("f8")).kind in "iu":
        info = np.iinfo(other.dtype)
        if not info.min <= value <= info.max:
            return math.inf if value > 0 else -math.inf
    return value


@functools.cache
def identity(op: str, dtype: np.dtype) -> np.ndarray:
    """What NumPy folds nothing to, an integer modulo 2^bits."""
    return np.asarray(ufunc(op).identity).astype(dtype)


def neutral(op: str, dtype: np.dtype) -> np.ndarray:
    """What leaves every element as it is, as an array of one; -0.0 keeps the sign of a zero."""
    of_floats, value = ELEMENTWISE[op].neutral
    if dtype.kind in "fcV":
        value = complex(of_floats, of_floats) if dtype.kind == "c" and of_floats != 1 else of_floats
    elif math.isinf(value):
        lowest, highest = (False, True) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        value = highest if value > 0 else lowest
    return np.array([value]).astype(dtype)
