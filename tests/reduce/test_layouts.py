"""Folds of every layout: the order that sums are taken in, what lanes, blocks and rows find, the results' own order."""

import math

import numpy as np
import pytest

import nbkernels
from nbkernels.cpu.reduce import plan, reduce
from tests.compare import same

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of NaN


def test_sums_are_pairwise_and_of_one_order_for_any_threads(monkeypatch, rng):
    x = rng.random(5 * plan.SHARE // 2 + 77).astype("f4")
    alone = nbkernels.add.reduce(x)
    assert abs(float(alone) - math.fsum(x.astype("f8"))) / len(x) < 1e-6
    monkeypatch.setattr(reduce.threads, "count", lambda: 3)
    monkeypatch.setattr(plan, "PARALLEL", 1)
    assert nbkernels.add.reduce(x) == nbkernels.sum_to(x, ()) == alone
    assert nbkernels.add.reduce(x[::-1]) != 0
    half = rng.random(100_000).astype("f2")
    assert abs(float(nbkernels.add.reduce(half, dtype="f4")) - half.astype("f8").sum()) < 1
    assert nbkernels.add.reduce(np.ones(4097, "f2")) == 4096, "rounded once"
    some = np.array([1.0, np.nan, 3.0])
    assert nbkernels.maximum.reduce(some) != nbkernels.fmax.reduce(some) == 3


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


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "int32", "float32", "float64", "complex64", "complex128"])
def test_truths_of_rows_of_any_length(dtype):
    """One item that tells, at any place; -0.0 is zero, and a bool is whatever is not."""
    for n in (*range(1, 68), 127, 128, 255, 257, 300, 1029):
        places = np.arange(n) if n < 68 else [0, n // 2, n - 1]
        some = np.equal.outer(places, np.arange(n))
        below = (-some.astype("float32")).astype(dtype)
        turned = (below * 1j, np.conj(below), below * -1j) if below.dtype.kind == "c" else ()
        for x in (some.astype(dtype), ~some[:, ::-1], below, some[:0], *turned):
            truths = x.astype(bool)
            same(nbkernels.logical_or.reduce(x, 1), truths.any(1))
            same(nbkernels.logical_and.reduce(x, 1), truths.all(1))
            same(nbkernels.logical_or.reduce(x[:, 1:], 1), truths[:, 1:].any(1))
            same(nbkernels.minimum.reduce(truths.reshape(-1), initial=True), truths.all())
    odd = np.array([2, 4, 8] * 40, np.uint8).view(bool)
    assert nbkernels.logical_and.reduce(odd)


@pytest.mark.sampled
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
