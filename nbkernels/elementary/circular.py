"""sin, cos, tan and their inverses as plain scalar functions, like those of transcendental.py, at most 4 ulp off.

x = k*(pi/2) + r, |r| <= pi/4 (.83 where 2/pi is a float32): `*_plain` reduces arguments below 2**20 so, by pi/2 in
three parts, and says whether this one was; beyond, which vectors leave, sin, cos and tan are the C library's, right for
any size. Errors of float32 are those of one argument in 16.
"""

from __future__ import annotations

import math

from .coefficients import ASIN, COS, SIN, TAN
from .real import F32, F64, Real, bits, estrin, fma, generic, helper, kernel, polynomial
from .transcendental import SHIFT, atan2

HALF_PI = {
    F32: (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    F64: (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
TWO_OVER_PI = 0.6366197723675814
LIMIT = 2.0**20


@generic
def sin(x):
    """The sine. Largest errors found: 0.79 and 0.78 ulp."""


@generic
def sin_plain(x):
    """(sin(x), True), or (anything, False) of arguments that are too large."""


@generic
def cos(x):
    """The cosine. Largest errors found: 0.80 and 0.77 ulp."""


@generic
def cos_plain(x):
    """(cos(x), True), or (anything, False) of arguments that are too large."""


@generic
def tan(x):
    """The tangent. Largest errors found: 2.10 and 1.69 ulp."""


@generic
def tan_plain(x):
    """(tan(x), True), or (anything, False) of arguments that are too large."""


@generic
def asin(x):
    """The angle from -pi/2 to pi/2 of this sine; NaN beyond 1. Largest errors found: 2.35 and 2.22 ulp."""


@generic
def acos(x):
    """The angle from 0 to pi of this cosine; NaN beyond 1. Largest errors found: 1.13 and 1.17 ulp."""


@generic
def atan(x):
    """The angle from -pi/2 to pi/2 of this tangent. Largest errors found: 1.31 and 1.55 ulp."""


def _define(kind: Real):
    real = kind.real
    zero, half, one, limit, two_over_pi, shift = map(real, (0, 0.5, 1, LIMIT, TWO_OVER_PI, SHIFT[kind]))
    first, second, third = map(real, HALF_PI[kind])
    sin_series, cos_series, asin_series = (polynomial(kind, c[kind]) for c in (SIN, COS, ASIN))
    tan_series = estrin(kind, TAN[kind])
    right, right_rest = map(real, HALF_PI[kind][:2])

    @helper
    def reduced(x):
        """(r, what rounding it left, k by its lowest bits) of a number below the limit."""
        shifted = fma(x, two_over_pi, shift)
        k = shifted - shift
        a = fma(-k, first, x)  # exact
        p = k * second
        r = a - p
        back = r - a
        rest = (a - (r - back)) - (p + back)
        return r, rest - fma(k, third, fma(k, second, -p)), bits(shifted)

    @helper
    def both(x):
        """(sin(r), cos(r), k)."""
        r, rest, k = reduced(x)
        z = r * r
        w = one - half * z
        sine = r + fma(r * z, sin_series(z), rest * w)
        return sine, w + (((one - w) - half * z) + fma(z * z, cos_series(z), -r * rest)), k

    @kernel(sin_plain, kind)
    def _sin_plain(x):
        sine, cosine, k = both(x)
        value = cosine if k & 1 else sine
        return x if x == zero else -value if k & 2 else value, abs(x) < limit

    @kernel(cos_plain, kind)
    def _cos_plain(x):
        sine, cosine, k = both(x)
        value = sine if k & 1 else cosine
        return -value if (k + 1) & 2 else value, abs(x) < limit

    @kernel(tan_plain, kind)
    def _tan_plain(x):
        r, rest, k = reduced(x)
        z = r * r
        tangent = r + fma(r * z, tan_series(z), fma(rest, z, rest))
        above, below = (-one, tangent) if k & 1 else (tangent, one)
        return x if x == zero else above / below, abs(x) < limit

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

    @helper
    def arc(x):
        """(asin(|x|), True) up to 1/2; beyond (half of acos(|x|), False)."""
        a = abs(x)
        near = a < half
        z = a * a if near else half - half * a
        s = a if near else real(math.sqrt(z))
        return fma(s * z, asin_series(z), s), near

    @kernel(asin, kind)
    def _asin(x):
        angle, near = arc(x)
        value = angle if near else right + (right_rest - (angle + angle))
        return -value if bits(x) < 0 else value

    @kernel(acos, kind)
    def _acos(x):
        angle, near = arc(x)
        back = x < zero
        more = angle if near else angle + angle
        more = -more if near != back else more
        if near:
            return right + (right_rest + more)
        return (right + right) + ((right_rest + right_rest) + more) if back else more

    @kernel(atan, kind)
    def _atan(x):
        return atan2(x, one)


_define(F32)
_define(F64)
