"""Numba's type inference, with a memory, and without overloads for what is one instruction."""

from __future__ import annotations

import operator
from typing import ClassVar

from numba import types

from .numba_internals import register_pass, typed_passes, typing

COMPARED = {min: operator.lt, max: operator.gt}  # the number that is so to the other is the result


def direct(context, function, args):
    """The signature of Python's min, max and int of numbers, which are lowered where they stand; None of others."""
    key = function.typing_key if type(function) is types.Function else None
    if key in COMPARED and len(args) > 1 and all(isinstance(each, types.Integer | types.Float) for each in args):
        return typing.signature(context.unify_types(*args), *args)
    if key is int and len(args) == 1 and isinstance(args[0], types.Integer | types.Float | types.Boolean):
        return typing.signature(args[0] if isinstance(args[0], types.Integer) else types.intp, *args)
    return None


class Memory:
    """A typing context that remembers what operators and intrinsics make of the types they are given: to find out is
    nine tenths of type inference, and a kernel adds integers a thousand times."""

    known: ClassVar = {}

    def __init__(self, context):
        self._context = context

    def __getattr__(self, name):
        return getattr(self._context, name)

    def resolve_function_type(self, function, args, keywords):
        helper = type(function) is types.Dispatcher and getattr(function.dispatcher, "helper", False)
        if keywords or not (helper or type(function) is types.Function):
            return self._context.resolve_function_type(function, args, keywords)
        found = self.known.get((function, args))
        if found is None:
            found = direct(self._context, function, tuple(map(types.unliteral, args)))
            found = found or self._context.resolve_function_type(function, args, keywords)
            if found is not None:
                self.known[function, args] = found
        return found


@register_pass(mutates_CFG=True, analysis_only=False)
class TypeInference(typed_passes.NopythonTypeInference):
    _name = "nbkernels_type_inference"

    def run_pass(self, state):
        context, state.typingctx = state.typingctx, Memory(state.typingctx)
        try:
            return super().run_pass(state)
        finally:
            state.typingctx = context
