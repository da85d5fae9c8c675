"""Functions that are written in LLVM IR, each compiled alone, and called by its address: once for all who call it.
Numba knows nothing of them: no types are inferred, no wrapper is made, which takes a fifth of a small loop's time."""

from __future__ import annotations

import functools
from array import array

from llvmlite import binding, ir

from ..ir.vector import I64, outside
from .cache import Place, build
from .lazy import intrinsic, types


def routine(name: str, define) -> int:
    """The address of the function that define(module, name) adds to an LLVM module, valid for the life of the process;
    kept on disk as what Numba compiles."""
    if name not in _ADDRESSES:
        place = Place(f"{__name__}.{name}", "", "native")
        _ADDRESSES.setdefault(name, (place.load() or build().routine(name, define, place)).address)
    return _ADDRESSES[name]


def ir_function(emit, arguments: str, name: str, loops: bool = True, linkable: bool = False):
    """Compile what `emit(context, builder, *values)` emits: the Code of the C function void(int64, ...) of the
    arguments of these names. It may call what Numba compiles, as `subroutine` does, and that is to raise nothing.
    `loops`: over elements, which LLVM is to vectorise; `linkable`: it may be embedded in other compiled code."""
    count = len(arguments.split())
    place = Place(f"{emit.__module__}.{name}", f"void({count})", "linked" if linkable else "native")
    define = functools.partial(_define, emit, count)
    return place.load() or build().routine(name, define, place, loops, linkable)


def _define(emit, count: int, module, name: str) -> None:
    """Define the C function, and what it calls: that has Numba's form, so that callees' statuses can be returned."""
    from .error_model import reported
    from .numba_internals import cpu_target

    context, numbers = cpu_target.target_context, [types.int64] * count
    kinds = context.call_conv.get_function_type(types.void, numbers), ir.FunctionType(ir.VoidType(), [I64] * count)
    inner, outer = (ir.Function(module, kind, each) for kind, each in zip(kinds, (f"{name}_emitted", name)))
    inner.linkage = "private"
    inside, builder = (ir.IRBuilder(function.append_basic_block("entry")) for function in (inner, outer))
    emit(context, inside, *inner.args[2:])
    inside.ret(inner.type.pointee.return_type(0))
    status, _ = context.call_conv.call_function(builder, inner, types.void, numbers, outer.args, ("noinline",))
    reported(builder, status.is_error)
    builder.ret_void()


_ADDRESSES: dict[str, int] = {}
_WORDS: dict[str, array] = {}


class Table:
    """The addresses of routines, 0 until they are compiled. Compiled code finds it by its symbol, for machine code on
    disk holds no address; `of(at)` is the name of one by its place, and what defines it."""

    def __init__(self, symbol: str, size: int, of):
        self.symbol, self._of = f"nbkernels_{symbol}", of
        self.words = _WORDS.setdefault(symbol, array("q", bytes(8 * size)))  # threads may make it at the same time
        binding.add_symbol(self.symbol, self.address)

    @property
    def address(self) -> int:
        return self.words.buffer_info()[0]

    def supply(self, at: int) -> int:
        """Compile or load the routine at this place, if it is not there: its address."""
        self.words[at] = self.words[at] or routine(*self._of(at))
        return self.words[at]


def known_table(context, builder, tables, key):
    """The first word of the table `tables(key)`, a function that makes one once, from code that is being emitted."""
    table = tables(key)
    context.active_code_library._reload_init.add(_again(tables, key))
    return builder.bitcast(outside(builder, table.symbol, ir.ArrayType(I64, len(table.words))), I64.as_pointer())


def words_of(tables):
    """An intrinsic: the words of a tile's table."""

    @intrinsic
    def known(typing, tile):
        def emit(context, builder, signature, args):
            return known_table(context, builder, tables, signature.args[0].tile)

        return types.CPointer(types.int64)(tile), emit

    return known


@functools.cache
def _again(tables, key):
    """What is to be done before such code is loaded."""
    return functools.partial(tables, key)


def call_routine(builder, table, at, values) -> None:
    """Call the routine at a place with these values."""
    kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
    builder.call(builder.inttoptr(builder.load(builder.gep(table, [at])), kind.as_pointer()), values)
