"""Which calls take an op's fast path, and what happens to those that it declines; with tiny kernels."""

import numpy as np
import pytest

from nbkernels.dispatch import (
    ArgumentError,
)
from tests.toys import scale_kernel, scale_meta

calls = []


def fast(self, by, out):
    calls.append((self, by, out))
    return None if isinstance(by, str) or self.ndim != 1 else "fast"


def fast_functional(x, maybe):
    calls.append((x, maybe))
    return "fast"


@pytest.fixture
def quick(library):
    calls.clear()
    return library.define(
        "scale(Tensor self, Scalar by) -> Tensor",
        structured=scale_meta,
        dispatch={"CPU": scale_kernel},
        fast=f"{__name__}:fast",
    )


def test_exact_arrays_take_the_fast_path(quick):
    x = np.ones(3)
    for _ in range(2):  # the first call finds it, the second has it in the dict
        assert quick.function(x, 2) == "fast"
        assert quick.entries == {np.ndarray: fast}
    assert quick.in_place(x, 3) == "fast"
    assert [call[1:] for call in calls] == [(2, None), (2, None), (3, x)]


def test_what_the_fast_path_declines_is_done_in_full(quick):
    for _ in range(2):
        with pytest.raises(ValueError, match="scale: self must be 1-D"):
            quick.function(np.ones((2, 2)), 2)
        with pytest.raises(ArgumentError, match="by must be a number, not 'decline'"):
            quick.function(np.ones(3), "decline")
    assert len(calls) == 4


def test_other_types_do_not_take_the_fast_path(quick):
    class Sub(np.ndarray):
        pass

    result = quick.function(np.ones(3).view(Sub), 2)
    assert type(result) is Sub
    assert np.array_equal(result, [2, 2, 2])
    for bad in ([1], None):
        with pytest.raises(ArgumentError):
            quick.function(bad, 2)
    assert not calls
    assert not quick.entries


def test_numbers_in_element_wise_fast_paths(library, plus):
    op = library.define(
        "quick(Tensor self, Tensor other) -> Tensor",
        structured=plus.structured,
        dispatch={"CPU": scale_kernel},
        fast=f"{__name__}:fast",
        tags=["elementwise"],
    )
    calls.clear()
    x = np.ones(3)
    assert op.function(x, 2) == op.function(x, 2.0) == op.function(x, x) == "fast"
    assert set(op.entries) == {(np.ndarray, int), (np.ndarray, float), np.ndarray}
    for other in (True, np.float64(2), 2j):  # whichever way a number is weak, the fast form knows
        assert op.function(x, other) == "fast"
    calls.clear()
    with pytest.raises(ArgumentError):
        op.function(1, 2)
    assert not calls


def quick_sum(self, other, out):
    return quick_sum.go_on(None, self, other, out)


def entered(self, other, out):
    """An entry's answers: a result, an int or a tuple, by what is added."""
    calls.append(other)
    return {1: 7, 2: ("array", 3)}[other] if isinstance(other, int) else "entry"


def test_an_entry_is_called_in_the_place_of_its_fast_path(library, plus):
    op = library.define(
        "quick(Tensor self, Tensor other) -> Tensor",
        structured=plus.structured,
        dispatch={"CPU": lambda out, self, other: np.add(self, other, out)},
        fast=f"{__name__}:quick_sum",
        tags=["elementwise"],
    )
    quick_sum.go_on = lambda answer, x, y, out: None if type(y) is int and y == 1 else f"fast: {answer}"
    quick_sum.direct = lambda: None
    calls.clear()
    x = np.ones(3)
    assert op.function(x, x) == op.function(x, x) == "fast: None"  # it has none yet
    quick_sum.direct = lambda: entered
    assert op.function(x, x) == "fast: None"
    quick_sum.ready()
    assert op.function(x, x) == "fast: None"  # the call that finds it out
    assert op.function(x, x) == op.function(x, x) == "entry"
    assert op.in_place(x, x) == "entry"
    assert op.function(2.0, x) == op.function(2.0, x) == "fast: None"  # the first is no array
    assert np.array_equal(op.function(x, 1), [2, 2, 2])  # declined by both
    assert op.function(x, 2) == "fast: ('array', 3)"
    with library.register(op, "CPU", lambda out, self, other: out.fill(5), override=True):
        assert np.array_equal(op.function(x, x), [5, 5, 5])
    assert [op.function(x, x) for _ in range(2)] == ["fast: None", "entry"]


def test_functional_ops_have_fast_paths_with_optional_arrays(library):
    dispatch = {"CPU": lambda *args: "slow"}
    op = library.define(
        "f(Tensor x, Tensor? maybe=None) -> Tensor", dispatch=dispatch, fast=f"{__name__}:fast_functional"
    )
    x = np.ones(3)
    assert op.function(x) == op.function(x, x) == "fast"
    assert op.function(x, np.float32(1)) == "slow"


def test_an_override_turns_the_fast_path_off_and_its_end_on(quick, library):
    x = np.ones(3)
    assert quick.function(x, 2) == "fast"
    with library.register(quick, "CPU", scale_kernel, override=True):
        assert np.array_equal(quick.function(x, 2), [2, 2, 2])
        assert np.array_equal(quick.function(x, 2), [2, 2, 2])
    assert quick.function(x, 2) == "fast"
