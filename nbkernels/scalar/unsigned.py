"""Operations on unsigned integers. No literal meets a uint64 here: Numba would make a float64 of the two."""

import numpy as np

from ..elementary.real import helper
from .integers import DIVIDE, narrow_shifts, wide_shifts


@helper
def divided(x, y):
    """(x // y, what it leaves) of uint64, y not 0.

    A float's quotient, made smaller by as much as it may be wrong, is never too large; what it leaves, at most 2y and
    2^16, is divided again, which is then too small by one at most.
    """
    by = (1.0 - 2.0**-50) / np.float64(y)
    first = np.uint64(np.float64(x) * by)
    rest = x - first * y
    second = np.uint64(np.float64(rest) * by)
    rest = rest - second * y
    more = rest >= y
    return first + second + np.uint64(more), rest - (y if more else np.uint64(0))


def floor_divide_uint64(x, y):
    """The quotient, rounded down; 0 for y = 0."""
    none = np.uint64(0)
    quotient, _ = divided(x, y if y != none else np.uint64(1))
    return quotient if y != none else none


def floor_divide_faults(x, y, result):
    return DIVIDE if y == 0 else 0


def remainder_uint64(x, y):
    """What floor_divide leaves; 0 for y = 0."""
    none = np.uint64(0)
    _, rest = divided(x, y if y != none else np.uint64(1))
    return rest if y != none else none


fmod_uint64 = remainder_uint64


pow_numbers = 2, 3


def pow(x, y):
    """x**y modulo 2^bits, by squaring."""
    one = np.uint64(1)
    power, square, rest = one, np.uint64(x), np.uint64(y)
    while rest != 0:
        if rest & one:
            power *= square
        square *= square
        rest >>= one
    return power


def gcd(x, y):
    """Euclid's; of 0 and 0, 0."""
    x, y = np.uint64(x), np.uint64(y)
    while y != 0:
        x, y = y, x % y
    return x


def lcm(x, y):
    """x / gcd(x, y) * y, wrapping; 0 where either is 0."""
    x, y = np.uint64(x), np.uint64(y)
    divisor, rest = x, y
    while rest != 0:
        divisor, rest = rest, divisor % rest
    return x // divisor * y if divisor != 0 else divisor


# of a uint64 and an int64, for which Numba takes float64


def equal_mixed(x, y):
    return y >= 0 and x == np.uint64(y)


def not_equal_mixed(x, y):
    return y < 0 or x != np.uint64(y)


def less_mixed(x, y):
    return y >= 0 and x < np.uint64(y)


def less_equal_mixed(x, y):
    return y >= 0 and x <= np.uint64(y)


def greater_mixed(x, y):
    return y < 0 or x > np.uint64(y)


def greater_equal_mixed(x, y):
    return y < 0 or x >= np.uint64(y)


def _shifts(width):
    """Both shifts of words of `width` bits: 0 where y is not within the word."""
    width, last = np.uint64(width), np.uint64(width - 1)

    def bitwise_left_shift(x, y):
        y = np.uint64(y)
        return np.uint64(x) << (y & last) if y < width else np.uint64(0)

    def bitwise_right_shift(x, y):
        y = np.uint64(y)
        return np.uint64(x) >> (y & last) if y < width else np.uint64(0)

    return bitwise_left_shift, bitwise_right_shift


bitwise_left_shift, bitwise_right_shift = _shifts(64)
bitwise_left_shift_uint8, bitwise_right_shift_uint8 = narrow_shifts(np.uint8, np.uint16)
bitwise_left_shift_uint16, bitwise_right_shift_uint16 = narrow_shifts(np.uint16, np.uint32)
bitwise_left_shift_uint32, bitwise_right_shift_uint32 = wide_shifts(np.uint32)
