"""How results are held against others: bit by bit, or within what NumPy's may differ by."""

import warnings

import numpy as np
import pytest

import nbkernels
from nbkernels.dtypes import PARTS, ufunc
from nbkernels.operations import BINARY


def same_bits(found, expected, what=""):
    """Of one dtype and shape, and equal bit by bit, but that any NaN equals any NaN."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), what
    for part in ("real", "imag") if found.dtype.kind == "c" else ("real",):
        x, y = getattr(found, part), getattr(expected, part)
        word = f"u{x.itemsize}"
        wrong = (x.view(word) != y.view(word)) & ~((x != x) & (y != y))
        assert not wrong.any(), (what, np.argwhere(wrong)[:5], x[wrong][:5], y[wrong][:5])


def outcome(function, *args, **keywords):
    """The result, or the kind of the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **keywords)
    except (TypeError, ValueError) as error:
        return TypeError if isinstance(error, TypeError) else ValueError


def same(actual, expected, rtol=None):
    """Two errors of one kind, or results of one type, dtype and shape, within 64 eps of each other.

    That is what both lose at most over 64 terms of one sign; of float16 NumPy rounds each sum.
    """
    if isinstance(expected, type):
        assert actual is expected
        return
    assert type(actual) is type(expected)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if rtol is None:
        rtol = 64 * np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 0
    np.testing.assert_allclose(actual, expected, rtol=2e-3 if expected.dtype == np.float16 else rtol)


# How far from NumPy's own, in units of the last place of the result (its AVX-512 kernels are up to 4 ulp off).
ULPS = {op: row.ulp for op, row in BINARY.items() if row.ulp}


def near(op, actual, expected, x, y):
    """Equal, or within ULPS; any NaN equals any NaN; zeros of one sign but where NumPy leaves that to the machine."""
    assert type(actual) is type(expected)
    assert actual.dtype == expected.dtype
    if actual.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected)
        return
    if op == "multiply" and actual.dtype.kind == "c":  # NumPy's is contracted or not, by machine
        same_bits(actual, textbook(x.astype(actual.dtype), y.astype(actual.dtype)), (x, y))
        return
    if actual.dtype.kind == "c" and op in ("divide", "pow", "float_power"):
        off = _off(op, actual, expected, x, y)
        if off.any():  # NumPy's overflows on the way, in 1 / y or a power: NaN or 0 where the result is another
            x, y = (z.astype(actual.dtype) for z in (x, y))
            longer = (z.astype(np.clongdouble) for z in (x, y))
            off &= _off(op, actual, getattr(np, op)(*longer).astype(actual.dtype), x, y) | ~np.isfinite(x + y)
    else:
        off = _off(op, actual, expected, x, y)
    at = np.flatnonzero(off)[:5]
    assert not at.size, [(x.flat[i], y.flat[i], actual.flat[i], expected.flat[i]) for i in at]


def _off(op, actual, expected, x, y):
    """Where a number is further from the expected one than `near` allows."""
    wide = np.complex128 if actual.dtype.kind == "c" else np.float64
    reach = np.float64(1)
    if wide is np.complex128 and op in ("pow", "float_power"):  # exp(y log x) has the error of y log x
        with np.errstate(all="ignore"):
            reach = np.maximum(1, abs(y.astype(wide)) * (1 + abs(np.log(x.astype(wide)))) - 3)
    actual, expected, unit = actual.astype(wide), expected.astype(wide), epsilon(actual.dtype)
    bound = ULPS.get(op, 2 if wide is np.complex128 else 0) * unit * reach
    last = 2.0**-149 * (2**0.5 if wide is np.complex128 else 1)  # the least float32, of each part
    bound = bound * _size(expected, np.isfinite(expected.real), np.isfinite(expected.imag))
    if (op in ULPS or wide is np.complex128) and unit > 2.0**-50:
        bound = np.maximum(bound, 2 * last if op == "divide" else last)
    real, imag = (~((p == q) | (np.isnan(p) & np.isnan(q))) for p, q in ((actual.real, expected.real),
                                                                        (actual.imag, expected.imag)))  # fmt: skip
    with np.errstate(all="ignore"):
        off = ~(_size(actual - expected, real, imag) <= bound) & ~(np.isnan(actual) & np.isnan(expected))
    if wide is np.float64 and op not in ("maximum", "minimum", "fmax", "fmin", "nextafter"):
        off |= (np.signbit(actual) != np.signbit(expected)) & ~np.isnan(expected)
    if wide is np.complex128 and op in ("pow", "float_power"):  # where no digit is left, or both overflow, all may be
        with np.errstate(all="ignore"):
            off &= (reach * unit < 0.05) & (np.isfinite(actual) | np.isfinite(expected))
    return off


def _size(x, real, imag):
    """Absolute value by those parts of numbers that are chosen."""
    return np.hypot(np.where(real, x.real, 0), np.where(imag, x.imag, 0))


def numpys(op):
    """NumPy's function for an operation of one."""
    return getattr(np, op) if op in (*PARTS, "round") else ufunc(op)


# What the results of operations of one are held against: NumPy's in a wider dtype; how many ulp they may be off, of a
# complex number's size. Halves are rounded from a float32 that is up to 4 of its own ulp off.
WIDER = {"e": "f8", "E": "f8", "f": "f8", "d": np.longdouble, "F": "c16", "D": np.clongdouble}
OFF = {"e": 0.5 + 4 * 2.0**-13, "E": 0.5 + 4 * 2.0**-16, "f": 4, "d": 4, "F": 1.5, "D": 8}


def off_alone(op, found, x):
    """Where the result of an operation of one is neither near NumPy's in a wider dtype nor near NumPy's own; of what is
    not finite C99 leaves some signs open."""
    with np.errstate(all="ignore"):
        expected = numpys(op)(x)
        if expected.dtype.kind in "biu":
            return found != expected
        x = x if x.dtype.kind in "fcV" else x.astype(expected.dtype)
        if op == "square" and x.dtype.kind == "c":  # NumPy's is contracted or not, by machine
            return _far(found, textbook(x, x), x, 0)
        wide = x.astype("f4").astype("f8") if x.dtype.char == "E" else x.astype(WIDER[x.dtype.char])
        exact = np.array(numpys(op)(wide))
        if op == "log1p" and wide.dtype.kind == "c":  # NumPy's own has no digits near 0
            a, b = wide.real, wide.imag
            exact.real = np.where(abs(1 + wide) > 0.5, 0.5 * np.log1p(2 * a + a * a + b * b), exact.real)
        return _far(found, exact, x, OFF[x.dtype.char]) & _far(found, expected, x, OFF[x.dtype.char])


def _far(found, exact, x, ulp):
    """Where a part of `found` differs from the exact one's by more than `ulp` of the number's size, or in sign."""
    far, dtype = np.zeros(x.shape, bool), found.dtype if found.dtype.kind != "c" else np.dtype(found.dtype.char.lower())
    finite, rounded, size = np.isfinite(x), exact.astype(found.dtype), abs(exact).astype(dtype)
    for name in ("real", "imag") if found.dtype.kind == "c" else ("real",):
        part, right, near = (getattr(z, name) for z in (found, exact, rounded))
        step = np.spacing(np.where(np.isfinite(size), size, abs(near))).astype(right.dtype)
        same = (part == near) | (np.isnan(part) & np.isnan(near)) | (~finite & (abs(part) == abs(near)))
        same |= abs(part.astype(right.dtype) - right) <= ulp * step
        far |= ~same | (finite & ~np.isnan(near) & (np.signbit(part) != np.signbit(near)))
    return far


def textbook(x, y):
    """x * y of complex numbers, each step rounded."""
    result = np.empty(np.broadcast_shapes(x.shape, y.shape), x.dtype)
    result.real = x.real * y.real - x.imag * y.imag
    result.imag = x.real * y.imag + x.imag * y.real
    return result


def epsilon(dtype):
    return {2: 2.0**-10 if dtype.kind == "f" else 2.0**-7}.get(dtype.itemsize) or float(np.finfo(dtype).eps)


def check(op, x, y):
    """The public function's result for two arrays, or that it refuses what NumPy refuses."""
    if op == "pow" and x.dtype.kind == "i" == y.dtype.kind:
        y = y & np.array(np.iinfo(y.dtype).max, y.dtype)
    with np.errstate(all="ignore"):
        try:
            expected = getattr(np, op)(x, y)
        except TypeError:
            with pytest.raises(TypeError, match=f"^{op}: not defined for"):
                getattr(nbkernels, op)(x, y)
            return
        near(op, getattr(nbkernels, op)(x, y), expected, x, y)
