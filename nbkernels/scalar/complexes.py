"""Operations on complex numbers, written out in their parts: NumPy's order, by the real part and then the imaginary."""

import math


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


def pow(x, y):
    """exp(y log x), in polar form; by squaring for a whole y below 100; of 0, 1 for y = 0, 0 for a positive part."""
    if y.real == 0 and y.imag == 0:
        return complex(1.0, 0.0)
    if x.real == 0 and x.imag == 0:
        return complex(0.0, 0.0) if y.real > 0 else complex(math.nan, math.nan)
    if y.imag == 0 and abs(y.real) < 100.0 and y.real == math.floor(y.real):
        rest = abs(int(y.real))
        re, im, square_re, square_im = 1.0, 0.0, x.real, x.imag
        while rest > 0:
            if rest & 1:
                re, im = re * square_re - im * square_im, re * square_im + im * square_re
            square_re, square_im = square_re * square_re - square_im * square_im, 2.0 * square_re * square_im
            rest >>= 1
        if y.real > 0:
            return complex(re, im)
        return 1.0 / complex(re, im)
    size, angle = math.log(math.hypot(x.real, x.imag)), math.atan2(x.imag, x.real)
    length, turn = math.exp(y.real * size - y.imag * angle), y.imag * size + y.real * angle
    aside = math.sin(turn)  # 0 for a real power of a positive number, also of one that overflows
    if length == 0:
        return complex(0.0, 0.0)
    return complex(length * math.cos(turn), length * aside if aside != 0 else aside)


float_power = pow


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
