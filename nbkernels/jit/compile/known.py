"""Registration with Numba of this library's types, and of the functions that lazy.py declares.

Imported when something is compiled, after Numba; `enter` comes before each compilation.
"""

from __future__ import annotations

import functools

from numba import extending, njit, types
from numba.extending import (
    NativeValue,
    box,
    lower_cast,
    lower_setattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from ...shield import whole
from ..abi.new_arrays import boxed
from ..abi.record import Record
from ..ir.tile import Tile
from ..ir.vector import I64
from ..user import dual  # noqa: F401, it declares rules of derivatives as it is imported
from . import compiler, lazy, overloads  # noqa: F401, overloads declares what scalar functions call
from .numba_internals import (
    AttributeTemplate,
    global_compiler_lock,
    infer_getattr,
    lower_constant,
    lower_getattr_generic,
    make_intrinsic_template,
)

# -- declared functions ------------------------------------------------------------------------------------------------


@global_compiler_lock  # so that whoever compiles next finds all of it
def enter() -> None:
    with whole():  # a signal in between would lose some
        lazy.enter(_declare)


def _declare(way, function, choose, options) -> None:
    if way == "overload":
        options = dict(options, pipeline_class=compiler.Implementation) if options else options
        extending.overload(function, jit_options=options)(choose)
    else:
        extending.register_jitable(**options, pipeline_class=compiler.Implementation)(function)


@typeof_impl.register(lazy.Helper)
@typeof_impl.register(lazy.Jitted)
def _typeof_function(function, context):
    return types.Dispatcher(dispatcher(function))


@functools.singledispatch
def dispatcher(function):
    """Numba's own object for a function that is declared; others' as it is."""
    return function


@dispatcher.register
@functools.cache
def _helper(function: lazy.Helper):
    return compiler.Helper(function.py_func, targetoptions=function.options)


@dispatcher.register
@functools.cache
def _jitted(function: lazy.Jitted):
    return njit(function.py_func, **function.options)


@typeof_impl.register(lazy.Intrinsic)
def _typeof_intrinsic(intrinsic, context):
    return _function(intrinsic)


@functools.cache
def _function(intrinsic):
    template = make_intrinsic_template(
        intrinsic, intrinsic.py_func, intrinsic.__name__, prefer_literal=False, kwargs={}
    )
    return types.Function(template)


# -- signatures --------------------------------------------------------------------------------------------------------


def signature(text: str):
    """Numba's signature, as "int64(int64, object)": by the names of its types, of records, and these three of ours."""
    return eval(text, _Types())


class _Types(dict):
    def __missing__(self, name):
        if name in Record.known:
            kind, *others = {record_type(record) for record in Record.known[name]}
            if others:
                raise TypeError(f"{len(others) + 1} records are called {name}: a signature can name none of them")
            return kind
        own = {"answer": ANSWER, "object": OBJECT, "words": types.CPointer(types.int64)}
        own |= {each.name: each for each in CALL}
        return own.get(name) or getattr(types, name)


class Object(types.Type):
    """Any Python object as an argument of an entry: 40 ns sooner there than its `id`, which is made and read again."""


OBJECT = Object("object")
# The arguments of an entry that is told of a call as it comes: an object that it is bound to (load.Code.entry), the
# address of the arguments' addresses, how many they are.
CALL = tuple(map(Object, ("owner", "arguments", "count")))


@register_model(Object)
class _Object(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, I64)


@unbox(Object)
def _unbox(kind, value, context):
    return NativeValue(context.builder.ptrtoint(value, I64))


class Answer(types.Type):
    """What an entry returns that makes an array or is given one: that array, an array and a number, or a number."""


ANSWER = Answer("answer")


@register_model(Answer)
class _Answer(models.StructModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, [(name, types.int64) for name in ("status", "given", "made")])


box(Answer)(boxed)


# -- records: a pointer to words that have names -----------------------------------------------------------------------


class RecordType(types.CPointer):
    """The Numba type of a pointer to such words; by a number they are reached as those of any other pointer."""

    def __init__(self, record: Record):
        super().__init__(types.int64)
        self.record, self.name = record, f"Record({record.name})"

    @property
    def key(self):
        return self.name, *self.record.places.items(), *self.record.counts.values()


@functools.cache
def record_type(record: Record) -> RecordType:
    return RecordType(record)


register_model(RecordType)(models.PointerModel)


@infer_getattr
class _Words(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, kind, name):
        count = kind.record.counts.get(name)
        return None if count is None else types.CPointer(types.int64) if count else types.int64


def _place(builder, kind, value, name):
    return builder.gep(value, [I64(kind.record[name])])


@lower_getattr_generic(RecordType)
def _read(context, builder, kind, value, name):
    place = _place(builder, kind, value, name)
    return place if kind.record.counts[name] else builder.load(place)


@lower_setattr_generic(RecordType)
def _write(context, builder, signature, args, name):
    builder.store(args[1], _place(builder, signature.args[0], args[0], name))


@lower_cast(RecordType, types.CPointer)
def _pointer(context, builder, kind, to, value):
    return value


# -- tiles: records that are compile-time constants --------------------------------------------------------------------


class TileType(types.Opaque):
    """The Numba type whose only value is `tile`."""

    def __init__(self, tile: Tile):
        self.tile = tile
        super().__init__(f"Tile({tile})")


register_model(TileType)(models.OpaqueModel)


@typeof_impl.register(Tile)
def _typeof_tile(tile, context):
    return TileType(tile)


@lower_constant(TileType)
def _constant(context, builder, kind, value):
    return context.get_dummy_value()


@infer_getattr
class _Attributes(AttributeTemplate):
    """`tile.mr` and the others: int64 constants. (An overload would compile a function for each, 25 ms.)"""

    key = TileType

    def generic_resolve(self, kind, name):
        return types.int64 if isinstance(getattr(kind.tile, name, None), int) else None


@lower_getattr_generic(TileType)
def _number(context, builder, kind, value, name):
    return context.get_constant(types.int64, int(getattr(kind.tile, name)))
