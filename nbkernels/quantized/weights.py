"""Weights as small whole numbers with scales, and products with them: quantize, Quantized, linear_q."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from math import prod
from operator import index
from typing import Any

import numpy as np

from ..dispatch.arrays import adapter_of
from ..dispatch.errors import ArgumentError, describe
from ..dispatch.keys import CPU
from ..dispatch.operands import Operand
from ..epilogues import ENDINGS
from . import layout

KERNELS = "nbkernels.cpu.quantized.linear"  # by name, at the first product
LIMITS = {"int8": (-128, 127), "int4": (-8, 7)}
LEAST = {"float32": 2.0**-126, "float16": 2.0**-14, "bfloat16": 2.0**-126}  # the scales' dtypes, and their least normal
# The deepest groups whose sums of products with bytes of x int32 holds.
DEEPEST = {dtype: (2**31 - 1) // (127 * (high - low)) for dtype, (low, high) in LIMITS.items()}
FLOAT = np.dtype(np.float32)
STEP = 8  # groups are multiples of it: of the int4 in a word of 32 bits
FLOATS = (*LEAST, "float64")


class Quantized:
    """Weights scale * (value - zero) of n outputs by k inputs: what `quantize` makes and `linear_q` takes

    `values` is an int8 array (n, k) or, with dtype="int4", one of int8 or uint8 (n, (k + 1) // 2) with two values a
    byte, the first in the low bits; `k` tells an odd k. `scales` has a positive float32, float16 or bfloat16 for each
    output and group, (n, groups), or (n,) where a row is one group; `zeros` likewise has whole numbers in the values'
    range, and None stands for 0. A group is `group` neighbours along k, a multiple of 8, and the last one may be short;
    None is all of a row.

    The record does not change: `values`, `scales` and `zeros` are new arrays each time, `dequantize()` is the float32
    weights, `shape` is (n, k), `nbytes` the memory. It pickles.

    Raises TypeError for other dtypes, ValueError for shapes that do not fit each other, for scales that are not
    positive and finite, and for zeros out of range.

    >>> import numpy as np, nbkernels
    >>> w = nbkernels.Quantized(np.array([[1, -2, 3], [4, 5, -6]], np.int8), np.array([0.5, 2.0], np.float32))
    >>> w
    Quantized(2 x 3, int8, one group a row, scales float32)
    >>> w.dequantize()
    array([[  0.5,  -1. ,   1.5],
           [  8. ,  10. , -12. ]], dtype=float32)
    """

    __slots__ = "dtype", "factors", "group", "none", "offsets", "places", "plans", "shape", "words"

    def __init__(self, values, scales, zeros=None, *, dtype="int8", group=None, k=None):
        _known_dtype("Quantized", dtype)
        values, scales = _array("Quantized", "values", values, 2), np.asarray(scales)
        if values.dtype.name not in ("int8", "uint8")[: 1 + (dtype == "int4")]:
            raise TypeError(f"Quantized: values of {dtype} are in an int8 array, not in one of {values.dtype}")
        n, width = values.shape
        k = width * (1 + (dtype == "int4")) if k is None else index(k)
        if width != (k if dtype == "int8" else (k + 1) // 2):
            raise ValueError(f"Quantized: values of shape {values.shape} do not hold {k} {dtype} in a row")
        group = _group("Quantized", group, k)
        groups = -(-k // group)
        scales = _per_group("Quantized", "scales", scales, n, groups)
        if scales.dtype.name not in LEAST:
            raise TypeError(f"Quantized: scales must be {', '.join(LEAST)}, not {scales.dtype}")
        as_float = scales.astype(np.float32)
        if not (np.isfinite(as_float) & (as_float > 0)).all():
            raise ValueError("Quantized: scales must be positive and finite")
        if zeros is not None:
            zeros, (low, high) = _per_group("Quantized", "zeros", np.asarray(zeros), n, groups), LIMITS[dtype]
            if zeros.dtype.kind not in "iu":
                raise TypeError(f"Quantized: zeros must be whole numbers, not {zeros.dtype}")
            if zeros.size and not (low <= zeros.min() and zeros.max() <= high):
                raise ValueError(f"Quantized: zeros of {dtype} are from {low} to {high}")
            zeros = layout.in_blocks(zeros.astype(np.int8))
        scales = scales.astype(scales.dtype.newbyteorder("="))
        arrays = dict(words=layout.as_words(dtype, values), factors=layout.in_blocks(scales), offsets=zeros)
        places = [0 if each is None else each.ctypes.data for each in arrays.values()]
        none = np.full(n, -0.0, np.float32)  # what is added where there is no bias: v + -0.0 is v
        own = dict(dtype=dtype, shape=(n, k), group=group, none=none, places=places, plans={})
        for name, value in (own | arrays).items():
            object.__setattr__(self, name, value)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __setattr__(self, name, value=None):
        raise AttributeError(f"Quantized: {name} cannot be set; a record does not change")

    __delattr__ = __setattr__

    @property
    def values(self) -> np.ndarray:
        count = self.shape[1] if self.dtype == "int8" else (self.shape[1] + 1) // 2
        return layout.as_bytes(self.dtype, self.words, self.shape[0], count)

    @property
    def scales(self) -> np.ndarray:
        return layout.in_rows(self.factors, self.shape[0])

    @property
    def zeros(self) -> np.ndarray | None:
        return None if self.offsets is None else layout.in_rows(self.offsets, self.shape[0])

    @property
    def nbytes(self) -> int:
        return self.words.nbytes + self.factors.nbytes + (0 if self.offsets is None else self.offsets.nbytes)

    def dequantize(self) -> np.ndarray:
        """float32(scale) * (value - zero), rounded once."""
        k, zeros = self.shape[1], self.zeros
        weights = self.values if self.dtype == "int8" else layout.one_a_byte(self.values, k)
        weights = weights.astype(np.float32)
        if zeros is not None:
            weights -= zeros.astype(np.float32).repeat(self.group, 1)[:, :k]
        weights *= self.scales.astype(np.float32).repeat(self.group, 1)[:, :k]
        return weights

    def __reduce__(self):
        return _again, (self.values, self.scales, self.zeros, self.dtype, self.group, self.shape[1])

    def __repr__(self):
        (n, k), zeros = self.shape, "" if self.offsets is None else ", zero points"
        groups = "one group a row" if self.group >= k else f"groups of {self.group}"
        return f"Quantized({n} x {k}, {self.dtype}, {groups}, scales {self.factors.dtype}{zeros})"


def _again(values, scales, zeros, dtype, group, k):
    return Quantized(values, scales, zeros, dtype=dtype, group=None if group >= k else group, k=k)


def quantize(weight: Any, group: int | None = None, dtype: str = "int8", symmetric: bool = True,
             scales: str = "float32", axis: int = -1) -> Quantized:  # fmt: skip
    """value = round(weight / scale) + zero, saturated: a matrix of weights as int8 or int4 with a scale for each group

    `weight` is (n, k), an output a row, of floats, an array on the CPU of any library that is known; it is computed in
    float32. `axis` is k's: 0 takes a weight of (k, n), as mat2 is. A group is `group` neighbours along k, a multiple of
    8, and the last one may be short; None is all of a row. Rounding is half to even, in every place.

    symmetric   scale = max |weight| / 127, and values are from -127 to 127; int4: 7
    otherwise   scale = high/255 - low/255 for high = max(weight, 0) and low = min(weight, 0) of the group, and
                zero = round(-128 - low/scale); values and zeros are from -128 to 127; int4: 15, and from -8 to 7

    The scale is rounded to the dtype `scales`, "float32", "float16" or "bfloat16", and is at least its smallest normal
    number, before weights are divided by it; so a group of zeros has one, too.

    Raises TypeError for other dtypes, ValueError for weights that are not finite, or too large for `scales`, and for
    another axis.

    >>> import numpy as np, nbkernels
    >>> w = nbkernels.quantize(np.array([[1.0, -2.0, 0.26], [0.0, 7.0, 3.5]]), dtype="int4")
    >>> w.scales
    array([[0.2857143],
           [1.       ]], dtype=float32)
    >>> w.dequantize()
    array([[ 0.8571429, -2.       ,  0.2857143],
           [ 0.       ,  7.       ,  4.       ]], dtype=float32)
    """
    _known_dtype("quantize", dtype)
    weight = _array("quantize", "weight", weight, 2)
    if axis not in (-2, -1, 0, 1):
        raise ValueError(f"quantize: axis must be 0 or 1, or -2 or -1, not {axis!r}")
    weight = weight if axis % 2 else weight.T
    if weight.dtype.name not in FLOATS:
        raise TypeError(f"quantize: weight must be of floats, not {weight.dtype}")
    if scales not in LEAST:
        raise TypeError(f"quantize: scales must be {', '.join(LEAST)}, not {scales!r}")
    weight = weight.astype(np.float32)
    if not np.isfinite(weight).all():
        raise ValueError("quantize: weight has NaN or infinity, which no scale fits")
    (n, k), (low, high) = weight.shape, LIMITS[dtype]
    group = _group("quantize", group, k)
    groups = np.pad(weight, ((0, 0), (0, -k % group))).reshape(n, -(-k // group), group)  # zeros change no scale
    most, least = groups.max(2, initial=0), groups.min(2, initial=0)
    if symmetric:
        low, exact = -high, np.maximum(most, -least) / np.float32(high)
    else:
        exact = most / np.float32(high - low) - least / np.float32(high - low)
    kept = np.maximum(exact, np.float32(LEAST[scales])).astype(_named(scales, weight))
    scale = kept.astype(np.float32)
    if not np.isfinite(scale).all():
        raise ValueError(f"quantize: the scales of such large weights are no {scales}")
    zeros = None if symmetric else np.clip(np.rint(low - least / scale), low, high)
    values = np.rint(groups / scale[..., None])
    if zeros is not None:
        values += zeros[..., None]
    values = np.clip(values, low, high).astype(np.int8).reshape(n, groups.shape[1] * group)[:, :k]
    values = layout.two_a_byte(values) if dtype == "int4" else values
    zeros = zeros if zeros is None else zeros.astype(np.int8)
    return _again(values, kept, zeros, dtype, group, k)


def linear_q(x: Any, w: Quantized, bias: Any = None, activation: str | None = None,
             dynamic: bool = False) -> Any:  # fmt: skip
    """out = activation(x @ w.T + bias) by quantised weights: a float32 array (..., n) of an x (..., k)

    x is float32; float16 and bfloat16 are converted. It is an array on the CPU of any library that is known, torch's
    tensors that require no grad among them, and the result is of that library. bias has n floats; `activation` is
    "relu", "gelu", "silu", "sigmoid" or "tanh", with the bits of `addmm_activation`'s.

    The order is fixed. Each group, cut after every 4,096 steps of k, is one chain of fused multiply-adds
    chain = x[p] * (value[p] - zero) + chain from 0 on, in order of p; then total = scale * chain + total, one rounding,
    piece by piece from 0 on; then bias is added. Bits depend neither on how many rows x has, nor on threads, processors
    or vectors. NaN and infinity go their way through these steps.

    With dynamic=True each row of x is quantised, too: scale = max |x| / 127, at least 2**-126, and round(x / scale),
    half to even. Products of whole numbers add up in int32 over a group, exactly; total = group's scale * float32(sum)
    + total, one rounding, group by group from 0 on; then total * row's scale + bias. A row with NaN or infinity gives
    NaN.

    Raises TypeError for other dtypes, ValueError for shapes that do not fit, and with dynamic=True for groups so deep
    that int32 might not hold a sum: of more than 66,311 int8 or 1,127,288 int4.

    >>> import numpy as np, nbkernels
    >>> w = nbkernels.quantize(np.array([[1.0, -2.0], [0.5, 4.0]]))
    >>> nbkernels.linear_q(np.ones((1, 2), np.float32), w, activation="relu")
    array([[0.      , 4.503937]], dtype=float32)
    """
    if not isinstance(w, Quantized):
        raise TypeError(f"linear_q: w must be what quantize makes, not {describe(w)}")
    given, x, (n, k), function = x, _floats("x", x), w.shape, None
    if x.ndim == 0 or x.shape[-1] != k:
        raise ValueError(f"linear_q: x of shape {x.shape} and weights of {w.shape} do not fit: {k} columns are wanted")
    if dynamic and w.group > DEEPEST[w.dtype]:
        deep = f"sums of {w.group} {w.dtype} can exceed int32"
        raise ValueError(f"linear_q: dynamic=True takes groups of {DEEPEST[w.dtype]} at most, for {deep}")
    if bias is not None:
        bias = _floats("bias", bias)
        if bias.shape != (n,):
            raise ValueError(f"linear_q: bias of shape {bias.shape} for {n} outputs")
    if activation is not None:
        if (activation, "none") not in ENDINGS:
            names = ", ".join(sorted({name for name, _ in ENDINGS}))
            raise ValueError(f"linear_q: activation must be {names} or None, not {activation!r}")
        function = ENDINGS[activation, "none"].apply.version().function
    rows = x if x.ndim == 2 else x.reshape(prod(x.shape[:-1]), k)
    out = _kernels().linear(w, rows, bias, function, bool(dynamic))
    out = out if x.ndim == 2 else out.reshape(*x.shape[:-1], n)
    return out if isinstance(given, np.ndarray) else _alike(out, given)


@cache
def _kernels():
    return import_module(KERNELS)


# -- what is given -----------------------------------------------------------------------------------------------------


def _array(name, word, given, ndim=None) -> np.ndarray:
    """An array on the CPU of any library as NumPy's."""
    if not isinstance(given, np.ndarray):
        operand = Operand.of(name, word, given)
        if operand.device.key != CPU or operand.adapter.intercept:
            raise ArgumentError(f"{name}: {word} must be an array on the CPU, not {describe(given)}: weights that are "
                                "quantised are multiplied there")  # fmt: skip
        given = np.asarray(operand.adapter.view(given))
    if ndim is not None and given.ndim != ndim:
        raise ValueError(f"{name}: {word} must have {ndim} dimensions, not the shape {given.shape}")
    return given


def _alike(out, given):
    """An array of the library of another one, with NumPy's elements."""
    adapter = adapter_of(type(given))
    made = adapter.empty(given, out.shape, out.dtype, out.strides)
    adapter.view(made)[...] = out
    return adapter.result(made, given)


def _floats(word, given) -> np.ndarray:
    """An array of linear_q's as float32 in C order."""
    if type(given) is np.ndarray and given.dtype is FLOAT and given.flags.c_contiguous:
        return given
    array = _array("linear_q", word, given)
    if array.dtype.name not in LEAST:
        raise TypeError(f"linear_q: {word} must be {', '.join(LEAST)}, not {array.dtype}")
    return np.asarray(array, FLOAT, order="C")


def _known_dtype(name, dtype):
    if dtype not in LIMITS:
        raise TypeError(f"{name}: dtype must be {' or '.join(map(repr, LIMITS))}, not {dtype!r}")


def _group(name, group, k) -> int:
    """The group's size, k at most."""
    if group is None:
        return max(k, 1)
    if isinstance(group, bool) or not isinstance(group, int | np.integer):
        raise TypeError(f"{name}: group must be a whole number or None, not {group!r}")
    if group < STEP or group % STEP:
        raise ValueError(f"{name}: group must be a multiple of {STEP}, not {group}")
    return min(int(group), max(k, 1))


def _per_group(name, word, array, n, groups) -> np.ndarray:
    if array.shape == (n,) and groups == 1:
        return array[:, None]
    if array.shape != (n, groups):
        raise ValueError(
            f"{name}: {word} must be of shape {(n, groups)}, one for each output and group, not {array.shape}"
        )
    return array


def _named(dtype, weight):
    """A dtype by its name; bfloat16 is ml_dtypes'."""
    if dtype != "bfloat16":
        return np.dtype(dtype)
    return np.dtype(import_module("ml_dtypes").bfloat16)
