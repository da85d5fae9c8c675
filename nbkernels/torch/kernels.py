"""Kernels of the torch ops: the library's functions, and its rules of shapes and dtypes."""

from __future__ import annotations

import torch

from .gradients import spec


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
