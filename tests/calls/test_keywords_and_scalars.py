"""Calls with keywords, numbers, NumPy's scalars and mixed dtypes, each thrice: planned, remembered, and at once."""

import warnings

import numpy as np
import pytest

import nbkernels
from nbkernels.cpu.elementwise import fast as calls

X, Y = (np.random.default_rng(p).uniform(1, 9, (4, 5)).astype("f4") for p in (1, 2))
I, J = X.astype("i4"), Y.astype("i1")
MASK = X > Y
NUMBERS = [
    *[("add", complex(*parts)) for parts in ((2.5, 1), (0, 1), (-0.0, 1), (0.0, -0.0), (-0.0, -0.0))],
    *[(op, number) for op in ("multiply", "subtract", "equal") for number in (2j, 3, 2.5, -0.0)],
]
FORMS = [
    ("add", (X, Y), dict(where=MASK, out="f4")),
    ("add", (X, Y[0]), dict(where=MASK[:, :1], out="f8", casting="safe")),
    ("add", (X, 2), dict(where=MASK.T.copy().T, out="f4")),
    ("add", (X, Y), dict(where=False, out="f4")),
    ("add", (X, Y), dict(where=True, dtype="f8")),
    ("add", (I, J), dict(dtype=np.int16, casting="unsafe")),
    ("add", (I, J), dict(out="i2", casting="unsafe")),
    ("add", (X, Y.T.copy().T), dict(order="F")),
    ("add", (X.T.copy().T, Y), dict(order="C")),
    ("add", (X.T.copy().T, 2.5), dict(order="K", casting="same_kind")),
    ("add", (X[:1], Y), {}),
    ("subtract", (X, Y), dict(out="f8")),
    ("less", (I, J), dict(where=MASK, out="?")),
    ("floor_divide", (I, J), dict(where=MASK, out="i8")),
    ("pow", (J, np.abs(J) % 3), {}),
    ("divide", (I, J), {}),
    ("divide", (I, 2), {}),
    ("multiply", (X, 1j), {}),
    ("multiply", (X, np.float64(3)), {}),
    ("multiply", (np.float32(3), np.float64(3)), {}),
    ("multiply", (X, np.array(3.0)), {}),
    ("multiply", (np.array(2), 3), {}),
    ("multiply", (MASK, 7), {}),
    ("multiply", (True, I), {}),
    ("logical_or", (X, 0), {}),
    ("ldexp", (X, 3), {}),
    ("copysign", (X, -0.0), {}),
    ("copysign", (X, 0.0), {}),
    *[(op, (Z, number), {}) for Z in (X - 1j * Y, (X - 1j * Y).astype("c16")) for op, number in NUMBERS],
    *[(op, (number, (X + 1j * Y).astype("c16")), {}) for op, number in NUMBERS],
]


@pytest.mark.parametrize(("op", "args", "words"), FORMS)
def test_remembered_calls_are_numpys(op, args, words, monkeypatch):
    function = getattr(nbkernels, op)
    for turn in range(3):
        out = {"out": np.full((4, 5), 1, words["out"])} if "out" in words else {}
        expected = getattr(np, op)(*args, **words | {k: v.copy() for k, v in out.items()})
        result = function(*args, **words | out)
        assert (type(result), result.dtype, result.strides) == (type(expected), expected.dtype, expected.strides)
        np.testing.assert_array_equal(result, expected)
        for part in ("real", "imag") if result.dtype.kind in "fc" else ():
            np.testing.assert_array_equal(np.signbit(getattr(result, part)), np.signbit(getattr(expected, part)))
        if turn == 0:  # from now on none of these takes the general path
            monkeypatch.setattr(function.op, "bind", None)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_ints_that_the_compiled_entry_reads(dtype):
    """Of one digit or more, in a dtype's range or beyond it, on either side."""
    x = np.ones((2, 3), dtype)
    edges = {0, 1, -1, 7, 2**30 - 1, 1 - 2**30, 2**30, -(2**30), 2**31 - 1, -(2**31), 2**63 - 1, 2**64 - 1}
    info = np.iinfo(dtype) if dtype[0] != "f" else np.iinfo("i1")
    for value in sorted(edges | {info.min, info.max, info.min - 1, info.max + 1, True}):
        for args in ((x, value), (value, x)):
            for op in ("subtract", "less", "bitwise_or") if dtype[0] != "f" else ("subtract", "less"):
                try:
                    expected = getattr(np, op)(*args)
                except OverflowError:
                    with pytest.raises(OverflowError):
                        getattr(nbkernels, op)(*args)
                    continue
                result = getattr(nbkernels, op)(*args)
                assert result.dtype == expected.dtype
                np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("number", [1e39, -1e39, complex(1e39, 1), complex(1, -1e39)])
def test_numbers_that_overflow_warn_each_time(number):
    x = X if type(number) is float else X - 1j * Y
    for args in ((x, number), (number, x)):
        for _ in range(3):
            with pytest.warns(RuntimeWarning, match="overflow"):
                result = nbkernels.add(*args)
            with pytest.warns(RuntimeWarning, match="overflow"):
                expected = np.add(*args)
            assert result.dtype == expected.dtype
            np.testing.assert_array_equal(result, expected)


def test_faults_of_remembered_calls():
    x, y, mask = np.arange(8)[::2], np.array([1, 0, 2, 0]), np.array([True, False, True, False])
    out = np.zeros(8, np.int16)[::2]
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            nbkernels.floor_divide(x, y, out=out, where=mask, casting="unsafe")
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            nbkernels.floor_divide(x, y, out=out, where=~mask, casting="unsafe")
        assert out.tolist() == [0, 0, 2, 0]
    for _ in range(3):  # powers of a remembered layout are looked at before anything is written
        assert nbkernels.pow(x, y, out=out, where=y > 0, casting="unsafe") is out
        with pytest.raises(ValueError, match="negative"):
            nbkernels.pow(x, y - 1, out=out, where=mask | True, casting="unsafe")
    assert out.tolist() == [0, 0, 16, 0]


def test_masks_that_share_memory_with_a_remembered_out():
    for _ in range(3):
        raw = np.array([True, True, False, True, False, True])
        nbkernels.logical_and(np.ones(5, bool), True, where=raw[:-1], out=raw[1:])
        assert raw.tolist() == [True, True, True, True, True, True]
        mask = np.array([True, False, True])
        nbkernels.equal(np.arange(3), 5, where=mask, out=mask)
        assert not mask.any()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (dict(where=np.ones((4, 5), int)), TypeError),
        (dict(where=np.ones((3, 5), bool)), ValueError),
        (dict(where=[True]), TypeError),
        (dict(casting="bogus"), ValueError),
        (dict(casting="no", dtype="f8"), TypeError),
        (dict(order="Q"), ValueError),
        (dict(dtype=">f4"), TypeError),
        (dict(dtype=object), TypeError),
        (dict(out=np.zeros((4, 5), "i4")), TypeError),
        (dict(out=np.zeros((5, 4), "f4"), where=MASK), ValueError),
        (dict(out=np.broadcast_to(np.zeros(5, "f4"), (4, 5)), where=MASK), ValueError),
    ],
)
def test_bad_keywords_after_good_ones(words, error):
    assert calls.add_fast.with_keywords(X, Y, 1, None, None, None, None, None) is not None
    with pytest.raises(error, match=r"^add: "):
        nbkernels.add(X, Y, **words)


@pytest.mark.parametrize("op", ["add", "pow", "less", "remainder"])
def test_a_number_is_no_place_for_a_result(op):
    """The compiled entry reads no array where there is none, whether it knows the layout or not."""
    function, in_place = getattr(nbkernels, op), getattr(nbkernels, f"{op}_")
    for number in 3, 3.5, True, np.float32(3):
        for call, *args in ((function, X, Y), (function, X, 2), (function, 2, X), (in_place, number, X)):
            for _ in range(2):
                with pytest.raises((TypeError, ValueError), match=f"^{op}_?: "):
                    call(*args, **{} if call is in_place else {"out": number})
        function(X, Y)


def test_new_results_of_known_keywords():
    """By one mask and another, layouts that give results of another shape or order, warnings, the same words again."""
    for _ in range(3):
        for x, y in (
            (X, Y),
            (X.T, Y.T),
            (X[:, :1], Y),
            (X[0], Y),
            (X[0], Y[:, :1]),
            (np.array(2.0, "f4"), X[0, 0, ...]),
        ):
            for words in (dict(dtype="f8"), dict(order="F"), dict(casting="unsafe"), dict(dtype=np.float32, order="C")):
                expected, result = np.add(x, y, **words), nbkernels.add(x, y, **words)
                assert (type(result), result.dtype, result.strides) == (
                    type(expected),
                    expected.dtype,
                    expected.strides,
                )
                np.testing.assert_array_equal(result, expected)
        for mask in (MASK, ~MASK, MASK[0]):
            chosen = np.broadcast_to(mask, X.shape)
            np.testing.assert_array_equal(nbkernels.add(X, Y, where=mask)[chosen], (X + Y)[chosen])
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            nbkernels.floor_divide(I, J - J, dtype="i8")
        with pytest.raises(TypeError, match=r"dtype|unhashable|understood"):
            nbkernels.add(X, Y, dtype=[1])


def test_arrays_without_dimensions_thrice():
    zero, half = np.array(3, "i4"), np.array(2.5)
    for _ in range(3):
        for args in ((zero, zero), (half, half), (half, 2), (2, half), (np.float32(1), np.float32(2)), (zero, True)):
            for op in ("add", "less", "divide"):
                result, expected = getattr(nbkernels, op)(*args), getattr(np, op)(*args)
                assert (type(result), result) == (type(expected), expected)
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            assert type(nbkernels.floor_divide(zero, np.array(0, "i4"))) is np.int32
        out = np.zeros((), "f8")
        assert nbkernels.add(half, half, out=out) is out
        assert out == 5
        assert nbkernels.add_(out, half) is out
        assert out == 7.5
        assert nbkernels.add(zero, 1, out=np.zeros((1,), "i4")[0, ...]).shape == ()


def test_alpha_with_keywords():
    for alpha in (2, 2.5):
        for _ in range(2):
            out = np.zeros((4, 5), "f4")
            nbkernels.add(X, Y, alpha=alpha, where=MASK, out=out)
            np.testing.assert_allclose(out, np.where(MASK, X + alpha * Y, 0), rtol=1e-6)
    assert nbkernels.subtract(I, J, alpha=3, dtype="i8").tolist() == (I - 3 * J.astype("i8")).tolist()
