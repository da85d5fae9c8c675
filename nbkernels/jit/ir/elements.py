"""Elements of every dtype, in LLVM IR: how they lie in memory, what they are computed as, one into another.

A float16 or bfloat16 is computed as a float32 that has been rounded to it. Conversions are NumPy's: one rounding, to
the nearest even; a float64 on its way to float16 passes through a float32 that is rounded to odd, which leaves the last
rounding as if it came from the float64 (24 >= 11 + 2 bits).
"""

from __future__ import annotations

from llvmlite import ir

from ..compile.lazy import types
from .convert import narrow, widen
from .vector import I32, I64

I8, I16 = ir.IntType(8), ir.IntType(16)
F32, F64 = ir.FloatType(), ir.DoubleType()
HALVES = ("float16", "bfloat16")


def number(dtype: str) -> types.Type:
    """What an element is computed as."""
    return types.boolean if dtype == "bool" else types.float32 if dtype in HALVES else getattr(types, dtype)


def memory(context, dtype: str) -> ir.Type:
    """What an element is in memory."""
    return I16 if dtype in HALVES else context.get_data_type(number(dtype))


def width(dtype: str) -> int:
    """Bytes of an element."""
    return 1 if dtype == "bool" else 2 if dtype in HALVES else number(dtype).bitwidth // 8


def from_memory(context, builder, dtype: str, bits):
    """An element as it is computed; a bool is whatever is not zero."""
    if dtype == "bool":
        return builder.icmp_unsigned("!=", bits, bits.type(0))
    if dtype in HALVES:
        return widen(builder, bits, dtype, "float32")
    return context.data_model_manager[number(dtype)].from_data(builder, bits)


def to_memory(context, builder, dtype: str, value):
    """The bits of an element that has its dtype already."""
    if dtype in HALVES:
        return narrow(builder, value, "float32", dtype)
    return context.get_value_as_data(builder, number(dtype), value)


def cast(context, builder, value, source: str, dtype: str):
    """An element of dtype `source` as one of `dtype`."""
    if source == dtype:
        return value
    kind, wanted = number(source), number(dtype)
    if isinstance(kind, types.Complex) and not isinstance(wanted, types.Complex | types.Boolean):
        value, kind = context.make_complex(builder, kind, value=value).real, kind.underlying_float
    if dtype == "float16" and kind == types.float64:
        value, kind = _odd(builder, value), types.float32
    elif isinstance(kind, types.Float) and isinstance(wanted, types.Integer) and wanted.bitwidth < 64:
        value, kind = context.cast(builder, value, kind, types.int64), types.int64
    elif isinstance(kind, types.Float) and wanted == types.uint64:
        return _unsigned(builder, value)
    value = context.cast(builder, value, kind, wanted)
    if dtype in HALVES:
        return widen(builder, narrow(builder, value, "float32", dtype), dtype, "float32")
    return value


def _unsigned(builder, value):
    """A float as a uint64: below 2**63 as an int64 is, from there on that of its distance. What does not fit is the
    same number in a vector and alone, which LLVM's own conversion leaves open."""
    half = value.type(2.0**63)
    below, above = builder.fptosi(value, I64), builder.fptosi(builder.fsub(value, half), I64)
    return builder.select(builder.fcmp_ordered("<", value, half), below, builder.xor(above, I64(-(1 << 63))))


def _odd(builder, value):
    """A float64 as the float32 next to it towards zero, whose last bit is set if that is not the same number."""
    near = builder.fptrunc(value, F32)
    back, bits = builder.fpext(near, F64), builder.bitcast(near, I32)
    size = [builder.and_(builder.bitcast(v, ir.IntType(64)), ir.IntType(64)((1 << 63) - 1)) for v in (back, value)]
    beyond = builder.zext(builder.icmp_unsigned(">", *size), I32)
    odd = builder.or_(builder.sub(bits, beyond), I32(1))
    return builder.bitcast(builder.select(builder.fcmp_ordered("one", back, value), odd, bits), F32)
