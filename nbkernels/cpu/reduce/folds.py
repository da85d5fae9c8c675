"""reduce and accumulate: which fold runs, and what comes before and after it."""

from __future__ import annotations

import functools
from types import NoneType

import numpy as np

from ...dtypes import ASSOCIATIVE, NUMBERS, SIGNLESS, identity, known, neutral, resolve_fold, ufunc
from ...strides import output_strides
from ..elementwise import fast as calls
from ..elementwise.elementwise import apart, binary, refuse_negative
from ..elementwise.plan_cache import Memory, fold_entry
from ..runtime.arrays import GIL
from . import first_folds, scan
from .loops import walker
from .plan import PARALLEL, workers
from .reduce import Ready, fold, planned, working

_memory, FIRST = Memory(), first_folds.patience


def _recall(*args):  # until the first call, so that importing this module compiles nothing
    global _recall
    _recall = fold_entry()
    return _recall(*args)


def reduce_fast(self, op, axis, keepdims, out):
    """A fold in any order, in a new array; None where the general path has to do it or say what is wrong.

    Small ones of a layout that was met before are recalled by what `op` and `axis` are, not by what is in them.
    """
    if out is not None or (FIRST.waits and first_folds.first(op, self)):
        return None
    result = _recall(_memory.address, self, op, axis, keepdims, 0)
    if type(result) is not int:
        return result
    try:
        plan = _planned(op, self.dtype, self.shape, self.strides, axis, keepdims, None, workers(self))
    except TypeError:  # what cannot be hashed is no bool
        return None
    large = self.nbytes >= PARALLEL  # by as many threads as there are then
    if plan is None or large or plan[-1] is None or plan[-1].at_once is None or not GIL:
        return _made(plan, op, self)
    shape, dtype, strides, ready = plan
    enter = functools.partial(_recall, _memory.address, self, op, axis, keepdims)
    code = walker(), 0, ready.nothing.ctypes.data
    return _memory.keep(
        code, ready.words, ((0, 0),) * 3, (_empty(shape, dtype, strides), self), enter, (ready, op, axis)
    )


def _with_keywords(self, op, axis, keepdims, initial, where, dtype, out):
    """Fold with keywords; None where the general path has to, as for out, initial or where from PARALLEL bytes on."""
    x, plain = self, where is None and initial is None and out is None
    if FIRST.waits and first_folds.first(op, self):
        return None
    try:
        plan = _planned(op, self.dtype, self.shape, self.strides, axis, keepdims, dtype, workers(self))
        if plain:
            return _made(plan, op, self)
        if plan is None or plan[-1] is None or self.nbytes >= PARALLEL or type(initial) not in (*NUMBERS, NoneType):
            return None
        shape, work, strides, ready = plan
        if work != working(work):
            return None  # which is rounded once
        if where is not None:
            if type(where) is not np.ndarray or where.dtype != bool or (initial is ufunc(op).identity is None):
                return None
            if op in SIGNLESS and initial is not None:
                return None
            if initial is None:
                initial = identity(op, work)
            x = _chosen(op, self, where, work)
        if initial is not None:
            initial = np.asarray(initial, work)
    except (TypeError, ValueError, OverflowError):  # what that is the general path says
        return None
    if out is None:
        made = _empty(shape, work, strides)
    elif strides is None and type(out) is np.ndarray and _takes(out, shape, work) and not np.may_share_memory(out, x):
        made = out
    else:
        return None
    if x is not self:  # the copy lies in C order, whatever self's is, and made as planned
        ones, steps = _target(made.strides, x.shape, axis, keepdims)
        ready = planned(op, (ones, x.shape), (steps, x.strides), work, work, work, 1)
    ready.run(made, x)
    if initial is not None:
        _begin(op, made, initial)
    return made if shape or out is not None else made[()]


def _chosen(op, x, where, work):
    """A copy of x in `work`; what is masked off adds nothing."""
    chosen = np.full(x.shape, neutral(op, work), work)
    np.copyto(chosen, x, where=where, casting="unsafe")
    return chosen


def _begin(op, out, initial):
    """out = op(initial, out), of one dtype."""
    if getattr(calls, f"{op}_fast").calls.go_on(initial, out, 1.0, out) is None:
        binary(op, out, initial, out, dtype=None if out.dtype.kind == "b" else out.dtype, casting="unsafe")


def _takes(out, shape, dtype):
    """Whether a plan's result can be written to an out."""
    return out.shape == shape and out.dtype == dtype and out.flags.carray


reduce_fast.with_keywords = _with_keywords


def _made(plan, op, x):
    """The result by a plan; None where there is none."""
    if plan is None:
        return None
    shape, dtype, strides, ready = plan
    out = np.full(shape, identity(op, dtype)) if ready is None else _empty(shape, dtype, strides)
    if ready is not None:
        ready.run(out, x)
    return out if shape else out[()]


def _empty(shape, dtype, strides):
    """A new array, with its strides where it is not in C order."""
    return np.empty(shape, dtype) if strides is None else np.ndarray(shape, dtype, strides=strides)


def _unusual(shape, strides, dtype):
    """The strides of a new array, None where they are those of C order."""
    usual = np.empty(shape, dtype).strides
    return None if all(n == 1 or s == u for n, s, u in zip(shape, strides, usual)) else strides


@functools.lru_cache(maxsize=4096, typed=True)
def _planned(
    op, dtype, shape, strides, axis, keepdims, wanted, tasks
) -> tuple[tuple, np.dtype, tuple | None, Ready | None] | None:
    """Shape of a new result, its dtype, its strides, None in C order, and what makes it, None where that is of nothing;
    None where there is no result, or no fold in any order."""
    if type(keepdims) is not bool:  # by whose address a call is recalled
        return None
    if op not in ASSOCIATIVE or not known(dtype) or (0 in shape and ufunc(op).identity is None):
        return None
    try:
        work = resolve_fold(op, dtype, wanted)
    except TypeError:
        return None
    ones = tuple(1 if d in axis else n for d, n in enumerate(shape))
    kept = ones if keepdims else tuple(n for d, n in enumerate(shape) if d not in axis)
    if 0 in shape:
        return kept, work, None, None
    to = output_strides(ones, (ones,), (strides,), work.itemsize)
    own = to if keepdims else tuple(s for d, s in enumerate(to) if d not in axis)
    plan = planned(op, (ones, shape), (to, strides), work, dtype, working(work), tasks)
    return kept, work, _unusual(kept, own, work), plan


def _target(strides, shape, axis, keepdims):
    """Shape and strides of a result of these strides with all dimensions of what is folded: those of `axis` have size
    1."""
    steps = iter(strides)
    spread = tuple(0 * (next(steps) if keepdims else 0) if d in axis else next(steps) for d in range(len(shape)))
    return tuple(1 if d in axis else n for d, n in enumerate(shape)), spread


def reduce(out, self, op, axis, keepdims, initial, where, dtype) -> None:
    """out = self folded by `op` over the dimensions `axis`, in increasing order; see nbkernels.folds."""
    work = resolve_fold(op, self.dtype, dtype)
    target = np.lib.stride_tricks.as_strided(out, *_target(out.strides, self.shape, axis, keepdims))
    if initial is not None:
        initial = np.asarray(initial, work)  # or an error, before anything is written
    if self.size == 0:
        target[...] = identity(op, out.dtype) if initial is None else initial
    elif op in ASSOCIATIVE:
        alone = None
        if op in SIGNLESS and where is not None and initial is not None:  # ahead: out may lie over where
            alone = ~np.logical_or.reduce(np.broadcast_to(where, self.shape), axis, keepdims=True)
        _in_any_order(op, target, self, initial, where, work)
        if alone is not None:
            np.copyto(target, initial, casting="unsafe", where=alone)
    else:
        _in_order(op, target.squeeze(axis), apart(out, truths(self, work)), axis, initial, where, working(work))


def _in_any_order(op, out, x, initial, where, work) -> None:
    """out = x folded to its shape, whatever comes first."""
    if where is not None:
        x = _chosen(op, x, where, work)
        initial = identity(op, work) if initial is None else initial  # a sum of nothing is 0.0, not -0.0
    wide = working(work)
    if initial is None:
        fold(op, out, x, wide)
        return

    def run(held):
        fold(op, held, x, wide)
        binary(op, held, initial, held, **_computed(wide))

    scan.held(out, wide, run)


def _in_order(op, out, x, axis, initial, where, work) -> None:
    """out = x folded along at most one axis, which it lacks, from `initial` or the first element on."""
    refuse(op, x, axis, initial is not None, where, work)

    def masked(held):
        ahead = (lambda x: np.moveaxis(x, axis[0], 0)) if axis else (lambda x: x[None])
        marks, terms = ahead(np.broadcast_to(True if where is None else where, x.shape)), ahead(x)
        np.copyto(held, terms[0] if initial is None else initial, casting="unsafe")
        for term, mask in zip(terms[initial is None :], marks[initial is None :]):
            binary(op, held, held, term, where=mask, **_computed(work))

    if where is not None or not axis:  # out is written before all of them are read
        x, where = (a if a is None or not np.may_share_memory(out, a) else a.copy() for a in (x, where))
        scan.held(out, work, masked)
        return
    if initial is not None:
        start = np.broadcast_to(initial, [1 if d in axis else n for d, n in enumerate(x.shape)])
        x = np.concatenate([start, x], axis[0], dtype=work, casting="unsafe")
    scan.in_order(op, out, x, axis[0], work)


def refuse(op, x, axis, started, where, work) -> None:
    """Raise for a negative exponent among the steps along at most one axis, as elementwise.py does for pow itself."""
    if op == "pow" and work.kind == "i" and x.size and (axis or started):
        steps = (*(slice(None),) * axis[0], slice(not started, None)) if axis else ...
        marks = None if where is None else np.broadcast_to(where, x.shape)[steps]
        refuse_negative(x[steps].astype(work), marks)


def _computed(dtype) -> dict:
    """The keywords of a step that is computed in a dtype."""
    return dict(dtype=None if dtype.kind == "b" else dtype, casting="unsafe")


def accumulate(out, self, op, axis, dtype) -> None:
    """out[k] = op(out[k - 1], self[k]) along `axis`."""
    work = resolve_fold(op, self.dtype, dtype)
    refuse(op, self, axis, False, None, work)
    scan.accumulate(op, out, truths(self, work), axis[0], work)


def truths(x, work):
    """x, as bools where a fold in order is computed in these."""
    return x.astype(bool) if work.kind == "b" and x.dtype.kind != "b" else x


def accumulate_fast(self, op, axis, out, dtype=None):
    """All steps in a new array, or one that takes them as they are; None where the general path has to do it or say
    what is wrong."""
    try:
        steps = _stepped(op, self.dtype, self.shape, self.strides, axis, dtype)
    except TypeError:  # what cannot be hashed is no dtype
        return None
    if steps is None:
        return None
    work, strides, ready = steps
    if out is None:
        out = np.empty(self.shape, work) if strides is None else _empty(self.shape, work, strides)
    elif strides or type(out) is not np.ndarray or not _takes(out, self.shape, work) or np.may_share_memory(out, self):
        return None
    if ready is not None:
        ready(out, self)
    return out


accumulate_fast.with_keywords = lambda self, op, axis, dtype, out: accumulate_fast(self, op, axis, out, dtype)


@functools.lru_cache(maxsize=4096)
def _stepped(op, dtype, shape, strides, axis, wanted):
    """Dtype of a new result, its strides, None in C order, and what makes it, None where there is nothing to do; None
    where there is no result, or where the numbers have to be seen first."""
    if not known(dtype) or len(axis) != 1:
        return None
    try:
        work = resolve_fold(op, dtype, wanted)
    except TypeError:
        return None
    if (op == "pow" and work.kind == "i") or (work.kind == "b" and dtype.kind != "b"):
        return None
    if 0 in shape:
        return work, None, None
    to = output_strides(shape, (shape,), (strides,), work.itemsize)
    return work, _unusual(shape, to, work), scan.prepared(op, shape, axis[0], to, strides, dtype, work)
