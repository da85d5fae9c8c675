"""The rules of the element-wise operations, against NumPy's own answers; no kernel runs."""

import functools
import itertools
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import nbkernels
from nbkernels import binary, dtypes
from nbkernels.dispatch import MetaArray as M
from nbkernels.operations import BINARY

RULES = {op: binary.rule(op) for op in BINARY}
DTYPES = [name for name in dtypes.DTYPES if name != "bfloat16"]


def f8(*shape):
    return M(shape, "float64")


def raises(kind, words, call, *args, **kwargs):
    with pytest.raises(kind, match=words):
        call(*args, **kwargs)


def answer(function, *args):
    """The result, or the kind of error: NumPy's UFuncTypeError is a TypeError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args)
    except (ValueError, TypeError, OverflowError) as error:
        return next(kind for kind in (OverflowError, TypeError, ValueError) if isinstance(error, kind))


def compare(name, left, right):
    """Shape, dtype and strides of NumPy's result, or the kind of its error."""
    expected = answer(getattr(np, name), left, right)
    found = answer(RULES[name], left, right)
    if isinstance(expected, type):
        assert found is expected
    else:
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    return expected, found


@pytest.mark.parametrize("name", RULES)
def test_dtypes_are_numpys(name):
    for left, right in itertools.product(DTYPES, DTYPES):
        compare(name, np.ones(2, left), np.ones(2, right))


NUMBERS = [True, 0, 1, -1, 127, 128, 255, 256, -129, 300, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**400]
NUMBERS += [0.0, 2.5, 1e300, float("nan"), float("-inf")]


@pytest.mark.parametrize("name", RULES)
def test_python_numbers_are_weak_as_in_numpy(name):
    for dtype, number in itertools.product(DTYPES, NUMBERS):
        compare(name, np.ones(2, dtype), number)
        compare(name, number, np.ones(2, dtype))


@pytest.mark.parametrize("name", RULES)
def test_dtypes_without_an_element_wise_kernel(name):
    function = RULES[name]
    for dtype in ("object", "U3", "M8[s]", "longdouble"):
        x = M((2,), dtype)
        raises(TypeError, f"^{name}: other has dtype .*; supported are bool, int8", function, f8(2), x)
        raises(TypeError, f"^{name}: self has dtype", function, x, 1)
    swapped = M((2,), np.dtype(np.float64).newbyteorder())
    raises(TypeError, rf"^{name}: other is byte-swapped \(.f8\): pass x.astype\('float64'\)", function, f8(2), swapped)


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=5, min_side=0), st.sampled_from(["add", "pow", "less"]))
def test_shapes_are_numpys(shapes, name):
    left, right = shapes.input_shapes
    found = RULES[name](f8(*left), f8(*right))
    assert found.shape == shapes.result_shape == np.broadcast_shapes(left, right)


@given(*[hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)] * 2)
def test_shapes_that_do_not_broadcast(left, right):
    try:
        np.broadcast_shapes(left, right)
    except ValueError:
        with pytest.raises(ValueError, match=r"^add: shapes .* do not broadcast: sizes \d and \d in dimension \d"):
            RULES["add"](f8(*left), f8(*right))
    else:
        assume(False)


def test_broadcast_errors_name_both_sizes_and_the_dimension():
    words = r"^multiply: shapes \(4, 3, 2\) and \(5, 2\) do not broadcast: sizes 3 and 5 in dimension 1"
    raises(ValueError, words, RULES["multiply"], f8(4, 3, 2), f8(5, 2))


def test_many_dimensions():
    shape = (1,) * 60 + (2, 3)
    assert RULES["add"](f8(*shape), f8(3)).shape == shape
    assert len(RULES["add"](f8(*shape), f8(3)).strides) == 62


@given(st.data())
def test_strides_keep_the_memory_order(data):
    """Order "K", where one array of the full shape says what it is: as NumPy allocates."""
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    axes = data.draw(st.permutations(range(len(shape))))
    x = np.zeros([shape[axis] for axis in axes]).transpose(np.argsort(axes))
    x = x[tuple(data.draw(st.sampled_from([slice(None), slice(None, None, -1)])) for _ in shape)]
    expected = np.add(x, 1.0)
    found = RULES["add"](x, 1.0)
    assert found.shape == expected.shape
    for size, mine, numpys in zip(shape, found.strides, expected.strides):
        assert size == 1 or mine == numpys


def test_strides_follow_the_first_full_operand():
    column_major = M((2, 3), "float32", (4, 8))
    assert RULES["add"](column_major, f8(2, 3)).strides == (8, 16)
    assert RULES["add"](f8(2, 3), column_major).strides == (24, 8)
    assert RULES["add"](f8(3), column_major).strides == (8, 16)


@pytest.mark.parametrize("function", [RULES["add"], RULES["subtract"]])
def test_alpha(function):
    name, i4, boolean = function.__name__, M((2,), "int32"), M((2,), "bool")
    assert function(i4, i4, -3).dtype == np.int32
    assert function(i4, i4, 2**40).dtype == np.int32  # wraps, as all integers do
    assert function(f8(2), i4, 0.5).dtype == np.float64
    assert function(i4, 1.5, 0.5).dtype == np.float64
    raises(TypeError, f"^{name}: alpha=0.5 is a float and the result is int32", function, i4, i4, 0.5)
    raises(TypeError, f"^{name}: alpha=True is a bool and the result is int32", function, i4, i4, True)
    raises(TypeError, f"^{name}: alpha=True is a bool and the result is float64", function, f8(2), 1, True)
    raises(TypeError, f"^{name}: alpha=1j is complex and the result is float64", function, f8(2), 1, 1j)
    raises(TypeError, f"^{name}: (alpha=2.0 is a float and|not defined for) .*bool", function, boolean, boolean, 2.0)
    raises(OverflowError, "alpha is an int too large", function, f8(2), 1, 10**400)


def test_bools():
    boolean = M((2,), "bool")
    assert RULES["add"](boolean, boolean, True).dtype == bool
    assert RULES["maximum"](boolean, True).dtype == bool
    assert RULES["divide"](boolean, boolean).dtype == np.float64
    raises(TypeError, "^subtract: not defined for bool and bool", RULES["subtract"], boolean, boolean)
    raises(TypeError, "^subtract: not defined for bool and bool", RULES["subtract"], True, boolean)
    assert RULES["subtract"](boolean, 1).dtype == np.int64


def test_casts_are_numpys():
    for left, right in itertools.product(DTYPES, DTYPES):
        for casting in ("no", "equiv", "safe", "same_kind", "unsafe"):
            result = binary.Result((), np.dtype(left), (), casting)
            assert result.casts(np.dtype(right)) == np.can_cast(left, right, casting)
    assert not result.casts(np.dtype(np.float64).newbyteorder())
    assert not result.casts(np.dtype(object))


@given(st.sampled_from(list(RULES)), st.sampled_from(DTYPES), st.sampled_from(DTYPES), st.data())
def test_dtype_and_casting_are_numpys(op, left, right, data):
    x, y = np.ones(3, left), np.ones(3, right)
    given = {"casting": data.draw(st.sampled_from(["no", "equiv", "safe", "same_kind", "unsafe"]))}
    given["dtype"] = data.draw(st.sampled_from([None, *DTYPES]))
    expected = answer(lambda: getattr(np, op)(x, y, **given))
    found = answer(lambda: RULES[op](x, y, **given))
    assert found is expected if isinstance(expected, type) else found.dtype == expected.dtype


@pytest.mark.parametrize("op", RULES)
def test_casting_of_numbers_is_numpys(op):
    """Where NumPy's own resolve_dtypes would end the process, too."""
    functions = getattr(np, op), RULES[op]
    for dtype, number, casting in itertools.product(DTYPES, (2, 2.0, 2 + 0j), binary.CASTINGS):
        x = np.ones(1, dtype)
        for pair, wanted in itertools.product(((x, number), (number, x)), (None, "float32", "int64", "complex128")):
            expected, found = (answer(functools.partial(f, *pair, casting=casting, dtype=wanted)) for f in functions)
            same = found is expected if isinstance(expected, type) else found.dtype == expected.dtype
            assert same, (dtype, number, casting, wanted, found, expected)


@pytest.mark.parametrize("order", ["K", "C", "F", "A"])
def test_orders_are_numpys(order):
    c = np.ones((2, 3, 4))
    f = np.asfortranarray(c)
    pairs = [(c, f), (f, c), (f, c[0])] if order != "K" else []  # "K" of two that disagree is the first one's here
    for x, y in [*pairs, (c, c), (f, f), (c.transpose(1, 0, 2), 1.0), (f, 1.0)]:
        assert RULES["add"](x, y, order=order).strides == np.add(x, y, order=order).strides
    raises(ValueError, "order must be one of", RULES["add"], c, c, order="Q")
    raises(ValueError, "casting", RULES["add"], c, c, casting="maybe")


def test_where_broadcasts_and_is_bool():
    assert RULES["add"](f8(3), 1, where=M((2, 1), bool)).shape == (2, 3)
    assert RULES["add"](f8(3), 1, where=True).shape == (3,)
    raises(TypeError, "where must be bool, and it is int64", RULES["add"], f8(3), 1, where=M((3,), "int64"))
    raises(ValueError, "do not broadcast", RULES["add"], f8(3), 1, where=M((2,), bool))


def test_powers_of_complex_numbers_whose_size_overflows():
    big = np.finfo("f8").max
    found = nbkernels.float_power(np.array([complex(-big, big), complex(big, -big)]), 0.0078125)
    np.testing.assert_allclose(
        found,
        [complex(-0.5, 0.5) ** 0.0078125 * 2.0 ** (1025 / 128), complex(0.5, -0.5) ** 0.0078125 * 2.0 ** (1025 / 128)],
    )
    # exp of -inf + nan i, C's: the exponent's product overflows
    assert nbkernels.pow(np.array([8.0 + 0j]), complex(-big, np.nan))[0] == 0
    # log|x| of an x near 1 has its digits, for what multiplies it
    found = nbkernels.pow(np.array([1 + 1.0714066234720858e-06j]), 11141100.0)
    np.testing.assert_allclose(
        found,
        [np.exp(11141100.0 * (0.5 * np.log1p(1.0714066234720858e-06**2) + 1j * np.arctan(1.0714066234720858e-06)))],
        rtol=1e-13,
    )
    tiny = complex(-5e-324, -5e-324)
    expected = np.exp(0.5 * (np.log(5e-324) + 0.5 * np.log(2)) - 0.375j * np.pi)
    np.testing.assert_allclose(nbkernels.pow(np.array([tiny]), 0.5), [expected], rtol=1e-12)
