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

from .. import scalar
from ..dtypes import HALVES
from ..strides import plan
from .elementwise import binary, fill, run
from .launch import KERNELS, Kernel, elements, launch, pointer
from .memory import clash, empty

THREADS = 256
STEPS = 64  # elements that a lane adds: enough to hide the pairwise steps, few enough that 64 K elements fill 4 blocks


@functools.cache
def kernel(function, item: str, work: str, kept_ndim: int, reduced_ndim: int, lanes: int, across: bool) -> Kernel:
    """Folds, in the dtype `work`, over `reduced_ndim` loops for each index of `kept_ndim`.

    across: neighbouring threads work on other results.
    """
    arguments = function, item, work, kept_ndim, reduced_ndim, lanes, across, THREADS
    return Kernel(f"{KERNELS}.reduce:make", arguments, THREADS)


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
