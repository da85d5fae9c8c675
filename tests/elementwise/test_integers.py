"""Element-wise operations of two integers against NumPy: all pairs of small ones, next to whole quotients, extremes."""

import warnings

import numpy as np
import pytest

import nbkernels
from nbkernels import dtypes
from nbkernels.operations import BINARY
from tests.compare import ULPS, check, near

OPS = [op for op in BINARY if op not in (*ULPS, "heaviside", "copysign", "nextafter", "ldexp")] + ["pow"]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflow and division by zero


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("op", OPS)
def test_all_pairs_of_small_integers(op, dtype):
    every = np.arange(256, dtype=np.uint8).view(dtype)
    check(op, every[:, None].repeat(256, 1), every[None].repeat(256, 0))


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("op", ["floor_divide", "remainder", "fmod"])
def test_division_next_to_whole_quotients(op, dtype, rng):
    """Multiples of divisors of every size, one more and one less; and any numbers, by one divisor or by as many."""
    info = np.iinfo(dtype)
    size = rng.integers(0, info.bits, 3000)
    divisors = (rng.integers(1, 1 << 62, 3000) >> (62 - size).clip(0)).clip(1, info.max).astype(dtype)
    quotients = rng.integers(0, info.max, 3000).astype(dtype) // divisors
    signs = rng.choice([-1, 1], (2, 3000)).astype(dtype) if info.min else np.ones((2, 3000), dtype)
    for off in (-1, 0, 1):
        check(op, quotients * divisors * signs[0] + np.array(off).astype(dtype), divisors * signs[1])
    every = rng.integers(info.min, info.max, 3000, dtype=dtype, endpoint=True)
    for divisor in (1, 3, 7, 10, 641, info.max, info.min, -1 if info.min else 2, -7 if info.min else 5):
        check(op, every, np.full(3000, divisor, dtype))
        if divisor:
            with np.errstate(all="ignore"):
                near(op, getattr(nbkernels, op)(every, divisor), getattr(np, op)(every, divisor), every, every)


def test_division_of_uint64_next_to_whole_quotients(rng):
    divisors = rng.integers(1, 1 << 64, 3000, np.uint64) >> rng.integers(0, 64, 3000, np.uint64)
    divisors = np.maximum(divisors, np.uint64(1))
    quotients = rng.integers(0, (1 << 64) - 1, 3000, np.uint64, endpoint=True) // divisors
    for off in (0, 1, (1 << 64) - 1):
        for op in ("floor_divide", "remainder"):
            check(op, quotients * divisors + np.uint64(off), divisors)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize("op", ["floor_divide", "remainder", "fmod"])
def test_division_of_wide_integers_in_runs(op, dtype, rng):
    """Runs of numbers that a float64 holds, and of others."""
    info = np.iinfo(dtype)
    for bits in (3, 20, 49, 50, 51, 63):
        low = max(info.min, -(1 << bits))
        for other in (2, 20, 49, 50, 51, 63):
            x = rng.integers(low, 1 << bits, 500, dtype) if bits < 63 else rng.integers(low, info.max, 500, dtype)
            y = rng.integers(max(info.min, -(1 << other)), (1 << other) - 1, 500, dtype)
            exact = np.floor_divide(x, y) * y
            for first in (x, exact, exact - np.array(1, dtype), exact + np.array(1, dtype)):
                with np.errstate(all="ignore"):
                    expected = getattr(np, op)(first, y)
                np.testing.assert_array_equal(getattr(nbkernels, op)(first, y), expected)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64"])
def test_whole_powers_of_integers_in_runs(dtype, rng):
    info = np.iinfo(dtype)
    for most in (3, 31, 32, 100):
        x, y = rng.integers(info.min, info.max, 500, dtype), rng.integers(0, most, 500, dtype, endpoint=True)
        np.testing.assert_array_equal(nbkernels.pow(x, y), np.power(x, y))


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize("op", [op for op in OPS if op not in dtypes.COMPARISONS] + ["less"])
def test_extremes_of_wide_integers(op, dtype):
    info = np.iinfo(dtype)
    values = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2, 0, 1, 2, 3, 7, 62, 63, 64, 65, 100]
    values = np.array(values + ([-1, -2, -3, -64] if info.min else []), dtype)
    check(op, *np.meshgrid(values, values))
    if op == "less":
        near = np.array([0, 1, 2**62, 2**63 - 2, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
        for mixed in dtypes.COMPARISONS:  # float64 would not tell neighbours apart
            check(mixed, *np.meshgrid(values, near if info.min else near.view(np.int64)))
        for other in (np.arange(-3, 4), np.arange(4, dtype=np.uint64)):
            check(op, *np.meshgrid(values, other))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint16", "uint32", "uint64"])
def test_shifts_beyond_the_word_in_vectors_and_singly(dtype, rng):
    info = np.iinfo(dtype)
    for n in (3, 40, 999):
        x = rng.integers(info.min, info.max, n, dtype, endpoint=True)
        y = rng.choice(np.array([info.min, info.max, 0, 1, 7, 8, 31, 32, 33, 63, 64, 65], dtype), n)
        for a, b in ((x, y), (x[:1], y), (x, y[:1]), (x[::-2], y[::2])):
            check("bitwise_left_shift", a, b)
            check("bitwise_right_shift", a, b)


def test_powers_are_looked_at_as_they_are_computed():
    """An exponent that becomes negative in the dtype asked for."""
    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            nbkernels.pow(np.array([2, 3], "u8"), np.array([200, 1], "u8"), dtype="i1", casting="unsafe")
        assert nbkernels.pow(np.array([2, 4]), np.array([-1, 2]), dtype="f8").tolist() == [0.5, 16]


@pytest.mark.parametrize("op", ["floor_divide", "remainder", "fmod"])
def test_integer_division_warns_as_numpys(op):
    for dtype in ("int8", "uint64"):
        x, y = np.array([5, 6], dtype), np.array([0, 2], dtype)
        for args in ((x, y), (x, 0), (x[0], y[0])):
            with pytest.warns(RuntimeWarning, match="divide by zero"):
                getattr(nbkernels, op)(*args)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        getattr(nbkernels, op)(np.arange(3), 0)
    many = np.ones(300_000, np.int16)  # over threads
    getattr(nbkernels, op)(many, 1)
    many[-1] = 0
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert getattr(nbkernels, op)(many, many)[-1] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(nbkernels, op)(np.arange(3), np.arange(1, 4))
        getattr(nbkernels, op)(np.ones(0, int), 0)


def test_the_smallest_integer_by_minus_one():
    for dtype in ("int8", "int32", "int64"):
        x = np.full(70, np.iinfo(dtype).min, dtype)
        with pytest.warns(RuntimeWarning, match="overflow"):
            assert (nbkernels.floor_divide(x, -1) == x).all()
        assert (nbkernels.remainder(x, -1) == 0).all()


def test_negative_powers_of_integers_are_refused_before_anything_is_written():
    out = np.full(3, 77)
    for other in (-1, np.array([1, 1, -1]), np.int64(-2)):
        with pytest.raises(ValueError, match="negative"):
            nbkernels.pow(np.arange(3), other, out=out)
    assert (out == 77).all()


def test_numbers_that_integers_cannot_hold():
    x = np.array([1, 2], np.uint8)
    assert nbkernels.less(x, 300).tolist() == [True, True]
    assert nbkernels.less(-1, x).tolist() == [True, True]
    assert nbkernels.equal(x, 2**70).tolist() == [False, False]
    with pytest.raises(OverflowError, match="other=300 is out of bounds for uint8"):
        nbkernels.bitwise_and(x, 300)


def test_negative_powers_are_refused_after_others_of_the_same_layout():
    """The plan that is remembered is for any number of that kind, also for one that no power of integers has."""
    x = np.arange(1, 7, dtype=np.int32)
    for y, bad in (
        (3, -3),
        (np.full(6, 2, np.uint8), np.full(6, -2, np.int8)),
        (np.int32([2] * 6), np.int32([-2] * 6)),
    ):
        for _ in range(3):
            np.testing.assert_array_equal(nbkernels.pow(x, y), np.power(x, y))
            with pytest.raises(ValueError, match="negative"):
                nbkernels.pow(x, bad)
