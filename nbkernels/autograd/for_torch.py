"""`for_torch`: a function written over this library's operations as one step of torch's autograd."""

from __future__ import annotations

import functools

from ..dispatch.traced import flat
from .tape import is_differentiable, vjp, zeros


def for_torch(function):
    """The function of torch tensors as one step of torch's autograd; derivatives of every order. Its keywords are
    passed on: those that are tensors get gradients, too.

    >>> layer = nbkernels.for_torch(nbkernels.linear)    # doctest: +SKIP
    >>> layer(x, weight, bias=bias).sum().backward()     # doctest: +SKIP
    """
    import torch

    def placed(args, tensors):
        """args with tensors where tensors were."""
        tensors = iter(tensors)
        return [next(tensors) if x is torch.Tensor else x for x in args]

    class Step(torch.autograd.Function):
        @staticmethod
        def forward(context, names, *args):
            tensors = [x for x in args if isinstance(x, torch.Tensor)]
            context.save_for_backward(*tensors)
            context.names, context.args = names, [torch.Tensor if isinstance(x, torch.Tensor) else x for x in args]
            result, context.pull = vjp(_by_place(function, names), *placed(context.args, [x.detach() for x in tensors]))
            # the tensor that vjp holds would hold this context, and that vjp, until the garbage collector comes
            detached = [x.detach() if isinstance(x, torch.Tensor) else x for x in flat((result,))]
            return tuple(detached) if isinstance(result, tuple | list) else detached[0]

        @staticmethod
        def backward(context, *grads):
            args = placed(context.args, context.saved_tensors)  # torch's error where one has been written since
            if not torch.is_grad_enabled():
                return None, *context.pull(grads[0] if len(grads) == 1 else grads)
            # The gradient, a function of grads and args, will itself be differentiated.
            wanted = [i for i, x in enumerate(args) if isinstance(x, torch.Tensor) and is_differentiable(x.detach())]
            called = _by_place(function, context.names)

            def again(*values):
                _, pull = vjp(called, *values[len(grads) :])
                found = pull(values[0] if len(grads) == 1 else values[: len(grads)])
                return tuple(zeros(args[i], *args[i].shape) if found[i] is None else found[i] for i in wanted)

            found = iter(for_torch(again)(*grads, *args))
            return None, *(next(found) if i in wanted else None for i in range(len(args)))

    @functools.wraps(function, updated=())
    def step(*args, **keywords):
        return Step.apply(tuple(keywords), *args, *keywords.values())

    return step


def _by_place(function, names):
    """The function of all its arguments by place, those of the last names being keywords."""
    if not names:
        return function
    count = len(names)
    return lambda *args: function(*args[:-count], **dict(zip(names, args[-count:])))
