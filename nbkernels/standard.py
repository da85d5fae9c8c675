"""Functions of the array API standard over operations of the table, for arrays of every kind that those take."""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from . import numpy_functions, ops
from .array import Array as Ours
from .contractions import Declined, row_sums
from .dispatch import ArgumentError, arrays, views
from .dispatch.errors import describe
from .dtypes import HALVES, NUMBERS, known, stated
from .methods import chosen, dimensions

Array = Any  # one of any library
PLAIN = frozenset((np.ndarray, str, type(None)))


def _spec(name, word, x):
    """What is known of an array, or an ArgumentError that names it."""
    adapter = arrays.adapter_for(x)
    if adapter is None:
        raise ArgumentError(f"{name}: {word} must be an array, not {describe(x)}")
    try:
        return adapter.spec(x)
    except TypeError as error:
        raise ArgumentError(f"{name}: {word} is {error}") from None


def clip(x: Array, min: Any = None, max: Any = None, *, out: Any = None) -> Any:
    """out = minimum(maximum(x, min), max): x with its elements held between two bounds, numbers or arrays

    A bound that is None is none. All broadcast, in the dtype that holds them, by the rules of `maximum`: NaN stays, and
    where min is larger than max it is max. Raises TypeError for dtypes without an order. Source: the array API's clip.

    >>> import numpy as np, nbkernels
    >>> nbkernels.clip(np.array([-2.0, 0.5, 9.0]), 0, 1)
    array([0. , 0.5, 1. ])
    """
    if type(x) is not np.ndarray:
        _spec("clip", "x", x)
    if min is None and max is None:
        return ops.copy(x, out=out)
    if max is None:
        return ops.maximum(x, min, out=out)
    low = x if min is None else ops.maximum(x, min)
    into = low if out is None and min is not None and numpy_functions.holds(low, max) else out
    return ops.minimum(low, max, out=into)


def where(condition: Array, x: Any, y: Any, /) -> Any:
    """out = x where condition is true, else y, in the dtype that holds both

    All three broadcast; x and y may be numbers, which bring no dtype of their own beside an array. A condition of
    numbers is true where it is not 0. Source: the array API's where.

    >>> import numpy as np, nbkernels
    >>> a = np.array([3.0, -1.0])
    >>> nbkernels.where(a > 0, a, 0)
    array([3., 0.])
    """
    if type(condition) is type(x) is type(y) is np.ndarray and condition.dtype == bool and x.dtype is y.dtype:
        return numpy_functions.chooser(x.dtype)(condition, x, y)
    if type(condition) is np.ndarray and condition.dtype == bool and (both := _with_number(x, y)):
        return numpy_functions.chooser(both[0].dtype)(condition, *both)
    spec = _spec("where", "condition", condition)
    kinds = [each if type(each) in NUMBERS else _spec("where", word, each).dtype for word, each in (("x", x), ("y", y))]
    try:
        dtype = np.result_type(*kinds)
    except TypeError:
        raise TypeError(f"where: no dtype holds the numbers of {kinds[0]} and {kinds[1]}") from None
    if spec.dtype != bool:
        condition = ops.not_equal(condition, 0)
    x, y = (np.asarray(each, dtype) if type(each) in NUMBERS else each for each in (x, y))
    return numpy_functions.chooser(dtype)(condition, x, y)


def _with_number(x, y):
    """A NumPy array and a number that its dtype takes, in either order, as arrays of that dtype; None of others."""
    array, number = (x, y) if type(x) is np.ndarray else (y, x)
    takes = {int: "iufc", float: "fc"}.get(type(number), "")
    if type(array) is not np.ndarray or array.dtype.kind not in takes or not array.dtype.isnative:
        return None
    number = np.asarray(number, array.dtype)
    return (array, number) if array is x else (number, array)


def mean(x: Array, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, dim: Any = None,
         keepdim: bool | None = None) -> Any:  # fmt: skip
    """out = the sum of x over `axis`, divided by the number of elements

    `axis` is a dimension, a tuple of them, or None for all; `keepdims` keeps them with size 1; torch's words `dim` and
    `keepdim` say the same. Floats keep their dtype, float16 and bfloat16 are summed in float32 and rounded once;
    integers and bool become float64. Of nothing it is NaN. Raises TypeError for a dtype that is no float's, AxisError
    for a dimension that x has not. Source: the array API's mean.

    >>> import numpy as np, nbkernels
    >>> nbkernels.mean(np.array([[1, 2], [3, 6]]), axis=0)
    array([2., 4.])
    """
    axis, keepdims = chosen("mean", None, axis, keepdims, dim, keepdim)
    axes, count, work, result = _plan("mean", x, axis, dtype)
    return _rounded(_divided(ops.add.reduce(x, axes, dtype=work, keepdims=keepdims), count), result)


def var(x: Array, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, ddof: float = 0,
        correction: float | None = None, dim: Any = None, keepdim: bool | None = None) -> Any:  # fmt: skip
    """out = the sum over `axis` of abs(x - mean(x))**2, divided by the number of elements less `correction`

    Dtypes and other arguments as `mean`; of complex numbers it is real. With `correction=1`, or NumPy's word `ddof=1`,
    it is the estimate of a population's from a sample. Where nothing is left to divide by it is NaN or infinite. Raises
    ValueError where both are given. Source: the array API's var.

    >>> import numpy as np, nbkernels
    >>> nbkernels.var(np.array([1.0, 3.0])), nbkernels.var(np.array([1.0, 3.0]), correction=1)
    (np.float64(1.0), np.float64(2.0))
    """
    axis, keepdims = chosen("var", None, axis, keepdims, dim, keepdim)
    return _spread("var", x, axis, dtype, keepdims, ddof, correction, lambda found: found)


def std(x: Array, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, ddof: float = 0,
        correction: float | None = None, dim: Any = None, keepdim: bool | None = None) -> Any:  # fmt: skip
    """out = sqrt(var(x)), with the arguments of `var`. Source: the array API's std.

    >>> import numpy as np, nbkernels
    >>> nbkernels.std(np.array([1.0, 3.0]))
    np.float64(1.0)
    """
    axis, keepdims = chosen("std", None, axis, keepdims, dim, keepdim)
    return _spread("std", x, axis, dtype, keepdims, ddof, correction, ops.sqrt)


def _plan(name, x, axis, dtype):
    """(axes, the number of elements in each sum, dtype of the sums where it is not x's, dtype of the result)"""
    if type(x) is np.ndarray and dtype is None and (axis is None or type(axis) is int):
        return _kept(name, x.shape, x.dtype, axis)
    return _found(name, x, axis, dtype)


@functools.lru_cache(4096)
def _kept(name, shape, dtype, axis):
    return _found(name, np.broadcast_to(np.empty((), dtype), shape), axis, None)


def _found(name, x, axis, dtype):
    spec, asked, axes = _spec(name, "x", x), stated(name, dtype), dimensions(name, x, axis)
    return axes, prod(spec.shape[a] for a in axes), *_dtypes(name, spec.dtype, asked)


@functools.lru_cache
def _dtypes(name, dtype, asked):
    result = asked or (np.dtype(np.float64) if dtype.kind in "biu" else dtype)
    if result.kind in "biu":
        raise TypeError(f"{name}: dtype must be that of floats or of complex numbers, not {result}")
    work = np.dtype(np.float32) if result.name in HALVES else result
    return None if work == dtype else work, result


def _spread(name, x, axis, dtype, keepdims, ddof, correction, ending):
    if ddof != 0 and correction is not None:
        raise ValueError(f"{name}: got ddof={ddof} and correction={correction}: give one of them")
    axes, count, work, result = _plan(name, x, axis, dtype)
    center = _divided(ops.add.reduce(x, axes, dtype=work, keepdims=True), count)
    away = ops.subtract(x, center, dtype=work)
    if result.kind == "c":
        away, result = ops.abs(away), np.empty(0, result).real.dtype
    squares = ops.square(away, out=away if type(away) is np.ndarray else None)  # one large new array, not two
    total = ops.add.reduce(squares, axes, keepdims=keepdims)
    return _rounded(ending(_divided(total, max(count - (ddof if correction is None else correction), 0))), result)


def _divided(total, count):
    if count == 0:
        with np.errstate(divide="ignore", invalid="ignore"):
            return ops.divide(total, count)
    return total / count if isinstance(total, np.generic) else ops.divide(total, count)


def _rounded(x, dtype):
    own = x.dtype if isinstance(x, (np.ndarray, np.generic)) else views.spec(x).dtype
    return x if own == dtype else ops.copy(x, dtype=dtype)


# -- products ---------------------------------------------------------------------------------------------------------


def matrix_transpose(x: Array) -> Any:
    """out = x with its last two dimensions exchanged: a view

    Raises ValueError for an array of fewer than two. Source: the array API's matrix_transpose.

    >>> import numpy as np, nbkernels
    >>> nbkernels.matrix_transpose(np.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    ndim = len(_spec("matrix_transpose", "x", x).shape)
    if ndim < 2:
        raise ValueError(f"matrix_transpose: x must have two dimensions or more, and it is {ndim}-D")
    if isinstance(x, np.ndarray):
        return x.swapaxes(-1, -2)
    return views.permute(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def vecdot(x1: np.ndarray, x2: np.ndarray, *, axis: int | None = None, dim: int | None = None) -> Any:
    """out = the sum over `axis`, the last one, of conj(x1) * x2; the other dimensions broadcast

    Each sum has the bits of `vdot`; of fewer than 64 terms of float32 or float64, of two dimensions or more, those of a
    product of matrices. NumPy's arrays. Raises ValueError for sizes that do not fit. Source: the array API's vecdot.

    >>> import numpy as np, nbkernels
    >>> nbkernels.vecdot(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([21., 43.])
    """
    plain = axis is dim is None and type(x1) is type(x2) is np.ndarray and x1.dtype is x2.dtype and known(x1.dtype)
    if plain and x1.shape == x2.shape and x1.ndim:
        return row_sums(x1, x2, "a" if x1.dtype.kind == "c" else None) if x1.ndim > 1 else ops.vdot(x1, x2)
    axis, _ = chosen("vecdot", None, axis, False, dim, None)
    along = {} if axis is None else {"axis": axis}
    return _numpys("vecdot", numpy_functions.GUFUNCS["vecdot"], x1, x2, **along)


def tensordot(x1: np.ndarray, x2: np.ndarray, /, *, axes: Any = 2) -> Any:
    """out = the sum over pairs of axes, axes[0] of x1 and axes[1] of x2, or the last `axes` of x1 and the first of x2

    NumPy's arrays; one product of matrices, with the bits of `mm`. Raises ValueError for sizes that do not fit.
    Source: the array API's tensordot.

    >>> import numpy as np, nbkernels
    >>> nbkernels.tensordot(np.ones((2, 3, 4)), np.ones((4, 3, 5)), axes=((1, 2), (1, 0))).shape
    (2, 5)
    """
    return _numpys("tensordot", numpy_functions.tensordot, x1, x2, axes=axes)


def einsum(subscripts: Any, *operands: Any, out: Any = None, dtype: Any = None) -> Any:
    """out = the sum of products of two arrays' elements that `subscripts` says, as np.einsum

    NumPy's arrays; a product of matrices, of their elements, or both. Raises ValueError for what is no einsum of two
    operands, which np.einsum does.

    >>> import numpy as np, nbkernels
    >>> nbkernels.einsum("bij,jk->ikb", np.ones((2, 3, 4)), np.ones((4, 5))).shape
    (3, 5, 2)
    """
    return _numpys("einsum", numpy_functions.einsum, subscripts, *operands, out=out, dtype=dtype)


def _numpys(name, own, *args, **keywords):
    """A function of NumPy's arrays, of which those that `asarray` made give one."""
    out = keywords.get("out")
    given = () if PLAIN.issuperset(map(type, args)) and type(out) in PLAIN else (*args, out)
    for x in given:
        adapter = arrays.adapter_of(type(x))
        if adapter is not None and adapter.name != "NumPy":
            raise ArgumentError(
                f"{name}: arrays of NumPy are taken, and one is {adapter.name}'s: its library has {name}"
            )
    if given:
        args = [x.view(np.ndarray) if isinstance(x, Ours) else x for x in args]
        if isinstance(out, Ours):
            keywords["out"] = out.view(np.ndarray)
    try:
        found = own(*args, **keywords)
    except Declined as why:
        raise ValueError(f"{name}: {why}") from None
    ours = given and type(found) is np.ndarray and any(isinstance(x, Ours) for x in given)
    return found.view(Ours) if ours else found
