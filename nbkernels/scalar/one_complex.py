"""Operations of one on complex numbers, computed in float64: branch cuts and special values are C99's, as NumPy's.

Each part is right to a few ulp of the number's size.
"""

import math

from ..elementary.circular import cos as real_cos
from ..elementary.circular import sin as real_sin
from ..elementary.circular import tan as real_tan
from ..elementary.hyperbolic import asinh as real_asinh
from ..elementary.hyperbolic import cosh as real_cosh
from ..elementary.hyperbolic import sinh as real_sinh
from ..elementary.real import helper
from ..elementary.transcendental import atan2 as real_atan2
from ..elementary.transcendental import exp as real_exp
from ..elementary.transcendental import expm1 as real_expm1
from ..elementary.transcendental import hypot as real_hypot
from ..elementary.transcendental import log as real_log
from ..elementary.transcendental import log1p as real_log1p
from ..elementary.transcendental import tanh as real_tanh
from .complexes import inverse, log_size, root, wide
from .one_real import round_float64

EXP_709 = math.exp(709.0)  # near the largest float64


@helper
def turned(x):
    """x times the imaginary unit."""
    return complex(-x.imag, x.real)


@helper
def back(x):
    """x over the imaginary unit."""
    return complex(x.imag, -x.real)


def conj(x, _):
    return complex(x.real, -x.imag)


def real(x, _):
    return x.real


def imag(x, _):
    return x.imag


def negative(x, _):
    return complex(-x.real, -x.imag)


def square(x, _):
    return complex(x.real * x.real - x.imag * x.imag, x.real * x.imag + x.imag * x.real)


def reciprocal(x, _):
    """1 / x, by Smith's method; NaN of 0."""
    return complex(math.nan, math.nan) if x.real == 0 and x.imag == 0 else inverse(x.real, x.imag)


def abs(x, _):
    return real_hypot(x.real, x.imag)


def sign(x, _):
    """x / |x|; 0 of 0; of one infinite part its own direction."""
    if x.real == 0 and x.imag == 0:
        return complex(0.0, 0.0)
    if math.isinf(x.real) != math.isinf(x.imag):
        far = math.isinf(x.real)
        return complex(math.copysign(1.0, x.real) if far else 0.0, 0.0 if far else math.copysign(1.0, x.imag))
    x = wide(x)
    large = max(math.fabs(x.real), math.fabs(x.imag))
    scale = 0.25 if large > 1e300 else 2.0**100 if large < 1e-200 else 1.0  # a size may overflow, or have few digits
    re, im = scale * x.real, scale * x.imag
    size = real_hypot(re, im)
    return complex(re / size, im / size)


def round(x, _):
    """x with both parts rounded to the nearest whole number, of two the even one."""
    x = wide(x)
    return complex(round_float64(x.real, 0.0), round_float64(x.imag, 0.0))


def isnan(x, _):
    return x.real != x.real or x.imag != x.imag


def isinf(x, _):
    return math.isinf(x.real) or math.isinf(x.imag)


def isfinite(x, _):
    return math.isfinite(x.real) and math.isfinite(x.imag)


@helper
def scaled(size, re, im, share):
    """share * exp(size) * (re + im i), also where exp(size) alone overflows; `share` is a power of 2, and no part is
    larger than 1. A subnormal one comes back from up to size 1454, twice as far as exp(709) is finite."""
    if size > 709.0:
        re, im, share, size = share * EXP_709 * re, share * EXP_709 * im, 1.0, size - 709.0
    if size > 709.0:
        re, im, size = EXP_709 * re, EXP_709 * im, size - 709.0
    factor = share * real_exp(size)
    return complex(factor * re, factor * im)


@helper
def exponential(x):
    if x.imag == 0:
        return complex(real_exp(x.real), x.imag)
    if not math.isfinite(x.imag):
        if x.real == math.inf:
            return complex(math.inf, math.nan)
        return complex(0.0, math.copysign(0.0, x.imag)) if x.real == -math.inf else complex(math.nan, math.nan)
    return scaled(x.real, real_cos(x.imag), real_sin(x.imag), 1.0)


def exp(x, _):
    return exponential(wide(x))


def exp2(x, _):
    x = wide(x)
    return exponential(complex(x.real * 0.6931471805599453, x.imag * 0.6931471805599453))


def expm1(x, _):
    """exp(x) - 1, with its digits near 0."""
    x = wide(x)
    half = real_sin(0.5 * x.imag)
    return complex(real_expm1(x.real) * real_cos(x.imag) - 2.0 * half * half, real_exp(x.real) * real_sin(x.imag))


def log(x, _):
    x = wide(x)
    return complex(log_size(x.real, x.imag), real_atan2(x.imag, x.real))


def log2(x, _):
    x = wide(x)
    return complex(log_size(x.real, x.imag) * 1.4426950408889634, real_atan2(x.imag, x.real) * 1.4426950408889634)


def log10(x, _):
    x = wide(x)
    return complex(log_size(x.real, x.imag) * 0.4342944819032518, real_atan2(x.imag, x.real) * 0.4342944819032518)


def log1p(x, _):
    """log(1 + x), with its digits near 0."""
    x = wide(x)
    size = log_size(x.real + 1.0, x.imag)
    if -0.5 < size < 0.5:
        size = 0.5 * real_log1p(x.real * (2.0 + x.real) + x.imag * x.imag)
    return complex(size, real_atan2(x.imag, x.real + 1.0))


def sqrt(x, _):
    x = wide(x)
    return root(x.real, x.imag)


@helper
def hyperbolic_sine(x):
    re, im = x.real, x.imag
    if im == 0:
        return complex(real_sinh(re), im)
    if not math.isfinite(im):
        return complex(re if re == 0 or math.isinf(re) else math.nan, math.nan)
    if math.fabs(re) > 700.0:
        return scaled(math.fabs(re), math.copysign(1.0, re) * real_cos(im), real_sin(im), 0.5)
    return complex(real_sinh(re) * real_cos(im), real_cosh(re) * real_sin(im))


@helper
def hyperbolic_cosine(x):
    re, im = x.real, x.imag
    if im == 0:
        return complex(real_cosh(re), math.copysign(0.0, re) * im)
    if not math.isfinite(im):
        return complex(math.inf if math.isinf(re) else math.nan, 0.0 if re == 0 else math.nan)
    if math.fabs(re) > 700.0:
        return scaled(math.fabs(re), real_cos(im), math.copysign(1.0, re) * real_sin(im), 0.5)
    return complex(real_cosh(re) * real_cos(im), real_sinh(re) * real_sin(im))


@helper
def hyperbolic_tangent(x):
    """Kahan's formula (1987)."""
    re, im = x.real, x.imag
    if im == 0:
        return complex(real_tanh(re), im)
    if math.isinf(re):
        return complex(
            math.copysign(1.0, re), math.copysign(0.0, real_sin(im) * real_cos(im) if math.isfinite(im) else im)
        )
    if not math.isfinite(im):
        return complex(re if re == 0 else math.nan, math.nan)
    if math.fabs(re) > 22.0:
        turn = 4.0 * real_sin(im) * real_cos(im) * real_exp(-2.0 * math.fabs(re))
        return complex(math.copysign(1.0, re), turn)
    slope, sine = real_tan(im), real_sinh(re)
    root, square = math.sqrt(1.0 + sine * sine), 1.0 + slope * slope
    if math.isinf(square):
        return complex(root / sine, 1.0 / slope)
    whole = 1.0 + square * sine * sine
    return complex(square * root * sine / whole, slope / whole)


@helper
def hyperbolic_angle(x):
    """atanh: the logarithm of (1 + x) / (1 - x), halved."""
    re, im = x.real, x.imag
    if re != re:
        return complex(0.0, math.copysign(0.5 * math.pi, im)) if math.isinf(im) else complex(math.nan, math.nan)
    if im != im:
        return complex(re if re == 0 else math.copysign(0.0, re) if math.isinf(re) else math.nan, math.nan)
    size, high = math.fabs(re), math.fabs(im)
    if size > 1e150 or high > 1e150:
        far = real_hypot(0.5 * size, 0.5 * high)
        part = 0.0 if math.isinf(far) else 0.25 * size / far / far
        return complex(math.copysign(part, re), math.copysign(0.5 * math.pi, im))
    if size == 1.0 and high < 1e-100:  # whose square has few digits, or none
        part = 0.5 * (0.6931471805599453 - real_log(high))
    else:
        part = 0.25 * real_log1p(4.0 * size / ((1.0 - size) * (1.0 - size) + im * im))
    return complex(math.copysign(part, re), 0.5 * real_atan2(2.0 * im, (1.0 - size) * (1.0 + size) - im * im))


@helper
def inverse_sine(x):
    """asinh, by square roots (Kahan, 1987)."""
    re, im = x.real, x.imag
    if re != re and im == 0:
        return x
    if math.fabs(re) > 1e150 or math.fabs(im) > 1e150:
        return complex(math.copysign(log_size(re, im) + 0.6931471805599453, re), real_atan2(im, math.fabs(re)))
    above, below = root(1.0 + im, -re), root(1.0 - im, re)
    size = real_asinh(above.real * below.imag - below.real * above.imag)
    return complex(size, real_atan2(im, above.real * below.real - above.imag * below.imag))


def sinh(x, _):
    return hyperbolic_sine(wide(x))


def cosh(x, _):
    return hyperbolic_cosine(wide(x))


def tanh(x, _):
    return hyperbolic_tangent(wide(x))


def atanh(x, _):
    return hyperbolic_angle(wide(x))


def sin(x, _):
    return back(hyperbolic_sine(turned(wide(x))))


def cos(x, _):
    return hyperbolic_cosine(turned(wide(x)))


def tan(x, _):
    return back(hyperbolic_tangent(turned(wide(x))))


def atan(x, _):
    return back(hyperbolic_angle(turned(wide(x))))


def asinh(x, _):
    return inverse_sine(wide(x))


def asin(x, _):
    return back(inverse_sine(turned(wide(x))))


def acos(x, _):
    """By square roots, likewise."""
    x = wide(x)
    re, im = x.real, x.imag
    if re == 0 and im != im:
        return complex(0.5 * math.pi, im)
    if math.fabs(re) > 1e150 or math.fabs(im) > 1e150:
        return complex(real_atan2(math.fabs(im), re), math.copysign(log_size(re, im) + 0.6931471805599453, -im))
    below, above = root(1.0 - re, -im), root(1.0 + re, im)
    size = real_asinh(above.real * below.imag - above.imag * below.real)
    return complex(2.0 * real_atan2(below.real, above.real), size)


def acosh(x, _):
    x = wide(x)
    re, im = x.real, x.imag
    if re == 0 and im != im:
        return complex(math.nan, 0.5 * math.pi)
    if math.fabs(re) > 1e150 or math.fabs(im) > 1e150:
        return complex(log_size(re, im) + 0.6931471805599453, real_atan2(im, re))
    below, above = root(re - 1.0, im), root(re + 1.0, im)
    size = real_asinh(above.real * below.real + above.imag * below.imag)
    return complex(size, 2.0 * real_atan2(below.imag, above.real))
