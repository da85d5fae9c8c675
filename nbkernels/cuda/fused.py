"""A user's scalar function over broadcast device arrays of any strides, all of its outputs in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..dtypes import HALVES
from ..jit.user.scalar_function import adopt
from .elementwise import apply
from .memory import uploaded


def run(function, outs, inputs, where=None, fresh=False) -> None:
    """outs[k] = function(*inputs)[k], where `where` is not False; outs do not share memory with one another.

    `fresh`, whether nobody has touched theirs, is for the CPU's stores and changes nothing here.
    """
    made, inputs = adopted(function, tuple(x.dtype for x in inputs)), given(inputs, outs[0])
    apply(made.function, made.dtype, outs, inputs, made.takes, made.results, where)


class Adopted(NamedTuple):
    """A function as kernels call it: compiled for `dtype`, with the names of the dtypes that it takes and returns."""

    function: Callable
    dtype: str
    takes: list[str]
    results: list[str]


def adopted(function, dtypes) -> Adopted:
    """A user's function of arguments of these dtypes."""
    made = adopt(function, dtypes)
    if made.raises:
        raise TypeError(f"{function.__name__} may raise, as an index beyond an array does, which kernels cannot report")
    names, results = [d.name for d in dtypes], [d.name for d in made.results]
    return Adopted(made.plain, compiled_for(names), names, results)


def compiled_for(names) -> str:
    """The dtype whose versions of elementary functions a function of these dtypes calls."""
    return "float32" if all(name in ("float32", *HALVES) for name in names) else "float64"


def given(inputs, like) -> list:
    """The inputs as kernels read them: arrays are copied to the device, those of no dimension become numbers."""
    inputs = [x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x for x in inputs]
    return [uploaded(x, like) if isinstance(x, np.ndarray) else x for x in inputs]
