"""Building blocks of scalar functions over the bits of float32 and float64: fma, polynomials, one body for both.

Plain Python throughout: called as it stands (on NumPy scalars), compiled by `nbkernels.jit.compile.overloads` and by
the CUDA room. A *generic* function is a name; what it computes are its kernels, one for each dtype.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import NamedTuple

import numpy as np

# C99 demands of fma and fmaf one rounding of the exact a*b + c; Python has math.fma from 3.13 on, for doubles only.
_libm = ctypes.CDLL("ucrtbase" if os.name == "nt" else None)
_fused = {np.float32: (_libm.fmaf, ctypes.c_float), np.float64: (_libm.fma, ctypes.c_double)}
for _function, _real in _fused.values():
    _function.restype, _function.argtypes = _real, (_real, _real, _real)

KERNELS = {}  # a generic function -> {dtype: its kernel}
HELPERS = []  # the other plain functions that kernels call


def fma(a, b, c):
    """a*b + c rounded once, of three numbers of one float dtype.

    >>> fma(np.float32(1 + 2**-12), np.float32(1 - 2**-12), np.float32(-1)) * 2**24
    np.float32(-1.0)
    """
    real = np.float32 if type(c) is np.float32 else np.float64
    return real(_fused[real][0](a, b, c))


def bits(x):
    """The bits of a float as an integer of its width.

    >>> hex(bits(np.float32(1)))
    '0x3f800000'
    """
    return x.view({np.float32: np.int32, np.float64: np.int64}[type(x)])


def number(word):
    """The float whose bits are those of an int32 or int64.

    >>> number(bits(np.float64(-0.5)))
    np.float64(-0.5)
    """
    return word.view({np.int32: np.float32, np.int64: np.float64}[type(word)])


def floor(x):
    """The largest whole number up to a float, as a float (math.floor gives an int)."""
    return np.floor(x)


def shift_left(x, y):
    """x << y of two unsigned words of one dtype, y less than their bits: as wide as they are on CPUs, where Numba's own
    takes 64 bits."""
    return x << y


def shift_right(x, y):
    """x >> y, likewise."""
    return x >> y


class Real(NamedTuple):
    """A binary floating-point type."""

    real: type
    whole: type  # integers of the same width
    fraction: int  # bits
    bias: int  # of the exponent


F32 = Real(np.float32, np.int32, 23, 127)
F64 = Real(np.float64, np.int64, 52, 1023)


def helper(function):
    """Enter a plain function among those that kernels call."""
    HELPERS.append(function)
    return function


def generic(function):
    """A function of floats by its name and documentation: its kernels take floats of one type, and numbers of
    others are float64 to it."""

    @functools.wraps(function)
    def call(*args):
        body = KERNELS[call].get(type(args[-1]).__name__) if len({type(x) for x in args}) == 1 else None
        return body(*args) if body else call(*map(np.float64, args))

    KERNELS[call] = {}
    return call


def kernel(function, kind: Real):
    """Enter the decorated plain function as the kernel of a generic one."""

    def enter(body):
        body.__name__ = body.__qualname__ = f"{function.__name__}_{kind.real.__name__}"
        KERNELS[function][kind.real.__name__] = body
        return body

    return enter


def estrin(kind: Real, coefficients):
    """x -> c0 + c1*x + ... by Estrin's scheme: pairs, pairs of pairs and so on, for functions bound by latency.

    >>> estrin(F64, (1.0, 2.0, 3.0, 4.0, 5.0))(np.float64(10))
    np.float64(54321.0)
    """
    scope = {f"c{i}": kind.real(c) for i, c in enumerate(coefficients)} | {"fma": fma}
    terms, power, lines = [f"c{i}" for i in range(len(coefficients))], "x", []
    while len(terms) > 1:
        rest = terms[len(terms) // 2 * 2 :]
        terms = [f"fma({odd}, {power}, {even})" for even, odd in zip(terms[::2], terms[1::2])] + rest
        if len(terms) > 1:
            lines.append(f"    {power}x = {power} * {power}\n")
            power += "x"
    exec(f"def parallel(x):\n{''.join(lines)}    return {terms[0]}", scope)
    return helper(scope["parallel"])


def polynomial(kind: Real, coefficients):
    """x -> c0 + c1*x + c2*x**2 + ... by Horner's rule, in fused multiply-adds.

    >>> polynomial(F64, (1.0, 2.0, 3.0))(np.float64(10))
    np.float64(321.0)
    """
    scope = {f"c{i}": kind.real(c) for i, c in enumerate(coefficients)} | {"fma": fma}
    last = len(coefficients) - 1
    text = f"c{last}"
    for i in reversed(range(last)):
        text = f"fma({text}, x, c{i})"
    exec(f"def horner(x):\n    return {text}", scope)
    return helper(scope["horner"])


def dual(x):
    """x as the variable that compiled code differentiates by: see jit/user/dual.py."""
    raise NotImplementedError("a function is differentiated where it is compiled")


def tangent(y):
    """The derivative of y, what was computed of a `dual`, by that."""
    raise NotImplementedError("a function is differentiated where it is compiled")
