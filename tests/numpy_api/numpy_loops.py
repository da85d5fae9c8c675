"""What the tests of use_in_numpy share: a loop that is ours, its calls, flags, and NumPy as it was afterwards."""

import numpy as np
import pytest

from nbkernels import use_in_numpy
from nbkernels.in_numpy import inner_loops, table, use


@pytest.fixture(autouse=True)
def nothing_left():
    """Every test begins and ends with NumPy as it is."""
    yield
    use_in_numpy(False)
    assert not use._taken
    assert not use._wishes()
    assert not use._pausing


def forced(name, dtype):
    return use_in_numpy(names=[name], dtypes=[dtype])


def slot_of(name, dtype):
    letter = np.dtype(dtype).char
    return next(s for key, s in inner_loops._slots.items() if key[0] == name and key[1].startswith(letter))


def calls(name, dtype):
    """Calls that ran here."""
    return int(slot_of(name, dtype).counts()[0, 0])


def pointers():
    """The addresses of some of NumPy's loops now."""
    found = []
    for name, types in (("add", "ee->e"), ("matmul", "ii->i"), ("floor_divide", "ll->l")):
        ufunc = getattr(np, name)
        old = table.replace(ufunc, types, 1)
        table.replace(ufunc, types, old)
        found.append(old)
    return found


def special(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([0, 1, 2, 3, 7, -1, -2, -7, info.max, info.min, info.max - 1, info.min + 1]).astype(dtype)
    info = np.finfo(dtype)
    ends = [info.max, info.tiny, info.smallest_subnormal, info.eps]
    found = [0.0, 1, 2, 0.5, 3, 10, 7.25, np.inf, 1e4, 1e-3, 1 / 3, *ends]
    return np.array([*found, *(-x for x in found), np.nan], dtype)


def observed(call):
    """A call's result, and the kinds of floating-point faults that NumPy found after it."""
    met = []
    with np.errstate(all="call", call=lambda kind, flags: met.append(kind)):
        return call(), sorted(met)


def same(got, want):
    """Bit for bit, but for what NaN is."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert np.array_equal(got, want, equal_nan=got.dtype.kind in "fc")
    if got.dtype.kind == "f":
        number = ~np.isnan(want)
        assert np.array_equal(np.signbit(got)[number], np.signbit(want)[number])
