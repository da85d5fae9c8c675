"""A user's function as it is at one moment: a copy with all that it reads, and whether any of that has changed since.

Compiled code holds the values of globals and closures as constants. So what is compiled is the copy, whose values
nobody changes, and a function whose values are others is another function, in this process and on disk. What counts is
what it reads by name: globals, cells of closures, attributes of modules other than math and NumPy, the elements of
arrays; and the same of the plain functions that it calls, of jitted and element-wise ones what these were made of.
"""

from __future__ import annotations

import dis
import functools
import math
import types as python

import numpy as np

from .dtypes import ALONE, ufunc
from .elementary.real import HELPERS, KERNELS, bits, dual, floor, fma, number, tangent

MISSING = object()
EXACT = (fma, bits, number, floor, dual, tangent)
LASTING = {math, np}  # modules that are taken as they are
PARTS = "__code__", "__defaults__"  # of a function, for which others may be put in their place


@functools.lru_cache(maxsize=1024)
def names(code) -> tuple[frozenset[str], frozenset[str]]:
    """Names of globals and of attributes that a function, or one inside it, reads."""
    found = list(dis.get_instructions(code))
    globals_ = {i.argval for i in found if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    attributes = {i.argval for i in found if i.opname in ("LOAD_ATTR", "LOAD_METHOD")}
    for value in code.co_consts:
        if isinstance(value, python.CodeType):
            inner = names(value)
            globals_ |= inner[0]
            attributes |= inner[1]
    return frozenset(globals_), frozenset(attributes)


def known(function) -> bool:
    """Whether compilers are told of a function by the library: no copy of it would do."""
    return function in KERNELS or function in HELPERS or function in EXACT


def of_elements(value):
    """NumPy's function for an element-wise operation of this library, which compilers know; else the value itself."""
    schema = getattr(value, "schema", None)
    if not isinstance(value, python.FunctionType) or schema is None or schema.kind != "functional":
        return value
    return ufunc(schema.name) if hasattr(value, "reduce") or schema.name in ALONE else value


def content(cell, function):
    """What a function closes over."""
    try:
        return cell.cell_contents
    except ValueError:
        name = function.__code__.co_freevars[function.__closure__.index(cell)]
        raise NameError(f"{function.__name__} reads {name!r}, which has no value yet", name=name) from None


def told(value):
    """What tells a value from others: a number's type and digits, any other object's identity.

    >>> told(1) == told(1.0), told(0.0) == told(-0.0), told(float("nan")) == told(float("nan"))
    (False, False, True)
    """
    kind = type(value)
    if kind in (float, complex):
        return kind, repr(value)
    if kind in (bool, int, str, bytes, python.NoneType):
        return kind, value
    if isinstance(value, np.generic):
        return kind, value.dtype, value.tobytes()
    return (kind, *map(told, value)) if kind is tuple else (kind, id(value))


def elements(array):
    """What tells an array's elements from others."""
    return array.dtype, array.shape, array.strides, array.tobytes()


class Frozen:
    """`function`, the copy, and `key`, which other copies have exactly where they compute the same."""

    def __init__(self, function):
        self.read = []  # (get, name, value): get(name, MISSING) is value as long as nobody changes it
        self.arrays = []  # (an array, its elements)
        self.copies = {}  # a function or a module -> its copy and key, None while it is being made
        self.function, self.key = self.of_function(function)

    def holds(self) -> bool:
        """Whether all that the function reads still is what it was."""
        for get, name, value in self.read:
            if get(name, MISSING) is not value:
                return False
        return not self.arrays or all(elements(array) == kept for array, kept in self.arrays)

    def of_arrays(self):
        """Names of the operations on arrays that the function reads."""
        read = ((name, of_elements(value)) for _, name, value in self.read)
        return [name for name, value in read if hasattr(value, "schema")]

    def of(self, value, attributes):
        """What the copy has for a value, and what tells it from others; of modules it has these attributes."""
        value = of_elements(value)
        made = getattr(value, "py_func", value)
        if isinstance(made, python.FunctionType) and not known(made):
            if made not in self.copies:
                self.read += ((functools.partial(getattr, made), n, getattr(made, n)) for n in PARTS)
                self.copies[made] = None
                self.copies[made] = self.of_function(made)
            if self.copies[made] is None:
                raise TypeError(f"{made.__name__} calls itself")
            return self.copies[made]
        if isinstance(value, python.ModuleType) and value not in LASTING:
            return self.of_module(value, attributes)
        if isinstance(value, np.ndarray):
            self.arrays.append((value, elements(value)))
            copy = np.array(value, subok=True)
            copy.flags.writeable = False
            return copy, (type(value), *elements(copy))
        if isinstance(value, tuple):
            parts = [self.of(part, attributes) for part in value]
            make = getattr(value, "_make", tuple)
            return make(copy for copy, _ in parts), (type(value), *(key for _, key in parts))
        return value, told(value)

    def of_function(self, function):
        """A function's copy, in a scope of its own, and its key."""
        code, given = function.__code__, function.__globals__
        globals_, attributes = names(code)
        scope, keys = {}, []
        for name in sorted(globals_):
            value = given.get(name, MISSING)
            self.read.append((given.get, name, value))
            if value is not MISSING:
                scope[name], key = self.of(value, attributes)
                keys.append((name, key))
        cells = []
        for cell in function.__closure__ or ():
            value = content(cell, function)
            self.read.append((functools.partial(getattr, cell), "cell_contents", value))
            copy, key = self.of(value, attributes)
            cells.append(python.CellType(copy))
            keys.append(key)
        defaults, key = self.of(function.__defaults__, attributes)
        copy = python.FunctionType(code, scope, function.__name__, defaults, tuple(cells))
        return copy, (code, key, *keys)

    def of_module(self, module, attributes):
        """A module with those of its members that the function may read."""
        if (module, attributes) not in self.copies:
            copy, keys = python.ModuleType(module.__name__), []
            self.copies[module, attributes] = copy, module.__name__  # for one that reads itself
            for name in sorted(attributes & vars(module).keys()):
                value = vars(module)[name]
                self.read.append((vars(module).get, name, value))
                copy.__dict__[name], key = self.of(value, attributes)
                keys.append((name, key))
            self.copies[module, attributes] = copy, (module.__name__, *keys)
        return self.copies[module, attributes]
