"""`vjp`: a function's result, and what pulls gradients back through it.

A tape notes what the function does. The derivative of a function that is one operation of this library takes none.
"""

from __future__ import annotations

from functools import partial

from numpy import ndarray

from .. import ops
from ..dispatch import arrays, keys
from ..dispatch.errors import ArgumentError, describe
from ..dispatch.traced import LISTS
from . import on_views
from .notes import Notes
from .saved import copied
from .tape import GradTape, own, seed
from .watched import KINDS, Watched, is_differentiable, repeats

NUMBERS = frozenset((bool, int, float, complex, str, type(None)))


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
    alone = _alone(function, args)
    return _by_tape(function, args) if alone is None else alone


def _by_tape(function, args):
    """Return the result and `pull` of any function: a tape notes the operations that it calls."""
    known = [is_differentiable(x) for x in args]
    with GradTape() as tape:
        watched = [tape.watched(x) if keep else x for x, keep in zip(args, known)]
        result = function(*watched)
    several = isinstance(result, LISTS)
    results = tuple(result) if several else (result,)
    seen = [type(x) is Watched and x.mode is tape for x in results]
    if not any(seen):
        name = getattr(function, "__name__", describe(function))
        raise ArgumentError(f"vjp: {name} returned an array that no differentiable operation on its arguments made")
    sources = [x for x, keep in zip(watched, known) if keep]

    def pull(grad):
        grads = grad if several else (grad,)
        if not isinstance(grads, LISTS) or len(grads) != len(results):
            raise ArgumentError(f"vjp: grad must be a tuple of {len(results)}, one for each result")
        triples = zip(results, grads, seen, strict=True)
        found = tape.back([(x, part) for x, part, keep in triples if keep and part is not None], sources)
        if len(found) == len(watched):
            return found
        found = iter(found)
        return tuple([next(found) if keep else None for keep in known])

    values = [_given(x.value) if keep else x for x, keep in zip(results, seen, strict=True)]
    return tuple(values) if several else values[0], pull


def op_of(function):
    """The op of a public function of this library, or None."""
    op = getattr(function, "op", None)
    return op if getattr(op, "function", None) is function and op.library is ops.LIBRARY else None


def has_own(op, derivative):
    """Whether an op has one result, arguments that are no lists of arrays, and a derivative that is not its parts'."""
    own = derivative.row is not None and derivative.reason != keys.COMPOSITE_IMPLICIT
    alone = op.output_differentiability is True and len(op.schema.returns) == 1
    return own and alone and op.derived == op.keyed


def _notes(op, seen):
    """Notes of calls by place whose arguments are watched where `seen` says so; False where a tape is needed, as it is
    where a result may be an argument."""
    mask = tuple([i < len(seen) and seen[i] for i in op.derived])
    if True not in mask or len(seen) > len(op.names) or op.aliased is not None:
        return False
    notes = Notes.of(op, keys.CPU, mask)
    return bool(op.structured) and op.delegates_to is None and has_own(op, notes.derivative) and notes


def _alone(function, args):
    """Return the result and `pull` of one operation, without a tape; None where the function is no operation of this
    library, or an argument no NumPy array whose elements each have their own memory."""
    op, seen = op_of(function), []
    if op is None:
        return None
    for x in args:
        if type(x) is ndarray:
            dtype = x.dtype
            if not (x.ndim and dtype.isnative) or (not x.flags.forc and repeats(x)):
                return None
            seen.append(dtype.kind in KINDS)
        elif type(x) in NUMBERS:
            seen.append(False)
        else:
            return None
    seen = tuple(seen)
    notes = op.table.kept((vjp, seen), _notes, op, seen)
    if not notes:
        return None
    result = function(*args)
    plain = type(result) is ndarray
    if not (result.dtype.kind in KINDS if plain else is_differentiable(result)):
        return None
    values = notes.values([], [*args, *notes.usual[len(args) :]])
    kept = copied(result, "K") if notes.reads_result else None
    target = (result.shape, None) if plain else ((), result)
    pull = partial(_pulled, notes, len(args), values, kept, target)
    return result if not plain or result.flags.c_contiguous else copied(result), pull


def _pulled(notes, count, values, kept, target, grad):
    """The gradients of a call's first arguments; `target` is the shape of its result, and that where it is a number."""
    parts, op = [None] * count, notes.op
    if grad is not None:
        others = [seed(*target, grad)]
        found = on_views.gradients(op, notes.derivative, others[0], values, notes.mask, kept)
        for i, part in zip(op.derived, found):
            if part is not None:
                parts[i] = own(part, others)
                others.append(part)
    return tuple(parts)


def _given(x):
    """A result for its reader to write: of what a tape has made read-only a copy."""
    return copied(x) if arrays.adapter_for(x).seal(x) else x
