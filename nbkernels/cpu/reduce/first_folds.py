"""The first folds: NumPy's own operations, in the order that reduce.py states, where later ones have compiled loops.

A fold's loops and what walks them take 1.5 s to compile; this takes some 30 operations of NumPy, 0.1 ms and more. The
bits are those of every path.
"""

from __future__ import annotations

import numpy as np

from ...jit.compile.python_first import Patience
from ...operations import BINARY, PAIRWISE
from .fold_loop import BLOCK, DEALT, LANES

MOST = 1 << 24  # elements
# Integers and bools have one result whatever the order; of floats these are NumPy's, bit for bit, term by term.
KINDS = {kind: [op for op, row in BINARY.items() if kind in row.exact
                and (row.fold == PAIRWISE or (row.fold and kind in "biu"))] for kind in "biufc"}  # fmt: skip

patience = Patience("reduce_walk")


def first(op: str, x) -> bool:
    """Whether a fold suits and is one of the first, which are counted; large ones are but few."""
    return _suits(op, x, x.dtype) and patience(x.size > MOST // 4)


def _suits(op: str, x, work: np.dtype) -> bool:
    known = all(op in KINDS.get(dtype.kind, ()) for dtype in (x.dtype, work))
    return known and 0 < x.size <= MOST and np.can_cast(x.dtype, work, "same_kind")


def fold(op: str, out, x, work: np.dtype) -> bool:
    """out = x folded over the dimensions in which out has size 1 or none; False, with nothing done, where this is not
    for it."""
    if not (patience.lasts() and _suits(op, x, work)):
        return False
    sizes = (1,) * (x.ndim - out.ndim) + out.shape
    kept = [d for d in range(x.ndim) if sizes[d] == x.shape[d]]
    rest = [d for d in range(x.ndim) if sizes[d] != x.shape[d]]
    terms = x.transpose(kept + rest).reshape(*(x.shape[d] for d in kept), -1).astype(work, copy=False)
    combine = getattr(np, op)
    with np.errstate(all="ignore"):
        if work.kind in "biu":
            result = combine.reduce(terms, -1, dtype=work)
        else:
            result = _in_order(combine, terms)
        np.copyto(out, result.reshape(out.shape), casting="unsafe")
    return True


def _in_order(combine, terms):
    """Floats, folded along the last dimension."""
    whole = terms.shape[-1] // BLOCK * BLOCK
    parts = []
    if whole:
        parts.append(_block(combine, terms[..., :whole].reshape(*terms.shape[:-1], -1, BLOCK)))
    if whole < terms.shape[-1]:
        parts.append(_block(combine, terms[..., whole:])[..., None])
    blocks = np.concatenate(parts, -1)
    while blocks.shape[-1] > 1:  # pairs, pairs of pairs; one that is left waits for the next round
        even = blocks.shape[-1] // 2 * 2
        pairs = combine(blocks[..., 0:even:2], blocks[..., 1:even:2])
        blocks = np.concatenate([pairs, blocks[..., even:]], -1)
    return blocks[..., 0]


def _block(combine, terms):
    """Up to BLOCK terms: one chain, or LANES that are folded by halves."""
    count = terms.shape[-1]
    width = 1 if count < DEALT else LANES
    chains = terms[..., :width].copy()
    for start in range(width, count, width):
        row = terms[..., start : start + width]
        chains[..., : row.shape[-1]] = combine(chains[..., : row.shape[-1]], row)
    while width > 1:
        width //= 2
        chains = combine(chains[..., :width], chains[..., width:])
    return chains[..., 0]
