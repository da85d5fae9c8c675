"""The two inner loops of an element-wise operation, emitted as LLVM IR around a plain scalar function.

    for j in range(rows): for i in range(columns): out[j, i] = fn(*(compute(x[j, i]) for x in inputs), *scalars)

A masked loop has one more input, and stores only where that is true. A checked one gathers what its `faults` function
says of (inputs, result) and sets word k - 1 of the scalars to 1 where k was ever said.

Emitted, because the same loops written in jitted Python take 0.42 s to compile per operation and dtype; these take
0.055 s and run as fast. Loads and stores carry no alignment, so any address is right. Every load of an element precedes
its store, and a caller has removed every other overlap, as the alias scope tells LLVM: in-place loops are vectors too.
"""

from __future__ import annotations

import functools
import operator
from contextlib import nullcontext

from llvmlite import ir

from ...jit.compile.lazy import cgutils, subroutine, types
from ...jit.compile.routine import ir_function
from ...jit.ir.elements import HALVES, cast, from_memory, memory, number, to_memory, width
from ...jit.ir.emit import outlined
from ...jit.ir.loop_metadata import FOURS, MASKED, WHOLE, at_a_time, node
from ...jit.ir.vector import I64, LINE, Lanes, loop, masked, width_bits
from . import products
from .lines import LIGHT, asked, before, lines, shifted
from .loop import Loop
from .strided_loads import SHORT, Near
from .transposed_loads import Across

SIGNATURE = "void(int64, int64, int64, int64, int64, int64)"


def address(spec: Loop) -> int:
    """Address of the compiled loops."""
    return loops(spec).address


def loops(spec: Loop):
    """Compile the loops: the C function void(pointers, rows, columns, row_strides, column_strides, scalars).

    The pointers and both strides (bytes) are arrays of one int64 per operand, the outputs first.
    """

    def emit(context, builder, *args):
        _Emitter(spec, context, builder).loops(*args)

    return ir_function(emit, "pointers rows columns row_strides column_strides scalars", f"loop_{spec}", linkable=True)


class _Emitter:
    """Emits one Loop. An operand's step is its distance from column to column: its width, 0, or None where unknown."""

    def __init__(self, spec: Loop, context, builder):
        self.spec, self.context, self.builder = spec, context, builder
        self.dtypes = (*spec.outputs, *spec.inputs) + ("bool",) * spec.masked
        self.count = len(spec.outputs)
        self.operands = range(len(self.dtypes))
        self.widths = [width(d) for d in self.dtypes]
        self.element = [memory(context, d).as_pointer() for d in self.dtypes]
        self.computed = spec.compute[-self.count :]  # in what results are
        inputs, results = [list(map(number, part)) for part in (spec.compute[: -self.count], self.computed)]
        self.result = results[0] if self.count == 1 else types.Tuple(results)
        self.call = self.result(*inputs[: 2 if spec.chained else None], *[self.result] * spec.scalars)
        self.function = subroutine(context, spec.function, self.call)
        if spec.plain:
            self.plain_call = types.Tuple((self.result, types.boolean))(*inputs)
            self.plain = subroutine(context, spec.plain, self.plain_call)
        if spec.faults:
            self.fault_call = types.uint8(*inputs, self.result)
            self.fault = subroutine(context, spec.faults, self.fault_call)
        domain = builder.module.add_metadata(["nbkernels"])
        self.scope = builder.module.add_metadata([builder.module.add_metadata(["out", domain])])

    @property
    def masks(self):
        """Whether what is left of a row is done by masked vectors: only of operations that no element harms, and not
        into complex numbers, whose two stores LLVM does not mask."""
        total = self.vectorised and not (self.spec.masked or self.spec.faults)
        return total and all(map(masked, self.widths)) and not any("complex" in d for d in self.spec.outputs)

    @property
    def vectorised(self):
        """Whether LLVM vectorises the function."""
        return self.spec.light or self.spec.paired

    @property
    def apart(self):
        """Whether neighbours of an input lie a few elements apart."""
        return not self.turned and any(n not in (-1, 0, 1) for n in self.spec.steps)

    @property
    def turned(self):
        """Whether columns of an input touch."""
        return None in self.spec.steps

    def loops(self, pointers, rows, columns, row_strides, column_strides, scalars):
        builder = self.builder
        bases, self.outer, self.inner = (
            [builder.load(self.item(array, I64, p)) for p in self.operands]
            for array in (pointers, row_strides, column_strides)
        )
        kind = self.context.get_data_type(self.result)
        places = [self.item(scalars, kind, i) for i in range(self.spec.scalars)]
        self.constants = [self.context.unpack_value(builder, self.result, place) for place in places]
        self.faulty = [self.item(scalars, I64, k) for k in range(2)] if self.spec.faults else []
        self.columns = columns
        self.asked = asked(self) if self.spec.streamed else []
        cases = [] if self.turned else self.spec.cases(self.widths)
        case = I64(len(cases))  # the first whose steps these are, else none
        for k in reversed(range(len(cases))):
            same = [builder.icmp_signed("==", a, I64(b)) for a, b in zip(self.inner, cases[k]) if b is not None]
            case = builder.select(functools.reduce(builder.and_, same), I64(k), case)
        known = builder.icmp_signed("<", case, I64(len(cases)))
        ends = [builder.load(self.item(pointers, I64, len(bases) + k)) for k in range(2 * self.spec.misaligned)]

        def start(j):
            starts = [builder.add(b, builder.mul(j, s)) for b, s in zip(bases, self.outer)]
            return [builder.inttoptr(s, e) for s, e in zip(starts, self.element)]

        def row(j, _):
            base = start(j)
            head = builder.select(known, before(self, base) if self.spec.streamed else I64(0), columns)
            first = shifted(self, head, columns, ends) if self.spec.misaligned else I64(0)
            self.span(base, [None] * len(base), first, builder.sub(head, first), hints=FOURS * self.spec.light)
            end = builder.append_basic_block("end")
            switch = builder.switch(case, end)
            for k, steps in enumerate(cases):
                block = builder.append_basic_block("case")
                switch.add_case(I64(k), block)
                builder.position_at_end(block)
                self.rest(base, steps, head)
                builder.branch(end)
            builder.position_at_end(end)
            return []

        def short(j, _):
            Near(self, start(j), cases[0]).short()
            return []

        if self.spec.light and self.masks and self.apart:
            few = builder.and_(known, builder.icmp_signed("<", columns, I64(SHORT)))
            loop(builder, builder.select(few, rows, I64(0)), [], short)
            rows = builder.select(few, I64(0), rows)
        done = Across(self, LIGHT // max(self.widths), start).rows(rows) if self.turned else I64(0)
        loop(builder, builder.sub(rows, done), [], lambda j, _: row(builder.add(j, done), _))
        if self.spec.streamed:
            builder.fence("seq_cst")

    def item(self, array, kind, i):
        """Address of element i of the array at an integer address."""
        return self.builder.gep(self.builder.inttoptr(array, kind.as_pointer()), [I64(i)])

    def rest(self, base, steps, head):
        """A row whose steps are known, from its first whole line on."""
        if self.spec.numbers and steps[self.count + 1] == 0:
            head = self.known(base, steps, head)
        if self.apart:
            Near(self, base, steps).long(head)
        elif self.spec.streamed:
            lines(self, base, steps, head)
        else:
            self.dense(base, steps, head)

    def dense(self, base, steps, head):
        """A row by whichever vectors LLVM takes; of a light operation by four at once, of a paired one by two, what is
        left by masked ones.

        LLVM would do up to 31 elements singly: maximum of 316 x 316 float32 and a row takes 14.9 us, 25.8 so. Masked
        vectors as wide as the others: a division of 64 bytes after those of 32 waits 30 ns (Zen 4, 2026-11).
        """
        lanes, at_once = (LIGHT, 4) if self.spec.light else (LINE, 2)
        if products.known(self.spec, steps, self.widths):
            head = products.products(self, base, steps, head)
        lanes, hints = lanes // max(self.widths), ()
        if (self.vectorised or self.spec.plain) and lanes > 1:
            if self.spec.output == "bool" and lanes < LIGHT and width_bits() == 256:
                # Masks are as wide as what is compared, and narrowed together: less of 10,000 float64 and a number
                # 2.8 us, so 2.4, of float32 2.7, 2.4 (AVX2, 2026-11).
                head, at_once = self.runs(base, steps, head, LIGHT, at_a_time(LIGHT)), 1
            hints = at_a_time(lanes, at_once)
            if self.masks or self.spec.plain:
                head = self.runs(base, steps, head, at_once * lanes, hints, self.spec.plain is not None)
                hints = at_a_time(lanes)
                if self.masks and width_bits() < 512:  # stores of masked vectors are microcode: a row has but one
                    head = self.runs(base, steps, head, lanes, hints)
                hints = (*hints, MASKED) if self.masks else ()
            elif self.spec.light and not self.spec.masked and any(d in HALVES for d in self.dtypes):
                # Each scalar conversion waits for the one before, and for whatever else is in its register: maximum of
                # 100 x 100 float16 and a row took 80 us, so 6; of 100 x 63 87, so 4 (AVX2, one thread, 2026-11).
                for size, several in ((lanes, at_once), (lanes, 1), (4, 1)):
                    whole = (*at_a_time(size, several), *[WHOLE] * (several == 1))
                    head = self.runs(base, steps, head, several * size, whole)
                hints = ()
        self.part(base, steps, head, self.builder.sub(self.columns, head), hints)

    def known(self, base, steps, head):
        """All columns from `head` on where the second operand is one of `numbers`, else none; the column after them."""
        builder, dtype, p = self.builder, self.spec.compute[1], self.count + 1
        equal = self.context.get_function(operator.eq, types.boolean(number(dtype), number(dtype)))
        for each in self.spec.numbers:
            second = cast(self.context, builder, ir.DoubleType()(each), "float64", dtype)
            same = equal(builder, (self.load(p, base[p]), second))
            count = builder.select(same, builder.sub(self.columns, head), I64(0))
            self.span(base, steps, head, count, hints=at_a_time(LIGHT // max(self.widths), 4), second=second)
            head = builder.add(head, count)
        return head

    def runs(self, base, steps, head, size, hints, plainly=False):
        """Whole runs of `size` elements, a power of two, from column `head` on, or `plainly`; the column after them."""
        count = self.builder.and_(self.builder.sub(self.columns, head), I64(-size))
        if plainly:
            outlined(self, _Emitter.plainly, base, steps, head, count, size, (*hints, WHOLE))
        else:
            self.part(base, steps, head, count, hints)
        return self.builder.add(head, count)

    def part(self, base, steps, head, count, hints, apart=False):
        """Elements from column `head` on; of an operation of many constants by a function of their own, or `apart`."""
        span = functools.partial(outlined, self, _Emitter.span) if apart or self.spec.paired else self.span
        span(base, steps, head, count, hints=hints)

    def plainly(self, base, steps, head, count, size, hints):
        """`count` elements in runs: by the plain function, again by the other where that was not all, singly unless it
        is vectorised. pow of 10,000 float32 takes 7.0 us, 12.8 without, and 10.7 where each run is done again."""
        builder, width = self.builder, min(self.widths[0], 8)  # of 16 bytes there are two words an element
        words = size * self.widths[0] // width
        vectors = Lanes(builder, f"int{8 * width}", min(LINE // width, words))
        room = cgutils.alloca_once(builder, ir.ArrayType(vectors.element, words))
        room.align = LINE
        target, place = (builder.bitcast(room, kind) for kind in (self.element[0], vectors.element.as_pointer()))

        def run(q, _):
            column = builder.add(head, builder.mul(q, I64(size)))
            (plain,) = self.span(base, steps, column, I64(size), target, hints, plain=True)
            with builder.if_else(plain, likely=True) as (done, again):
                with done:
                    out = builder.bitcast(self.at(base, steps, 0, column), place.type)
                    for first in range(0, words, vectors.count):
                        vectors.store(vectors.load(vectors.at(place, first)), vectors.at(out, first))
                with again:
                    self.part(base, steps, column, I64(size), hints if self.vectorised else (), apart=True)
            return []

        loop(builder, builder.udiv(count, I64(size)), [], run)

    def span(self, base, steps, start, count, target=None, hints=(), plain=False, second=None):
        """out[start:start+count], stored from `target` on, where one is given; what is found: faults, whether all is
        `plain`. `second` takes the place of the second operand."""
        builder, latch, faults = self.builder, None, self.spec.faults and not plain
        inputs = self.operands[self.count :]
        numbers = {p: self.load(p, base[p]) for p in inputs if steps[p] == 0}  # under a mask LLVM loads singly

        def body(i, said):
            nonlocal latch
            column = builder.add(start, i)
            operands = [numbers[p] if p in numbers else self.load(p, self.at(base, steps, p, column)) for p in inputs]
            chosen = operands.pop() if self.spec.masked else None
            operands[1:2] = operands[1:2] if second is None else [second]
            if plain:
                pair = self.context.call_internal(builder, self.plain, self.plain_call, operands)
                result, ordinary = cgutils.unpack_tuple(builder, pair, 2)
                said = [builder.and_(said[0], ordinary)]
            else:
                result = self.applied(operands)
            if faults:
                said = [builder.or_(a, b) for a, b in zip(said, self.found(operands, result, chosen))]
            stored = self.stored(result)
            if target:
                self.store(stored[0], builder.gep(target, [i]))
            else:
                with builder.if_then(chosen) if chosen is not None else nullcontext():
                    for p, value in enumerate(stored):
                        self.store(value, self.at(base, steps, p, column))
            latch = builder.block
            return said

        said = loop(builder, count, [ir.IntType(8)(0)] * (2 * bool(faults)) + [ir.IntType(1)(1)] * plain, body)
        if hints:
            latch.terminator.set_metadata("llvm.loop", node(builder.module, *hints))
        for k, word in enumerate(self.faulty if faults else ()):
            with builder.if_then(builder.trunc(said[k], ir.IntType(1))):
                builder.store(I64(1), word)
        return said

    def applied(self, operands):
        """The function's result."""
        if not self.spec.chained:
            return self.context.call_internal(self.builder, self.function, self.call, operands + self.constants)
        result = operands[0]
        for operand in operands[1:]:
            result = self.context.call_internal(self.builder, self.function, self.call, [result, operand])
        return result

    def found(self, operands, result, chosen):
        """The faults of an element, each a word of 0 or 1, none where it is masked off. A word with a bit for each
        keeps LLVM from vectors (floor_divide of 20,000 int8 8.6 us, so 119)."""
        builder = self.builder
        fault = self.context.call_internal(builder, self.fault, self.fault_call, [*operands, result])
        fault = fault if chosen is None else builder.select(chosen, fault, fault.type(0))
        return [builder.and_(builder.lshr(fault, fault.type(k)), fault.type(1)) for k in range(2)]

    def stored(self, result):
        """The bits of each output."""
        context, builder = self.context, self.builder
        results = [result] if self.count == 1 else cgutils.unpack_tuple(builder, result, self.count)
        for i, (computed, output) in enumerate(zip(self.computed, self.spec.outputs)):
            if computed in HALVES:  # the function gave a float32
                results[i] = cast(context, builder, results[i], "float32", computed)
            results[i] = to_memory(context, builder, output, cast(context, builder, results[i], computed, output))
        return results

    def store(self, bits, address):
        store = self.builder.store(bits, address)
        store.align = 1
        store.set_metadata("alias.scope", self.scope)

    def vectors(self, p, lanes):
        """Vectors of the bits of an operand's elements."""
        return Lanes(self.builder, f"int{8 * self.widths[p]}", lanes)

    def bits(self, p, pointer):
        """A pointer to an operand's elements as one to their bits."""
        return self.builder.bitcast(pointer, ir.IntType(8 * self.widths[p]).as_pointer())

    def room(self, p, lanes):
        """Address of an operand's elements in a room for a vector, which LLVM turns into a register."""
        return self.builder.bitcast(cgutils.alloca_once(self.builder, self.vectors(p, lanes).type), self.element[p])

    def at(self, base, steps, p, column):
        """Address of an operand's element in a column."""
        builder = self.builder
        if steps[p] is None:
            raw = builder.bitcast(base[p], ir.IntType(8).as_pointer())
            return builder.bitcast(builder.gep(raw, [builder.mul(column, self.inner[p])]), self.element[p])
        ahead = steps[p] // self.widths[p]
        return builder.gep(base[p], [builder.mul(column, I64(ahead)) if ahead != 1 else column]) if ahead else base[p]

    def load(self, p, address):
        """The element in its computing dtype."""
        bits = self.builder.load(address)
        bits.align = 1
        bits.set_metadata("noalias", self.scope)
        value = from_memory(self.context, self.builder, self.dtypes[p], bits)
        if p == self.count + len(self.spec.inputs):  # the mask
            return value
        return cast(self.context, self.builder, value, self.dtypes[p], self.spec.compute[p - self.count])
