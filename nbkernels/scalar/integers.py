"""Operations on integers: everything wraps, nothing traps, and what was wrong with a pair is told by its faults.

Numba computes in 64 bits whatever the dtype, and the result's dtype cuts it. `op_faults(x, y, result)` gives DIVIDE or
OVERFLOW where NumPy would warn of the pair, else 0.
"""

import math

import numpy as np

from ..elementary.real import bits, floor, fma, helper, number, shift_left, shift_right

DIVIDE, OVERFLOW = 1, 2


def maximum(x, y):
    return x if x > y else y


def minimum(x, y):
    return x if x < y else y


fmax, fmin = maximum, minimum


def _rounded(real, whole):
    """floor_divide, remainder and fmod of integers that a `real` holds with many digits to spare, by way of a `whole`.

    By a float's reciprocal, for vectors have no integer division, and one y for all x has one reciprocal. Half a unit
    is added to x, away from where the quotient is rounded to: then no quotient is nearer than 1/2y to a whole number,
    and three roundings move it by less than x/y * 2^-51, or 2^-22 of float32.
    """
    one, half, none = real(1), real(0.5), whole(0)

    def floor_divide(x, y):
        """The quotient, rounded down; 0 for y = 0."""
        by = one / real(y if y != 0 else 1)
        quotient = whole(floor((real(x) + (half if y > 0 else -half)) * by))
        return quotient if y != 0 else none

    def remainder(x, y):
        """What floor_divide leaves: of y's sign; 0 for y = 0."""
        by = one / real(y if y != 0 else 1)
        rest = whole(x) - whole(floor((real(x) + (half if y > 0 else -half)) * by)) * whole(y)
        return rest if y != 0 else none

    def fmod(x, y):
        """What division towards zero leaves: of x's sign; 0 for y = 0."""
        by = one / real(y if y != 0 else 1)
        rest = whole(x) - whole((real(x) + (half if x > 0 else -half)) * by) * whole(y)
        return rest if y != 0 else none

    return floor_divide, remainder, fmod


floor_divide, remainder, fmod = _rounded(np.float64, np.int64)  # 32 bits
floor_divide_int16, remainder_int16, fmod_int16 = _rounded(np.float32, np.int32)
floor_divide_uint16, remainder_uint16, fmod_uint16 = floor_divide_int16, remainder_int16, fmod_int16


def _estimated():
    """floor_divide, remainder and fmod of 8 bits.

    |x| / |y| is |x| * m / 2^8, where m is 2^8 / |y| rounded down: the quotient or one less, says the rest. Such
    products are what vectors of 16-bit words have, and one y for all x has one m. A quotient below zero, rounded down,
    is -1 - (|x| - 1) / |y|.
    """
    top, most, shift = np.float32(1 << 8), np.uint16((1 << 8) - 1), np.uint16(8)

    @helper
    def divided(x, y):
        """(x // y, what it leaves) of numbers from 0 on; 0 is divided by in place of 1."""
        y = np.uint16(y if y != 0 else 1)
        m = min(np.uint16(top / np.float32(y)), most)
        quotient = np.uint16(np.uint16(np.uint16(x) * np.uint16(m)) >> shift)
        rest = np.uint16(x - quotient * y)
        more = rest >= y
        return np.uint16(quotient + np.uint16(more)), np.uint16(rest - (y if more else np.uint16(0)))

    def floor_divide(x, y):
        """The quotient, rounded down; 0 for y = 0."""
        below = x != 0 and (x < 0) != (y < 0)
        quotient, _ = divided(np.uint16(abs(np.int32(x)) - below), np.uint16(abs(np.int32(y))))
        return (~np.int32(quotient) if below else np.int32(quotient)) if y != 0 else np.int32(0)

    def remainder(x, y):
        """What floor_divide leaves: of y's sign; 0 for y = 0."""
        below = x != 0 and (x < 0) != (y < 0)
        quotient, _ = divided(np.uint16(abs(np.int32(x)) - below), np.uint16(abs(np.int32(y))))
        rest = np.int32(x) - (~np.int32(quotient) if below else np.int32(quotient)) * np.int32(y)
        return rest if y != 0 else np.int32(0)

    def fmod(x, y):
        """What division towards zero leaves: of x's sign; 0 for y = 0."""
        _, rest = divided(np.uint16(abs(np.int32(x))), np.uint16(abs(np.int32(y))))
        return (-np.int32(rest) if x < 0 else np.int32(rest)) if y != 0 else np.int32(0)

    return floor_divide, remainder, fmod


floor_divide_int8, remainder_int8, fmod_int8 = _estimated()
floor_divide_uint8, remainder_uint8, fmod_uint8 = floor_divide_int8, remainder_int8, fmod_int8


@helper
def divided(x, y):
    """(floor(x / y), what it leaves) of int64, y not 0, modulo 2^64.

    A float's quotient is off by up to 2^12 where x/y has 63 bits; what it leaves, at most 2^12 y or y/2, is divided
    again, which is then right but for the direction of the rounding.
    """
    by = 1.0 / np.float64(y)
    first = np.int64(math.floor(min(max(np.float64(x) * by + 0.5, -(2.0**63)), 2.0**63 - 1024.0)))
    rest = x - first * y
    second = np.int64(math.floor(np.float64(rest) * by + 0.5))
    rest -= second * y
    down = (rest != 0) & ((rest < 0) != (y < 0))
    return first + second - (1 if down else 0), rest + (y if down else 0)


def floor_divide_int64(x, y):
    quotient, _ = divided(x, y if y != 0 else 1)
    return quotient if y != 0 else 0


def floor_divide_faults(x, y, result):
    """In a form that LLVM makes vectors of (int32 // 7, a million: 0.24 ms; with & and | in place of and: 1.0)."""
    return (DIVIDE if y == 0 else 0) + (OVERFLOW if y == -1 and x < 0 and result < 0 else 0)


def remainder_int64(x, y):
    _, rest = divided(x, y if y != 0 else 1)
    return rest if y != 0 else 0


def remainder_faults(x, y, result):
    return DIVIDE if y == 0 else 0


def fmod_int64(x, y):
    _, rest = divided(x, y if y != 0 else 1)
    rest = rest if y != 0 else 0
    return rest - y if rest != 0 and (x < 0) != (y < 0) else rest


fmod_faults = remainder_faults


def _by_reals(word, base, outside):
    """floor_divide, remainder and fmod of 64 bits in vectors that convert none of these (AVX2), and whether the numbers
    are small enough: -2^50 to 2^50, which a float64 holds in its last places beside 1.5 * 2^52.

    The quotient of two such, rounded and cut, is the whole one or one more (reals.py's _divided).
    """
    base, outside, none, zero = np.int64(base), np.int64(outside), np.int64(0), np.float64(0)
    magic = np.float64(1.5 * 2**52)
    offset = bits(magic)

    @helper
    def parted(x, y):
        """(floor(x / y), what it leaves, whether so), as floats."""
        x, y = np.int64(x), np.int64(y)
        small = (((x + base) | (y + base)) & outside == none) & (y != none)
        over, under = number(x + offset) - magic, number(y + offset) - magic
        quotient = floor(over / under)
        rest = fma(-quotient, under, over)
        more = (rest != zero) & ((rest < zero) != (under < zero))
        return quotient - (1.0 if more else 0.0), rest + (under if more else zero), small

    @helper
    def whole(x):
        return word(bits(x + magic) - offset)

    def floor_divide(x, y):
        quotient, _, small = parted(x, y)
        return whole(quotient), small

    def remainder(x, y):
        _, rest, small = parted(x, y)
        return whole(rest), small

    def fmod(x, y):
        _, rest, small = parted(x, y)
        under = number(np.int64(y) + offset) - magic
        return whole(rest - (under if (rest != zero) & ((np.int64(x) < none) != (under < zero)) else zero)), small

    return floor_divide, remainder, fmod


floor_divide_plain_int64, remainder_plain_int64, fmod_plain_int64 = _by_reals(np.int64, 1 << 50, -1 << 51)
floor_divide_plain_uint64, remainder_plain_uint64, fmod_plain_uint64 = _by_reals(np.uint64, 0, -1 << 50)


pow_numbers = 2, 3


def pow_plain(x, y):
    """(x**y, True) for y from 0 to 31, in steps that vectors take too (8 bits, one by one 12.9 ns; Zen 3, 2026-11)."""
    one, none, square, rest = np.int64(1), np.int64(0), np.int64(x), np.int64(y)
    power = square if rest & 1 != none else one
    square *= square
    power *= square if rest & 2 != none else one
    square *= square
    power *= square if rest & 4 != none else one
    square *= square
    power *= square if rest & 8 != none else one
    square *= square
    power *= square if rest & 16 != none else one
    return power, rest & -32 == none


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


# of an int64 and a uint64, for which Numba takes float64


def equal_mixed(x, y):
    return x >= 0 and np.uint64(x) == y


def not_equal_mixed(x, y):
    return x < 0 or np.uint64(x) != y


def less_mixed(x, y):
    return x < 0 or np.uint64(x) < y


def less_equal_mixed(x, y):
    return x < 0 or np.uint64(x) <= y


def greater_mixed(x, y):
    return x >= 0 and np.uint64(x) > y


def greater_equal_mixed(x, y):
    return x >= 0 and np.uint64(x) >= y


def _shifts(width):
    """Both shifts of words of `width` bits: the bounds let LLVM shift words as narrow as they are."""
    last = width - 1

    def bitwise_left_shift(x, y):
        """0 where y is not within the word."""
        return x << (y & last) if 0 <= y < width else 0

    def bitwise_right_shift(x, y):
        """Of the sign, 0 or -1, where y is not within the word."""
        return x >> (y & last if 0 <= y < width else last)

    return bitwise_left_shift, bitwise_right_shift


def narrow_shifts(word, wide):
    """Both shifts, computed in unsigned words twice as wide, where one by all bits is like any other: LLVM makes
    vectors of these (10,000 of uint8 1.3 us, with a choice of 0 2.6; 2026-11)."""
    width = word(8 * word(0).itemsize)

    def bitwise_left_shift(x, y):
        """0 where y is not within the word."""
        return wide(wide(x) << min(word(y), width))

    def bitwise_right_shift(x, y):
        """0 where y is not within the word."""
        return wide(wide(x) >> min(word(y), width))

    return bitwise_left_shift, bitwise_right_shift


def wide_shifts(word):
    """Both shifts, computed in unsigned words: LLVM makes one instruction of a shift and the choice of 0, but not where
    y is cut to the word (10,000 of uint32 to the left .87 of NumPy's speed, 1.0 so; 2026-11)."""
    width, none = word(8 * word(0).itemsize), word(0)

    def bitwise_left_shift(x, y):
        """0 where y is not within the word."""
        return word(shift_left(word(x), word(y))) if word(y) < width else none

    def bitwise_right_shift(x, y):
        """0 where y is not within the word."""
        return word(shift_right(word(x), word(y))) if word(y) < width else none

    return bitwise_left_shift, bitwise_right_shift


bitwise_left_shift, bitwise_right_shift = _shifts(64)
_, bitwise_right_shift_int8 = _shifts(8)
_, bitwise_right_shift_int16 = _shifts(16)
bitwise_left_shift_int8, _ = narrow_shifts(np.uint8, np.uint16)
bitwise_left_shift_int16, _ = narrow_shifts(np.uint16, np.uint32)
bitwise_left_shift_int32, _ = wide_shifts(np.uint32)
_, bitwise_right_shift_int32 = _shifts(32)
