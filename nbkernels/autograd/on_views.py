"""Gradients of a call, of tensors in the CPU's memory by formulas on NumPy's views of them: in a fifth of the time."""

from ..dispatch import arrays, derive
from ..lent import array_of, tensor_of


def gradients(op, derivative, grad, values, wanted, result=None):
    """What `derive.gradients` says. A gradient of a tensor is grad itself, or has memory of its own: torch's autograd
    adds to what it is given, and does not see that arrays share memory."""
    adapter = arrays.adapter_for(grad)
    if adapter is None or adapter.name != "torch":
        return derive.gradients(op, derivative, grad, values, wanted, result)
    try:
        seen, *views = [array_of(x) for x in (grad, result, *values)]
    except TypeError:
        return derive.gradients(op, derivative, grad, values, wanted, result)
    with adapter.limited():
        found = derive.gradients(op, derivative, seen, views[1:], wanted, views[0])
        return [x if x is None else grad if x is seen else tensor_of(x, (seen, *views)) for x in found]
