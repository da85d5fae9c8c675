"""Operations on complex numbers, written out in their parts: NumPy's order, by the real part and then the imaginary."""

import math

import numpy as np

from ..elementary.circular import cos as real_cos
from ..elementary.circular import sin as real_sin
from ..elementary.real import bits, helper, number
from ..elementary.transcendental import atan2 as real_atan2
from ..elementary.transcendental import exp as real_exp
from ..elementary.transcendental import hypot as real_hypot
from ..elementary.transcendental import log as real_log
from ..elementary.transcendental import log1p as real_log1p


@helper
def wide(x):
    """A complex128."""
    return complex(np.float64(x.real), np.float64(x.imag))


def multiply(x, y):
    return complex(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)


def divide(x, y):
    """Smith's method (1962): no overflow on the way, scaled by the larger part of y; x / 0 divides each part by 0."""
    if abs(y.real) >= abs(y.imag):
        if y.real == 0 and y.imag == 0:
            return complex(x.real / abs(y.real), x.imag / abs(y.real))
        ratio = y.imag / y.real
        scale = 1.0 / (y.real + y.imag * ratio)
        return complex((x.real + x.imag * ratio) * scale, (x.imag - x.real * ratio) * scale)
    ratio = y.real / y.imag
    scale = 1.0 / (y.imag + y.real * ratio)
    return complex((x.real * ratio + x.imag) * scale, (x.imag * ratio - x.real) * scale)


@helper
def product(a, b, c, d):
    """(a + bi) * (c + di) as its parts, C's: infinite where either factor is and no part of the other is 0."""
    re, im = a * c - b * d, a * d + b * c
    if re == re or im == im:
        return re, im
    infinite = math.isinf(a) or math.isinf(b)
    other = math.isinf(c) or math.isinf(d)
    if infinite:  # each part as much of a 1 or of a 0 as it is infinite
        a, b = math.copysign(1.0 if math.isinf(a) else 0.0, a), math.copysign(1.0 if math.isinf(b) else 0.0, b)
        c, d = math.copysign(0.0, c) if c != c else c, math.copysign(0.0, d) if d != d else d
    if other:
        c, d = math.copysign(1.0 if math.isinf(c) else 0.0, c), math.copysign(1.0 if math.isinf(d) else 0.0, d)
        a, b = math.copysign(0.0, a) if a != a else a, math.copysign(0.0, b) if b != b else b
    overflown = math.isinf(a * c) or math.isinf(b * d) or math.isinf(a * d) or math.isinf(b * c)
    if overflown and not (infinite or other):
        a, b = math.copysign(0.0, a) if a != a else a, math.copysign(0.0, b) if b != b else b
        c, d = math.copysign(0.0, c) if c != c else c, math.copysign(0.0, d) if d != d else d
    if infinite or other or overflown:
        return math.inf * (a * c - b * d), math.inf * (a * d + b * c)
    return re, im


@helper
def inverse(re, im):
    """1 / (re + im i), by Smith's method; a part that is 0 stays so where the other overflows."""
    if re == 0 and im == 0:
        return complex(math.inf, math.nan)
    if abs(re) >= abs(im):
        ratio = im / re
        size = re + im * ratio
        return complex(1.0 / size, -ratio / size)
    ratio = re / im
    size = im + re * ratio
    return complex(ratio / size, -1.0 / size)


@helper
def root(re, im):
    """The square root of a complex number of float64 parts, with C99's special values; each part within 4 ulp.

    One part is t = sqrt((|re| + |z|) / 2), the other |im| / (2 t). For t both parts are scaled by a power of 4 that
    brings the larger one near 1, so that no square overflows and no digit of a subnormal number is lost.
    """
    if re - re != 0 or im - im != 0:  # infinite or NaN
        if math.isinf(im):
            return complex(math.inf, im)
        if re == -math.inf:
            return complex(math.fabs(im - im), math.copysign(math.inf, im))
        return complex(math.inf, math.copysign(im - im, im)) if re == math.inf else complex(math.nan, math.nan)
    large = max(math.fabs(re), math.fabs(im))
    if large == 0:
        return complex(0.0, im)
    half = max(511 - (bits(np.float64(large)) >> 53), -511)  # the scale is 4 ** half
    scale = number(np.int64((1023 + 2 * half) << 52))
    a, b = re * scale, im * scale
    t = math.sqrt(0.5 * (math.fabs(a) + math.sqrt(a * a + b * b))) * number(np.int64((1023 - half) << 52))
    other = math.fabs(im) / (2.0 * t)
    return complex(t, math.copysign(other, im)) if re >= 0 else complex(other, math.copysign(t, im))


@helper
def log_size(re, im):
    """log|re + im i|, also where the size overflows or is subnormal, and with its digits where it is near 1."""
    size = real_hypot(re, im)
    if math.isinf(size) and math.isfinite(re) and math.isfinite(im):
        return real_log(real_hypot(0.5 * re, 0.5 * im)) + 0.6931471805599453
    if 0.0 < size < 1e-37:  # of subnormals a size has few digits
        return real_log(real_hypot(2.0**100 * re, 2.0**100 * im)) - 69.31471805599453
    if 0.7 < size < 1.4:
        large, small = max(abs(re), abs(im)), min(abs(re), abs(im))
        return 0.5 * real_log1p((large - 1.0) * (large + 1.0) + small * small)
    return real_log(size)


def pow(x, y):
    """exp(y log x), in polar form; by squaring for a whole y below 100; of 0, 1 for y = 0, 0 for a positive part."""
    if y.real == 0 and y.imag == 0:
        return complex(1.0, 0.0)
    if x.real == 0 and x.imag == 0:
        return complex(0.0, 0.0) if y.real > 0 else complex(math.nan, math.nan)
    if y.imag == 0 and abs(y.real) < 100.0 and y.real == math.floor(y.real):
        rest = abs(int(y.real))
        re, im, square_re, square_im = 1.0, 0.0, x.real, x.imag
        if 0 < y.real < 4:  # a factor of 1 would make NaN of what is infinite
            re, im, rest = x.real, x.imag, rest - 1
            if rest == 2:
                re, im = re * re - im * im, re * im + im * re
                rest = 1
        while rest > 0:
            if rest & 1:
                re, im = re * square_re - im * square_im, re * square_im + im * square_re
            square_re, square_im = square_re * square_re - square_im * square_im, 2.0 * square_re * square_im
            rest >>= 1
        return complex(re, im) if y.real > 0 else inverse(re, im)
    x = wide(x)
    size, angle = log_size(x.real, x.imag), real_atan2(x.imag, x.real)
    size, turn = product(y.real, y.imag, size, angle)
    length = real_exp(size)
    if turn == 0:  # a real power of a positive number, also one that overflows
        return complex(length, turn)
    if turn - turn != 0:  # infinite or NaN
        return complex(math.inf, math.nan) if size == math.inf else (
            complex(0.0, math.copysign(0.0, turn)) if size == -math.inf else complex(math.nan, math.nan)
        )  # fmt: skip
    return complex(length * real_cos(turn), length * real_sin(turn))


pow_numbers = 2, 3, -1
float_power, float_power_numbers = pow, pow_numbers


def less(x, y):
    ahead = x.real < y.real and x.imag == x.imag and y.imag == y.imag
    return ahead or (x.real == y.real and x.imag < y.imag)


def less_equal(x, y):
    ahead = x.real < y.real and x.imag == x.imag and y.imag == y.imag
    return ahead or (x.real == y.real and x.imag <= y.imag)


def greater(x, y):
    ahead = x.real > y.real and x.imag == x.imag and y.imag == y.imag
    return ahead or (x.real == y.real and x.imag > y.imag)


def greater_equal(x, y):
    ahead = x.real > y.real and x.imag == x.imag and y.imag == y.imag
    return ahead or (x.real == y.real and x.imag >= y.imag)


def maximum(x, y):
    """The larger; NaN if any part of either is (the first one's)."""
    ahead = x.real > y.real and x.imag == x.imag and y.imag == y.imag
    return x if x != x or ahead or (x.real == y.real and x.imag >= y.imag) else y


def minimum(x, y):
    """The smaller; NaN if any part of either is (the first one's)."""
    ahead = x.real < y.real and x.imag == x.imag and y.imag == y.imag
    return x if x != x or ahead or (x.real == y.real and x.imag <= y.imag) else y


def fmax(x, y):
    """The larger; NaN only if both are."""
    ahead = x.real > y.real and x.imag == x.imag and y.imag == y.imag
    return x if y != y or ahead or (x.real == y.real and x.imag >= y.imag) else y


def fmin(x, y):
    """The smaller; NaN only if both are."""
    ahead = x.real < y.real and x.imag == x.imag and y.imag == y.imag
    return x if y != y or ahead or (x.real == y.real and x.imag <= y.imag) else y
