"""Rows of x against quantised weights, as LLVM IR: void(context, task), one for each Form.

Weights lie in blocks of WIDTH outputs. A word is 32 bits of one output: 4 int8 or 8 int4, neighbours in k, the first in
the low bits, each with an offset that makes it unsigned. The words of a block's outputs stand side by side, and so do
their scales and zero points, group by group:

    words[n / WIDTH][k / items][WIDTH]      factors, offsets[n / WIDTH][groups][WIDTH]

A vector has a word of each of its outputs, so all chains of a vector take their steps at once and in order, with no sum
across lanes. A strip of `columns` vectors meets all rows of x, `rows` at a time, before the next: it is read from
memory once.

weights only   in a group (cut after every 4096 steps) chain = fma(x[p], q[p] - zero, chain) from 0 on, then
               total = fma(scale, chain, total)
exact          words of x are 4 bytes, too: in a group integers are added up, by vpdpbusd where it is there, else int4
               by vpmaddubsw, and then
               total = fma(scale, float32(sum), total); out = total * the row's scale + bias
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from llvmlite import ir

from ...jit.abi.record import Record
from ...jit.ir.chain import dot, ways
from ...jit.ir.convert import Widened
from ...jit.ir.kind import Kind
from ...jit.ir.vector import ELEMENT, I8, I32, I64, VOID, Lanes, loop, replaced_if, width_bits
from ...quantized.layout import BYTES, ITEMS, WIDTH
from ..gemm.blocking import FEW_REGISTERS, SEGMENT
from ..gemm.microkernel import STREAMS

# Vectors at once, by rows at once: 8 chains or more hide each other's latency; more wait on the stack, and so do
# addresses of 8 rows where registers are few (ms of 8 rows by 4096 x 4096 int8: 8 at once 7.8, 4 at once 5.7).
COLUMNS = {1: 4, 2: 4, 4: 2} if FEW_REGISTERS else {1: 8, 2: 4, 4: 4, 8: 1}
# Blocks at once are streams from memory. Where a strip has fewer than STREAMS, words AHEAD of them are asked for, which
# no prefetcher follows far enough (ms of int8 from memory by none and 64: 512 bits, 8 rows, 3.1 and 2.7; 256 bits, 1
# row, 1.58 and 1.45; 16 to 256 words are level).
AHEAD = 64
# Sizes, arrays by their addresses, how many tasks go through how many strips, what is done with outputs afterwards; of
# x as bytes where its floats are, words between rows, sums by group, scales.
CONTEXT = Record(
    "Quantized",
    "n k rows group groups pieces words factors offsets bias x out tasks strips after state source stride sums scales",
)


def opened(module: ir.Module, name: str):
    """A new function: its builder, the words of its context, its task."""
    function = ir.Function(module, ir.FunctionType(VOID, [I64, I64]), name)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    words = builder.inttoptr(function.args[0], I64.as_pointer())
    f = {word: builder.load(builder.gep(words, [I64(at)])) for word, at in CONTEXT.places.items()}
    return builder, f, function.args[1]


@dataclass(frozen=True)
class Form:
    """What a kernel is compiled for: the weights' dtype, that of their scales, whether they have zero points."""

    dtype: str
    scales: str
    zeros: bool
    rows: int  # at once: one of COLUMNS
    exact: bool

    @property
    def lanes(self) -> int:
        return min(WIDTH, width_bits() // 32)

    @property
    def columns(self) -> int:
        # One row of bytes has registers for more (with vectors of 256 bits 8 at once take .8 of the time of 4).
        return 8 if self.exact and self.rows == 1 else COLUMNS[self.rows]

    def strips(self, n: int) -> int:
        """Strips that n outputs are cut into."""
        return -(-n // (self.columns * self.lanes))

    def __str__(self) -> str:
        return f"linear_q_{self.dtype}_{self.scales}_{'zeros_' * self.zeros}{'exact_' * self.exact}{self.rows}"

    def define(self, module: ir.Module, name: str) -> None:
        builder, f, task = opened(module, name)
        (_Exact if self.exact else _Weights)(builder, self, f).task(task)
        builder.ret_void()


class _Weights:
    """The kernel of weights only."""

    def __init__(self, builder, form: Form, f: dict):
        self.builder, self.form, self.f = builder, form, f
        self.lanes, self.words = Lanes(builder, "float32", form.lanes), Lanes(builder, "int32", form.lanes)
        self.items, self.per = ITEMS[form.dtype], WIDTH // form.lanes

    def task(self, number) -> None:
        b, f, form = self.builder, self.f, self.form
        first, end = (b.udiv(b.mul(t, f["strips"]), f["tasks"]) for t in (number, b.add(number, I64(1))))
        times = b.udiv(b.add(f["rows"], I64(form.rows - 1)), I64(form.rows))
        width = form.columns * form.lanes

        def strip(index, _):
            at = b.mul(b.add(first, index), I64(width))
            loop(b, times, [], lambda block, _: self.strip(at, b.mul(block, I64(form.rows))))
            with b.if_then(b.icmp_signed("!=", f["after"], I64(0))):
                after = b.inttoptr(f["after"], ir.FunctionType(VOID, [I64] * 5).as_pointer())
                b.call(after, [f["state"], I64(0), at, f["rows"], self.least(b.sub(f["n"], at), I64(width))])
            return []

        loop(b, b.sub(end, first), [], strip)

    def least(self, *values):
        select, less = self.builder.select, self.builder.icmp_signed
        return functools.reduce(lambda first, second: select(less("<", second, first), second, first), values)

    def pointer(self, word: str, dtype: str):
        return self.builder.inttoptr(self.f[word], ELEMENT[dtype].as_pointer())

    def strip(self, first, row) -> list:
        """Outputs from `first` on, of the rows from `row` on; the last row stands for those that are not there."""
        b, f, form, lanes = self.builder, self.f, self.form, self.lanes
        last, end = b.sub(b.udiv(b.add(f["n"], I64(WIDTH - 1)), I64(WIDTH)), I64(1)), f["rows"]
        self.at_row = [self.least(b.add(row, I64(r)), b.sub(end, I64(1))) for r in range(form.rows)]
        self.outputs = [b.add(first, I64(c * form.lanes)) for c in range(form.columns)]
        # Past the last block its vectors are read again, and not stored.
        blocks = [self.least(b.udiv(each, I64(WIDTH)), last) for each in self.outputs]
        parts = [b.urem(each, I64(WIDTH)) for each in self.outputs]
        self.deep = b.udiv(b.add(f["k"], I64(self.items - 1)), I64(self.items))

        def places(word, dtype, rows):
            start = self.pointer(word, dtype)
            return [lanes.at(start, b.add(b.mul(b.mul(k, rows), I64(WIDTH)), p)) for k, p in zip(blocks, parts)]

        self.at_words = places("words", "int32", self.deep)
        self.at_factors = places("factors", form.scales, f["groups"])
        self.at_offsets = places("offsets", "int8", f["groups"])
        self.prepare()
        totals = [lanes.zero] * (form.rows * form.columns)
        ends = loop(b, f["pieces"], [I64(0), *totals], lambda _, carried: self.piece(carried[0], list(carried[1:])))
        self.store(ends[1:])
        return []

    def prepare(self) -> None:
        """What a strip knows before its first step."""
        start = self.pointer("x", "float32")
        self.x = [self.lanes.at(start, self.builder.mul(r, self.f["k"])) for r in self.at_row]

    def piece(self, p, totals) -> list:
        """The steps from p on to the end of a group or of a segment."""
        b, k, chains = self.builder, self.f["k"], [self.lanes.zero] * len(totals)
        group = b.udiv(p, self.f["group"])
        end = self.least(k, b.mul(b.add(group, I64(1)), self.f["group"]))
        end = self.least(end, b.mul(b.add(b.udiv(p, I64(SEGMENT)), I64(1)), I64(SEGMENT)))
        zeros = self.of_group("int8", self.at_offsets, group) if self.form.zeros else None
        first, steps, bits = b.udiv(p, I64(self.items)), b.sub(end, p), 32 // self.items
        # Where registers are few, bytes are read one by one, with a compiler fence (no instruction) between items: else
        # LLVM makes several items at once and spills chains (time by 1, 2, 4 rows: int8 .91, .53, .9, int4 .73 to .93).
        width = 8 if FEW_REGISTERS else 16

        def word(index, chains):
            index = b.add(first, index)
            at = b.mul(index, I64(self.items))
            for t in range(self.items):
                if FEW_REGISTERS:
                    b.fence("acq_rel", "singlethread")
                part, high = divmod(t * bits, width)
                values = self.item(self.read(index, part * width // 8, t == 0), high)
                chains = self.step(b.add(at, I64(t)), values, zeros, chains)
            return chains

        def rest():
            """Items of the last word, where k ends within it."""
            whole = b.udiv(k, I64(self.items))
            words, at = self.read(whole), b.mul(whole, I64(self.items))

            def one(t, chains):
                shift = self.words.splat(b.mul(b.trunc(t, I32), I32(bits)))
                values = self.item([b.lshr(w, shift) for w in words])
                return self.step(b.add(at, t), values, zeros, chains)

            return loop(b, b.urem(k, I64(self.items)), chains, one)

        chains = loop(b, b.udiv(steps, I64(self.items)), chains, word)
        chains = replaced_if(b, b.icmp_signed("!=", b.urem(steps, I64(self.items)), I64(0)), chains, rest)
        return [end, *self.scaled(group, chains, totals)]

    def of_group(self, stored, places, group, want="float32"):
        """What a group's outputs have there: vectors of numbers."""
        lanes = Widened(self.builder, stored, self.form.lanes, want=want)
        return [lanes.load(lanes.at(place, self.builder.mul(group, I64(WIDTH)))) for place in places]

    def scaled(self, group, sums, totals) -> list:
        """Totals, with a group's sums."""
        scales = self.of_group(self.form.scales, self.at_factors, group)
        return [self.lanes.fma(scales[i % len(scales)], s, total) for i, (s, total) in enumerate(zip(sums, totals))]

    def read(self, index, byte: int = 0, first: bool = True) -> list:
        """A word of each output from this byte on; what follows it in a lane is the next output's."""
        at = self.builder.mul(index, I64(WIDTH))
        few = self.form.columns * self.form.lanes < STREAMS * WIDTH
        for place in self.at_words[:: self.per] if few and first else []:
            self.words.prefetch(self.words.at(place, self.builder.add(at, I64(AHEAD * WIDTH))))
        bytes_ = Lanes(self.builder, "int8", 1)
        starts = [self.builder.bitcast(self.words.at(place, at), I8.as_pointer()) for place in self.at_words]
        return [self.words.load(bytes_.at(start, byte)) for start in starts]

    def item(self, words, high: int = 0) -> list:
        """The first item of words as floats, or that from bit `high` on: of int4 looked up by the low four bits of a
        lane; else its bits become the last ones before the point of a power of two, and that and the offset are taken
        away. No shift: units that do them look up, too."""
        b, bits = self.builder, 32 // self.items
        if bits == 4 and high == 0 and width_bits() == 512:
            table = ir.Constant(self.lanes.type, [float(i - 8) for i in range(16)])
            return [self.lanes._call("llvm.x86.avx512.permvar.sf.512", table.type, table, word) for word in words]
        power, mask = 23 - high, ((1 << bits) - 1) << high
        less = ir.Constant(self.lanes.type, [2.0**power + (1 << bits - 1)] * self.lanes.count)
        numbers = [b.or_(b.and_(w, self.filled(mask)), self.filled(127 + power << 23)) for w in words]
        return [b.fsub(b.bitcast(number, self.lanes.type), less) for number in numbers]

    def filled(self, number: int):
        return ir.Constant(self.words.type, [number] * self.words.count)

    def step(self, p, values, zeros, chains) -> list:
        """Every chain one step of k further."""
        b, chains = self.builder, list(chains)
        if zeros:
            values = [b.fsub(v, z) for v, z in zip(values, zeros)]
        for r, x in enumerate(self.x):
            factor = self.lanes.broadcast(self.lanes.at(x, p))
            for c, v in enumerate(values, r * len(values)):
                chains[c] = self.lanes.fma(factor, v, chains[c])
        return chains

    def store(self, totals) -> None:
        """out = total + bias."""
        b, lanes = self.builder, self.lanes
        for c, output in enumerate(self.outputs):
            mask = lanes.mask(b.sub(self.f["n"], output))
            bias = lanes.load(lanes.at(self.pointer("bias", "float32"), output), mask)
            for r, row in enumerate(self.at_row):
                out = lanes.at(lanes.at(self.pointer("out", "float32"), b.mul(row, self.f["n"])), output)
                total = self.finished(row, totals[r * self.form.columns + c])
                lanes.store(b.fadd(total, bias), out, mask)

    def finished(self, row, total):
        """A row's total, before the bias."""
        return total


class _Exact(_Weights):
    """The kernel of bytes by bytes. Weights are unsigned, so a sum has the offset too often: as often as x adds up."""

    def prepare(self) -> None:
        b, f = self.builder, self.f
        x, sums = self.pointer("x", "int32"), self.pointer("sums", "int32")
        self.x = [self.words.at(x, b.mul(r, f["stride"])) for r in self.at_row]
        self.sums = [self.words.at(sums, b.mul(r, f["groups"])) for r in self.at_row]

    def piece(self, p, totals) -> list:
        """A group's steps."""
        b, words = self.builder, self.words
        group, items = b.udiv(p, self.f["group"]), I64(self.items)
        end = self.least(self.f["k"], b.add(p, self.f["group"]))
        first, parts = b.udiv(p, items), self.items // BYTES

        def word(index, sums):
            index, sums = b.add(first, index), list(sums)
            weights, at = [self.parts(word) for word in self.read(index)], b.mul(index, I64(parts))
            for r, x in enumerate(self.x):
                factors = [words.broadcast(words.at(x, b.add(at, I64(part)))) for part in range(parts)]
                for c, values in enumerate(weights, r * len(weights)):
                    sums[c] = _dots(b, words, values, factors, sums[c])
            return sums

        many = b.udiv(b.add(b.sub(end, p), b.sub(items, I64(1))), items)  # the last one filled up by zeros of x
        sums = loop(b, many, [words.zero] * len(totals), word)
        offsets = [self.filled(1 << 32 // self.items - 1)] * self.form.columns
        if self.form.zeros:
            zeros = self.of_group("int8", self.at_offsets, group, "int32")
            offsets = [b.add(offset, zero) for offset, zero in zip(offsets, zeros)]
        for r, of_row in enumerate(self.sums):
            x = words.broadcast(words.at(of_row, group))
            for c, offset in enumerate(offsets, r * len(offsets)):
                sums[c] = b.sub(sums[c], b.mul(offset, x))
        return [end, *self.scaled(group, [b.sitofp(each, self.lanes.type) for each in sums], totals)]

    def parts(self, word) -> list:
        """A word as words of bytes: of int4 the even items, and the odd ones."""
        b, low = self.builder, self.filled(0x0F0F0F0F)
        return [word] if self.items == BYTES else [b.and_(word, low), b.and_(b.lshr(word, self.filled(4)), low)]

    def finished(self, row, total):
        scale = self.lanes.broadcast(self.lanes.at(self.pointer("scales", "float32"), row))
        return self.builder.fmul(total, scale)


def _dots(builder, words: Lanes, unsigned: list, signed: list, total):
    """total + the dot products of the bytes of these words, modulo 2**32."""
    if len(unsigned) == 1 or "bytes" in ways() or "pairs" not in ways() or width_bits() not in PMADDUBSW:
        for each in zip(unsigned, signed):
            total = _dot4(builder, words, *each, total)
        return total
    # Of int4 two products are added in int16: they are four times 15 * 127 at most.
    halves, bytes_ = (ir.VectorType(ELEMENT[dtype], words.count * n) for dtype, n in (("int16", 2), ("int8", 4)))
    pairs = [[builder.bitcast(each, bytes_) for each in word] for word in zip(unsigned, signed)]
    sums = builder.add(*(words._call(PMADDUBSW[width_bits()], halves, *each) for each in pairs))
    kind = Kind("int16", "int16", "int32", "int32", "pairs")
    return dot(builder, kind, words.count, sums, ir.Constant(halves, [1] * halves.count), total)


PMADDUBSW = {256: "llvm.x86.avx2.pmadd.ub.sw", 512: "llvm.x86.avx512.pmaddubs.w.512"}  # by bits of a vector


def _dot4(builder, words: Lanes, unsigned, signed, total):
    """total + the dot product of 4 bytes, modulo 2**32."""
    if "bytes" in ways():
        return dot(builder, Kind("uint8", "int8", "int32", "int32", "bytes"), words.count, unsigned, signed, total)
    kind = Kind("int16", "int16", "int32", "int32", "pairs" if "pairs" in ways() else "mul")
    halves = ir.VectorType(ELEMENT["int16"], 2 * words.count)
    a, b = (builder.bitcast(each, halves) for each in (unsigned, signed))
    eight = ir.Constant(halves, [8] * halves.count)
    odd = builder.lshr(a, eight), builder.ashr(b, eight)
    even = builder.and_(a, ir.Constant(halves, [255] * halves.count)), builder.ashr(builder.shl(b, eight), eight)
    for first, second in (even, odd):
        if kind.way == "pairs":
            total = dot(builder, kind, words.count, first, second, total)
            continue
        for side in range(2):  # LLVM has its own way for them
            lanes = ir.Constant(ir.VectorType(I32, words.count), [2 * i + side for i in range(words.count)])
            picked = [builder.shuffle_vector(each, each, lanes) for each in (first, second)]
            total = builder.add(total, builder.mul(*(builder.sext(each, words.type) for each in picked)))
    return total
