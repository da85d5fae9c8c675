"""use_in_numpy against NumPy itself: values, flags and layouts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbkernels import use_in_numpy
from nbkernels.in_numpy import table
from nbkernels.in_numpy.which import ALIKE, QUIET, as_ours
from tests.numpy_api.numpy_loops import calls, forced, nothing_left, observed, pointers, same, slot_of, special  # noqa: F401

HALVES = ("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "less", "equal", "logical_and",
          "copysign")  # fmt: skip
LOOPS = [(name, "float16") for name in HALVES] + [("floor_divide", "int32"), ("remainder", "int8"), ("fmod", "float64")]


@pytest.mark.parametrize(("name", "dtype"), LOOPS)
def test_every_pair_of_hostile_elements_has_numpys_bits_and_flags(name, dtype):
    ufunc, x = getattr(np, name), special(dtype)
    pairs = [(np.full(5, a), np.full(5, b)) for a in x for b in x]
    whole = np.repeat(x, len(x)), np.tile(x, len(x))
    want = [observed(lambda a=a, b=b: ufunc(a, b)) for a, b in [*pairs, whole]]
    with forced(name, dtype):
        got = [observed(lambda a=a, b=b: ufunc(a, b)) for a, b in [*pairs, whole]]
        assert calls(name, dtype) >= len(got)
    for (mine, flags), (theirs, expected) in zip(got, want):
        same(mine, theirs)
        assert flags == expected


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_flags_of_what_is_quiet(dtype):
    """Whatever is replaced although nobody looks at its flags: "invalid" of NaN is NumPy's where it orders complex
    numbers."""
    parts = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan]
    x = np.array([complex(a, b) for a in parts for b in parts] if dtype[0] == "c" else parts, dtype)
    pairs = [(np.full(5, a), np.full(5, b)) for a in x[::2] for b in x]
    for name in QUIET:
        ufunc = getattr(np, name)
        try:
            expected = [observed(lambda a=a, b=b, f=ufunc: f(a, b))[1] for a, b in pairs]
        except TypeError:
            continue
        with forced(name, dtype):
            assert [observed(lambda a=a, b=b, f=ufunc: f(a, b))[1] for a, b in pairs] == expected, name


@pytest.mark.parametrize("name", ["exp", "sqrt", "cos", "reciprocal", "rint", "isfinite", "logical_not"])
def test_every_half_has_numpys_bits_and_flags(name):
    assert name in ALIKE
    ufunc, halves = getattr(np, name), np.arange(1 << 16, dtype="u2").view("f2")
    if not as_ours(ufunc):  # NumPy's own loop rounds in another way on this processor: it stays
        before = pointer(name)
        with forced(name, "float16"):
            assert pointer(name) == before
        return
    groups = [
        *halves.reshape(-1, 16),
        halves[0xFC00:0xFC01],
        halves[[0xFC00, 0xE000, 0xFC00]],
        *halves[::997, None],
        halves[:0],
        halves[::-3],
    ]
    want = [observed(lambda x=x: ufunc(x)) for x in groups]
    with forced(name, "float16"):
        got = [observed(lambda x=x: ufunc(x)) for x in groups]
        over = halves[15:2000].copy()  # in place, piece by piece
        if name not in ("isfinite", "logical_not"):
            with np.errstate(all="ignore"):
                same(ufunc(over, out=over), want_of(ufunc, halves[15:2000]))
        assert calls(name, "float16") >= len(groups) - 1
    for (mine, flags), (theirs, expected) in zip(got, want):
        same(mine, theirs)
        assert flags == expected


def pointer(name):
    """The address of NumPy's loop of an operation of one now."""
    old = table.replace(getattr(np, name), "e->e", 1)
    table.replace(getattr(np, name), "e->e", old)
    return old


def want_of(ufunc, x):
    with use_in_numpy(False), np.errstate(all="ignore"):
        return ufunc(x)


def layouts(x):
    """Views of x's 600 elements, as NumPy may hand them to a loop."""
    y = x[::-1].copy()
    grid, other = x.reshape(20, 30), y.reshape(20, 30)
    odd = np.zeros(600, [("pad", "i1"), ("x", x.dtype)])
    odd["x"] = y
    yield from ((x, y), (x[::2], y[::2]), (x[::-1], y), (x, y[:1]), (x[:1], y), (grid.T, other.T), (grid, other[0]))
    yield from ((grid[:, :1], other), (grid[::2, ::3], other[1::2, 1::3]), (x, odd["x"]), (x[:0], y[:0]), (x[3], y[5]))


@pytest.mark.parametrize(("name", "dtype"), [("add", "float16"), ("less", "float16"), ("floor_divide", "int32")])
def test_layouts_outputs_and_overlaps(name, dtype):
    ufunc = getattr(np, name)
    x = np.random.default_rng(1).integers(-50, 50, 600).astype(dtype)
    x[x == 0] = 3

    def all_of_it():
        for a, b in layouts(x):
            yield ufunc(a, b)
            yield ufunc(a, b, where=np.asarray(a) > 0, out=np.zeros(np.broadcast(a, b).shape, ufunc(a, b).dtype))
        if name != "less":
            for first, second, out in ((slice(1, None), slice(-1), slice(1, None)),
                                       (slice(-1), slice(1, None), slice(1, None)),
                                       (slice(1, None), slice(-1), slice(-1)), (slice(None), slice(None), slice(None)),
                                       (slice(None, None, 2), slice(1, None, 2), slice(None, None, 2)),
                                       (slice(None), slice(None, None, -1), slice(None))):  # fmt: skip
                z = x.copy()
                yield ufunc(z[first], z[second], out=z[out])
                yield z
            yield ufunc.reduce(x[:9])
            yield ufunc.reduce(x.reshape(20, 30), axis=0)
            yield ufunc.accumulate(x[:50])
            yield ufunc.reduceat(x, [0, 7, 7, 500])
            z = x.copy()
            z[::-1] = ufunc(z, z)
            yield z
        yield ufunc.outer(x[:7], x[:5])

    with np.errstate(all="ignore"):
        want = list(all_of_it())
        with forced(name, dtype):
            got = list(all_of_it())
    for mine, theirs in zip(got, want, strict=True):
        same(mine, theirs)


def test_a_flag_of_one_chunk_is_not_lost_in_the_next():
    x = np.ones(200_000, "i4")
    y = x.astype("i8")  # cast in chunks, one call of the loop each
    y[5] = 0
    with forced("floor_divide", "int64"), np.errstate(divide="raise"):
        with pytest.raises(FloatingPointError, match="divide by zero"):
            np.floor_divide(x, y)
        assert np.floor_divide(x, np.ones_like(y)).sum() == len(x)


# -- products ----------------------------------------------------------------------------------------------------------

SIZE = st.sampled_from([0, 1, 2, 3, 5, 8, 13, 17, 33, 70])


@st.composite
def operands(draw):
    dtype = draw(st.sampled_from(["int8", "int64", "float16", "uint16"]))
    m, k, n = draw(SIZE), draw(SIZE), draw(SIZE)
    batch = draw(st.sampled_from([(), (1,), (3,), (2, 3), (40,), (0,)]))
    rng = np.random.default_rng(draw(st.integers(0, 9)))

    def matrix(rows, columns, stacked):
        lead = batch if stacked else ()
        form = draw(st.sampled_from(["rows", "columns", "apart", "back", "gaps"]))
        shape = (*lead, rows, columns)
        x = rng.integers(-4, 5, (*lead, 2 * rows, 2 * columns)).astype(dtype)
        x = {"rows": x[..., :rows, :columns].copy(), "columns": x.swapaxes(-1, -2).copy().swapaxes(-1, -2),
             "apart": x[..., ::2, ::2], "back": x[..., ::-1, ::-1], "gaps": x[..., 1:, :]}[form]  # fmt: skip
        return x[..., :rows, :columns].reshape(shape) if x.size == 0 else x[..., :rows, :columns]

    return matrix(m, k, draw(st.booleans())), matrix(k, n, draw(st.booleans()))


@settings(max_examples=150, deadline=None)
@given(operands())
def test_matmul_of_any_layout_is_numpys(pair):
    a, b = pair
    with use_in_numpy(False):
        want = np.matmul(a, b)
    with forced("matmul", a.dtype):
        same(np.matmul(a, b), want)
        out = np.full((*want.shape, 2), 7, a.dtype)[..., 0].swapaxes(-1, -2).copy().swapaxes(-1, -2)
        same(np.matmul(a, b, out=out), want)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "complex64"])
def test_the_other_products(dtype):
    rng = np.random.default_rng(3)
    a, v, w = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((7, 30, 40), (7, 40), (7, 30)))
    if dtype.startswith("complex"):
        a, v, w = (x + 1j * rng.integers(-3, 4, x.shape).astype("f4") for x in (a, v, w))
    calls_of = {"vecdot": (v, v[::-1]), "matvec": (a, v), "vecmat": (w, a), "matmul": (a[0, :, 0:5].T, a[1])}
    for name, pair in calls_of.items():
        want = getattr(np, name)(*pair)
        with forced(name, dtype):
            same(getattr(np, name)(*pair), want)
            same(getattr(np, name)(*(x[..., ::-1] for x in pair)) if name == "vecdot" else want, want)
            assert calls(name, dtype) > 0


def test_large_products_threads_and_long_chains():
    """Each runs here: what 512**3 steps are taken to cost NumPy was once more than an int64 holds."""
    rng = np.random.default_rng(5)
    for shape in ((150, 150, 150), (3, 9000, 2), (1, 9000, 1), (260, 5000, 3), (512, 512, 512)):
        a, b = (rng.integers(-9, 10, s).astype("i4") for s in (shape[:2], shape[1:]))
        with forced("matmul", "int32"):
            before = calls("matmul", "int32")
            same(a @ b, (a.astype("f8") @ b.astype("f8")).astype("i4"))
            assert calls("matmul", "int32") == before + 1, shape


def test_flags_of_products_of_halves():
    big, inf, one = np.full((3, 3), 300, "f2"), np.full((1, 1), np.inf, "f2"), np.ones((1, 5), "f2")
    huge = np.full((130, 130), 300, "f2")  # more than one thread
    row, column = np.zeros((2, 400, 200), "f2")
    row[0] = column[0] = 300  # one element overflows, of the first piece or of the last one
    corners = (row, column.T), (row[::-1], column[::-1].T)
    for a, b in ((big, big), (inf, one), (huge, huge), *corners, (inf, 0 * one), (big * 0 + np.nan, big)):
        want = observed(lambda a=a, b=b: np.matmul(a, b))
        with forced("matmul", "float16"):
            got = observed(lambda a=a, b=b: np.matmul(a, b))
        same(got[0], want[0])
        assert got[1] == want[1]
    with forced("matmul", "float16"), np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        big @ big
