"""Folds in order along one dimension of device arrays, a thread for each row of steps.

accumulate   out[0] = x[0], out[k] = op(out[k - 1], x[k])
in_order     the last of these alone
"""

from __future__ import annotations

import functools

import numpy as np
from numba import cuda, types

from .. import scalar
from ..dtypes import HALVES, resolve
from ..strides import plan
from .elementwise import computed, reading, run, stored
from .functions import device
from .launch import Kernel, elements, launch, multiprocessors, pointer
from .memory import clash

THREADS, BLOCKS = 128, 16


@functools.cache
def kernel(function, item: str, work: str, compute, ndim: int) -> Kernel:
    """Rows of `count` steps at each index of `ndim` loops; of an out_step of 0 the last stays."""
    REAL, X, Y, RESULT = map(computed, (work, *compute))
    NDIM = ndim
    call = device(function, "float32" if compute[0] in HALVES else compute[0])
    read, again = reading(item), reading(work)

    def steps(rows, count, out, out_steps, out_step, x, x_steps, x_step, shape):
        for row in range(cuda.grid(1), rows, cuda.gridsize(1)):
            rest, at, source = row, 0, 0
            for d in range(NDIM - 1, -1, -1):
                quotient = rest // shape[d]
                i, rest = rest - quotient * shape[d], quotient
                at, source = at + i * out_steps[d], source + i * x_steps[d]
            out[at] = REAL(read(x, source))
            for k in range(1, count):
                before = again(out, at + (k - 1) * out_step)
                out[at + k * out_step] = REAL(RESULT(call(X(before), Y(read(x, source + k * x_step)))))

    index = types.UniTuple(types.int64, ndim)
    operands = (types.CPointer(stored(work)), index, types.int64, types.CPointer(stored(item)), index, types.int64)
    name = f"scan by {function.__name__} {item} in {work} {ndim}-D"
    return Kernel(name, steps, (types.int64, types.int64, *operands, index), THREADS)


def accumulate(op: str, out, x, axis: int, work) -> None:
    """out[k] = op(out[k - 1], x[k]) along an axis, in `work`; both have one shape."""
    if x.size:
        _held(op, out, x, axis, work, tuple(out.strides))


def in_order(op: str, out, x, axis: int, work) -> None:
    """out = x folded along an axis from its first element on; out has x's shape without it, and is not empty."""
    strides = list(out.strides)
    strides.insert(axis, 0)
    _held(op, out, x, axis, work, tuple(strides))


def _held(op, out, x, axis, work, strides):
    """Straight to out, or by way of an array of the dtype `work` where out has another or shares memory with x."""
    if out.dtype == work and not clash(out, x):
        _scan(op, out, x, axis, work, strides)
        return
    held = cuda.device_array(tuple(out.shape), work, stream=out.stream)
    inner = list(held.strides)
    if len(inner) < len(strides):
        inner.insert(axis, 0)
    _scan(op, held, x, axis, work, tuple(inner))
    run(scalar.find("first", work), out, held, held, (work, work, out.dtype))


def _scan(op, out, x, axis, work, strides):
    names = resolve(op, work, x.dtype, None if work.kind == "b" else work, "unsafe")
    rest, to, source = (tuple(v for d, v in enumerate(part) if d != axis) for part in (x.shape, strides, x.strides))
    loops = plan((rest, rest), (to, source), (work.itemsize, x.dtype.itemsize))
    shape = loops.shape or (1,)
    moves = [elements(a, s) or (0,) for a, s in zip((out, x), loops.strides)]
    compiled = kernel(scalar.find(op, names[0]), x.dtype.name, work.name, tuple(d.name for d in names), len(shape))
    rows = int(np.prod(shape, dtype=int))
    blocks = min(-(-rows // THREADS), multiprocessors() * BLOCKS)
    launch(compiled, blocks, rows, x.shape[axis], pointer(out, loops.offsets[0]), moves[0],
           elements(out, (strides[axis],))[0], pointer(x, loops.offsets[1]), moves[1],
           elements(x, (x.strides[axis],))[0], shape, stream=out.stream)  # fmt: skip
