"""Gradients of common calls, faster than by the formulas over arrays of every library.
Those of everyday products are two products; those of tensors on the CPU are the formulas on NumPy's views."""

import numpy as np

from .. import ops
from ..dispatch import arrays, derive
from ..dispatch.adapter import library
from ..tensor_calls import array_of, tensor_of, viewer


def gradients(op, derivative, grad, values, wanted, result=None):
    """What `derive.gradients` says. A gradient of a tensor is grad itself, or has memory of its own: torch's autograd
    adds to what it is given, and does not see that arrays share memory."""
    adapter = arrays.adapter_for(grad)
    tensors = adapter is not None and adapter.name == "torch"
    if type(grad) is np.ndarray or tensors:
        found = everyday(derivative, adapter, grad, values, wanted)
        if found is not None:
            return found
    if not tensors:
        return derive.gradients(op, derivative, grad, values, wanted, result)
    try:
        seen, *views = [array_of(x) for x in (grad, result, *values)]
    except TypeError:
        return derive.gradients(op, derivative, grad, values, wanted, result)
    with adapter.limited():
        found = derive.gradients(op, derivative, seen, views[1:], wanted, views[0])
        return [x if x is None else grad if x is seen else tensor_of(x, (seen, *views)) for x in found]


# -- everyday products ------------------------------------------------------------------------------------------------


def in_order_of(x, a, b):
    """a @ b, by columns if x is. The bits are the same, as every element is one chain over k."""
    return ops.mm(b.T, a.T).T if x.strides[0] < x.strides[1] else ops.mm(a, b)


def of_mm(wanted, grad, self, mat2):
    return [
        in_order_of(self, grad, mat2.T) if wanted[0] else None,
        in_order_of(mat2, self.T, grad) if wanted[1] else None,
    ]


def of_linear(wanted, grad, input, weight, bias=None):
    given = [
        in_order_of(input, grad, weight) if wanted[0] else None,
        in_order_of(weight, grad.T, input) if wanted[1] else None,
    ]
    return [*given, ops.sum_to(grad, bias.shape) if wanted[2] else None]


EVERYDAY = {"nbkernels.autograd.products:MM": of_mm, "nbkernels.autograd.products:LINEAR": of_linear}


def everyday(derivative, adapter, grad, values, wanted):
    """What `gradients` gives of a product of matrices of floats without keywords; None of others."""
    kernel = derivative.row and derivative.row.kernel
    function = EVERYDAY.get(kernel) if type(kernel) is str else None
    if function is None:
        return None
    given = [x for x in (grad, *values) if x is not None]
    tensors = type(grad) is not np.ndarray
    if tensors:
        seen = viewer()
        given = [seen(x) for x in given]
    first = given[0]
    if type(first) is not np.ndarray or first.dtype.char not in "fd" or first.ndim != 2:
        return None
    for x in given[1:]:
        if type(x) is not np.ndarray or x.dtype is not first.dtype or 1 in x.shape or 0 in x.shape:
            return None
        if x.ndim != (1 if x is given[-1] and len(given) == 4 else 2) or min(x.strides) <= 0:
            return None
    if not tensors:
        return function(wanted, *given)
    with adapter.limited():
        made = library("torch").from_numpy
        return [x if x is None else made(x) for x in function(wanted, *given)]
