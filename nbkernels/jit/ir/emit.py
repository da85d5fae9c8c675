"""Kernels in vector IR: each a function of its own, once per module, that jitted code calls by addresses; and loops."""

from __future__ import annotations

import copy
from inspect import Parameter, Signature

from llvmlite import ir

from ..compile.lazy import intrinsic, types
from .vector import ELEMENT, I32, I64, once


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


def outlined(emitter, emit, base, steps, start, count, *rest, **keywords):
    """Call a function of what `emit(emitter, ...)` emits, whose loop has all registers for constants: LLVM hoists those
    of a function's loops out of all of them, and loads what is too many for every vector (log2 of 100,000 float32 44
    us, so 38: AVX-512, 2026-11)."""
    builder, parts = emitter.builder, ((start, count), base, emitter.inner, emitter.constants, emitter.faulty)
    args = [*builder.function.args[:2], *[value for part in parts for value in part]]
    kind, name = ir.FunctionType(I32, [a.type for a in args]), builder.module.get_unique_name("loop")
    function, inside = ir.Function(builder.module, kind, name), copy.copy(emitter)
    function.linkage = "private"
    function.attributes.add("noinline")
    inside.builder, own = ir.IRBuilder(function.append_basic_block("entry")), iter(function.args[2:])
    ends, base, inside.inner, inside.constants, inside.faulty = ([next(own) for _ in part] for part in parts)
    emit(inside, base, steps, *ends, *rest, **keywords)
    inside.builder.ret(I32(0))
    status = builder.call(function, args)  # as Numba's are called, with where an error is written
    with builder.if_then(builder.icmp_signed("!=", status, I32(0)), likely=False):
        builder.ret(status)
