"""sin, cos, tan and their inverses as plain scalar functions, like those of transcendental.py, at most 4 ulp off.

x = k*(pi/2) + r, |r| <= pi/4: `*_plain` reduces arguments below 2**20 so, by pi/2 in three parts, and says whether this
one was; beyond, which vectors leave, sin, cos and tan are the C library's, right for any size. Errors of float32 are
those of every 1024th argument.
"""

from __future__ import annotations

import math

import numpy as np

from .coefficients import COS, SIN
from .real import F32, F64, Real, bits, fma, generic, helper, kernel, polynomial
from .transcendental import SHIFT, atan2

HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
TWO_OVER_PI = 0.6366197723675814
LIMIT = 2.0**20
_shift = SHIFT[F64]


@generic
def sin(x):
    """The sine. Largest errors found: 0.56 and 0.77 ulp."""


@generic
def sin_plain(x):
    """(sin(x), True), or (anything, False) of arguments that are too large."""


@generic
def cos(x):
    """The cosine. Largest errors found: 0.57 and 0.77 ulp."""


@generic
def cos_plain(x):
    """(cos(x), True), or (anything, False) of arguments that are too large."""


@generic
def tan(x):
    """The tangent. Largest errors found: 0.92 and 1.99 ulp."""


@generic
def tan_plain(x):
    """(tan(x), True), or (anything, False) of arguments that are too large."""


@generic
def asin(x):
    """The angle from -pi/2 to pi/2 of this sine; NaN beyond 1. Largest errors found: 1.81 and 2.31 ulp."""


@generic
def acos(x):
    """The angle from 0 to pi of this cosine; NaN beyond 1. Largest errors found: 1.54 and 1.98 ulp."""


@generic
def atan(x):
    """The angle from -pi/2 to pi/2 of this tangent. Largest errors found: 1.31 and 1.55 ulp."""


_sin_f64, _cos_f64 = polynomial(F64, SIN[F64]), polynomial(F64, COS[F64])
_sin_f32, _cos_f32 = polynomial(F64, SIN[F32]), polynomial(F64, COS[F32])


@helper
def both_f64(x):
    """(sin(r), cos(r), k plus the shift) of a float64 below the limit."""
    shifted = fma(x, TWO_OVER_PI, _shift)
    k = shifted - _shift
    a = fma(-k, HALF_PI[0], x)  # exact
    p = k * HALF_PI[1]
    r = a - p
    back = r - a
    rest = (a - (r - back)) - (p + back)  # what rounding r left
    rest = rest - fma(k, HALF_PI[2], fma(k, HALF_PI[1], -p))
    z = r * r
    w = 1.0 - 0.5 * z
    sine = r + fma(r * z, _sin_f64(z), rest * w)
    cosine = w + (((1.0 - w) - 0.5 * z) + fma(z * z, _cos_f64(z), -r * rest))
    return sine, cosine, shifted


@helper
def both_f32(x):
    """(sin(r), cos(r), k plus the shift) of a float64 that is a float32 below the limit, as exact as float32 needs."""
    shifted = fma(x, TWO_OVER_PI, _shift)
    k = shifted - _shift
    r = fma(-k, HALF_PI[1], fma(-k, HALF_PI[0], x))
    z = r * r
    return fma(r * z, _sin_f32(z), r), fma(z * z, _cos_f32(z), 1.0 - 0.5 * z), shifted


def _define(kind: Real, both):
    real = kind.real
    zero, one, limit = real(0), real(1), real(LIMIT)

    @kernel(sin_plain, kind)
    def _sin_plain(x):
        sine, cosine, shifted = both(np.float64(x))
        k = bits(shifted)
        value = cosine if k & 1 else sine
        return x if x == zero else real(-value if k & 2 else value), abs(x) < limit

    @kernel(cos_plain, kind)
    def _cos_plain(x):
        sine, cosine, shifted = both(np.float64(x))
        k = bits(shifted)
        value = sine if k & 1 else cosine
        return real(-value if (k + 1) & 2 else value), abs(x) < limit

    @kernel(tan_plain, kind)
    def _tan_plain(x):
        sine, cosine, shifted = both(np.float64(x))
        odd = bits(shifted) & 1
        return x if x == zero else real(-(cosine / sine) if odd else sine / cosine), abs(x) < limit

    @kernel(sin, kind)
    def _sin(x):
        value, small = sin_plain(x)
        return value if small else real(math.sin(x))

    @kernel(cos, kind)
    def _cos(x):
        value, small = cos_plain(x)
        return value if small else real(math.cos(x))

    @kernel(tan, kind)
    def _tan(x):
        value, small = tan_plain(x)
        return value if small else real(math.tan(x))

    @kernel(asin, kind)
    def _asin(x):
        # Zeros keep their sign in atan2. By a choice of x itself where it is 0, LLVM 22 lost the angle of bfloat16 in
        # vectors of 512 bits: its masked vpternlog takes the bits of x where those of the sign belong (2026-11).
        return atan2(x, real(math.sqrt((one - x) * (one + x))))

    @kernel(acos, kind)
    def _acos(x):
        return atan2(real(math.sqrt((one - x) * (one + x))), x)

    @kernel(atan, kind)
    def _atan(x):
        return atan2(x, one)


_define(F32, both_f32)
_define(F64, both_f64)
