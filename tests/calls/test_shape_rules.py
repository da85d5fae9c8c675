"""Shape and dtype rules, against NumPy's own answers; no kernel runs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nbkernels import meta
from nbkernels.dispatch import MetaArray

M = MetaArray


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
    assert meta.linear(M((7, 5), "float32"), M((3, 5), "float32"), f8(3)).dtype == np.float64
    assert meta.linear(M((7, 5), "float32"), f8(3, 5)).dtype == np.float64


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
