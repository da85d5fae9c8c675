"""`GradTape`: gradients of chains of operations.

Each operation's derivative stands beside its schema; a tape notes the calls of operations on the arrays that it
watches, and walks them backwards. A composite without a derivative of its own is noted by its parts. Derivatives are
written over operations, too: a tape that watches what another one watches gives second derivatives.
"""

from __future__ import annotations

from numpy import may_share_memory, ndarray

from .. import ops
from ..dispatch import derive, keys, views
from ..dispatch.errors import ArgumentError, describe
from ..dispatch.traced import LISTS, Traced, bare, flat
from .notes import noted
from .places import Place, moved
from .saved import check, copied, keep, kept
from .watched import KINDS, Watched, apart, is_differentiable, numbers, repeats

NUMBERS = (bool, int, float, complex)


class GradTape:
    """Notes what is done to the arrays that it watches, until its block ends.

    >>> import numpy as np, nbkernels
    >>> with nbkernels.GradTape() as tape:
    ...     x = tape.watch(np.array([1.0, 2.0, 3.0]))
    ...     y = (x * x)[1:].sum()
    >>> tape.gradient(y, x)
    array([0., 4., 6.])
    """

    def __init__(self):
        self.steps, self.recording = [], True  # (pull, numbers of its inputs, of its results); no cycle of references

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.recording = False

    def watch(self, x):
        """x as the operations take it, for the tape to see; what they return is watched as well, its `value` plain.

        Such an array has operators, `@`, `.T`, basic indexing, `reshape`, `transpose`, `sum` and `mean`. Comparisons
        and whatever else gives bools or integers are plain arrays: no gradient goes through them.

        A NumPy array is copied, so writing x afterwards changes nothing, and `value` is read-only. A tensor is not: to
        write one after an operation whose derivative reads it is an error in `gradient`, as in torch.
        """
        if not views.is_array(x):
            raise ArgumentError(f"GradTape.watch: an array is wanted, not {describe(x)}")
        if not is_differentiable(x):
            dtype = views.spec(x).dtype
            raise ArgumentError(f"GradTape.watch: an array of floats or complex numbers is wanted, not of {dtype}")
        return self.watched(x)

    def watched(self, x):
        """x, through which gradients go, as `watch` says."""
        own = apart(x)
        return Watched(kept(x) if own is x else own, self)

    def gradient(self, target, sources, grad=None):
        """Gradients of `target` by each of `sources`, as arrays: None where it does not depend on one.

        `sources` is a watched array or a tuple or list of them, `grad` the gradient of what target goes into: ones,
        where target has one element, if it is left out. Of several targets, a tuple, the gradients are summed, and
        `grad` is a tuple. A gradient has its source's shape and dtype.
        """
        alone, several = not isinstance(sources, LISTS), isinstance(target, LISTS)
        sources, targets = (sources,) if alone else sources, target if several else (target,)
        for x in (*targets, *sources):
            if not (isinstance(x, Watched) and x.mode is self):
                raise ArgumentError("GradTape.gradient: target and sources must be arrays that this tape watches")
        given = grad if several and grad is not None else (grad,) * len(targets)
        if not isinstance(given, LISTS) or len(given) != len(targets):
            raise ArgumentError(f"GradTape.gradient: grad must be a tuple of {len(targets)}, one for each target")
        pairs = zip(targets, given, strict=True)
        found = self.back([(x, part) for x, part in pairs if part is not None or grad is None], sources)
        return found[0] if alone else found

    def back(self, seeds, sources):
        """The gradients of `sources`, where those of what is watched are `seeds`: [(watched, its gradient), ...]."""
        grads = {}  # by the numbers of what is watched
        known = grads.keys()
        for x, part in seeds:
            _add(grads, x.number, seed(x.shape, x.value, part))
        for pull, inputs, results in reversed(self.steps):
            if not known.isdisjoint(results):
                for number, part in zip(inputs, pull(*map(grads.get, results)), strict=True):
                    _add(grads, number, part)
        found, others = [], [part for _, part in seeds]
        for x in sources:
            found.append(own(grads.get(x.number), others))
            others.append(found[-1])
        return tuple(found)

    def record(self, value, inputs, pull, flows=True):
        """`value`, an array or a tuple of them, watched: it came of `inputs`, and gradients go through it.

        pull(*gradients), one for each part of value and None where nothing depends on that, gives those of the inputs.
        `flows` says which parts no gradient goes through; through bools and integers none does.
        """
        seen = self.seen(value, flows)
        self.steps.append((pull, numbers(inputs), numbers(flat((seen,)))))
        return seen

    def seen(self, value, flows):
        """`value` with its parts watched where `flows` says so."""
        if type(value) is ndarray and value.dtype.kind in KINDS and flows is True:
            return Watched(apart(value) if 0 in value.strides else value, self)
        if not isinstance(value, LISTS):
            return Watched(apart(value), self) if flows and is_differentiable(value) else value
        flows = flows if isinstance(flows, LISTS) else (flows,) * len(value)
        seen = [self.seen(x, keep) for x, keep in zip(value, flows, strict=True)]
        return value._make(seen) if hasattr(value, "_make") else type(value)(seen)

    # -- what the dispatcher calls, as dispatch/traced.py says ---------------------------------------------------------

    def opens(self, op, key):
        """Whether a composite's gradient comes from its parts."""
        return not self.recording or derive.derivative(op, key).reason == keys.COMPOSITE_IMPLICIT

    def made(self, x):
        """Nothing is kept of what a composite makes."""

    def call(self, op, row, args, out, in_place):
        if not self.recording:
            return op.call([bare(x) for x in args], bare(out), in_place)
        if out is not None or op.written:
            raise ArgumentError(f"{op.schema.name}: a tape cannot go back through out= and in-place calls")
        self.mine(op.schema.name, args)
        return noted(self, op, row.key, args, op.call([bare(x) for x in args]))

    def apply(self, function, args, out, where, shape, dtypes):
        if not self.recording:
            return function(*map(bare, args), out=bare(out), where=bare(where))
        if out is not None:
            raise ArgumentError(f"{function.__name__}: a tape cannot go back through out=")
        self.mine(function.__name__, (*args, where))
        result = function(*map(bare, args), where=bare(where))
        counted, mask = [], [isinstance(x, Watched) for x in args]
        values = [keep(x, f"argument {i}", counted) for i, x in enumerate(args)]
        where = keep(where, "where", counted)

        def pull(*grads):
            check(function.__name__, counted)
            return function.gradient(*grads, args=values, where=where, output_mask=mask)

        return self.record(result, args, pull)

    def view(self, x, value, offset):
        """A view of x, as a part of what x is a view of."""
        if not (isinstance(x, Watched) and self.recording):
            return Traced(value, self)
        root, start = x.root if x.root is not None else (x, 0)
        there, here = views.spec(root), views.spec(value)
        lies = Place(here.shape, here.strides, start + offset), Place(there.shape, there.strides, 0)
        seen = Watched(value, self)
        seen.root = root, start + offset
        self.steps.append((lambda grad: (moved(grad, *lies),), numbers((root,)), numbers((seen,))))
        return seen

    def mine(self, name, args):
        """Raise where another tape watches an argument."""
        for x in flat(args):
            if isinstance(x, Traced) and not (isinstance(x, Watched) and x.mode is self):
                raise ArgumentError(f"{name}: one of its arrays is watched by another tape, or was after its end")


def _add(grads, number, part):
    """One more part of an array's gradient."""
    if part is not None and number is not None:
        grads[number] = ops.add(grads[number], part) if number in grads else part


def own(grad, others):
    """A gradient whose elements have memory of their own, for its reader to write: it is none of the others, nor a view
    of one, nor what a tape keeps."""
    if grad is None or isinstance(grad, Traced):
        return grad
    if repeats(grad):
        return copied(grad)
    plain = type(grad) is ndarray
    if plain and not grad.flags.writeable:
        return copied(grad, "K")
    for x in others:
        view = plain and type(x) is ndarray and (grad.base is not None or x.base is not None)
        if x is grad or (view and may_share_memory(x, grad)):
            return copied(grad, "K")
    return grad


def seed(shape, value, grad):
    """The gradient that is given of a target, an array of this shape and value, as an array."""
    if type(grad) is ndarray and grad.shape == shape:
        return grad
    if grad is None and any(size != 1 for size in shape):
        raise ArgumentError(f"GradTape.gradient: the target has shape {shape}; pass grad")
    if grad is None or (type(grad) in NUMBERS and not shape):
        return ops.multiply(ops.pow(value, 0), 1 if grad is None else grad)  # 1 of its kind, of a NaN too
    given = getattr(views.spec(grad), "shape", None)
    if given is None or tuple(given) != shape:
        what = describe(grad) if given is None else f"of shape {tuple(given)}"
        raise ArgumentError(f"GradTape.gradient: grad is {what}, and the target an array of shape {shape}")
    return grad
