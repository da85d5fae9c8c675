"""out = x folded by an associative operation over the dimensions in which out has size 1 or none.
One kernel makes one pass for each level of chunks.

The order is fixed by x's sizes, dtype and memory order, the same on every card and at every address. The terms of a
result are cut into chunks, a chunk into pieces of P, of which lane l of L folds pieces l, l + L, l + 2L ..., each of
the P places for itself; places, then lanes, are folded by halves (j with j + h, for h from the half down to 1), and the
chunks' results are folded in the same way as if they were x. Where neighbours in memory belong to different results, P
is 1; where they are terms of one, as many as 16 bytes hold, of 8 at most. `lanes` has L, and what a chunk is.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from .. import scalar
from ..dtypes import HALVES, SIGNLESS
from ..strides import plan
from .elementwise import WIDEST, binary, divisor, fill, run
from .launch import KERNELS, Kernel, elements, launch, pointer, simulated
from .memory import clash, empty

THREADS = 256
NEIGHBOURS = 8  # elements of a piece at most
FEW, ROWS, TERMS = 4, 32, 16  # pieces that a lane takes before others share its work; in a chunk, across and along
BLOCKS = 4  # of a multiprocessor at a time: columns of float32 take 74 us at 94 registers a thread, 67 at 64 (H200)


@functools.cache
def kernel(function, item: str, work: str, loops, lanes: int, width: int, way: str, across: bool, wide: bool) -> Kernel:
    """Folds, in the dtype `work`, by pieces of `width`, as kernels/reduce.py has them."""
    arguments = function, item, work, loops, lanes, width, way, across, wide, THREADS
    return Kernel(f"{KERNELS}.reduce:make", arguments, THREADS, BLOCKS)


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
    if x.size == out.size and op in SIGNLESS:  # of one term, its size
        binary(op, out, x, 0, casting="unsafe", dtype=work)
    elif out.dtype != work or clash(out, x):
        temporary = empty(out.shape, out, work)
        _fold(op, temporary, x)
        run(scalar.find("first", work), out, temporary, temporary, (work, work, out.dtype))
    else:
        _fold(op, out, x)


def lanes(count: int, size: int, neighbours: int, across: bool) -> tuple[int, int]:
    """(lanes, terms of a chunk) of `count` results of `size` terms each, of which a piece has so many `neighbours`.

    A lane has four pieces where there are as many. Along terms a block's threads are lanes of few results, a chunk of
    16 pieces a lane; across, of as many results as a row of 512 bytes has, 32 pieces a lane.

    >>> lanes(8192, 8192, 4, False), lanes(8192, 8192, 4, True), lanes(100_000, 3, 4, False), lanes(3, 100_000, 4, True)
    ((256, 16384), (8, 256), (1, 64), (256, 8192))
    """
    pieces = size if across else -(-size // neighbours)
    most = max(8, THREADS // power(-(-count // neighbours))) if across else THREADS
    found = min(most, power(-(-pieces // FEW)))
    return found, found * (ROWS if across else TERMS * neighbours)


def power(n: int) -> int:
    """The least power of two that is not below n."""
    return 1 << (n - 1).bit_length()


def _fold(op, out, x):
    """out = x folded by `op` over the dimensions where out's size is 1, or none, in out's dtype."""
    function = scalar.find(op, out.dtype)
    loops = _loops(x, out.shape, out.strides)
    across, size = bool(loops.shape) and loops.strides[1][-1] != 0, x.size // out.size
    neighbours = min(NEIGHBOURS, max(1, WIDEST // x.dtype.itemsize))
    many, length = lanes(out.size, size, neighbours, across)
    if size <= length:
        _pass(function, out, 0, x, loops, many, neighbours, across, size, length)
        return
    partial = empty((-(-size // length), *out.shape), out)
    loops = _loops(x, out.shape, partial.strides[1:])
    _pass(function, partial, partial.strides[0], x, loops, many, neighbours, across, size, length)
    _fold(op, out, partial)


def _loops(x, shape, strides):
    """Loops over x and over a result of this shape, which stands still where x is reduced: its stride is 0 there."""
    return plan((tuple(x.shape), tuple(shape)), (tuple(x.strides), tuple(strides)), (x.dtype.itemsize,) * 2)


def _pass(function, out, chunk_stride, x, loops, many, neighbours, across, size, length) -> None:
    """One pass: results of `size` terms each, cut into chunks of `length`, a result for each chunk."""
    dims = [(n, *steps) for n, *steps in zip(loops.shape, *loops.strides)]
    kept, kept_x, kept_out = zip(*[dim for dim in dims if dim[2] != 0] or [(1, 0, 0)])
    reduced, reduced_x, _ = zip(*[dim for dim in dims if dim[2] == 0] or [(1, 0, 0)])
    inner, size_x = len(kept) - 1 if across else len(kept) + len(reduced) - 1, x.dtype.itemsize
    sizes, steps = (*kept, *reduced), (*kept_x, *reduced_x)
    starts = 0 if simulated() else int(pointer(x, loops.offsets[0])), *(s for d, s in enumerate(steps) if d != inner)
    vector = neighbours > 1 and steps[inner] == size_x and (sizes[inner] % neighbours == 0 or not across)
    vector = vector and all(start % (neighbours * size_x) == 0 for start in starts)
    if not across and len(reduced) > 1 and sizes[inner] % neighbours:
        way = "apart"
    else:
        way = "vector" if vector else "strided"
    width, wide = 1 if across and not vector else neighbours, len(reduced) > 1 and size >= 1 << 31
    count = math.prod(kept) // (width if across else 1)
    compiled = kernel(function, x.dtype.name, out.dtype.name, (len(kept), len(reduced)), many, width, way, across, wide)
    blocks = -(-count // (THREADS // many)) * -(-size // length)
    launch(compiled, blocks, count, size, length, pointer(out, loops.offsets[1]), elements(out, kept_out),
           elements(out, (chunk_stride,))[0], pointer(x, loops.offsets[0]), kept, elements(x, kept_x),
           reduced, tuple(divisor(n, wide) for n in reduced), elements(x, reduced_x), stream=out.stream)  # fmt: skip
