"""Rows of a function of one's own, `bench --with module:function`: (n, dtype) -> {name: call}, the first one yours."""

from __future__ import annotations

import functools
import importlib
import os
import sys

from .suites import Case

SIZES = (64, 256, 1024, 4096)


class Unusable(ValueError):
    """The function that --with names cannot be imported or called; the text of the error is one line."""


def named(text):
    """The function that `module:function` names; a module may lie in the working directory.

    >>> named("math:sqrt")
    <built-in function sqrt>
    >>> named("math.sqrt")
    Traceback (most recent call last):
    nbkernels.benches.own.Unusable: --with math.sqrt: module:function is wanted
    """
    module, _, name = text.partition(":")
    if not module or not name:
        raise Unusable(f"--with {text}: module:function is wanted")
    if os.getcwd() not in sys.path:  # as the console script leaves it
        sys.path.insert(0, os.getcwd())
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise Unusable(f"--with {text}: {error}") from None
    if not callable(function):
        raise Unusable(f"--with {text}: it is no function")
    return function


def cases(function, dtype=None, sizes=None):
    """A case for each n. What `calls` gives is looked at before anything is timed."""
    kind, name = dtype or "float32", getattr(function, "__name__", "own")
    for n in sizes or SIZES:
        yield Case(name, (n,), kind, functools.partial(calls, function, n, kind), "", peak="")


def calls(function, n, dtype):
    """{name: call} for n, or Unusable."""
    found = function(n, dtype)
    if not isinstance(found, dict) or not found or not all(map(callable, found.values())):
        raise Unusable(f"{function.__name__}({n}, {dtype!r}) gave {found!r:.60}: {{name: call}} is wanted, yours first")
    return found
