"""Bodies of the ops that are written over other ops, each under its op's name: they run wherever their parts run."""

from . import meta, ops
from .dispatch import views


def linear(input, weight, bias=None):
    result = meta.linear(*map(views.spec, (input, weight, bias)))
    out = views.empty(input, result.shape, result.dtype)
    _linear(out, input, views.transpose(weight), bias)
    return out


def _linear(out, input, weight, bias):
    """One product where a view makes a matrix of the input, else one for each index of its first dimension."""
    rows = views.flatten(input)
    if rows is None:
        for i in range(out.shape[0]):
            _linear(out[i], input[i], weight, bias)
    elif bias is None:
        ops.mm(rows, weight, out=views.flatten(out))
    else:
        ops.addmm(bias, rows, weight, out=views.flatten(out))


def linear_fast(input, weight, bias):
    """Matrices in plain arrays: straight to addmm; anything else is declined."""
    if not (input.ndim == 2 == weight.ndim and input.shape[1] == weight.shape[1] and input.dtype == weight.dtype):
        return None
    if bias is None:
        return ops.mm(input, weight.T)
    return ops.addmm(bias, input, weight.T) if bias.shape == weight.shape[:1] and bias.dtype == weight.dtype else None
