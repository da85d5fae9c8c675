"""The choice of NumPy's inner loops that are replaced: those measured faster here, or those that are asked for.

measured.json holds what bench/bench_numpy_loops.py found, by the width of vectors: for each ufunc and dtype the
elements of a call, or multiply-adds, from which on ours is at least GAIN times as fast as NumPy's. Without figures for
a width those loops are taken that gain SURELY times at another one.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from .. import operations
from ..dtypes import DTYPES, PARTS, ufunc
from ..operations import ELEMENTWISE

GAIN, SURELY = 1.1, 2.0
PRODUCTS = "matmul", "vecdot", "matvec", "vecmat"
# NumPy's name of each element-wise ufunc -> ours.
OURS = {ufunc(op).__name__: op for op in ELEMENTWISE if op not in PARTS}
_ROWS = {name: ELEMENTWISE[op] for name, op in OURS.items()}
# Operations on floats whose last bit may differ from NumPy's: by names= only.
ROUNDED = frozenset(name for name, row in _ROWS.items() if row.ulp)
# Operations whose flags are not NumPy's for some elements of these dtypes.
UNLIKE = {name: tuple(row.unlike.split()) for name, row in _ROWS.items() if row.unlike}
# Operations of one whose float16 loops have NumPy's bits and flags, where `as_ours` says so.
ALIKE = frozenset(name for name, row in _ROWS.items() if row.alike)
# Operations on floats that raise flags of -inf, of divisions that leave a rest, and none at all.
_FAULTS = operations.OF_INFINITY, operations.OF_RESTS, operations.QUIET
SINKING, RESTING, QUIET = ([name for name, row in _ROWS.items() if row.faults == faults] for faults in _FAULTS)
# Products of which stacks of small matrices gain (numpy_loops/products.py), and BLAS does the others.
STACKS = ("matmul", "float32"), ("matmul", "float64")
HALF, FLOATS = ("float16",), ("float32", "float64", "complex64", "complex128")


@dataclass(frozen=True)
class Loop:
    """One inner loop of NumPy's: a ufunc, and one of its `types`."""

    ufunc: np.ufunc
    types: str

    @property
    def key(self) -> tuple[str, str]:
        return self.ufunc.__name__, self.types

    @property
    def letters(self) -> str:
        return self.types.replace("->", "")

    @property
    def product(self) -> bool:
        return self.ufunc.__name__ in PRODUCTS

    @property
    def dtypes(self) -> tuple[str, ...]:
        return tuple(np.dtype(letter).name for letter in self.letters)

    @property
    def of_floats(self) -> bool:
        return any(np.dtype(letter).kind in "fc" for letter in self.letters)

    def __str__(self) -> str:
        return f"{self.ufunc.__name__} of {self.dtypes[0]}"


def possible(loop: Loop) -> str:
    """Why there is no kernel for it, or nothing where there is one."""
    name = loop.ufunc.__name__
    if any(dtype not in DTYPES for dtype in loop.dtypes):
        return f"no kernel for {next(dtype for dtype in loop.dtypes if dtype not in DTYPES)}"
    if loop.product:
        return ""
    if name not in OURS:
        return f"no kernel for {name}"
    if loop.ufunc.nin == 1:
        alike = name in ALIKE and loop.dtypes[0] in HALF
        return "" if alike else "its last bit or its flags are not NumPy's, or not known to be"
    if name == "power" and np.dtype(loop.letters[0]).kind == "i":
        return "NumPy's raises an error for negative exponents"
    if loop.dtypes[0] in UNLIKE.get(name, ()):
        return "its floating-point flags are not NumPy's"
    from .. import scalar

    first, second = np.dtype(loop.letters[0]), np.dtype(loop.letters[-2])
    return "" if scalar.find(OURS[name], first, second) else f"no kernel for {name} of {loop.dtypes[0]}"


@functools.cache
def as_ours(ufunc: np.ufunc) -> bool:
    """Whether NumPy's float16 loop of an operation of one rounds as ours: to float32, and then to float16. With AVX-512
    NumPy has other code for some, of which two to twenty results differ (1 ms)."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        theirs, precise = ufunc(halves), ufunc(halves.astype(np.float64))
        ours = precise if theirs.dtype == bool else precise.astype(np.float32).astype(np.float16)
    return np.array_equal(theirs, ours, equal_nan=theirs.dtype != bool)


@functools.cache
def every() -> tuple[Loop, ...]:
    """All loops of NumPy's ufuncs of one or two numbers and one result; of two alike, the one that NumPy finds."""
    found = (f for f in vars(np).values() if isinstance(f, np.ufunc) and f.nout == 1 and f.nin <= 2)
    ufuncs = {f.__name__: f for f in found}
    loops = (Loop(f, types) for f in ufuncs.values() for types in dict.fromkeys(f.types))
    return tuple(loop for loop in loops if not set(loop.letters) & set("OMm"))


@functools.cache
def _found() -> dict[str, dict]:
    """What measured.json holds, by the width of vectors."""
    import json
    from importlib.resources import files

    return json.loads(files(__package__).joinpath("measured.json").read_text(encoding="utf-8"))


@functools.cache
def measured() -> dict[str, dict[str, int]]:
    """ufunc -> dtype -> elements, or multiply-adds, from which on ours is faster on a processor like this one."""
    from ..jit.ir.vector import width_bits  # Numba comes with it

    found = _found()
    figures = found.get(str(width_bits()))
    least = GAIN if figures is not None else SURELY
    figures = next(iter(found.values()), {}) if figures is None else figures
    chosen: dict[str, dict[str, int]] = {}
    for name, dtypes in figures.items():
        for dtype, (size, gain) in dtypes.items():
            if gain >= least:
                chosen.setdefault(name, {})[dtype] = size
    return chosen


def faster() -> list[Loop]:
    """The loops that were measured faster on any kind of processor, for code that is made for others than this one."""
    found = {(name, dtype) for figures in _found().values() for name, dtypes in figures.items() for dtype in dtypes}
    found |= set(STACKS)
    return [loop for loop in every() if (loop.ufunc.__name__, loop.dtypes[0]) in found and not possible(loop)]


@dataclass(frozen=True)
class Wish:
    """What a call of use_in_numpy asks for."""

    floats: bool = False
    names: tuple[str, ...] | None = None
    dtypes: tuple[str, ...] | None = None
    functions: bool = False

    def least(self, loop: Loop) -> tuple[int | None, str]:
        """(elements from which on the loop is replaced, "") or (None, why it is not)."""
        name, dtype = loop.ufunc.__name__, loop.dtypes[0]
        if reason := possible(loop):
            return None, reason
        if loop.ufunc.nin == 1 and not as_ours(loop.ufunc):
            return None, "its last bit is not NumPy's on this processor"
        if self.names is not None and name not in self.names:
            return None, "not among names="
        if self.dtypes is not None and dtype not in self.dtypes:
            return None, "not among dtypes="
        found = measured().get(name, {}).get(dtype)
        if self.dtypes is not None and self.names is not None:
            return 0, ""
        if name in ROUNDED and loop.of_floats and self.names is None:
            return None, "its last bit may differ from NumPy's: asked for by names="
        if dtype in FLOATS and not (self.floats or self.dtypes is not None):
            return None, "floats are not asked for"
        if found is None and (name, dtype) not in STACKS:
            return None, "not measured faster here"
        return found or 1, ""


@functools.cache
def chosen(wish: Wish) -> dict[Loop, int]:
    """The loops that it replaces, and from how many elements on."""
    found = ((loop, wish.least(loop)[0]) for loop in every())
    return {loop: least for loop, least in found if least is not None}


def wish(floats=False, names=None, dtypes=None, functions=False) -> Wish:
    """A Wish of what a user wrote, or an error that says what there is."""
    known = sorted({*PRODUCTS, *OURS})
    if names is not None:
        names = tuple(getattr(getattr(np, str(name), None), "__name__", name) for name in _words("names", names))
        if wrong := [name for name in names if name not in known]:
            raise ValueError(f"use_in_numpy: names={wrong}: there are {', '.join(known)}")
    if dtypes is not None:
        dtypes = tuple(_dtype(each) for each in _words("dtypes", dtypes))
    return Wish(bool(floats), names, dtypes, bool(functions))


def _words(what, given) -> tuple:
    try:
        return (given,) if isinstance(given, str | type | np.dtype) else tuple(given)
    except TypeError:
        raise TypeError(f"use_in_numpy: {what}={given!r} is no list of names") from None


def _dtype(given) -> str:
    try:
        name = np.dtype(given).name
    except TypeError:
        name = None
    if name not in DTYPES or name == "bfloat16":
        there = ", ".join(dtype for dtype in DTYPES if dtype != "bfloat16")
        raise ValueError(f"use_in_numpy: dtypes={given!r}: there are {there}")
    return name
