"""Element-wise operations of two against NumPy: grids of floats, complex numbers, mixed dtypes, keywords."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbkernels
from nbkernels import dtypes
from nbkernels.operations import BINARY
from tests.compare import check, near

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflow and division by zero


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", ["floor_divide", "remainder", "fmod"])
def test_division_of_floats_in_runs_and_alone(op, dtype, rng):
    """Runs are divided by vectors where all quotients are small: products and their neighbours, quotients next to the
    limits, runs of special values."""
    word, least = f"int{8 * np.dtype(dtype).itemsize}", np.dtype(dtype).type(0)
    special = np.array([0.0, -0.0, 1, -1, 0.5, -3, 7, np.inf, -np.inf, np.nan, 1e-38, 1e38, 1e-45], dtype)
    x, y = (np.repeat(a.ravel(), 70) for a in np.meshgrid(special, special))
    pairs = [(x, y), (rng.integers(-(2**31), 2**31, 2000).astype("int32").view("f4").astype(dtype), y[:2000])]
    for limit in (10, 1000, 2**20, 2**22, 2**49, 2**52):
        y = (rng.random(2000) + 0.01).astype(dtype)
        x = (np.rint((rng.random(2000) * 2 - 1) * limit * 1.1) * y).astype(dtype)
        pairs += [(x, y), (np.nextafter(x, least), -y), (np.nextafter(x, x * 2), y)]
    for x, y in pairs:
        result = getattr(nbkernels, op)(x, y)
        near(op, result, getattr(np, op)(x, y), x, y)
        alone = np.concatenate([getattr(nbkernels, op)(x[i : i + 1], y[i : i + 1]) for i in range(0, len(x), 37)])
        known = ~np.isnan(alone)
        np.testing.assert_array_equal(result[::37].view(word)[known], alone.view(word)[known])


FLOAT_OPS = [op for op in BINARY if not op.startswith(("bitwise", "gcd", "lcm", "ldexp"))]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -7.5, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("op", FLOAT_OPS)
def test_float16_grid(op):
    """Each special, subnormals and extremes with every 97th of all halves."""
    every = np.arange(0, 1 << 16, 97).astype(np.uint16).view(np.float16)
    every[np.isnan(every)] = np.nan  # a quiet one: C's pow of a signalling NaN and 0 is NaN
    some = np.array([*SPECIAL, 6e-8, -6e-8, 6.1e-5, 65504, -65504, 0.333, 1e-3, 1234], np.float16)
    check(op, *np.meshgrid(np.concatenate([every, some]), some))


@pytest.mark.parametrize("op", FLOAT_OPS)
def test_special_values_of_float64(op):
    values = np.array([*SPECIAL, 5e-324, 1e308, -1e308, 1e-308, 3.3, 9007199254740993.0])
    check(op, *np.meshgrid(values, values))


@pytest.mark.parametrize("op", ["add", "divide", "floor_divide", "pow", "nextafter", "less_equal", "logical_xor"])
def test_bfloat16(op):
    bfloat16 = pytest.importorskip("ml_dtypes", reason="needs ml_dtypes").bfloat16
    every = np.arange(0, 1 << 16, 97).astype(np.uint16).view(bfloat16)
    every[np.isnan(every)] = np.nan
    some = np.array([*SPECIAL, 1e-40, 3e38, 0.333], bfloat16)
    check(op, *np.meshgrid(every, some))
    x, y = np.array([1.5, 3.0], bfloat16), np.array([2.0, 3.0], np.float32)
    assert nbkernels.add(x, y).dtype == np.float32
    assert nbkernels.add(x, 1).dtype == bfloat16
    assert nbkernels.add(x, x, out=np.empty(2, np.float32)).tolist() == [3, 6]


@pytest.mark.parametrize(
    "op", ["multiply", "divide", "pow", "equal", "less", "greater_equal", "maximum", "fmin", "logical_or"]
)
def test_complex(op):
    parts = [0.0, 1.0, -2.0, 3.5] + [np.nan, np.inf] * (op not in ("multiply", "divide", "pow"))
    for dtype in ("complex64", "complex128"):
        values = np.array([complex(re, im) for re in parts for im in parts], dtype)
        x, y = np.meshgrid(values, values)
        if op in ("divide", "pow"):  # by zero, NumPy's own loops disagree with each other in the kinds of NaN
            x, y = (v[(x != 0) & (y != 0)] for v in (x, y))
        if op == "pow":
            rtol = 2e-5 if dtype == "complex64" else 2e-13
            np.testing.assert_allclose(nbkernels.pow(x, y), np.power(x, y), rtol=rtol)
        else:
            check(op, x, y)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_products_round_every_step(dtype, rng):
    """Rows of every length, of one number too, in place and reversed: the bits of the parts' formula."""

    def formula(x, y):
        result = np.empty(np.broadcast(x, y).shape, dtype)
        result.real, result.imag = x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real
        return result

    for n in (*range(1, 36), 1000, 20_001):
        x, y = (rng.standard_normal(2 * n).astype(np.dtype(dtype).type(0).real.dtype).view(dtype) for _ in "xy")
        for a, b in ((x, y), (x[:1], y), (x, y[-1:]), (x[::-1], y), (x[::2], y[::2])):
            assert nbkernels.multiply(a, b).tobytes() == formula(a, b).tobytes()
        for a, b in ((x, y), (y, x)):
            expected, out = formula(a, b).tobytes(), x.copy()
            first, second = (out if v is x else v for v in (a, b))
            assert nbkernels.multiply(first, second, out=out).tobytes() == expected


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ldexp_rounds_once(dtype, rng):
    """To subnormals from every size, beyond both ends; its first operand alone says what it computes in."""
    info = np.finfo(dtype)
    x = np.concatenate([rng.standard_normal(4000), [0.0, -0.0, np.inf, -np.inf, np.nan, info.max]]).astype(dtype)
    x[:1000] *= info.tiny  # subnormal or nearly
    for most in (20, 200, 1100, 2200, 2**31 - 1):
        y = rng.integers(-most, most, x.size).astype(np.int32)
        check("ldexp", x, y)
        check("ldexp", x, y.astype(np.int64))
    small = np.arange(-5, 6, dtype=np.int32)
    for args in ((x[:5], 3), (3, small), (1.5, small), (np.float32(1.5), small), (small, 2)):
        near("ldexp", nbkernels.ldexp(*args), np.ldexp(*args), small, small)
    with pytest.raises(TypeError, match=rf"^ldexp: not defined for {dtype} and {dtype}"):
        nbkernels.ldexp(x, x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nextafter_of_any_bits(dtype, rng):
    words = rng.integers(0, 256, (2, 4000, np.dtype(dtype).itemsize), np.uint8).view(dtype)[..., 0]
    check("nextafter", *np.where(np.isnan(words), np.asarray(-0.0, dtype), words))
    check("nextafter", words[0], -words[0])


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_nextafter_of_every_half(name):
    dtype = np.dtype(name if name == "float16" else pytest.importorskip("ml_dtypes").bfloat16)
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    for towards in (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0**-20):
        y = np.full_like(every, towards)
        near("nextafter", nbkernels.nextafter(every, y), np.nextafter(every, y), every, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_whole_powers_are_exact(dtype):
    """As C's; and a square is the product, whether the 2 is a number or one of many exponents."""
    x, y = np.meshgrid(np.arange(1.0, 200), np.arange(8.0))
    expected = x.astype(object) ** y.astype(int)
    held = expected < (2**24 if dtype == "float32" else 2**53)
    result = nbkernels.pow(x.astype(dtype), y.astype(dtype))
    np.testing.assert_array_equal(result[held], expected[held].astype(dtype))
    x = (np.arange(1000) ** 3 / 7).astype(dtype)
    for two in (2, 2.0, np.full(1000, 2, dtype)):
        np.testing.assert_array_equal(nbkernels.pow(x, two), x * x)


# -- mixed dtypes, layouts, keywords ----------------------------------------------------------------------------------

MIXED = ["bool", "int8", "float16", "float32"]


@settings(max_examples=60)  # most of them compile a loop
@given(st.data())
def test_any_call(data):
    """Shapes, strides, dtypes, where, casting, dtype, out: equal to NumPy's, or the same kind of error."""
    op = data.draw(st.sampled_from(["add", "less"]))
    shape = tuple(data.draw(st.lists(st.integers(1, 5), max_size=3)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))

    def array(dtype, shape):
        sizes = [n if data.draw(st.booleans()) else 1 for n in shape][data.draw(st.integers(0, len(shape))) :]
        steps = [data.draw(st.sampled_from([1, -1, 2, -3])) for _ in sizes]
        order = data.draw(st.permutations(range(len(sizes))))
        whole = rng.integers(0, 100, [sizes[d] * abs(steps[d]) for d in order]).astype(dtype)
        cut = whole.transpose(np.argsort(order))[(*(slice(None, None, s) for s in steps), ...)]
        return np.broadcast_to(cut, shape) if data.draw(st.booleans()) else cut

    kinds = data.draw(st.sampled_from(MIXED)), data.draw(st.sampled_from(MIXED))
    x, y = (array(kind, shape) for kind in kinds)
    given = {}
    if data.draw(st.booleans()):
        given["where"] = array("bool", shape) if data.draw(st.booleans()) else data.draw(st.booleans())
    if data.draw(st.booleans()):
        given["casting"] = data.draw(st.sampled_from(["no", "safe", "same_kind", "unsafe"]))
    if data.draw(st.booleans()):
        given["dtype"] = data.draw(st.sampled_from(["float32", "float64"]))
    masks = [given["where"]] if isinstance(given.get("where"), np.ndarray) else []
    shape = np.broadcast_shapes(*(a.shape for a in (x, y, *masks)))
    out = np.full(shape, 77, data.draw(st.sampled_from(MIXED)))
    mine, theirs = out.copy(), out.copy()
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(np, op)(x, y, out=theirs, **given)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error).__mro__[-4] if isinstance(error, TypeError) else ValueError):
            getattr(nbkernels, op)(x, y, out=mine, **given)
        np.testing.assert_array_equal(mine, out, "nothing is written on an error")
        return
    assert getattr(nbkernels, op)(x, y, out=mine, **given) is mine
    np.testing.assert_array_equal(mine, theirs)
    if "where" not in given:
        result = getattr(nbkernels, op)(x, y, **given)
        with np.errstate(all="ignore"):
            expected = getattr(np, op)(x, y, **given)
        assert (type(result), result.dtype, result.shape) == (type(expected), expected.dtype, expected.shape)


def test_masked_off_elements_are_neither_written_nor_warned_of():
    x, y, mask = np.arange(6), np.array([1, 0, 2, 0, 3, 0]), np.array([True, False] * 3)
    out = np.full(6, 77)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nbkernels.floor_divide(x, y, out=out, where=mask)
        nbkernels.pow(x, -y, out=out.copy(), where=y == 0)
        assert nbkernels.floor_divide_(out, 0, where=False) is out
    assert out.tolist() == [0, 77, 1, 77, 1, 77]


def test_complex_powers_of_zero_and_beyond_the_range():
    x = np.array([0, 0, 2, 2, -3], complex)
    y = np.array([1 + 1j, 0.5 - 2j, 32767, 1e5, -1e5])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(nbkernels.pow(x, y)[:4], [0, 0, np.inf, np.inf])
        assert nbkernels.pow(x, y)[4] == 0


def test_complex_powers_of_what_is_not_finite():
    """NumPy's, which are C's: of parts that are 0, infinite or NaN, and whole powers that vanish on the way."""
    parts = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan])
    numbers = np.empty((7, 7), complex)
    numbers.real, numbers.imag = parts[:, None], parts
    x, y = np.meshgrid(np.append(numbers, [1e-5, 1e5j]), np.append(numbers, [2, 3, 4, -99, 99, 200]))
    with np.errstate(all="ignore"):
        found, expected = nbkernels.pow(x, y), np.power(x, y)
    for part in ("real", "imag"):
        a, b = getattr(found, part), getattr(expected, part)
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(a[~finite], b[~finite])
    np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-13, atol=1e-13)


def test_torchs_dtypes():
    torch = pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    x = torch.ones(3)
    assert nbkernels.add(x, x, dtype=torch.float64).dtype == torch.float64
    assert nbkernels.add(x, x, dtype=torch.bfloat16).dtype == torch.bfloat16
    assert nbkernels.add.reduce(x, dtype=torch.float64).dtype == torch.float64
    assert nbkernels.add(np.ones(3, "f4"), 1, dtype=torch.float64).dtype == np.float64
    with pytest.raises(TypeError, match=r"^add: dtype=torch.quint8 is none"):
        nbkernels.add(x, x, dtype=torch.quint8)


def test_logic_of_numbers_that_a_dtype_rounds_to_nothing():
    x = np.array([0.0, 1.0, -3.0], "f2")
    for op in ("logical_and", "logical_or", "logical_xor"):
        mine, numpys = getattr(nbkernels, op), getattr(np, op)
        for number in (1e-9, 0.0, -2, 0, 1e-9j):
            for _ in range(2):
                np.testing.assert_array_equal(mine(x, number), numpys(x, number), strict=True)
                np.testing.assert_array_equal(mine(number, x, where=x == x), numpys(number, x), strict=True)


def test_a_mask_that_is_out_itself():
    mask = np.array([True, False, True, False])
    assert nbkernels.greater(np.array([1, 1, 0, 0]), 0, where=mask, out=mask) is mask
    assert mask.tolist() == [True, False, False, False]
    raw = np.array([True, True, False, True, False])
    nbkernels.logical_or(np.zeros(4, bool), np.zeros(4, bool), where=raw[:-1], out=raw[1:])
    assert raw.tolist() == [True, False, False, True, False]


def test_results_without_dimensions_are_scalars():
    x = np.array(1.5)
    for y in (x, 2, np.float64(2), np.float32(1)):
        for result in (nbkernels.add(x, y), nbkernels.less(y, x)):
            assert isinstance(result, np.generic)
    assert nbkernels.add(x, x, out=np.empty(())).ndim == 0
    assert isinstance(nbkernels.add(np.float32(1), 2), np.float32)
    assert isinstance(nbkernels.sum_to(np.ones(3), ()), np.float64)


def test_torch_joins_in():
    torch = pytest.importorskip("torch", reason="needs torch")
    pytest.importorskip("ml_dtypes", reason="needs ml_dtypes")
    x = torch.tensor([1.5, 2.5], dtype=torch.bfloat16)
    result = nbkernels.multiply(x, x)
    assert result.dtype == torch.bfloat16
    assert result.tolist() == [2.25, 6.25]
    assert nbkernels.greater(x, 2).tolist() == [False, True]
    assert dtypes.known(np.dtype("bool"))
