"""Derivatives of reduce and accumulate.
Those of add, of the largest and of the smallest are computed at once, others by the derivative of each step.

With a[i] = op(a[i-1], x[i]) the gradient of a[i-1] is that of a[i] times the derivative in the first operand, and that
of x[i] times the derivative in the second.
"""

from .. import ops
from ..dispatch.errors import ArgumentError
from ..dispatch.views import empty, expand, flip, index, permute, reshape, spec
from ..dtypes import EXTREMES
from ..ops import add, copy, divide, equal, multiply
from .gradients import PARTIAL, cast, chosen

HEAD, TAIL, FIRST, LAST = ((..., part) for part in (slice(None, -1), slice(1, None), slice(0, 1), slice(-1, None)))


def reduce_self(grad, self, op, axis, keepdims, initial, where, result):
    s = spec(self)
    axes = tuple(a % len(s.shape) for a in axis)
    kept = tuple(1 if a in axes else n for a, n in enumerate(s.shape))
    grad = reshape(grad, kept, copy)
    if op == "add":
        found = expand(grad, s.shape)
    elif op in EXTREMES:  # shared by all that are the largest
        mask = equal(self, reshape(result, kept, copy))
        mask = mask if where is None else ops.logical_and(mask, where)
        return chosen(divide(grad, add.reduce(mask, axis=axes, keepdims=True)), mask)
    elif fold := PARTIAL.get(f"{op}_fold"):
        found = fold(grad, self, reshape(result, kept, copy))
    else:
        if where is not None:
            raise ArgumentError(f"{op}.reduce has no derivative with where")
        return in_order(grad, cast(self, spec(result).dtype), op, axes, initial)
    return found if where is None else chosen(found, where)


def in_order(grad, x, op, axes, initial):
    """The gradient of a fold from the first element on: grad has sizes of 1 along the axes."""
    shape = spec(x).shape
    rest = [a for a in range(len(shape)) if a not in axes]
    order = (*rest, *axes)
    lead = tuple(shape[a] for a in rest)
    steps = reshape(permute(x, order), (*lead, -1), copy)
    grad = reshape(permute(grad, order), (*lead, 1), copy)
    if initial is not None:
        steps = preceded(steps, initial)
    found = empty(steps, spec(steps).shape, spec(steps).dtype)
    if spec(steps).shape[-1] > 1:
        before = index(getattr(ops, op).accumulate(steps, axis=len(lead)), HEAD)
        through, into = getattr(ops, op).op.gradient(ops.pow(before, 0), before, index(steps, TAIL))
        after = flip(multiply.accumulate(flip(through, len(lead)), axis=len(lead)), len(lead))
        multiply(index(after, TAIL), index(into, HEAD), out=index(index(found, TAIL), HEAD))
        copy(index(into, LAST), out=index(found, LAST))
        multiply(grad, index(after, FIRST), out=index(found, FIRST))
        multiply(grad, index(found, TAIL), out=index(found, TAIL))
    else:
        copy(grad, out=found)
    if initial is not None:
        found = copy(index(found, TAIL))
    back = reshape(found, tuple(shape[a] for a in order), copy)
    return permute(back, tuple(order.index(a) for a in range(len(shape))))


def preceded(steps, initial):
    """Rows with a number before them."""
    (*lead, n), dtype = spec(steps).shape, spec(steps).dtype
    longer = empty(steps, (*lead, n + 1), dtype)
    copy(steps, out=index(longer, TAIL))
    nothing = ops.sum_to(empty(steps, (0, *lead, 1), dtype), (*lead, 1))
    copy(add(nothing, initial, dtype=dtype), out=index(longer, FIRST))
    return longer


def accumulate_self(grad, self, op, axis, result):
    ndim = len(spec(self).shape)
    axis = axis[0] % ndim

    def at(x, i):
        return index(x, (*(slice(None),) * axis, i))

    if op == "add":
        return flip(add.accumulate(flip(grad, axis), axis=axis), axis)
    x = cast(self, spec(result).dtype)
    found = empty(x, spec(x).shape, spec(x).dtype)
    passed = None
    for i in reversed(range(spec(x).shape[axis])):
        here = at(grad, slice(i, i + 1))
        passed = here if passed is None else add(here, passed)
        if i:
            given = at(result, slice(i - 1, i)), at(x, slice(i, i + 1))
            passed, into = getattr(ops, op).op.gradient(passed, *given)
        else:
            into = passed
        copy(into, out=at(found, slice(i, i + 1)))
    return found


REDUCE, ACCUMULATE = {"self": reduce_self}, {"self": accumulate_self}
