"""exp, log, tanh, erf, pow and their like against wider arithmetic, in loops and alone; special values."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numba import njit

import nbkernels
from nbkernels.elementary import activations, powers, transcendental
from nbkernels.elementary.real import fma
from nbkernels.jit.compile import known

ONE = ("exp", "expm1", "log", "log1p", "tanh", "erf")
TWO = ("pow", "atan2", "hypot", "logaddexp")
ACTIVATIONS = ("relu", "sigmoid", "silu", "gelu", "gelu_tanh")
NUMPY = {"pow": "power", "atan2": "arctan2"}
DTYPES = ("float32", "float64")
SPECIAL = (0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, 2.0**24 + 2)

known.enter()  # compiled code finds the functions from here on
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of NaN and overflow

_loops = {}


def function_named(name):
    return next(getattr(home, name) for home in (powers, transcendental, activations) if hasattr(home, name))


def loop(name, *arguments):
    """The function over arrays, compiled: vectorised, with a tail."""
    if name not in _loops:
        function = function_named(name)
        if name in TWO:

            def body(x, y, out):
                for i in range(x.size):
                    out[i] = function(x[i], y[i])
        else:

            def body(x, out):
                for i in range(x.size):
                    out[i] = function(x[i])

        _loops[name] = njit(body, error_model="numpy")
    out = np.empty_like(arguments[0])
    _loops[name](*arguments, out)
    return out


@np.vectorize
def exact_erf(x):
    """By its Taylor series, in 60 digits."""
    if not abs(x) < 7:
        return np.longdouble(math.erf(x))
    with localcontext() as context:
        context.prec = 60
        x, pi = Decimal(float(x)), Decimal("3.14159265358979323846264338327950288419716939937510582097494")
        term = total = x
        n = 0
        while n < x * x * 2 or abs(term) > Decimal(10) ** -45:
            n += 1
            term *= -x * x / n
            total += term / (2 * n + 1)
        total = 2 * total / pi.sqrt()
        return np.longdouble(float(total)) + np.longdouble(float(total - Decimal(float(total))))


def exact(name, *arguments):
    """The function in the next wider type."""
    wide = [a.astype(np.float64 if a.dtype == np.float32 else np.longdouble) for a in arguments]
    if name == "erf":
        return exact_erf(*wide).astype(wide[0].dtype)
    if name == "logaddexp":
        return np.maximum(*wide) + np.log1p(np.exp(-np.abs(wide[0] - wide[1])))
    return getattr(np, NUMPY.get(name, name))(*wide)


def check(name, *arguments, ulp=2):
    """Within `ulp` units of the last place, special values the same."""
    result, value = loop(name, *arguments), exact(name, *arguments)
    kind = result.dtype.type
    rounded = value.astype(kind)
    finite = np.isfinite(rounded)
    unit = np.maximum(np.spacing(np.abs(rounded)), np.spacing(kind(0)))
    if name == "logaddexp":  # of its largest term
        terms = np.maximum(*arguments), np.log1p(np.exp(-np.abs(arguments[0] - arguments[1])))
        unit = np.maximum(unit, np.spacing(np.maximum(*map(np.abs, terms))))
    limit = value.dtype.type(np.finfo(kind).max)
    close = np.abs(np.clip(result, -limit, limit).astype(value.dtype) - np.clip(value, -limit, limit)) <= ulp * unit
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    wrong = np.flatnonzero(~np.where(finite, close, same))
    where = [(tuple(a[i] for a in arguments), result[i], value[i]) for i in wrong[:3]]
    assert not len(wrong), f"{name}: {len(wrong)} wrong, {where}"


def wide_enough(dtype):
    if dtype == "float64" and np.finfo(np.longdouble).nmant < 63:
        pytest.skip("lacks a long double wider than a double")


def arguments(name, dtype, rng, size):
    """All magnitudes, and those where the function bends."""
    whole = np.int32 if dtype == "float32" else np.int64
    for _ in range(1 if name in ONE else 2):
        bits = rng.integers(np.iinfo(whole).min, np.iinfo(whole).max, size, whole, endpoint=True).view(dtype)
        near = (rng.standard_normal(size) * 10.0 ** rng.uniform(-4, 3, size)).astype(dtype)
        yield np.concatenate([bits, near, rng.permutation(near)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONE + TWO)
def test_two_ulp(name, dtype, rng):
    wide_enough(dtype)
    check(name, *arguments(name, dtype, rng, 300 if name == "erf" else 100_003))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "pow", "hypot"])
def test_edges_of_the_range(name, dtype):
    """Around the last argument before overflow, before underflow, and the smallest numbers there are."""
    wide_enough(dtype)
    info = np.finfo(dtype)
    edges = [math.log(float(info.max)), math.log(float(info.tiny)), math.log(float(info.smallest_subnormal)), 0.625]
    points = [np.array(edges), np.array([float(x) for x in (info.max, info.tiny, info.smallest_subnormal)])]
    x = np.concatenate([(np.array(p)[:, None] * (1 + np.arange(-40, 41) * 1e-7)).ravel() for p in points]).astype(dtype)
    if name in ONE:
        check(name, x)
    else:
        check(name, np.full_like(x, np.e), x)
        check(name, x, x[::-1].copy())


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_of_numbers_near_one(dtype, rng):
    """The largest exponents, which show every error of the logarithm."""
    wide_enough(dtype)
    x = (2 ** (rng.uniform(0.15, 0.3, 1_000_003) * rng.choice([-1, 1], 1_000_003))).astype(dtype)
    ends = np.log2([np.finfo(dtype).tiny, np.finfo(dtype).max])
    y = rng.choice(ends, x.size) * rng.uniform(0.97, 1, x.size) / np.log2(x.astype(np.longdouble))
    check("pow", x, y.astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_have_their_own_bits_among_others(dtype, rng):
    """Where all of a few neighbours are ordinary, they go by pow_plain."""
    whole = f"i{np.dtype(dtype).itemsize}"
    special = np.array(list(itertools.product(SPECIAL, SPECIAL)), dtype).T
    near = np.float64(2) ** rng.uniform(-20, 20, (2, 300)) * [[1], [-1]]
    ends = np.array([np.full(300, 1.37), np.log2(np.finfo(dtype).max) / np.log2(1.37) + rng.uniform(-40, 5, 300)])
    spread = rng.integers(0, np.iinfo(whole).max, (2, 300), whole).view(dtype)
    x, y = np.concatenate(
        [special, near.astype(dtype), ends.astype(dtype), (ends * [[1], [-1]]).astype(dtype), spread], 1
    )
    alone = np.concatenate([nbkernels.pow(x[i : i + 1], y[i : i + 1]) for i in range(x.size)])
    for apart in (1, 64):
        among = np.full((2, apart * x.size), 1.5, dtype)
        among[:, ::apart] = x, y
        found = nbkernels.pow(*among)
        assert np.array_equal(np.isnan(found[::apart]), np.isnan(alone))
        assert np.array_equal(*(np.where(np.isnan(z), 0, z).astype(dtype).view(whole) for z in (found[::apart], alone)))
        assert apart == 1 or (found.reshape(-1, apart)[:, 1:] == nbkernels.pow(*among[:, 1:2])).all()


KNOWN = {2: lambda x: x * x, 3: lambda x: x * x * x, -1: lambda x: 1 / x, 0.5: lambda x: np.sqrt(abs(x))}


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "complex64", "int64", "uint64"])
def test_powers_by_a_number_have_the_bits_of_others(dtype, rng):
    """Rows with a number for their exponent have loops in which it is known, if it is 2, 3, -1 or 1/2."""
    real, integer = np.dtype(dtype).kind == "f", np.dtype(dtype).kind in "iu"
    x, imaginary = np.sort(rng.uniform(-9, 9, 333)), 0 if real else 1j * rng.uniform(-9, 9, 333)  # runs of one sign
    x = (rng.integers(1, 100, 333) if integer else np.concatenate([SPECIAL, x + imaginary])).astype(dtype)
    bits = f"u{np.dtype(dtype).itemsize}"

    def same(found, expected):
        assert np.array_equal(*(np.where(z != z, 1, z).view(bits) for z in (found, expected)))

    for power in (1, 2, 3, 4, 20) if integer else (*KNOWN, 1, 4, -2, 1.5):
        alone = np.concatenate([nbkernels.pow(x[i : i + 1], np.full(1, power, dtype)) for i in range(x.size)])
        for size in (0, 1, 7, 64, x.size):
            same(nbkernels.pow(x[:size], power), alone[:size])
            same(nbkernels.pow(x[:size], np.array(power, dtype)), alone[:size])
            same(nbkernels.pow(x[:size], np.full(size, power, dtype)), alone[:size])
        same(nbkernels.pow(x[::2], power), alone[::2])
        same(nbkernels.pow(np.stack([x] * 3), np.array([[5], [power], [4]], dtype))[1], alone)
        some = rng.random(x.size) < 0.5
        same(nbkernels.pow(x, power, where=some, out=x.copy()), np.where(some, alone, x))
        if dtype in DTYPES and power in KNOWN:
            finite = x[np.isfinite(x) & ((power != 0.5) | (x > 0))]
            same(nbkernels.pow(finite, power), KNOWN[power](finite))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONE + TWO)
def test_special_values(name, dtype):
    """Those of C99, with the signs of zeros."""
    pairs = np.array(list(itertools.product(SPECIAL, SPECIAL)) if name in TWO else [SPECIAL, SPECIAL], dtype)
    inputs = pairs.T.copy() if name in TWO else pairs[:1]
    result = loop(name, *inputs)
    expected = np.array([math.erf(x) for x in inputs[0]], dtype) if name == "erf" else exact(name, *inputs)
    expected = np.array(expected, dtype)
    if name == "logaddexp":
        expected = np.logaddexp(*inputs)
    np.testing.assert_allclose(result, expected, rtol=4 * np.finfo(dtype).eps)
    exact_ones = np.isin(expected, (0, 1, -1, np.inf, -np.inf))
    np.testing.assert_array_equal(result[exact_ones], expected[exact_ones])
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[number]), np.signbit(expected[number]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONE + TWO + ACTIVATIONS)
def test_bits_do_not_depend_on_the_place(name, dtype, rng):
    """A vector's lane, a loop's tail and plain Python agree in every bit."""
    count = 2 if name in TWO else 1
    inputs = [(rng.standard_normal(61) * 5).astype(dtype) for _ in range(count)]
    whole = loop(name, *inputs)
    function = function_named(name)
    alone = np.array([function(*values) for values in zip(*inputs)], dtype)
    for start in (1, 17, 60):
        part = loop(name, *(x[start:].copy() for x in inputs))
        np.testing.assert_array_equal(part, whole[start:])
    np.testing.assert_array_equal(alone, whole)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sin", "tan", "pow"])
def test_bits_do_not_depend_on_the_distance_of_elements(name, dtype, rng):
    """Of functions that go by plainer ones where all of a run's arguments are plain: large ones and NaN among them."""
    x = rng.uniform(0, 3, 700).astype(dtype)
    x[rng.integers(0, 700, 20)] = np.array([3e7, np.nan, np.inf, 1e-41], dtype).repeat(5)
    args = (x, x[::-1].copy())[: 1 + (name == "pow")]
    wanted = getattr(nbkernels, name)(*args)
    for step in (2, -3, 4, 7):
        apart = [np.repeat(a, abs(step))[::step] for a in args]
        assert getattr(nbkernels, name)(*apart)[:: int(np.sign(step))].tobytes() == wanted.tobytes(), step


@pytest.mark.parametrize("dtype", DTYPES)
def test_activations(dtype, rng):
    x = np.concatenate([(rng.standard_normal(1000) * 4), SPECIAL]).astype(dtype)
    x = x[np.isfinite(x) & (np.abs(x) < 1e10)]
    w, eps = x.astype(np.longdouble), np.finfo(dtype).eps
    formulas = {
        "relu": np.maximum(w, 0),
        "sigmoid": 1 / (1 + np.exp(-w)),
        "silu": w / (1 + np.exp(-w)),
        "gelu": w / 2 * (1 + exact_erf(w / np.sqrt(np.longdouble(2)))),
        "gelu_tanh": w / 2 * (1 + np.tanh(np.sqrt(2 / np.longdouble(np.pi)) * (w + np.longdouble(0.044715) * w**3))),
    }
    for name, expected in formulas.items():
        cancels = 4 * eps * np.abs(w) if "gelu" in name else 0  # 1 + erf(x) of a negative x
        assert (np.abs(loop(name, x) - expected) <= 4 * eps * np.abs(expected) + cancels).all(), name
        at_nan = loop(name, np.array([np.nan, np.inf, -0.0], dtype))
        assert np.isnan(at_nan[0])
        assert at_nan[1] == np.inf or name == "sigmoid"
        assert at_nan[2] == (0.5 if name == "sigmoid" else 0)


def test_integers_count_as_float64():
    @njit
    def call(x, y):
        return powers.pow(x, y), transcendental.exp(x), transcendental.atan2(np.float32(x), y)

    assert call(2, 10) == (
        1024.0,
        transcendental.exp(np.float64(2)),
        transcendental.atan2(np.float64(2), np.float64(10)),
    )


def test_plain_and_compiled_fma_round_once(rng):
    @njit
    def compiled(a, b, c):
        return fma(a, b, c)

    for dtype in DTYPES:
        a, b = (rng.standard_normal(100).astype(dtype) for _ in range(2))
        for x, y, z in zip(a, b, -(a * b)):
            assert fma(x, y, z) == compiled(x, y, z) != 0 or float(x) * float(y) == -float(z)
