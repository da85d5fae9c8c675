"""Functions that end a product before it is stored: named activations with their slopes, and any scalar function."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from . import meta, ops
from .dispatch import MetaArray, views
from .dispatch.errors import unexpected, unsuitable
from .elementary.activations import gelu, gelu_tanh, relu, sigmoid, silu
from .elementary.transcendental import erf, exp, tanh
from .fusion import NUMBERS, Elementwise
from .pickled import reduced

KEYWORDS = "beta", "alpha", "out", "before", "out_dtype", "mode", "conj", "tiles"
FUSED = "nbkernels.cpu.gemm.epilogue"  # by name, at the first call
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
        matrices = (self.apply.operand(*x) for x in (("input", input), ("mat1", mat1), ("mat2", mat2)))
        product = meta.addmm(*(x.spec for x in matrices), beta, alpha, out_dtype, mode, conj)
        dtype = self.check(product, operands, out, before)
        keywords = dict(beta=beta, alpha=alpha, mode=mode, conj=conj, tiles=tiles)
        given = [x for x in (input, mat1, mat2, *operands, out, before) if x is not None and type(x) not in NUMBERS]
        if all(type(x) is np.ndarray for x in given):
            out = np.empty(product.shape, dtype) if out is None else out
            if before is None and out.dtype != product.dtype:
                before = np.empty(product.shape, product.dtype)
            if out.size:
                self.run(out, before, input, mat1, mat2, operands, **keywords)
            return out
        value = ops.addmm(input, mat1, mat2, out=before, out_dtype=out_dtype, **keywords)
        return self.apply(value, *operands, out=out)

    def run(self, out, before, input, mat1, mat2, operands, **keywords):
        """The fused form, of NumPy's arrays that were checked."""
        dtypes = (out if before is None else before).dtype, *(x.dtype for x in operands if type(x) not in NUMBERS)
        operands = [np.asarray(x, np.result_type(*dtypes, x)) if type(x) in NUMBERS else x for x in operands]
        function = self.apply.version().function
        try:
            import_module(FUSED).run(function, out, before, input, mat1, mat2, operands, **keywords)
        except ValueError as error:
            raise unsuitable(self.__name__, error, keywords) from None

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
