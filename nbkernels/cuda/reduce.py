"""out = x folded by an associative operation over the dimensions in which out has size 1 or none: one kernel, one pass
for each level of chunks.

The order is fixed by x's sizes and memory order, the same on every card. The terms of a result are cut into chunks of
64 L; lane l of L folds terms l, l + L, l + 2L ... of a chunk, lanes are folded pairwise, and the chunks' results are
then folded in the same way. L is 8 where neighbours in memory belong to different results, else 32, and 256 for results
of 4096 terms and more.
"""

from __future__ import annotations

import functools

import numpy as np
from numba import cuda, types

from .. import scalar
from ..dtypes import HALVES
from ..strides import plan
from .elements import computed, reading, stored
from .elementwise import binary, fill, run
from .functions import device
from .launch import Kernel, elements, inlined, launch, pointer
from .memory import clash, empty
from .stage import AT

THREADS = 256
STEPS = 64  # elements that a lane adds: enough to hide the pairwise steps, few enough that 64 K elements fill 4 blocks


@functools.cache
def kernel(function, item: str, work: str, kept_ndim: int, reduced_ndim: int, lanes: int, across: bool) -> Kernel:
    """Folds, in the dtype `work`, over `reduced_ndim` loops for each index of `kept_ndim`.

    across: neighbouring threads work on other results.
    """
    REAL = computed(work)
    call = device(function, work)
    KEPT, REDUCED, LANES, SUMS = kept_ndim, reduced_ndim, lanes, THREADS // lanes
    LANE_STEP = SUMS if across else 1
    read = reading(item)

    @inlined
    def place(thread):
        """(sum, lane)"""
        if across:
            return thread % SUMS, thread // SUMS
        return thread // LANES, thread % LANES

    def folds(count, size, length, out, out_steps, chunk_step, x, kept, kept_steps, reduced, reduced_steps):
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

        terms, total = min(length, size - chunk * length), REAL(0)
        for r in range(lane, terms, LANES):
            rest, place_x = chunk * length + r, start
            for d in range(REDUCED - 1, 0, -1):
                quotient = rest // reduced[d]
                place_x += (rest - quotient * reduced[d]) * reduced_steps[d]
                rest = quotient
            term = REAL(read(x, place_x + rest * reduced_steps[0]))
            total = term if r < LANES else REAL(call(total, term))
        lane_sums[AT(thread)] = total
        cuda.syncthreads()
        width = LANES // 2
        while width > 0:
            if lane < width and lane + width < terms:
                other = lane_sums[AT(thread + width * LANE_STEP)]
                lane_sums[AT(thread)] = REAL(call(lane_sums[AT(thread)], other))
            cuda.syncthreads()
            width //= 2
        if lane == 0 and index < count:
            out[at] = lane_sums[AT(thread)]

    kept, reduced = types.UniTuple(types.int64, kept_ndim), types.UniTuple(types.int64, reduced_ndim)
    result, source = types.CPointer(stored(work)), types.CPointer(stored(item))
    signature = (types.int64,) * 3 + (result, kept, types.int64, source, kept, kept, reduced, reduced)
    shape = f"{kept_ndim}-D of {kept_ndim + reduced_ndim}-D, {lanes} lanes{' across' if across else ''}"
    return Kernel(f"fold by {function.__name__} {item} in {work} {shape}", folds, signature, THREADS)


def sum_to(out, self) -> None:
    """out = self summed to out's shape."""
    if self.size == 0 and out.size:
        fill(out, 0)
    else:
        fold("add", out, self, self.dtype)


def fold(op: str, out, x, work) -> None:
    """out = x folded over the dimensions where out's size is 1, or none, in the dtype `work`, halves in float32.

    out may be empty, and x where out is.
    """
    if out.size == 0:
        return
    work = np.dtype(np.float32) if work.name in HALVES else work
    if x.size == out.size and op in ("hypot", "gcd"):  # of one term, its size
        binary(op, out, x, 0, casting="unsafe", dtype=work)
    elif out.dtype != work or clash(out, x):
        temporary = empty(out.shape, out, work)
        _fold(op, temporary, x)
        run(scalar.find("first", work), out, temporary, temporary, (work, work, out.dtype))
    else:
        _fold(op, out, x)


def _fold(op, out, x):
    """The same for an out of the dtype that is computed in."""
    function = scalar.find(op, out.dtype)
    loops = _loops(x, out.shape, out.strides)
    across, size = bool(loops.shape) and loops.strides[1][-1] != 0, x.size // out.size
    lanes = 8 if across else 32 if size < 4096 else 256
    length = lanes * STEPS
    if size <= length:
        _pass(function, out, 0, out.size, x, loops, lanes, across, size, length)
        return
    partial = empty((-(-size // length), *out.shape), out)
    loops = _loops(x, out.shape, partial.strides[1:])
    _pass(function, partial, partial.strides[0], out.size, x, loops, lanes, across, size, length)
    _fold(op, out, partial)


def _loops(x, shape, strides):
    """Loops over x and over a result of this shape, which stands still where x is reduced: its stride is 0 there."""
    return plan((tuple(x.shape), tuple(shape)), (tuple(x.strides), tuple(strides)), (x.dtype.itemsize,) * 2)


def _pass(function, out, chunk_stride, count, x, loops, lanes, across, size, length) -> None:
    """One pass: `count` results of `size` terms each, cut into chunks of `length`, a result for each chunk."""
    dims = [(n, *steps) for n, *steps in zip(loops.shape, *loops.strides)]
    kept, kept_x, kept_out = zip(*[dim for dim in dims if dim[2] != 0] or [(1, 0, 0)])
    reduced, reduced_x, _ = zip(*[dim for dim in dims if dim[2] == 0] or [(1, 0, 0)])
    compiled = kernel(function, x.dtype.name, out.dtype.name, len(kept), len(reduced), lanes, across)
    blocks = -(-count // (THREADS // lanes)) * -(-size // length)
    launch(compiled, blocks, count, size, length, pointer(out, loops.offsets[1]), elements(out, kept_out),
           elements(out, (chunk_stride,))[0], pointer(x, loops.offsets[0]), kept, elements(x, kept_x),
           reduced, elements(x, reduced_x), stream=out.stream)  # fmt: skip
