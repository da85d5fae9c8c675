"""Steps in order, emitted as LLVM IR: each needs the one before, so they are scalar, what they carry in a register.

runs     out[r, 0] = x[r, 0], out[r, k] = fn(out[r, k - 1], x[r, k])
visits   out[indices[i]] = fn(out[indices[i]], x[i]), one i after the other
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from ...jit.compile.lazy import subroutine
from ...jit.compile.routine import ir_function
from ...jit.ir.elements import HALVES, cast, from_memory, memory, number, to_memory, width
from ...jit.ir.vector import I64, loop

# Rows of neighbours whose steps go together, of floats: of 1000x1000 float32 980 us, so 430; by twice as many, or four
# steps of each row at a time, as long. Of whole numbers, which take a cycle, more stores at once take longer.
ABREAST = 4


@dataclass(frozen=True)
class Step:
    """function(an element of out, one of x), converted to the dtypes `compute`, whose last is the result's."""

    function: Callable
    out: str
    item: str
    compute: tuple[str, str, str]

    def __str__(self) -> str:
        return "_".join((self.function.__name__, self.out, self.item, "by", *self.compute))


def runs(spec: Step) -> int:
    """Address of void(out, out_apart, out_step, x, x_apart, x_step, rows, count); steps in bytes, count not 0."""

    def emit(context, builder, *args):
        _Emitter(spec, context, builder).runs(*args)

    return ir_function(emit, "out out_apart out_step x x_apart x_step rows count", f"runs_{spec}").address


def visits(spec: Step) -> int:
    """Address of void(out, size, step, indices, x, x_step, count): indices are int64, those below 0 count from size."""

    def emit(context, builder, *args):
        _Emitter(spec, context, builder).visits(*args)

    return ir_function(emit, "out size step indices x x_step count", f"visits_{spec}").address


class _Emitter:
    def __init__(self, spec: Step, context, builder):
        self.spec, self.context, self.builder = spec, context, builder
        *inputs, result = map(number, spec.compute)
        self.call = result(*inputs)
        self.function = subroutine(context, spec.function, self.call)

    def runs(self, out, out_apart, out_step, x, x_apart, x_step, rows, count):
        builder, item = self.builder, self.spec.item

        def several(first, many, out_step, x_step):
            """Rows from the first on, a step of each at a time, for a step waits for the one before in its row."""
            places = [builder.add(first, I64(i)) for i in range(many)]
            to = [builder.add(out, builder.mul(r, out_apart)) for r in places]
            source = [builder.add(x, builder.mul(r, x_apart)) for r in places]
            begun = [cast(self.context, builder, self.load(item, start), item, self.spec.out) for start in source]
            for value, at in zip(begun, to):
                self.store(value, at)
            ways = [self.extreme(value) or (value, lambda value: value, self.step) for value in begun]

            def step(k, carried):
                k = builder.add(k, I64(1))
                terms = [self.load(item, builder.add(start, builder.mul(k, x_step))) for start in source]
                following = [apply(before, term) for (_, _, apply), before, term in zip(ways, carried, terms)]
                for (_, value_of, _), value, at in zip(ways, following, to):
                    self.store(value_of(value), builder.add(at, builder.mul(k, out_step)))
                return following

            loop(builder, builder.sub(count, I64(1)), [carry for carry, _, _ in ways], step)
            return []

        done = I64(0)
        if "float" in self.spec.out:
            steps = I64(width(self.spec.out)), I64(width(item))
            touch = [builder.icmp_signed("==", *pair) for pair in zip(steps, (out_step, x_step))]
            groups = builder.select(builder.and_(*touch), builder.udiv(rows, I64(ABREAST)), I64(0))
            loop(builder, groups, [], lambda q, _: several(builder.mul(q, I64(ABREAST)), ABREAST, *steps))
            done = builder.mul(groups, I64(ABREAST))
        loop(builder, builder.sub(rows, done), [], lambda r, _: several(builder.add(done, r), 1, out_step, x_step))

    def extreme(self, first):
        """Of the larger or the smaller of two integers: what is carried, its value, and how it takes a step; None of
        others. They are compared as vectors, for LLVM would branch: of 1,000,000 small int64 along rows, 3.2 ms, so 1.4
        (Zen 3, 2026-11)."""
        builder, dtype = self.builder, self.spec.out
        sense = {"maximum": ">", "minimum": "<"}.get(self.spec.function.__name__)
        if sense is None or "int" not in dtype or {self.spec.item, *self.spec.compute} != {dtype}:
            return None
        vector = ir.VectorType(first.type, 128 // first.type.width)
        compare = builder.icmp_unsigned if dtype.startswith("u") else builder.icmp_signed

        def put(value):
            return builder.insert_element(vector(ir.Undefined), value, I64(0))

        def apply(carried, term):
            term = put(term)
            return builder.select(compare(sense, carried, term), carried, term)

        return put(first), lambda value: builder.extract_element(value, I64(0)), apply

    def visits(self, out, size, step, indices, x, x_step, count):
        builder = self.builder
        indices = builder.inttoptr(indices, I64.as_pointer())

        def visit(i, _):
            index = builder.load(builder.gep(indices, [i]))
            before = builder.icmp_signed("<", index, I64(0))
            index = builder.select(before, builder.add(index, size), index)
            place = builder.add(out, builder.mul(index, step))
            term = self.load(self.spec.item, builder.add(x, builder.mul(i, x_step)))
            self.store(self.step(self.load(self.spec.out, place), term), place)
            return []

        loop(builder, count, [], visit)

    def step(self, value, term):
        """The function's result as an element of out, given one and an element of x."""
        spec = self.spec
        given = ((value, spec.out, spec.compute[0]), (term, spec.item, spec.compute[1]))
        operands = [cast(self.context, self.builder, *operand) for operand in given]
        result = self.context.call_internal(self.builder, self.function, self.call, operands)
        if spec.compute[2] in HALVES:  # the function gave a float32
            result = cast(self.context, self.builder, result, "float32", spec.compute[2])
        return cast(self.context, self.builder, result, spec.compute[2], spec.out)

    def load(self, dtype, address):
        bits = self.builder.load(self.builder.inttoptr(address, memory(self.context, dtype).as_pointer()))
        bits.align = 1
        return from_memory(self.context, self.builder, dtype, bits)

    def store(self, value, address):
        bits = to_memory(self.context, self.builder, self.spec.out, value)
        self.builder.store(bits, self.builder.inttoptr(address, bits.type.as_pointer())).align = 1
