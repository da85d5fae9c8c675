"""Gradients of chains of operations: `vjp`, `GradTape`, and `for_torch`, which makes torch's autograd see them.

Each operation's derivative stands beside its schema; a tape notes the calls of operations on the arrays that it
watches, and walks them backwards. A composite without a derivative of its own is noted by its parts.
"""

from __future__ import annotations

from . import ops
from .dispatch import views
from .dispatch.errors import ArgumentError, describe
from .dispatch.traced import Traced, bare, flat


class GradTape:
    """Notes what is done to the arrays that it watches, until its block ends.

    >>> import numpy as np, nbkernels
    >>> with nbkernels.GradTape() as tape:
    ...     x = tape.watch(np.array([1.0, 2.0, 3.0]))
    ...     y = nbkernels.sum_to(nbkernels.multiply(x, x), ())
    >>> tape.gradient(y, x)
    array([2., 4., 6.])
    """

    def __init__(self):
        self.calls, self.recording = [], True

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.recording = False

    def watch(self, x):
        """x as the operations take it, for the tape to see; what they return is watched as well, its `value` plain."""
        if not views.is_array(x):
            raise ArgumentError(f"GradTape.watch: an array is wanted, not {describe(x)}")
        return Watched(x, self)

    def gradient(self, target, sources, grad=None):
        """Gradients of `target` by each of `sources`, as arrays: None where it does not depend on one.

        `sources` is a watched array or a tuple or list of them, `grad` the gradient of what target goes into: ones,
        where target has one element, if it is left out.
        """
        alone = not isinstance(sources, tuple | list)
        sources = (sources,) if alone else sources
        for x in (target, *sources):
            if not (isinstance(x, Watched) and x.mode is self):
                raise ArgumentError("GradTape.gradient: target and sources are arrays that this tape watches")
        grads = {id(target): _seed(target) if grad is None else grad}
        given = getattr(views.spec(grads[id(target)]), "shape", None)
        if given is None or tuple(given) != target.shape:
            what = describe(grad) if given is None else f"of shape {tuple(given)}"
            raise ArgumentError(f"GradTape.gradient: grad is {what}, and the target an array of shape {target.shape}")
        for op, args, result in reversed(self.calls):
            passed = grads.get(id(result))
            if passed is not None:
                for x, part in zip((args[i] for i in op.keyed), _backwards(op, passed, args), strict=True):
                    if part is not None:
                        grads[id(x)] = ops.add(grads[id(x)], part) if id(x) in grads else part
        found = tuple(grads.get(id(x)) for x in sources)
        return found[0] if alone else found

    # -- what the dispatcher calls, as dispatch/traced.py says ---------------------------------------------------------

    def call(self, op, row, args, out, in_place):
        if not self.recording:
            return op.call(list(map(bare, args)), bare(out), in_place)
        if out is not None:
            raise ArgumentError(f"{op.schema.name}: a tape cannot go back through out= and in-place calls")
        for x in flat(args):
            if isinstance(x, Traced) and not (isinstance(x, Watched) and x.mode is self):
                raise ArgumentError(f"{op.schema.name}: one of its arrays is watched by another tape, or a view")
        result = Watched(op.call(list(map(bare, args))), self)
        self.calls.append((op, args, result))
        return result

    def apply(self, function, args, out, where, shape, dtypes):
        raise ArgumentError(f"{function.__name__}: a function made by elementwise has no derivative")


class Watched(Traced):
    """An array that a tape sees."""

    __slots__ = ()

    def __getitem__(self, index):
        raise ArgumentError("GradTape: views of watched arrays have no derivative; take them before `watch`")

    def __getattr__(self, name):
        raise AttributeError(f"an array that a tape watches has no {name!r}: its `value` is the plain array")

    def __repr__(self):
        return f"Watched({self.value!r})"


def _seed(target):
    if any(size != 1 for size in target.shape):
        raise ArgumentError(f"GradTape.gradient: the target has shape {target.shape}; pass grad")
    return ops.pow(target.value, 0)  # 1 of its kind and dtype, of a NaN too


def _backwards(op, grad, args):
    """The gradients of a call's tensor arguments, None where one is not watched."""
    tensors = [args[i] for i in op.keyed]
    if any(isinstance(x, tuple | list) for x in tensors):
        raise ArgumentError(f"{op.schema.name}: a tape cannot go back through lists of arrays")
    keywords = {a.name: bare(x) for a, x in zip(op.arguments, args, strict=True) if a.keyword_only}
    plain = [bare(x) for a, x in zip(op.arguments, args, strict=True) if not a.keyword_only]
    return op.gradient(grad, *plain, output_mask=[isinstance(x, Watched) for x in tensors], **keywords)


def vjp(function, *args):
    """(function(*args), pull): pull(grad) gives grad times the derivative by each argument, None for what is no array.

    The function is written over operations of this library and returns one array.

    >>> import numpy as np, nbkernels
    >>> result, pull = nbkernels.vjp(nbkernels.linear, np.ones((1, 2)), np.array([[3.0, 4.0]]))
    >>> pull(np.ones((1, 1)))
    (array([[3., 4.]]), array([[1., 1.]]))
    """
    if not callable(function):
        raise ArgumentError(f"vjp: a function is needed, not {describe(function)}")
    with GradTape() as tape:
        watched = [tape.watch(x) if views.is_array(x) else x for x in args]
        result = function(*watched)
    if not isinstance(result, Watched):
        raise ArgumentError(f"vjp: {function.__name__} returned what no operation on its arguments made")
    known = [x for x in watched if isinstance(x, Watched)]

    def pull(grad):
        found = iter(tape.gradient(result, known, grad))
        return tuple(next(found) if isinstance(x, Watched) else None for x in watched)

    return result.value, pull


def for_torch(function):
    """The function of torch tensors, positional, as one step of torch's autograd.

    >>> layer = nbkernels.for_torch(nbkernels.linear)    # doctest: +SKIP
    >>> layer(x, weight, bias).sum().backward()          # doctest: +SKIP
    """
    import torch

    class Step(torch.autograd.Function):
        @staticmethod
        def forward(context, *args):
            tensors = [x for x in args if isinstance(x, torch.Tensor)]
            context.save_for_backward(*tensors)
            result, context.pull = vjp(function, *[x.detach() if isinstance(x, torch.Tensor) else x for x in args])
            return result

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(context, grad):
            context.saved_tensors  # noqa: B018, torch's error where one has been written since
            return context.pull(grad)

    return Step.apply
