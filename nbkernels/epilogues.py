"""Functions that end a product before it is stored: named activations with their slopes, and any scalar function."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from . import meta, ops
from .dispatch import MetaArray, layout, views
from .dispatch.errors import unexpected, unsuitable
from .dispatch.operands import Operand
from .dispatch.run import ordered
from .elementary.activations import gelu, gelu_tanh, relu, sigmoid, silu
from .elementary.transcendental import erf, exp, tanh
from .fusion import NUMBERS, REPLAY, Elementwise
from .ops import ENDED
from .pickled import reduced

KEYWORDS = "beta", "alpha", "out", "before", "out_dtype", "mode", "conj", "tiles"
JITTED = "nbkernels.jitted.objects"
WHOLE = 320**3  # multiply-adds of a product up to which no function is put into the packed loops: it is short


def relu_of(v):
    return relu(v)


def relu_slope(v, grad):
    return grad if v > 0 else grad * 0


def sigmoid_of(v):
    return sigmoid(v)


def sigmoid_slope(v, grad):
    return grad * sigmoid(v) * sigmoid(-v)


def silu_of(v):
    return silu(v)


def silu_slope(v, grad):
    return grad * sigmoid(v) * (1 + v * sigmoid(-v))


def tanh_of(v):
    return tanh(v)


def tanh_slope(v, grad):
    return grad * (1 - tanh(v) * tanh(v))


def gelu_of(v):
    return gelu(v)


def gelu_slope(v, grad):
    return grad * (0.5 * (1 + erf(v * 0.7071067811865476)) + v * exp(-0.5 * v * v) * 0.3989422804014327)


def gelu_tanh_of(v):
    return gelu_tanh(v)


def gelu_tanh_slope(v, grad):
    t = tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))
    return grad * (0.5 * (1 + t) + 0.5 * v * (1 - t * t) * 0.7978845608028654 * (1 + 0.134145 * v * v))


PAIRS = {
    ("relu", "none"): (relu_of, relu_slope),
    ("sigmoid", "none"): (sigmoid_of, sigmoid_slope),
    ("silu", "none"): (silu_of, silu_slope),
    ("tanh", "none"): (tanh_of, tanh_slope),
    ("gelu", "none"): (gelu_of, gelu_slope),
    ("gelu", "tanh"): (gelu_tanh_of, gelu_tanh_slope),
}
SLOPES = {key: Elementwise(slope) for key, (_, slope) in PAIRS.items()}  # (product, gradient) -> its gradient


def epilogue(function=None, *, dtype=None) -> Any:
    """out = function(beta * self + alpha * (mat1 @ mat2), *operands): an addmm that ends in your scalar function

    The result is a function (self, mat1, mat2, *operands, beta=1, alpha=1, out=None, before=None), which takes addmm's
    out_dtype, mode, conj and tiles as well. The operands are arrays that expand to the product's shape, rows, columns
    or whole matrices, or numbers; `before` takes the product as it was before the function. The bits are those of addmm
    followed by `elementwise(function)`.

    `dtype` gives the result's dtype, else it is inferred: that of an int32 product times a float32 scale is float64, as
    in NumPy, and the function is computed so in either case.

    Raises as addmm and `elementwise` do, before anything is written.

    >>> import numpy as np, nbkernels
    >>> @nbkernels.epilogue
    ... def capped(v, scale, limit):
    ...     return min(v * scale, limit)
    >>> a = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> capped(np.zeros(2), a, np.eye(2), np.array([1.0, 10.0]), 30.0)
    array([[ 1., 20.],
           [ 3., 30.]])
    >>> @nbkernels.epilogue(dtype="float32")
    ... def dequantized(v, scale):
    ...     return v * scale
    >>> a = np.array([[1, 2], [3, 4]], np.int8)
    >>> dequantized(np.zeros(2, np.int32), a, a, np.array([0.5], np.float32), out_dtype="int32")
    array([[ 3.5,  5. ],
           [ 7.5, 11. ]], dtype=float32)
    """
    if function is None:
        return lambda function: Epilogue(function, dtype)
    return Epilogue(function, dtype)


class Epilogue:
    """What `epilogue` returns."""

    def __init__(self, function, dtype=None):
        self.apply = Elementwise(function, dtype, called="epilogue")
        self.__name__, self.__doc__, self.py_func = self.apply.__name__, self.apply.__doc__, self.apply.py_func
        self.kernels = ENDED.table.rows

    def __repr__(self):
        return f"<epilogue {self.apply!r}>"

    @property
    def _numba_type_(self):
        """What Numba takes it for where jitted code calls it."""
        return import_module(JITTED).of_epilogue(self)

    def __reduce__(self):
        return reduced(self, Epilogue, self.py_func, self.apply.dtypes)

    def __call__(self, input, mat1, mat2, *operands, beta=1, alpha=1, out=None, before=None, out_dtype=None, mode=None,
                 conj=None, tiles=None, **unknown):  # fmt: skip
        if unknown:
            raise unexpected(self.__name__, unknown, KEYWORDS)
        if before is tiles is None and short(input, mat1, mat2, operands):
            value = ops.addmm(input, mat1, mat2, beta=beta, alpha=alpha, out_dtype=out_dtype, mode=mode, conj=conj)
            return self.apply(value, *operands, out=out)
        apply, args = self.apply, (input, mat1, mat2, *operands)
        if self.kernels is not ENDED.table.rows:
            self.kernels = ENDED.table.rows
            apply.forget()
        plain = before is out_dtype is mode is conj is tiles is None
        types, known = tuple(map(type, (*args, beta, alpha))), apply.version().repeats
        if plain and (repeat := known.get(types)) and (result := repeat(*args, beta, alpha, out)) is not None:
            return result
        names = "input", "mat1", "mat2", *(p.name for p in apply.parameters[1:])
        matrices = {name: apply.operand(name, x) for name, x in zip(names[:3], args)}
        product = meta.addmm(*(x.spec for x in matrices.values()), beta, alpha, out_dtype, mode, conj)
        dtype, how = self.check(product, operands, out, before), dict(beta=beta, alpha=alpha, mode=mode, conj=conj)
        own = {name: apply.operand(name, x) for name, x in zip(names[3:], operands) if type(x) not in NUMBERS}
        arrays, given = matrices | own, (("out", out), ("before", before))
        outs = {name: apply.operand(name, x) for name, x in given if x is not None}
        written, kernel = [*outs.values()], None
        if not any(x.adapter.intercept for x in (*arrays.values(), *written)):
            lead = apply.lead([*arrays.values()], written)
            kernel = ENDED.table.row(lead.device.key).row
        if kernel is None:
            value = ops.addmm(input, mat1, mat2, out=before, out_dtype=out_dtype, tiles=tiles, **how)
            return apply(value, *operands, out=out)
        if out is None:
            strides = layout.c_strides(product.shape, dtype.itemsize)
            made = lead.adapter.empty(lead.value, product.shape, dtype, strides)
            outs["out"] = Operand("out", made, lead.adapter, lead.device, None)
        if 0 not in product.shape:
            values = [(arrays.get(name), x) for name, x in zip(names, args)]
            self.run(kernel, lead, outs, product.dtype, values, how | dict(tiles=tiles))
        if plain and lead.device.key == "CUDA" and types not in known and kernel.kernel_name.startswith("nbkernels."):
            known[types] = repeat = import_module(REPLAY).of_function(
                self, types, lead.adapter.name, lambda x, out: self(*x[:-2], beta=x[-2], alpha=x[-1], out=out)
            )
            if repeat:
                repeat(*args, beta, alpha, out)  # remembers the kind of this call
        for x in written:
            x.adapter.written(x.value)
        return lead.adapter.wrap(made, lead.value) if out is None else out

    def run(self, kernel, lead, outs, dtype, values, how):
        """The fused form, all checks done; values are (operand or None, value) of each argument."""
        out, before = outs["out"], outs.get("before")
        dtypes = dtype, *(np.dtype(x.spec.dtype) for x, _ in values[3:] if x)
        with lead.adapter.guard(lead.device):
            dtypes = [None if x else np.result_type(*dtypes, value) for x, value in values]
            taken = [self.apply.view(lead, out, *each, dtype) for each, dtype in zip(values, dtypes)]
            written = [x and x.adapter.view(x.value) for x in (out, before)]
            with ordered(written[0], (*taken, written[1])):
                try:
                    kernel.load()(self.apply.version().function, *written, dtype, *taken[:3], taken[3:], how)
                except ValueError as error:
                    raise unsuitable(self.__name__, error, how) from None

    def check(self, product, operands, out, before):
        """The result's dtype, or the error that there is, before `before` or out is written."""
        name, stand = self.__name__, MetaArray(product.shape, product.dtype)
        specs = [x if type(x) in NUMBERS else MetaArray(*views.spec(x)) for x in operands]
        result = self.apply(stand, *specs)
        if result.shape != product.shape:
            raise ValueError(f"{name}: the operands expand the product {product.shape} to {result.shape}")
        if out is not None:
            self.apply.check([self.apply.operand("out", out)], product.shape, (result.dtype,))
        if before is not None:
            self.apply.check([self.apply.operand("before", before)], product.shape, (product.dtype,))
            if views.spec(before).dtype != product.dtype:
                raise TypeError(
                    f"{name}: before must be {product.dtype}, as the product, not {views.spec(before).dtype}"
                )
        for x in (*operands, out):
            if before is not None and type(x) not in NUMBERS and x is not None and views.overlap(before, x):
                raise ValueError(f"{name}: before shares memory with out or an operand")
        return result.dtype


def short(input, mat1, mat2, operands):
    """Tell whether NumPy's arrays make a short product, to which operands expand: the function takes it whole."""
    if not (type(input) is type(mat1) is type(mat2) is np.ndarray and mat1.ndim == 2 == mat2.ndim):
        return False
    m, n = len(mat1), mat2.shape[1]
    shapes = [() if type(x) in NUMBERS else getattr(x, "shape", None) for x in operands]
    return mat1.size * n <= WHOLE and all(each in ((), (n,), (m, 1), (m, n)) for each in shapes)


ENDINGS = {key: Epilogue(value) for key, (value, _) in PAIRS.items()}
