"""pow as a plain scalar function, like those of transcendental.py: the exponential of a logarithm in two parts."""

from __future__ import annotations

import math

import numpy as np

from .coefficients import EXP2, LOG2_FIRST, LOG2_FIVE_FOURTHS, LOG2_REST, LOG2_THREE_FOURTHS, LOG_REST
from .real import F32, F64, Real, bits, floor, fma, generic, helper, kernel, number, polynomial
from .transcendental import LN2, SHIFT, exp_of, exp_sum, scaled_f32


@generic
def pow(x, y):
    """x**y; of y = 1, 2, 3, -1 and 1/2 it is x, x*x, x*x*x, 1/x and sqrt(x). Largest errors found: 1.34 and 0.97 ulp,
    of x*x*x 1.29."""


@generic
def pow_plain(x, y):
    """(x**y, True), or (anything, False) where pow has to look for special cases, which are half of its work."""


_root_f32 = bits(np.float32(0.5**0.5))
_log2_high, _log2_low = np.float32(LOG2_FIRST[0]), np.float32(LOG2_FIRST[1])
_log2_rest, _exp2_f32 = polynomial(F32, LOG2_REST), polynomial(F32, EXP2[F32])
_f32 = np.float32
_shift_f32 = _f32(SHIFT[F32])
_large, _large_low = map(_f32, LOG2_THREE_FOURTHS)
_small, _small_low = map(_f32, LOG2_FIVE_FOURTHS)


@helper
def log2_parts(x, less):
    """log2(x) - less, a whole number, in two parts, to 2**-31 of itself, for a normal x > 0.

    x = 2**k * m, m in [sqrt(1/2), sqrt(2)], is 2**k * (1 + f) / r for an r of 0.75, 1 or 1.25, which leaves |f| < 0.16
    exactly; the nearer x is to 1, the less, for the larger is y. With s = f / (2 + f), log2(1 + f) =
    s * (2 / log(2) + z*(...)), z = s*s.
    """
    word = bits(x)
    n = np.int32(np.int32(word - _root_f32) >> 23)
    m = number(np.int32(word - np.int32(n << 23)))
    k = _f32(n) - less
    large, small = m > _f32(1.155), m < _f32(0.89)
    f = fma(m, _f32(0.75) if large else _f32(1.25) if small else _f32(1), _f32(-1))
    k = k + (_large if large else _small if small else _f32(0))
    k_low = _large_low if large else _small_low if small else _f32(0)
    inverse = _f32(1) / (_f32(2) + f)
    s = f * inverse
    s_low = fma(-s, f, fma(_f32(-2), s, f)) * inverse  # f - 2*s is exact
    z = s * s
    b = s * _log2_high
    b_low = fma(s_low, _log2_high, fma(s, fma(z, _log2_rest(z), _log2_low), fma(s, _log2_high, -b)))
    high = k + b
    return high, (k - high) + b + (k_low + b_low)


@helper
def exp2_of(y, high, low):
    """(2**r, n plus SHIFT, n + r), where y * (high + low) = n + r, n is whole and |r| <= 1/2."""
    power = fma(y, high, y * low)
    shifted = power + _shift_f32
    r = fma(y, low, fma(y, high, _shift_f32 - shifted))
    return fma(r, _exp2_f32(r), _f32(1)), shifted, power


@helper
def power_f32(x, y):
    """x**y for x >= 0: log2(x) in two parts, and 2**p of their multiples."""
    tiny = x < _f32(2.0**-126)
    high, low = log2_parts(x * _f32(2.0**24) if tiny else x, _f32(24) if tiny else _f32(0))
    high = _f32(-np.inf) if x == _f32(0) else high if x < _f32(np.inf) else x
    value, shifted, _ = exp2_of(y, high, low)
    value, power = scaled_f32(value, shifted), y * high
    value = _f32(0) if power < _f32(-151) else _f32(np.inf) if power > _f32(129) else value
    return _f32(1) if y == _f32(0) or x == _f32(1) else value


@helper
def plain_power_f32(x, y):
    """(x**y, whether that is what power_f32 gives): for normal x > 0 and results away from the ends."""
    high, low = log2_parts(x, _f32(0))
    value, shifted, power = exp2_of(y, high, low)
    value = number(np.int32(bits(value) + np.int32(bits(shifted) << 23)))
    return value, (x >= _f32(2.0**-126)) & (x < _f32(np.inf)) & (abs(power) < _f32(125))


_root = bits(np.float64(0.5**0.5))
_ln2_high, _ln2_low = LN2[F64]
_third, _third_rest = 2 / 3, 3.700743415417188e-17
_power_series = polynomial(F64, LOG_REST)


@helper
def log_parts(x, less):
    """log(x) - less * log(2), a whole `less`, in two parts, to 2**-65 of itself, for a normal x > 0.

    With s = f / (2 + f), log(1 + f) = 2s + s*v, v = z*(2/3 + z*(2/5 + ...)), z = s*s; each in two parts up to 2/3, for
    what comes after it is at most 2**-12 of the whole.
    """
    word = bits(x)
    n = (word - _root) >> 52
    f = number(word - (n << 52)) - 1.0
    k = np.float64(n) - less
    d = 2.0 + f
    inverse = 1.0 / d
    s = f * inverse
    s_low = (fma(-s, d, f) - s * (f - (d - 2.0))) * inverse
    z = s * s
    z_low = fma(s, s, -z) + 2.0 * s * s_low
    t = z * _power_series(z)
    w = _third + t
    w_low = t - (w - _third) + _third_rest
    v = z * w
    v_low = fma(z, w, -v) + fma(z, w_low, z_low * w)
    a = s * v
    a_low = fma(s, v, -a) + fma(s, v_low, s_low * v)
    b = 2.0 * s + a
    b_low = a - (b - 2.0 * s) + (2.0 * s_low + a_low)
    c = k * _ln2_high
    high = c + b
    return high, (c - high) + b + fma(k, _ln2_low, b_low)


@helper
def power_f64(x, y):
    """x**y for x >= 0: the logarithm in two parts, and the exponential of their multiples."""
    tiny = x < 2.0**-1022
    high, low = log_parts(x * 2.0**54 if tiny else x, 54.0 if tiny else 0.0)
    high = -np.inf if x == 0.0 else high if x < np.inf else x
    product = y * high
    rest = fma(y, low, fma(y, high, -product))
    value = exp_sum(product, rest if abs(product) < 800.0 else 0.0)
    return 1.0 if y == 0.0 or x == 1.0 else value


@helper
def plain_power_f64(x, y):
    """(x**y, whether that is what power_f64 gives): for normal x > 0 and results away from the ends."""
    high, low = log_parts(x, 0.0)
    product = y * high
    value, shifted = exp_of(product, fma(y, low, fma(y, high, -product)))
    value = number(bits(value) + (bits(shifted) << 52))
    return value, (x >= 2.0**-1022) & (x < np.inf) & (abs(product) < 700.0)


def _powers(kind: Real, magnitude, plain_magnitude):
    one, two, three, half, nan = map(kind.real, (1, 2, 3, 0.5, np.nan))
    most, least = bits(kind.real(-np.inf)), bits(kind.real(-0.0))

    @kernel(pow, kind)
    def _pow(x, y):
        value = magnitude(abs(x), y)
        whole = floor(y) == y
        odd = whole and floor(y * half) != y * half
        value = -value if bits(x) < 0 and odd else value
        value = x if y == one else x * x if y == two else x * x * x if y == three else one / x if y == -one else value
        value = kind.real(math.sqrt(abs(x))) if y == half else value
        negative = least < bits(x) < most  # -inf < x < 0; LLVM would classify floats in nine steps
        return nan if negative and not whole else value

    @kernel(pow_plain, kind)
    def _pow_plain(x, y):
        value, plain = plain_magnitude(x, y)
        plain = plain & (y != half) & (y != -one)  # a root and an inverse for all would take longer
        return x if y == one else x * x if y == two else x * x * x if y == three else value, plain


_powers(F32, power_f32, plain_power_f32)
_powers(F64, power_f64, plain_power_f64)
