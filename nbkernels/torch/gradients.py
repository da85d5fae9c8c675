"""Derivatives of the torch ops: those of the table, of first and second order; third ones are refused.

A backward pass that nothing watches computes them at once, on NumPy's views. Where they are differentiated again,
traced or batched, they are the op `NAME_backward`, whose own derivative is the op `NAME_backward_backward`: what a tape
finds for the formulas.
"""

from __future__ import annotations

import torch

from ..autograd import on_views
from ..autograd.gradients import upright
from ..autograd.vjp import vjp
from ..dispatch import arrays, derive, keys, layout
from ..dispatch.adapter import Spec
from ..tensor_calls import tensor_of

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
