"""Numba, imported at its first use: its names, and the decorators of what it compiles.

A process that finds its compiled code on disk runs it without Numba, whose import takes longer than all else that a
first call does. So modules that describe kernels name Numba through this one: `types.int64` imports it, and what is
decorated is made known to it when something is compiled (known.py).
"""

from __future__ import annotations

import functools
import inspect
import threading
from importlib import import_module
from inspect import Parameter, Signature
from types import ModuleType

from ...shield import import_numba, in_children

OPTIONS = dict(_nrt=False, nogil=False, error_model="numpy", boundscheck=False)


class Names(ModuleType):
    """A module of Numba's by its name, imported when the first of its names is asked for."""

    def __getattr__(self, name):
        if name.startswith("__"):  # what Python asks of every module
            raise AttributeError(name)
        import_numba()
        found = self.__dict__[name] = getattr(import_module(self.__name__), name)
        return found


types, cgutils, errors = Names("numba.types"), Names("numba.core.cgutils"), Names("numba.core.errors")


class Declared:
    """A function that Numba is told of when another that is compiled calls it; its type is known.py's."""

    def __init__(self, function, options):
        functools.update_wrapper(self, function)
        self.py_func, self.options = function, options

    def __reduce__(self):
        return self.__qualname__  # pickled by its name, as functions are


class Helper(Declared):
    """One that is compiled as a part of those that call it; a call from Python runs it as it is."""

    def __call__(self, *arguments, **keywords):
        return self.py_func(*arguments, **keywords)


class Jitted(Declared):
    """A user's function, compiled by Numba as it compiles any: `numba.njit`."""


class Intrinsic(Declared):
    """One that types a call and emits its LLVM IR: `numba.extending.intrinsic`."""


def jit(function=None, **options):
    """`numba.njit` with the library's options, for helpers that other jitted functions call; `forceinline=True` puts
    the helper's code into each of them, else LLVM decides.

    Not cached: a helper's code is part of the entries that call it, and a file of its own would be compiled twice.
    """
    if function is None:
        return functools.partial(jit, **options)
    return Helper(function, dict(OPTIONS, nopython=True, **options))


def intrinsic(function):
    return Intrinsic(function, {})


def named(call, name: str, arguments):
    """The intrinsic `name(*arguments)` that `call(typing, *types)` is, which has a star in their place."""
    each = (Parameter(argument, Parameter.POSITIONAL_OR_KEYWORD) for argument in ("typing", *arguments))
    call.__signature__, call.__name__, call.__qualname__ = Signature(list(each)), name, name
    return intrinsic(call)


def emits(kind: str):
    """An intrinsic of numbers with this signature (known.signature), of what is decorated: write(builder, *values)
    emits its LLVM IR, and returns the value, if there is one."""

    def decorate(write):
        def emit(context, builder, signature, args):
            value = write(builder, *args)
            return context.get_dummy_value() if value is None else value

        def call(typing, *given):
            from .known import signature

            return signature(kind), emit

        call.__doc__, call.__module__ = write.__doc__, write.__module__
        return named(call, write.__name__, list(inspect.signature(write).parameters)[1:])

    return decorate


def plain(function=None, **options):
    """A plain function, which those that are compiled call, too: `numba.extending.register_jitable`, as above."""
    if function is None:
        return functools.partial(plain, **options)
    _declare("register_jitable", function, None, dict(OPTIONS, **options))
    return function


def overload(function, **options):
    """What compiled code calls in a function's place, as `numba.extending.overload` chooses it by types."""

    def decorate(choose):
        _declare("overload", function, choose, options)
        return choose

    return decorate


_waiting: list = []  # what was declared before Numba was there
_entered: list = []  # what is called with what is declared from then on
_lock = threading.Lock()
in_children(_lock._at_fork_reinit)


def _declare(*declaration) -> None:
    with _lock:
        if not _entered:
            _waiting.append(declaration)
            return
    _entered[0](*declaration)


def enter(declare) -> None:
    """declare(name of numba.extending's, function, choice, options) is called with all that is and will be declared."""
    with _lock:
        if _entered:
            return
        _entered.append(declare)
    for declaration in _waiting:
        declare(*declaration)
    _waiting.clear()


def subroutine(context, function, signature):
    """compiler.subroutine, in code that is being emitted."""
    from .compiler import subroutine

    return subroutine(context, function, signature)


@intrinsic
def compact(typing):
    """In a function that is embedded: it is optimised for its size, so that each of those around it compiles sooner."""

    def emit(context, builder, signature, args):
        builder.function.attributes.add("optsize")
        return context.get_dummy_value()

    return types.void(), emit
