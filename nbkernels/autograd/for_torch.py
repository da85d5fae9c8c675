"""`for_torch`: a function written over this library's operations as one step of torch's autograd."""

from __future__ import annotations

import functools

from .. import ops
from ..dispatch import derive, keys
from ..dispatch.schema import REQUIRED
from ..dispatch.traced import flat
from . import on_views
from .tape import is_differentiable, vjp, zeros


def for_torch(function):
    """The function of torch tensors as one step of torch's autograd; derivatives of every order. Its keywords are
    passed on: those that are tensors get gradients, too.

    >>> layer = nbkernels.for_torch(nbkernels.linear)    # doctest: +SKIP
    >>> layer(x, weight, bias=bias).sum().backward()     # doctest: +SKIP
    """
    import torch

    formulas = Formulas.of(function)

    def placed(args, tensors):
        """args with tensors where tensors were."""
        tensors = iter(tensors)
        return [next(tensors) if x is torch.Tensor else x for x in args]

    class Step(torch.autograd.Function):
        @staticmethod
        def forward(context, names, *args):
            tensors = [x for x in args if isinstance(x, torch.Tensor)]
            context.names, context.args = names, [torch.Tensor if isinstance(x, torch.Tensor) else x for x in args]
            called, given = _by_place(function, names), placed(context.args, [x.detach() for x in tensors])
            if formulas is not None and formulas.take(names, tensors):
                context.pull, result = None, called(*given)
            else:
                result, context.pull = vjp(called, *given)
            # the tensor that vjp holds would hold this context, and that vjp, until the garbage collector comes
            detached = [x.detach() if isinstance(x, torch.Tensor) else x for x in flat((result,))]
            context.several = isinstance(result, tuple | list)
            result = tuple(detached) if context.several else detached[0]
            context.save_for_backward(*tensors, *([result] if context.pull is None and formulas.read_result else ()))
            return result

        @staticmethod
        def backward(context, *grads):
            args = placed(context.args, context.saved_tensors)  # torch's error where one has been written since
            grad = grads if context.several else grads[0]
            if not torch.is_grad_enabled():
                if context.pull is not None:
                    return None, *context.pull(grad)
                result = context.saved_tensors[-1] if formulas.read_result else None
                return None, *formulas.gradients(context.names, grad, args, context.needs_input_grad[1:], result)
            # The gradient, a function of grads and args, will itself be differentiated.
            wanted = [i for i, x in enumerate(args) if isinstance(x, torch.Tensor) and is_differentiable(x.detach())]
            called, several = _by_place(function, context.names), context.several

            def again(*values):
                _, pull = vjp(called, *values[len(grads) :])
                found = pull(values[: len(grads)] if several else values[0])
                return tuple(zeros(args[i], *args[i].shape) if found[i] is None else found[i] for i in wanted)

            found = iter(for_torch(again)(*grads, *args))
            return None, *(next(found) if i in wanted else None for i in range(len(args)))

    @functools.wraps(function, updated=())
    def step(*args, **keywords):
        return Step.apply(tuple(keywords), *args, *keywords.values())

    return step


class Formulas:
    """The derivative of one operation of this library, for tensors in the CPU's memory: it takes no tape."""

    def __init__(self, op, derivative):
        self.op, self.derivative = op, derivative
        self.usual = [None if a.value is REQUIRED else a.value for a in op.arguments]
        self.read_result = "result" in derive.read(op, derivative, (True,) * len(op.derived))

    @classmethod
    def of(cls, function):
        """The Formulas of a public function; None where its op has no single result with a derivative of its own."""
        op = getattr(function, "op", None)
        if getattr(op, "library", None) is not ops.LIBRARY or op.function is not function:
            return None
        derivative, alone = derive.derivative(op, keys.CPU), len(op.schema.returns) == 1
        own = derivative.row is not None and derivative.reason != keys.COMPOSITE_IMPLICIT
        return cls(op, derivative) if own and alone and op.output_differentiability is True else None

    def take(self, names, tensors):
        """Whether they are for a call with keywords of these names."""
        return all(name in self.op.names for name in names) and all(x.is_cpu for x in tensors)

    def gradients(self, names, grad, args, wanted, result):
        """The gradient of each argument of a call, None where `wanted` is False. The last arguments are keywords, with
        these names."""
        op, places = self.op, [*range(len(args) - len(names)), *map(self.op.names.index, names)]
        values, mask = [*self.usual], [False] * len(self.usual)
        for i, x, keep in zip(places, args, wanted):
            convert = None if x is None else op.converters[i]
            x = x if convert is None else convert(op.schema.name, x)
            values[i], mask[i] = tuple(x) if type(x) is list else x, keep
        chosen = [mask[i] for i in op.derived]
        found = dict(zip(op.derived, on_views.gradients(op, self.derivative, grad, values, chosen, result)))
        return [ops.copy(found[i]) if found.get(i) is grad else found.get(i) for i in places]


def _by_place(function, names):
    """The function of all its arguments by place, those of the last names being keywords."""
    if not names:
        return function
    count = len(names)
    return lambda *args: function(*args[:-count], **dict(zip(names, args[-count:])))
