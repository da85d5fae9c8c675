"""Floats: each operation is rounded once, as its opcode says, also where a GPU only comes near the result."""

from __future__ import annotations

import ctypes

import numpy as np
from numba import types, vectorize
from numba.core.typing import signature
from numba.extending import intrinsic

from .instructions import instruction
from .operands import TYPES

REAL = {}  # what arithmetic.py and this file share: name -> make(instruction, operands)


@intrinsic
def _fma(context, a, b, c):
    def build(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return signature(a, a, a, a), build


@vectorize([types.float32(*[types.float32] * 3), types.float64(*[types.float64] * 3)])
def fma(a, b, c):
    """a*b + c, rounded once."""
    return _fma(a, b, c)


def odd(a, b, c):
    """float32 a*b + c as float64, rounded to odd: what rounding it again in any way makes right."""
    product, c = np.broadcast_arrays(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64))
    total = product + c
    back = total - product
    error = (product - (total - back)) + (c - back)
    bits = total.view(np.int64).copy()
    inexact = (abs(error) > 0) & (bits & 1 == 0)
    return (bits + np.where(inexact, np.where((error > 0) == (total > 0), 1, -1), 0)).view(np.float64)


def narrowed(x, mode: str):
    """float64 -> float32 in a rounding mode: rn, rz, rm (down), rp (up)."""
    near = x.astype(np.float32)
    over = {"rz": abs(near) > abs(x), "rm": near > x, "rp": near < x, "rn": np.zeros(x.shape, bool)}[mode]
    toward = {"rz": np.float32(0), "rm": np.float32(-np.inf), "rp": np.float32(np.inf), "rn": near}[mode]
    return np.where(over, np.nextafter(near, toward), near)


def flushed(x):
    """Subnormal numbers as zeros of their sign."""
    return np.where(abs(x) < np.finfo(x.dtype).tiny, np.copysign(x.dtype.type(0), x), x)


def unit(x):
    """Between 0 and 1; of NaN 0."""
    return np.where(x > 0, np.fmin(x, x.dtype.type(1)), x.dtype.type(0))


def smallest(x, y):
    """-0 is less than +0; NaN only of two."""
    return np.where(x == y, np.where(np.signbit(x), x, y), np.fmin(x, y))


def largest(x, y):
    return -smallest(-x, -y)


def real(name: str, function, count: int):
    """A float instruction: in f16 and bf16 by float32, whose 24 bits are enough to round twice (24 >= 2*11 + 2)."""

    def make(each, operands):
        kind, parts = each.parts[-1], each.parts
        put, tokens = operands.write(each.operands[0]), each.operands[1 : count + 1]
        apply = function
        if kind == "f32" and (mode := next((m for m in ("rz", "rm", "rp") if m in parts), None)):
            apply = directed(name, mode)
        if "NaN" in parts:
            apply = lambda *given: np.where(np.any(np.isnan(given), 0), np.float32(np.nan), function(*given))  # noqa: E731
        packed, half = kind.endswith("x2"), kind.startswith(("f16", "bf16"))
        read = [operands.read(token, "b32" if packed else "b16" if half else kind) for token in tokens]
        if half:
            return halves(put, read, apply if name != "fma" else half_fma, kind)
        if "ftz" in parts:
            inner = apply
            apply = lambda *given: flushed(inner(*map(flushed, given)))  # noqa: E731
        if "sat" in parts:
            unsaturated = apply
            apply = lambda *given: unit(unsaturated(*given))  # noqa: E731
        dtype = TYPES[kind]
        return lambda threads, lanes: put(
            threads, lanes, np.asarray(apply(*(x(threads, lanes) for x in read))).astype(dtype, copy=False)
        )

    REAL[name] = make
    return make


def directed(name: str, mode: str):
    one = np.ones(1, np.float32)
    exact = {"fma": odd, "add": lambda x, y: odd(x, one, y), "sub": lambda x, y: odd(x, one, -y),
             "mul": lambda x, y: x.astype(np.float64) * y.astype(np.float64)}  # fmt: skip
    if name in exact:
        return lambda *given: narrowed(exact[name](*given), mode)
    raise NotImplementedError(f"{name}.{mode}")


def half_fma(x, y, z):
    """Of halves in float32: the product is exact in float64, and rounded to odd the sum rounds once more."""
    return odd(x, y, z)


def halves(put, read, apply, kind: str):
    """Elements of 16 bits, one or two in a word."""

    def run(threads, lanes):
        given = [unpacked(np.ascontiguousarray(threads.each(x(threads, lanes), lanes)), kind) for x in read]
        result = packed16(np.asarray(apply(*given)), kind)
        put(threads, lanes, result.view(np.uint32) if kind.endswith("x2") else result)

    return run


def unpacked(words, kind: str):
    """16-bit floats as float32, in the order of their places."""
    halves = words.view(np.uint16)
    if kind.startswith("bf16"):
        return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return halves.view(np.float16).astype(np.float32)


def packed16(x, kind: str):
    """float32 or float64 as bits of f16 or bf16, to the nearest, ties to even."""
    if kind.startswith("f16"):
        return x.astype(np.float16).view(np.uint16)
    if x.dtype == np.float64:  # to odd in float32 first, which has more than two bits beyond bfloat16's
        near = x.astype(np.float32)
        bits, inexact = near.view(np.int32), (near != x) & ~np.isnan(x) & np.isfinite(near)
        down = np.where(inexact & (abs(near.astype(np.float64)) > abs(x)), bits - 1, bits)
        x = np.where(inexact, down | 1, bits).astype(np.int32).view(np.float32)
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FFF), rounded)


for _name, _function, _count in (
    ("add", np.add, 2), ("sub", np.subtract, 2), ("min", smallest, 2), ("max", largest, 2),
    ("neg", np.negative, 1), ("abs", np.abs, 1), ("mul", np.multiply, 2), ("div", np.divide, 2), ("fma", fma, 3),
):  # fmt: skip
    real(_name, _function, _count)
instruction("fma")(REAL["fma"])


def libm(name: str):
    """A function of the C library in float64, for each element."""
    function = getattr(ctypes.CDLL(None), name)
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
    return lambda x: np.array([function(each) for each in x.astype(np.float64)]).astype(x.dtype)


for _name, _function in (
    ("rcp", lambda x: x.dtype.type(1) / x), ("sqrt", np.sqrt), ("ex2", libm("exp2")), ("lg2", libm("log2")),
    ("rsqrt", lambda x: (1 / np.sqrt(x.astype(np.float64))).astype(x.dtype)),
    ("sin", libm("sin")), ("cos", libm("cos")), ("tanh", libm("tanh")),
):  # fmt: skip
    instruction(_name)(real(_name, _function, 1))


@instruction("copysign")
def copysign(each, operands):
    """The second operand with the sign of the first."""
    kind = each.parts[-1]
    put, sign, size = operands.write(each.operands[0]), *(operands.read(x, kind) for x in each.operands[1:])
    return lambda threads, lanes: put(threads, lanes, np.copysign(size(threads, lanes), sign(threads, lanes)))


@instruction("testp")
def tested(each, operands):
    tests = {"finite": np.isfinite, "infinite": np.isinf, "number": lambda x: ~np.isnan(x), "notanumber": np.isnan,
             "normal": lambda x: np.isfinite(x) & (abs(x) >= np.finfo(x.dtype).tiny),
             "subnormal": lambda x: (x != 0) & (abs(x) < np.finfo(x.dtype).tiny)}  # fmt: skip
    put, x, test = (
        operands.write(each.operands[0]),
        operands.read(each.operands[1], each.parts[-1]),
        tests[each.parts[1]],
    )
    return lambda threads, lanes: put(threads, lanes, test(x(threads, lanes)))
