"""Every op of the table, told to torch: kernels, shapes, derivatives, batches, autocast."""

from __future__ import annotations

import torch

from .. import ops
from . import autograd, batches, forms, gradients
from .autocast import LOWER, lowered
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


def differentiate(form, kernel):
    LIBRARY.impl(form.name, kernel, "Autograd", with_keyset=True)


def batch(form, rule):
    torch.library.register_vmap(f"{forms.NAMESPACE}::{form.name}", rule, lib=LIBRARY)


# -- kernels and shapes -----------------------------------------------------------------------------------------------


def kernel_of(form):
    """The op's public function on tensors; what it returns is no argument."""
    schema = form.op.in_place.schema if form.written == "self" else form.op.schema
    function, alike = form.op.form(schema), form.alike

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
        tensors = [x for x in values if isinstance(x, torch.Tensor)]
        like = next((x for x in tensors if x.ndim), tensors[0])  # 0-d ones may join any device
        dtype = getattr(torch, result.dtype.name)
        if result.strides is None:
            return torch.empty(result.shape, dtype=dtype, device=like.device)
        steps = [step // result.dtype.itemsize for step in result.strides]
        return torch.empty_strided(result.shape, steps, dtype=dtype, device=like.device)

    def writing_fake(*args, **keywords):
        told(form.values(args, keywords))

    return writing_fake if form.written else functional_fake


# -- all of them ------------------------------------------------------------------------------------------------------


def register(op):
    public = ops.OPERATIONS
    for form in forms.forms(op, public):
        define(form, kernel_of(form), fake_of(form))
        if form.written:
            differentiate(form, autograd.of_writing(form))
            continue
        batch(form, batches.rule(form))
        if op.schema.name in LOWER:
            for device in DEVICES:
                LIBRARY.impl(form.name, lowered(form, device.lower()), f"Autocast{device}")
        if op.output_differentiability is False:
            differentiate(form, autograd.of_flat(form))
            continue
        once, twice = gradients.kernels(form)
        behind = forms.backward(form)
        last = forms.twice_backward(behind)
        define(behind, *once)
        define(last, *twice)
        differentiate(form, autograd.of_call(form))
        differentiate(behind, autograd.of_backward(form))
        differentiate(last, autograd.of_twice_backward(form))
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
    if hasattr(getattr(ops, name), "accumulate"):
        function.reduce, function.accumulate = reduce_of(name), accumulate_of(name)
        for method in (function.reduce, function.accumulate):
            method.__qualname__, method.__module__ = f"{name}.{method.__name__}", function.__module__
    return function


def reduce_of(name):
    def reduce(self, axis=0, dtype=None, keepdims=False, initial=None, where=None):
        axes = range(self.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        named = dict(keepdims=keepdims, initial=initial, dtype=dtype)
        return torch.ops.nbkernels.reduce(self, name, list(axes), where, **named)

    return reduce


def accumulate_of(name):
    def accumulate(self, axis=0, dtype=None):
        return torch.ops.nbkernels.accumulate(self, name, [axis], dtype=dtype)

    return accumulate


FUNCTIONS = {name: public(name) for name in ops.OPERATIONS}
