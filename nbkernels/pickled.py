"""Pickles of operations that are made of users' functions.
They are kept by module and name, as NumPy's ufuncs, where another process finds them so; else the function is kept by
value, by the cloudpickle that Numba brings."""

from __future__ import annotations

import pickle
import sys
from functools import reduce
from importlib import import_module
from types import FunctionType

BY_VALUE = "numba.cloudpickle"  # imported where it is needed


def reduced(made, make, function, *rest):
    """What `made.__reduce__` returns, for an operation that make(function, *rest) makes; functions in `rest`, too."""
    place = function.__module__, function.__qualname__
    if _found(*place) is made:
        return located, place
    return _again, (make, *(_packed(x) if isinstance(x, FunctionType) else x for x in (function, *rest)))


def located(module, name):
    """What a module has by a dotted name."""
    return reduce(getattr, name.split("."), import_module(module))


def _found(module, name):
    """Return the object that a loaded module has by a dotted name; None if it has none, or the module is __main__."""
    try:
        return None if module == "__main__" else reduce(getattr, name.split("."), sys.modules[module])
    except (AttributeError, KeyError):
        return None


def _function(x):
    """The Python function of an operation or of a jitted function."""
    return getattr(x, "py_func", x)


class _Packed(tuple):
    """(module, name) of a function, or (bytes,) of one by value."""

    __slots__ = ()


def _packed(function):
    place = function.__module__, function.__qualname__
    known = getattr(_function(_found(*place)), "__code__", None) is function.__code__ and not function.__closure__
    return _Packed(place if known else (import_module(BY_VALUE).dumps(function),))


def _unpacked(x):
    if not isinstance(x, _Packed):
        return x
    return pickle.loads(*x) if len(x) == 1 else _function(located(*x))


def _again(make, *args):
    return make(*map(_unpacked, args))
