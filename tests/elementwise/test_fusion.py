"""elementwise and fuse: values, dtypes, broadcasting, outputs, masks, errors, and compiled code that is found again."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbkernels
from nbkernels import sqrt as plain_sqrt
from nbkernels.dispatch import errors
from nbkernels.frozen import of_elements
from tests.processes import python

SCALE = 2.5


def helper(x):
    return x * SCALE


@nbkernels.elementwise
def both(x, y):
    """The larger, and whether it is x."""
    return (x if x > y else y), x > y


expression = nbkernels.fuse(lambda a, b, c, d: a * b + c * d)


@st.composite
def views(draw, count):
    """Arrays that broadcast to one shape, each sliced, reversed or transposed in its own way."""
    shape = draw(st.lists(st.integers(0, 5), max_size=4))
    result = []
    for _ in range(count):
        own = [n if draw(st.booleans()) else 1 for n in shape][draw(st.integers(0, len(shape))) :]
        steps = [draw(st.sampled_from([1, 2, 3, -1, -2])) for _ in own]
        order = draw(st.permutations(range(len(own))))
        big = [own[d] * abs(steps[d]) + 1 for d in order]
        x = np.random.default_rng(len(result)).standard_normal(big).astype(np.float32).transpose(np.argsort(order))
        result.append(x[tuple(slice(None, None, s) for s in steps)][tuple(slice(0, n) for n in own)])
    return result


@settings(max_examples=60)
@given(views(4))
def test_one_pass_has_numpys_bits(arrays):
    a, b, c, d = arrays
    result = expression(a, b, c, d)
    np.testing.assert_array_equal(result, a * b + c * d)
    assert result.dtype == np.float32


@pytest.mark.parametrize("masked", [False, True])
def test_numbers_beside_arrays(rng, masked):
    """Each of three inputs is an array, a number, or an element of the output, which is overwritten meanwhile."""
    combined = nbkernels.elementwise(lambda x, y, z: x * y - z)
    for n in (1, 7, 64, 1001):
        for kinds in itertools.product(range(3), repeat=3):
            out = rng.standard_normal(n)
            inputs = [(out, 1.5 + p, np.broadcast_to(out[n // 2 :][:1], n))[kind] for p, kind in enumerate(kinds)]
            where = rng.random(n) < 0.5 if masked else True
            x, y, z = inputs
            expected = np.where(where, np.multiply(x, y) - z, out)
            if kinds != (1, 1, 1):
                combined(*inputs, out=out, where=where if masked else None)
                np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("shape", [(3, 10), (17, 10), (3, 40_000)])
def test_several_results_and_out(rng, shape):
    x, y = rng.standard_normal((2, *shape)).astype(np.float32)
    larger, first = both(x, y[:1])
    np.testing.assert_array_equal(larger, np.maximum(x, y[:1]))
    np.testing.assert_array_equal(first, x > y[:1])
    assert (larger.dtype, first.dtype) == (np.float32, np.bool_)
    outs = np.full(shape[::-1], np.nan).T, np.zeros(shape, bool)
    assert both(x, y, out=outs) is outs
    np.testing.assert_array_equal(outs[0], np.maximum(x, y))
    np.testing.assert_array_equal(outs[1], x > y)


def test_out_that_overlaps_an_input(rng):
    x = rng.standard_normal(1000)
    expected = x[:-1] - x[1:]
    nbkernels.fuse(lambda a, b: a - b, x[:-1], x[1:], out=x[1:])
    np.testing.assert_array_equal(x[1:], expected)
    y = rng.standard_normal((2, 50))
    low, high = y.min(0), y.max(0)
    nbkernels.elementwise(lambda a, b: (min(a, b), max(a, b)))(y[0], y[1], out=(y[1], y[0]))
    np.testing.assert_array_equal(y, [high, low])


def test_where_leaves_the_rest(rng):
    x, mask = rng.standard_normal((20, 30)), rng.random((20, 30)) < 0.5
    out = np.full((20, 30), 7.0)
    nbkernels.fuse(lambda a: a * 3, x, out=out, where=mask)
    np.testing.assert_array_equal(out, np.where(mask, x * 3, 7.0))
    large, first = np.full((20, 30), 7.0), np.zeros((20, 30), bool)
    both(x, -x, out=(large, first), where=mask[:, :1])
    np.testing.assert_array_equal(large, np.where(mask[:, :1], abs(x), 7.0))
    np.testing.assert_array_equal(first, mask[:, :1] & (x > -x))


@pytest.mark.parametrize(
    ("function", "dtype", "expected"),
    [
        (lambda x: 0.5 * x + 1, "float32", "float32"),
        (lambda x: x**2, "float32", "float32"),
        (lambda x: x + 1, "int8", "int8"),
        (lambda x: x / 2, "int8", "float64"),
        (lambda x: x > 1, "float64", "bool"),
        (lambda x: x * 3, "float16", "float16"),
        (lambda x: x * 2j, "complex64", "complex64"),
        (helper, "float32", "float32"),
        (lambda x: helper(x) - 1, "float64", "float64"),
    ],
)
def test_dtypes_are_numpys(function, dtype, expected):
    x = np.arange(1, 100).astype(dtype)
    result = nbkernels.elementwise(function)(x)
    assert result.dtype == expected
    np.testing.assert_array_equal(result, function(x))


def test_eight_arguments_numbers_and_given_dtypes():
    op = nbkernels.elementwise(lambda a, b, c, d, e, f, g, h: a + b + c + d + e + f + g + h, dtypes="float32")
    x = np.arange(5.0)
    result = op(x, 1, x, 2.5, x, x, True, x)
    np.testing.assert_array_equal(result, (5 * x + 4.5).astype(np.float32))
    assert result.dtype == np.float32


def test_thirty_two_dimensions(rng):
    shape = (2, 1, 1) * 10 + (2, 2)
    a, b = rng.standard_normal(shape), rng.standard_normal(shape[::-1]).T
    np.testing.assert_array_equal(nbkernels.fuse(lambda a, b: a - b, a[::-1], b), a[::-1] - b)


def test_functions_of_math_are_vectorised():
    x = np.linspace(-3, 3, 1000, dtype=np.float32)
    result = nbkernels.fuse(lambda x: math.exp(x) + np.tanh(x) + math.erf(x) + math.floor(x), x)
    expected = np.exp(x) + np.tanh(x) + np.vectorize(math.erf)(x) + np.floor(x)
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)


def test_arrays_of_other_kinds():
    torch = pytest.importorskip("torch", reason="lacks torch")
    x = torch.arange(6.0).reshape(2, 3)
    result = nbkernels.fuse(lambda a, b: a * b + 1, x, 2)
    assert isinstance(result, torch.Tensor)
    assert result.tolist() == (x * 2 + 1).tolist()
    spec = expression(*[nbkernels.MetaArray((3, 1), "float32")] * 3, nbkernels.MetaArray((4,), "float64"))
    assert (spec.shape, spec.dtype) == ((3, 4), np.float64)
    assert nbkernels.fuse(lambda a: a + 1, 1.5) == 2.5
    assert nbkernels.fuse(lambda a: a + 1, np.empty((0, 3))).shape == (0, 3)


def recursive(x):
    return recursive(x - 1) if x > 0 else x


X = np.zeros((2, 3))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: nbkernels.fuse(lambda x: vars(x), X), TypeError, r"\(x: float64\) does not compile: .*'vars'"),
        (lambda: nbkernels.fuse(lambda x: x.foo, X), TypeError, "Unknown attribute 'foo' of type float64"),
        (lambda: nbkernels.fuse(lambda x: [x], X), TypeError, "returns list.*a number, or a tuple"),
        (lambda: nbkernels.fuse(recursive, X), TypeError, "calls itself"),
        (lambda: nbkernels.elementwise(max), TypeError, "^elementwise: a Python function is needed"),
        (lambda: nbkernels.fuse(3), TypeError, "^fuse: a Python function is needed, not an int"),
        (lambda: nbkernels.epilogue("relu"), TypeError, "^epilogue: a Python function is needed, not a str"),
        (lambda: nbkernels.fuse(lambda x, y=1: x, np.ones(3)), TypeError, "^fuse: .* without defaults"),
        (lambda: nbkernels.elementwise(lambda *x: x), TypeError, r"one to 8 arguments"),
        (lambda: nbkernels.fuse(lambda a, b: a, X), TypeError, r"takes 2 arguments \(a, b\), not 1"),
        (lambda: both(X, np.zeros(2)), ValueError, "both: shapes .* do not broadcast"),
        (lambda: both(X, [1, 2]), TypeError, "both: y must be an array or a number, not a list"),
        (lambda: both(X, X, out=X), errors.OutError, "a tuple of 2 arrays, not 1"),
        (lambda: both(X, X, out=(X, X)), errors.OutError, "one array is out for two"),
        (lambda: both(X, X, out=(X, np.zeros(6, bool))), errors.OutError, r"shape \(2, 3\) and out has \(6,\)"),
        (lambda: both(X, X, out=(X.astype(int), X > 0)), errors.OutDtypeError, "float64, which cannot be cast"),
        (lambda: both(X, X, out=(X, np.broadcast_to(True, (2, 3)))), errors.OutError, "read-only"),
        (lambda: both(X, X, where=X), TypeError, "where is float64"),
        (lambda: nbkernels.elementwise(math.exp, dtypes="O"), TypeError, "a Python function"),
        (lambda: nbkernels.elementwise(lambda x: x, dtypes="O"), TypeError, "cannot be of dtype object"),
        (lambda: nbkernels.elementwise(lambda x: x, dtypes=["f4", "flot"]), TypeError, "dtype='flot' is none"),
        (lambda: both(X, X, where=3), TypeError, "where is int.*; it should be bool"),
        (lambda: both(X, np.zeros(3, object)), TypeError, "no loop for dtype"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
    assert not X.any()


def test_a_second_process_compiles_nothing(tmp_path):
    """The same lambda, with the same numbers, is loaded from disk; one with another number is not."""
    code = """
import numpy as np, nbkernels
k = {k}
x = np.ones(3, np.float32)
assert (nbkernels.fuse(lambda a: a * k + 1, x) == {k} + 1).all()
assert (nbkernels.fuse(lambda a: a * 2 + 1, x) == 3).all()
"""
    kept = [{}]
    for k in (2, 2, 3):
        python(code.format(k=k), NBKERNELS_CACHE_DIR=str(tmp_path))
        kept.append({file: file.stat().st_mtime_ns for file in tmp_path.rglob("*loop_*")})
    written = [len(after.items() - before.items()) for before, after in itertools.pairwise(kept)]
    assert written == [2, 0, 1]


def test_a_layout_done_before_is_checked_where_it_differs():
    """The second call of a layout reads neither more nor less than the first: overlap, a read-only out, new values."""
    operation = nbkernels.elementwise(lambda x, y: 2 * x - y)
    x, y, out = np.arange(12.0).reshape(3, 4), np.ones((3, 4)), np.zeros((3, 4))
    for _ in range(3):
        assert operation(x, y, out=out) is out
        np.testing.assert_array_equal(out, 2 * x - y)
        x += 1
    room = np.arange(16.0)
    expected = 2 * room[:12].reshape(3, 4) - y
    operation(room[:12].reshape(3, 4), y, out=room[4:].reshape(3, 4))
    np.testing.assert_array_equal(room[4:].reshape(3, 4), expected)
    out[:], out.flags.writeable = 7, False
    with pytest.raises(ValueError, match="read-only"):
        operation(x, y, out=out)
    assert (out == 7).all()


@pytest.mark.parametrize("shape", [(3, 5), (41, 60), (200, 300)])
def test_calls_that_were_done_before(rng, shape):
    """From the second on, they go by a plan that is kept: with the same checks that memory asks for."""
    muladd = nbkernels.elementwise(lambda a, b: a * 2.5 + b)
    a, b, mask = rng.standard_normal(shape), rng.standard_normal(shape[::-1]).T, rng.random(shape) > 0.5
    n, fixed = a.size, np.zeros(shape)
    fixed.flags.writeable = False
    for _ in range(3):
        np.testing.assert_allclose(muladd(a, b), a * 2.5 + b, rtol=1e-14)
        np.testing.assert_allclose(muladd(a, 3), a * 2.5 + 3, rtol=1e-14)
        assert muladd(a, b).strides == a.strides
        out = np.zeros(shape)
        assert muladd(a, b, out=out, where=mask) is out
        np.testing.assert_allclose(out, np.where(mask, a * 2.5 + b, 0), rtol=1e-14)
        own, line = a.copy(), np.concatenate([a.ravel(), a.ravel()])
        muladd(own, own, out=own)
        np.testing.assert_allclose(own, a * 3.5, rtol=1e-14)
        expected = line[:n] * 2.5 + line[1 : n + 1]
        muladd(line[:n], line[1 : n + 1], out=line[2 : n + 2])  # in each other's way
        np.testing.assert_allclose(line[2 : n + 2], expected, rtol=1e-14)
        with pytest.raises(ValueError, match="read-only"):
            muladd(a, b, out=fixed)
    assert not fixed.any()


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_join_arrays_of_one_dtype(rng, dtype, monkeypatch):
    """In few calls, too: as arrays of no dimensions; numbers of other types, and beside other arrays, are looked at."""
    function, x = nbkernels.elementwise(lambda x, c, y: x * c + y), rng.standard_normal(7).astype(dtype)
    for c in (2, 2.5, -0.0, math.inf, True, np.float32(0.1), np.int64(3)):
        for y in (x, x.astype("float64"), np.arange(7), 1):
            expected = x * c + y
            for _ in range(4):  # a first call, one of a new layout, and two that were made before
                found = function(x, c, y)
                assert found.dtype == expected.dtype
                np.testing.assert_allclose(found, expected, 4 * np.finfo(dtype).eps, 4 * np.finfo(dtype).eps)
    with pytest.raises(OverflowError):
        function(x, 10**400, x)
    with pytest.raises(TypeError, match="takes 3 arguments"):
        function(x, 2.0)
    with monkeypatch.context() as patch:
        patch.setattr(function, "layout", None)
        np.testing.assert_array_equal(function(x, 2.0, x), 2 * x + x)


def test_operations_of_this_library_are_those_of_elements(rng):
    """By a module's attribute and by name; what `elementwise` made is a function as any other."""
    x, y = rng.uniform(0.5, 2, (2, 50))
    square = nbkernels.elementwise(lambda v: v * v)
    for function, expected in (
        (lambda a: nbkernels.sqrt(a) + a, np.sqrt(x) + x),
        (
            lambda a: plain_sqrt(a) * nbkernels.maximum(a, 1.0) - nbkernels.acos(a / 3),
            np.sqrt(x) * np.maximum(x, 1) - np.arccos(x / 3),
        ),
        (lambda a: square(a) + 1, x * x + 1),
    ):
        np.testing.assert_allclose(nbkernels.fuse(function, x), expected, rtol=1e-14)
        np.testing.assert_allclose(nbkernels.elementwise(function)(x), expected, rtol=1e-14)
    two = nbkernels.elementwise(lambda a, b: nbkernels.atan2(a, b) + nbkernels.add(a, square(b)))
    np.testing.assert_allclose(two(x, y), np.arctan2(x, y) + x + y * y, rtol=1e-14)
    result, pull = nbkernels.vjp(nbkernels.elementwise(lambda a: nbkernels.exp(a) * square(a)), x)
    np.testing.assert_allclose(pull(np.ones(50))[0], np.exp(x) * (x * x + 2 * x), rtol=1e-13)
    for name in nbkernels.ops.OPERATIONS:
        function = getattr(nbkernels, name)
        of_one = function.op.elementwise and function.schema.kind == "functional"
        assert (of_elements(function) is not function) == of_one, name


@pytest.mark.parametrize(
    "call", [lambda a: nbkernels.mm(a, a) + 1, lambda a: nbkernels.add_(a, 1), lambda a: nbkernels.sum_to(a, ())]
)
def test_operations_on_arrays_are_none_of_elements(call):
    for made in (nbkernels.elementwise(call), lambda x: nbkernels.fuse(call, x)):
        with pytest.raises(TypeError, match=r"does not compile: it reads (mm|add_|sum_to) of nbkernels, for arrays"):
            made(np.ones((2, 2)))


def test_a_parameter_may_be_called_where():
    @nbkernels.elementwise
    def chosen(x, where):
        return x if where else -x

    x, mask = np.arange(4.0), np.array([True, False, True, False])
    assert chosen(x, mask).tolist() == [0, -1, 2, -3]
    out = np.full(4, 9.0)
    assert chosen(x, mask, where=~mask, out=out).tolist() == [9, -1, 9, -3]


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8"])
def test_python_ints_are_weak_for_every_integer(dtype):
    x = np.arange(250, 254, dtype="u8").astype(dtype)
    for function in (lambda x, y: x * y + 2, lambda x, y: -x - y, lambda x, y: 1 if x > y else 0):
        found = nbkernels.fuse(function, x, x[::-1])
        exact = np.array([function(int(a), int(b)) for a, b in zip(x, x[::-1])], object)
        wrapped = np.array([v % 2**64 for v in exact], "u8").astype(dtype)
        assert found.dtype == x.dtype
        assert found.tolist() == wrapped.tolist()
