"""Kernels in vector IR: each a function of its own, once per module, that jitted code calls by addresses."""

from __future__ import annotations

from inspect import Parameter, Signature

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .vector import ELEMENT, I64, VOID


def emitted(name: str, kinds: str, body, **how):
    """An intrinsic `name(tile, ...)` of int64 arguments: it calls what `body(builder, tile, ..., **how)` emits.

    `kinds` has a letter for each argument: i for a number, p for an address of numbers of the tile's dtype, a, b and t
    for one of elements of its kind's operands and of its chains.
    """

    def function(module, tile):
        symbol = f"{name}_{tile.kind}"
        if symbol in module.globals:
            return module.globals[symbol]
        dtypes = {"p": tile.dtype, "a": tile.kind.a, "b": tile.kind.b, "t": tile.kind.chain}
        arguments = [I64 if kind == "i" else ELEMENT[dtypes[kind]].as_pointer() for kind in kinds]
        made = ir.Function(module, ir.FunctionType(VOID, arguments), symbol)
        made.linkage = "linkonce_odr"
        made.attributes.add("noinline")
        builder = ir.IRBuilder(made.append_basic_block("entry"))
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

    names = ["typing", "tile", *(f"{kind}{i}" for i, kind in enumerate(kinds))]
    call.__signature__ = Signature([Parameter(each, Parameter.POSITIONAL_ONLY) for each in names])  # without a star
    call.__name__ = call.__qualname__ = name
    return intrinsic(call)
