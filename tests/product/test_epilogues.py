"""Activations and scalar functions after a product: bit for bit what the steps one by one give, on every path."""

import math
import pickle

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.dispatch import OutError
from nbkernels.elementary import activations
from tests.cases import LAYOUTS, bias_shapes
from tests.compare import same_bits

NAMED = {
    ("relu", "none"): activations.relu, ("gelu", "none"): activations.gelu, ("gelu", "tanh"): activations.gelu_tanh,
    ("silu", "none"): activations.silu, ("tanh", "none"): activations.tanh, ("sigmoid", "none"): activations.sigmoid,
}  # fmt: skip
# m, n, k: tiny, one row, one column, small, several panels, beyond mc and nc, chains cut by kc, two segments
SHAPES = [
    (3, 4, 5),
    (1, 70, 40),
    (65, 1, 30),
    (50, 60, 70),
    (200, 210, 130),
    (4200, 30, 300),
    (9, 4100, 1000),
    (40, 50, 4200),
]


@nb.epilogue
def gate(v, row, column, whole, factor):
    return (v * row + column) * factor - whole if v > 0 else whole


def draw(rng, *shape, dtype="float32"):
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("which", NAMED, ids=lambda pair: "-".join(pair))
def test_activations_are_those_of_each_element(rng, which, dtype):
    """The scalar functions themselves, in Python, of addmm's result."""
    x, a, b = draw(rng, 9, dtype=dtype), draw(rng, 6, 5, dtype=dtype), draw(rng, 5, 9, dtype=dtype)
    value = nb.addmm(x, a, b, beta=0.5, alpha=2)
    found = nb.addmm_activation(x, a, b, beta=0.5, alpha=2, activation=which[0], approximate=which[1])
    formula = NAMED[which]
    np.testing.assert_array_equal(found, np.array([[formula(v) for v in row] for row in value], dtype))


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_bits_are_those_of_the_steps(rng, m, n, k):
    a, b = draw(rng, m, k), draw(rng, k, n)
    for x in (draw(rng, n), draw(rng, m, n)):
        value = nb.addmm(x, a, b, alpha=0.5)
        expected = np.maximum(value, 0)
        for layout in ("C", "F", "every other", "reversed"):
            out = LAYOUTS[layout](np.full((m, n), np.nan, "f4"))
            assert nb.addmm_activation(x, a, b, alpha=0.5, out=out) is out
            np.testing.assert_array_equal(out, expected)
    mine = x.copy()
    assert nb.addmm_activation_(mine, a, b, alpha=0.5) is mine
    np.testing.assert_array_equal(mine, expected)
    row, column, whole = draw(rng, n), draw(rng, m, 1), draw(rng, m, n)
    expected = gate.apply(value, row, column, whole, 0.75)
    for layout in ("C", "F", "reversed"):
        out, before = (LAYOUTS[layout](np.full((m, n), np.nan, "f4")) for _ in range(2))
        assert gate(x, a, b, row, column, whole, 0.75, alpha=0.5, out=out, before=before) is out
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(before, value)
    np.testing.assert_array_equal(gate(x, a, b, row, column, whole, 0.75, alpha=0.5), expected)
    np.testing.assert_array_equal(gate(x, a, b, row, column, whole, 0.75, alpha=0.5, out=whole), expected)


def test_every_self_that_expands(rng):
    a, b = draw(rng, 20, 7), draw(rng, 7, 30)
    for shape in bias_shapes(20, 30):
        x = np.asarray(draw(rng, *shape))
        expected = np.maximum(nb.addmm(x, a, b), 0)
        np.testing.assert_array_equal(nb.addmm_activation(x, a, b), expected)


def test_out_may_overlap_the_matrices(rng):
    for n in (20, 300):
        a, b, x = draw(rng, n, n), draw(rng, n, n), draw(rng, n)
        expected = np.maximum(nb.addmm(x, a, b), 0)
        for out in (a, b):
            args = [v.copy() if v is not out else v for v in (x, a, b)]
            kept = out.copy()
            np.testing.assert_array_equal(nb.addmm_activation(*args, out=out), expected)
            out[...] = kept


def test_results_of_another_dtype(rng):
    positive = nb.epilogue(lambda v: v > 0)
    a, b, x = draw(rng, 5, 6), draw(rng, 6, 7), draw(rng, 7)
    found = positive(x, a, b)
    assert found.dtype == bool
    np.testing.assert_array_equal(found, nb.addmm(x, a, b) > 0)


@pytest.mark.parametrize("dtype", [None, "float16", "float32", np.float64])
def test_dtypes_of_integer_products_are_asked_for(rng, dtype):
    """A scaled int32 product is float64, NumPy's rule, where nothing is asked for; computed so in any case."""
    dequantized = nb.epilogue(lambda v, scale, bias: v * scale + bias, dtype=dtype)
    a, b = (rng.integers(-9, 9, shape).astype("i1") for shape in ((30, 40), (40, 20)))
    scale, bias = (rng.standard_normal(shape).astype("f4") for shape in (20, (30, 1)))
    expected = (a.astype("i4") @ b.astype("i4") * scale + bias).astype(dtype or "f8")
    given = np.zeros(20, "i4"), a, b, scale, bias
    for function in (dequantized, pickle.loads(pickle.dumps(dequantized))):
        same_bits(function(*given, out_dtype="i4"), expected)
    out, before = np.zeros((20, 30), dtype or "f8").T, np.zeros((30, 20), "i4")
    assert dequantized(*given, out=out, before=before, out_dtype="i4") is out
    same_bits(out, expected)
    np.testing.assert_array_equal(before, a.astype("i4") @ b)
    with pytest.raises(TypeError, match="results cannot be of dtype object"):
        nb.epilogue(lambda v: v, dtype=object)


def test_numbers_join_the_operands(rng):
    """A number beside a float64 operand is not rounded to the product's float32 before, short or long."""
    function = nb.epilogue(lambda v, scale, shift: v * scale + shift)
    for n in (4, 330):
        a, scale = draw(rng, n, n), draw(rng, n, dtype="float64")
        value = nb.addmm(scale.astype("f4"), a, a)
        found, before = function(scale.astype("f4"), a, a, scale, 0.1), np.empty_like(value)
        same_bits(found, value * scale + 0.1)
        same_bits(function(scale.astype("f4"), a, a, scale, 0.1, before=before), found)


def test_short_products_are_called_at_once(rng, monkeypatch):
    """The product and the function each by its fast path; what is wrong is one error, with nothing written."""
    a, x, whole = draw(rng, 5, 5), draw(rng, 5), draw(rng, 5, 5)
    given = x, a, a, x, x[:, None], whole, 2.0
    expected = gate(*given, before=np.empty_like(a))
    gate(*given)
    with monkeypatch.context() as patch:
        patch.setattr(gate, "run", None)
        patch.setattr(gate, "check", None)
        same_bits(gate(*given), expected)
        assert gate(*given, out=whole) is whole  # which it reads
        same_bits(whole, expected)
    out = np.full((5, 5), 7, "f4")
    for wrong in (
        (x, a, a, draw(rng, 3, 5, 5), x, x, 1),
        (x, a, a, x, x, draw(rng, 4), 1),
        (x, a[:4], a[:4], x, x, x, 1),
    ):
        with pytest.raises(ValueError, match=r"gate|addmm"):
            gate(*wrong, out=out)
        assert (out == 7).all()


def test_zero_factors_and_nan(rng):
    x, nan = draw(rng, 3, 3), np.full((3, 3), np.nan, "f4")
    np.testing.assert_array_equal(nb.addmm_activation(x, nan, nan, alpha=0), np.maximum(x, 0))
    assert np.isnan(nb.addmm_activation(x, nan, nan)).all()
    assert nb.addmm_activation(nan, x, x, beta=0).min() >= 0


A, X = np.ones((3, 3)), np.ones(3)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            lambda out: nb.addmm_activation(X, A, A, activation="swish", out=out),
            ValueError,
            "must be one of relu, gelu",
        ),
        (lambda out: nb.addmm_activation(X, A, A, approximate="tanh", out=out), ValueError, "approximate of relu"),
        (lambda out: nb.addmm_activation(X, A, A[:2], out=out), ValueError, "3x3 and 2x3"),
        (lambda out: nb.addmm_activation(np.ones(2), A, A, out=out), ValueError, "does not expand"),
        (lambda out: nb.addmm_activation(X.astype("i4"), A.astype("i4"), A.astype("i4"), out=out), TypeError, "int32"),
        (lambda out: gate(X, A, A, X, A[:, :1], A, out=out), TypeError, "takes 5 arguments"),
        (lambda out: gate(X, A, A, np.ones(2), A[:, :1], A, 1.0, out=out), ValueError, "broadcast"),
        (lambda out: gate(X, A, A, X, A[:, :1], np.ones((2, 3, 3)), 1.0, out=out), ValueError, "expand the product"),
        (lambda out: gate(X, A, A[:2], X, A[:, :1], A, 1.0, out=out), ValueError, "3x3 and 2x3"),
        (lambda out: gate(X, A, A, X, A[:, :1], A, 1.0, out=out, before=out), ValueError, "before shares memory"),
        (lambda out: gate(X, A, A, X, A[:, :1], A, 1.0, out=out[:2]), OutError, "shape"),
        (lambda out: gate(X, A, A, X, A[:, :1], A, 1.0, out=out, tiles=(3, 4)), ValueError, "^gate: tiles=.*six sizes"),
        (
            lambda out: gate([1.0], A, A, X, A[:, :1], A, 1.0, out=out),
            TypeError,
            "^gate: input must be an array, not a l",
        ),
        (
            lambda out: gate(X, A, None, X, A[:, :1], A, 1.0, out=out),
            TypeError,
            "^gate: mat2 must be an array, not None",
        ),
        (lambda out: nb.add(A, A, casting=A, out=out), TypeError, "^add: casting must be a string, not a ndarray"),
        (lambda out: nb.vjp(out, A), TypeError, "^vjp: a function is needed, not a ndarray"),
        (lambda out: nb.register([1], "CPU", len), ValueError, "there is no op .1.; it is one of"),
        (lambda out: nb.addmm_activation(X, A, A, out=out, tiles=(3,)), ValueError, "^addmm_activation: tiles="),
        (lambda out: gate(X, A, A, X, A[:, :1], A, 1.0, before=out, out=np.ones((3, 3), "i4")), TypeError, "cast"),
    ],
)
def test_bad_input_is_one_clear_error(call, kind, words):
    out = np.full((3, 3), np.nan)
    with pytest.raises(kind, match=words):
        call(out)
    assert np.isnan(out).all()


def test_every_kind_of_function():
    a = np.array([[1.0, 2.0]])
    scale = 3.0
    soft = nb.epilogue(lambda v: math.log1p(math.exp(v)) * scale)
    np.testing.assert_allclose(soft(np.zeros(1), a, a.T), [[3 * np.log1p(np.exp(5.0))]], rtol=1e-15)
    assert "lambda" in repr(soft)
