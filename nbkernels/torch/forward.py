"""Forward derivatives of the torch ops, for torch.func.jvp and torch.autograd.forward_ad: a result's tangent.

Where an op is linear in an argument, it is the op called with the argument's tangent in its place, and torch can
differentiate that as it can any call. Of other ops the gradients are asked: `NAME_backward` takes the gradient g of the
result to Jᵀg. Element by element J is its own transpose, and what comes of a tangent t is J t. Elsewhere Jᵀg is linear
in g, and what `NAME_backward_backward` finds for g turns it round again: it takes t to J t.
"""

from __future__ import annotations

import torch
from torch.autograd import forward_ad

from ..operations import ELEMENTWISE
from . import forms
from .gradients import chosen, derived

# Ops that are a product of what is named, linear in each factor, plus what other tensors they take, each with the
# number that scales it. `reduce` and `accumulate`, of add alone.
FACTORS = {op: row.linear for op, row in ELEMENTWISE.items() if row.linear is not None} | {
    "sum_to": "self", "reduce": "self", "accumulate": "self", "mm": "self mat2", "bmm": "self mat2",
    "matmul": "input other", "mv": "self vec", "outer": "self vec2", "dot": "self tensor", "vdot": "self other",
    "linear": "input weight", "addmm": "mat1 mat2", "baddbmm": "batch1 batch2", "addbmm": "batch1 batch2",
    "addmv": "mat vec", "addr": "vec1 vec2",
}  # fmt: skip
SCALES = {"self": "beta", "other": "alpha"}

with_tangents = forward_ad._set_fwd_grad_enabled  # a block in which tensors have tangents, or none has


def tangents(args):
    """(args with tensors that have no tangent, the tangents: None where there is none)"""
    primals, found = list(args), [None] * len(args)
    for i, x in enumerate(args):
        if isinstance(x, torch.Tensor):
            primals[i], found[i] = forward_ad.unpack_dual(x)
    return primals, found


def dual(result, tangent):
    return forward_ad.make_dual(result, tangent.to(result.dtype))


def of_call(form, values, given, result):
    """The tangent of a functional form's result; `values` are all of its arguments, `given` their tangents."""
    named = dict(zip(form.names, values))
    if form.schema.name in FACTORS and named.get("where") is None and named.get("op", "add") == "add":
        return linearly(form, values, given, result)
    diagonal = form.op.elementwise and not any(isinstance(x, torch.Tensor) and x.is_complex() for x in values)
    return (by_elements if diagonal else by_gradients)(form, values, given, result)


def linearly(form, values, given, result):
    """The sum of the products with a tangent in a factor's place, and of the tangents of what else is added."""
    factors, told = FACTORS[form.schema.name].split(), dict(zip(form.names, given))
    alone = dict(zip(form.names, values)) | {"initial": None}
    for name in factors and ("self", "bias"):
        if name in told and name not in factors:
            alone[name] = None if name == "bias" else alone[name].new_zeros(())
    parts = []
    for name, tangent in told.items():
        if tangent is not None and name in factors:
            replaced = {**alone, name: tangent}
            placed = [replaced[a.name] for a in form.schema.arguments if not a.keyword_only]
            parts.append(form.of_torch(*placed, **{a: replaced[a] for a in form.names[len(placed) :]}))
        elif tangent is not None:
            scale = alone.get(SCALES.get(name), 1)
            tangent = tangent * (-scale if (form.schema.name, name) == ("subtract", "other") else scale)
            parts.append(tangent.to(result.dtype).expand(result.shape))
    return sum(parts[1:], parts[0])


def by_elements(form, values, given, result):
    """The sum of the tangents, each times the derivative by its argument, which is expanded: nothing is summed."""
    places, once, parts = derived(form), forms.backward(form), []
    for i in [i for i in places if given[i] is not None]:
        alike = [x if given[k] is None else x.to(result.dtype) for k, x in enumerate(values)]
        alike[i] = alike[i].expand(result.shape)
        grad = given[i].to(result.dtype).expand(result.shape)
        parts += once.of_torch(grad, *alike, [k == i for k in places])
    return sum(parts[1:], parts[0])


def by_gradients(form, values, given, result):
    """J t, the derivative of Jᵀg by g turned round. It does not depend on g."""
    places, twice = derived(form), forms.twice_backward(forms.backward(form))
    seen = [given[i] is not None for i in places]
    told = chosen(seen, [given[i] for i in places])
    return twice.of_torch(told, torch.zeros_like(result), *values, seen, [True] + [False] * len(seen))[0]


def of_backward(form, values, given, results):
    """The tangents of what `NAME_backward` of a form returns: it is linear in the gradient that it is given; by an
    argument it has the second derivatives of the form, which `NAME_backward_backward` finds, as they are symmetric."""
    grad, *values, mask = values
    grads, *given, _ = given
    places, once = derived(form), forms.backward(form)
    found = [torch.zeros_like(x) for x in results]
    if grads is not None:
        found = once.of_torch(grads, *values, mask)
    seen = [given[i] is not None for i in places]
    if any(seen):
        told = chosen(seen, [given[i] for i in places])
        more = forms.twice_backward(once).of_torch(told, grad, *values, seen, [False, *mask])
        found = [x + y for x, y in zip(found, more)]
    return found
