"""The floating-point status flags of the calling thread, as NumPy reads them after a loop."""

from __future__ import annotations

import platform

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .vector import I32, I64

X86 = platform.machine().lower() in ("x86_64", "amd64", "i686", "x86")
# Their bits: of MXCSR, which are also those of fenv.h there, and of 64-bit Arm.
INVALID, DIVIDE, OVERFLOW, UNDERFLOW = (1, 4, 8, 16) if X86 else (1, 2, 4, 8)
SERIOUS = INVALID | DIVIDE | OVERFLOW
FLAGS = 0x3F if X86 else 0x1F


def _control(builder, name, place):
    kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer()])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{name}")
    builder.call(function, [builder.bitcast(place, ir.IntType(8).as_pointer())])


def _fenv(builder, name, flags):
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(I32, [I32]), name)
    return builder.call(function, [flags])


def _taken(builder):
    found = _fenv(builder, "fetestexcept", I32(FLAGS))
    _fenv(builder, "feclearexcept", I32(FLAGS))
    return builder.zext(found, I64)


@intrinsic
def taken(typing):
    """The flags that are up, as one number; they are down now."""

    def emit(context, builder, signature, args):
        if not X86:
            return _taken(builder)
        place = cgutils.alloca_once(builder, I32)
        _control(builder, "stmxcsr", place)
        state = builder.load(place)
        found = builder.and_(state, I32(FLAGS))
        with builder.if_then(builder.icmp_unsigned("!=", found, I32(0))):
            builder.store(builder.and_(state, I32(~FLAGS)), place)
            _control(builder, "ldmxcsr", place)
        return builder.zext(found, I64)

    return types.int64(), emit


@intrinsic
def taken_everywhere(typing):
    """The same of the x87 unit, too, which NumPy also reads, and by which functions of libm put some up: 50 ns."""
    return types.int64(), lambda context, builder, signature, args: _taken(builder)


@intrinsic
def given(typing, flags):
    """Put up these flags, beside those that are."""

    def emit(context, builder, signature, args):
        more = builder.trunc(args[0], I32)
        with builder.if_then(builder.icmp_unsigned("!=", more, I32(0))):
            if X86:
                place = cgutils.alloca_once(builder, I32)
                _control(builder, "stmxcsr", place)
                builder.store(builder.or_(builder.load(place), more), place)
                _control(builder, "ldmxcsr", place)
            else:
                _fenv(builder, "feraiseexcept", more)
        return context.get_dummy_value()

    return types.void(types.int64), emit
