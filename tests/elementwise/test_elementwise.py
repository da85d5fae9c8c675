"""Element-wise kernels against NumPy: bits, dtypes, special values, errors; the forms of the public functions."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbkernels
from nbkernels.cpu.elementwise import elementwise
from nbkernels.operations import BINARY
from tests.cases import LAYOUTS
from tests.compare import same_bits
from tests.elementwise.common import DTYPES, FLOATS, OPS, SPECIAL, calls, reference, run, values
from tests.fuzz import rooms

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflow and division by zero


@given(st.sampled_from(["add", "multiply", "divide", "maximum"]), calls())
def test_any_shapes_strides_and_layouts(op, call):
    x, y, lay = call
    expected = reference(op, x, y)
    before = x.copy(), y.copy()
    out, raw = lay(np.full(expected.shape, 77, expected.dtype))
    out[...] = 77
    guard = raw.copy()
    run(op, x, y, out)
    same_bits(out, expected)
    same_bits(x, before[0])
    same_bits(y, before[1])
    out[...] = 77
    np.testing.assert_array_equal(raw, guard, "what lies between out's elements is untouched")


@pytest.mark.sampled
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(op, dtype, rng):
    if op == "subtract" and dtype == "bool":
        with pytest.raises(TypeError, match="bool"):
            elementwise.subtract(np.zeros(3, bool), np.ones(3, bool), np.ones(3, bool))
        return
    for n in (1, 7, 16, 31, 64, 67, 200):
        x, y = values(rng, n, dtype), values(rng, n, dtype)
        same_bits(run(op, x, y), reference(op, x, y))
        same_bits(run(op, x, y[:1]), reference(op, x, y[:1]))
        same_bits(run(op, x[:1], y), reference(op, x[:1], y))


@pytest.mark.parametrize("op", OPS)
def test_special_values_meet_each_other(op):
    for dtype in FLOATS:
        x, y = (a.astype(dtype) for a in np.meshgrid(SPECIAL, SPECIAL))
        same_bits(run(op, x, y), reference(op, x, y))


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of divisions of integers by 0
@pytest.mark.parametrize("op", BINARY)
def test_pairs_of_special_values_leave_nothing_unwritten(op):
    """Of every dtype, in every layout, over an out that has other bytes each time."""
    function, refused = getattr(nbkernels, op), 0
    for dtype in rooms.DTYPES:
        special = rooms.specials(dtype)
        shifts = range(special.size) if special.size < 50 else range(0, special.size, 151)
        x, y = np.tile(special, len(shifts)), np.concatenate([np.roll(special, k) for k in shifts])
        y = np.where(y < 0, 1, y).astype(dtype) if op == "pow" and dtype.kind == "i" else y
        x, y = x.reshape(-1, 1), y.reshape(-1, 1)
        try:
            found = function(x, y)
        except TypeError:
            refused += 1
            continue
        for lie in LAYOUTS.values():
            for byte in (0x5A, 0xA5):
                out = np.full(found.nbytes, byte, np.uint8).view(found.dtype).reshape(found.shape)
                same_bits(function(lie(x), lie(y), out=lie(out)), found, (dtype, byte))
    assert refused < len(rooms.DTYPES) - 1


@pytest.mark.parametrize("op", ["maximum", "minimum", "fmax", "fmin"])
def test_extremes_of_every_half_are_those_of_float32(op):
    """Each half with special ones and with others, zeros of both signs and NaN among them."""
    halves = np.arange(1 << 16, dtype="u2").view("f2")
    function = getattr(nbkernels, op)
    for other in (
        *(np.full_like(halves, z) for z in (0.0, -0.0, 1, np.inf, -np.inf, np.nan)),
        halves,
        halves[::-1].copy(),
    ):
        expected = function(halves.astype("f4"), other.astype("f4")).astype("f2")
        same_bits(function(halves, other), expected)
        same_bits(function(other, halves), function(other.astype("f4"), halves.astype("f4")).astype("f2"))


@pytest.mark.sampled
@pytest.mark.parametrize(("first", "second"), list(itertools.product(["float32", "int64", "uint8"], DTYPES)))
def test_mixed_dtypes_are_numpys(first, second, rng):
    x, y = values(rng, 41, first), values(rng, 41, second)
    for op in ("add", "divide"):
        same_bits(run(op, x, y), reference(op, x, y))


@pytest.mark.parametrize("to", ["float32", "float64", "int8", "int64"])
def test_out_is_cast_under_same_kind(to, rng):
    for dtype in ("float64", "int32", "uint8"):
        x, y = values(rng, 33, dtype), values(rng, 33, dtype)
        out = np.full(33, 77, to)
        if np.can_cast(dtype, to, "same_kind"):
            run("add", x, y, out)
            with np.errstate(all="ignore"):
                same_bits(out, np.add(x, y).astype(to))
        else:
            with pytest.raises(TypeError, match="same_kind"):
                run("add", x, y, out)
            same_bits(out, np.full(33, 77, to))


@pytest.mark.parametrize("op", ["add", "subtract"])
@pytest.mark.parametrize(
    ("dtype", "alpha"), [("float32", 0.3), ("float64", -2), ("int8", 100), ("uint64", -1), ("int32", 0)]
)
def test_alpha_rounds_after_the_product(op, dtype, alpha, rng):
    x, y = values(rng, 100, dtype), values(rng, 100, dtype)
    same_bits(run(op, x, y, alpha=alpha), reference(op, x, y, alpha))


def test_alpha_of_bools():
    x, y = np.array([False, False, True]), np.array([False, True, False])
    same_bits(run("add", x, y, alpha=False), x)
    same_bits(run("add", x, y, alpha=True), x | y)


@pytest.mark.parametrize("op", OPS)
def test_python_scalars_are_weak(op, rng):
    for dtype, scalar in [("float32", 0.1), ("float32", 3), ("int8", 100), ("uint8", 0), ("int16", 2.5), ("bool", 2)]:
        x = values(rng, (5, 6), dtype)
        expected = reference(op, x, scalar)
        out = np.full(expected.shape, 77, expected.dtype)
        getattr(elementwise, op)(out, x, scalar)
        same_bits(out, expected)
        getattr(elementwise, op)(out, scalar, x)
        same_bits(out, reference(op, scalar, x))


def test_bits_do_not_depend_on_position_or_threads(rng):
    """Every length, offset and layout gives each element the bits that it has alone."""
    x, y = rng.standard_normal(300).astype("f4"), rng.standard_normal(300).astype("f4")
    for op, alpha in [("add", {"alpha": 0.7}), ("divide", {}), ("multiply", {})]:
        alone = np.array([run(op, x[i : i + 1], y[i : i + 1], **alpha)[0] for i in range(300)])
        for start, stop in [(0, 300), (1, 18), (3, 260), (7, 72)]:
            same_bits(run(op, x[start:stop], y[start:stop], **alpha), alone[start:stop])
        same_bits(run(op, x[::-3], y[::-3], **alpha), alone[::-3])


def test_byte_swapped_and_unknown_dtypes_are_refused():
    for x in (np.ones(3, ">f4"), np.ones(3, "g"), np.ones(3, object), np.ones(3, "U1")):
        out = np.full(3, 77.0)
        with pytest.raises(TypeError, match="add"):
            elementwise.add(out, x, np.ones(3))
        same_bits(out, np.full(3, 77.0))


def test_kernels_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = np.array([0.0, np.inf, np.nan, 1e308])
        run("divide", x, np.zeros(4))
        run("add", x, -x)
        run("divide", np.arange(4), np.zeros(4, int))


# -- through the library's functions ----------------------------------------------------------------------------------


@given(st.sampled_from(OPS), calls())
def test_the_three_forms_give_the_same_bits(op, call):
    x, y, lay = call
    expected = reference(op, x, y)
    function = getattr(nbkernels, op)
    result = function(x, y)
    same_bits(result, expected)
    out, raw = lay(np.full(expected.shape, 77, expected.dtype))
    before = raw.copy()
    assert function(x, y, out=out) is out
    same_bits(out, expected)
    out[...] = 77
    np.testing.assert_array_equal(raw, before, "what lies between out's elements is untouched")
    if x.shape == expected.shape and np.can_cast(expected.dtype, x.dtype, "same_kind"):
        target = lay(x)[0]
        assert getattr(nbkernels, op + "_")(target, y) is target
        same_bits(target, expected.astype(x.dtype))


def test_alpha_in_every_form(rng):
    for dtype in ("f4", "f8", "i2"):
        x, y = values(rng, (6, 7), dtype), values(rng, 7, dtype)
        for alpha in (2, -3, 0):
            expected = reference("subtract", x, y, alpha)
            same_bits(nbkernels.subtract(x, y, alpha=alpha), expected)
            same_bits(nbkernels.subtract(x, y, alpha=alpha, out=np.empty((7, 6), dtype).T), expected)
            z = np.asfortranarray(x)
            assert nbkernels.subtract_(z, y, alpha=alpha) is z
            same_bits(z, expected)


def test_layouts_of_results(rng):
    c, f = rng.standard_normal((40, 50)), np.asfortranarray(rng.standard_normal((40, 50)))
    for x, y, strides in [(c, f, (400, 8)), (f, c, (8, 320)), (c[0], f, (8, 320)), (c[::-1], c[::-1], (400, 8))]:
        assert nbkernels.add(x, y).strides == strides
    repeated = np.broadcast_to(c[0], (40, 50))
    assert nbkernels.multiply(repeated, repeated).strides == (400, 8)


def test_errors_leave_out_unchanged():
    a, i = np.ones((4, 4), "f4"), np.ones(4, "i1")
    readonly, repeated = np.full((4, 4), 7, "f4"), np.broadcast_to(np.full(4, 7, "f4"), (4, 4))
    readonly.flags.writeable = False
    cases = [
        (ValueError, "3", lambda out: nbkernels.add(a, np.ones(3, "f4"), out=out), np.full((4, 4), 7, "f4")),
        (ValueError, "shape", lambda out: nbkernels.add(a, a, out=out), np.full((4, 5), 7, "f4")),
        (ValueError, "read-only", lambda out: nbkernels.add(a, a, out=out), readonly),
        (ValueError, "read-only|share", lambda out: nbkernels.add(a, a, out=out), repeated),
        (TypeError, "int8", lambda out: nbkernels.add(a, a, out=out), np.full((4, 4), 7, "i1")),
        (OverflowError, "300", lambda out: nbkernels.add(i, 300, out=out), np.full(4, 7, "i1")),
        (TypeError, "alpha", lambda out: nbkernels.add(i, i, alpha=0.5, out=out), np.full(4, 7, "i1")),
        (TypeError, "alpha", lambda out: nbkernels.add(i, i, alpha=True, out=out), np.full(4, 7, "i1")),
        (TypeError, "bool", lambda out: nbkernels.subtract(i > 0, i > 0, out=out), np.full(4, 7, "i1")),
        (TypeError, "object", lambda out: nbkernels.add(i.astype(object), i, out=out), np.full(4, 7, "i1")),
        (TypeError, "None", lambda out: nbkernels.add(i, None, out=out), np.full(4, 7, "i1")),
    ]
    for error, words, call, out in cases:
        with pytest.raises(error, match=words):
            call(out)
        assert (out == 7).all()
    with pytest.raises(ValueError, match="expands"):
        nbkernels.add_(np.ones(4, "f4"), a)


def test_large_calls_with_python_scalars(rng):
    x = rng.standard_normal((359, 128)).astype("f4")
    same_bits(nbkernels.maximum(x, 0), np.maximum(x, np.float32(0)))
    same_bits(nbkernels.multiply(2, x), 2 * x)
    same_bits(nbkernels.divide(np.arange(50_000), 7), np.arange(50_000) / 7)
