"""Chains: what a step and an ending of a product are for each kind, as vector IR; one lane is an element.

A chain, and a number of its dtype, is a list of planes: one vector, or the real and the imaginary ones. While it takes
steps one of int64 has a second vector where no instruction multiplies 64 bits: of a * b = low + 2**32 * crossed, modulo
2**64, low(a) * low(b) goes to the first and the low halves of low(a) * high(b) and high(a) * low(b) side by side to the
second; `opened` and `closed` are its two ends.
"""

from __future__ import annotations

from llvmlite import ir

from .convert import narrow, widen
from .kind import PLANE, UNIT, Kind
from .vector import ELEMENT, I32, Lanes, width_bits

OFFSET = 0x80808080 - (1 << 32)  # four bytes of 128 (or -128)


def crossed(kind: Kind) -> bool:
    """Whether a chain takes its steps in two vectors: of int64, where no instruction multiplies them."""
    return kind.way == "mul" and kind.chain == "int64" and "mul64" not in ways()


class Chain:
    """Operations on `count` chains of a kind at a time."""

    def __init__(self, builder: ir.IRBuilder, kind: Kind, count: int):
        self.builder, self.kind, self.count = builder, kind, count
        self.words = Lanes(builder, kind.word, count)
        self.plane = PLANE.get(kind.chain, kind.chain)  # dtype of a plane of a chain
        self.numbers = Lanes(builder, self.plane, count)
        self.crossed = crossed(kind)

    # -- memory ------------------------------------------------------------------------------------------------------

    def _memory(self, dtype: str, count: int | None = None) -> Lanes:
        """Lanes over the elements of an array of `dtype`; a complex number takes two."""
        count = self.count if count is None else count
        return Lanes(self.builder, PLANE.get(dtype, dtype), count * (2 if dtype in PLANE else 1))

    def mask(self, valid, dtype: str | None = None):
        """The mask for elements of an array of `dtype` (the chain's), of which the first `valid` are there."""
        memory = self._memory(dtype or self.kind.chain)
        return memory.mask(self.builder.mul(valid, valid.type(memory.count // self.count)))

    def _load(self, dtype: str, address, mask, count: int | None = None) -> list:
        memory = self._memory(dtype, count)
        address = self.builder.bitcast(address, memory.element.as_pointer())
        value = memory.load(address, mask)
        return _planes(self.builder, value) if dtype in PLANE else [value]

    def _store(self, dtype: str, planes: list, address, mask) -> None:
        memory = self._memory(dtype)
        value = _joined(self.builder, planes) if dtype in PLANE else planes[0]
        memory.store(value, self.builder.bitcast(address, memory.element.as_pointer()), mask)

    def load(self, address, mask=None) -> list:
        """Chains that wait in memory."""
        return self._load(self.kind.chain, address, mask)

    def store(self, chain: list, address, mask=None) -> None:
        self._store(self.kind.chain, chain, address, mask)

    def read(self, address, mask=None) -> list:
        """Elements of X, as numbers of the chain's dtype."""
        return [widen(self.builder, v, self.kind.out, self.plane) if self.kind.out not in PLANE else v
                for v in self._load(self.kind.out, address, mask)]  # fmt: skip

    def write(self, value: list, address, mask=None) -> None:
        """Numbers of the chain's dtype, as elements of C: rounded once, or modulo 2**bits."""
        out = PLANE.get(self.kind.out, self.kind.out)
        planes = [narrow(self.builder, v, self.plane, out) for v in value]
        self._store(self.kind.out, planes, address, mask)

    # -- operands -> words -------------------------------------------------------------------------------------------

    def along(self, operand: str, address, valid=None) -> list:
        """Words of `count` * items neighbours in memory, of which the first `valid` are there (all)."""
        stored, neighbours = getattr(self.kind, operand), self.count * self.kind.items
        memory, mask = self._memory(stored, neighbours), None
        if valid is not None:
            mask = memory.mask(self.builder.mul(valid, valid.type(memory.count // neighbours)))
        items = [self._item(operand, v) for v in self._load(stored, address, mask, neighbours)]
        return self.finished(operand, [self.builder.bitcast(v, self.words.type) for v in items])

    def across(self, operand: str, addresses: list, load) -> list:
        """Words whose items lie at `addresses`, one vector each; load(lanes, address) brings it in."""
        stored = getattr(self.kind, operand)
        if len(addresses) == 1:
            planes = load(self._memory(stored), addresses[0])
            planes = _planes(self.builder, planes) if stored in PLANE else [planes]
            return self.finished(operand, [self._item(operand, v) for v in planes])
        total = self.words.zero
        for q, address in enumerate(addresses):
            item = self._item(operand, load(self._memory(stored), address))
            shift = ir.Constant(self.words.type, [q * item.type.element.width] * self.count)
            total = self.builder.or_(total, self.builder.shl(self.builder.zext(item, self.words.type), shift))
        return self.finished(operand, [total])

    def _item(self, operand: str, value):
        """Elements as words hold them: of the chain's dtype where a word is one, else of its part of the word."""
        stored, part = (
            getattr(self.kind, operand),
            {"bytes": "int8", UNIT: "int8", "pairs": "int16", "bf16": "bfloat16"},
        )
        if stored in PLANE or (self.kind.way in ("bytes", UNIT) and stored != "bool"):
            return value
        return widen(self.builder, value, stored, part.get(self.kind.way, self.kind.word))

    def finished(self, operand: str, planes: list) -> list:
        """Words of an operand as steps take them, of words that hold its items."""
        if operand in self.kind.conj:
            planes = [planes[0], self.builder.fneg(planes[1])]
        if operand == "a" and self.kind.offset:
            planes = [self.builder.xor(planes[0], self.words.splat(I32(OFFSET)))]
        return planes

    # -- arithmetic --------------------------------------------------------------------------------------------------

    @property
    def zero(self) -> list:
        return [self.numbers.zero] * self.kind.planes

    def opened(self, chain: list) -> list:
        """A chain that takes steps."""
        return [*chain, ir.Constant(ir.VectorType(I32, 2 * self.count), None)] if self.crossed else chain

    def closed(self, chain: list) -> list:
        """The chain after its last step."""
        if not self.crossed:
            return chain
        low, both = chain[0], self.builder.bitcast(chain[1], chain[0].type)
        half = ir.Constant(low.type, [32] * self.count)
        high = self.builder.shl(self.builder.lshr(both, half), half)
        return [self.builder.add(low, self.builder.add(self.builder.shl(both, half), high))]

    def step(self, a: list, b: list, chain: list) -> list:
        """The chain, which is open, after one more word of each operand."""
        if self.kind.way == "fma" and self.kind.planes == 2:
            (ar, ai), (br, bi), (re, im) = a, b, chain
            fma, minus = self.words.fma, self.builder.fneg(ai)
            first, second = ((ai, br), (ar, bi)) if self.kind.turned else ((ar, bi), (ai, br))
            return [fma(minus, bi, fma(ar, br, re)), fma(*second, fma(*first, im))]
        if self.kind.way == "fma":
            return [self.words.fma(a[0], b[0], chain[0])]
        if self.crossed:
            low, crossed = chain
            return [self.builder.add(low, self._low(a[0], b[0])), self.builder.add(crossed, self._crossed(a[0], b[0]))]
        if self.kind.way == "mul":
            return [self.builder.add(chain[0], self.builder.mul(a[0], b[0]))]
        return [dot(self.builder, self.kind, self.count, a[0], b[0], chain[0])]

    def _low(self, a, b):
        """Products of the low halves of int64, all 64 bits of them."""
        halves = ir.VectorType(I32, self.count)
        return self.builder.mul(*(self.builder.zext(self.builder.trunc(x, halves), x.type) for x in (a, b)))

    def _crossed(self, a, b):
        """Products of the low halves with the other operand's high ones, modulo 2**32."""
        halves = ir.VectorType(I32, 2 * self.count)
        a, b = (self.builder.bitcast(x, halves) for x in (a, b))
        other = ir.Constant(halves, [i ^ 1 for i in range(halves.count)])
        return self.builder.mul(a, self.builder.shuffle_vector(b, ir.Constant(halves, ir.Undefined), other))

    def offset(self) -> list:
        """A word of A that is all offset."""
        return [self.words.splat(I32(OFFSET))]

    def add(self, first: list, second: list) -> list:
        """The sum of two segments."""
        if self.kind.out == "bool":
            return [self._truth(self.builder.or_(first[0], second[0]))]
        add = self.builder.fadd if self.plane.startswith("float") else self.builder.add
        return [add(p, q) for p, q in zip(first, second)]

    def scale(self, alpha: list, value: list) -> list:
        """alpha * value; of complex numbers the products with alpha's real part first, then those with its imaginary
        part where it is not 0, so that 1 * inf is inf."""
        if self.kind.out == "bool":
            return [self.builder.and_(alpha[0], self._truth(value[0]))]
        times = self.builder.fmul if self.plane.startswith("float") else self.builder.mul
        product = [times(alpha[0], v) for v in value]
        return product if len(alpha) == 1 else self._imaginary(alpha, value, product)

    def blend(self, beta: list, x: list, value: list) -> list:
        """beta * x + value, by the rule of `scale`; floats in one rounding a product."""
        if self.kind.out == "bool":
            return [self.builder.or_(self.builder.and_(beta[0], self._truth(x[0])), value[0])]
        if not self.plane.startswith("float"):
            return [self.builder.add(self.builder.mul(beta[0], x[0]), value[0])]
        value = [self.numbers.fma(beta[0], part, v) for part, v in zip(x, value)]
        return value if len(beta) == 1 else self._imaginary(beta, x, value)

    def _imaginary(self, factor: list, value: list, product: list) -> list:
        """product + i * factor's imaginary part * value, where that part is not 0."""
        (_, imaginary), (re, im), fma = factor, value, self.numbers.fma
        real = self.builder.fcmp_ordered("==", imaginary, self.numbers.zero)
        more = [fma(self.builder.fneg(imaginary), im, product[0]), fma(imaginary, re, product[1])]
        return [self.builder.select(real, p, m) for p, m in zip(product, more)]

    def _truth(self, value):
        nonzero = self.builder.icmp_unsigned("!=", value, ir.Constant(value.type, None))
        return self.builder.zext(nonzero, value.type)

    def broadcast(self, address) -> list:
        """The element of B at an address, which holds numbers of the chain's dtype, in every lane."""
        return self.finished("b", self.splat(self.builder.load(address, align=1)))

    def splat(self, number) -> list:
        """One number of the chain's dtype in every lane."""
        if self.kind.planes == 1:
            return [self.words.splat(number)]
        return [self.words.splat(self.builder.extract_value(number, i)) for i in range(2)]


def in_groups(values: list, size: int) -> list:
    """The values in lists of `size`: chains, of their planes."""
    return [values[i : i + size] for i in range(0, len(values), size)]


def _planes(builder, value) -> list:
    """(r0, i0, r1, i1, ...) -> (r0, r1, ...), (i0, i1, ...)."""
    count, undefined = value.type.count // 2, ir.Constant(value.type, ir.Undefined)
    pick = ([2 * i + part for i in range(count)] for part in range(2))
    return [builder.shuffle_vector(value, undefined, ir.Constant(ir.VectorType(I32, count), p)) for p in pick]


def _joined(builder, planes: list):
    count = planes[0].type.count
    pick = [i // 2 + i % 2 * count for i in range(2 * count)]
    return builder.shuffle_vector(*planes, ir.Constant(ir.VectorType(I32, 2 * count), pick))


# (way, bits of a vector) -> LLVM's name; the other vectors of a call have the elements that follow.
_PAIRS = {128: "llvm.x86.sse2.pmadd.wd", 256: "llvm.x86.avx2.pmadd.wd", 512: "llvm.x86.avx512.pmaddw.d.512"}


def dot(builder, kind: Kind, count: int, a, b, chain):
    """chain + the dot products of the items in the words a and b."""
    bits = 32 * count
    if kind.way == "bytes":
        first, second = (b, a) if kind.b == "uint8" else (a, b)  # the unsigned one first
        part, name = ir.VectorType(ir.IntType(8), bits // 8), f"llvm.x86.avx512.vpdpbusd.{bits}"
    elif kind.way == "bf16":
        first, second, part = a, b, ir.VectorType(_Bfloat(), bits // 16)
        name = f"llvm.x86.avx512bf16.dpbf16ps.{bits}"
    else:
        first, second, part = a, b, ir.VectorType(ELEMENT["int16"], bits // 16)
        name = _PAIRS[bits]
    first, second = builder.bitcast(first, part), builder.bitcast(second, part)
    lanes = Lanes(builder, "int32", count)
    if kind.way == "pairs":
        return builder.add(chain, lanes._call(name, lanes.type, first, second))
    return lanes._call(name, chain.type, chain, first, second)


class _Bfloat(ir.Type):
    """LLVM's bfloat, which llvmlite has no name for."""

    def _to_string(self):
        return "bfloat"

    def __eq__(self, other):
        return isinstance(other, _Bfloat)

    def __hash__(self):
        return hash(_Bfloat)


def ways() -> tuple[str, ...]:
    """The ways with an instruction of their own on the compile target."""
    from ..disk.levels import target

    triple, _, features = target()
    x86 = triple.startswith(("x86_64", "i686", "amd64"))
    wide = width_bits() == 512
    has = {
        "bytes": ("avx512vnni" in features and wide),
        "pairs": x86 and (not wide or "avx512bw" in features),
        "bf16": "avx512bf16" in features and wide,
        "mul64": "avx512dq" in features and wide,
    }
    return tuple(way for way, there in has.items() if there)
