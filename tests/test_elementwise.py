"""Element-wise kernels against NumPy: bits, dtypes, layouts, overlap, special values, errors."""

import itertools
import warnings

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbkernels
from nbkernels import dtypes
from nbkernels.cpu import calls as fast_forms
from nbkernels.cpu import elementwise, nest, quick
from nbkernels.strides import output_strides, plan

OPS = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
FLOATS, INTEGERS = ("float32", "float64"), dtypes.INTEGERS
DTYPES = (*FLOATS, *INTEGERS, "bool")
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, 1.5]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflow and division by zero


def reference(op, x, y, alpha=1):
    """NumPy's result; +0 is above -0, which NumPy leaves to the machine."""
    with np.errstate(all="ignore"):
        if alpha != 1:
            dtype = np.result_type(x, y)
            y = (np.asarray(y).astype(dtype) * np.asarray(alpha).astype(dtype)).astype(dtype)
        result = getattr(np, op)(x, y)
        if op in ("maximum", "minimum") and result.dtype.kind == "f":
            x, y = np.broadcast_arrays(x, y)
            zeros = (x == 0) & (y == 0)
            sign = np.logical_and if op == "maximum" else np.logical_or
            zero = np.copysign(0, np.where(sign(np.signbit(x), np.signbit(y)), -1, 1)).astype(result.dtype)
            result = np.where(zeros, zero, result)
    return result


def same(actual, expected):
    """Equal bit by bit, any NaN equal to any NaN."""
    expected = np.asarray(expected)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(actual, expected)
    if actual.dtype.kind == "f":
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual)[number], np.signbit(expected)[number])


def run(op, x, y, out=None, **alpha):
    """The kernel on an out full of what must not survive."""
    if out is None:
        shape = np.broadcast_shapes(np.shape(x), np.shape(y))
        dtype = getattr(np, op)(np.ones((), x.dtype), np.ones((), y.dtype)).dtype
        out = np.full(shape, np.nan if dtype.kind == "f" else 77, dtype)
    getattr(elementwise, op)(out, x, y, **alpha)
    return out


def values(rng, shape, dtype):
    """Numbers of every size, specials and extremes among them."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if np.dtype(dtype).kind == "f":
        x = rng.standard_normal(shape).astype(dtype)
        return np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), x).astype(dtype)
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.3, rng.choice(np.array([info.min, info.max, 0, 1], dtype), shape), x)


@st.composite
def layouts(draw, shape):
    """A function from arrays of `shape` to a view of the same values in some layout, inside a larger buffer."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, -1, 2, -3])) for _ in shape]
    pads = [draw(st.integers(0, 2)) for _ in shape]
    shift = draw(st.sampled_from([0, 0, 1, 3]))

    def lay(x):
        sizes = [x.shape[d] * abs(steps[d]) + pads[d] for d in order]
        raw = np.full(int(np.prod(sizes, dtype=int)) * x.itemsize + shift, 0x5A, np.uint8)
        whole = raw[shift : len(raw)].view(x.dtype).reshape(sizes).transpose(np.argsort(order))
        spans = [slice(0, n * s, s) if s > 0 else slice(n * -s - 1, None, s) for n, s in zip(x.shape, steps)]
        view = whole[(..., *spans)][(..., *(slice(0, n) for n in x.shape))]
        view[...] = x
        return view, raw

    return lay


@st.composite
def calls(draw):
    """Two inputs that broadcast together and an out, each of its own layout."""
    shape = draw(st.lists(st.integers(0, 7), max_size=5).map(tuple))
    inputs = []
    for _ in range(2):
        lead = draw(st.integers(0, len(shape)))
        inputs.append(tuple(draw(st.sampled_from([1, n, n])) for n in shape[lead:]))
    shape = np.broadcast_shapes(*inputs)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = draw(st.sampled_from(["float32", "float64", "int32"])), draw(st.sampled_from(["float32", "int8"]))
    arrays = [draw(layouts(s))(values(rng, s, d))[0] for s, d in zip(inputs, kinds)]
    for x in arrays:
        x.flags.writeable = draw(st.booleans())
    return *arrays, draw(layouts(shape))


@given(st.sampled_from(["add", "multiply", "divide", "maximum"]), calls())
def test_any_shapes_strides_and_layouts(op, call):
    x, y, lay = call
    expected = reference(op, x, y)
    before = x.copy(), y.copy()
    out, raw = lay(np.full(expected.shape, 77, expected.dtype))
    out[...] = 77
    guard = raw.copy()
    run(op, x, y, out)
    same(out, expected)
    same(x, before[0])
    same(y, before[1])
    out[...] = 77
    np.testing.assert_array_equal(raw, guard, "what lies between out's elements is untouched")


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(op, dtype, rng):
    if op == "subtract" and dtype == "bool":
        with pytest.raises(TypeError, match="bool"):
            elementwise.subtract(np.zeros(3, bool), np.ones(3, bool), np.ones(3, bool))
        return
    for n in (1, 7, 16, 31, 64, 67, 200):
        x, y = values(rng, n, dtype), values(rng, n, dtype)
        same(run(op, x, y), reference(op, x, y))
        same(run(op, x, y[:1]), reference(op, x, y[:1]))
        same(run(op, x[:1], y), reference(op, x[:1], y))


@pytest.mark.parametrize("op", OPS)
def test_special_values_meet_each_other(op):
    for dtype in FLOATS:
        x, y = (a.astype(dtype) for a in np.meshgrid(SPECIAL, SPECIAL))
        same(run(op, x, y), reference(op, x, y))


@pytest.mark.parametrize(("first", "second"), list(itertools.product(["float32", "int64", "uint8"], DTYPES)))
def test_mixed_dtypes_are_numpys(first, second, rng):
    x, y = values(rng, 41, first), values(rng, 41, second)
    for op in ("add", "divide"):
        same(run(op, x, y), reference(op, x, y))


@pytest.mark.parametrize("to", ["float32", "float64", "int8", "int64"])
def test_out_is_cast_under_same_kind(to, rng):
    for dtype in ("float64", "int32", "uint8"):
        x, y = values(rng, 33, dtype), values(rng, 33, dtype)
        out = np.full(33, 77, to)
        if np.can_cast(dtype, to, "same_kind"):
            run("add", x, y, out)
            with np.errstate(all="ignore"):
                same(out, np.add(x, y).astype(to))
        else:
            with pytest.raises(TypeError, match="same_kind"):
                run("add", x, y, out)
            same(out, np.full(33, 77, to))


@pytest.mark.parametrize("op", ["add", "subtract"])
@pytest.mark.parametrize(
    ("dtype", "alpha"), [("float32", 0.3), ("float64", -2), ("int8", 100), ("uint64", -1), ("int32", 0)]
)
def test_alpha_rounds_after_the_product(op, dtype, alpha, rng):
    x, y = values(rng, 100, dtype), values(rng, 100, dtype)
    same(run(op, x, y, alpha=alpha), reference(op, x, y, alpha))


def test_alpha_of_bools():
    x, y = np.array([False, False, True]), np.array([False, True, False])
    same(run("add", x, y, alpha=False), x)
    same(run("add", x, y, alpha=True), x | y)


@pytest.mark.parametrize("op", OPS)
def test_python_scalars_are_weak(op, rng):
    for dtype, scalar in [("float32", 0.1), ("float32", 3), ("int8", 100), ("uint8", 0), ("int16", 2.5), ("bool", 2)]:
        x = values(rng, (5, 6), dtype)
        expected = reference(op, x, scalar)
        out = np.full(expected.shape, 77, expected.dtype)
        getattr(elementwise, op)(out, x, scalar)
        same(out, expected)
        getattr(elementwise, op)(out, scalar, x)
        same(out, reference(op, scalar, x))


def test_bits_do_not_depend_on_position_or_threads(rng):
    """Every length, offset and layout gives each element the bits that it has alone."""
    x, y = rng.standard_normal(300).astype("f4"), rng.standard_normal(300).astype("f4")
    for op, alpha in [("add", {"alpha": 0.7}), ("divide", {}), ("multiply", {})]:
        alone = np.array([run(op, x[i : i + 1], y[i : i + 1], **alpha)[0] for i in range(300)])
        for start, stop in [(0, 300), (1, 18), (3, 260), (7, 72)]:
            same(run(op, x[start:stop], y[start:stop], **alpha), alone[start:stop])
        same(run(op, x[::-3], y[::-3], **alpha), alone[::-3])


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 60), st.sampled_from([1, -1, 2]), st.booleans())
def test_out_that_overlaps_an_input(shift_out, shift_x, n, step, first):
    base = np.arange(200, dtype="f4")
    cut = [slice(s, s + n * abs(step), abs(step)) for s in (shift_out, shift_x)]
    out, x = base[cut[0]], base[cut[1]][:: 1 if step > 0 else -1]
    other = np.linspace(0, 1, n, dtype="f4")
    expected = np.add(x, other)
    run("add", *((x, other) if first else (other, x)), out)
    same(out, expected)


WINDOWS = st.tuples(st.integers(0, 5), st.sampled_from([1, -1, 2, -2, 3]))


@given(st.tuples(WINDOWS, WINDOWS), st.tuples(WINDOWS, WINDOWS), st.tuples(WINDOWS, WINDOWS), st.booleans())
def test_windows_of_one_array(first, second, third, turned):
    """out and both inputs cut from the same memory, interleaved, crossed, shifted or reversed."""
    base = np.arange(900, dtype="f4").reshape(30, 30)

    def window(spans, n=3):
        view = base[tuple(slice(10 + a, None, s) if s > 0 else slice(10 + a + 3, None, s) for a, s in spans)]
        return view[:n, :n]

    out, x, y = window(first), window(second), window(third)
    y = y.T if turned else y
    expected, before = np.add(x, y), base.copy()
    written = np.zeros((30, 30), bool)
    np.lib.stride_tricks.as_strided(
        written.ravel()[(out.ctypes.data - base.ctypes.data) // 4 :], out.shape, [s // 4 for s in out.strides]
    )[...] = True
    assert nbkernels.add(x, y, out=out) is out
    same(out, expected)
    np.testing.assert_array_equal(base[~written], before[~written])


def test_views_that_interleave_are_not_copied():
    """Their extents meet, their elements do not: an exact answer is asked for, and says so."""
    base = np.arange(64, dtype="f4").reshape(8, 8)
    for out, x in ((base[:, ::2], base[:, 1::2]), (base[::2], base[1::2]), (base[:, :4], base[:, 4:])):
        assert elementwise.apart(out, x) is x
    shifted = base[:, 4:8]
    assert elementwise.apart(base[:, 1:5], shifted) is not shifted


def test_out_that_is_the_transpose_of_an_input():
    base = np.arange(100, dtype="f4").reshape(10, 10)
    expected = base + base.T
    run("add", base, base.T, base)
    same(base, expected)


def test_out_that_holds_the_broadcast_row():
    base = np.arange(20, dtype="f4").reshape(4, 5)
    expected = base + base[1]
    run("add", base, base[1], base)
    same(base, expected)


def test_in_place_makes_no_copy(monkeypatch):
    x = np.ones((50, 40), "f4")
    monkeypatch.setattr(np, "shares_memory", lambda *a, **k: pytest.fail("a copy was considered"))
    run("add", x, x, x)
    run("multiply", x[::2], x[::2], x[::2])
    assert x[1, 0] == 2
    assert x[0, 0] == 4


@pytest.mark.parametrize(
    ("dtypes", "steps"),
    [
        ("f4 f4", (2, 2)),
        ("f4 f8", (-2, 3)),
        ("i1 f4", (4, -4)),
        ("f4 f4", (-1, 1)),
        ("f8 i2", (-1, 0)),
        ("c8 f4", (3, 1)),
        ("c16 f8", (2, -2)),
    ],
)
def test_steps_that_loops_are_made_for(dtypes, steps, rng):
    """Rows of all lengths modulo a vector; what lies behind the last element of a row is not read."""
    for rows, columns in ((1, 4096), (41, 101), (60, 79), (900, 5), (300, 14), (200, 23)):
        views = []
        for dtype, step in zip(dtypes.split(), steps):
            size = max(1, (columns - 1) * abs(step) + 1)
            whole = values(rng, (rows, size), "f4").astype(dtype)
            views.append(np.broadcast_to(whole[:, :1], (rows, columns)) if step == 0 else whole[:, ::step])
            assert views[-1].shape == (rows, columns)
        same(run("multiply", *views), np.multiply(*views))
        mask = rng.integers(0, 2, (rows, 2 * columns)).astype(bool)[:, ::2]
        out, expected = (np.full((rows, columns), 77, np.result_type(*views)) for _ in range(2))
        same(run("multiply", *views, out, where=mask), np.multiply(*views, out=expected, where=mask))


@pytest.mark.parametrize("columns", [1, 3, 130, 4099])
def test_large_arrays_stream_and_run_in_tasks(columns, monkeypatch, rng):
    """The paths of 16 M elements at a size that is quick: several tasks, streaming stores, ragged ends."""
    monkeypatch.setattr(nest, "PARALLEL", 1)
    monkeypatch.setattr(nest, "STREAMED", 1)
    monkeypatch.setattr(nest.threads, "count", lambda: 3)
    n = 40_000 // columns
    for dtype, shift in itertools.product(["float32", "complex64", "int8", "complex128"], [0, 1, 5]):
        x = values(rng, (n, columns), "float32" if dtype.startswith("complex") else dtype).astype(dtype)
        raw = np.full(x.nbytes + 64, 0x5A, np.uint8)
        out = raw[shift : shift + x.nbytes].view(dtype).reshape(x.shape)
        for y in (x, x[0], x[:, :1], x[::-1], x.T.copy().T, x[:1, :1]):
            expected = reference("add", x, y)
            raw[:] = 0x5A
            same(run("add", x, y, out), expected)
            assert (raw[:shift] == 0x5A).all()
            assert (raw[shift + x.nbytes :] == 0x5A).all()


def test_streaming_loops_are_chosen_by_size():
    a = np.empty(nest.STREAMED // 4, "f4")
    rows, narrow, turned = a.reshape(-1, 2048), a.reshape(-1, 4), np.empty((2048, len(a) // 2048), "f4").T
    cases = [
        (a, a, True),
        (a, a[:1], True),
        (a, a[::-1], True),
        (rows, rows[0], True),
        (a[1:], a[1:], False),  # less than STREAMED
        (narrow, narrow[0], False),  # rows shorter than some lines
        (rows, turned, True),  # by tiles of 16 lines
    ]
    for x, y, expected in cases:
        loops = plan((x.shape, x.shape, y.shape), (x.strides, x.strides, y.strides), (4, 4, 4))
        assert nest.streamed(loops, 4) is expected, loops
    assert not nest.streamed(plan((a.shape,) * 2, ((8,), (4,)), (4, 4)), 4)


def test_many_dimensions(rng):
    x = rng.standard_normal((2,) * 12).astype("f4").reshape((2, 1) * 12 + (1,) * 8)
    y = x.T
    same(run("add", x, x), x + x)
    z = rng.standard_normal((2,) * 12)
    same(run("add", z, z.T), z + z.T)
    same(run("add", z[::-1, ::-1], z.T[..., ::-1]), z[::-1, ::-1] + z.T[..., ::-1])
    assert y.ndim == 32


def test_repeated_and_windowed_inputs(rng):
    x = rng.standard_normal(64)
    windows = np.lib.stride_tricks.sliding_window_view(x, 9)
    repeated = np.broadcast_to(x[:9], windows.shape)
    same(run("multiply", windows, repeated), windows * repeated)


def test_byte_swapped_and_unknown_dtypes_are_refused():
    for x in (np.ones(3, ">f4"), np.ones(3, "g"), np.ones(3, object), np.ones(3, "U1")):
        out = np.full(3, 77.0)
        with pytest.raises(TypeError, match="add"):
            elementwise.add(out, x, np.ones(3))
        same(out, np.full(3, 77.0))


# -- the fast forms ---------------------------------------------------------------------------------------------------


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
        same(result, expected)


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
        same(result, expected)
        arrays = [v for v in (x, y) if isinstance(v, np.ndarray)]
        order = output_strides(expected.shape, tuple(v.shape for v in arrays), tuple(v.strides for v in arrays), 4)
        assert result.strides == order
        for layout in "CF":
            out = np.full(expected.shape, np.nan, "f4", layout)
            assert fast(op, x, y, out) is out
            same(out, expected)


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
        n = quick.SHARED // 4
        tall, flat, turned = (rng.standard_normal(s).astype("f4") for s in ((n // 8 + 1, 8), (3, n), (512, n // 256)))
        for x, y in (
            (flat[0], flat[1]),
            (tall, tall[0]),
            (flat, flat[:, :1]),
            (turned, turned[::-1]),
            (flat, flat[:1]),
        ):
            same(fast("multiply", x, y), x * y)
            out = x.copy()
            assert fast("multiply", out, y, out) is out
            same(out, x * y)
        line = rng.standard_normal(n + 64).astype("f4")
        expected = line[:n] + line[64:]
        nbkernels.add(line[:n], line[64:], out=line[64:])  # overlaps: not for the small entry
        same(line[64:], expected)
    finally:
        numba.set_num_threads(available)


def test_fast_serves_empty_arrays():
    """In one call of compiled code, whatever their strides say."""
    for x, y in (((0, 3), (0, 3)), ((0, 3), (1, 3)), ((0, 3), (3,)), ((3, 0), (3, 1)), ((2, 0, 4), (1, 1, 4))):
        x, y = np.empty(x, "f4"), np.empty(y, "f4")
        expected = np.add(x, y)
        for result in (fast("add", x, y), fast("add", x, y, expected), fast("add", y, x)):
            same(result, expected)
    assert fast("add", np.empty((0, 3), "f4"), np.empty((2, 3), "f4")) is None
    assert fast("add", np.empty((0, 3), "f4"), np.empty((0, 2), "f4")) is None
    assert fast("add", np.empty((1, 3), "f4"), np.empty((1, 3), "f4"), np.empty((0, 3), "f4")) is None


def test_fast_with_alpha(rng):
    for dtype, alphas in [("f4", (0.3, -2, 0, 1.0, np.nan)), ("f8", (1e300, 3)), ("i1", (3, -100)), ("u8", (2,))]:
        x, y = values(rng, (4, 5), dtype), values(rng, 5, dtype)
        for alpha in alphas:
            same(fast_forms.add_fast(x, y, alpha, None), reference("add", x, y, alpha))
            same(fast_forms.subtract_fast(x, y, alpha, None), reference("subtract", x, y, alpha))
            out = x.copy()
            assert fast_forms.add_fast(out, y, alpha, out) is out
            same(out, reference("add", x, y, alpha))


def test_a_cast_into_out_does_not_teach_the_fast_form_a_wrong_result():
    a, b = np.ones((4, 4), "f4"), np.ones((4, 4), "f8")
    elementwise.add(np.empty((4, 4), "f4"), a, b)
    fast("add", a, b, np.empty((4, 4), "f4"))
    same(fast("add", a, b), a + b)
    same(fast("add", b, a), a + b)


def test_fast_reads_nothing_of_subclasses():
    class Other(np.ndarray):
        pass

    a = np.ones((4, 4), "f4")
    assert fast("add", a.view(Other), a) is None


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
    same(result, expected)
    out, raw = lay(np.full(expected.shape, 77, expected.dtype))
    before = raw.copy()
    assert function(x, y, out=out) is out
    same(out, expected)
    out[...] = 77
    np.testing.assert_array_equal(raw, before, "what lies between out's elements is untouched")
    if x.shape == expected.shape and np.can_cast(expected.dtype, x.dtype, "same_kind"):
        target = lay(x)[0]
        assert getattr(nbkernels, op + "_")(target, y) is target
        same(target, expected.astype(x.dtype))


def test_alpha_in_every_form(rng):
    for dtype in ("f4", "f8", "i2"):
        x, y = values(rng, (6, 7), dtype), values(rng, 7, dtype)
        for alpha in (2, -3, 0):
            expected = reference("subtract", x, y, alpha)
            same(nbkernels.subtract(x, y, alpha=alpha), expected)
            same(nbkernels.subtract(x, y, alpha=alpha, out=np.empty((7, 6), dtype).T), expected)
            z = np.asfortranarray(x)
            assert nbkernels.subtract_(z, y, alpha=alpha) is z
            same(z, expected)


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
    same(nbkernels.maximum(x, 0), np.maximum(x, np.float32(0)))
    same(nbkernels.multiply(2, x), 2 * x)
    same(nbkernels.divide(np.arange(50_000), 7), np.arange(50_000) / 7)
