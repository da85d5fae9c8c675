"""Operations on floats: special values as NumPy's, which are C's and IEEE 754's."""

import math

import numpy as np

from ..elementary.powers import pow as power
from ..elementary.powers import pow_plain as power_plain
from ..elementary.real import bits, floor, fma, helper, number
from ..elementary.transcendental import atan2 as angle
from ..elementary.transcendental import exp2 as power_of_two
from ..elementary.transcendental import hypot as length
from ..elementary.transcendental import log1p as log_of_one_and
from ..elementary.transcendental import logaddexp as log_of_sum


def _extremes(whole):
    """maximum, minimum, fmax and fmin of floats whose bits are a `whole`: of equals, zeros that is, by their bits."""

    def maximum(x, y):
        """The larger; NaN if either is (the first one's); +0.0 above -0.0 on either side."""
        larger = number(whole(bits(x if x > y else y) & bits(y if y > x else x)))
        return x + y if (x != x) | (y != y) else larger

    def minimum(x, y):
        """The smaller; NaN if either is (the first one's); -0.0 below +0.0 on either side."""
        smaller = number(whole(bits(x if x < y else y) | bits(y if y < x else x)))
        return x + y if (x != x) | (y != y) else smaller

    def fmax(x, y):
        """The larger; NaN only if both are; +0.0 above -0.0 on either side."""
        larger = number(whole(bits(x) & bits(y))) if x == y else x if x > y else y
        return x if y != y else larger

    def fmin(x, y):
        """The smaller; NaN only if both are; -0.0 below +0.0 on either side."""
        smaller = number(whole(bits(x) | bits(y))) if x == y else x if x < y else y
        return x if y != y else smaller

    return maximum, minimum, fmax, fmin


TWO = np.float32(2)


def maximum_float16(x, y):
    """maximum, of doubled numbers: LLVM would compare the numbers themselves as halves and convert the masks (10,000
    elements 4.4 us, so 2.7; AVX2, 2026-11)."""
    a, b = TWO * x, TWO * y
    larger = number(np.int32(bits(x if a > b else y) & bits(y if b > a else x)))
    return a + b if (a != a) | (b != b) else larger


def minimum_float16(x, y):
    """minimum, likewise."""
    a, b = TWO * x, TWO * y
    smaller = number(np.int32(bits(x if a < b else y) | bits(y if b < a else x)))
    return a + b if (a != a) | (b != b) else smaller


maximum, minimum, fmax, fmin = _extremes(np.int32)  # halves are computed in float32
maximum_float64, minimum_float64, fmax_float64, fmin_float64 = _extremes(np.int64)


def floor_divide(x, y):
    """(x - remainder) / y, which is whole but for its rounding; x / y for y = 0."""
    if y == 0:
        return x / y
    rest = math.fmod(x, y)
    quotient = (x - rest) / y
    if rest != 0 and (y < 0) != (rest < 0):
        quotient -= 1
    if quotient == 0:
        return math.copysign(quotient, x / y)
    if abs(quotient) < 2.0**52:  # larger ones are whole, infinities and NaN stay
        whole = math.floor(quotient)
        return whole + 1.0 if quotient - whole > 0.5 else whole + 0.0
    return quotient


def remainder(x, y):
    """Of y's sign; NaN for y = 0 or an infinite x."""
    rest = math.fmod(x, y)
    if rest == 0:
        return math.copysign(rest, y)
    return rest + y if (y < 0) != (rest < 0) else rest


def fmod(x, y):
    """What division towards zero leaves: of x's sign."""
    return math.fmod(x, y)


def _divided(real, most):
    """floor_divide, remainder and fmod for quotients below `most`, and whether they are: by a division, a fused product
    and what vectors have besides, where C's fmod is called for one number after the other.

    The quotient of |x| and |y|, rounded and cut, is the whole one or one more; what it leaves, r, is a multiple of the
    last places of x and y between -|y| and |y|, a float that is, so neither the product nor r + |y| is rounded. Below
    2^-3 / eps the rounding of (x - r) / y hides no whole number either. NaN, infinities and y = 0 fail the tests.
    """
    zero, one, half, most = real(0), real(1), real(0.5), real(most)

    @helper
    def left(x, y):
        size, by = abs(x), abs(y)
        whole = floor(size / by)
        rest = fma(-whole, by, size)
        rest = rest + by if rest < zero else rest
        return math.copysign(rest, x), (whole < most) & (rest < by)

    def floor_divide(x, y):
        rest, found = left(x, y)
        quotient = (x - rest) / y
        quotient = quotient - one if (rest != zero) & ((y < zero) != (rest < zero)) else quotient
        whole = floor(quotient)
        whole = whole + one if quotient - whole > half else whole
        return math.copysign(quotient, x / y) if quotient == zero else whole, found

    def remainder(x, y):
        rest, found = left(x, y)
        moved = rest + y if (y < zero) != (rest < zero) else rest
        return math.copysign(rest, y) if rest == zero else moved, found

    def fmod(x, y):
        return left(x, y)

    return floor_divide, remainder, fmod


floor_divide_plain, remainder_plain, fmod_plain = _divided(np.float32, 2.0**20)
floor_divide_plain_float64, remainder_plain_float64, fmod_plain_float64 = _divided(np.float64, 2.0**49)


def pow(x, y):
    """C's pow: NaN for a negative x and a fractional y; 1 for y = 0 and for x = 1, whatever the other."""
    return power(x, y)


def pow_plain(x, y):
    """(x**y, True), or (anything, False) where pow has to look."""
    return power_plain(x, y)


pow_numbers = 2, 3, 0.5, -1  # exponents that have loops of their own, in which they are constants
float_power, float_power_plain, float_power_numbers = pow, pow_plain, pow_numbers


def atan2(x, y):
    """The angle of the point (y, x), from -pi to pi."""
    return angle(x, y)


def hypot(x, y):
    """sqrt(x*x + y*y), without overflow on the way; inf if either is."""
    return length(x, y)


def logaddexp(x, y):
    """log(exp(x) + exp(y)), without overflow on the way."""
    return log_of_sum(x, y)


def logaddexp2(x, y):
    """log2(2**x + 2**y), without overflow on the way: exact for two equal numbers, one more than either."""
    larger, smaller = (x, y) if x > y else (y, x)
    more = np.float64(log_of_one_and(power_of_two(smaller - larger))) * 1.4426950408889634
    return larger + (1.0 if x == y else more)


def copysign(x, y):
    return math.copysign(x, y)


def heaviside(x, y):
    """0 below zero, y at it, 1 above; NaN of NaN."""
    if x == 0:
        return y
    return x if x != x else (1.0 if x > 0 else 0.0)


def ldexp(x, y):
    """x * 2**y of float32: in float64, which holds every product; of one rounding."""
    y = np.int64(min(max(y, -400), 400))
    return np.float32(np.float64(x) * number((y + 1023) << 52))


def ldexp_float64(x, y):
    """x * 2**y, rounded once: on the way down every step but the last leaves a normal number."""
    y = np.int64(min(max(y, -3000), 3000))
    for _ in range(2):
        up, down = y > 1023, y < -1022
        x = x * (2.0**1023 if up else 2.0**-969 if down else 1.0)
        y = y - (1023 if up else -969 if down else 0)
    return x * number(np.int64(min(max(y, -1022), 1023) + 1023) << 52)


def _adjacent(whole, places=0):
    """nextafter of floats whose bits are a `whole`, of which the last `places` are not used."""
    least, sign = whole(1 << places), whole(np.iinfo(whole).min)

    def nextafter(x, y):
        """The next number from x towards y; y itself where they are equal."""
        outwards = (y > x) == (x > 0)
        moved = whole(bits(x) + (least if outwards else -least))
        moved = whole(least | (bits(y) & sign)) if x == 0 else moved
        return y if x == y else x + y if x != x or y != y else number(moved)

    return nextafter


nextafter, nextafter_float64 = _adjacent(np.int32), _adjacent(np.int64)
nextafter_bfloat16 = _adjacent(np.int32, 16)


def nextafter_float16(x, y):
    """nextafter of float16, in float32: 2^-24 apart up to 2^-14, from there on in 10 of the 23 bits of a fraction."""
    least, normal, largest = np.float32(2.0**-24), np.float32(2.0**-14), np.float32(65504)
    size, outwards = abs(x), (y > x) == (x > 0)
    moved = number(np.int32(bits(size) + (np.int32(1 << 13) if outwards else np.int32(-1 << 13))))
    even = (size < normal) | ((size == normal) & (not outwards))
    moved = size + (least if outwards else -least) if even else moved
    moved = math.copysign(largest if size > largest else moved, x)
    moved = math.copysign(least, y) if x == 0 else moved
    return y if x == y else x + y if (x != x) | (y != y) else moved
