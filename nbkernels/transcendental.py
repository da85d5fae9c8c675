"""exp, log, tanh, erf, pow and their like as plain scalar functions: one definition for every device, fast in loops.

Numba's own are calls of the C library, an element at a time. These are arithmetic without branches, which LLVM
vectorises: exact steps reduce the argument to an interval where a polynomial holds, in fused multiply-adds. So an
element's bits are the same in a vector, in a loop's tail and on a GPU. float32 and float64 have kernels of their own
(integers count as float64), at most 2 ulp off; special values are C99's. No floating-point exception is
promised.

The polynomials are in coefficients.py.
`bench/bench_transcendental.py --ulp` measures errors: each function states the largest in float32 (of all arguments, or
2**27 pairs) and in float64 (of 2**24, erf of 2**17).
"""

from __future__ import annotations

import math

import numpy as np

from .coefficients import (
    ATAN,
    ERF,
    ERFC,
    EXP,
    EXP2,
    LOG,
    LOG1P,
    LOG2_FIRST,
    LOG2_FIVE_FOURTHS,
    LOG2_REST,
    LOG2_THREE_FOURTHS,
    LOG_REST,
    SHORT_EXP,
    TANH,
)
from .real import F32, F64, Real, bits, estrin, floor, fma, generic, helper, kernel, number, polynomial

LOG2E = 1.4426950408889634
# log(2) in two parts: a multiple of 2**-9 or 2**-32, which 11 bits of an exponent multiply exactly, and the rest
LN2 = {F32: (0.693359375, -0.00021219444170128554), F64: (0.6931471803691238, 1.9082149292705877e-10)}
# log(2)**-1 * x + this is a whole number in the last bits
SHIFT = {F32: 12582912.0, F64: 6755399441055744.0}
# Beyond these exp is 0 and infinity, after two roundings or one.
RANGE = {F32: (-104.0, 89.0), F64: (-746.0, 710.0)}


@generic
def exp(x):
    """e**x. Largest errors found: 0.99 and 0.98 ulp."""


@generic
def expm1(x):
    """e**x - 1, accurate near 0. Largest errors found: 1.37 and 1.57 ulp."""


@generic
def log(x):
    """The natural logarithm; -inf of 0, NaN below. Largest errors found: 0.83 and 0.80 ulp."""


@generic
def log1p(x):
    """log(1 + x), accurate near 0. Largest errors found: 0.83 and 0.83 ulp."""


@generic
def tanh(x):
    """The hyperbolic tangent. Largest errors found: 1.33 and 1.30 ulp."""


@generic
def erf(x):
    """The error function, 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x.

    Largest errors found: 1.02 and 1.00 ulp."""


@generic
def pow(x, y):
    """x**y; x**1 and x**2 are x and x*x. Largest errors found: 1.34 and 0.97 ulp."""


@generic
def pow_plain(x, y):
    """(x**y, True), or (anything, False) where pow has to look for special cases, which are half of its work."""


@generic
def atan2(y, x):
    """The angle of the point (x, y), from -pi to pi; zeros' signs tell the sides of the cut.

    Largest errors found: 1.52 and 1.68 ulp."""


@generic
def hypot(x, y):
    """sqrt(x*x + y*y), without overflow on the way. Largest errors found: 0.50 and 0.96 ulp."""


@generic
def logaddexp(x, y):
    """max(x, y) + log1p(exp(-|x - y|)), which is log(exp(x) + exp(y)).

    Largest errors found: 0.51 and 1.92 ulp of the largest of the two terms and the result."""


def _exponentials(kind: Real):
    real, whole, fraction, bias = kind
    shift = real(SHIFT[kind])
    half_way = (bias + 1) // 2
    more, less = whole((bias + half_way) << fraction), whole((bias - half_way) << fraction)
    shrink, grow = real(2.0**-half_way), real(2.0**half_way)
    log2e, ln2_high, ln2_low = real(LOG2E), real(LN2[kind][0]), real(LN2[kind][1])
    low, high = map(real, RANGE[kind])
    one, two, half, zero = real(1), real(2), real(0.5), real(0)
    series = polynomial(kind, EXP[kind])

    @helper
    def whole_part(x):
        """x / log(2) rounded, plus `shift`."""
        return fma(x, log2e, shift)

    @helper
    def scaled(p, shifted):
        """p * 2**n, also where the result is subnormal; in two factors, for 2**n may lie outside the type."""
        down = shifted < shift
        first = whole(whole(bits(shifted) << fraction) + (more if down else less))  # of `shift` nothing is left
        return p * number(first) * (shrink if down else grow)

    @kernel(exp, kind)
    def _exp(x):
        x = low if x < low else high if x > high else x
        shifted = whole_part(x)
        n = shifted - shift
        r = fma(n, -ln2_low, fma(n, -ln2_high, x))
        return scaled(one + fma(r * r, series(r), r), shifted)

    @helper
    def exp_of(x, rest):
        """(exp(r), n plus `shift`), where x + rest, for a small rest, is n * log(2) + r, and n is whole."""
        shifted = whole_part(x)
        n = shifted - shift
        r = fma(n, -ln2_high, x) + fma(n, -ln2_low, rest)
        return one + fma(r * r, series(r), r), shifted

    @helper
    def exp_sum(x, rest):
        """exp(x + rest) for a small rest."""
        value, shifted = exp_of(low if x < low else high if x > high else x, rest)
        return scaled(value, shifted)

    @kernel(expm1, kind)
    def _expm1(x):
        y = low if x < low else high if x > high else x
        shifted = whole_part(y)
        n = shifted - shift
        reduced, rest = fma(n, -ln2_high, y), n * ln2_low
        r = reduced - rest
        rest = (reduced - r) - rest
        p = r + fma(r * r, series(r), rest)
        h = scaled(half, shifted)  # 2**(n - 1), for 2**n may be infinite
        return x if x == zero else two * fma(h, p, h - half)

    return exp_of, exp_sum, scaled


def _logarithms(kind: Real):
    real, whole, fraction, bias = kind
    ln2_high, ln2_low = real(LN2[kind][0]), real(LN2[kind][1])
    one, two, half, zero, infinity, nan = map(real, (1, 2, 0.5, 0, np.inf, np.nan))
    smallest, up = real(2.0 ** (1 - bias)), real(2.0 ** (fraction + 2))
    root = bits(real(0.5**0.5))
    series = polynomial(kind, LOG[kind])

    @helper
    def log_sum(x, rest):
        """log(x) + rest, for a small rest."""
        tiny = x < smallest
        word = bits(x * up if tiny else x)
        n = whole(whole(word - root) >> fraction)
        f = number(whole(word - whole(n << fraction))) - one
        n = real(n) - (real(fraction + 2) if tiny else zero)
        s, square = f / (two + f), half * f * f
        z = s * s
        value = n * ln2_high - ((square - fma(s, fma(z, series(z), square), fma(n, ln2_low, rest))) - f)
        value = value if x < infinity else x
        return value if x > zero else -infinity if x == zero else nan

    @kernel(log, kind)
    def _log(x):
        return log_sum(x, zero)

    @kernel(log1p, kind)
    def _log1p(x):
        u = one + x
        rest = (one - (u - x) if x > one else x - (u - one)) / u
        value = log_sum(u, rest if zero < u < infinity else zero)
        return x if x == zero else value


def _hyperbolic(kind: Real):
    real = kind.real
    one, two, near, far = map(real, (1, 2, 0.625, RANGE[kind][1] / 2))
    series = polynomial(kind, TANH[kind])

    @kernel(tanh, kind)
    def _tanh(x):
        a, z = abs(x), x * x
        large = one - two / (exp(far if a > far else a + a) + one)
        value = fma(a * z, series(z), a) if a < near else large
        return -value if bits(x) < 0 else value


def _error(kind: Real):
    real = kind.real
    one, zero, far = map(real, (1, 0, 4 if kind is F32 else 6))
    series, tail = polynomial(kind, ERF[kind]), polynomial(kind, ERFC[kind])

    @kernel(erf, kind)
    def _erf(x):
        a, z = abs(x), x * x
        large = one - exp(tail((far if a > far else a) - one))
        return fma(x, series(z), x) if a < one else -large if x < zero else large


def _angles(kind: Real):
    real, whole = kind.real, kind.whole
    zero, one = real(0), real(1)
    right = real(np.pi / 2)  # pi/2 and what rounding left of it
    right_rest = real(-4.371138828673793e-08 if kind is F32 else 6.123233995736766e-17)
    sign, magnitude = bits(real(-0.0)), whole(~bits(real(-0.0)))
    series = polynomial(kind, ATAN[kind])

    @kernel(atan2, kind)
    def _atan2(y, x):
        a, b = abs(x), abs(y)
        steep = b > a
        long, short = (b, a) if steep else (a, b)
        q = short / long if short != long else zero if long == zero else one
        z = q * q
        angle = fma(q * z, series(z), q)
        back = bits(x) < 0
        if steep:
            angle = right + (right_rest + angle) if back else right + (right_rest - angle)
        elif back:
            angle = (right + right) + ((right_rest + right_rest) - angle)
        return number(whole(bits(angle) & magnitude | bits(y) & sign))


_, _, scaled_f32 = _exponentials(F32)
exp_of, exp_sum, _ = _exponentials(F64)
for _kind in (F32, F64):
    _logarithms(_kind)
    _hyperbolic(_kind)
    _error(_kind)
    _angles(_kind)


@kernel(hypot, F32)
def _hypot_f32(x, y):
    a, b = np.float64(x), np.float64(y)  # the squares are exact, and neither overflows
    far = abs(a) == np.inf or abs(b) == np.inf
    return np.float32(np.inf) if far else np.float32(math.sqrt(a * a + b * b))


@kernel(hypot, F64)
def _hypot_f64(x, y):
    a, b = abs(x), abs(y)
    long, short = (a, b) if a > b else (b, a)
    # 2**-e for long in [2**e, 2**(e + 1)), e held to where both powers are normal: the scaled squares neither overflow
    # nor, where they count, underflow.
    e = (bits(long) >> 52) - 1023
    e = -1000 if e < -1000 else 1000 if e > 1000 else e
    down, up = number((1023 - e) << 52), number((1023 + e) << 52)
    long, short = long * down, short * down
    value = np.float64(math.sqrt(fma(long, long, short * short))) * up
    return np.inf if a == np.inf or b == np.inf else value


_root = bits(np.float64(0.5**0.5))
_short_exp = polynomial(F64, SHORT_EXP)
_short_log1p, _log1p_series = polynomial(F64, LOG1P[F32]), polynomial(F64, LOG1P[F64])


@helper
def short_exp(x):
    """e**x of a float64 to 2**-30 of itself, held to what float32 can tell from 0 and infinity."""
    x = -110.0 if x < -110.0 else 100.0 if x > 100.0 else x
    shifted = fma(x, 1.4426950408889634, 6755399441055744.0)
    r = fma(shifted - 6755399441055744.0, -0.6931471805599453, x)
    scale = number((bits(shifted) << 52) + 0x3FF0000000000000)
    return scale + scale * fma(r * r, _short_exp(r), r)


@kernel(logaddexp, F32)
def _logaddexp_f32(x, y):
    long, short = (np.float64(x), np.float64(y)) if x > y else (np.float64(y), np.float64(x))
    e = short_exp(0.0 if x == y else short - long)
    s = e / (2.0 + e)
    z = s * s
    return np.float32(long + fma(s * z, _short_log1p(z), 2.0 * s))


@kernel(logaddexp, F64)
def _logaddexp_f64(x, y):
    long, short = (x, y) if x > y else (y, x)
    d = short - long
    rounded = d + long
    rest = (short - rounded) - (long - (rounded - d))  # what d lacks: exp would show it |d| times
    e = exp_sum(0.0 if x == y else d, rest if d > -746.0 else 0.0)
    s, square = e / (2.0 + e), 0.5 * e * e
    z = s * s
    total = long + e
    left = total - long
    lost = (long - (total - left)) + (e - left)  # by rounding the total
    lost = lost if abs(total) < np.inf else 0.0
    return total + (lost - (square - s * fma(z, _log1p_series(z), square)))


_root_f32 = bits(np.float32(0.5**0.5))
_log2_high, _log2_low = np.float32(LOG2_FIRST[0]), np.float32(LOG2_FIRST[1])
_log2_rest, _exp2_f32 = polynomial(F32, LOG2_REST), polynomial(F32, EXP2)
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


_ln2_high, _ln2_low = LN2[F64]
_third, _third_rest = 2 / 3, 3.700743415417188e-17
_power_series = estrin(F64, LOG_REST)


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
    one, two, half, nan = map(kind.real, (1, 2, 0.5, np.nan))
    most, least = bits(kind.real(-np.inf)), bits(kind.real(-0.0))

    @kernel(pow, kind)
    def _pow(x, y):
        value = magnitude(abs(x), y)
        whole = floor(y) == y
        odd = whole and floor(y * half) != y * half
        value = -value if bits(x) < 0 and odd else value
        value = x if y == one else x * x if y == two else value
        negative = least < bits(x) < most  # -inf < x < 0; LLVM would classify floats in nine steps
        return nan if negative and not whole else value

    @kernel(pow_plain, kind)
    def _pow_plain(x, y):
        value, plain = plain_magnitude(x, y)
        return x if y == one else x * x if y == two else value, plain


_powers(F32, power_f32, plain_power_f32)
_powers(F64, power_f64, plain_power_f64)
