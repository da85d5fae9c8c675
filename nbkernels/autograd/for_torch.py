"""`for_torch`: a function written over this library's operations as one step of torch's autograd."""

from __future__ import annotations

import functools

from .. import ops
from ..dispatch import keys, views
from ..dispatch.traced import Traced, flat
from . import on_views
from .notes import Notes
from .places import zeros
from .vjp import has_own, op_of, vjp


def for_torch(function):
    """The function of torch tensors as one step of torch's autograd; derivatives of every order, backwards and
    forwards, also by torch.func, whose vmap calls it for one of a batch after the other. Its keywords are passed on:
    those that are tensors have derivatives, too.

    >>> layer = nbkernels.for_torch(nbkernels.linear)    # doctest: +SKIP
    >>> layer(x, weight, bias=bias).sum().backward()     # doctest: +SKIP
    """
    import torch

    op, level, forward_ad = op_of(function), torch._C._functorch.maybe_current_level, torch.autograd.forward_ad

    def placed(args, tensors):
        """args with tensors where tensors were."""
        tensors = iter(tensors)
        return [next(tensors) if x is torch.Tensor else x for x in args]

    class Step(torch.autograd.Function):
        @staticmethod
        def forward(context, names, *args):
            tensors = [x for x in args if isinstance(x, torch.Tensor)]
            context.names, context.args = names, [torch.Tensor if isinstance(x, torch.Tensor) else x for x in args]
            called, notes = _by_place(function, names), op and op.table.kept(for_torch, notes_of, op)
            usual = notes and forward_ad._current_level < 0 and set(op.names).issuperset(names)
            if usual and False not in [x.is_cpu for x in tensors]:  # it takes no tape; grad is off in here
                context.pull, context.notes, context.several, result = None, notes, False, called(*args)
                context.save_for_backward(*tensors, *([result] if notes.reads_result else ()))
                return result.detach() if [x for x in tensors if x is result] else result
            result, context.pull = vjp(called, *placed(context.args, [x.detach() for x in tensors]))
            # the tensor that vjp holds would hold this context, and that vjp, until the garbage collector comes
            detached = [x.detach() if isinstance(x, torch.Tensor) else x for x in flat((result,))]
            context.several = isinstance(result, tuple | list)
            context.save_for_backward(*tensors)
            context.save_for_forward(*tensors)
            context.made = list(map(_kind, detached))
            return tuple(detached) if context.several else detached[0]

        @staticmethod
        def backward(context, *grads):
            args = placed(context.args, context.saved_tensors)  # torch's error where one has been written since
            grad = grads if context.several else grads[0]
            if not torch.is_grad_enabled() and forward_ad._current_level < 0:
                if context.pull is not None:
                    return None, *context.pull(grad)
                notes, wanted = context.notes, context.needs_input_grad[1:]
                result = context.saved_tensors[-1] if notes.reads_result else None
                return None, *_by_formulas(notes, context.names, grad, args, wanted, result)
            return None, *_gradients(_by_place(function, context.names), args, grads, context.several)

        @staticmethod
        def jvp(context, _, *tangents):
            args = placed(context.args, context.saved_tensors)
            found = _tangents(_by_place(function, context.names), args, context.made, context.several, tangents)
            return tuple(found) if context.several else found[0]

    class Transformed(torch.autograd.Function):
        """A step at the levels of torch.func, each of which has a context of its own, and all of them one call."""

        @staticmethod
        def forward(names, *args):
            result = _by_place(function, names)(*args)
            return tuple(result) if isinstance(result, list) else result

        @staticmethod
        def setup_context(context, inputs, output):
            context.names, *args = inputs
            context.args = [torch.Tensor if isinstance(x, torch.Tensor) else x for x in args]
            context.several, tensors = isinstance(output, tuple), [x for x in args if isinstance(x, torch.Tensor)]
            context.save_for_backward(*tensors)
            context.save_for_forward(*tensors)
            context.made = list(map(_kind, flat((output,))))

        @staticmethod
        def backward(context, *grads):
            args = placed(context.args, context.saved_tensors)
            return None, *_gradients(_by_place(function, context.names), args, grads, context.several)

        jvp = Step.jvp

        @staticmethod
        def vmap(info, dims, names, *args):
            each = []
            for i in range(info.batch_size):
                picked = [x if d is None else x.select(d, i) for x, d in zip(args, dims[1:])]
                each.append(Transformed.apply(names, *picked))
            if isinstance(each[0], tuple):
                return tuple(torch.stack(parts) for parts in zip(*each)), (0,) * len(each[0])
            return torch.stack(each), 0

    @functools.wraps(function, updated=())
    def step(*args, **keywords):
        return (Step if level() is None else Transformed).apply(tuple(keywords), *args, *keywords.values())

    return step


def _floats(x):
    """Whether an argument is a tensor that may have a derivative."""
    return hasattr(x, "is_complex") and (x.is_floating_point() or x.is_complex())


def _zeros_of(x):
    """Zeros as x, which no tape watches."""
    shape = views.spec(x).shape if x is not None else ()
    while isinstance(x, Traced):
        x = x.value
    return x if x is None else zeros(x, *shape)


def _gradients(called, args, grads, several):
    """Gradients of a function's arguments, by a step of its own: a function of grads and args, which may itself be
    differentiated."""
    wanted, count = [i for i, x in enumerate(args) if _floats(x)], len(grads)

    def again(*values):
        _, pull = vjp(called, *values[count:])
        found = pull(values[:count] if several else values[0])
        return tuple(_zeros_of(values[count + i]) if found[i] is None else found[i] for i in wanted)

    found = iter(for_torch(again)(*grads, *args))
    return [next(found) if i in wanted else None for i in range(len(args))]


def _kind(x):
    """Return the shape, dtype and device of a tensor; None where x is no tensor."""
    return (tuple(x.shape), x.dtype, x.device) if hasattr(x, "is_complex") else None


def _tangents(called, args, made, several, tangents):
    """The tangents of a function's results, given those of its arguments, likewise: what `pull` does to the gradients
    of the results is linear in them, and turned round it is what the function does to tangents."""
    import torch

    seeds = [x and torch.zeros(x[0], dtype=x[1], device=x[2]) for x in made]
    given = [i for i, x in enumerate(tangents) if x is not None]
    whole = [torch.autograd.forward_ad.unpack_dual(x).primal if _floats(x) else x for x in args]

    def pulled(*values):
        grads = values[: len(seeds)]
        _, pull = vjp(called, *values[len(seeds) :])
        found = pull(grads if several else grads[0])
        return *(found[i] for i in given), *grads  # the last are there for the tape to see something

    def pushed(*values):
        _, push = vjp(pulled, *values[len(given) :])
        found = push((*values[: len(given)], *[None] * len(seeds)))
        return tuple(
            _zeros_of(x) if part is None else part for x, part in zip(values[len(given) :], found[: len(seeds)])
        )

    found = for_torch(pushed)(*(tangents[i] for i in given), *seeds, *whole)
    return [x if _floats(x) else None for x in found]


def notes_of(op):
    """Notes of calls of an op whose derivative takes no tape; False where it has none of its own."""
    notes = Notes.of(op, keys.CPU, (True,) * len(op.derived))
    return has_own(op, notes.derivative) and notes


def _by_formulas(notes, names, grad, args, wanted, result):
    """The gradient of each argument of a call of tensors in the CPU's memory, None where `wanted` is False. The last
    arguments are keywords, with these names."""
    op = notes.op
    places, values, mask = [*range(len(args) - len(names)), *map(op.names.index, names)], [*notes.usual], {}
    for i, x, keep in zip(places, args, wanted):
        convert = None if x is None else op.converters[i]
        x = x if convert is None else convert(op.schema.name, x)
        values[i], mask[i] = tuple(x) if type(x) is list else x, keep
    chosen = [mask.get(i, False) for i in op.derived]
    found = dict(zip(op.derived, on_views.gradients(op, notes.derivative, grad, values, chosen, result)))
    return [ops.copy(found[i]) if found.get(i) is grad else found.get(i) for i in places]


def _by_place(function, names):
    """The function of all its arguments by place, those of the last names being keywords."""
    if not names:
        return function
    count = len(names)
    return lambda *args: function(*args[:-count], **dict(zip(names, args[-count:])))
