"""The two inner loops of an element-wise operation, emitted as LLVM IR around a plain scalar function.

    for j in range(rows): for i in range(columns): out[j, i] = fn(*(compute(x[j, i]) for x in inputs), *scalars)

Emitted, because the same loops written in jitted Python take 0.42 s to compile per operation and dtype; these take
0.07 s and run as fast. Loads and stores carry no alignment, so any address is right. Every load of an element precedes
its store, and a caller has removed every other overlap, which is what the alias scope tells LLVM: in-place loops are
vectorised too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir
from numba import types
from numba.core import compiler
from numba.extending import intrinsic

from .cache import compiled
from .vector import I64, VOID, loop

SIGNATURE = "void(int64, int64, int64, int64, int64, int64)"


@dataclass(frozen=True)
class Loop:
    """A scalar function over `inputs`, computed in `compute`, stored as `output`; dtypes by NumPy's names.

    `scalars` further arguments, of the computing dtype, are the same for every element.
    """

    function: Callable
    inputs: tuple[str, ...]
    compute: str
    output: str
    scalars: int = 0

    def __str__(self) -> str:
        return "_".join((self.function.__name__, *self.inputs, "in", self.compute, "to", self.output))


def address(spec: Loop) -> int:
    """Compile the loops; address of void(pointers, rows, columns, row_strides, column_strides, scalars).

    The pointers and both strides (bytes) are arrays of one int64 per operand, the output first.
    """

    @intrinsic
    def loops(typing, pointers, rows, columns, row_strides, column_strides, scalars):
        return types.void(*[types.int64] * 6), _emitter(spec)

    def run(pointers, rows, columns, row_strides, column_strides, scalars):
        loops(pointers, rows, columns, row_strides, column_strides, scalars)

    return compiled(run, SIGNATURE, f"loop_{spec}")


def _type(dtype: str) -> types.Type:
    return types.boolean if dtype == "bool" else getattr(types, dtype)


def _width(dtype: str) -> int:
    return 1 if dtype == "bool" else _type(dtype).bitwidth // 8


def _emitter(spec: Loop):
    dtypes = (spec.output, *spec.inputs)
    kinds, widths, compute = [_type(d) for d in dtypes], [_width(d) for d in dtypes], _type(spec.compute)

    def emit(context, builder, signature, args):
        pointers, rows, columns, row_strides, column_strides, scalars = args
        element = [context.get_data_type(kind).as_pointer() for kind in kinds]
        domain = builder.module.add_metadata(["nbkernels"])
        scope = builder.module.add_metadata([builder.module.add_metadata(["out", domain])])
        flags = compiler.Flags()
        flags.error_model = "numpy"
        call = compute(*[compute] * (len(spec.inputs) + spec.scalars))
        function = context.compile_subroutine(builder, spec.function, call, flags=flags).fndesc

        def word(array, i):
            return builder.load(builder.gep(builder.inttoptr(array, I64.as_pointer()), [I64(i)]))

        def value(pointer, kind):
            """The element at `pointer` in the computing dtype; a bool is whatever is not zero."""
            loaded = builder.load(pointer)
            loaded.align = 1
            loaded.set_metadata("noalias", scope)
            if kind == types.boolean:
                loaded = builder.icmp_unsigned("!=", loaded, loaded.type(0))
            return context.cast(builder, loaded, kind, compute)

        def span(base, steps):
            """One row; a step is a constant, 0 or the operand's width, where it is known, else its bytes."""

            def at(p, i):
                if steps[p] is None:
                    raw = builder.bitcast(base[p], ir.IntType(8).as_pointer())
                    return builder.bitcast(builder.gep(raw, [builder.mul(i, inner[p])]), element[p])
                return builder.gep(base[p], [i]) if steps[p] else base[p]

            def body(i, _):
                operands = [value(at(p, i), kinds[p]) for p in range(1, len(kinds))]
                result = context.call_internal(builder, function, call, operands + constants)
                stored = context.get_value_as_data(builder, kinds[0], context.cast(builder, result, compute, kinds[0]))
                store = builder.store(stored, at(0, i))
                store.align = 1
                store.set_metadata("alias.scope", scope)
                return []

            loop(builder, columns, [], body)

        def choose(base, cases):
            """Run the first case whose steps are the row's own, else the general loop."""
            if not cases:
                span(base, [None] * len(kinds))
                return
            holds = ir.IntType(1)(1)
            for stride, step in zip(inner, cases[0]):
                holds = builder.and_(holds, builder.icmp_signed("==", stride, I64(step)))
            with builder.if_else(holds) as (then, otherwise):
                with then:
                    span(base, cases[0])
                with otherwise:
                    choose(base, cases[1:])

        def row(j, _):
            choose(
                [builder.inttoptr(builder.add(b, builder.mul(j, s)), e) for b, s, e in zip(bases, outer, element)],
                cases,
            )
            return []

        bases, outer, inner = ([word(a, p) for p in range(len(kinds))] for a in (pointers, row_strides, column_strides))
        room = builder.inttoptr(scalars, context.get_data_type(compute).as_pointer())
        constants = [context.unpack_value(builder, compute, builder.gep(room, [I64(i)])) for i in range(spec.scalars)]
        alone = [[w if p in (0, q) else 0 for p, w in enumerate(widths)] for q in range(1, len(widths))]
        cases = [widths] + (alone if len(spec.inputs) > 1 else [])
        loop(builder, rows, [], row)
        return context.get_dummy_value()

    return emit


@intrinsic
def call_loop(typing, function, pointers, rows, columns, row_strides, column_strides, scalars):
    """Call loops compiled by `address`."""

    def emit(context, builder, signature, args):
        kind = ir.FunctionType(VOID, [I64] * 6)
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 7), emit


@intrinsic
def word(typing, address):
    """The int64 at `address`."""

    def emit(context, builder, signature, args):
        return builder.load(builder.inttoptr(args[0], I64.as_pointer()))

    return types.int64(types.int64), emit


@intrinsic
def set_word(typing, address, value):
    """Store an int64 at `address`."""

    def emit(context, builder, signature, args):
        builder.store(args[1], builder.inttoptr(args[0], I64.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), emit


@intrinsic
def stream(typing, destination, source, size):
    """Copy `size` bytes past the caches: whole lines by non-temporal stores, the ragged ends by ordinary ones."""

    def emit(context, builder, signature, args):
        destination, source, size = args
        byte, line = ir.IntType(8), ir.VectorType(ir.IntType(32), 16)
        once = builder.module.add_metadata([ir.IntType(32)(1)])

        def pointer(base, offset, kind):
            return builder.inttoptr(builder.add(base, offset), kind.as_pointer())

        def copy(kind, offset, hint):
            value = builder.load(pointer(source, offset, kind))
            value.align = 1
            store = builder.store(value, pointer(destination, offset, kind))
            store.align = 64 if hint else 1
            if hint:
                store.set_metadata("nontemporal", once)

        def some(kind, start, count, step, hint=False):
            def body(i, _):
                copy(kind, builder.add(start, builder.mul(i, I64(step))), hint)
                return []

            loop(builder, count, [], body)

        head = builder.and_(builder.neg(destination), I64(63))
        head = builder.select(builder.icmp_signed("<", head, size), head, size)
        lines = builder.lshr(builder.sub(size, head), I64(6))
        done = builder.add(head, builder.shl(lines, I64(6)))
        some(byte, I64(0), head, 1)
        some(line, head, lines, 64, hint=True)
        some(byte, done, builder.sub(size, done), 1)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 3), emit


@intrinsic
def drain(typing):
    """Make every non-temporal store of this thread visible before what it stores next."""

    def emit(context, builder, signature, args):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), emit
