"""Nodes of torch's autograd for the ops, one for each call.
The node that torch.library.register_autograd makes in torch 2.13 refuses torch.func.grad, and takes 20 us more.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager

import torch
from torch.autograd import forward_ad

from ..dispatch import derive, keys
from ..dispatch.schema import REQUIRED
from . import forms, forward
from .gradients import chosen, derived, first, returned
from .kernels import kernel_of

below, modes, transforms = (torch._C._AutoDispatchBelowAutograd, torch._C._len_torch_dispatch_stack,
                            torch._C._functorch.maybe_current_level)  # fmt: skip
AFTER = torch._C._after_autograd_keyset
THIRD = "torch's ops have no derivatives of third order"


class Blank(tuple):
    """What is kept of a tensor whose elements no formula reads: shape, strides, dtype and device."""

    @classmethod
    def of(cls, x):
        return cls((tuple(x.shape), x.stride(), x.dtype, x.device))

    def tensor(self):
        """One like it, of whatever is in its memory."""
        shape, strides, dtype, device = self
        return torch.empty_strided(shape, strides, dtype=dtype, device=device)


def keep(ctx, values, read=None):
    """Keep a call's arguments, tensors where autograd looks for writes; `read` are places of what formulas read."""
    kept, saved = list(values), []
    for i, x in enumerate(values):
        if isinstance(x, torch.Tensor):
            if read is None or i in read:
                kept[i] = torch.Tensor
                saved.append(x)
            else:
                kept[i] = Blank.of(x)
    ctx.save_for_backward(*saved)
    ctx.values = kept


def kept(ctx):
    tensors = iter(ctx.saved_tensors)
    return [next(tensors) if x is torch.Tensor else x.tensor() if type(x) is Blank else x for x in ctx.values]


def node(form, setup, backward, kernel=None):
    """The step of torch's autograd of a functional form's calls: apply(keyset, keywords, how many tensors of a list are
    the first argument, *args).

    setup(ctx, values, needs, result) keeps what backward(ctx, *gradients) asks for; that gives a gradient for each
    argument of the schema, and None for the rest. Without a keyset, which says what is left for torch's dispatcher to
    do, `kernel` is called at once.
    """
    lists = [i for i, a in enumerate(form.schema.arguments) if a.type == forms.TENSORS]
    several = form.schema.returns[0].type == forms.TENSORS

    class Step(torch.autograd.Function):
        @staticmethod
        def forward(ctx, keyset, keywords, count, *args):
            args = (list(args[:count]), *args[count:]) if lists else args
            if keyset is None:
                result = kernel(*args, **keywords)
            else:
                with below(), lower_levels(grad=True):
                    result = form.of_torch.redispatch(keyset & AFTER, *args, **keywords)
            setup(ctx, form.values(args, keywords), ctx.needs_input_grad[3:], result)
            return tuple(result) if several else result

        @staticmethod
        def backward(ctx, *grads):
            return (None, None, None, *backward(ctx, *grads))

    Step.__name__ = Step.__qualname__ = f"nbkernels::{form.name}"
    return Step


def kernel(form, Step, tangent=None):
    """The autograd kernel of a functional form, whose node is Step; tangent(values, their tangents, result) gives that
    of the result, or one for each part of a list."""
    lists = [i for i, a in enumerate(form.schema.arguments) if a.type == forms.TENSORS]
    several = form.schema.returns[0].type == forms.TENSORS
    fill = tuple(None if a.value is REQUIRED else a.value for a in form.schema.arguments if not a.keyword_only)
    inside = super(torch.autograd.Function, Step).apply  # at a level of torch.func, where Step.apply would add its own

    def run(keyset, *args, **keywords):
        args += fill[len(args) :]  # torch leaves out what is as its default
        flat = (*args[0], *args[1:]) if lists else args
        if forward_ad._current_level >= 0:
            primals, given = forward.tangents(flat)
            if any(x is not None for x in given):
                return duals(keyset, args, keywords, primals, given)
        return plain(keyset, args, keywords, flat)

    def duals(keyset, args, keywords, primals, given):
        if tangent is None:
            raise RuntimeError(f"nbkernels::{form.name}: {THIRD}")
        with forward.with_tangents(False):
            result = plain(keyset, args, keywords, args)
        values = form.values(primals, keywords)
        found = tangent(values, given + [None] * (len(values) - len(given)), result)
        return list(map(forward.dual, result, found)) if several else forward.dual(result, found)

    def plain(keyset, args, keywords, flat):
        if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in flat):
            given = keyset, keywords, len(args[0]) if lists else 0, *flat
            result = Step.apply(*given) if transforms() is None else in_transform(inside, given)
            return list(result) if several else result
        with below(), lower_levels(torch.is_grad_enabled()):
            return form.of_torch.redispatch(keyset & AFTER, *args, **keywords)

    return run


@contextmanager
def lower_levels(grad):
    """The levels of torch.func below this one go by the mode of grad, which is off where a node is made, and by that of
    tangents, which is off where those of a result are."""
    if transforms() is None:
        yield
    else:
        with torch.set_grad_enabled(grad), forward.with_tangents(True):
            yield


def in_transform(apply, given):
    """A node at the level of torch.func that this kernel is called for."""
    from torch._functorch.utils import enable_single_level_autograd_function

    with enable_single_level_autograd_function():
        return apply(*given)


def unwatched(grad):
    """Whether gradients may be computed at once: nothing differentiates, traces or batches them."""
    seen = torch.is_grad_enabled() or modes() or transforms() is not None or forward_ad._current_level >= 0
    return not seen and type(grad) is torch.Tensor


def spread(count, places, found):
    """Gradients at the places of their arguments."""
    result = [None] * count
    for i, x in zip(places, found):
        result[i] = x
    return result


@functools.cache
def of_call(form):
    """The node of a functional form."""
    op, places, once = form.op, derived(form), forms.backward(form)
    count = sum(not a.keyword_only for a in form.schema.arguments)

    @functools.cache
    def read(mask):
        """Places of what the derivatives that are asked for read; None where that is anything."""
        names = derive.read(op, derive.derivative(op, keys.CPU), mask)
        return None if "result" in names else {i for i, name in zip(form.places, op.names) if name in names}

    def setup(ctx, values, wanted, result):
        ctx.mask = tuple(wanted[i] for i in places)
        keep(ctx, values, read(ctx.mask))

    def backward(ctx, grad):
        values, mask = kept(ctx), ctx.mask
        if unwatched(grad):
            return spread(count, places, map(returned, first(form, mask, grad, values)))
        return spread(count, chosen(mask, places), once.of_torch(grad, *values, mask))

    return node(form, setup, backward, kernel_of(form))


def of_backward(form):
    """The node of its `backward` form."""
    places, once = derived(form), forms.backward(form)
    twice, own = forms.twice_backward(once), [0, *(i + 1 for i in places)]

    def setup(ctx, values, wanted, result):
        keep(ctx, values)
        ctx.mask = [wanted[i] for i in own]

    def backward(ctx, *grads):
        (grad, *values, inner), mask = kept(ctx), ctx.mask
        return spread(len(values) + 2, chosen(mask, own), twice.of_torch(list(grads), grad, *values, inner, mask))

    return node(once, setup, backward)


def of_twice_backward(form):
    """The node of the `twice_backward` form, whose own derivative is refused."""
    twice = forms.twice_backward(forms.backward(form))

    def backward(ctx, *grads):
        raise RuntimeError(f"nbkernels::{form.name}: {THIRD}")

    return node(twice, lambda ctx, values, wanted, result: None, backward)


def of_flat(form):
    """The kernel of a form whose result no gradient goes back through."""

    def run(keyset, *args, **keywords):
        with below(), torch.no_grad():
            return form.of_torch.redispatch(keyset & AFTER, *args, **keywords)

    return run


def of_writing(form):
    """The kernel of a form that writes: where an argument requires grad or has a tangent self takes the result of the
    functional form, which torch sees; out is refused, as torch's own is."""
    overload = form.schema.overload.removesuffix("out").removesuffix("_")
    function = next(f for f in forms.forms(form.op, ()) if f.schema.overload == overload and not f.written)

    def run(keyset, *args, **keywords):
        tensors = [x for x in (*args, *keywords.values()) if isinstance(x, torch.Tensor)]
        tangents = forward_ad._current_level >= 0 and any(x is not None for x in forward.tangents(tensors)[1])
        if not (tangents or (torch.is_grad_enabled() and any(x.requires_grad for x in tensors))):
            with below():
                form.of_torch.redispatch(keyset & AFTER, *args, **keywords)
            return
        if form.written == "out":
            has = "has a tangent" if tangents else "requires grad"
            raise RuntimeError(f"nbkernels::{form.name}: out= has no derivative, and an argument {has}")
        result = function.of_torch(*args, **{key.rstrip("_"): x for key, x in keywords.items()})
        if result.is_complex() and not args[0].is_complex():
            raise TypeError(f"nbkernels::{form.name}: the result is {result.dtype}, and self {args[0].dtype}")
        args[0].copy_(result)

    return run
