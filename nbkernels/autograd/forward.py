"""Derivatives of functions that `elementwise` and `fuse` make.
They are those that the author gives, or forward differentiation of the function (jit/user/dual.py), compiled like it.
"""

from __future__ import annotations

import functools

from ..dispatch import errors
from ..dispatch.views import spec
from ..elementary.real import dual, tangent
from ..fusion import Elementwise
from ..ops import add, conj
from .gradients import chosen

WHERE = "<derivative of "
SLOPE = """\
def slope(grad, {names}):
    result = function({duals})
    return grad * tangent(result{part}).conjugate()
"""


@functools.lru_cache(maxsize=1024)
def slope(operation, i, part):
    """The operation of (grad, *args) that gives grad times the derivative of a result by argument i: of the result
    `part` of several, or of the only one (None)."""
    names = [f"x{k}" for k in range(len(operation.parameters))]
    scope = {"function": operation.function, "dual": dual, "tangent": tangent}
    text = SLOPE.format(
        names=", ".join(names),
        duals=", ".join(f"dual({name})" if k == i else name for k, name in enumerate(names)),
        part="" if part is None else f"[{part}]",
    )
    exec(compile(text, f"{WHERE}{operation.__name__}>", "exec"), scope)
    scope["slope"].__doc__ = f"derivative of {operation.__name__}"
    return Elementwise(scope["slope"], called="gradient", most=len(names) + 1)


@functools.lru_cache(maxsize=1024)
def given(operation):
    """The function that the author gave, as an operation."""
    return Elementwise(operation.slopes, called="gradient", most=16)


def gradient(operation, grads, args, where, output_mask):
    """The gradients of an operation's arguments, None where the mask is False; `grads` are those of its results."""
    if where is not None:
        grads = [None if grad is None else chosen(grad, where) for grad in grads]
    if operation.slopes is not None:
        if any(grad is None for grad in grads):
            raise errors.ArgumentError(f"{operation.__name__}: its gradient needs those of all {len(grads)} results")
        found = given(operation)(*grads, *args)
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(args):
            raise errors.ArgumentError(
                f"{operation.__name__}: gradient should return a number for each of {len(args)} arguments, not "
                f"{len(found)}"
            )
        return [part if keep else None for part, keep in zip(found, output_mask)]
    alone, result = len(grads) == 1, []
    for i, keep in enumerate(output_mask):
        parts = [
            _slope(operation, i, None if alone else k, g, args) for k, g in enumerate(grads) if keep and g is not None
        ]
        result.append(functools.reduce(add, parts) if parts else None)
    return result


def _slope(operation, i, part, grad, args):
    if operation.function.__code__.co_filename.startswith(WHERE):  # its variable and the new one would be taken for one
        if i == 0:  # in the gradient that it multiplies it is linear
            there = spec(args[0]).dtype.kind == "c"
            return conj(operation(conj(grad), *args[1:])) if there else operation(grad, *args[1:])
        raise errors.ArgumentError(f"{operation.function.__doc__}: second derivatives need elementwise gradient=")
    try:
        return slope(operation, i, part)(grad, *args)
    except TypeError as error:
        raise TypeError(
            f"{operation.__name__}: no derivative by argument {i} is found; give elementwise gradient=: {error}"
        ) from None
