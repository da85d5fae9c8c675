"""Kernels in vector IR: each a function of its own, once per module, that jitted code calls by addresses."""

from __future__ import annotations

from inspect import Parameter, Signature

from ..compile.lazy import intrinsic, types
from .vector import ELEMENT, I64, once


def emitted(name: str, kinds: str, body, **how):
    """An intrinsic `name(tile, ...)` of int64 arguments: it calls what `body(builder, tile, ..., **how)` emits.

    `kinds` has a letter for each argument: i for a number, p for an address of numbers of the tile's dtype, a, b and t
    for one of elements of its kind's operands and of its chains.
    """

    def function(module, tile):
        dtypes = {"p": tile.dtype, "a": tile.kind.a, "b": tile.kind.b, "t": tile.kind.chain}
        arguments = [I64 if kind == "i" else ELEMENT[dtypes[kind]].as_pointer() for kind in kinds]
        made, builder = once(module, f"{name}_{tile.kind}", arguments)
        if builder is not None:
            body(builder, tile, *made.args, **how)
            builder.ret_void()
        return made

    def emit(context, builder, signature, args):
        called = function(builder.module, signature.args[0].tile)
        given = zip(called.args, args[1:])
        builder.call(called, [x if own.type == I64 else builder.inttoptr(x, own.type) for own, x in given])
        return context.get_dummy_value()

    def call(typing, tile, *arguments):
        return types.void(tile, *[types.int64] * len(kinds)), emit

    return of_arguments(name, [f"{kind}{i}" for i, kind in enumerate(kinds)], call)


def of_arguments(name: str, arguments, call):
    """The intrinsic `name(tile, *arguments)` that `call(typing, tile, *types)` is, which has a star in their place."""
    names = ("typing", "tile", *arguments)
    call.__signature__ = Signature([Parameter(each, Parameter.POSITIONAL_OR_KEYWORD) for each in names])
    call.__name__ = call.__qualname__ = name
    return intrinsic(call)
