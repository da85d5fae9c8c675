"""Whole numbers and bits; what floats and whole numbers share (add, setp, selp, min, max)."""

from __future__ import annotations

import numpy as np

from .instructions import instruction
from .operands import RAW, TYPES
from .real import REAL


def typed(each) -> str:
    return each.parts[-1]


def elementwise(function, count: int):
    """make() of an instruction `op.type d, a, b, ...` of `count` inputs, all of its type."""

    def make(each, operands):
        kind = typed(each)
        put, inputs = operands.write(each.operands[0]), [operands.read(x, kind) for x in each.operands[1 : count + 1]]
        if count == 1:
            return lambda threads, lanes: put(threads, lanes, function(inputs[0](threads, lanes)))
        if count == 2:
            x, y = inputs
            return lambda threads, lanes: put(threads, lanes, function(x(threads, lanes), y(threads, lanes)))
        return lambda threads, lanes: put(threads, lanes, function(*(x(threads, lanes) for x in inputs)))

    return make


def either(name: str, whole, count: int):
    """Registers an instruction whose rule for floats is in real.py."""

    @instruction(name)
    def make(each, operands):
        real = REAL.get(name)
        if real and typed(each) in ("f16", "bf16", "f16x2", "bf16x2", "f32", "f64"):
            return real(each, operands)
        return elementwise(whole, count)(each, operands)


either("add", np.add, 2)
either("sub", np.subtract, 2)
either("min", np.minimum, 2)
either("max", np.maximum, 2)
either("neg", np.negative, 1)
either("abs", np.abs, 1)
for name, function, count in (
    ("and", np.bitwise_and, 2), ("or", np.bitwise_or, 2), ("xor", np.bitwise_xor, 2), ("not", np.invert, 1),
    ("cnot", lambda x: (x == 0).astype(x.dtype), 1), ("popc", lambda x: np.bitwise_count(x).astype(np.uint32), 1),
):  # fmt: skip
    instruction(name)(elementwise(function, count))


def wide(kind: str) -> np.dtype:
    return TYPES[kind[0] + str(2 * int(kind[1:]))]


def high(x, y):
    """Upper half of the product."""
    bits = 8 * x.dtype.itemsize
    if bits < 64:
        return (x.astype(wide_of(x)) * y.astype(wide_of(x)) >> bits).astype(x.dtype)
    product = [(int(p) * int(q) >> 64) % (1 << 64) for p, q in zip(*np.broadcast_arrays(x, y))]
    return np.array(product, np.uint64).view(x.dtype)


def wide_of(x):
    return np.dtype(f"{x.dtype.kind}{2 * x.dtype.itemsize}")


@instruction("mul", "mad")
def mul(each, operands):
    """.lo, .hi and .wide of whole numbers; mad adds, in the product's type, with a carry where it says so."""
    parts, kind = each.parts, typed(each)
    if kind in ("f16", "bf16", "f16x2", "bf16x2", "f32", "f64"):
        return REAL[parts[0].replace("mad", "fma")](each, operands)
    if parts[1] == "wide":
        into = wide(kind)
        product = lambda x, y: x.astype(into) * y.astype(into)  # noqa: E731
        added = kind[0] + str(2 * int(kind[1:]))
    else:
        product, added = (np.multiply if parts[1] == "lo" else high), kind
    put, x, y = operands.write(each.operands[0]), *(operands.read(token, kind) for token in each.operands[1:3])
    if parts[0] == "mul":
        return lambda threads, lanes: put(threads, lanes, product(x(threads, lanes), y(threads, lanes)))
    z = operands.read(each.operands[3], added)
    if "cc" in parts:
        return carrying(put, lambda threads, lanes: product(x(threads, lanes), y(threads, lanes)), z, False, True)
    return lambda threads, lanes: put(threads, lanes, product(x(threads, lanes), y(threads, lanes)) + z(threads, lanes))


def carrying(put, x, y, reads: bool, writes: bool, negative: bool = False):
    """x + y, or x - y, with the carry read, written or both."""

    def run(threads, lanes):
        a, b = (threads.each(value(threads, lanes), lanes) for value in (x, y))
        raw = RAW[a.dtype.itemsize]
        a, b = a.view(raw), b.view(raw) if not negative else ~b.view(raw)
        carry = threads.carry[lanes] if reads else np.full(a.shape, negative)
        if reads and negative:
            carry = ~carry  # a borrow is no carry
        total = a + b
        result = total + carry.astype(raw)
        out = (total < a) | (result < total)
        put(threads, lanes, result)
        if writes:
            threads.carry[lanes] = ~out if negative else out

    return run


@instruction("add.cc", "addc", "sub.cc", "subc")
def extended(each, operands):
    kind, name = typed(each), each.parts[0]
    put, x, y = operands.write(each.operands[0]), *(operands.read(token, kind) for token in each.operands[1:])
    return carrying(put, x, y, name in ("addc", "subc"), "cc" in each.parts, name.startswith("sub"))


@instruction("madc")
def madc(each, operands):
    kind, parts = typed(each), each.parts
    put, x, y, z = operands.write(each.operands[0]), *(operands.read(token, kind) for token in each.operands[1:])
    product = np.multiply if parts[1] == "lo" else high
    return carrying(put, lambda t, lanes: product(x(t, lanes), y(t, lanes)), z, True, "cc" in parts)


def quotient(x, y):
    """Rounded towards zero; all ones of a division by zero."""
    safe = np.where(y == 0, 1, y).astype(x.dtype)
    floor = x // safe
    floor += ((floor * safe != x) & ((x < 0) != (safe < 0))).astype(x.dtype)
    return np.where(y == 0, ~np.zeros_like(x), floor)


either("div", quotient, 2)
either("rem", lambda x, y: np.where(y == 0, x, x - quotient(x, y) * y), 2)


@instruction("shl", "shr")
def shift(each, operands):
    """By 32 bits; from the type's size on it is 0, or the sign."""
    kind, left = typed(each), each.parts[0] == "shl"
    put, x, by = (operands.write(each.operands[0]), operands.read(each.operands[1], kind),
                  operands.read(each.operands[2], "u32"))  # fmt: skip
    move = np.left_shift if left else np.right_shift
    return lambda threads, lanes: put(
        threads, lanes, move(x(threads, lanes), np.minimum(by(threads, lanes), 127).astype(TYPES[kind]))
    )


@instruction("shf")
def funnel(each, operands):
    """The 64 bits b:a shifted; .l keeps the upper half, .r the lower one."""
    put, inputs = operands.write(each.operands[0]), [operands.read(x, "u32") for x in each.operands[1:]]
    left, wraps = "l" in each.parts, "wrap" in each.parts

    def run(threads, lanes):
        low, up, by = (x(threads, lanes).astype(np.uint64) for x in inputs)
        by = by & 31 if wraps else np.minimum(by, 32)
        both = up << np.uint64(32) | low
        put(threads, lanes, ((both << by) >> np.uint64(32) if left else both >> by).astype(np.uint32))

    return run


@instruction("bfe")
def field(each, operands):
    """`length` bits from `start` on, with the sign of the uppermost one for signed types."""
    kind = typed(each)
    dtype, bits = TYPES[kind], int(kind[1:])
    put, x = operands.write(each.operands[0]), operands.read(each.operands[1], kind)
    start, length = (operands.read(token, "u32") for token in each.operands[2:])

    def run(threads, lanes):
        first = (start(threads, lanes) & 255).astype(np.int64)
        count = np.minimum((length(threads, lanes) & 255).astype(np.int64), np.maximum(bits - first, 0))
        up = (x(threads, lanes) << (bits - first - count).astype(dtype)).astype(dtype)
        put(
            threads,
            lanes,
            np.where(count == 0, dtype.type(0), up >> np.where(count == 0, 0, bits - count).astype(dtype)),
        )

    return run


@instruction("bfi")
def inserted(each, operands):
    kind = typed(each)
    put, x, y = operands.write(each.operands[0]), *(operands.read(token, kind) for token in each.operands[1:3])
    start, length = (operands.read(token, "u32") for token in each.operands[3:])

    def run(threads, lanes):
        a, b, first, count = x(threads, lanes), y(threads, lanes), start(threads, lanes), length(threads, lanes)
        first, count = (first & 255).astype(a.dtype), (count & 255).astype(a.dtype)
        one = a.dtype.type(1)
        mask = ((one << count) - one) << first  # NumPy's shift by all bits or more is 0, so that the mask is all ones
        put(threads, lanes, (b & ~mask) | ((a << first) & mask))

    return run


@instruction("clz", "bfind", "brev")
def places_of_bits(each, operands):
    kind, name = typed(each), each.parts[0]
    bits = int(kind[1:])
    put, x = operands.write(each.operands[0]), operands.read(each.operands[1], kind)

    def run(threads, lanes):
        values = x(threads, lanes)
        if name == "brev":
            raw = values.view(RAW[bits // 8])
            turned = np.unpackbits(raw.view(np.uint8).reshape(-1, bits // 8)[:, ::-1], axis=1)[:, ::-1]
            put(threads, lanes, np.packbits(turned, axis=1)[:, ::-1].copy().view(raw.dtype).ravel())
            return
        values = np.where(values < 0, ~values, values) if name == "bfind" else values.view(RAW[bits // 8])
        filled = values.astype(np.uint64)
        for by in (1, 2, 4, 8, 16, 32):
            filled |= filled >> np.uint64(by)
        length = np.bitwise_count(filled).astype(np.uint32)
        put(threads, lanes, np.uint32(bits) - length if name == "clz" else length - np.uint32(1))

    return run


@instruction("prmt")
def permuted(each, operands):
    """Four bytes chosen of eight, or the sign of one of them."""
    put, inputs = operands.write(each.operands[0]), [operands.read(x, "u32") for x in each.operands[1:]]
    if each.opcode != "prmt.b32":
        raise NotImplementedError(each.opcode)

    def run(threads, lanes):
        a, b, selector = (threads.each(x(threads, lanes), lanes).astype(np.uint64) for x in inputs)
        both, result = b << np.uint64(32) | a, np.uint64(0)
        for i in range(4):
            chosen = selector >> np.uint64(4 * i)
            byte = both >> np.uint64(8) * (chosen & np.uint64(7)) & np.uint64(255)
            sign = np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0))
            result = result | np.where(chosen & np.uint64(8), sign, byte) << np.uint64(8 * i)
        put(threads, lanes, result.astype(np.uint32))

    return run


@instruction("lop3")
def logic(each, operands):
    """Any function of three bits, by its table."""
    put, table = operands.write(each.operands[0]), int(each.operands[4], 0)
    inputs = [operands.read(x, "u32") for x in each.operands[1:4]]

    def run(threads, lanes):
        given, result = [x(threads, lanes) for x in inputs], np.uint32(0)
        for row in range(8):
            if table >> row & 1:
                a, b, c = (x if row >> 2 - i & 1 else ~x for i, x in enumerate(given))
                result = result | (a & b & c)
        put(threads, lanes, threads.each(np.atleast_1d(result), lanes))

    return run


@instruction("dp4a")
def dot_of_bytes(each, operands):
    """c + sum of four products of bytes."""
    kinds = [np.int8 if kind[0] == "s" else np.uint8 for kind in each.parts[1:]]
    put, inputs = operands.write(each.operands[0]), [operands.read(x, "u32") for x in each.operands[1:]]

    def run(threads, lanes):
        a, b, c = (np.ascontiguousarray(threads.each(x(threads, lanes), lanes)) for x in inputs)
        a, b = (x.view(kind).reshape(-1, 4).astype(np.int64) for x, kind in zip((a, b), kinds))
        put(threads, lanes, (c + (a * b).sum(1)).astype(np.uint32))

    return run
