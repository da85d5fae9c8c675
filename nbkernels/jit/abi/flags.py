"""The floating-point state of the calling thread: status flags, as NumPy reads them after a loop, and modes."""

from __future__ import annotations

import contextlib
import ctypes
import platform
import sys

from ..compile.lazy import cgutils, emits
from ..ir.vector import I8, I32, I64, VOID, library

X86 = platform.machine().lower() in ("x86_64", "amd64", "i686", "x86")
ARM = platform.machine().lower() in ("aarch64", "arm64")
# Their bits: of MXCSR, which are also those of fenv.h there, and of 64-bit Arm.
INVALID, DIVIDE, OVERFLOW, UNDERFLOW = (1, 4, 8, 16) if X86 else (1, 2, 4, 8)
SERIOUS = INVALID | DIVIDE | OVERFLOW
FLAGS = 0x3F if X86 else 0x1F


def _control(builder, name, place):
    library(builder, f"llvm.x86.sse.{name}", VOID, builder.bitcast(place, I8.as_pointer()))


def _taken(builder):
    found = library(builder, "fetestexcept", I32, I32(FLAGS))
    library(builder, "feclearexcept", I32, I32(FLAGS))
    return builder.zext(found, I64)


@emits("int64()")
def modes(builder):
    """How the thread computes, as one number: rounding, flush-to-zero, traps. It is MXCSR without its flags, FPCR on
    64-bit Arm, 0 on other processors."""
    if ARM:
        return library(builder, "llvm.aarch64.get.fpcr", I64)
    if not X86:
        return I64(0)
    place = cgutils.alloca_once(builder, I32)
    _control(builder, "stmxcsr", place)
    return builder.zext(builder.and_(builder.load(place), I32(~FLAGS)), I64)


@emits("void(int64)")
def set_modes(builder, modes):
    """Compute from now on as the thread did that `modes` tells of; no flags are up."""
    if ARM:
        library(builder, "llvm.aarch64.set.fpcr", VOID, modes)
    elif X86:
        place = cgutils.alloca_once_value(builder, builder.trunc(modes, I32))
        _control(builder, "ldmxcsr", place)


@contextlib.contextmanager
def default_modes():
    """Round to nearest and keep subnormal numbers in the block, with no help of compiled code: a compiler computes with
    a function's constants, and what it makes of them goes to the cache."""
    if sys.platform not in ("linux", "darwin"):
        yield
        return
    system, before = ctypes.CDLL(None), ctypes.create_string_buffer(256)  # an fenv_t, of at most 64 bytes
    default = (
        ctypes.c_void_p(-1) if sys.platform == "linux" else ctypes.byref(ctypes.c_char.in_dll(system, "_FE_DFL_ENV"))
    )
    system.fegetenv(before)
    system.fesetenv(default)
    try:
        yield
    finally:
        system.fesetenv(before)


@emits("int64()")
def taken(builder):
    """The flags that are up, as one number; they are down now."""
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


@emits("int64()")
def taken_everywhere(builder):
    """The flags that are up, with the x87 unit's, which NumPy reads and parts of libm set; they are down now: 50 ns."""
    return _taken(builder)


@emits("void(int64)")
def given(builder, flags):
    """Put up these flags, beside those that are."""
    more = builder.trunc(flags, I32)
    with builder.if_then(builder.icmp_unsigned("!=", more, I32(0))):
        if X86:
            place = cgutils.alloca_once(builder, I32)
            _control(builder, "stmxcsr", place)
            builder.store(builder.or_(builder.load(place), more), place)
            _control(builder, "ldmxcsr", place)
        else:
            library(builder, "feraiseexcept", I32, more)
