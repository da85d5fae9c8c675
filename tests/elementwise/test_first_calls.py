"""The first element-wise calls: NumPy's, with the bits, layouts and errors of later ones, and without Numba."""

import numpy as np
import pytest

import nbkernels as nb
from nbkernels import background, first_calls
from nbkernels.dtypes import ALONE
from nbkernels.ops import LIBRARY
from tests.processes import python

ONE = "bool", "int16", "uint64", "float16", "float64", "complex64"  # of operations of one
TWO = "bool", "int8", "float16", "float32", "complex128"


@pytest.fixture
def first(monkeypatch):
    """As if no call had been made; after the test, no first call more."""
    monkeypatch.setattr(first_calls, "CALLS", 1 << 60)
    monkeypatch.setattr(first_calls, "_MADE", {})
    monkeypatch.delenv("NBKERNELS_RECORD", raising=False)
    ops = [LIBRARY[name] for name in first_calls.KINDS]
    for op in ops:
        op.forget()
    yield
    for op in ops:
        op.forget()


def over(op: str) -> bool:
    return first_calls._MADE[LIBRARY[op].schema.full_name].over


def special(rng, dtype, count=300):
    """Every kind of number, as often by its bits as near to others."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(count) < 0.5
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return np.stack([special(rng, part, count), special(rng, part, count)], -1).view(dtype)[:, 0]
    x = rng.integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype)
    x[: count // 2] = rng.integers(0, 5, count // 2)
    if dtype.kind == "f":
        x[: count // 4] = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.5], count // 4)
    return rng.permutation(x)


def bits(x):
    """All of a result but what a NaN's bits are."""
    plain = np.array(x, order="C")
    parts = plain.reshape(-1).view(f"f{plain.itemsize // 2}") if plain.dtype.kind == "c" else plain
    if parts.dtype.kind == "f":
        parts = np.where(np.isnan(parts), np.array(np.nan, parts.dtype), parts)
    return x.dtype, x.shape, x.strides, parts.tobytes()


@pytest.mark.sampled
@pytest.mark.parametrize("op", first_calls.KINDS)
def test_bits_and_layouts_of_later_calls(rng, first, monkeypatch, op):
    function, served = getattr(nb, op), 0
    for dtype in ONE if op in ALONE else TWO:
        x, y = (special(rng, dtype).reshape(20, 15) for _ in "xy")
        calls = [(x,), (x.T,), (x[::2, ::-1],)]
        if op not in ALONE:
            calls = [(x, y), (x.T, y.T), (x, y[:1]), (x[:, None], y[0]), (x[0, 0, ...], y[3, 3, ...]), (y, 1), (2.5, y),
                     (x, special(rng, "float32").reshape(20, 15))]  # fmt: skip
        for call in calls:
            try:
                found = function(*call)
            except TypeError:
                continue
            if over(op):
                first_calls._MADE.clear()
                LIBRARY[op].forget()
                continue
            served += 1
            monkeypatch.setattr(first_calls, "CALLS", 0)
            LIBRARY[op].forget()
            expected = function(*call)
            assert bits(found) == bits(expected), (op, dtype, call)
            monkeypatch.setattr(first_calls, "CALLS", 1 << 60)
            LIBRARY[op].forget()
    assert served >= 6


def test_what_they_are_not_for_later_calls_do(rng, first):
    """Each of these ends them for its operation, and comes out as it does later."""
    x, wide = np.arange(6.0).reshape(2, 3), np.zeros((2, 6))
    cases = [
        lambda: nb.add(x, x, alpha=2.5),
        lambda: nb.add(x, x, where=x > 1, out=x.copy()),
        lambda: nb.add(x, x, out=wide[:, ::2]),
        lambda: nb.add(x, x, out=np.zeros((2, 3), "f4")),
        lambda: nb.add(x[0], x[0], out=x[0][::-1]),
        lambda: nb.add(x, 1e300),
        lambda: nb.logical_or(x.astype("f2"), 1e-9),
        lambda: nb.multiply(x + 1j, x),
        lambda: nb.maximum(x, -x),
        lambda: nb.add(np.ones((1100, 1), "i1"), np.ones(1000, "i1")),  # a result of more than MOST elements
    ]
    for case in cases:
        first_calls._MADE.clear()
        for op in ("add", "logical_or", "multiply", "maximum"):
            LIBRARY[op].forget()
        case()
        assert all(each.over for each in first_calls._MADE.values())
    assert "exp" not in first_calls.KINDS


def test_errors_are_those_of_later_calls(first):
    x, held = np.arange(6.0).reshape(2, 3), np.zeros((2, 3))
    held.flags.writeable = False
    for wrong, error, match in (
        (lambda: nb.add(x, x.reshape(3, 2)), ValueError, r"add: .*2, 3.*3, 2"),
        (lambda: nb.add(x, x, out=np.zeros((3, 2))), ValueError, "out"),
        (lambda: nb.add(x, x, out=held), ValueError, "read-only|written|writ"),
        (lambda: nb.add(np.zeros(3, np.int8), 300), OverflowError, "300"),
        (lambda: nb.add(np.array([object()]), 1), TypeError, "object"),
        (lambda: nb.subtract(x > 1, x > 1), TypeError, "bool"),
        (lambda: nb.add(x), TypeError, "other"),
    ):
        with pytest.raises(error, match=match):
            wrong()


def test_there_are_so_many_and_then_no_more(first, monkeypatch):
    monkeypatch.setattr(first_calls, "CALLS", 3)
    x = np.ones(4)
    there = []
    monkeypatch.setattr(background, "made", lambda frame: bool(there))
    for _ in range(5):  # the last two, until a thread has compiled what is to follow
        assert nb.add(x, x).tolist() == [2] * 4
        assert not over("add")
    there.append("compiled")
    assert nb.add(x, x).tolist() == [2] * 4
    assert over("add")
    assert not isinstance(LIBRARY["add"].entries[np.ndarray], first_calls.First)


def test_none_while_calls_are_recorded(first, monkeypatch):
    monkeypatch.setenv("NBKERNELS_RECORD", "file")
    assert first_calls.first(LIBRARY["add"]) is None


def test_faults_warn_of_nothing(first):
    """As later: results are what they are."""
    with np.errstate(all="raise"):
        assert nb.divide(np.ones(2), np.zeros(2)).tolist() == [np.inf, np.inf]
        assert nb.multiply(np.full(2, 3e38, "f4"), np.float32(10)).tolist() == [np.inf, np.inf]


CHILD = """
import sys
import numpy as np, nbkernels as nb
x, y = np.arange(6.0).reshape(2, 3), np.arange(3)
assert nb.add(x, y).tolist() == [[0, 2, 4], [3, 5, 7]] and nb.less(y, 2).tolist() == [True, True, False]
assert nb.multiply_(x, 2) is x and nb.sqrt(np.float32(4) * nb.negative(-y[:2])).tolist() == [0, 2]
print("numba" in sys.modules, len(nb.specializations()))
"""


def test_they_import_no_numba(tmp_path, monkeypatch):
    monkeypatch.delenv("NBKERNELS_RECORD", raising=False)
    assert python(CHILD, NBKERNELS_FIRST_CALLS="32", NBKERNELS_CACHE_DIR=str(tmp_path)).split() == ["False", "0"]
    assert not list(tmp_path.iterdir())
