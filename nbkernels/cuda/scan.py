"""Folds in order along one dimension of device arrays, a thread for each row of steps.

accumulate   out[0] = x[0], out[k] = op(out[k - 1], x[k])
in_order     the last of these alone, where a mask says so, from x[0] or from what out has
at           out[indices[i]] = op(out[indices[i]], x[i]): a thread for each element that is named, its turns in order
"""

from __future__ import annotations

import functools

import numpy as np

from .. import scalar
from ..dtypes import NUMBERS, kind, resolve
from ..strides import broadcast_strides, plan
from .elementwise import fill, run
from .launch import KERNELS, Kernel, elements, launch, multiprocessors, pointer
from .memory import clash, empty, uploaded

THREADS, BLOCKS = 128, 16


@functools.cache
def kernel(function, item: str, work: str, compute, ndim: int, started=False, masked=False) -> Kernel:
    """Rows of `count` steps at each index of `ndim` loops; of an out_step of 0 the last stays.

    started: out has what comes before the first of x; masked: steps are made where a mask is.
    """
    return Kernel(f"{KERNELS}.scan:steps", (function, item, work, compute, ndim, started, masked), THREADS)


@functools.cache
def visitor(function, out: str, item: str, compute) -> Kernel:
    """out[targets[g]] = function(out[targets[g]], x[sources[j]]) for j from starts[g] to starts[g + 1], in order."""
    return Kernel(f"{KERNELS}.scan:visitor", (function, out, item, compute), THREADS)


def accumulate(op: str, out, x, axis: int, work) -> None:
    """out[k] = op(out[k - 1], x[k]) along an axis, in `work`; both have one shape."""
    if x.size:
        _held(op, out, x, axis, work, tuple(out.strides))


def in_order(op: str, out, x, axis: int, work, initial=None, where=None) -> None:
    """out = x folded along an axis, from its first element on or from `initial`; out has x's shape without it, and is
    not empty."""
    strides = list(out.strides)
    strides.insert(axis, 0)
    _held(op, out, x, axis, work, tuple(strides), initial, where)


def _held(op, out, x, axis, work, strides, initial=None, where=None):
    """Straight to out, or by way of an array of the dtype `work` where out has another or shares memory with inputs."""
    if out.dtype == work and not clash(out, x) and (where is None or not clash(out, where)):
        _scan(op, out, x, axis, work, strides, initial, where)
        return
    held = empty(out.shape, out, work)
    inner = list(held.strides)
    if len(inner) < len(strides):
        inner.insert(axis, 0)
    _scan(op, held, x, axis, work, tuple(inner), initial, where)
    run(scalar.find("first", work), out, held, held, (work, work, out.dtype))


def _scan(op, out, x, axis, work, strides, initial, where):
    """Into an out of the dtype `work`, whose strides along the axis of x may be 0."""
    names = resolve(op, work, x.dtype, None if work.kind == "b" else work, "unsafe")
    if initial is not None:
        fill(out, initial)
    arrays, steps = [out, x], [strides, x.strides]
    if where is not None:
        arrays.append(where)
        steps.append(broadcast_strides(x.shape, where.shape, where.strides))
    rest, *paces = (tuple(v for d, v in enumerate(part) if d != axis) for part in (x.shape, *steps))
    loops = plan((rest,) * len(arrays), tuple(paces), tuple(a.dtype.itemsize for a in arrays))
    shape = loops.shape or (1,)
    walks = [part for a, s, p, offset in zip(arrays, steps, loops.strides, loops.offsets)
             for part in (pointer(a, offset), elements(a, p) or (0,), elements(a, (s[axis],))[0])]  # fmt: skip
    if where is None:
        walks += pointer(out), (0,) * len(shape), 0
    name, words = tuple(d.name for d in names), (initial is not None, where is not None)
    compiled = kernel(scalar.find(op, *names[:2]), x.dtype.name, work.name, name, len(shape), *words)
    rows = int(np.prod(shape, dtype=int))
    blocks = min(-(-rows // THREADS), multiprocessors() * BLOCKS)
    launch(compiled, blocks, rows, x.shape[axis], *walks, shape, stream=out.stream)


def at(op: str, out, indices, x) -> None:
    """out[i] = op(out[i], x[i]) for one index after the other, so that repeated ones add up, as NumPy's ufunc.at.

    `indices` is anything that indexes an array, on the host; x, a device array or a number, broadcasts to what it
    selects. Which elements are named, and when, is sorted out on the host.
    """
    names = resolve(op, out.dtype, kind(x))
    if not np.can_cast(names[2], out.dtype, "same_kind"):
        raise TypeError(f"{op}: cannot cast the result from {names[2]} to {out.dtype!r} under casting='same_kind'")
    if type(x) in NUMBERS or isinstance(x, np.ndarray):
        x = uploaded(np.asarray(x, names[1] if type(x) in NUMBERS else None), out)
    places = _distances(out.shape, elements(out, out.strides))[indices]
    sources = np.broadcast_to(_distances(x.shape, elements(x, x.strides)), places.shape).ravel()
    if places.size == 0:
        return
    order = np.argsort(places, axis=None, kind="stable")
    targets, starts = np.unique(places.ravel()[order], return_index=True)
    if clash(out, x):
        held = empty(x.shape, out, x.dtype)
        run(scalar.find("first", x.dtype), held, x, x, (x.dtype,) * 3)
        x, sources = held, np.broadcast_to(_distances(x.shape, elements(held, held.strides)), places.shape).ravel()
    lists = [uploaded(part, out) for part in (targets, np.append(starts, order.size), sources[order])]
    compiled = visitor(scalar.find(op, *names[:2]), out.dtype.name, x.dtype.name, tuple(d.name for d in names))
    blocks = min(-(-targets.size // THREADS), multiprocessors() * BLOCKS)
    launch(compiled, blocks, targets.size, *map(pointer, lists), pointer(out), pointer(x), stream=out.stream)


def _distances(shape, steps):
    """Distance in elements of each element from the first."""
    distances = np.zeros(shape, np.int64)
    for d, (size, step) in enumerate(zip(shape, steps)):
        distances += (np.arange(size) * step).reshape((size,) + (1,) * (len(shape) - d - 1))
    return distances
