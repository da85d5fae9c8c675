"""Operations on unsigned integers. No literal meets a uint64 here: Numba would make a float64 of the two."""

import numpy as np

from .integers import DIVIDE


def floor_divide_uint64(x, y):
    """The quotient, rounded down; 0 for y = 0."""
    return x // y if y != 0 else y


def floor_divide_faults(x, y, result):
    return DIVIDE if y == 0 else 0


def remainder_uint64(x, y):
    """What floor_divide leaves; 0 for y = 0."""
    return x % y if y != 0 else y


fmod_uint64 = remainder_uint64


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


def bitwise_left_shift(x, y):
    """0 where y is not within the word."""
    return x << y if y < 64 else x - x


def bitwise_right_shift(x, y):
    """0 where y is not within the word."""
    return x >> y if y < 64 else x - x
