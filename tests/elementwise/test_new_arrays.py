"""Arrays that compiled code makes: what NumPy would make, nobody keeps them, and nothing is kept of what failed."""

import gc
import sys

import numpy as np
import pytest

import nbkernels

CALLS = [
    lambda x: nbkernels.add(x, x),
    lambda x: nbkernels.add(x[:, ::2], x[:, 1::2]),  # by a plan that is kept
    lambda x: nbkernels.add(x, x, where=x > 0, casting="unsafe"),
    lambda x: nbkernels.add(x, x, out=x),
    lambda x: nbkernels.add(x, np.full((3, 1), 2.0)),
    lambda x: nbkernels.add(x[0, 0, None], x[0, 0, None], dtype=float)[0],
    lambda x: nbkernels.multiply(x[0, 0, ...].reshape(()), 2.0),
    lambda x: nbkernels.multiply(2.0, x[0, 0, ...].reshape(())),
    lambda x: nbkernels.floor_divide(x.astype("i8"), 0),
    lambda x: nbkernels.add.reduce(x),
    lambda x: nbkernels.maximum.reduce(x, axis=None),
]


@pytest.mark.sampled
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_references(call):
    x = np.ones((3, 8))
    counted = [x, x.dtype, np.dtype("i8"), None]

    def counts(calls):
        for _ in range(calls):
            call(x)
        gc.collect()
        return [sys.getrefcount(value) for value in counted]

    assert sys.getrefcount(call(x)) <= 2 or call(x) is x
    assert all(abs(more - few) < 100 for few, more in zip(counts(3), counts(500)))


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_scalars_of_numpy_are_read_where_they_are(dtype):
    x, scalar = np.arange(12).reshape(3, 4).astype(dtype), np.ones(1, dtype)[0]
    for args in (
        (x, scalar),
        (scalar, x),
        (x[:, ::2], scalar),
        (scalar, x.T),
        (x[0, 0, None], scalar),
        (scalar, x[0, 0, ...]),
    ):
        for words in ({}, {"out": True}, {"order": "F"}, {"where": True, "casting": "no"}):
            for _ in range(2):
                shape = np.broadcast_shapes(*map(np.shape, args))
                out = {"out": np.zeros(shape, dtype)} if "out" in words else words
                result, expected = nbkernels.add(*args, **out), np.add(*args, **words | out)
                np.testing.assert_array_equal(result, expected)
                assert (result.dtype, result.strides) == (expected.dtype, expected.strides)
    swapped = x.astype(x.dtype.newbyteorder())
    if swapped.dtype != x.dtype:
        with pytest.raises((TypeError, NotImplementedError)):
            nbkernels.add(swapped, scalar)


@pytest.mark.parametrize("step", [1, 2])
def test_results_beyond_memory(step):
    x = np.broadcast_to(np.ones((1, 1)), (1 << 40, 1 << 14))[:, ::step]
    for _ in range(2):
        with pytest.raises(MemoryError):
            nbkernels.add(x, x)


def test_keywords_are_known_by_what_they_are():
    """Strings made anew, and others at addresses that were theirs."""
    x, y = np.ones((2, 3), "f4"), np.full((2, 3), 2.0)
    for _ in range(40):
        for casting, order, dtype in (("unsafe", "C", "f4"), ("same_kind", "F", "f8"), ("unsafe", "K", "i2")):
            words = dict(casting="".join(casting), order=order, dtype="".join(dtype))
            result, expected = nbkernels.add(x, y, **words), np.add(x, y, **words)
            assert (result.dtype, result.strides) == (expected.dtype, expected.strides)
            np.testing.assert_array_equal(result, expected)
    with pytest.raises(TypeError, match="cast"):
        nbkernels.add(x, y, casting="no")


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["?", "i2", "f4", "f8"])
def test_folds_of_known_layouts(dtype):
    """Whole numbers, whose folds are exact: by operation, axes, keepdims, dtype and layout, each met before."""
    x = (np.arange(120).reshape(4, 5, 6) % 3).astype(dtype)
    for _ in range(3):
        for op in ("add", "maximum", "multiply", "logical_or"):
            for axis in (0, -1, None, (0, 2), (), (2, 1)):
                for words in ({}, {"keepdims": True}, {"dtype": "f8"}):
                    for y in (x, x.T, x[::2, 1:, ::-1], x[0]):
                        if (y.ndim == 2 and type(axis) is tuple) or (op == "logical_or" and "dtype" in words):
                            continue
                        result, expected = (getattr(m, op).reduce(y, axis, **words) for m in (nbkernels, np))
                        np.testing.assert_array_equal(result, expected)
                        assert (type(result), result.dtype) == (type(expected), expected.dtype)


def test_sums_of_nothing_and_to_the_same_shape():
    x, nothing = np.ones((3, 4)), np.ones((0, 4))
    for _ in range(2):
        assert nbkernels.sum_to(x, (3, 4)) is x
        assert nbkernels.sum_to(nothing, (0, 4)) is nothing
        assert nbkernels.sum_to(nothing, (1, 4)).tolist() == [[0.0] * 4]
        assert type(nbkernels.sum_to(nothing, ())) is np.float64
        nbkernels.add.at(x, [], np.ones((0, 4)))
        nbkernels.add.at(x[0], np.empty(0, int), np.ones(0))
        assert (x == 1).all()
    x.flags.writeable = False
    with pytest.raises(ValueError, match=r"read-only|cannot be written"):
        nbkernels.add.at(x[0], np.empty(0, int), np.ones(0))
