"""Every op of the table, told to torch: kernels, shapes, derivatives, batches, autocast."""

from __future__ import annotations

import torch

from .. import ops
from . import batches, forms, gradients
from .autocast import LOWER, autocast
from .gradients import spec

LIBRARY = torch.library.Library(forms.NAMESPACE, "DEF")
DEVICES = "CPU", "CUDA"
TAGS = tuple(getattr(torch.Tag, name) for name in ("pt2_compliant_tag", "needs_exact_strides")
             if hasattr(torch.Tag, name))  # fmt: skip


def define(form, kernel, fake):
    LIBRARY.define(str(form.schema), tags=TAGS)
    for device in DEVICES:
        LIBRARY.impl(form.name, kernel, device)
    torch.library.register_fake(f"{forms.NAMESPACE}::{form.name}", fake, lib=LIBRARY)


def differentiate(form, backward, setup_context):
    name = f"{forms.NAMESPACE}::{form.name}"
    torch.library.register_autograd(name, backward, setup_context=setup_context, lib=LIBRARY)


def batch(form, rule):
    torch.library.register_vmap(f"{forms.NAMESPACE}::{form.name}", rule, lib=LIBRARY)


# -- kernels and shapes -----------------------------------------------------------------------------------------------


def kernel_of(form):
    """The op's public function on tensors; what it returns is no argument."""
    function, alike = form.op.form(functional(form)), form.alike

    def functional_kernel(*args, **keywords):
        if not keywords and len(args) <= alike:  # 5 us less
            result = function(*args)
            return result.clone() if result is args[0] else result
        values = form.values(args, keywords)
        result = call(function, form, values)
        return result.clone() if any(result is x for x in values) else result

    def writing_kernel(*args, **keywords):
        values = form.values(args, keywords)
        if form.written == "out":
            call(function, form, values, out=values[form.names.index("out")])
        else:
            call(function, form, values)

    return writing_kernel if form.written else functional_kernel


def functional(form):
    """The schema of the table that a form was made of."""
    found = form.op.schema if form.written != "self" else form.op.in_place.schema
    return found


def call(function, form, values, **out):
    args = form.arguments(values)
    plain = [x for a, x in zip(form.op.arguments, args) if not a.keyword_only]
    keywords = {a.name: x for a, x in zip(form.op.arguments, args) if a.keyword_only}
    return function(*plain, **keywords, **out)


def fake_of(form):
    """What the op's rule says of shapes and dtypes, as an empty tensor."""
    op = form.op

    def told(values):
        specs = [spec(x) if isinstance(x, torch.Tensor) else x for x in form.arguments(values)]
        name = op.schema.name
        specs = [x if convert is None else convert(name, x) for convert, x in zip(op.converters, specs)]
        return op.structured(*specs)

    def functional_fake(*args, **keywords):
        values = form.values(args, keywords)
        result = told(values)
        like = next(x for x in values if isinstance(x, torch.Tensor))
        dtype = getattr(torch, result.dtype.name)
        if result.strides is None:
            return torch.empty(result.shape, dtype=dtype, device=like.device)
        steps = [step // result.dtype.itemsize for step in result.strides]
        return torch.empty_strided(result.shape, steps, dtype=dtype, device=like.device)

    def writing_fake(*args, **keywords):
        told(form.values(args, keywords))

    return writing_fake if form.written else functional_fake


def autograd_of_writing(form):
    """A form that writes, where an argument requires grad: self takes the result of the functional form, which torch
    sees; out is refused, as torch's own is."""
    overload = form.schema.overload.removesuffix("out").removesuffix("_")
    function = next(f for f in forms.forms(form.op, ()) if f.schema.overload == overload and not f.written)

    def kernel(*args, **keywords):
        values = form.values(args, keywords)
        tensors = [x for x in values if isinstance(x, torch.Tensor)]
        if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
            if form.written == "out":
                raise RuntimeError(f"nbkernels::{form.name}: out= has no derivative, and an argument requires grad")
            result = function.of_torch(*args, **{key.rstrip("_"): x for key, x in keywords.items()})
            if result.is_complex() and not args[0].is_complex():
                raise TypeError(f"nbkernels::{form.name}: the result is {result.dtype}, and self {args[0].dtype}")
            args[0].copy_(result)
            return
        with torch._C._AutoDispatchBelowAutograd():
            form.of_torch(*args, **keywords)

    return kernel


# -- all of them ------------------------------------------------------------------------------------------------------


def register(op):
    public = ops.OPERATIONS
    for form in forms.forms(op, public):
        define(form, kernel_of(form), fake_of(form))
        if form.written:
            LIBRARY.impl(form.name, autograd_of_writing(form), "Autograd")
            continue
        batch(form, batches.rule(form))
        if op.schema.name in LOWER:
            for device in DEVICES:
                LIBRARY.impl(form.name, autocast(form, device.lower()), f"Autocast{device}")
        if op.output_differentiability is False:
            differentiate(form, *gradients.of_flat(form))
            continue
        once, twice = gradients.kernels(form)
        behind = forms.backward(form)
        last = forms.twice_backward(behind)
        define(behind, *once)
        define(last, *twice)
        differentiate(form, *gradients.of_call(form))
        differentiate(behind, *gradients.of_backward(form))
        differentiate(last, *gradients.of_twice_backward(form))
        batch(behind, batches.one_by_one(behind))
        batch(last, batches.one_by_one(last))


for _op in ops.LIBRARY:
    register(_op)


# -- the public functions ---------------------------------------------------------------------------------------------


def public(name):
    """The function of an op: as nbkernels has it, of tensors."""
    packet = getattr(torch.ops.nbkernels, name)
    if name.endswith("_"):

        def function(self, *args, **keywords):
            packet(self, *args, **{forms.renamed(key): x for key, x in keywords.items()})
            return self
    else:

        def function(*args, out=None, **keywords):
            if out is None:
                return packet(*args, **keywords)
            packet(*args, **{forms.renamed(key): x for key, x in keywords.items()}, out=out)
            return out

    function.__name__ = function.__qualname__ = name
    function.__module__ = "nbkernels.torch"
    function.__doc__ = getattr(ops, name).__doc__
    return function


FUNCTIONS = {name: public(name) for name in ops.OPERATIONS}
