"""Numbers from one dtype to another, one or lane by lane, as IR: what the target has an instruction for, and the rest.

Vectors of float16 and bfloat16 are held as their bits (int16), of bool as bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from ..disk.levels import target
from .vector import ELEMENT, SIZE, Lanes

UNSIGNED = {"bool", "uint8"}


def _vector(element, like) -> ir.Type:
    """A vector of as many lanes; of a single number, the element."""
    return ir.VectorType(element, like.type.count) if isinstance(like.type, ir.VectorType) else element


def _constant(like, value):
    """The value in every lane of what is like that one."""
    kind = like.type
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def has_halves() -> bool:
    """Whether the target converts float16 by itself; elsewhere LLVM would call a library for every number."""
    triple, _, features = target()
    return bool({"f16c", "avx512f"} & features) or triple.startswith(("aarch64", "arm64"))


def widen(builder, value, stored: str, want: str):
    """A vector as it lies in memory -> one of dtype `want`, which holds every value of `stored` but int64's."""
    kind = _vector(ELEMENT[want], value)
    if stored == want:
        return value
    if stored == "float32":
        return builder.fpext(value, kind)
    if stored in ("float16", "bfloat16") and want == "float64":
        return widen(builder, widen(builder, value, stored, "float32"), "float32", want)
    if stored == "bfloat16":
        bits = builder.zext(value, _vector(ir.IntType(32), value))
        return builder.bitcast(builder.shl(bits, _constant(bits, 16)), kind)
    if stored == "float16":
        return _from_half(builder, value, kind)
    if stored == "bool":
        value = builder.icmp_unsigned("!=", value, _constant(value, 0))
    if want in SIZE:
        return (builder.uitofp if stored in UNSIGNED else builder.sitofp)(value, kind)
    return (builder.zext if stored in UNSIGNED else builder.sext)(value, kind)


@dataclass(frozen=True)
class Widened(Lanes):
    """Vectors of elements as they lie in memory, which a load makes numbers of dtype `want`."""

    want: str = ""

    def load(self, address, mask=None):
        return widen(self.builder, super().load(address, mask), self.dtype, self.want)


def narrow(builder, value, have: str, out: str):
    """A vector of dtype `have` -> one as `out` lies in memory, rounded once, integers modulo 2**bits."""
    kind = _vector(ELEMENT[out], value)
    if have == out:
        return value
    if out == "bool":
        return builder.zext(builder.icmp_unsigned("!=", value, _constant(value, 0)), kind)
    if out == "bfloat16":
        return _to_bfloat(builder, value, kind)
    if out == "float16":
        return _to_half(builder, value, kind)
    return builder.trunc(value, kind)


def _to_bfloat(builder, value, kind):
    """Round to nearest even on the bits; NaN stays NaN. (vcvtneps2bf16 would flush subnormals.)"""
    bits = builder.bitcast(value, _vector(ir.IntType(32), value))
    last = builder.and_(builder.lshr(bits, _constant(bits, 16)), _constant(bits, 1))
    rounded = builder.add(bits, builder.add(last, _constant(bits, 0x7FFF)))
    quiet = builder.or_(bits, _constant(bits, 0x400000))
    result = builder.select(builder.fcmp_unordered("uno", value, value), quiet, rounded)
    return builder.trunc(builder.lshr(result, _constant(bits, 16)), kind)


def _from_half(builder, value, kind):
    if has_halves():
        return builder.fpext(builder.bitcast(value, _vector(ir.HalfType(), value)), kind)
    # The exponent's bias is mended by a product, which is exact and makes subnormals normal.
    bits = builder.zext(value, _vector(ir.IntType(32), value))
    size = builder.shl(builder.and_(bits, _constant(bits, 0x7FFF)), _constant(bits, 13))
    scaled = builder.bitcast(size, kind)
    scaled = builder.fmul(scaled, _constant(scaled, 2.0**112))
    special = builder.icmp_unsigned(">=", size, _constant(bits, 0x7C00 << 13))
    whole = builder.select(special, builder.or_(size, _constant(bits, 0x7F800000)), builder.bitcast(scaled, bits.type))
    sign = builder.shl(builder.and_(bits, _constant(bits, 0x8000)), _constant(bits, 16))
    return builder.bitcast(builder.or_(whole, sign), kind)


def _to_half(builder, value, kind):
    if has_halves():
        return builder.bitcast(builder.fptrunc(value, _vector(ir.HalfType(), value)), kind)
    bits = builder.bitcast(value, _vector(ir.IntType(32), value))
    sign, size = builder.and_(bits, _constant(bits, 1 << 31)), builder.and_(bits, _constant(bits, (1 << 31) - 1))
    # Subnormal halves: the sum with 1/2 leaves their 10 bits, rounded, in the low end.
    small = builder.fadd(builder.bitcast(size, value.type), _constant(value, 0.5))
    small = builder.sub(builder.bitcast(small, bits.type), _constant(bits, 0x3F000000))
    odd = builder.and_(builder.lshr(size, _constant(bits, 13)), _constant(bits, 1))
    usual = builder.add(builder.add(size, odd), _constant(bits, 0xFFF - (112 << 23)))
    usual = builder.lshr(usual, _constant(bits, 13))
    half = builder.select(builder.icmp_unsigned("<", size, _constant(bits, 113 << 23)), small, usual)
    huge = builder.icmp_unsigned(">=", size, _constant(bits, 0x477FF000))  # 65520 and up round to infinity
    half = builder.select(huge, _constant(bits, 0x7C00), half)
    half = builder.select(builder.icmp_unsigned(">", size, _constant(bits, 0x7F800000)), _constant(bits, 0x7E00), half)
    return builder.trunc(builder.or_(half, builder.lshr(sign, _constant(bits, 16))), kind)
