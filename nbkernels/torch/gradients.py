"""Derivatives of the torch ops: those of the table, of first and second order; third ones are refused.

A backward pass that nothing watches computes them at once, on NumPy's views. Where they are differentiated again,
traced or batched, they are the op `NAME_backward`, whose own derivative is the op `NAME_backward_backward`: what a tape
finds for the formulas.
"""

from __future__ import annotations

import numpy as np
import torch

from .. import ops
from ..autograd import on_views
from ..autograd.gradients import upright
from ..autograd.tape import vjp
from ..dispatch import arrays, derive, keys, layout
from ..dispatch.adapter import Spec
from ..lent import tensor_of, viewer

ADAPTER = arrays.adapter_of(torch.Tensor)


def spec(x):
    """What the rules know of a tensor, whatever watches it."""
    dtype = ADAPTER.dtype(x.dtype)
    return Spec(tuple(x.shape), dtype, tuple(step * dtype.itemsize for step in x.stride()))


def lent(x):
    """A tensor on the CPU as NumPy's array, which keeps it alive; elsewhere a tensor. What else there is is itself."""
    if not isinstance(x, torch.Tensor):
        return x
    x = x.detach().resolve_conj().resolve_neg()
    return ADAPTER.view(x) if x.device.type == "cpu" else x


def returned(x):
    """An array as a tensor; None as itself."""
    return x if x is None or isinstance(x, torch.Tensor) else tensor_of(x)


# -- by formulas and tapes --------------------------------------------------------------------------------------------


def first(form, mask, grad, values):
    """Gradients of a call's tensors, given that of its result: None where mask is False, or where there is none."""
    op, args = form.op, form.arguments(values)
    key = ADAPTER.device(grad).key if isinstance(grad, torch.Tensor) and not grad.is_cpu else keys.CPU
    return on_views.gradients(op, derive.derivative(op, key), grad, args, mask)


def second(form, mask, grads, grad, values):
    """Gradients of grad and of the tensors, given those of what `first` returns where mask is True."""
    places = derived(form)
    given = [i for i in places if isinstance(values[i], torch.Tensor)]
    wanted = [k for k, keep in enumerate(mask) if keep]

    def formula(grad, *tensors):
        now = dict(enumerate(values)) | dict(zip(given, tensors))
        found = first(form, mask, grad, list(now.values()))
        return (*(found[k] for k in wanted), grad)  # the last is there for the tape to see something

    _, pull = vjp(formula, lent(grad), *(lent(values[i]) for i in given))
    pulled = pull((*map(lent, grads), None))
    found = dict(zip(given, pulled[1:]))
    return [pulled[0], *(found.get(i) for i in places)]


def derived(form):
    """Where the arguments that may have gradients are."""
    return [form.places[i] for i in form.op.derived]


# Everyday products of matrices of one layout, without the formulas' care for every other: None declines. The bits are
# the same, as every element is one chain over k.


def in_order_of(x, a, b):
    """a @ b, by columns if x is."""
    return ops.mm(b.T, a.T).T if x.strides[0] < x.strides[1] else ops.mm(a, b)


def of_mm(mask, grad, self, mat2):
    return [
        in_order_of(self, grad, mat2.T) if mask[0] else None,
        in_order_of(mat2, self.T, grad) if mask[1] else None,
    ]


def of_linear(mask, grad, input, weight, bias=None):
    given = [
        in_order_of(input, grad, weight) if mask[0] else None,
        in_order_of(weight, grad.T, input) if mask[1] else None,
    ]
    return [*given, ops.sum_to(grad, bias.shape) if mask[2] else None]


AT_ONCE = {"mm": of_mm, "linear": of_linear}


def at_once(form, mask, grad, values):
    """What `first` gives, sooner, as tensors; None of calls that are not everyday ones."""
    function, arrays, seen = AT_ONCE.get(form.op.schema.name), [], viewer()
    if function is None:
        return None
    for x in (grad, *values):
        if isinstance(x, torch.Tensor):
            x = seen(x)
            if type(x) is not np.ndarray or x.dtype.char not in "fd" or x.ndim != 2 - (len(arrays) == 3):
                return None
            arrays.append(x)
        elif x is not None:
            return None
    if any(1 in x.shape or 0 in x.shape or 0 in x.strides or min(x.strides) < 0 for x in arrays):
        return None
    found = function(mask, *arrays)
    return [grad if x is arrays[0] else x if x is None else torch.from_numpy(x) for x in found]


# -- as ops -----------------------------------------------------------------------------------------------------------


def laid(x):
    """Strides, in elements, of a gradient of x: dense, and by columns where the matrices of x are."""
    seen = spec(x)
    shape, columns = seen.shape, upright(seen)
    steps = layout.c_strides(shape[:-2] + shape[:-3:-1] if columns else shape, 1)
    return steps[:-2] + steps[:-3:-1] if columns else steps


def owned(found, likes):
    """Gradients as an op has to return them: all that are wanted, in the layout that is told beforehand, in memory of
    their own."""
    results = []
    for x, like in zip(found, likes):
        result = torch.empty_strided(like.shape, laid(like), dtype=like.dtype, device=like.device)
        results.append(result.zero_() if x is None else result.copy_(returned(x)))
    return results


def promised(likes):
    return [torch.empty_strided(x.shape, laid(x), dtype=x.dtype, device=x.device) for x in likes]


def chosen(mask, values):
    return [x for x, keep in zip(values, mask) if keep]


def kernels(form):
    """(kernel, fake) of `forms.backward(form)` and of `forms.twice_backward` of that."""
    places = derived(form)

    def once(grad, *rest):
        *values, mask = rest
        return owned(chosen(mask, first(form, mask, grad, values)), likes(mask, values))

    def once_fake(grad, *rest):
        *values, mask = rest
        return promised(likes(mask, values))

    def twice(grads, grad, *rest):
        *values, inner, mask = rest
        found = second(form, inner, grads, grad, values)
        return owned(chosen(mask, found), chosen(mask, [grad, *(values[i] for i in places)]))

    def twice_fake(grads, grad, *rest):
        *values, inner, mask = rest
        return promised(chosen(mask, [grad, *(values[i] for i in places)]))

    def likes(mask, values):
        return chosen(mask, [values[i] for i in places])

    return (once, once_fake), (twice, twice_fake)
