"""Tiles that the tuner found fastest here (`python -m nbkernels tune`), used instead of the derived ones.

Winners are known by processor, caches, kind of product, class of shape and layout, so that a directory that machines
share serves each its own; what is not legal here is as if it were not there. No bit of a result depends on it.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from ... import problem, winners
from ...jit.compile.lazy import plain
from ...jit.ir.kind import Kind
from ...problem import CLASSES, LAYOUTS
from ..runtime.machine import place
from .blocking import Tiles, illegal
from .context import turns

SLOTS = len(CLASSES) * len(LAYOUTS)
shape_class = plain(problem.shape_class)


def slot_of(out, a, b) -> int:
    """The slot of out = a @ b, by its shape and its layouts: which of a kind's winners the product takes."""
    left, right = (int(abs(x.strides[-2]) < abs(x.strides[-1])) for x in (a, b))
    return problem.slot(*out.shape[-2:], a.shape[-1], left, right, turns(out, b))


def named(kind: Kind) -> str:
    """The kind as winners are kept for it: what is summed in a dtype by the same instruction shares them."""
    if kind.way == "fma" and kind.planes == 1:
        return kind.chain
    return str(replace(kind, conj="", turned=False))


@functools.cache
def tuned(kind: Kind, which: int) -> Tiles | None:
    """The winner for products of a kind in a slot, or None."""
    if not winners.entries():
        return None
    tiles = winners.find(named(kind), which, place(), Tiles)
    return tiles if tiles and not illegal(tiles, kind.word, kind.planes) else None
