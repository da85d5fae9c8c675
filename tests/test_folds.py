"""reduce, accumulate, outer and at of the element-wise operations, against NumPy's."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbkernels
from nbkernels.cpu import reduce
from nbkernels.dispatch import MetaArray, OutError
from nbkernels.dtypes import ASSOCIATIVE

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflow

READ_ONLY = np.ones(3)
READ_ONLY.flags.writeable = False
VAST = np.broadcast_to(np.ones(1), 10**9)
WINDOWS = np.lib.stride_tricks.as_strided(np.ones(3), (4,), (4,))

KEYWORDS = [{}, {"keepdims": True}, {"initial": 2}, {"dtype": "float64"}]
FOLDS = {
    "float64": "add multiply maximum fmin hypot logaddexp subtract divide copysign",
    "int8": "add multiply minimum bitwise_and bitwise_xor gcd subtract floor_divide lcm",
    "bool": "add maximum logical_and",
    "float16": "add maximum subtract",
    "complex64": "add multiply fmax",
}


def outcome(function, *args, **keywords):
    """The result, or the kind of the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **keywords)
    except (TypeError, ValueError) as error:
        return TypeError if isinstance(error, TypeError) else ValueError


def same(actual, expected, rtol=None):
    """Within 64 eps, what both lose at most over 64 terms of one sign; of float16 NumPy rounds each sum."""
    if isinstance(expected, type):
        assert actual is expected
        return
    assert type(actual) is type(expected)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if rtol is None:
        rtol = 64 * np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 0
    np.testing.assert_allclose(actual, expected, rtol=2e-3 if expected.dtype == np.float16 else rtol)


@pytest.mark.parametrize(("dtype", "op"), [(dtype, op) for dtype, ops in FOLDS.items() for op in ops.split()])
def test_reduce(dtype, op, rng):
    x, mask = rng.integers(1, 5, (3, 4, 5)).astype(dtype), rng.random((4, 5)) < 0.5
    keywords = [*KEYWORDS[: 3 if dtype == "complex64" else 4], {"where": mask}, {"where": mask, "initial": 3}]
    for axis in (0, -1, (0, 2), None, ()):
        for words in keywords:
            mine, numpys = getattr(nbkernels, op).reduce, getattr(np, op).reduce
            same(outcome(mine, x, axis, **words), outcome(numpys, x, axis, **words))
    y = x[::-1, ::2].transpose(2, 0, 1)
    same(getattr(nbkernels, op).reduce(y), getattr(np, op).reduce(y))
    with np.errstate(all="ignore"):
        for axis in (0, 1, -1):
            same(getattr(nbkernels, op).accumulate(x, axis), getattr(np, op).accumulate(x, axis))
        same(getattr(nbkernels, op).accumulate(y, 1), getattr(np, op).accumulate(y, 1))


@given(st.sampled_from(["add", "maximum", "subtract"]), st.lists(st.integers(0, 5), min_size=1, max_size=4), st.data())
def test_any_shape(op, shape, data):
    x = np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype("f4")
    x = x.transpose(data.draw(st.permutations(range(x.ndim))))
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1) | st.sets(st.integers(0, x.ndim - 1)).map(tuple))
    keep = data.draw(st.booleans())
    same(outcome(getattr(nbkernels, op).reduce, x, axis, keepdims=keep),
         outcome(getattr(np, op).reduce, x, axis, keepdims=keep))  # fmt: skip


def test_what_leaves_elements_as_they_are():
    for op in ASSOCIATIVE:
        for dtype in map(np.dtype, ("bool", "int8", "uint64", "float32", "complex128")):
            work = (
                nbkernels.dtypes.resolve_fold(op, dtype)
                if outcome(getattr(np, op).reduce, np.ones(1, dtype)) is not TypeError
                else None
            )
            if work is None:
                continue
            values = (
                np.array([0, 1, 100, 5], dtype) if dtype.kind != "f" else np.array([0.0, 1, -np.inf, np.nan, 3], dtype)
            )
            values = values.astype(work)
            with np.errstate(all="ignore"):
                expected = (
                    abs(values)
                    if op in ("hypot", "gcd")
                    else values.astype(bool)
                    if op[:3] == "log" and op != "logaddexp"
                    else values
                )
                np.testing.assert_array_equal(getattr(np, op)(reduce.neutral(op, work), values), expected, op)


def test_sums_are_pairwise_and_of_one_order_for_any_threads(monkeypatch, rng):
    x = rng.random(5 * reduce.SHARE // 2 + 77).astype("f4")
    alone = nbkernels.add.reduce(x)
    assert abs(float(alone) - math.fsum(x.astype("f8"))) / len(x) < 1e-6
    monkeypatch.setattr(reduce.threads, "count", lambda: 3)
    monkeypatch.setattr(reduce, "PARALLEL", 1)
    assert nbkernels.add.reduce(x) == nbkernels.sum_to(x, ()) == alone
    assert nbkernels.add.reduce(x[::-1]) != 0
    half = rng.random(100_000).astype("f2")
    assert abs(float(nbkernels.add.reduce(half, dtype="f4")) - half.astype("f8").sum()) < 1
    assert nbkernels.add.reduce(np.ones(4097, "f2")) == 4096 + 0, "rounded once"
    assert (
        nbkernels.maximum.reduce(np.array([1.0, np.nan, 3.0]))
        != nbkernels.fmax.reduce(np.array([1.0, np.nan, 3.0]))
        == 3
    )


def test_transposed_terms_have_the_bits_of_others(rng):
    """Arrays whose outermost dimension touches, folded whole: through stages of rows, their ends, reversed."""
    for dtype in ("f4", "f8", "i4", "c8", "f2"):
        for shape in ((70, 65), (16, 300), (1000, 33), (37, 11, 29), (3, 5000), (129, 640), (96, 256), (9, 7, 512)):
            x = (rng.standard_normal(shape) * 50).astype(dtype)
            expected = nbkernels.add.reduce(x, None)
            for y in (np.asfortranarray(x), np.asfortranarray(x[::-1])[::-1], np.asfortranarray(x[:, ::-1])[:, ::-1]):
                assert nbkernels.add.reduce(y, None) == expected
    wide = np.asfortranarray(rng.standard_normal((40, 20_000)))  # more than a stage holds
    assert nbkernels.add.reduce(wide, None) == nbkernels.add.reduce(wide.copy("C"), None)


def test_out_overlap_and_other_dtypes(rng):
    x = rng.standard_normal((6, 7))
    out = np.full(7, np.nan, "f4")
    assert nbkernels.add.reduce(x, out=out) is out
    same(out, np.add.reduce(x).astype("f4"))
    y = x.copy()
    nbkernels.add.reduce(y, axis=0, out=y[2])
    same(y[2], x.sum(0))
    y = x.copy()
    assert nbkernels.multiply.accumulate(y, 1, out=y) is y
    same(y, np.multiply.accumulate(x, 1))
    y = x.copy()
    nbkernels.add.accumulate(y[:-1], 0, out=y[1:])
    same(y[1:], np.add.accumulate(x[:-1], 0))
    narrow = np.empty((6, 7), "f4")
    same(nbkernels.add.accumulate(x, 0, out=narrow), np.add.accumulate(x, 0).astype("f4"), 1e-5)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: nbkernels.maximum.reduce(np.ones((0, 3))), ValueError, "has no identity"),
        (lambda: nbkernels.maximum.reduce(np.ones(3), where=np.ones(3, bool)), ValueError, "give initial"),
        (lambda: nbkernels.subtract.reduce(np.ones((2, 3)), (0, 1)), ValueError, "at most one axis"),
        (lambda: nbkernels.add.reduce(np.ones(3), 1), ValueError, "axis 1 is out of bounds"),
        (lambda: nbkernels.add.reduce(np.ones((2, 2)), (0, -2)), ValueError, "twice"),
        (lambda: nbkernels.add.reduce(np.ones(3), 0.5), TypeError, "axis must be an int, .* not 0.5"),
        (lambda: nbkernels.add.reduce(np.ones((2, 3)), True), TypeError, "axis must be an int, .* not True"),
        (lambda: nbkernels.add.reduce(np.ones((2, 3)), (0, False)), TypeError, "axis must be an int"),
        (lambda: nbkernels.add.reduce(np.ones((2, 3)), [0]), TypeError, r"axis must be an int, .* not \[0\]"),
        (lambda: nbkernels.add.accumulate(np.ones((2, 3)), True), TypeError, "axis must be an int"),
        (lambda: nbkernels.add.accumulate(np.array(1.0)), TypeError, "^add.accumulate: self has no dimensions"),
        (lambda: nbkernels.add.reduce(np.ones(3), initial=2j), TypeError, "^add.reduce: initial=2j is complex"),
        (lambda: nbkernels.add.reduce(np.ones(3), initial="a"), TypeError, "^add.reduce: initial must be a number"),
        (lambda: nbkernels.add.reduce(np.ones(3), keepdims=[1]), TypeError, "^add.reduce: keepdims must be a bool"),
        (lambda: nbkernels.add.reduce(np.ones(3), keepdims="abc"), TypeError, "^add.reduce: keepdims must be a bool"),
        (lambda: nbkernels.add.reduce(np.ones(3), out=3), TypeError, "^add.reduce: out must be an array, not an int"),
        (lambda: nbkernels.add.accumulate(np.ones(3), out=3), TypeError, "^add.accumulate: out must be an array"),
        (lambda: nbkernels.add.accumulate(np.ones(3), out=np.ones(2)), OutError, "^add.accumulate: the result has"),
        (lambda: nbkernels.add.outer(VAST, VAST), MemoryError, r"^add.outer: .* of shape \(1000000000, 1000000000\)"),
        (lambda: nbkernels.add.reduce(np.ones(3), dtype="flot"), TypeError, "^add: dtype='flot'"),
        (lambda: nbkernels.add.reduce([1.0, 2.0]), TypeError, "^add: self must be an array, not a list"),
        (lambda: nbkernels.add.accumulate(np.ones((2, 2)), None), ValueError, r"along one axis, not \(0, 1\)"),
        (lambda: nbkernels.add.accumulate(np.ones(3), ()), ValueError, r"along one axis, not \(\)"),
        (lambda: nbkernels.add.reduce(np.ones(3), where=np.ones(3)), TypeError, "where must be bool"),
        (lambda: nbkernels.less.reduce(np.ones(3)), TypeError, "no fold of float64"),
        (lambda: nbkernels.add.reduce(np.ones(3), out=np.ones(1)), OutError, "^add.reduce: .* has shape"),
        (lambda: nbkernels.add.at(np.broadcast_to(np.ones(1), 3), 0, 1), OutError, "cannot be written"),
        (lambda: nbkernels.add.at([1.0], 0, 1), TypeError, "^add.at: self must be an array, not a list"),
        (lambda: nbkernels.add.at(np.ones(3), 3, 1), IndexError, "out of bounds"),
        (lambda: nbkernels.add.at(np.ones(3, int), 0, 1.5), TypeError, "cannot cast"),
        (lambda: nbkernels.pow.at(np.ones(3, int), 0, -1), ValueError, "negative"),
        (lambda: nbkernels.add.at(np.ones(3, ">f4"), np.array([1]), 1), TypeError, "self is byte-swapped"),
        (lambda: nbkernels.add.at(np.ones(3), np.array([1]), np.ones(1, ">f4")), TypeError, "other is byte-swapped"),
        (lambda: nbkernels.add.at(np.ones(3), [1], np.ones(1, ">f4")), TypeError, "other is byte-swapped"),
        (lambda: nbkernels.add.at(READ_ONLY, np.array([1]), 1.0), OutError, "read-only"),
        (lambda: nbkernels.add.at(WINDOWS, np.array([1]), 1.0), OutError, "share memory"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("op", ["add", "maximum", "logical_xor", "bitwise_or", "less", "equal"])
def test_folds_of_numbers_as_bools(op):
    """dtype=bool converts first: -1 + 1 is True."""
    for x in (np.array([[1, -1, 0], [0, 2, -3]], np.int8), np.array([[1, -1], [0.5, 0], [-0.0, np.nan]], np.float32)):
        for keywords in ({"axis": 0}, {"axis": 1}, {"axis": 0, "initial": True}, {"axis": 1, "where": x == x}):
            if "where" in keywords and op in ("maximum", "less", "equal"):
                keywords["initial"] = False
            mine = getattr(nbkernels, op).reduce(x, dtype=bool, **keywords)
            same(mine, getattr(np, op).reduce(x, dtype=bool, **keywords))
        same(getattr(nbkernels, op).accumulate(x, 1, dtype=bool), getattr(np, op).accumulate(x, 1, dtype=bool))


def test_negative_powers_of_integers_in_folds():
    """Each term but the first is an exponent, and the first after an initial, where it is chosen; of floats none."""
    later, first = np.array([[2, 3], [1, -2]], np.int16), np.array([[-2, 3], [1, 2]], np.int16)
    chosen = np.array([[True, True], [True, False]])
    out = np.full(2, 7)
    for call in (
        lambda: nbkernels.pow.reduce(later, 0, out=out),
        lambda: nbkernels.pow.reduce(later, 0, out=out, where=~chosen, initial=1),
        lambda: nbkernels.pow.reduce(first, 0, out=out, initial=2),
        lambda: nbkernels.pow.reduce(later.astype("f4"), 1, dtype="i4", out=out),
        lambda: nbkernels.pow.accumulate(later[:, 1]),
        lambda: nbkernels.pow.accumulate(later[:, 1], out=out),
    ):
        with pytest.raises(ValueError, match="negative integer powers"):
            call()
    assert (out == 7).all()
    for x, words in ((first, {}), (later, {"where": chosen, "initial": 1}), (later, {"dtype": float})):
        same(nbkernels.pow.reduce(x, 0, **words), np.pow.reduce(x, 0, **words))
    same(nbkernels.pow.accumulate(first), np.pow.accumulate(first))


def test_at(rng):
    for op in ("add", "multiply", "maximum", "subtract", "floor_divide"):
        for x, other in ((rng.integers(1, 9, (5, 6)), 3), (rng.random((6, 5)).T, rng.random(1))):
            for indices in (
                [0, 2, 0, 4],
                (np.array([0, 1, 0, 1]), 2),
                (slice(None, 4), 1),
                (np.array([[0], [0]]), [1, 1, 3, -1]),
            ):
                mine, numpys = x.copy("K"), x.copy("K")
                getattr(np, op).at(numpys, indices, other)
                getattr(nbkernels, op).at(mine, indices, other)
                same(mine, numpys)
    x = np.ones(3, np.uint8)
    nbkernels.add.at(x, [0, 0], 2)  # numbers are weak
    assert x.tolist() == [5, 1, 1]
    with pytest.raises(OverflowError):
        nbkernels.add.at(x, [0], 300)
    x, mask = np.arange(4.0), np.array([True, False, True, False])
    nbkernels.multiply.at(x, mask, x[:2])
    assert x.tolist() == [0, 1, 2, 3]
    nbkernels.add.at(x, [], 1)


def test_folds_into_an_out_compute_in_its_dtype():
    x, flags = np.array([[2**62, 2**62], [2**62, 2**62]]), np.array([True, True])
    for name in ("float64", "float32"):
        mine, numpys = np.zeros(2, name), np.zeros(2, name)
        same(nbkernels.add.reduce(x, 0, out=mine), np.add.reduce(x, 0, out=numpys))
        mine, numpys = np.zeros((2, 2), name), np.zeros((2, 2), name)
        same(nbkernels.add.accumulate(x, 1, out=mine), np.add.accumulate(x, 1, out=numpys))
    assert nbkernels.add.reduce(flags, out=np.zeros((), bool)) == np.add.reduce(flags, out=np.zeros((), bool))
    mine, numpys = np.zeros((), "f8"), np.zeros((), "f8")
    same(nbkernels.logical_and.reduce(flags, out=mine), np.logical_and.reduce(flags, out=numpys))
    same(nbkernels.logical_and.accumulate(flags, out=np.zeros(2)), np.logical_and.accumulate(flags, out=np.zeros(2)))
    mine, numpys = np.zeros((), int), np.zeros((), int)
    same(nbkernels.add.reduce(np.ones(3), out=mine), np.add.reduce(np.ones(3), out=numpys))


def test_an_out_of_fewer_numbers_holds_what_was_computed_in_more():
    """Truncated once, at the end (NumPy cuts off what comes first, too); an imaginary part is not dropped."""
    x = np.array([6.9, 0.5, 0.5, -3.3], "f4")
    for op in ("add", "subtract", "multiply", "divide"):
        mine, numpys = getattr(nbkernels, op), getattr(np, op)
        for dtype in ("int16", "float64", "bool"):
            expected = numpys.reduce(x, dtype=np.result_type(x, dtype))
            same(mine.reduce(x, out=np.zeros((), dtype)), np.asarray(expected).astype(dtype))
            same(mine.accumulate(x, out=np.zeros(4, dtype)), numpys.accumulate(x, out=np.zeros(4, dtype)))
        words = dict(initial=3, keepdims=True)
        same(mine.reduce(x, 0, out=np.zeros(1, "i2"), **words), numpys.reduce(x, 0, **words).astype("i2"))
    assert nbkernels.divide.reduce(np.array([100, 3, 7], "i1"), out=np.zeros((), "i4")) == 4
    with pytest.raises(OutError, match="the result is complex128"):
        nbkernels.add.reduce(x.astype("c8"), out=np.zeros(()))


def test_an_initial_that_does_not_fit_leaves_out_alone():
    out = np.full((), 7, "u1")
    for words in ({}, {"where": True}, {"axis": ()}):
        x = np.ones(3, "u1") if "axis" not in words else np.array(1, "u1")
        for op in ("add", "subtract"):
            with pytest.raises(OverflowError):
                getattr(nbkernels, op).reduce(x, out=out, dtype="u1", initial=-1, **words)
    assert out == 7


def test_halves_are_folded_in_floats_and_rounded_once(rng):
    x = (rng.standard_normal((130, 7)) * 100).astype("f2")
    mask, wide = rng.random(x.shape) < 0.5, x.astype("f4")
    for op in ("subtract", "add"):
        mine, numpys = getattr(nbkernels, op), getattr(np, op)
        for words in ({}, {"initial": 3.3}, {"initial": 0, "where": mask}):
            first = {k: float(np.float16(v)) if k == "initial" else v for k, v in words.items()}
            expected = numpys.reduce(wide, 0, **first)
            found = mine.reduce(x, 0, **words).astype("f4")
            assert (abs(found - expected) <= 2.0**-11 * abs(expected) + (op == "add") * 1e-3).all()


def test_at_of_what_shares_memory(rng):
    """Indices and numbers that lie in self are read before it is written."""
    x = np.array([5, 0, 1, 2, 3, 4])
    nbkernels.add.at(x, x, 100)
    assert x.tolist() == [105, 100, 101, 102, 103, 104]
    x, y = np.arange(12.0), np.arange(12.0)
    np.add.at(y[::2], np.array([0, 1, 1]), y[1:4].copy())
    nbkernels.add.at(x[::2], np.array([0, 1, 1]), x[1:4])
    same(x, y)
    for indices in (np.array([3, 3, 0]), np.array([0, 9, 3, 9, 0])[1:4], np.array([3, 0, 0, 9, 3])[::-2]):
        for other in (2.0, np.ones(1), np.array([1.0, 9, 2, 9, 3])[::2]):
            x, y = (np.arange(30.0)[::-3] for _ in range(2))
            np.maximum.at(y, indices, other)
            nbkernels.maximum.at(x, indices, other)
            same(x, y)


def test_at_of_rows_and_bad_indices(rng):
    """Index arrays of any integers, on vectors and on rows; nothing is written where one is out of bounds."""
    for dtype in ("int8", "uint16", "int64", "uint64"):
        for shape in ((7,), (7, 5)):
            for x in (rng.random(shape), rng.random((14, *shape[1:]))[::-2]):
                indices = rng.integers(-7 if dtype[0] == "i" else 0, 7, 30).astype(dtype)
                for other in (2.0, rng.random(30)[:, None] if x.ndim == 2 else rng.random(30), x[:1].sum()):
                    mine, numpys = x.copy(), x.copy()
                    np.subtract.at(numpys, indices, other)
                    nbkernels.subtract.at(mine, indices, other)
                    same(mine, numpys)
    for shape in ((7,), (7, 5)):
        x = rng.random(shape)
        for bad in (7, -8):
            before = x.copy()
            with pytest.raises(IndexError, match="out of bounds"):
                nbkernels.add.at(x, np.array([0, 1, bad]), 1.0)
            same(x, before)
    with pytest.raises(ValueError, match="broadcast"):
        nbkernels.add.at(np.ones(4), np.array([0, 1, 2]), np.ones(2))


def test_accumulate_of_every_layout(rng):
    for x in (rng.integers(-9, 9, (40, 3, 50)).astype("f4"), rng.integers(-9, 9, (2, 70)).astype("i1")):
        for y in (x, x[::-1, ..., ::-2], x.T):
            for axis in range(y.ndim):
                same(nbkernels.add.accumulate(y, axis), np.add.accumulate(y, axis))
                same(nbkernels.subtract.reduce(y, axis), np.subtract.reduce(y, axis))
    half = rng.random(500).astype("f2")
    np.testing.assert_array_equal(nbkernels.add.accumulate(half), np.add.accumulate(half))


LONG = {
    "float32": "maximum fmin multiply",
    "float64": "add minimum",
    "bool": "logical_and logical_or",
    "int8": "add maximum",
    "complex64": "add",
    "float16": "add",
}


@pytest.mark.parametrize(("dtype", "op"), [(dtype, op) for dtype, ops in LONG.items() for op in ops.split()])
def test_long_folds_of_every_layout(dtype, op, rng):
    """Through lanes, blocks, gathered runs and rows side by side; a NaN is found wherever it is."""
    x = rng.integers(-3, 4, (530, 3, 70)).astype(dtype)
    if op == "multiply":
        x = rng.choice([1, -1], x.shape).astype(dtype)
    elif op.startswith("logical"):
        x[...] = op == "logical_and"
    x[529, 2, 69] = x[300, 1, 5] = np.nan if dtype == "float32" else op != "logical_and"
    for y in (x, x[::-1, :, ::2], x.T):
        for axis in (0, 1, 2, (0, 2), None):
            same(getattr(nbkernels, op).reduce(y, axis), getattr(np, op).reduce(y, axis))


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        ("maximum", "float32"),
        ("fmin", "float32"),
        ("minimum", "float64"),
        ("maximum", "float64"),
        ("fmin", "float64"),
        ("fmax", "float16"),
    ],
)
def test_extremes_of_nan_infinities_and_zeros(op, dtype, rng):
    """Found by their bits: rows of every length modulo vectors, of NaNs of both signs and of zeros."""
    largest, ignores = op.endswith("max") or op == "maximum", op.startswith("f")
    pools = [[0, -0.0], [-0.0], [-1, -0.0, -np.inf], [-np.nan, -1], [np.nan, 1, 0.0, 5], [np.nan, -np.nan], [-np.inf]]
    for n, pool in [(n, p) for n in (1, 3, 17, 64, 131, 300) for p in pools]:
        x = rng.choice(np.array(pool, dtype), n)
        numbers = x[~np.isnan(x)]
        if len(numbers) == 0 or (len(numbers) < n and not ignores):
            expected = np.nan
        else:  # zeros in the order of their signs
            expected = sorted(numbers.tolist(), key=lambda v: (v, math.copysign(1, v)))[-1 if largest else 0]
        result = getattr(nbkernels, op).reduce(x)
        assert result.dtype == x.dtype
        assert repr(float(result)) == repr(float(expected)), x


def test_order_does_not_show_in_exact_folds(rng):
    """Terms are taken as they lie in memory: transposed, reversed, repeated, as NumPy's."""
    whole = rng.integers(-9, 9, (6, 5, 40))
    for x in (whole.astype("f4"), whole.astype("i8")):
        for y in (x.T, x[::-1, :, ::-2], x.transpose(1, 2, 0)[:, ::-1], np.broadcast_to(x[:, None], (6, 3, 5, 40))):
            for axis in (None, (0, 1), (-1, 0)):
                for op in ("maximum", "add") if x.dtype.kind == "i" else ("maximum",):
                    same(getattr(nbkernels, op).reduce(y, axis), getattr(np, op).reduce(y, axis))


def test_folds_of_nothing():
    """By way of the fast forms and of the general path; all bits of an unsigned integer."""
    for dtype in ("uint8", "int8", "float32"):
        x = np.ones((0, 3), dtype)
        for op in ("add", "multiply", "logical_and", "maximum", *(["bitwise_and"] if dtype != "float32" else [])):
            mine, numpys = getattr(nbkernels, op), getattr(np, op)
            for axis in (0, 1, None):
                same(outcome(mine.reduce, x, axis), outcome(numpys.reduce, x, axis))
                same(outcome(mine.reduce, x, axis, keepdims=True), outcome(numpys.reduce, x, axis, keepdims=True))
            same(outcome(mine.reduce, x, 0, dtype=dtype), outcome(numpys.reduce, x, 0, dtype=dtype))
            same(mine.accumulate(x), numpys.accumulate(x))
    nbkernels.add.at(np.ones(0), np.zeros(0, int), 1.0)


def test_folds_of_arrays_without_dimensions():
    """Their axis 0 is none, as NumPy's; a mask that is a Python bool."""
    x = np.array(5, "i8")
    for axis in (0, -1, (0,), None, ()):
        for op in ("add", "subtract"):
            same(outcome(getattr(nbkernels, op).reduce, x, axis), outcome(getattr(np, op).reduce, x, axis))
    for bad in (lambda f: f.reduce(x, 1), lambda f: f.reduce(x, (0, 0)), lambda f: f.accumulate(x)):
        assert isinstance(outcome(bad, nbkernels.add), type)
    for axis in (0, None):
        for chosen in (False, np.zeros(3, bool)):
            found = nbkernels.add.reduce(np.ones(3), axis, where=chosen)
            assert str(found) == str(np.add.reduce(np.ones(3), axis, where=chosen)) == "0.0"
    assert nbkernels.add.reduce(np.ones((2, 3)), 0, where=False, initial=4).tolist() == [4, 4, 4]


def test_dtypes_that_are_wanted():
    """Anything that the operation has loops for, as NumPy's; what compares or is logical goes to out from bools."""
    x, whole = np.array([[1.5, 2.5], [-3.5, 7.0]], "f4"), np.array([[3, 5], [-6, 0]], "i1")
    for op, y, dtype in (("add", x, "i8"), ("bitwise_right_shift", x, "i8"), ("maximum", whole, "f4")):
        mine, numpys = getattr(nbkernels, op), getattr(np, op)
        for axis in (0, 1, ()):
            same(mine.reduce(y, axis, dtype=dtype), numpys.reduce(y, axis, dtype=dtype))
        same(mine.accumulate(y, 1, dtype=dtype), numpys.accumulate(y, 1, dtype=dtype))
    flags = whole > 0
    mine, numpys = np.zeros(2), np.zeros(2)
    same(nbkernels.less.reduce(flags, out=mine), np.less.reduce(flags, out=numpys))
    same(mine, numpys)


def test_outer():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(4)
    same(nbkernels.subtract.outer(x[:, ::-1], y), np.subtract.outer(x[:, ::-1], y))
    same(nbkernels.less.outer(y, x), np.less.outer(y, x))
    for number in (2, 2.5, True):  # no weaker than an array
        for z in (x, x.astype("f4"), y.astype("i1")):
            same(nbkernels.add.outer(z, number), np.add.outer(z, number))
            same(nbkernels.add.outer(number, z), np.add.outer(number, z))
    assert nbkernels.multiply.outer(x, y, dtype="f4").dtype == np.float32
    assert nbkernels.add.outer(MetaArray((2, 3), "f4"), MetaArray((4,), "f4")).shape == (2, 3, 4)
    assert nbkernels.add.reduce(MetaArray((2, 3), "i1"), 1).dtype == np.int64


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
@pytest.mark.parametrize("op", ["add", "maximum", "logical_and"])
def test_keywords_of_small_folds(op, dtype, rng):
    """Any of out, initial, where and dtype together; an out that overlaps, is strided, or of another dtype."""
    mine, numpys = getattr(nbkernels, op), getattr(np, op)
    x = (rng.integers(-5, 9, (4, 6)) + 0.5).astype(dtype)
    where = rng.random((4, 6)) < 0.5
    for axis, shape in ((0, (6,)), (1, (4,)), ((0, 1), ())):
        kind = numpys.reduce(x, axis).dtype
        for words in (dict(initial=1), dict(initial=1, where=where), dict(where=where[:1], initial=0)):
            expected = numpys.reduce(x, axis, **words)
            same(mine.reduce(x, axis, **words), expected, 1e-6)
            for out in (np.empty(shape, kind), np.empty((*shape, 2), kind)[..., 0], np.empty(shape)):
                assert mine.reduce(x, axis, out=out, dtype=kind, **words) is out
                same(out, expected.astype(out.dtype) if shape else np.asarray(expected, out.dtype), 1e-6)
    steps = np.empty_like(numpys.accumulate(x, 1))
    assert mine.accumulate(x, 1, out=steps) is steps
    same(steps, numpys.accumulate(x, 1), 1e-6)
    y = np.arange(1, 9).astype(dtype)
    expected = numpys.accumulate(y[:-1]).astype(y.dtype)
    mine.accumulate(y[:-1], out=y[1:])
    same(y[1:], expected, 1e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "int32", "float32", "float64", "complex64"])
def test_truths_of_rows_of_any_length(dtype):
    """One item that tells, at any place; -0.0 is zero, and a bool is whatever is not."""
    for n in (*range(1, 68), 127, 128, 255, 257, 300, 1029):
        some = (
            np.equal.outer(np.arange(n), np.arange(n)) if n < 68 else np.equal.outer([0, n // 2, n - 1], np.arange(n))
        )
        for x in (some.astype(dtype), ~some[:, ::-1], (-some.astype("float32")).astype(dtype), some[:0]):
            truths = x.astype(bool)
            same(nbkernels.logical_or.reduce(x, 1), truths.any(1))
            same(nbkernels.logical_and.reduce(x, 1), truths.all(1))
            same(nbkernels.logical_or.reduce(x[:, 1:], 1), truths[:, 1:].any(1))
            same(nbkernels.minimum.reduce(truths.reshape(-1), initial=True), truths.all())
    odd = np.array([2, 4, 8] * 40, np.uint8).view(bool)
    assert nbkernels.logical_and.reduce(odd)


@pytest.mark.parametrize("dtype", ["float64", "int8", "complex64"])
def test_results_in_the_order_of_the_array(dtype, rng):
    """Their strides are NumPy's: dimensions in the order that they have in memory."""
    x = rng.integers(1, 5, (6, 5, 4)).astype(dtype)
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        for view in (x.transpose(order), x.transpose(order)[::-1, :, ::2]):
            for axis in range(3):
                for _ in range(2):  # the second is of a layout that was met before
                    for keywords in ({}, {"initial": 1}, {"dtype": "complex128"}):
                        mine = nbkernels.add.reduce(view, axis, **keywords)
                        numpys = np.add.reduce(view, axis, **keywords)
                        same(mine, numpys, 1e-6)
                        assert mine.strides == numpys.strides
                for out in (np.empty(numpys.shape, mine.dtype), np.empty(numpys.shape, mine.dtype, order="F")):
                    assert nbkernels.add.reduce(view, axis, dtype="complex128", out=out) is out
                    same(out, numpys, 1e-6)
                mine, numpys = nbkernels.add.accumulate(view, axis), np.add.accumulate(view, axis)
                same(mine, numpys, 1e-6)
                assert mine.strides == numpys.strides


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "int64"])
def test_larger_and_smaller_step_by_step(dtype, rng):
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, (7, 33), dtype, endpoint=True)
    for name in ("maximum", "minimum", "fmax"):
        for axis in (0, 1):
            same(getattr(nbkernels, name).accumulate(x, axis), getattr(np, name).accumulate(x, axis))


def test_at_slices(rng):
    for where in (slice(2, 8), slice(None, None, -3), slice(50, 60), slice(-4, None), slice(0, 0)):
        x = rng.random(20)
        mine, numpys = x.copy(), x.copy()
        nbkernels.add.at(mine, where, 1.5)
        np.add.at(numpys, where, 1.5)
        nbkernels.multiply.at(mine[::2], where, mine[::2][where].copy())
        np.multiply.at(numpys[::2], where, numpys[::2][where].copy())
        same(mine, numpys, 0)
    with pytest.raises(TypeError):
        nbkernels.add.at(np.ones(3), slice(0.5), 1)
    with pytest.raises(ValueError):
        nbkernels.add.at(np.ones(3), slice(0, 2), np.ones(3))
