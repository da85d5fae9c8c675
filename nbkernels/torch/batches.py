"""vmap: the batch as one call where broadcasting can say it, else one call after the other."""

from __future__ import annotations

import torch


def first(x, dim):
    """A tensor with its batch dimension in front."""
    return x if dim is None else x.movedim(dim, 0)


def rule(form):
    name = form.op.schema.name
    if form.op.elementwise:
        return elementwise(form)
    return PRODUCTS[name](form) if name in PRODUCTS else one_by_one(form)


def elementwise(form):
    """The batch is the first dimension of a result; operands that have fewer dimensions get some behind it."""

    def run(info, in_dims, *args, **keywords):
        ranks = [x.ndim - (d is not None) for x, d in zip(args, in_dims) if isinstance(x, torch.Tensor)]
        rank = max(ranks, default=0)

        def aligned(x, dim):
            if dim is None or not isinstance(x, torch.Tensor):
                return x
            x = x.movedim(dim, 0)
            return x.reshape(x.shape[0], *(1,) * (rank + 1 - x.ndim), *x.shape[1:])

        return form.of_torch(*map(aligned, args, in_dims), **keywords), 0

    return run


def one_by_one(form):
    """Calls for each of the batch, whose results are stacked."""

    def run(info, in_dims, *args, **keywords):
        def picked(x, dim, i):
            if isinstance(dim, list | tuple):
                return [picked(part, d, i) for part, d in zip(x, dim)]
            if dim is None:
                return x
            return x.select(dim, i) if info.batch_size else x.new_zeros(x.movedim(dim, 0).shape[1:])

        calls = range(info.batch_size or 1)  # one call tells the shapes of an empty batch
        each = [form.of_torch(*(picked(x, d, i) for x, d in zip(args, in_dims)), **keywords) for i in calls]
        if isinstance(each[0], list):
            return [stacked(parts, info) for parts in zip(*each)], [0] * len(each[0])
        return stacked(each, info), 0

    return run


def stacked(parts, info):
    return torch.stack(list(parts))[: info.batch_size]


def mm(form):
    """A batch of both factors is a bmm, of one of them a matmul, which broadcasts; each product has the bits of mm."""

    def run(info, in_dims, self, mat2, **keywords):
        by = torch.ops.nbkernels.matmul.default
        return by(first(self, in_dims[0]), first(mat2, in_dims[1]), **keywords), 0

    return run


def linear(form):
    """A batch of inputs alone is one more leading dimension."""
    others = one_by_one(form)

    def run(info, in_dims, *args, **keywords):
        if any(d is not None for d in in_dims[1:]):
            return others(info, in_dims, *args, **keywords)
        return form.of_torch(first(args[0], in_dims[0]), *args[1:], **keywords), 0

    return run


PRODUCTS = {"mm": mm, "linear": linear}
