"""Element-wise operations of one: values within 4 ulp, NumPy's special values, dtypes and branch cuts, every form."""

import math

import ml_dtypes
import numba
import numpy as np
import pytest

import nbkernels as nb
import nbkernels.jitted
from nbkernels import dtypes
from nbkernels.dtypes import ALONE
from nbkernels.operations import BY_NAME, CHAINED, UNARY
from tests.cases import LAYOUTS as ANYHOW
from tests.compare import numpys, off_alone, same_bits
from tests.fuzz.rooms import DTYPES as EVERY_DTYPE
from tests.fuzz.rooms import specials

TRANSCENDENTAL = [op for op, row in UNARY.items() if row.cost == CHAINED]
EXACT = "abs negative positive sign square reciprocal sqrt floor ceil trunc round conj real imag".split()
TRUTHS = "signbit isnan isinf isfinite logical_not".split()
SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, -2.5, 1.5, 3.5, 1e-30, 5e-324, 709.9, -745.2]
HUGE = [1e5, 2.0**20, 1e10, 1e22, 1e300, -3e15]
FAR = "acos acosh asin atanh".split()  # NaN outside of an interval
everything = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of references
pytestmark = everything


def spread(rng, op, dtype, count=3000):
    """Numbers of all sizes, where the operation has results, and of both signs."""
    x = rng.standard_normal(count) * 10.0 ** rng.uniform(-6, 2.5, count)
    x = (
        np.tanh(x)
        if op in FAR and op != "acosh"
        else np.abs(x) + (op == "acosh")
        if op.startswith(("log", "acosh"))
        else x
    )
    return np.concatenate([x, SPECIAL, HUGE]).astype(dtype)


def ulps(found, reference, dtype):
    """The largest distance from a reference of more digits, in units of the last place of that."""
    exact = reference.astype(dtype)
    fine = np.isfinite(exact) & (exact != 0)
    step = np.spacing(np.abs(exact[fine])).astype(reference.dtype)
    return np.max(np.abs(found[fine].astype(reference.dtype) - reference[fine]) / step)


@pytest.mark.parametrize("op", TRANSCENDENTAL)
def test_within_four_ulp(rng, op):
    """Of float64 by long doubles, of float32 by float64; infinities, NaN and signs of zeros are NumPy's."""
    for dtype, wider in (("float64", np.longdouble), ("float32", "float64")):
        x = spread(rng, op, dtype)
        found, reference = getattr(nb, op)(x), numpys(op)(x.astype(wider))
        assert ulps(found, reference, dtype) <= 4
        expected = numpys(op)(x)
        rare = ~np.isfinite(expected) | (expected == 0)
        np.testing.assert_array_equal(found[rare], expected[rare])
        zeros = expected == 0
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))


@pytest.mark.parametrize("op", [*EXACT, *TRUTHS])
def test_the_exact_ones_are_numpys(rng, op):
    x = spread(rng, op, "float64")
    found, expected = getattr(nb, op)(x), numpys(op)(x)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    for dtype in ("float16",) if op in ("sqrt", "round", "isnan") else ():
        x = spread(rng, op, dtype)
        np.testing.assert_array_equal(getattr(nb, op)(x), numpys(op)(x))


WHOLE = [("abs", "int8"), ("negative", "uint8"), ("reciprocal", "int32"), ("reciprocal", "uint8"), ("sign", "int64"),
         ("square", "int16"), ("bitwise_invert", "uint16"), ("bitwise_invert", "bool"), ("floor", "bool"),
         ("abs", "bool"), ("sign", "uint64"), ("logical_not", "bool"), ("trunc", "int8"), ("imag", "int32"),
         ("isfinite", "int32"), ("exp", "int8"), ("signbit", "int32"), ("square", "bool"),
         *(("round", dtype) for dtype in (*dtypes.INTEGERS, "bool"))]  # fmt: skip


@pytest.mark.parametrize(("op", "dtype"), WHOLE)
def test_integers_and_bools(op, dtype):
    info = None if dtype == "bool" else np.iinfo(dtype)
    x = np.array([0, 1] * 40 if info is None else [info.min, info.max, *range(-5 if info.min else 0, 60)]).astype(dtype)
    found, expected = getattr(nb, op)(x), numpys(op)(x)
    assert found.dtype == expected.dtype
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=2e-3 if expected.dtype == "f2" else 1e-15)
    else:
        np.testing.assert_array_equal(found, expected)


def test_integers_that_are_rounded_stay_as_they_are():
    """As NumPy's round and the array API have it; NumPy's rint makes floats of them, also of asarray's."""
    for dtype in dtypes.INTEGERS:
        x = np.array([np.iinfo(dtype).min, 5, np.iinfo(dtype).max], dtype)
        for found in (nb.round(x), np.round(nb.asarray(x)), nb.round_(x.copy()), nb.round(x, out=np.empty_like(x))):
            same_bits(found, x)
        same_bits(np.rint(nb.asarray(x)), np.rint(x))
        same_bits(nb.round(x, dtype="f8"), x.astype("f8"))
        assert nb.round(nb.meta((2, 3), dtype)).dtype == dtype


DECIMALS = [1, 3, 23, 400, -1, -2, -300]


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", EVERY_DTYPE, ids=str)
def test_rounding_to_decimals_has_numpys_bits(rng, dtype):
    """Special values and others, every form; what the dtype does not hold (127 to tens, of int8) is nobody's."""
    most = {"c": 1e30, "f": 60000, "V": 60000}.get(dtype.kind, np.iinfo(dtype).max * 0.7 if dtype.kind in "iu" else 1)
    x = np.concatenate([specials(dtype).ravel(), (rng.standard_normal(300) * most ** rng.random(300)).astype(dtype)])
    if dtype.kind in "iu":
        x = x[(x.astype("f8") < most) & (x.astype("f8") > (-most if dtype.kind == "i" else -1))]
    x = x[: x.size // 2 * 2].reshape(2, -1)
    for decimals in DECIMALS:
        if dtype.kind == "b":
            with pytest.raises(TypeError, match=r"round: self is bool, and decimals="):
                nb.round(x, decimals)
            continue
        expected = np.round(x, decimals)
        wide = np.full((2, 2 * x.shape[1]), 7, dtype)
        mask = rng.random(x.shape) < 0.5
        for found in (
            nb.round(x, decimals),
            nb.round(x, decimals=decimals, out=np.full_like(x, 7)),
            nb.round(x, decimals, out=wide[:, ::2]),
            nb.round_(x.copy(), decimals),
            nb.round(x.T, decimals).T,
            nb.round(x[::-1], decimals)[::-1],
            nb.asarray(x).round(decimals),
            np.round(nb.asarray(x), decimals),
        ):
            alike(found, expected)
        assert (wide[:, 1::2] == np.asarray(7).astype(dtype)).all()
        kept = np.full_like(x, 7)
        alike(nb.round(x, decimals, where=mask, out=kept), np.where(mask, expected, np.full_like(x, 7)))
        lagging = np.concatenate([x.ravel(), x.ravel()[:1]])
        nb.round(lagging[:-1], decimals, out=lagging[1:])  # over what it reads
        alike(lagging[1:], expected.ravel())


def alike(found, expected):
    """The bits, of whatever NaN."""
    assert type(found) in (np.ndarray, type(nb.asarray(0.0)))
    assert found.dtype == expected.dtype
    parts = [(x.real, x.imag) if x.dtype.kind == "c" else (x,) for x in (np.asarray(found), expected)]
    for x, y in zip(*parts):
        number = ~(np.isnan(x) & np.isnan(y)) if x.dtype.kind in "fV" else slice(None)
        same_bits(np.ascontiguousarray(x[number]), np.ascontiguousarray(y[number]))


def test_rounding_to_decimals_elsewhere():
    x = np.array([1.25, 1.35, -2.55])
    assert nb.round(nb.meta((2, 3), "i4"), -1).dtype == np.int32
    same_bits(nb.round(x, 1, dtype="f4"), np.round(x.astype("f4"), 1))
    same_bits(nb.round(x, 1, out=np.empty(3, "f4")), np.round(x, 1).astype("f4"))
    same_bits(nb.round(np.array([15, 25]), -1, out=np.empty(2)), np.array([20.0, 20.0]))
    for wrong in (1.0, "1", True):
        with pytest.raises(TypeError, match=r"round: decimals must be an int"):
            nb.round(x, wrong)
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):  # NumPy's own
        np.round(nb.asarray(x), 1.0)
    assert nb.explain(nb.round, x, 1).path == "multiply, round and divide, one after another"
    tensor = pytest.importorskip("torch").tensor([1.25, 1.35])
    assert nb.round(tensor, decimals=1).tolist() == tensor.round(decimals=1).tolist()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_asin_of_zeros_has_their_sign(dtype):
    same_bits(nb.asin(np.array([0.0, -0.0] * 9, dtype)), np.array([0.0, -0.0] * 9, dtype))


def test_reciprocals_of_zero_are_warned_of():
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        nb.reciprocal(np.array([[0, 1]], "i4"))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        nb.reciprocal(np.array([0]))


def test_halves_are_rounded_once(rng):
    for dtype in ("float16", ml_dtypes.bfloat16):
        x = spread(rng, "exp", "float32").astype(dtype)
        for op in ("exp", "sin"):
            exact = numpys(op)(x.astype("f8")).astype(dtype)
            found = getattr(nb, op)(x)
            assert found.dtype == x.dtype
            np.testing.assert_array_equal(found.astype("f4"), exact.astype("f4"))


# -- complex numbers --------------------------------------------------------------------------------------------------

COMPLEX = [*TRANSCENDENTAL, "sqrt", "sign", "reciprocal", "round", "abs", "conj", "real", "imag", "isnan", "negative"]
COMPLEX.remove("cbrt")
CUT = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-9, 3.0]


def parts(x):
    return (x.real, x.imag) if np.iscomplexobj(x) else (x,)


@pytest.mark.parametrize("op", COMPLEX)
def test_complex_numbers_on_all_sides_of_the_cuts(rng, op):
    """Of a number's size, NumPy's results within 8 ulp; its signs of zeros and sides of the cuts."""
    x = np.array([complex(a, b) for a in CUT for b in CUT])
    wild = rng.standard_normal(500) * 10.0 ** rng.uniform(-2, 1, 500) + 1j * rng.standard_normal(500)
    for z in (x, wild):
        found, expected = getattr(nb, op)(z), numpys(op)(z)
        assert found.dtype == expected.dtype
        if op == "log1p":  # NumPy's own has no digits near 0
            a, b = z.real.astype(np.longdouble), z.imag.astype(np.longdouble)
            near = (0.5 * np.log1p(2 * a + a * a + b * b)).astype(float)
            expected.real = np.where(abs(1 + z) > 0.5, near, expected.real)
        with np.errstate(all="ignore"):
            close = (
                np.abs(found - expected) <= 8 * np.spacing(np.abs(expected).astype("f8"))
                if found.dtype != bool
                else True
            )
        same = np.all([(a == b) | (np.isnan(a) & np.isnan(b)) for a, b in zip(parts(found), parts(expected))], axis=0)
        assert np.all(close | same)
        for a, b in zip(parts(found), parts(expected)):
            sided = (np.abs(b) > 1e-300) | (b == 0)
            np.testing.assert_array_equal(np.signbit(a)[sided & ~np.isnan(b)], np.signbit(b)[sided & ~np.isnan(b)])


@pytest.mark.parametrize("op", ["exp", "sqrt", "log", "sinh", "cosh", "tanh", "acos", "asin", "atanh", "sign"])
def test_complex_special_values(op):
    """C99's, which NumPy has; it leaves the signs of some zeros and infinities open."""
    some = [0.0, -0.0, 1.0, math.inf, -math.inf, math.nan, -710.0, 1e300]
    z = np.array([complex(a, b) for a in some for b in some])
    for found, expected in zip(parts(getattr(nb, op)(z)), parts(numpys(op)(z))):
        same = (np.abs(found) == np.abs(expected)) | (np.isnan(found) & np.isnan(expected))
        near = np.abs(found - expected) <= 8 * np.spacing(np.abs(expected))
        assert np.all(same | near), z[~(same | near)]


def test_complex64_is_rounded_from_more_digits(rng):
    z = (rng.standard_normal(300) + 1j * rng.standard_normal(300)).astype("c8")
    for op in ("exp", "sqrt", "abs"):
        found, exact = getattr(nb, op)(z), numpys(op)(z.astype("c16"))
        assert found.dtype == exact.astype("c8" if exact.dtype == "c16" else "f4").dtype
        assert np.all(np.abs(found - exact) <= 1.5 * np.spacing(np.abs(exact).astype("f4")))


@pytest.mark.sampled
@pytest.mark.parametrize("op", sorted(ALONE))
def test_special_values_leave_nothing_unwritten(op):
    """Every special number of every dtype, in every layout, over an out that has other bytes each time."""
    for dtype in EVERY_DTYPE:
        x = specials(dtype).reshape(-1, 1)
        try:
            result = numpys(op)(x).dtype
        except TypeError:
            continue
        found = getattr(nb, op)(x)
        wrong = off_alone(op, found, x)
        assert not wrong.any(), (dtype, [(x[i], found[i], numpys(op)(x[i])) for i in np.argwhere(wrong)[:4, 0]])
        for lie in ANYHOW.values():
            for byte in (0x5A, 0xA5):
                out = np.full(x.size * result.itemsize, byte, np.uint8).view(result).reshape(x.shape)
                same_bits(getattr(nb, op)(lie(x), out=lie(out)), found, (dtype, byte))


def test_complex_roots_of_every_size(rng):
    """Each part within 4 ulp, of subnormal and of the largest numbers too."""
    x = np.empty(100_000, "c16")
    x.real, x.imag = rng.standard_normal((2, x.size)) * 10.0 ** rng.uniform(-323, 307, (2, x.size))
    x[: x.size // 2].imag = x[: x.size // 2].real * rng.standard_normal(x.size // 2)
    for z in (x, specials("c16")):
        found, exact = nb.sqrt(z), np.sqrt(z.astype(np.clongdouble))
        for part, right in zip(parts(found), parts(exact)):
            fine = np.isfinite(right)
            assert np.all(abs(part - right)[fine] <= 4 * np.spacing(abs(right[fine]).astype("f8")))


@pytest.mark.parametrize("op", ["exp", "sinh", "cosh", "sin", "cos"])
def test_complex_results_of_which_one_part_overflows(rng, op):
    """Each part within 8 ulp where the exponential alone overflows, up to where it brings back a subnormal number."""
    size, angle = rng.uniform(690, 1460, 2000), 10.0 ** rng.uniform(-323, rng.choice([-300, 0.3], 2000))
    z = np.empty(2000, "c16")
    z.real, z.imag = (angle, size) if op in ("sin", "cos") else (size, angle)
    found, exact = getattr(nb, op)(z), getattr(np, op)(z.astype(np.clongdouble))
    some = 0
    for part, right in zip(parts(found), parts(exact)):
        fine = np.isfinite(right.astype("f8"))
        assert np.all(abs(part - right)[fine] <= 8 * np.spacing(abs(right[fine]).astype("f8")))
        np.testing.assert_array_equal(part[~fine], right.astype("f8")[~fine])
        some += fine[size > 1418].sum()
    assert some > 10  # are finite, though the exponential of half the size overflows


# -- dtypes, shapes, forms --------------------------------------------------------------------------------------------

DTYPES = [np.dtype(d) for d in (*dtypes.INTEGERS, "bool", "float16", "float32", "float64", "complex64", "complex128")]


@pytest.mark.parametrize("op", sorted(ALONE))
def test_dtypes_are_numpys(op):
    """Of arrays without data: what comes out, and TypeError where NumPy has it."""
    for dtype in (*DTYPES, np.dtype(ml_dtypes.bfloat16)):
        try:
            expected = numpys(op)(np.ones(2, dtype)).dtype
        except TypeError:
            with pytest.raises(TypeError, match=f"{op}: not defined for {dtype}"):
                getattr(nb, op)(nb.meta((2, 3), dtype))
        else:
            assert getattr(nb, op)(nb.meta((2, 3), dtype)).dtype == expected


def test_every_operation_is_declared_once():
    assert set(UNARY) == ALONE
    assert {op for op in nb.ops.OPERATIONS if "unary" in getattr(nb, op).op.tags and op[-1] != "_"} == ALONE


LAYOUTS = [
    lambda x: x, lambda x: x.T, lambda x: x[::-1, ::2], lambda x: x[1:2], lambda x: x[:, 3], lambda x: x[2, 3],
    lambda x: x[:0], lambda x: np.broadcast_to(x[:, :1], x.shape), lambda x: x.reshape(4, 3, 10).transpose(1, 2, 0),
]  # fmt: skip


@pytest.mark.parametrize("view", range(len(LAYOUTS)))
def test_layouts(rng, view):
    x = LAYOUTS[view](rng.standard_normal((12, 10)))
    expected = np.asarray(np.exp(x))
    found = nb.exp(x)
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert type(found) is type(np.exp(x))
    if expected.ndim:
        assert found.strides == nb.add(x, x).strides
        assert nb.exp(x, order="F").flags.f_contiguous
        out = np.full((*expected.shape, 2), 7.0)[..., 0]
        assert nb.exp(x, out=out) is out
        np.testing.assert_array_equal(out, found)
        mask = rng.random(expected.shape) < 0.5
        out[...] = 7
        nb.exp(x, out=out, where=mask)
        np.testing.assert_array_equal(out, np.where(mask, found, 7))


def test_forms_and_keywords():
    x = np.array([[1.0, 4.0], [9.0, 16.0]])
    kept = x.copy()
    assert nb.sqrt_(kept) is kept
    np.testing.assert_array_equal(kept, np.sqrt(x))
    single = nb.sqrt(x, dtype="float32")
    assert single.dtype == np.float32
    into = np.zeros((2, 2), "c8")
    assert nb.sqrt(x, out=into) is into
    np.testing.assert_array_equal(into, np.sqrt(x).astype("c8"))
    overlapping = np.arange(1.0, 40.0)
    expected = np.sqrt(overlapping[:-3])
    nb.sqrt(overlapping[:-3], out=overlapping[3:])
    np.testing.assert_array_equal(overlapping[3:], expected)
    reversed_ = np.arange(1.0, 40.0)
    nb.sqrt(reversed_, out=reversed_[::-1])
    np.testing.assert_array_equal(reversed_, np.sqrt(np.arange(1.0, 40.0))[::-1])
    assert nb.sqrt(np.float32(4)) == 2
    assert type(nb.sqrt(np.float32(4))) is np.float32


def test_what_is_refused_and_writes_nothing():
    x, whole = np.ones((2, 3)), np.ones((2, 3), "i4")
    wrong = np.full((2, 3), 7, "i4")
    for call, error in [
        (lambda: nb.exp(x, out=wrong), TypeError),
        (lambda: nb.exp_(whole), TypeError),
        (lambda: nb.exp(x, out=np.zeros((3, 2))), ValueError),
        (lambda: nb.exp(x[:1], out=np.zeros((2, 3))), ValueError),
        (lambda: nb.exp(x, out=np.broadcast_to(0.0, (2, 3))), ValueError),
        (lambda: nb.exp(x, where=wrong), TypeError),
        (lambda: nb.exp(x, casting="loose"), ValueError),
        (lambda: nb.exp(x, dtype="i4"), TypeError),
        (lambda: nb.exp(2.0), TypeError),
        (lambda: nb.exp([2.0]), TypeError),
        (lambda: nb.exp(x.astype(object)), TypeError),
        (lambda: nb.exp(x.astype(">f8")), TypeError),
        (lambda: nb.floor(x + 1j), TypeError),
        (lambda: nb.negative(x > 0), TypeError),
        (lambda: nb.cbrt(x + 1j), TypeError),
        (lambda: nb.real(x + 1j, dtype="c16"), TypeError),
        (lambda: nb.bitwise_invert(x), TypeError),
    ]:
        with pytest.raises(error):
            call()
    assert (wrong == 7).all()


def test_bits_do_not_depend_on_neighbours(rng):
    """Neither on the length, nor on huge ones, which have another way."""
    x = rng.standard_normal(200) * 100
    for op in ("sin", "tan", "exp", "log1p"):
        function = getattr(nb, op)
        whole = function(x)
        assert np.array_equal(np.concatenate([function(x[i : i + 7]) for i in range(0, 200, 7)]), whole, equal_nan=True)
        assert np.array_equal(function(np.insert(x, range(0, 200, 9), 1e15))[1:9], whole[:8], equal_nan=True)
        assert np.array_equal(function(np.repeat(x, 3)[::3]), whole, equal_nan=True)


def test_large_arrays_take_threads(rng):
    x = rng.standard_normal(600_000)
    np.testing.assert_allclose(nb.exp(x), np.exp(x), rtol=1e-15)
    np.testing.assert_array_equal(nb.abs(x.reshape(600, 1000).T), np.abs(x).reshape(600, 1000).T)


# -- derivatives, jitted code, asarray --------------------------------------------------------------------------------

SMOOTH = [op for op, row in UNARY.items() if row.slope == BY_NAME]


@pytest.mark.parametrize("op", SMOOTH)
def test_derivatives_are_differences(rng, op):
    function = getattr(nb, op)
    for kind in ("f8", "c16"):
        if kind == "c16" and op == "cbrt":
            continue
        x = rng.uniform(0.2, 0.8, 5) + (op == "acosh")
        x = x + 1j * rng.uniform(0.2, 0.8, 5) if kind == "c16" else x
        y, back = nb.vjp(function, x)
        grad = rng.standard_normal(5) + (1j * rng.standard_normal(5) if y.dtype.kind == "c" else 0)
        (found,) = back(grad)
        assert (found.dtype, found.shape) == (x.dtype, x.shape)
        expected, step = np.zeros_like(x), 1e-6
        for turn in (1, 1j) if kind == "c16" else (1,):
            ends = [(np.conj(grad) * numpys(op)(x + sign * step * turn)).real for sign in (1, -1)]
            expected = expected + turn * (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_what_is_masked_off_has_no_derivative():
    y, back = nb.vjp(lambda x: nb.log(x, where=np.array([True, False]), out=None), np.array([0.5, 0.0]))
    np.testing.assert_array_equal(back(np.ones(2))[0], [2.0, 0.0])


@numba.njit
def _jitted(x, out):
    nb.negative_(x, where=x > 0)
    return nb.exp(x, out=out)


def test_inside_jitted_code(rng):
    x, out = rng.standard_normal((4, 5)), np.zeros((4, 5))
    expected = nb.exp(-np.abs(x))
    np.testing.assert_array_equal(_jitted(x, out), expected)
    np.testing.assert_array_equal(out, expected)


def test_numpys_names_of_asarrays_run_here():
    x = nb.asarray(np.array([0.25, 0.5]))
    with nb.watch() as log:
        for call in (np.exp, np.arcsin, np.absolute, np.rint, np.conjugate, np.sign, np.isnan, np.floor, np.square,
                     abs, np.negative, lambda x: -x, lambda x: +x, lambda x: x.round(), np.var):  # fmt: skip
            np.testing.assert_allclose(call(x), call(np.asarray(x)), rtol=1e-15)
        assert type(np.exp(x)) is type(x)
    assert log.fallbacks == []
