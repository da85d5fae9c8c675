"""Compiled functions that Python calls: their arguments come side by side, without a tuple."""

import sys

import pytest

from nbkernels.jit.compile.cache import entry


def scaled(factor, x, count):
    return factor * x + count


def test_arguments_are_converted():
    call = entry(scaled, "float64(int64, float64, int64)", "test_scaled")
    assert call(3, 0.5, 2) == call(True, 0.5, 3) == 3.5


@pytest.mark.parametrize("given", [(), (1,), (1, 2.0), (1, 2.0, 3, 4), tuple(range(40))])
def test_another_number_of_arguments_is_an_error(given):
    call = entry(scaled, "float64(int64, float64, int64)", "test_scaled")
    with pytest.raises(TypeError, match=f"3 arguments are wanted, not {len(given)}"):
        call(*given)
    assert call(1, 2.0, 3) == 5.0


def test_keywords_and_what_is_no_number_are_errors_that_keep_nothing():
    call, given = entry(scaled, "float64(int64, float64, int64)", "test_scaled"), [1]
    before = sys.getrefcount(given)
    for bad in ((given, 1.0, 1), (1, given, 1), (1, 1.0, given)):
        with pytest.raises(TypeError):
            call(*bad)
    with pytest.raises(TypeError, match="keyword"):
        call(1, 2.0, count=3)
    del bad
    assert sys.getrefcount(given) == before


def test_a_function_without_the_gil():
    call = entry(scaled, "float64(int64, float64, int64)", "test_scaled_unheld", nogil=True)
    assert call(2, 0.25, 1) == 1.5
    with pytest.raises(TypeError, match="3 arguments are wanted, not 2"):
        call(2, 0.25)
