"""Rows of x as bytes, for the exact kernels: void(context, task), written in LLVM IR.

scale = max |x| / 127, at least LEAST, and byte = x / scale, rounded half to even; of a row with NaN or infinity the
scale is NaN. Bytes lie as words of weights want them: four neighbours, or, for int4, the even ones of eight and then
the odd ones. What they add up to is kept by group.
"""

from __future__ import annotations

from llvmlite import ir

from ...jit.ir.vector import ELEMENT, I32, I64, Lanes, in_blocks, loop
from ...quantized.layout import BYTES, WIDTH
from .kernel import opened

LEAST = 2.0**-126
ROUND = 1.5 * 2.0**23  # the sum with it has no bits behind the point
INFINITY = 0x7F800000  # its bits; those of NaN are more


def define(dtype: str):
    """(name, what defines the function) for weights of that dtype."""
    return f"linear_q_rows_{dtype}", lambda module, name: _function(module, name, dtype)


def _function(module, name, dtype) -> None:
    b, f, task = opened(module, name)
    first, end = (b.udiv(b.mul(t, f["rows"]), f["tasks"]) for t in (task, b.add(task, I64(1))))

    def row(index, _):
        _row(b, f, b.add(first, index), dtype)
        return []

    loop(b, b.sub(end, first), [], row)
    b.ret_void()


def _row(b, f, row, dtype) -> None:
    numbers, integers, bytes_ = (Lanes(b, kind, WIDTH) for kind in ("float32", "int32", "int8"))

    def start(word, kind, step):
        return numbers.at(b.inttoptr(f[word], ELEMENT[kind].as_pointer()), b.mul(row, step))

    x = start("source", "float32", f["k"])
    scale, finite = _scale(b, numbers, integers, b.bitcast(x, I32.as_pointer()), f["k"])
    b.store(b.select(finite, scale, ir.Constant(scale.type, float("nan"))), start("scales", "float32", I64(1)))
    steps, some = numbers.splat(scale), integers.splat(b.sext(finite, I32))
    shift = ir.Constant(numbers.type, [ROUND] * WIDTH)
    target = start("x", "int8", b.mul(f["stride"], I64(BYTES)))
    pairs = [8 * i + 2 * j + odd for i in range(2) for odd in range(2) for j in range(4)]
    order = ir.Constant(ir.VectorType(I32, WIDTH), pairs if dtype == "int4" else list(range(WIDTH)))

    def group(g, _):
        begin = b.mul(g, f["group"])
        left_over = b.sub(f["k"], begin)
        count = b.select(b.icmp_signed("<", left_over, f["group"]), left_over, f["group"])

        def block(index, sums, left=None):
            at = b.add(begin, b.mul(index, I64(WIDTH)))
            mask = None if left is None else integers.mask(left)
            bits = b.and_(integers.load(numbers.at(x, at), mask), some)
            value = b.fdiv(b.bitcast(bits, numbers.type), steps)
            value = b.fptosi(b.fsub(b.fadd(value, shift), shift), integers.type)
            small = b.trunc(value, bytes_.type)
            bytes_.store(b.shuffle_vector(small, small, order), bytes_.at(target, at))
            return [b.add(sums[0], value)]

        (sums,) = in_blocks(b, count, WIDTH, [integers.zero], block)
        place = integers.at(start("sums", "int32", f["groups"]), g)
        b.store(integers._call(f"llvm.vector.reduce.add.v{WIDTH}i32", I32, sums), place)
        return []

    loop(b, f["groups"], [], group)


def _scale(b, numbers, integers, x, k):
    """A row's scale, and whether it has one: numbers without their signs are in the order of their bits."""
    sign = ir.Constant(integers.type, [(1 << 31) - 1] * WIDTH)

    def block(index, most, left=None):
        mask = None if left is None else integers.mask(left)
        bits = b.and_(integers.load(integers.at(x, b.mul(index, I64(WIDTH))), mask), sign)
        return [b.select(b.icmp_signed(">", bits, most[0]), bits, most[0])]

    (most,) = in_blocks(b, k, WIDTH, [integers.zero], block)
    most = integers._call(f"llvm.vector.reduce.umax.v{WIDTH}i32", I32, most)
    one = numbers.element
    scale, least = b.fdiv(b.bitcast(most, one), ir.Constant(one, 127.0)), ir.Constant(one, LEAST)
    scale = b.select(b.fcmp_ordered("<", scale, least), least, scale)
    return scale, b.icmp_unsigned("<", most, I32(INFINITY))
