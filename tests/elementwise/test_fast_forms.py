"""Element-wise calls at once: the fast forms are right or decline."""

import numba
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import nbkernels
from nbkernels.cpu.elementwise import elementwise, gates
from nbkernels.cpu.elementwise import fast as fast_forms
from nbkernels.operations import BINARY
from nbkernels.strides import output_strides
from tests.compare import same_bits
from tests.elementwise.common import OPS, calls, reference, values

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflow and division by zero


def fast(op, x, y, out=None):
    f = getattr(fast_forms, f"{op}_fast")
    return f(x, y, 1, out) if op in ("add", "subtract") else f(x, y, out)


@given(st.sampled_from(OPS), calls(), st.booleans())
def test_fast_is_right_or_declines(op, call, into):
    x, y, lay = call
    expected = reference(op, x, y)
    out = lay(np.full(expected.shape, 77, expected.dtype))[0] if into else None
    result = fast(op, x, y, out)
    if result is None:
        assert out is None or (out == 77).all(), "declined, and nothing is written"
    else:
        assert out is None or result is out
        same_bits(result, expected)


@pytest.mark.parametrize("op", OPS)
def test_fast_serves_the_common_calls(op, rng):
    a, row = rng.standard_normal((4, 4)).astype("f4"), rng.standard_normal(4).astype("f4")
    big = rng.standard_normal((300, 200)).astype("f4")
    for x, y in [
        (a, a.T),
        (a[::2, 1:3], a[1:3, ::-2]),
        (a, row[:, None]),
        (row[:, None], row),
        (row[None], a),
        (big.T, big[:, :1].T),
        (a, a),
        (a, row),
        (row, a),
        (a.T, a.T),
        (a, 2),
        (0.5, a),
        (a, row[:1]),
        (a, row[0:1].reshape(())),
        (big, big),
    ]:
        expected = reference(op, x, y)
        result = fast(op, x, y)
        same_bits(result, expected)
        arrays = [v for v in (x, y) if isinstance(v, np.ndarray)]
        order = output_strides(expected.shape, tuple(v.shape for v in arrays), tuple(v.strides for v in arrays), 4)
        assert result.strides == order
        for layout in "CF":
            out = np.full(expected.shape, np.nan, "f4", layout)
            assert fast(op, x, y, out) is out
            same_bits(out, expected)


def test_fast_declines_what_it_must_not_decide():
    a, i = np.ones((4, 4), "f4"), np.ones(4, "i1")
    readonly, swapped = np.ones((4, 4), "f4"), np.ones((4, 4), ">f4")
    readonly.flags.writeable = False
    cases = [
        (a, np.ones(3, "f4"), None),  # shapes
        (a, a, np.ones((4, 5), "f4")),
        (a, a, np.ones((4, 4, 1), "f4")),
        (a, a, np.ones((1, 4, 4), "f4")),
        (a, a, readonly),
        (a, a, np.ones((4, 4), "i4")),
        (swapped, swapped, None),
        (a, a, [1.0]),
        (i, 300, None),
        (i, 2.5, np.ones(4, "i1")),
        (a, 10**400, None),
        (a, 1j, np.ones((4, 4), "f4")),
        (np.ones(4, bool), 1 << 64, None),
        (np.ones(4, object), np.ones(4, object), None),
        (np.ones((0, 4), "f4"), np.ones((1, 3), "f4"), None),
    ]
    for x, y, out in cases:
        before = None if not isinstance(out, np.ndarray) else out.copy()
        assert fast("add", x, y, out) is None, (x, y, out)
        assert before is None or (before == out).all()
    base = np.arange(16, dtype="f4")
    assert fast("add", a, a, np.broadcast_to(base, (4, 4, 16))[0]) is None
    assert fast("add", base[:8], base[:8], np.lib.stride_tricks.as_strided(base, (8,), (2,))) is None
    assert (base == np.arange(16)).all()
    assert fast_forms.add_fast(i, i, 1.0, None) is None
    assert fast_forms.add_fast(a, a, True, None) is None
    assert fast_forms.add_fast(a, a, 1 << 60, None) is None
    assert fast_forms.add_fast(a, a, 1j, None) is None


@pytest.mark.parametrize("workers", [1, 2])
def test_fast_shares_large_calls(workers, rng):
    """One call of compiled code, over threads: every layout that it serves, by rows and by columns, in place."""
    available = numba.get_num_threads()
    numba.set_num_threads(min(workers, available))
    try:
        n = gates.SHARED // 4
        tall, flat, turned = (rng.standard_normal(s).astype("f4") for s in ((n // 8 + 1, 8), (3, n), (512, n // 256)))
        for x, y in (
            (flat[0], flat[1]),
            (tall, tall[0]),
            (flat, flat[:, :1]),
            (turned, turned[::-1]),
            (flat, flat[:1]),
        ):
            same_bits(fast("multiply", x, y), x * y)
            out = x.copy()
            assert fast("multiply", out, y, out) is out
            same_bits(out, x * y)
        line = rng.standard_normal(n + 64).astype("f4")
        expected = line[:n] + line[64:]
        nbkernels.add(line[:n], line[64:], out=line[64:])  # overlaps: not for the small entry
        same_bits(line[64:], expected)
    finally:
        numba.set_num_threads(available)


def test_fast_serves_empty_arrays():
    """In one call of compiled code, whatever their strides say."""
    for x, y in (((0, 3), (0, 3)), ((0, 3), (1, 3)), ((0, 3), (3,)), ((3, 0), (3, 1)), ((2, 0, 4), (1, 1, 4))):
        x, y = np.empty(x, "f4"), np.empty(y, "f4")
        expected = np.add(x, y)
        for result in (fast("add", x, y), fast("add", x, y, expected), fast("add", y, x)):
            same_bits(result, expected)
    assert fast("add", np.empty((0, 3), "f4"), np.empty((2, 3), "f4")) is None
    assert fast("add", np.empty((0, 3), "f4"), np.empty((0, 2), "f4")) is None
    assert fast("add", np.empty((1, 3), "f4"), np.empty((1, 3), "f4"), np.empty((0, 3), "f4")) is None


def test_fast_with_alpha(rng):
    for dtype, alphas in [("f4", (0.3, -2, 0, 1.0, np.nan)), ("f8", (1e300, 3)), ("i1", (3, -100)), ("u8", (2,))]:
        x, y = values(rng, (4, 5), dtype), values(rng, 5, dtype)
        for alpha in alphas:
            same_bits(fast_forms.add_fast(x, y, alpha, None), reference("add", x, y, alpha))
            same_bits(fast_forms.subtract_fast(x, y, alpha, None), reference("subtract", x, y, alpha))
            out = x.copy()
            assert fast_forms.add_fast(out, y, alpha, out) is out
            same_bits(out, reference("add", x, y, alpha))


def test_a_cast_into_out_does_not_teach_the_fast_form_a_wrong_result():
    a, b = np.ones((4, 4), "f4"), np.ones((4, 4), "f8")
    elementwise.add(np.empty((4, 4), "f4"), a, b)
    fast("add", a, b, np.empty((4, 4), "f4"))
    same_bits(fast("add", a, b), a + b)
    same_bits(fast("add", b, a), a + b)


def test_fast_reads_nothing_of_subclasses():
    class Other(np.ndarray):
        pass

    a = np.ones((4, 4), "f4")
    assert fast("add", a.view(Other), a) is None


@pytest.mark.sampled
@pytest.mark.parametrize("to", ["complex64", "complex128"])
@pytest.mark.parametrize("op", BINARY)
def test_real_results_into_complex_outs(op, to, rng, capfd):
    """Of items of 16 bytes, which no vector has; and LLVM has nothing to remark."""
    for dtype in ("float64", "int32"):
        x, y = rng.integers(1, 9, (2, 70)).astype(dtype)
        try:
            expected = getattr(nbkernels, op)(x, y)
        except TypeError:
            continue
        out = np.full(70, np.nan, to)
        assert getattr(nbkernels, op)(x, y, out=out) is out
        same_bits(out, expected.astype(to))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("to", ["float32", "float64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
def test_alpha_is_of_the_operands_dtype_whatever_out_is(dtype, to):
    for shape in ((), (3,), (40, 50)):
        x, out = np.full(shape, -3, dtype), np.zeros(shape, to)
        for _ in range(2):  # planned, and planned before
            nbkernels.add(x, x, alpha=2, out=out, casting="unsafe")
            assert (out == -9).all()


ALPHAS = {"b": (True, False), "i": (2, -3, 0, 100), "u": (2, -3, 0, 100), "f": (0.3, -2, 1.5), "c": (2 - 1j, 0.5, -1)}


PAIRS = [("float32", "int8"), ("float16", "uint8"), ("uint8", "int8"), ("int8", "complex64"), ("bool", "bool")]


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_alpha_with_any_dtypes_in_any_form(data):
    """x + alpha*y in the dtype of x + y, rounded after each step, halves once; then as out's dtype, or in x's place.

    Few dtypes, since each pair with an out of another is compiled anew.
    """
    op, (first, second) = data.draw(st.sampled_from(["add", "subtract"])), data.draw(st.sampled_from(PAIRS))
    dtype = np.result_type(np.dtype(first), np.dtype(second))
    assume((op, dtype.kind) != ("subtract", "b"))
    alpha, rng = data.draw(st.sampled_from(ALPHAS[dtype.kind])), np.random.default_rng(data.draw(st.integers(0, 99)))
    shape, other = data.draw(st.sampled_from([((7,), (1,)), ((3, 50), (50,)), ((70, 40), (70, 40))]))
    x, y = (rng.integers(-9, 9, s).astype(d) for s, d in ((shape, first), (other, second)))
    if dtype.kind == "b":
        expected = x | (y & alpha)
    else:
        work = np.dtype("f4") if dtype == np.float16 else dtype
        expected = reference(op, x.astype(work), y.astype(work), alpha).astype(dtype)
    function = getattr(nbkernels, op)
    same_bits(function(x, y, alpha=alpha), expected)
    to = data.draw(st.sampled_from([dtype.name, "complex128"]))
    if np.can_cast(dtype, to, "same_kind"):
        out = np.zeros(shape[::-1], to).T
        assert function(x, y, alpha=alpha, out=out) is out
        same_bits(out, expected.astype(to))
    if np.can_cast(dtype, first, "same_kind"):
        assert getattr(nbkernels, f"{op}_")(x, y, alpha=alpha) is x
        same_bits(x, expected.astype(first))
