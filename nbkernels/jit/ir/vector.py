"""Vector IR: what the micro-kernels are written in.

Numba's own arithmetic is scalar and relies on LLVM to vectorise it; a GEMM micro-kernel has to say which register holds
what. `Lanes` emits LLVM IR over `<n x element>` values; the target's width is chosen by `width_bits`.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace

from llvmlite import ir

from ..compile.lazy import cgutils
from ..disk import levels
from .kind import BYTES, SIZE

I1, I32, I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
VOID = ir.VoidType()
I8, I16 = ir.IntType(8), ir.IntType(16)
LINE = 64  # bytes of a cache line
ELEMENT = {
    "float32": ir.FloatType(), "float64": ir.DoubleType(),
    "bool": I8, "int8": I8, "uint8": I8, "int16": I16, "int32": I32, "int64": I64,
    "float16": I16, "bfloat16": I16,  # as bits: LLVM has no masked loads of halves on every target
    "complex64": ir.LiteralStructType([ir.FloatType()] * 2), "complex128": ir.LiteralStructType([ir.DoubleType()] * 2),
}  # fmt: skip


@functools.cache
def width_bits() -> int:
    """Widest vector the compile target multiplies and adds in one instruction."""
    return levels.width(levels.target()[2])


def masked(width: int) -> bool:
    """Whether the target has masked loads and stores of items of `width` bytes; others go lane by lane, each with a
    branch."""
    return width in {512: (1, 2, 4, 8), 256: (4, 8), 128: ()}[width_bits()]


@dataclass(frozen=True)
class Lanes:
    """Operations on vectors of `count` elements of one dtype, emitted through `builder`.

    Addresses are LLVM pointers to the element; nothing is assumed of their alignment beyond `align` bytes.
    """

    builder: ir.IRBuilder
    dtype: str
    count: int
    align: int = 1

    @property
    def element(self) -> ir.Type:
        return ELEMENT[self.dtype]

    @property
    def type(self) -> ir.VectorType:
        return ir.VectorType(self.element, self.count)

    @property
    def zero(self) -> ir.Constant:
        return ir.Constant(self.type, None)

    @property
    def _suffix(self) -> str:
        return f"v{self.count}{'f' if self.dtype in SIZE else 'i'}{BYTES[self.dtype] * 8}"

    def _call(self, name: str, result: ir.Type, *args):
        return library(self.builder, name, result, *args)

    def at(self, address, offset):
        """address + offset elements."""
        return self.builder.gep(address, [offset if isinstance(offset, ir.Value) else I64(offset)])

    def fma(self, a, b, c):
        """a*b + c, rounded once, lane by lane."""
        return self._call(f"llvm.fma.{self._suffix}", self.type, a, b, c)

    def each(self, address, step, count: int) -> list:
        """The addresses of `count` elements, `step` apart."""
        return [self.at(address, self.builder.mul(step, I64(i))) for i in range(count)]

    def broadcast(self, address):
        """The element at an address in every lane."""
        return self.splat(self.builder.load(address, align=1))

    def splat(self, scalar):
        """The scalar in every lane."""
        vector = ir.VectorType(scalar.type, self.count)
        undefined = ir.Constant(vector, ir.Undefined)
        lanes = ir.Constant(ir.VectorType(I32, self.count), [0] * self.count)
        return self.builder.shuffle_vector(self.builder.insert_element(undefined, scalar, I32(0)), undefined, lanes)

    def mask(self, valid):
        """Lanes below `valid`, an i64 that may be negative or beyond the count."""
        below = self.builder.icmp_signed("<", valid, I64(self.count))
        clamped = self.builder.trunc(self.builder.select(below, valid, I64(self.count)), I32)
        iota = ir.Constant(ir.VectorType(I32, self.count), list(range(self.count)))
        return self.builder.icmp_signed("<", iota, self.splat(clamped))

    def load(self, address, mask=None):
        """count consecutive elements; masked-off lanes are zero and their memory is not touched."""
        pointer = self.builder.bitcast(address, self.type.as_pointer())
        if mask is None:
            value = self.builder.load(pointer)
            value.align = self.align
            return value
        return self._call(f"llvm.masked.load.{self._suffix}.p0", self.type, pointer, I32(self.align), mask, self.zero)

    def store(self, value, address, mask=None):
        pointer = self.builder.bitcast(address, self.type.as_pointer())
        if mask is None:
            self.builder.store(value, pointer).align = self.align
        elif width_bits() == 512:
            self._call(f"llvm.masked.store.{self._suffix}.p0", VOID, value, pointer, I32(self.align), mask)
        else:
            self._store_first(value, address, mask)

    def _store_first(self, value, address, mask):
        """The lanes that a mask has, the first ones: all, or runs of half as many each time. AVX2's masked stores are
        microcode, SSE has none (Zen 3, 2026-11: 8 float32 5.3 ns, whole 0.4, in runs 0.7-1.0)."""
        builder, word = self.builder, ir.IntType(self.count)
        ones = builder.call(builder.module.declare_intrinsic("llvm.ctpop", [word]), [builder.bitcast(mask, word)])
        left = builder.zext(ones, I64) if self.count < 64 else ones
        address = builder.bitcast(address, self.element.as_pointer())
        with builder.if_else(builder.icmp_unsigned("==", left, I64(self.count))) as (whole, some):
            with whole:
                self.store(value, address)
            with some:
                builder.call(self._runs(), [value, address, left])

    def _runs(self) -> ir.Function:
        """void(vector, address, lanes to store), once per module: in the place of every call it would be much code."""
        kinds = [self.type, self.element.as_pointer(), I64]
        function, inside = once(self.builder.module, f"store_{self.dtype}_v{self.count}", kinds)
        if inside is None:
            return function
        run, (value, address, left) = replace(self, builder=inside), function.args
        while run.count > 1:
            (low, high), run, before = run.parts(value, run.count // 2), run.narrower(run.count // 2), run.builder.block
            there = run.builder.icmp_unsigned("!=", run.builder.and_(left, I64(run.count)), I64(0))
            with run.builder.if_then(there):
                run.store(low, address)
                others, inside = [high, run.at(address, run.count)], run.builder.block
            value, address = join(run.builder, ([low, address], before), (others, inside))
        run.builder.ret_void()
        return function

    def over(self, count, piece, first=None) -> None:
        """Emit `piece(place)` for each whole vector of elements from `first` on, `piece(place, left)` for the rest."""
        builder, first = self.builder, first or I64(0)
        whole = builder.udiv(builder.sub(count, first), I64(self.count))
        end = builder.add(first, builder.mul(whole, I64(self.count)))

        def body(index, _):
            piece(builder.add(first, builder.mul(index, I64(self.count))))
            return []

        loop(builder, whole, [], body)
        with builder.if_then(builder.icmp_signed("<", end, count)):
            piece(end, builder.sub(count, end))

    def ramp(self, stride, parts: int = 1):
        """(0, 1, 2, ...) * stride, as offsets for gather; of things that have `parts` elements each, all of them."""
        kind = ir.VectorType(I64, self.count)
        whole, part = zip(*(divmod(i, parts) for i in range(self.count)))
        offsets = self.builder.mul(ir.Constant(kind, [i * parts for i in whole]), self.splat(stride))
        return self.builder.add(offsets, ir.Constant(kind, part)) if parts > 1 else offsets

    def gather(self, address, offsets, mask):
        """Elements at address + offsets; masked-off lanes are zero and their memory is not touched."""
        pointers = ir.VectorType(self.element.as_pointer(), self.count)
        size = ir.Constant(offsets.type, [BYTES[self.dtype]] * self.count)
        places = self.builder.add(self.splat(self.builder.ptrtoint(address, I64)), self.builder.mul(offsets, size))
        name = f"llvm.masked.gather.{self._suffix}.v{self.count}p0"
        where = self.builder.inttoptr(places, pointers)
        return self._call(name, self.type, where, I32(self.align), mask, self.zero)

    def prefetch(self, address, write: bool = False, level: int = 1):
        """Ask for the line at `address` in the cache of that level; never faults."""
        pointer = self.builder.bitcast(address, ir.IntType(8).as_pointer())
        self._call("llvm.prefetch.p0", VOID, pointer, I32(int(write)), I32(4 - level), I32(1))

    def interleave(self, low, high, block: int):
        """Two vectors with every other run of `block` lanes exchanged: the step of a transpose."""
        pick = [[], []]
        for lane in range(self.count):
            odd = lane // block % 2
            pick[0].append(lane - block + self.count if odd else lane)
            pick[1].append(lane + self.count if odd else lane + block)
        kind = ir.VectorType(I32, self.count)
        return [self.builder.shuffle_vector(low, high, ir.Constant(kind, p)) for p in pick]

    def narrower(self, count: int) -> Lanes:
        """`Lanes` of the same dtype for vectors of `count` elements."""
        return replace(self, count=count)

    def parts(self, vector, count: int) -> list:
        """A vector cut into vectors of `count` lanes."""
        if count == self.count:
            return [vector]
        undefined = ir.Constant(vector.type, ir.Undefined)
        picks = ([I32(first + lane) for lane in range(count)] for first in range(0, self.count, count))
        return [
            self.builder.shuffle_vector(vector, undefined, ir.Constant(ir.VectorType(I32, count), p)) for p in picks
        ]

    def transpose(self, rows: list) -> list:
        """Square blocks side by side, len(rows) vectors in all, transposed one by one in log2(len(rows)) rounds."""
        rows, block = list(rows), 1
        while block < len(rows):
            for i in range(len(rows)):
                if i & block == 0:
                    rows[i], rows[i | block] = self.interleave(rows[i], rows[i | block], block)
            block *= 2
        return rows

    def turned(self, rows: list, left=None) -> list:
        """Element p of every row as a vector, for p < count; `rows` are count addresses. From `left` on none is read.

        The pieces of 16 bytes that make a vector come from as many rows, which loads put together: what is left is to
        transpose within the pieces, two rounds of float32 in place of three, and one of float64 in place of two.
        """
        piece = min(self.count, 16 // BYTES[self.dtype])
        return [row for first in range(0, self.count, piece) for row in self.across(rows, first, left)]

    def across(self, rows: list, first: int = 0, left=None, behind: bool = False) -> list:
        """Elements first, first + 1 ... of every row, as many as a piece has.

        `behind`: of vectors of two pieces, the second's rows are read from a piece further back on, for a blend: Zen 3
        does four of these a cycle, and one insertion.
        """
        piece = min(self.count, 16 // BYTES[self.dtype])
        narrow = self.narrower(piece)
        mask = None if left is None else narrow.mask(self.builder.sub(left, I64(first)))
        if behind:
            lows = [narrow.load(self.at(row, first)) for row in rows[:piece]]
            vectors = [self._above(low, self.at(row, first - piece)) for low, row in zip(lows, rows[piece:])]
        else:
            loads = [narrow.load(self.at(row, first), mask) for row in rows]
            vectors = [self._joined(loads[i::piece]) for i in range(piece)]
        for _ in range(piece.bit_length() - 1):
            pairs = zip(vectors[: piece // 2], vectors[piece // 2 :])
            vectors = [half for low, high in pairs for half in self._zipped(low, high, piece)]
        return vectors

    def _joined(self, parts: list):
        """Vectors end to end."""
        while len(parts) > 1:
            both = ir.Constant(ir.VectorType(I32, 2 * parts[0].type.count), list(range(2 * parts[0].type.count)))
            parts = [self.builder.shuffle_vector(*parts[i : i + 2], both) for i in range(0, len(parts), 2)]
        return parts[0]

    def _above(self, low, address):
        """A vector whose lower half is `low`, the other one as it is in the vector at `address`."""
        half, kind, lower = self.count // 2, ir.VectorType(I32, self.count), [*range(self.count // 2)]
        wide = self.builder.shuffle_vector(low, low, ir.Constant(kind, lower * 2))
        picks = ir.Constant(kind, lower + [*range(self.count + half, 2 * self.count)])
        return self.builder.shuffle_vector(wide, self.load(address), picks)

    def _zipped(self, low, high, piece: int):
        """Two vectors whose lanes alternate, within pieces: those of the lower halves, and those of the upper."""
        for half in (0, piece // 2):
            lanes = [c + half + i for c in range(0, self.count, piece) for i in range(piece // 2)]
            pick = ir.Constant(ir.VectorType(I32, self.count), [x for i in lanes for x in (i, self.count + i)])
            yield self.builder.shuffle_vector(low, high, pick)


def outside(builder, name: str, kind):
    """The variable of that name that is defined outside of the module."""
    return builder.module.globals.get(name) or ir.GlobalVariable(builder.module, kind, name)


def library(builder, name: str, result, *values):
    """Call a C function, or one of LLVM's, by its name."""
    kind = ir.FunctionType(result, [value.type for value in values])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), values)


def once(module: ir.Module, name: str, kinds: list):
    """The LLVM function of that name, of arguments of these types, which stays one; and where it is not in the module
    yet, what is to define it."""
    if name in module.globals:
        return module.globals[name], None
    function = ir.Function(module, ir.FunctionType(VOID, kinds), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    return function, ir.IRBuilder(function.append_basic_block("entry"))


def switch(builder: ir.IRBuilder, asked: list, emit) -> None:
    """Emit `emit(*answers)` for every set of answers: each of what is asked is an i64, below the number beside it. Of a
    constant there is one answer."""
    which, done, bad = I64(0), builder.append_basic_block("done"), builder.append_basic_block("unreachable")
    for value, many in asked:
        which = builder.add(builder.mul(which, I64(many)), value)
    to = builder.switch(which, bad)
    for index, answers in enumerate(itertools.product(*(range(many) for _, many in asked))):
        if any(isinstance(value, ir.Constant) and value.constant != each for (value, _), each in zip(asked, answers)):
            continue
        block = builder.append_basic_block("way")
        to.add_case(I64(index), block)
        with builder.goto_block(block):
            emit(*answers)
            builder.branch(done)
    builder.position_at_end(bad)
    builder.unreachable()
    builder.position_at_end(done)


def loop(builder: ir.IRBuilder, trips, carried: list, body) -> list:
    """Emit `for index in range(trips): carried = body(index, carried)`; returns the values after the last trip."""
    function, before = builder.function, builder.block
    inside, after = function.append_basic_block("loop"), function.append_basic_block("after")
    builder.cbranch(builder.icmp_signed(">", trips, I64(0)), inside, after)
    builder.position_at_end(inside)
    index = builder.phi(I64)
    index.add_incoming(I64(0), before)
    phis = [builder.phi(value.type) for value in carried]
    for phi, value in zip(phis, carried):
        phi.add_incoming(value, before)
    results = body(index, phis)
    end, following = builder.block, builder.add(index, I64(1))
    index.add_incoming(following, end)
    for phi, value in zip(phis, results):
        phi.add_incoming(value, end)
    builder.cbranch(builder.icmp_signed("<", following, trips), inside, after)
    builder.position_at_end(after)
    return join(builder, (carried, before), (results, end))


def fence(builder: ir.IRBuilder) -> None:
    """Loads and stores stay on their side of it."""
    builder.asm(ir.FunctionType(VOID, []), "", "~{memory}", [], True)


def opaque(builder: ir.IRBuilder, value):
    """The value, as one that LLVM knows nothing of: what is computed from it stays as it is written."""
    return builder.asm(ir.FunctionType(value.type, [value.type]), "", "=r,0", [value], False)


def used(builder: ir.IRBuilder, value) -> None:
    """A use of a vector, by no instruction: what was computed from it before leaves it in its register."""
    builder.asm(ir.FunctionType(VOID, [value.type]), "", "x", [value], True)


def join(builder: ir.IRBuilder, *ways) -> list:
    """Values that depend on the block one comes from: those of each way in, with its block."""
    phis = [builder.phi(value.type) for value in ways[0][0]]
    for values, block in ways:
        for phi, value in zip(phis, values):
            phi.add_incoming(value, block)
    return phis


def replaced_if(builder: ir.IRBuilder, condition, values: list, others) -> list:
    """Emit `others() if condition else values`."""
    before = builder.block
    with builder.if_then(condition):
        results, inside = others(), builder.block
    return join(builder, (values, before), (results, inside))


def in_blocks(builder: ir.IRBuilder, k, count: int, carried: list, block) -> list:
    """Emit `carried = block(index, carried)` for each `count` of k steps, and once more, with `left`, for the rest."""
    whole, left = builder.udiv(k, I64(count)), builder.urem(k, I64(count))
    carried = loop(builder, whole, carried, block)
    some = builder.icmp_signed(">", left, I64(0))
    return replaced_if(builder, some, carried, lambda: block(whole, carried, left))
