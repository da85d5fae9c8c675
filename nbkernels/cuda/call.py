"""Decisions that all products share, made once: which operands are read, how long the sum is, where it goes."""

from __future__ import annotations

from contextlib import contextmanager

from ..strides import broadcast_strides
from .elementwise import copy
from .memory import clash, empty, same


@contextmanager
def settled(out, x, reads, beta, alpha, k: int):
    """(target, x, alpha, k) of out = beta * x + alpha * (a sum of k products of the arrays that it `reads`).

    x is None where beta is 0; k is 0 where alpha is, and nothing is read then. The target is out, or a temporary where
    out really overlaps what is read other than element for element, which is copied at the end.
    """
    x = None if beta == 0 else x
    if alpha == 0 or k == 0:
        k, alpha = 0, 1 if x is None else -1  # an empty sum is 0; beside x it is -0, which changes nothing
    apart = any(clash(out, each) for each in reads if k)
    if x is not None and not same(out, x, broadcast_strides(out.shape, x.shape, x.strides)):
        apart = apart or clash(out, x)
    target = empty(out.shape, out) if apart else out
    yield target, x, alpha, k
    if apart:
        copy(out, target)
