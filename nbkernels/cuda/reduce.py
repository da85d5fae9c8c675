"""out = self summed over the dimensions in which out has size 1 or none: one kernel, one pass for each level of chunks.

Order of summation: fixed by self's sizes and memory order, the same on every card. The elements of a sum are cut into
chunks of 64 L; lane l of L adds elements l, l + L, l + 2L ... of a chunk to zero, lanes are added pairwise, and the
chunks' sums are then summed in the same way. L is 8 where neighbours in memory belong to different sums, else 32, and
256 for sums of 4096 elements and more.
"""

from __future__ import annotations

import functools

import numpy as np
from numba import cuda, from_dtype, types

from ..strides import plan
from .elementwise import copy, fill
from .launch import Kernel, elements, empty, inlined, launch, pointer
from .memory import clash
from .stage import AT

THREADS = 256
STEPS = 64  # elements that a lane adds: enough to hide the pairwise steps, few enough that 64 K elements fill 4 blocks


@functools.cache
def kernel(dtype: str, kept_ndim: int, reduced_ndim: int, lanes: int, across: bool) -> Kernel:
    """Sums over `reduced_ndim` loops for each index of `kept_ndim`; across: neighbouring threads work on other sums."""
    REAL = from_dtype(np.dtype(dtype))
    KEPT, REDUCED, LANES, SUMS = kept_ndim, reduced_ndim, lanes, THREADS // lanes
    LANE_STEP = SUMS if across else 1

    @inlined
    def place(thread):
        """(sum, lane)"""
        if across:
            return thread % SUMS, thread // SUMS
        return thread // LANES, thread % LANES

    def sums(count, size, length, out, out_steps, chunk_step, x, kept, kept_steps, reduced, reduced_steps):
        lane_sums = cuda.shared.array(THREADS, REAL)
        thread = cuda.threadIdx.x
        which, lane = place(thread)
        groups = (count + SUMS - 1) // SUMS
        chunk = cuda.blockIdx.x // groups
        index = cuda.blockIdx.x % groups * SUMS + which
        rest, at, start = min(index, count - 1), chunk * chunk_step, 0
        for d in range(KEPT - 1, 0, -1):
            quotient = rest // kept[d]
            i, rest = rest - quotient * kept[d], quotient
            at, start = at + i * out_steps[d], start + i * kept_steps[d]
        at, start = at + rest * out_steps[0], start + rest * kept_steps[0]

        total = REAL(0)
        for r in range(chunk * length + lane, min((chunk + 1) * length, size), LANES):
            rest, place_x = r, start
            for d in range(REDUCED - 1, 0, -1):
                quotient = rest // reduced[d]
                place_x += (rest - quotient * reduced[d]) * reduced_steps[d]
                rest = quotient
            total = REAL(total + x[place_x + rest * reduced_steps[0]])
        lane_sums[AT(thread)] = total
        cuda.syncthreads()
        width = LANES // 2
        while width > 0:
            if lane < width:
                lane_sums[AT(thread)] += lane_sums[AT(thread + width * LANE_STEP)]
            cuda.syncthreads()
            width //= 2
        if lane == 0 and index < count:
            out[at] = lane_sums[AT(thread)]

    kept, reduced = types.UniTuple(types.int64, kept_ndim), types.UniTuple(types.int64, reduced_ndim)
    memory = types.CPointer(REAL)
    signature = (types.int64,) * 3 + (memory, kept, types.int64, memory, kept, kept, reduced, reduced)
    name = f"sum_to {dtype} {kept_ndim}-D of {kept_ndim + reduced_ndim}-D, {lanes} lanes{' across' if across else ''}"
    return Kernel(name, sums, signature, THREADS)


def sum_to(out, self) -> None:
    """out = self summed to out's shape."""
    if out.size == 0:
        return
    if self.size == 0:
        fill(out, 0)
        return
    if clash(out, self):
        temporary = empty(out.shape, out)
        sum_to(temporary, self)
        copy(out, temporary)
        return
    loops = _loops(self, out.shape, out.strides)
    across, size = bool(loops.shape) and loops.strides[1][-1] != 0, self.size // out.size
    lanes = 8 if across else 32 if size < 4096 else 256
    length = lanes * STEPS
    if size <= length:
        _sum(out, 0, out.size, self, loops, lanes, across, size, length)
        return
    partial = empty((-(-size // length), *out.shape), out)
    loops = _loops(self, out.shape, partial.strides[1:])
    _sum(partial, partial.strides[0], out.size, self, loops, lanes, across, size, length)
    sum_to(out, partial)


def _loops(x, shape, strides):
    """Loops over x and over a result of this shape, which stands still where x is reduced: its stride is 0 there."""
    return plan((tuple(x.shape), tuple(shape)), (tuple(x.strides), tuple(strides)), (x.dtype.itemsize,) * 2)


def _sum(out, chunk_stride, count, x, loops, lanes, across, size, length) -> None:
    """One pass: `count` sums of `size` elements each, cut into chunks of `length`, a result for each chunk."""
    dims = [(n, *steps) for n, *steps in zip(loops.shape, *loops.strides)]
    kept, kept_x, kept_out = zip(*[dim for dim in dims if dim[2] != 0] or [(1, 0, 0)])
    reduced, reduced_x, _ = zip(*[dim for dim in dims if dim[2] == 0] or [(1, 0, 0)])
    compiled = kernel(str(x.dtype), len(kept), len(reduced), lanes, across)
    blocks = -(-count // (THREADS // lanes)) * -(-size // length)
    launch(compiled, blocks, count, size, length, pointer(out, loops.offsets[1]), elements(out, kept_out),
           elements(out, (chunk_stride,))[0], pointer(x, loops.offsets[0]), kept, elements(x, kept_x),
           reduced, elements(x, reduced_x), stream=out.stream)  # fmt: skip
