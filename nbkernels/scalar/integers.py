"""Operations on integers: everything wraps, nothing traps, and what was wrong with a pair is told by its faults.

Numba computes in 64 bits whatever the dtype, and the result's dtype cuts it. `op_faults(x, y, result)` gives DIVIDE or
OVERFLOW where NumPy would warn of the pair, else 0.
"""

import math

import numpy as np

DIVIDE, OVERFLOW = 1, 2


def maximum(x, y):
    return x if x > y else y


def minimum(x, y):
    return x if x < y else y


fmax, fmin = maximum, minimum


def floor_divide(x, y):
    """The quotient, rounded down; 0 for y = 0.

    Of integers of up to 32 bits a float64 holds the quotient so well that its floor is exact: a quotient that is not
    whole lies 1/y off, and rounding moves it by less than x/y * 2^-53. Vectors can divide floats, and nothing else.
    """
    whole = math.floor(x / (y if y != 0 else 1))
    return whole if y != 0 else 0


def floor_divide_int64(x, y):
    if y == 0:
        return 0
    if y == -1:  # the machine's division traps on the smallest integer
        return -x
    return x // y


def floor_divide_faults(x, y, result):
    """Without a branch, so that vectors find them as well."""
    return DIVIDE * (y == 0) + OVERFLOW * ((y == -1) & (x == result) & (x < 0))


def remainder(x, y):
    """What floor_divide leaves: of y's sign; 0 for y = 0."""
    rest = x - math.floor(x / (y if y != 0 else 1)) * y
    return rest if y != 0 else 0


def remainder_int64(x, y):
    return x % y if y != 0 and y != -1 else 0


def remainder_faults(x, y, result):
    return DIVIDE if y == 0 else 0


def fmod(x, y):
    """What division towards zero leaves: of x's sign; 0 for y = 0."""
    rest = x - int(x / (y if y != 0 else 1)) * y
    return rest if y != 0 else 0


def fmod_int64(x, y):
    rest = x % y if y != 0 and y != -1 else 0
    return rest - y if rest != 0 and (x < 0) != (y < 0) else rest


fmod_faults = remainder_faults


def pow(x, y):
    """x**y modulo 2^bits, by squaring; of a negative y, which NumPy and the CPU's kernels refuse, the whole part."""
    if y < 0:
        return 1 if x == 1 else 1 - 2 * (y & 1) if x == -1 else 0
    power, square = np.int64(1), np.int64(x)
    while y > 0:
        if y & 1:
            power *= square
        square *= square
        y >>= 1
    return power


def gcd(x, y):
    """Euclid's; of 0 and 0, 0. The smallest integer has no opposite and may come out."""
    x, y = np.uint64(abs(np.int64(x))), np.uint64(abs(np.int64(y)))
    while y != 0:
        x, y = y, x % y
    return x


def lcm(x, y):
    """|x / gcd(x, y) * y|, wrapping; 0 where either is 0."""
    x, y = np.uint64(abs(np.int64(x))), np.uint64(abs(np.int64(y)))
    divisor, rest = x, y
    while rest != 0:
        divisor, rest = rest, divisor % rest
    return x // divisor * y if divisor != 0 else divisor


def bitwise_and(x, y):
    return x & y


def bitwise_or(x, y):
    return x | y


def bitwise_xor(x, y):
    return x ^ y


def bitwise_left_shift(x, y):
    """0 where y is not within the word."""
    return x << y if 0 <= y < 64 else 0


def bitwise_right_shift(x, y):
    """Of the sign, 0 or -1, where y is not within the word."""
    return x >> (y if 0 <= y < 64 else 63)
