"""sinh, cosh, the inverses of the hyperbolic functions and the cube root as plain scalar functions.
Like those of transcendental.py, at most 4 ulp off. Errors of float32 are those of one argument in 16."""

from __future__ import annotations

import math

import numpy as np

from .real import F32, F64, Real, bits, fma, generic, helper, kernel, number
from .transcendental import HALVES, log1p


@generic
def sinh(x):
    """(exp(x) - exp(-x)) / 2. Largest errors found: 2.14 and 2.17 ulp."""


@generic
def cosh(x):
    """(exp(x) + exp(-x)) / 2. Largest errors found: 1.43 and 1.46 ulp."""


@generic
def asinh(x):
    """The number of this sinh. Largest errors found: 1.91 and 1.82 ulp."""


@generic
def acosh(x):
    """The number from 0 on of this cosh; NaN below 1. Largest errors found: 2.04 and 1.93 ulp."""


@generic
def atanh(x):
    """The number of this tanh; infinite of 1 and -1, NaN beyond. Largest errors found: 2.15 and 2.08 ulp."""


@generic
def cbrt(x):
    """The cube root, of x's sign. Largest errors found: 0.76 and 0.74 ulp."""


def _define(kind: Real):
    real = kind.real
    four, least_change = real(4), real(2.0**-60)
    zero, one, two, half, quarter, infinity, nan = map(real, (0, 1, 2, 0.5, 0.25, np.inf, np.nan))
    ln2, third = real(np.log(2)), real(1 / 3)
    large = real(2.0**30 if kind is F32 else 2.0**60)  # beside which 1 is nothing; its square is finite

    tiny, up, down = real(2.0**-100 if kind is F32 else 2.0**-900), real(2.0**54), real(2.0**-18)

    half_exp, quarter_expm1 = HALVES[kind]

    @kernel(sinh, kind)
    def _sinh(x):
        a = abs(x)
        t = quarter_expm1(a)
        value = two * (t + t / fma(four, t, one))
        return x if a < least_change else -value if bits(x) < 0 else value

    @kernel(cosh, kind)
    def _cosh(x):
        h = half_exp(abs(x))
        return h + quarter / h

    @kernel(asinh, kind)
    def _asinh(x):
        a = abs(x)
        far = a > large
        t = a if far else a + a * a / (one + real(math.sqrt(fma(a, a, one))))
        value = log1p(t) + (ln2 if far else zero)
        return -value if bits(x) < 0 else value

    @kernel(acosh, kind)
    def _acosh(x):
        far, t = x > large, x - one
        value = log1p(t if far else t + real(math.sqrt(fma(t, t, two * t)))) + (ln2 if far else zero)
        return value if x >= one else nan

    @kernel(atanh, kind)
    def _atanh(x):
        a = abs(x)
        value = half * log1p((a + a) / (one - a))
        value = value if a <= one else nan
        return x if x == zero else -value if bits(x) < 0 else value

    whole, wide = kind.whole, kind is F64
    low = whole(32 if wide else 0)  # bits of a word beside the 32 that begin it
    start = real((4 / 3 * kind.bias - 0.06725) * 2.0 ** (kind.fraction - low))
    second, last = real(2 / 9), real(14 / 81)  # and third: the series of (1 - left) ** (-1 / 3)

    @helper
    def nearer(a, y):
        """1 / the cube root of a, given one 3.5 % off: 1.6e-5 then, 1e-18 after another step, but for rounding."""
        left = fma(a * y, -(y * y), one)
        return fma(y * left, fma(left, fma(left, last, second), third), y)

    @kernel(cbrt, kind)
    def _cbrt(x):
        a = abs(x)
        small = a < tiny  # whose words have no exponent
        a = a * up if small else a
        falling = fma(real(np.int32(bits(a) >> low)), -third, start)  # by a third of the exponent: 1 / the root's word
        y = nearer(a, number(whole(whole(np.int32(falling)) << low)))
        y = nearer(a, y) if wide else y
        square = y * y
        r = a * square
        r = fma(square * third, fma(r * r, -r, a), r)
        r = r * down if small else r
        r = -r if bits(x) < 0 else r
        return r if zero < a < infinity else x


_define(F32)
_define(F64)
