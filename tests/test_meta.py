"""Shape and dtype rules, against NumPy's own answers; no kernel runs."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nbkernels import meta
from nbkernels.dispatch import MetaArray

M = MetaArray
DTYPES = [str(dtype) for dtype in meta.ELEMENTWISE_DTYPES]
BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum"]


def f8(*shape):
    return M(shape, "float64")


def raises(kind, words, call, *args, **kwargs):
    with pytest.raises(kind, match=words):
        call(*args, **kwargs)


# -- matrix products --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (2, 1), (1, 1), (2, 3)])
def test_addmm_expands_self(shape):
    assert meta.addmm(f8(*shape), f8(2, 5), f8(5, 3), 1, 1) == ((2, 3), np.float64, None)


@pytest.mark.parametrize("shape", [(2,), (3, 1), (3, 2), (1, 2, 3), (0,), (4, 3)])
def test_addmm_refuses_a_self_that_does_not_expand(shape):
    raises(ValueError, r"^addmm: self .* does not expand to \(2, 3\)", meta.addmm, f8(*shape), f8(2, 5), f8(5, 3))


def test_addmm_checks_in_this_order():
    """Each call breaks one rule and every later one: the message is always that of the first."""
    i4, f4, o = (lambda *s: M(s, "int32")), (lambda *s: M(s, "float32")), (lambda *s: M(s, "object"))
    order = [
        (f4(9, 9), i4(2), f8(7), "^addmm: self and mat2 must share a dtype: self is float32 and mat2 is float64"),
        (f8(9, 9), i4(2), f8(7), "^addmm: mat1 and mat2 must share a dtype: mat1 is int32 and mat2 is float64"),
        (i4(9, 9), i4(2), i4(7), r"^addmm: mat1 must be 2-D, and it is 1-D: mat1 \(2,\) and mat2 \(7,\)"),
        (i4(9, 9), i4(2, 3), i4(7), r"^addmm: mat2 must be 2-D, and it is 1-D: mat1 \(2, 3\) and mat2 \(7,\)"),
        (i4(9, 9), i4(2, 3), i4(4, 5), "^addmm: mat1 and mat2 cannot be multiplied, 2x3 and 4x5: mat1 has 3 columns"),
        (i4(9, 9), i4(2, 3), i4(3, 5), r"^addmm: self \(9, 9\) does not expand to \(2, 5\)"),
        (o(2, 5), o(2, 3), o(3, 5), "^addmm: self has dtype object; supported are float32, float64"),
        (f4(2, 5), f4(2, 3), f4(3, 5), r"^addmm: beta=1j is complex"),
    ]
    for self, mat1, mat2, words in order:
        raises((ValueError, TypeError), words, meta.addmm, self, mat1, mat2, 1j, 1j)


@pytest.mark.parametrize("dtype", ["object", "longdouble", "U3", "M8[s]", "V2"])
def test_dtypes_without_a_gemm(dtype):
    x = M((2, 2), dtype)
    words = "has dtype .*; supported are float32, float64"
    raises(TypeError, f"^mm: self {words}", meta.mm, x, x)
    raises(TypeError, f"^addmm: self {words}", meta.addmm, x, x, x)
    raises(TypeError, f"^linear: input {words}", meta.linear, x, x)


def test_byte_swapped_arrays_are_named():
    swapped = np.dtype(np.float64).newbyteorder()
    x = M((2, 2), swapped)
    raises(TypeError, r"^mm: self is byte-swapped \(.f8\): pass x.astype\('float64'\)", meta.mm, x, x)
    raises(TypeError, "^add: other is byte-swapped", meta.add, f8(2, 2), x)
    assert not meta.same_kind(np.dtype(np.float64), swapped)


def test_scalars_of_addmm():
    args = f8(), f8(2, 5), f8(5, 3)
    for value in (0, 0.0, -0.0, False, True, 3, float("nan"), float("inf")):
        assert meta.addmm(*args, value, value).shape == (2, 3)
    raises(TypeError, "alpha=0j is complex and the matrices are real", meta.addmm, *args, 1, 0j)
    raises(OverflowError, "beta is an int too large for a float", meta.addmm, *args, 10**400, 1)


def test_mm():
    assert meta.mm(f8(2, 5), f8(5, 3)) == ((2, 3), np.float64, None)
    assert meta.mm(f8(0, 0), f8(0, 3)).shape == (0, 3)
    raises(ValueError, "mm: self and mat2 cannot be multiplied, 2x5 and 4x3", meta.mm, f8(2, 5), f8(4, 3))
    raises(ValueError, "mm: mat2 must be 2-D, and it is 3-D", meta.mm, f8(2, 5), f8(1, 5, 3))
    raises(TypeError, "mm: self and mat2 must share a dtype", meta.mm, f8(2, 5), M((5, 3), "float32"))


def test_linear():
    for lead in ((), (7,), (2, 7), (2, 0, 7)):
        for bias in (None, f8(), f8(1), f8(3)):
            assert meta.linear(f8(*lead, 5), f8(3, 5), bias) == ((*lead, 3), np.float64, None)
    raises(
        ValueError,
        r"last sizes of input and weight differ: input \(7, 4\) and weight \(3, 5\)",
        meta.linear,
        f8(7, 4),
        f8(3, 5),
    )
    raises(ValueError, "weight must be 2-D", meta.linear, f8(7, 4), f8(4))
    raises(ValueError, "input must have a dimension", meta.linear, f8(), f8(3, 5))
    raises(ValueError, r"bias \(7, 3\) does not expand to \(3,\)", meta.linear, f8(7, 5), f8(3, 5), f8(7, 3))
    raises(TypeError, "bias and weight must share", meta.linear, f8(7, 5), f8(3, 5), M((3,), "float32"))
    raises(TypeError, "input and weight must share", meta.linear, M((7, 5), "float32"), f8(3, 5))


# -- element-wise -----------------------------------------------------------------------------------------------------


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
    found = answer(getattr(meta, name), left, right)
    if isinstance(expected, type):
        assert found is expected
    else:
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    return expected, found


@pytest.mark.parametrize("name", BINARY)
def test_dtypes_are_numpys(name):
    for left, right in itertools.product(DTYPES, DTYPES):
        a, b = np.ones(2, left), np.ones(2, right)
        if np.result_type(a, b) in meta.ELEMENTWISE_DTYPES:
            compare(name, a, b)


NUMBERS = [True, 0, 1, -1, 127, 128, 255, 256, -129, 300, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**400]
NUMBERS += [0.0, 2.5, 1e300, float("nan"), float("-inf")]


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0b1", reason="needs NumPy 2, whose rules these are")
@pytest.mark.parametrize("name", BINARY)
def test_python_numbers_are_weak_as_in_numpy(name):
    for dtype, number in itertools.product(DTYPES, NUMBERS):
        compare(name, np.ones(2, dtype), number)
        compare(name, number, np.ones(2, dtype))


@pytest.mark.parametrize("name", BINARY)
def test_dtypes_without_an_element_wise_kernel(name):
    function = getattr(meta, name)
    for dtype in ("float16", "complex128", "object", "U3", "M8[s]", "longdouble"):
        x = M((2,), dtype)
        raises(TypeError, f"^{name}: other has dtype .*; supported are float32, float64, int8", function, f8(2), x)
        raises(TypeError, f"^{name}: self has dtype", function, x, 1)
    raises(TypeError, f"^{name}: complex numbers are not supported", function, f8(2), 1j)


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=5, min_side=0), st.sampled_from(BINARY))
def test_shapes_are_numpys(shapes, name):
    left, right = shapes.input_shapes
    found = getattr(meta, name)(f8(*left), f8(*right))
    assert found.shape == shapes.result_shape == np.broadcast_shapes(left, right)


@given(*[hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)] * 2)
def test_shapes_that_do_not_broadcast(left, right):
    try:
        np.broadcast_shapes(left, right)
    except ValueError:
        with pytest.raises(ValueError, match=r"^add: shapes .* do not broadcast: sizes \d and \d in dimension \d"):
            meta.add(f8(*left), f8(*right))
    else:
        assume(False)


def test_broadcast_errors_name_both_sizes_and_the_dimension():
    words = r"^multiply: shapes \(4, 3, 2\) and \(5, 2\) do not broadcast: sizes 3 and 5 in dimension 1"
    raises(ValueError, words, meta.multiply, f8(4, 3, 2), f8(5, 2))


def test_many_dimensions():
    shape = (1,) * 60 + (2, 3)
    assert meta.add(f8(*shape), f8(3)).shape == shape
    assert len(meta.add(f8(*shape), f8(3)).strides) == 62


@given(st.data())
def test_strides_keep_the_memory_order(data):
    """Order "K", where one array of the full shape says what it is: as NumPy allocates."""
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    axes = data.draw(st.permutations(range(len(shape))))
    x = np.zeros([shape[axis] for axis in axes]).transpose(np.argsort(axes))
    x = x[tuple(data.draw(st.sampled_from([slice(None), slice(None, None, -1)])) for _ in shape)]
    expected = np.add(x, 1.0)
    found = meta.add(x, 1.0)
    assert found.shape == expected.shape
    for size, mine, numpys in zip(shape, found.strides, expected.strides):
        assert size == 1 or mine == numpys


def test_strides_follow_the_first_full_operand():
    column_major = M((2, 3), "float32", (4, 8))
    assert meta.add(column_major, f8(2, 3)).strides == (8, 16)
    assert meta.add(f8(2, 3), column_major).strides == (24, 8)
    assert meta.add(f8(3), column_major).strides == (8, 16)


@pytest.mark.parametrize("function", [meta.add, meta.subtract])
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
    raises(TypeError, f"^{name}: alpha=2.0 is a float and the result is bool", function, boolean, boolean, 2.0)
    raises(OverflowError, "alpha is an int too large", function, f8(2), 1, 10**400)


def test_bools():
    boolean = M((2,), "bool")
    assert meta.add(boolean, boolean, True).dtype == bool
    assert meta.maximum(boolean, True).dtype == bool
    assert meta.divide(boolean, boolean).dtype == np.float64
    raises(TypeError, "^subtract: not defined for two bools", meta.subtract, boolean, boolean)
    raises(TypeError, "^subtract: not defined for two bools", meta.subtract, True, boolean)
    assert meta.subtract(boolean, 1).dtype == np.int64


def test_same_kind_is_numpys():
    for left, right in itertools.product(meta.ELEMENTWISE_DTYPES, meta.ELEMENTWISE_DTYPES):
        assert meta.same_kind(left, right) == np.can_cast(left, right, "same_kind")
    assert not meta.same_kind(np.dtype(np.float64), np.dtype(np.float16))
    assert not meta.same_kind(np.dtype(np.float64), np.dtype(np.complex128))


# -- sum_to -----------------------------------------------------------------------------------------------------------


@given(hnp.mutually_broadcastable_shapes(num_shapes=1, max_dims=4, min_side=0), st.data())
def test_sum_to_undoes_broadcasting(shapes, data):
    """Every shape that broadcasts to x's is one to sum to."""
    shape = shapes.result_shape
    size = tuple(data.draw(st.sampled_from([1, n])) for n in shape)[data.draw(st.integers(0, len(shape))) :]
    assert np.broadcast_shapes(size, shape) == shape
    assert meta.sum_to(f8(*shape), size) == (size, np.float64, None)


@pytest.mark.parametrize("size", [(2,), (3, 1), (1, 2, 3), (0,), (2, 0), (-1,), (2, -3)])
def test_shapes_that_cannot_be_summed_to(size):
    raises(ValueError, r"^sum_to: self \(2, 3\) cannot be summed to the shape ", meta.sum_to, f8(2, 3), size)


def test_dtypes_of_sum_to():
    assert meta.sum_to(M((2,), "int8"), ()).dtype == np.int8
    raises(TypeError, "^sum_to: self has dtype bool", meta.sum_to, M((2,), "bool"), ())
