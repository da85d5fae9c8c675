"""reduce, accumulate and outer of the element-wise operations, against NumPy's."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbkernels
from nbkernels.cpu.reduce import reduce
from nbkernels.dispatch import MetaArray, OutError
from nbkernels.dtypes import ASSOCIATIVE, resolve_fold
from tests.compare import outcome, same

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflow

VAST = np.broadcast_to(np.ones(1), 10**9)

KEYWORDS = [{}, {"keepdims": 1}, {"initial": 2}, {"dtype": "float64"}]
FOLDS = {
    "float64": "add multiply maximum fmin hypot logaddexp subtract divide copysign",
    "int8": "add multiply minimum bitwise_and bitwise_xor gcd subtract floor_divide lcm",
    "bool": "add maximum logical_and",
    "float16": "add maximum subtract",
    "complex64": "add multiply fmax",
}


@pytest.mark.sampled
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
    for op, dtype in itertools.product(ASSOCIATIVE, map(np.dtype, ("bool", "int8", "uint64", "float32", "complex128"))):
        if outcome(getattr(np, op).reduce, np.ones(1, dtype)) is TypeError:
            continue
        work = resolve_fold(op, dtype)
        if work is None:
            continue
        values = np.array([0.0, 1, -np.inf, np.nan, 3] if dtype.kind == "f" else [0, 1, 100, 5], dtype).astype(work)
        expected = values
        if op in ("hypot", "gcd"):
            expected = abs(values)
        elif op.startswith("logical"):
            expected = values.astype(bool)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(getattr(np, op)(reduce.neutral(op, work), values), expected, op)


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
        (lambda: [nbkernels.add.reduce(np.ones(3), keepdims=k) for k in (True, 1.0)], TypeError, "must be a bool, not"),
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
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.sampled
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


def test_imaginary_parts_are_discarded_with_a_warning():
    x = np.array([1 + 2j, 3])
    for mine, numpys in ((nbkernels.add.reduce, np.add.reduce), (nbkernels.multiply.accumulate, np.multiply.accumulate),
                         (nbkernels.mean, np.mean)):  # fmt: skip
        for fold in (mine, numpys):
            with pytest.warns(np.exceptions.ComplexWarning, match="imaginary") as told:
                found = fold(x, dtype="f8")
            assert len(told) == 1
            same(found, numpys(x.real))
            fold(x, dtype="c8")
            fold(x.real, dtype="f4")


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


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "int64"])
def test_larger_and_smaller_step_by_step(dtype, rng):
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, (7, 33), dtype, endpoint=True)
    for name in ("maximum", "minimum", "fmax"):
        for axis in (0, 1):
            same(getattr(nbkernels, name).accumulate(x, axis), getattr(np, name).accumulate(x, axis))


def test_more_elements_than_an_int32_counts():
    """One row again and again, whose last element is the only one that is larger."""
    row = np.zeros(2**24 + 1, np.int8)
    row[-1] = 5
    x = np.broadcast_to(row, (129, row.size))
    assert x.size > 2**31
    assert nbkernels.maximum.reduce(x, None) == 5


@pytest.mark.parametrize("op", ["gcd", "hypot"])
def test_what_is_folded_with_nothing_keeps_its_sign(op):
    """No element is neutral to a negative one."""
    dtype = "i4" if op == "gcd" else "f4"
    x, mask = np.array([[4, 6], [9, 3]], dtype), np.array([[False, False], [True, False]])
    for axis, where, keepdims in ((1, mask, False), (0, mask, True), ((0, 1), np.False_, False), (1, mask[:1], False)):
        words = dict(axis=axis, where=where, keepdims=keepdims, initial=-4)
        np.testing.assert_array_equal(getattr(nbkernels, op).reduce(x, **words), getattr(np, op).reduce(x, **words))
