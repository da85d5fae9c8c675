"""exp, log, tanh, erf and their like as plain scalar functions: one definition for every device, fast in loops.

Numba's own are calls of the C library, an element at a time. These are arithmetic without branches, which LLVM
vectorises: exact steps reduce the argument to an interval where a polynomial holds, in fused multiply-adds. So an
element's bits are the same in a vector, in a loop's tail and on a GPU. float32 and float64 have kernels of their own
(integers count as float64), at most 2 ulp off; special values are C99's. No floating-point exception is
promised.

The polynomials are in coefficients.py, pow in powers.py.
`bench/bench_transcendental.py --ulp` measures errors: each function states the largest in float32 (of all arguments, or
2**27 pairs; the logarithms, exp2, expm1 and tanh of one in 16) and in float64 (of 2**24, erf of 2**17).
"""

from __future__ import annotations

import math

import numpy as np

from .coefficients import ATAN, ERF, ERFC, EXP, EXP2, LOG, LOG1P, SHORT_EXP, TANH
from .real import F32, F64, Real, bits, fma, generic, helper, kernel, number, polynomial

LOG2E = 1.4426950408889634
# log(2) in two parts: a multiple of 2**-9 or 2**-32, which 11 bits of an exponent multiply exactly, and the rest
LN2 = {F32: (0.693359375, -0.00021219444170128554), F64: (0.6931471803691238, 1.9082149292705877e-10)}
LOG10E = 0.4342944819032518
# log10(2) likewise
LG2 = {F32: (0.301025390625, 4.605038981195214e-06), F64: (0.3010299956640665, -8.532344317057107e-14)}
# log(2)**-1 * x + this is a whole number in the last bits
SHIFT = {F32: 12582912.0, F64: 6755399441055744.0}
# Beyond these exp is 0 and infinity, after two roundings or one.
RANGE = {F32: (-104.0, 89.0), F64: (-746.0, 710.0)}


@generic
def exp(x):
    """e**x. Largest errors found: 0.99 and 0.98 ulp."""


@generic
def exp2(x):
    """2**x. Largest errors found: 0.95 and 0.89 ulp."""


@generic
def expm1(x):
    """e**x - 1, accurate near 0. Largest errors found: 1.37 and 1.57 ulp."""


@generic
def log(x):
    """The natural logarithm; -inf of 0, NaN below. Largest errors found: 0.89 and 0.89 ulp."""


@generic
def log2(x):
    """The logarithm to base 2; exact of powers of 2. Largest errors found: 1.20 and 1.11 ulp."""


@generic
def log10(x):
    """The logarithm to base 10. Largest errors found: 1.38 and 1.14 ulp."""


@generic
def log1p(x):
    """log(1 + x), accurate near 0. Largest errors found: 1.52 and 1.49 ulp."""


@generic
def tanh(x):
    """The hyperbolic tangent. Largest errors found: 1.20 and 1.33 ulp."""


@generic
def erf(x):
    """The error function, 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x.

    Largest errors found: 1.02 and 1.00 ulp."""


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
    most_of_half = real(RANGE[kind][1] + 0.6)  # from which on e**x / 2 is infinite, too
    lowest, quarter_bits = real(-20 if kind is F32 else -40), bits(real(0.25))  # up to which e**x - 1 is -1
    log2e, ln2_high, ln2_low = real(LOG2E), real(LN2[kind][0]), real(LN2[kind][1])
    low, high = map(real, RANGE[kind])
    least, most = real(RANGE[kind][0] * LOG2E), real(RANGE[kind][1] * LOG2E)
    one, four, half, quarter, zero, least_change = map(real, (1, 4, 0.5, 0.25, 0, 2.0**-60))
    series, powers_of_two = polynomial(kind, EXP[kind]), polynomial(kind, EXP2[kind])

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

    @kernel(exp2, kind)
    def _exp2(x):
        x = least if x < least else most if x > most else x
        shifted = x + shift
        r = x - (shifted - shift)
        return scaled(fma(r, powers_of_two(r), one), shifted)

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

    @helper
    def quarter_power(shifted):
        """2**n / 4, where that is a normal number."""
        return number(whole(whole(bits(shifted) << fraction) + quarter_bits))

    @helper
    def quarter_expm1(x):
        """(e**x - 1) / 4, also where e**x alone is infinite, for x of 2**-60 and more."""
        y = lowest if x < lowest else most_of_half if x > most_of_half else x
        shifted = whole_part(y)
        n = shifted - shift
        reduced, rest = fma(n, -ln2_high, y), n * ln2_low
        r = reduced - rest
        rest = (reduced - r) - rest
        p = r + fma(r * r, series(r), rest)
        h = quarter_power(shifted)
        return fma(h, p, h - quarter)

    @kernel(expm1, kind)
    def _expm1(x):
        return x if abs(x) < least_change else four * quarter_expm1(x)

    @helper
    def half_exp(x):
        """e**x / 2, likewise, for x from 0 on."""
        value, shifted = exp_of(most_of_half if x > most_of_half else x, zero)
        value = value * quarter_power(shifted)
        return value + value

    return exp_of, exp_sum, scaled, half_exp, quarter_expm1


def _logarithms(kind: Real):
    real, whole, fraction, bias = kind
    ln2_high, ln2_low = real(LN2[kind][0]), real(LN2[kind][1])
    one, two, half, zero, infinity, nan = map(real, (1, 2, 0.5, 0, np.inf, np.nan))
    lg2_high, lg2_low = real(LG2[kind][0]), real(LG2[kind][1])
    smallest, up, raised = real(2.0 ** (1 - bias)), real(2.0 ** (fraction + 2)), real(fraction + 2)
    root, one_bits = bits(real(0.5**0.5)), bits(one)
    log2e, log10e, series = real(LOG2E), real(LOG10E), polynomial(kind, LOG[kind])

    @helper
    def parts(word):
        """(n, f, the bits of 2**-n) of the bits of 2**n * (1 + f), positive and normal."""
        n = whole(whole(word - root) >> fraction)
        place = whole(n << fraction)
        return real(n), number(whole(word - place)) - one, whole(one_bits - place)

    @helper
    def split(x):
        """(n, f) of x = 2**n * (1 + f), for a positive x."""
        tiny = x < smallest
        n, f, _ = parts(bits(x * up if tiny else x))
        return n - raised if tiny else n, f

    @helper
    def ended(value, x):
        """A logarithm of x, where x is positive and finite; else what it is there."""
        value = value if x < infinity else x
        return value if x > zero else -infinity if x == zero else nan

    @helper
    def bent(f):
        """f - log(1 + f)"""
        s = f / (two + f)
        z = s * s
        return s * fma(-z, series(z), f)

    @helper
    def log_of(n, f):
        """n * log(2) + log(1 + f)"""
        return fma(n, ln2_high, f - fma(-n, ln2_low, bent(f)))

    @kernel(log, kind)
    def _log(x):
        n, f = split(x)
        return ended(log_of(n, f), x)

    @kernel(log2, kind)
    def _log2(x):
        n, f = split(x)
        return ended(n + fma(f, log2e, -(bent(f) * log2e)), x)

    @kernel(log10, kind)
    def _log10(x):
        n, f = split(x)
        return ended(fma(n, lg2_high, fma(f, log10e, fma(n, lg2_low, -(bent(f) * log10e)))), x)

    @kernel(log1p, kind)
    def _log1p(x):
        u = one + x
        v = u - one
        rest = (x - v) + (one - (u - v))  # what rounding u left
        n, f, down = parts(bits(u))
        value = ended(log_of(n, fma(rest, number(down if down > 0 else whole(0)), f)), u)
        return x if x == zero else value


def _hyperbolic(kind: Real):
    real, whole, fraction, _ = kind
    shift, one, two, near, log2e, ln2 = map(real, (SHIFT[kind], 1, 2, 0.625, LOG2E, np.log(2)))
    far, one_bits = real(20 if kind is F32 else 40), bits(one)
    exp_series, series = polynomial(kind, EXP[kind]), polynomial(kind, TANH[kind])

    @kernel(tanh, kind)
    def _tanh(x):
        a, z = abs(x), x * x
        t = far if a + a > far else a + a  # from which on the result is 1
        shifted = fma(t, log2e, shift)
        r = fma(shifted - shift, -ln2, t)
        scale = number(whole(one_bits + whole(bits(shifted) << fraction)))
        large = one - two / fma(scale, fma(r * r, exp_series(r), r), scale + one)  # 1 - 2 / (exp(t) + 1)
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


_, _, scaled_f32, *_halves_f32 = _exponentials(F32)
exp_of, exp_sum, _, *_halves_f64 = _exponentials(F64)
HALVES = {F32: _halves_f32, F64: _halves_f64}  # half_exp and quarter_expm1
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
