"""reduce and accumulate of device arrays: which fold runs, and what comes before and after it."""

from __future__ import annotations

from numba import cuda

from .. import scalar
from ..dtypes import ASSOCIATIVE, identity, neutral, resolve_fold
from . import scan
from .elementwise import binary, copy, fill, run
from .reduce import fold


def reduce(out, self, op, axis, keepdims, initial, where, dtype) -> None:
    """out = self folded by `op` over the dimensions `axis`, in increasing order; see nbkernels.folds."""
    work = resolve_fold(op, self.dtype, dtype)
    if out.size == 0:
        return
    if self.size == 0:
        fill(out, identity(op, out.dtype).item() if initial is None else initial)
        return
    self, ahead = truths(self, work), op in ASSOCIATIVE
    if not ahead and not axis:  # of one term each
        if initial is None:
            copy(out, self)
        else:
            fill(out, initial)
            binary(op, out, out, self, where=where, casting="unsafe", dtype=None if work.kind == "b" else work)
        return
    if ahead and where is not None:
        chosen = cuda.device_array(tuple(self.shape), work, stream=out.stream)
        nothing = cuda.to_device(neutral(op, work), stream=out.stream)
        run(scalar.find("first", work), chosen, nothing, nothing, (work,) * 3)
        run(scalar.find("first", work), chosen, self, self, (work,) * 3, None, where)
        self = chosen
        initial = identity(op, work).item() if initial is None else initial  # a sum of nothing is 0.0, not -0.0
    shape = tuple(1 if d in axis else n for d, n in enumerate(self.shape) if ahead or d not in axis)
    target = out
    if shape != tuple(out.shape):  # a device array is given other dimensions only where it is dense
        target = cuda.device_array(shape, out.dtype, stream=out.stream)
    if ahead:
        fold(op, target, self, work)
    else:
        scan.in_order(op, target, self, axis[0], work, initial, where)
    if target is not out:
        copy(out, target.reshape(tuple(out.shape)))
    if ahead and initial is not None:
        binary(op, out, out, initial, casting="unsafe", dtype=None if work.kind == "b" else work)


def accumulate(out, self, op, axis, dtype) -> None:
    """out[k] = op(out[k - 1], self[k]) along `axis`."""
    work = resolve_fold(op, self.dtype, dtype)
    scan.accumulate(op, out, truths(self, work), axis[0], work)


def truths(x, work):
    """x, as bools where a fold is computed in these."""
    if work.kind != "b" or x.dtype == work:
        return x
    found = cuda.device_array(tuple(x.shape), work, stream=x.stream)
    run(scalar.find("first", work), found, x, x, (work,) * 3)
    return found
