"""Memory by address, and calls by address, from jitted code: the few primitives that Numba has no words for."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .vector import ELEMENT, I64, SIZE, VOID


@intrinsic
def peek(typing, tile, address):
    """The number of the tile's chains at `address`, aligned or not."""
    element = getattr(types, tile.tile.kind.chain)

    def emit(context, builder, signature, args):
        pointer = builder.inttoptr(args[1], ELEMENT[signature.args[0].tile.kind.chain].as_pointer())
        return builder.load(pointer, align=1)

    return element(tile, types.int64), emit


@intrinsic
def poke(typing, tile, address, value):
    """Store a number of the tile's chains at `address`, aligned or not."""

    def emit(context, builder, signature, args):
        pointer = builder.inttoptr(args[1], ELEMENT[signature.args[0].tile.kind.chain].as_pointer())
        builder.store(args[2], pointer, align=1)
        return context.get_dummy_value()

    return types.void(tile, types.int64, getattr(types, tile.tile.kind.chain)), emit


@intrinsic
def fma(typing, a, b, c):
    """a*b + c rounded once, for three scalars of one float type."""

    def emit(context, builder, signature, args):
        kind = args[0].type
        name = f"llvm.fma.f{SIZE[str(signature.return_type)] * 8}"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
        return builder.call(function, args)

    return a(a, a, a), emit


@intrinsic
def scratch(typing, size):
    """Address of `size` (a literal) bytes on this call's stack, at the start of a cache line."""

    def emit(context, builder, signature, args):
        with builder.goto_entry_block():
            room = builder.alloca(ir.ArrayType(ir.IntType(8), signature.args[0].literal_value))
        room.align = 64
        return builder.ptrtoint(room, I64)

    return (types.int64(size), emit) if isinstance(size, types.IntegerLiteral) else None


@intrinsic
def static(typing, size):
    """Address of `size` (a literal) bytes that belong to the compiled function: one room for all calls, so only for
    callers that hold the GIL."""

    def emit(context, builder, signature, args):
        kind = ir.ArrayType(ir.IntType(8), signature.args[0].literal_value)
        name = f"static_{signature.args[0].literal_value}"
        room = builder.module.globals.get(name)
        if room is None:
            room = ir.GlobalVariable(builder.module, kind, name)
            room.linkage, room.align, room.initializer = "internal", 64, ir.Constant(kind, None)
        return builder.ptrtoint(room, I64)

    return (types.int64(size), emit) if isinstance(size, types.IntegerLiteral) else None


@intrinsic
def take(typing, counter):
    """counter[0]++ seen by all threads; the value before."""

    def emit(context, builder, signature, args):
        return builder.atomic_rmw("add", args[0], I64(1), "monotonic")

    return types.int64(types.CPointer(types.int64)), emit


@intrinsic
def call(typing, address, context_pointer, task):
    """Call the C function void(int64, int64) at `address`."""

    def emit(context, builder, signature, args):
        kind = ir.FunctionType(VOID, [I64, I64])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 3), emit
