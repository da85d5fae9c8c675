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
    if type(grad) is np.ndarray:
        return everyday(derivative, None, grad, values, wanted) or derive.gradients(
            op, derivative, grad, values, wanted, result
        )
    adapter = arrays.adapter_for(grad)
    if adapter is None or adapter.name != "torch":
        return derive.gradients(op, derivative, grad, values, wanted, result)
    found = everyday(derivative, adapter, grad, values, wanted)
    if found is not None:
        return found
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
    rows, columns = x.strides
    if abs(rows) < abs(columns) and rows and 1 not in x.shape:
        return ops.mm(b.T, a.T).T
    return ops.mm(a, b)


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


PRODUCTS = "nbkernels.autograd.products:"
EVERYDAY = {f"{PRODUCTS}MM": of_mm, f"{PRODUCTS}MATMUL": of_mm, f"{PRODUCTS}LINEAR": of_linear}


def everyday(derivative, adapter, grad, values, wanted):
    """What `gradients` gives of a product of matrices of floats without keywords; None of others."""
    kernel = derivative.row and derivative.row.kernel
    function = EVERYDAY.get(kernel) if type(kernel) is str else None
    if function is None:
        return None
    given = [grad, *[x for x in values if x is not None]]
    tensors = type(grad) is not np.ndarray
    if tensors:
        seen = viewer()
        given = [seen(x) for x in given]
    first = given[0]
    if type(first) is not np.ndarray or (dtype := first.dtype).char not in "fd":
        return None
    ndims = [x.ndim if type(x) is np.ndarray and x.dtype is dtype else None for x in given]
    if ndims != [2, 2, 2] and ndims != [2, 2, 2, 1]:
        return None
    if not tensors:
        return function(wanted, *given)
    with adapter.limited():
        made = library("torch").from_numpy
        return [x if x is None else made(x) for x in function(wanted, *given)]
