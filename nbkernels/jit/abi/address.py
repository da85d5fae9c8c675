"""Memory by address, and calls by address, from jitted code: the few primitives that Numba has no words for."""

from __future__ import annotations

from llvmlite import ir

from ..compile.lazy import cgutils, emits, intrinsic, named, types
from ..ir.vector import ELEMENT, I64, SIZE, VOID, Lanes, join, library

INT32 = 0xFFFFFFFF  # what an int32 is of a word: `asked & INT32` where a C function returns one that is not negative


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
def nothing(typing, tile):
    """Zero, as a number of the tile's chains: one of them before its first step."""
    chain = tile.tile.kind.chain
    return getattr(types, chain)(tile), lambda context, builder, signature, args: ir.Constant(ELEMENT[chain], 0)


@emits("void(int64)")
def ask(builder, address):
    """Ask for the line at `address` in L2; never faults."""
    Lanes(builder, "int8", 1).prefetch(builder.inttoptr(address, ELEMENT["int8"].as_pointer()), level=2)


@intrinsic
def fma(typing, a, b, c):
    """a*b + c rounded once, for three scalars of one float type."""

    def emit(context, builder, signature, args):
        return library(builder, f"llvm.fma.f{SIZE[str(signature.return_type)] * 8}", args[0].type, *args)

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
            room.linkage, room.align, room.initializer = "linkonce_odr", 64, ir.Constant(kind, None)
        return builder.ptrtoint(room, I64)

    return (types.int64(size), emit) if isinstance(size, types.IntegerLiteral) else None


@emits("int64(int64)")
def word(builder, address):
    """The int64 at `address`."""
    return builder.load(builder.inttoptr(address, I64.as_pointer()))


@emits("float64(int64)")
def real(builder, address):
    """The float64 at `address`."""
    return builder.load(builder.inttoptr(address, ELEMENT["float64"].as_pointer()))


@intrinsic
def set_word(typing, address, value):
    """Store a number at `address`, in its own type."""

    def emit(context, builder, signature, args):
        builder.store(args[1], builder.inttoptr(args[0], args[1].type.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, value), emit


@emits("void(int64, int64, int64)")
def copy(builder, to, source, size):
    """Copy `size` bytes from `source`."""
    to, source = (builder.inttoptr(a, ELEMENT["int8"].as_pointer()) for a in (to, source))
    cgutils.raw_memcpy(builder, to, source, size, 1)


@emits("void(int64, int64)")
def clear(builder, to, size):
    """Write `size` bytes of 0."""
    cgutils.memset(builder, builder.inttoptr(to, ELEMENT["int8"].as_pointer()), size, 0)


@emits("words(int64)")
def pointer(builder, address):
    """The int64 words at `address`."""
    return builder.inttoptr(address, I64.as_pointer())


@emits("int64(int64, int64, int64, float64, float64)")
def answered(builder, words, otherwise, context, beta, alpha):
    """What the C function whose address is the first word answers, given the second and these; or `otherwise`, if the
    word is 0."""
    words, before = builder.inttoptr(words, I64.as_pointer()), builder.block
    address = builder.load(words)
    with builder.if_then(builder.icmp_unsigned("!=", address, I64(0))):
        values = [builder.load(builder.gep(words, [I64(1)])), context, beta, alpha]
        kind = ir.FunctionType(I64, [value.type for value in values])
        answer, inside = builder.call(builder.inttoptr(address, kind.as_pointer()), values), builder.block
    return join(builder, ([otherwise], before), ([answer], inside))[0]


def _call(context, builder, signature, args, result):
    """Call the C function at an address with numbers: float64 as they are, others as int64."""
    kinds = signature.args[1]
    values = [
        value if kind == types.float64 else context.cast(builder, value, kind, types.int64)
        for value, kind in zip(cgutils.unpack_tuple(builder, args[1], len(kinds)), kinds)
    ]
    kind = ir.FunctionType(result, [value.type for value in values])
    answer = builder.call(builder.inttoptr(args[0], kind.as_pointer()), values)
    return answer if result is I64 else context.get_dummy_value()


@intrinsic
def invoke(typing, address, arguments):
    """Call the C function at `address`, which returns nothing, with numbers: float64 as they are, others as int64."""
    return types.void(types.int64, arguments), lambda *emission: _call(*emission, VOID)


def c_function(name: str, kind: str):
    """An intrinsic with this signature, of int64 alone, that calls the C function of that name."""
    result, _, given = kind.partition("(")

    def emit(context, builder, signature, args):
        value = library(builder, name, VOID if result == "void" else I64, *args)
        return context.get_dummy_value() if result == "void" else value

    def call(typing, *given):
        from ..compile.known import signature

        return signature(kind), emit

    return named(call, name, [f"value_{i}" for i in range(given.count("int64"))])


@intrinsic
def asked(typing, address, arguments):
    """What the C function at `address`, called likewise, returns: an int64."""
    return types.int64(types.int64, arguments), lambda *emission: _call(*emission, I64)
