"""Functions that other compiled functions call by a symbol: compiled once for all of them, when the first one is."""

from __future__ import annotations

import functools
from importlib import import_module
from inspect import Parameter, Signature, signature

from llvmlite import binding, ir

from .cache import compiled
from .lazy import cgutils, intrinsic


def linked(kind: str):
    """A decorator: the function, of this signature, is compiled by itself.

    Its address is known to LLVM by a symbol, so that machine code on disk holds none; before code that calls it is
    loaded, it is.
    """

    def decorate(function):
        name = f"{function.__module__.rpartition('.')[2]}_{function.__name__}"
        symbol = f"nbkernels_{name}"
        ready = functools.cache(lambda: binding.add_symbol(symbol, compiled(function, kind, name)))
        again = functools.partial(_again, function.__module__, symbol)
        _LINKED[symbol] = ready

        def emit(context, builder, signature, args):
            ready()
            context.active_code_library._reload_init.add(again)
            returns, *of = map(context.get_value_type, (signature.return_type, *signature.args))
            to = cgutils.get_or_insert_function(builder.module, ir.FunctionType(returns, of), symbol)
            return builder.call(to, args)

        def call(typing, *given):
            from .known import signature

            return signature(kind), emit

        names = ("typing", *signature(function).parameters)
        call.__signature__ = Signature([Parameter(each, Parameter.POSITIONAL_OR_KEYWORD) for each in names])
        call.__name__ = call.__qualname__ = function.__name__
        return intrinsic(call)

    return decorate


_LINKED = {}


def _again(module, symbol) -> None:
    import_module(module)
    _LINKED[symbol]()
