"""Numba's entry point `numba_extensions`: jitted code finds this library's operations without an import of its own.

Numba asks for it before it compiles anything, in programs too that jit none of these operations. So all that it is told
then is which functions there are; the first call of one imports nbkernels.jitted, which teaches it all of them.
"""

from __future__ import annotations

from importlib import import_module
from types import FunctionType

from numba import types
from numba.extending import overload

from . import ops
from .jit.compile.numba_internals import (
    AbstractTemplate,
    AttributeTemplate,
    TypingError,
    infer_getattr,
    infer_global,
    lower_getattr_generic,
)

JITTED = "nbkernels.jitted"
REGISTRY = "numba.core.registry"  # which is being made when Numba asks
_taught: dict = {}  # a function -> the one that stands for it among Numba's overloads


def init() -> None:
    """What Numba calls. What it is to know it knows once this module is imported."""


def teach(function):
    """Numba's `overload` of a public function."""
    stand = FunctionType(function.__code__, {}, function.__qualname__, None, function.__closure__)
    _taught[function] = stand
    return overload(stand)


def _known(function):
    class Known(AbstractTemplate):
        """A call of the function: that of its overloads, which are imported when they are asked for first."""

        key = function

        def generic(self, args, kws):
            import_module(JITTED)
            if function not in _taught:
                raise TypingError(f"{function.__qualname__} of nbkernels cannot be called in jitted code")
            self.context.refresh()
            import_module(REGISTRY).cpu_target.target_context.refresh()  # had its parts before this compilation began
            self.overloads = self.context.resolve_value_type(_taught[function])
            return self.overloads.get_call_type(self.context, args, kws)

        def get_impl_key(self, sig):
            return self.overloads.get_impl_key(sig)

    infer_global(function, types.Function(Known))


FUNCTIONS = {function: getattr(function, "reduce", None) for function in (getattr(ops, n) for n in ops.OPERATIONS)}
for _function, _reduce in FUNCTIONS.items():
    _known(_function)
    if _reduce:
        _known(_reduce)


@infer_getattr
class _Methods(AttributeTemplate):
    """add.reduce, of a function that Numba knows."""

    key = types.Function

    def generic_resolve(self, kind, name):
        method = FUNCTIONS.get(kind.typing_key) if name == "reduce" else None
        return method and self.context.resolve_value_type(method)


@lower_getattr_generic(types.Function)
def _method(context, builder, kind, value, name):
    return context.get_dummy_value()
