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
from numba.core import cgutils, compiler
from numba.extending import intrinsic

from . import overloads  # noqa: F401, functions over nbkernels.real compile by it
from .cache import compiled
from .vector import I64, VOID, loop

SIGNATURE = "void(int64, int64, int64, int64, int64, int64)"


# Bytes of a streaming store: one line, so that a full one leaves for memory at once.
LINE = 64


@dataclass(frozen=True)
class Loop:
    """A scalar function over `inputs`, computed in `compute`, stored as `output`; dtypes by NumPy's names.

    `scalars` further arguments, of the computing dtype, are the same for every element. `streamed` loops store whole
    lines of contiguous output past the caches (a + b of 16 M f32: 54 GB/s against 34) and drain them before returning.
    """

    function: Callable
    inputs: tuple[str, ...]
    compute: str
    output: str
    scalars: int = 0
    streamed: bool = False

    def __str__(self) -> str:
        parts = (self.function.__name__, *self.inputs, "by", self.compute, "to", self.output)
        return "_".join(parts + ("streamed",) * self.streamed)


def address(spec: Loop) -> int:
    """Compile the loops; address of void(pointers, rows, columns, row_strides, column_strides, scalars).

    The pointers and both strides (bytes) are arrays of one int64 per operand, the output first.
    """

    @intrinsic
    def loops(typing, pointers, rows, columns, row_strides, column_strides, scalars):
        def emit(context, builder, signature, args):
            _Emitter(spec, context, builder).loops(*args)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 6), emit

    def run(pointers, rows, columns, row_strides, column_strides, scalars):
        loops(pointers, rows, columns, row_strides, column_strides, scalars)

    return compiled(run, SIGNATURE, f"loop_{spec}")


def _type(dtype: str) -> types.Type:
    return types.boolean if dtype == "bool" else getattr(types, dtype)


def _width(dtype: str) -> int:
    return 1 if dtype == "bool" else _type(dtype).bitwidth // 8


class _Emitter:
    """Emits one Loop. An operand's step is its distance from column to column: its width, 0, or None where unknown."""

    def __init__(self, spec: Loop, context, builder):
        self.spec, self.context, self.builder = spec, context, builder
        dtypes = (spec.output, *spec.inputs)
        self.operands = range(len(dtypes))
        self.kinds, self.widths = [_type(d) for d in dtypes], [_width(d) for d in dtypes]
        self.element = [context.get_data_type(kind).as_pointer() for kind in self.kinds]
        self.compute = _type(spec.compute)
        self.call = self.compute(*[self.compute] * (len(spec.inputs) + spec.scalars))
        flags = compiler.Flags()
        flags.error_model = "numpy"
        flags.forceinline = True  # a loop with a call in it is not vectorised
        self.function = context.compile_subroutine(builder, spec.function, self.call, flags=flags).fndesc
        domain = builder.module.add_metadata(["nbkernels"])
        self.scope = builder.module.add_metadata([builder.module.add_metadata(["out", domain])])

    def loops(self, pointers, rows, columns, row_strides, column_strides, scalars):
        builder = self.builder
        bases, outer, self.inner = (
            [builder.load(self.item(array, I64, p)) for p in self.operands]
            for array in (pointers, row_strides, column_strides)
        )
        kind = self.context.get_data_type(self.compute)
        self.constants = [
            self.context.unpack_value(builder, self.compute, self.item(scalars, kind, i))
            for i in range(self.spec.scalars)
        ]
        self.columns = columns
        alone = [[w if p in (0, q) else 0 for p, w in enumerate(self.widths)] for q in self.operands if q]
        cases = [self.widths] + (alone if len(alone) > 1 else [])
        if self.spec.streamed:
            cases.append([self.widths[0]] + [None] * len(self.spec.inputs))

        def row(j, _):
            starts = [builder.add(b, builder.mul(j, s)) for b, s in zip(bases, outer)]
            self.choose([builder.inttoptr(s, e) for s, e in zip(starts, self.element)], cases)
            return []

        loop(builder, rows, [], row)
        if self.spec.streamed:
            builder.fence("seq_cst")

    def item(self, array, kind, i):
        """Address of element i of the array at an integer address."""
        return self.builder.gep(self.builder.inttoptr(array, kind.as_pointer()), [I64(i)])

    def choose(self, base, cases):
        """Run the row as the first case whose steps it has, else as the general one."""
        builder = self.builder
        if not cases:
            self.span(base, [None] * len(base), I64(0), self.columns)
            return
        holds = ir.IntType(1)(1)
        for stride, step in zip(self.inner, cases[0]):
            if step is not None:
                holds = builder.and_(holds, builder.icmp_signed("==", stride, I64(step)))
        with builder.if_else(holds) as (then, otherwise):
            with then:
                (self.lines if self.spec.streamed else self.span)(base, cases[0], I64(0), self.columns)
            with otherwise:
                self.choose(base, cases[1:])

    def span(self, base, steps, start, count, target=None, hints=()):
        """out[start:start+count]; stored from `target` on, where one is given."""
        builder, latch = self.builder, None

        def body(i, _):
            nonlocal latch
            column = builder.add(start, i)
            operands = [self.load(p, self.at(base, steps, p, column)) for p in self.operands[1:]]
            result = self.context.call_internal(builder, self.function, self.call, operands + self.constants)
            result = self.context.cast(builder, result, self.compute, self.kinds[0])
            stored = self.context.get_value_as_data(builder, self.kinds[0], result)
            store = builder.store(stored, builder.gep(target, [i]) if target else self.at(base, steps, 0, column))
            store.align = 1
            store.set_metadata("alias.scope", self.scope)
            latch = builder.block
            return []

        loop(builder, count, [], body)
        if hints:
            latch.terminator.set_metadata("llvm.loop", _hints(builder.module, *hints))

    def lines(self, base, steps, start, count):
        """A contiguous row: up to the first whole line, whole lines by streaming stores, the rest.

        A line is computed into a buffer that LLVM turns into a register: the loop over it is one vector long.
        """
        builder, width = self.builder, self.widths[0]
        lanes = LINE // width
        vector = ir.VectorType(self.element[0].pointee, lanes)
        buffer = cgutils.alloca_once(builder, vector)
        buffer.align = LINE
        room = builder.bitcast(buffer, self.element[0])
        hints = (("llvm.loop.unroll.disable",), ("llvm.loop.vectorize.width", ir.IntType(32)(lanes)))

        ahead = builder.and_(builder.neg(builder.ptrtoint(base[0], I64)), I64(LINE - 1))
        odd = builder.icmp_signed("!=", builder.and_(ahead, I64(width - 1)), I64(0))  # never at the start of a line
        ahead = builder.select(odd, count, builder.sdiv(ahead, I64(width)))
        head = builder.select(builder.icmp_signed("<", ahead, count), ahead, count)
        whole = builder.sdiv(builder.sub(count, head), I64(lanes))

        def line(q, _):
            column = builder.add(head, builder.mul(q, I64(lanes)))
            self.span(base, steps, column, I64(lanes), room, hints)
            value = builder.load(buffer)
            value.align = LINE
            pointer = builder.bitcast(self.at(base, steps, 0, column), vector.as_pointer())
            store = builder.store(value, pointer)
            store.align = LINE
            store.set_metadata("nontemporal", builder.module.add_metadata([ir.IntType(32)(1)]))
            return []

        self.span(base, steps, start, head)
        loop(builder, whole, [], line)
        done = builder.add(head, builder.mul(whole, I64(lanes)))
        self.span(base, steps, done, builder.sub(count, done))

    def at(self, base, steps, p, column):
        """Address of an operand's element in a column."""
        builder = self.builder
        if steps[p] is None:
            raw = builder.bitcast(base[p], ir.IntType(8).as_pointer())
            return builder.bitcast(builder.gep(raw, [builder.mul(column, self.inner[p])]), self.element[p])
        return builder.gep(base[p], [column]) if steps[p] else base[p]

    def load(self, p, address):
        """The element in the computing dtype; a bool is whatever is not zero."""
        loaded = self.builder.load(address)
        loaded.align = 1
        loaded.set_metadata("noalias", self.scope)
        if self.kinds[p] == types.boolean:
            loaded = self.builder.icmp_unsigned("!=", loaded, loaded.type(0))
        return self.context.cast(self.builder, loaded, self.kinds[p], self.compute)


def _hints(module: ir.Module, *properties: tuple):
    """Metadata for a loop's branch: a node that names itself first, which llvmlite has no word for."""
    node = module.add_metadata([f"loop {len(module.metadata)}"])
    node.operands = (node, *[module.add_metadata(list(p)) for p in properties])
    return node


@intrinsic
def call_loop(typing, function, pointers, rows, columns, row_strides, column_strides, scalars):
    """Call loops compiled by `address`."""

    def emit(context, builder, signature, args):
        kind = ir.FunctionType(VOID, [I64] * 6)
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 7), emit


@intrinsic
def call_binary(typing, function, out, x, y, rows, columns, ro, rx, ry, co, cx, cy):
    """Call loops of two inputs: addresses, sizes, row steps, column steps. Adjacent rows are passed as one.

    One LLVM function a module, not inlined: a jitted helper with a dozen callers takes 0.7 s longer to compile.
    """

    def define(module):
        kind = ir.FunctionType(VOID, [I64] * 12)
        helper = ir.Function(module, kind, "call_binary")
        helper.linkage = "internal"
        helper.attributes.add("noinline")
        builder = ir.IRBuilder(helper.append_basic_block("entry"))
        function, rows, columns = helper.args[0], helper.args[4], helper.args[5]
        pointers, row_steps, column_steps = helper.args[1:4], helper.args[6:9], helper.args[9:12]
        one = ir.IntType(1)(1)
        for ahead, step in zip(row_steps, column_steps):
            one = builder.and_(one, builder.icmp_signed("==", ahead, builder.mul(columns, step)))
        all_columns = builder.select(one, builder.mul(rows, columns), columns)
        addresses = []
        for values in (pointers, row_steps, column_steps):
            room = builder.alloca(ir.ArrayType(I64, 3))
            for p, value in enumerate(values):
                builder.store(value, builder.gep(room, [I64(0), I64(p)]))
            addresses.append(builder.ptrtoint(room, I64))
        loops = builder.inttoptr(function, ir.FunctionType(VOID, [I64] * 6).as_pointer())
        builder.call(loops, [addresses[0], builder.select(one, I64(1), rows), all_columns, *addresses[1:], I64(0)])
        builder.ret_void()
        return helper

    def emit(context, builder, signature, args):
        helper = builder.module.globals.get("call_binary") or define(builder.module)
        builder.call(helper, args)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 12), emit


@intrinsic
def word(typing, address):
    """The int64 at `address`."""

    def emit(context, builder, signature, args):
        return builder.load(builder.inttoptr(args[0], I64.as_pointer()))

    return types.int64(types.int64), emit


@intrinsic
def set_word(typing, address, value):
    """Store a number at `address`, in its own type."""

    def emit(context, builder, signature, args):
        builder.store(args[1], builder.inttoptr(args[0], args[1].type.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, value), emit
