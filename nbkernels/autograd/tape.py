"""Gradients of chains of operations: `vjp` and `GradTape`.

Each operation's derivative stands beside its schema; a tape notes the calls of operations on the arrays that it
watches, and walks them backwards. A composite without a derivative of its own is noted by its parts. Derivatives are
written over operations, too: a tape that watches what another one watches gives second derivatives.
"""

from __future__ import annotations

from functools import partial, reduce
from itertools import count
from math import gcd

from .. import ops
from ..dispatch import arrays, derive, keys, layout, views
from ..dispatch.errors import ArgumentError, describe
from ..dispatch.fast import key_of
from ..dispatch.traced import Traced, bare, flat
from . import on_views
from .saved import Saved, kept

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
        s = views.spec(x)
        if not derive.differentiable(s):
            raise ArgumentError(f"GradTape.watch: an array of floats or complex numbers is wanted, not of {s.dtype}")
        return self.watched(x, s)

    def watched(self, x, s):
        """x, whose spec is s, as `watch` says."""
        own = _apart(x, s)
        return Watched(kept(x) if own is x else own, self, s)

    def gradient(self, target, sources, grad=None):
        """Gradients of `target` by each of `sources`, as arrays: None where it does not depend on one.

        `sources` is a watched array or a tuple or list of them, `grad` the gradient of what target goes into: ones,
        where target has one element, if it is left out. Of several targets, a tuple, the gradients are summed, and
        `grad` is a tuple. A gradient has its source's shape and dtype.
        """
        alone, several = not isinstance(sources, tuple | list), isinstance(target, tuple | list)
        sources, targets = (sources,) if alone else sources, target if several else (target,)
        for x in (*targets, *sources):
            if not (isinstance(x, Watched) and x.mode is self):
                raise ArgumentError("GradTape.gradient: target and sources must be arrays that this tape watches")
        given = grad if several and grad is not None else (grad,) * len(targets)
        if not isinstance(given, tuple | list) or len(given) != len(targets):
            raise ArgumentError(f"GradTape.gradient: grad must be a tuple of {len(targets)}, one for each target")
        grads = {}
        for x, seed in zip(targets, given, strict=True):
            if seed is not None or grad is None:
                _add(grads, x.number, _seed(x, seed))
        for pull, inputs, results in reversed(self.steps):
            passed = [None if number is None else grads.get(number) for number in results]
            if [part for part in passed if part is not None]:
                for number, part in zip(inputs, pull(*passed), strict=True):
                    _add(grads, number, part)
        others = [x for x in given if x is not None]
        found = []
        for x in sources:
            found.append(_own(grads.get(x.number), others))
            others.append(found[-1])
        return found[0] if alone else tuple(found)

    def record(self, value, inputs, pull, flows=True):
        """`value`, an array or a tuple of them, watched: it came of `inputs`, and gradients go through it.

        pull(*gradients), one for each part of value and None where nothing depends on that, gives those of the inputs.
        `flows` says which parts no gradient goes through; through bools and integers none does.
        """
        seen = self.seen(value, flows)
        self.steps.append((pull, _numbers(inputs), _numbers(flat((seen,)))))
        return seen

    def seen(self, value, flows):
        """`value` with its parts watched where `flows` says so."""
        if not isinstance(value, tuple | list):
            s = _differentiable(value) if flows else None
            return value if s is None else Watched(_apart(value, s) if 0 in s.strides else value, self, s)
        flows = flows if isinstance(flows, tuple | list) else (flows,) * len(value)
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
        return self.note(op, row.key, args, op.call([bare(x) for x in args]))

    def note(self, op, key, args, result):
        """The result of a call on a device key, watched, and what its derivative will read."""
        if op.output_differentiability is False:
            return result
        seen = self.seen(result, op.output_differentiability)
        inputs = [args[i] for i in op.derived]
        mask = tuple([type(x) is Watched or _any_watched(x) for x in inputs])
        derivative, saved, values = derive.derivative(op, key), Saved(op.schema.name), []
        read = derive.read(op, derivative, mask)
        for x, name, convert in zip(args, op.names, op.converters):
            if x is None:
                pass
            elif convert is not None:
                x = convert(op.schema.name, x)
            elif name in read:
                x = saved.keep(x, name)
            else:
                x = x.value if type(x) is Watched else bare(x)
            values.append(tuple(x) if type(x) is list else x)
        result = saved.keep(seen, "its result") if "result" in read else result
        pull = partial(_backwards, op, derivative, values, mask, result, saved)
        self.steps.append((pull, _numbers(flat(inputs)), _numbers(flat((seen,)))))
        return seen

    def apply(self, function, args, out, where, shape, dtypes):
        if not self.recording:
            return function(*map(bare, args), out=bare(out), where=bare(where))
        if out is not None:
            raise ArgumentError(f"{function.__name__}: a tape cannot go back through out=")
        self.mine(function.__name__, (*args, where))
        result = function(*map(bare, args), where=bare(where))
        saved, mask = Saved(function.__name__), [isinstance(x, Watched) for x in args]
        values = [saved.keep(x, f"argument {i}") for i, x in enumerate(args)]
        where = saved.keep(where, "where")

        def pull(*grads):
            saved.check()
            return function.gradient(*grads, args=values, where=where, output_mask=mask)

        return self.record(result, args, pull)

    def view(self, x, value, offset):
        """A view of x, as a part of what x is a view of."""
        if not (isinstance(x, Watched) and self.recording):
            return Traced(value, self)
        root, start = x.root if x.root is not None else (x, 0)
        there, here = views.spec(root), views.spec(value)
        lies = _Place(here.shape, here.strides, start + offset), _Place(there.shape, there.strides, 0)
        seen = Watched(value, self, here)
        seen.root = root, start + offset
        self.steps.append((lambda grad: (_moved(grad, *lies),), _numbers((root,)), _numbers((seen,))))
        return seen

    def mine(self, name, args):
        """Raise where another tape watches an argument."""
        for x in flat(args):
            if isinstance(x, Traced) and not (isinstance(x, Watched) and x.mode is self):
                raise ArgumentError(f"{name}: one of its arrays is watched by another tape, or was after its end")


class Watched(Traced):
    """An array that a tape sees, in memory that it alone has; `root` is (what it is a view of, offset in bytes), or
    None, `number` what the steps of tapes know it by; `shape` is kept, which is asked for more often than it is made.
    """

    __slots__ = ("number", "root", "shape")
    counter = count()

    def __init__(self, value, mode, s=None):
        self.value, self.mode, self.root, self.number = value, mode, None, next(Watched.counter)
        self.shape = tuple((views.spec(value) if s is None else s).shape)
        arrays.adapter_for(value).seal(value)

    def __getattr__(self, name):
        raise AttributeError(f"an array that a tape watches has no {name!r}: its `value` is the plain array")

    def __setitem__(self, key, value):
        raise ArgumentError("a tape cannot go back through what is written into an array")

    def __bool__(self):
        return bool(bare(self))

    def __repr__(self):
        return f"Watched({self.value!r})"


def _any_watched(x):
    return isinstance(x, tuple | list) and any(type(part) is Watched for part in x)


def is_differentiable(x):
    """Whether gradients go through an array."""
    return _differentiable(x) is not None


def _differentiable(x):
    """The spec of an array that gradients go through, or None."""
    adapter = arrays.adapter_for(x)
    s = None if adapter is None else adapter.spec(x)
    return s if s is not None and derive.differentiable(s) else None


def _apart(x, s):
    """x, or a copy where some of its elements share memory: each has a gradient of its own, also in a view of x."""
    return ops.copy(x) if layout.overlaps_itself(s.shape, s.strides, s.dtype.itemsize) else x


def _numbers(arrays):
    """The numbers by which a tape knows watched arrays, and None for other arguments."""
    return [x.number if type(x) is Watched else None for x in arrays]


def _add(grads, number, part):
    """One more part of an array's gradient."""
    if part is not None and number is not None:
        grads[number] = ops.add(grads[number], part) if number in grads else part


def _own(grad, others):
    """A gradient whose elements have memory of their own, for its reader to write."""
    if grad is None or isinstance(grad, Traced):
        return grad
    s = views.spec(grad)
    shared = [x for x in others if x is grad] or layout.overlaps_itself(s.shape, s.strides, s.dtype.itemsize)
    return ops.copy(grad) if shared else grad


def _seed(target, grad):
    """The gradient that is given, as an array of target's shape."""
    if grad is None and any(size != 1 for size in target.shape):
        raise ArgumentError(f"GradTape.gradient: the target has shape {target.shape}; pass grad")
    if grad is None or (type(grad) in NUMBERS and not target.shape):
        return ops.multiply(ops.pow(target.value, 0), 1 if grad is None else grad)  # 1 of its kind, of a NaN too
    given = getattr(views.spec(grad), "shape", None)
    if given is None or tuple(given) != target.shape:
        what = describe(grad) if given is None else f"of shape {tuple(given)}"
        raise ArgumentError(f"GradTape.gradient: grad is {what}, and the target an array of shape {target.shape}")
    return grad


def noting(op, types, fast, again):
    """The fast path of calls on arrays that a tape watches: they are made by that of what is inside, and noted."""
    if not op.structured or any(issubclass(each, Traced) and each is not Watched for each in types):
        return None
    if derive.derivative(op, keys.CPU).reason == keys.COMPOSITE_IMPLICIT:  # its parts are noted
        return None
    usual = [i for i in range(len(op.names)) if i not in op.rare]
    keyed = [usual.index(i) for i in op.keyed]

    def noted(*args):
        if args[-1] is not None:  # out
            return None
        tape, plain = None, list(args)
        for i, x in enumerate(args):
            if type(x) is Watched:
                if x.mode is not tape and tape is not None:
                    return None
                tape, plain[i] = x.mode, x.value
        made = op.entries.get(key_of(tuple([type(plain[i]) for i in keyed])))
        result = made(*plain) if made is not None and tape.recording else None
        if result is None:
            return None
        given = [None] * len(op.names)
        for i, x in zip(usual, args):
            given[i] = x
        return tape.note(op, arrays.adapter_for(result).device(result).key, given, result)

    return noted


def _backwards(op, derivative, args, mask, result, saved, *grads):
    """The gradients of a call's tensor arguments, None where mask is False: that one is not watched."""
    saved.check()
    grad = grads if isinstance(result, tuple | list) else grads[0]
    parts = []
    for i, part in zip(op.derived, on_views.gradients(op, derivative, grad, args, mask, result), strict=True):
        if isinstance(args[i], tuple | list):
            parts += [None] * len(args[i]) if part is None else part
        else:
            parts.append(part)
    return parts


def zeros(like, *shape):
    """Zeros of like's kind and dtype: sums of nothing."""
    return ops.sum_to(views.empty(like, (0, *shape), views.spec(like).dtype), shape)


class _Place:
    """How an array lies in a stretch of memory: strides and offset in bytes."""

    def __init__(self, shape, strides, offset):
        self.shape, self.offset = tuple(shape), offset
        self.strides = tuple(0 if n == 1 else s for n, s in zip(shape, strides, strict=True))


def _moved(grad, source, target):
    """What lies in a stretch of zeros as `source` says, seen as `target` says: sums where source repeats an element.

    With a view as the source and its array as the target this is the view's derivative, transposed; the reverse is the
    view itself.
    """
    if isinstance(grad, Traced):
        return grad.mode.record(_moved(grad.value, source, target), (grad,), lambda g: (_moved(g, target, source),))
    dtype = views.spec(grad).dtype
    ends = [0, 0]
    for place in (source, target):
        low, high = layout.reach(place.shape, place.strides) if 0 not in place.shape else (0, 0)
        ends = [min(ends[0], place.offset + low), max(ends[1], place.offset + high)]
    unit = reduce(gcd, (*source.strides, *target.strides, source.offset, target.offset, *ends)) or 1
    room = zeros(grad, (ends[1] - ends[0]) // unit + 1)

    def seen(place, shape):
        first = views.index(room, slice((place.offset - ends[0]) // unit, None))
        return views.restride(first, shape, tuple(s // unit * dtype.itemsize for s in place.strides))

    once = tuple(1 if s == 0 else n for n, s in zip(source.shape, source.strides, strict=True))
    ops.add_(seen(source, once), ops.sum_to(grad, once))
    return seen(target, target.shape)


def _given(x):
    """A result for its reader to write: of what a tape has made read-only a copy."""
    return ops.copy(x) if arrays.adapter_for(x).seal(x) else x


def vjp(function, *args):
    """(function(*args), pull): pull(grad) gives grad times the derivative by each argument, None for what has none.

    The function is written over operations of this library, operators and views, and returns one array, or a tuple of
    them: then grad is a tuple. Arguments that are no arrays of floats or complex numbers go in as they are. NumPy
    arrays may be written before `pull`: the derivative is that of what they held. Tensors that it reads may not.

    >>> import numpy as np, nbkernels
    >>> result, pull = nbkernels.vjp(lambda x, w: x @ w.T + 1, np.ones((1, 2)), np.array([[3.0, 4.0]]))
    >>> result
    array([[8.]])
    >>> pull(np.ones((1, 1)))
    (array([[3., 4.]]), array([[1., 1.]]))
    """
    if not callable(function):
        raise ArgumentError(f"vjp: a function is needed, not {describe(function)}")
    with GradTape() as tape:
        watched = [x if (s := _differentiable(x)) is None else tape.watched(x, s) for x in args]
        result = function(*watched)
    several = isinstance(result, tuple | list)
    results = tuple(result) if several else (result,)
    seen = [isinstance(x, Watched) and x.mode is tape for x in results]
    if not any(seen):
        name = getattr(function, "__name__", describe(function))
        raise ArgumentError(f"vjp: {name} returned an array that no differentiable operation on its arguments made")
    known = [x for x in watched if isinstance(x, Watched) and x.mode is tape]

    def pull(grad):
        grads = grad if several else (grad,)
        if not isinstance(grads, tuple | list) or len(grads) != len(results):
            raise ArgumentError(f"vjp: grad must be a tuple of {len(results)}, one for each result")
        pairs = [(x, part) for x, part, keep in zip(results, grads, seen, strict=True) if keep]
        found = tape.gradient([x for x, _ in pairs], known, [part for _, part in pairs])
        if len(found) == len(watched):
            return found
        found = iter(found)
        return tuple(next(found) if isinstance(x, Watched) and x.mode is tape else None for x in watched)

    values = [_given(x.value) if keep else x for x, keep in zip(results, seen, strict=True)]
    return tuple(values) if several else values[0], pull
