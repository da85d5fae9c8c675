"""Kernels in vector IR: each a function of its own, once per module, that jitted code calls by addresses; and loops."""

from __future__ import annotations

import copy
from types import SimpleNamespace

from llvmlite import ir

from ..compile.lazy import named, types
from .vector import ELEMENT, I32, I64, VOID, once


def items(arguments: str) -> list:
    """(name, letter) of each argument of "name:letter ..."."""
    return [item.split(":") for item in arguments.split()]


def kinds(tile, arguments: str) -> dict:
    """LLVM's types of arguments by name. Letters: i a number, s one of a chain's dtype; an address of: p words, a and b
    elements of the operands, c of the result, t chains."""

    def of(letter):
        if letter == "i":
            return I64
        dtypes = {"p": tile.dtype, "a": tile.kind.a, "b": tile.kind.b, "c": tile.kind.out}
        element = ELEMENT[dtypes.get(letter, tile.kind.chain)]
        return element if letter == "s" else element.as_pointer()

    return {name: of(letter) for name, letter in items(arguments)}


def begun(module, name: str, tile, arguments: str):
    """The builder of a new LLVM function that returns nothing, and its arguments by name."""
    types_of = kinds(tile, arguments)
    function = ir.Function(module, ir.FunctionType(VOID, list(types_of.values())), name)
    return ir.IRBuilder(function.append_basic_block("entry")), dict(zip(types_of, function.args))


def values(builder, types_of: dict, arg: dict) -> list:
    """The arguments as a function of these types takes them."""
    return [builder.inttoptr(arg[name], kind) if isinstance(kind, ir.PointerType) else arg[name]
            for name, kind in types_of.items()]  # fmt: skip


def called(builder, tile, name: str, arguments: str, arg: dict, body, *how) -> None:
    """Call an LLVM function of what `body(builder, tile, arguments by name, *how)` emits, which a module has once."""
    types_of = kinds(tile, arguments)
    function, inside = once(builder.module, name, list(types_of.values()))
    if inside is not None:
        body(inside, tile, dict(zip(types_of, function.args)), *how)
        inside.ret_void()
    builder.call(function, values(builder, types_of, arg))


def on_tile(name: str, arguments: str, emit, asked: str = ""):
    """An intrinsic of a tile and numbers of these names, `asked` before `arguments`, of which addresses are int64: what
    `emit(context, builder, tile, numbers by name)` emits."""
    given = items(f"{asked} {arguments}")

    def call(typing, tile, *numbers):
        def emission(context, builder, signature, args):
            emit(context, builder, signature.args[0].tile, dict(zip((n for n, _ in given), args[1:])))
            return context.get_dummy_value()

        scalar = getattr(types, tile.tile.kind.chain)
        return types.void(tile, *[scalar if letter == "s" else types.int64 for _, letter in given]), emission

    return named(call, name, ("tile", *(n for n, _ in given)))


def emitted(name: str, arguments: str, body, **how):
    """An intrinsic `name(tile, *arguments)`: it calls a function of what `body(builder, tile, arguments, **how)` emits,
    which reads the arguments as attributes."""

    def inside(builder, tile, arg):
        body(builder, tile, SimpleNamespace(**arg), **how)

    def emit(context, builder, tile, arg):
        called(builder, tile, f"{name}_{tile.kind}", arguments, arg, inside)

    return on_tile(name, arguments, emit)


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
