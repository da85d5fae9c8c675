"""reduce and accumulate of device arrays: which fold runs, and what comes before and after it."""

from __future__ import annotations

import numpy as np

from .. import scalar
from ..dtypes import ASSOCIATIVE, SIGNLESS, identity, neutral, resolve_fold
from ..strides import broadcast_strides
from . import scan
from .elementwise import binary, copy, fill, run
from .memory import empty
from .reduce import fold


def reduce(out, self, op, axis, keepdims, initial, where, dtype) -> None:
    """out = self folded by `op` over the dimensions `axis`, in increasing order; see nbkernels.folds."""
    work = resolve_fold(op, self.dtype, dtype)
    if out.size == 0:
        return
    if self.size == 0:
        fill(out, identity(op, out.dtype).item() if initial is None else initial)
        return
    self, ahead = truths(self, work, out), op in ASSOCIATIVE
    if not ahead and not axis:  # of one term each
        if initial is None:
            copy(out, self)
        else:
            fill(out, initial)
            binary(op, out, out, self, where=where, casting="unsafe", dtype=None if work.kind == "b" else work)
        return
    alone = None
    if op in SIGNLESS and where is not None and initial is not None:
        truth = np.dtype(bool)
        alone = empty(out.shape, out, truth)
        marks = where.view(self.shape, broadcast_strides(self.shape, where.shape, where.strides))
        reduce(alone, marks, "logical_or", axis, keepdims, None, None, None)
        run(scalar.find("equal", truth), alone, alone, False, (truth,) * 3)
    if ahead and where is not None:
        chosen = empty(self.shape, out, work)
        fill(chosen, neutral(op, work).item())
        run(scalar.find("first", work), chosen, self, self, (work,) * 3, None, where)
        self = chosen
        initial = identity(op, work).item() if initial is None else initial  # a sum of nothing is 0.0, not -0.0
    kept = [d for d in range(len(self.shape)) if d not in axis]
    steps = dict(zip(kept, [out.strides[d] for d in kept] if keepdims else out.strides))
    dims = range(len(self.shape)) if ahead else kept
    target = out.view([self.shape[d] if d in steps else 1 for d in dims], [steps.get(d, 0) for d in dims])
    if ahead:
        fold(op, target, self, work)
    else:
        scan.in_order(op, target, self, axis[0], work, initial, where)
    if ahead and initial is not None:
        run(scalar.find(op, work), out, out, initial, (work,) * 3)
    if alone is not None:
        run(scalar.find("first", work), out, initial, initial, (work,) * 3, None, alone)


def accumulate(out, self, op, axis, dtype) -> None:
    """out[k] = op(out[k - 1], self[k]) along `axis`."""
    work = resolve_fold(op, self.dtype, dtype)
    scan.accumulate(op, out, truths(self, work, out), axis[0], work)


def truths(x, work, out):
    """x, as bools where a fold is computed in these: ahead of what is launched for out."""
    if work.kind != "b" or x.dtype == work:
        return x
    found = empty(x.shape, out, work)
    run(scalar.find("not_equal", x.dtype), found, x, 0, (x.dtype, x.dtype, work))  # a complex number has no bool
    return found
