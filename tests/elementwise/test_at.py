"""at of the element-wise operations, where an element may be met again and again, against NumPy's."""

import numpy as np
import pytest

import nbkernels
from nbkernels.dispatch import OutError
from nbkernels.dtypes import COMPARISONS
from tests.compare import same

READ_ONLY = np.ones(3)
READ_ONLY.flags.writeable = False
WINDOWS = np.lib.stride_tricks.as_strided(np.ones(3), (4,), (4,))


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
    nbkernels.add.at(np.ones(0), np.zeros(0, int), 1.0)


def test_at_of_one_index_of_an_array_with_steps():
    """NumPy calls an array of one element contiguous, whatever its stride is."""
    for x in (np.ones(4), np.ones((4, 2))):
        nbkernels.add.at(x, np.array([1, 0])[::2], 2.0)
        assert (x[1] == 3).all()
        assert x.sum() == x.size + 2 * x[1].size


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


@pytest.mark.parametrize("indices", [[], np.empty(0, int), (np.empty(0, int),), slice(0), np.zeros(3, bool)])
def test_no_index_refuses_no_exponent(indices):
    out = np.arange(3)
    nbkernels.pow.at(out, indices, -1)
    assert out.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: nbkernels.add.at(np.broadcast_to(np.ones(1), 3), 0, 1), OutError, "cannot be written"),
        (lambda: nbkernels.add.at([1.0], 0, 1), TypeError, "^add.at: self must be an array, not a list"),
        (lambda: nbkernels.add.at(np.ones(3), 3, 1), IndexError, "out of bounds"),
        (lambda: nbkernels.add.at(np.ones(()), [0], np.ones(1)), IndexError, "too many indices"),
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


@pytest.mark.sampled
@pytest.mark.parametrize("op", COMPARISONS)
def test_uint64_and_int64_are_compared_as_numbers(op):
    """As the functions do, whichever is self: in a vector, in rows, one after another."""
    x = np.array([0, 1, 5, 2**63 + 5, 2**53 + 1, 2**64 - 1], np.uint64)
    y = np.array([0, -1, 6, 2**63 - 1, 2**53, -1], np.int64)
    for left, right in ((x, y), (y, x)):
        expected = getattr(np, op)(left, right)
        for lead in ((), (1,), (2, 1)):
            mine = np.broadcast_to(left, (*lead, 6)).copy().T
            getattr(nbkernels, op).at(mine, np.arange(6), np.broadcast_to(right, mine.T.shape).T)
            np.testing.assert_array_equal(mine, np.broadcast_to(expected, mine.T.shape).T)
