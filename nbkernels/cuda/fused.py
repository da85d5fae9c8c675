"""A user's scalar function over broadcast device arrays of any strides, all of its outputs in one pass."""

from __future__ import annotations

import functools

import numpy as np

from ..jit.adopt import adopt
from ..strides import broadcast_strides, plan
from .elementwise import BLOCKS, THREADS, copy
from .launch import KERNELS, Kernel, elements, launch, multiprocessors, pointer
from .memory import clash, empty, same, uploaded


@functools.cache
def kernel(function, dtypes: tuple[str, ...], count: int, ndim: int, masked: bool) -> Kernel:
    """The loop for `count` outputs, the arguments and perhaps a mask, of these dtypes."""
    adopted = adopt(function, tuple(map(np.dtype, dtypes[count : len(dtypes) - masked])))
    if adopted.raises:
        raise TypeError(f"{function.__name__} may raise, as an index beyond an array does, which kernels cannot tell")
    return Kernel(f"{KERNELS}.fused:make", (function, dtypes, count, ndim, masked, THREADS), THREADS)


def run(function, outs, inputs, where=None, fresh=False) -> None:
    """outs[k] = function(*inputs)[k], where `where` is not False; outs do not share memory with one another.

    `fresh`, whether nobody has touched theirs, is for the CPU's stores and changes nothing here.
    """
    like = outs[0]
    inputs = [uploaded(x, like) if isinstance(x, np.ndarray) else x for x in inputs]
    inputs = [_apart(outs, x) for x in (inputs if where is None else (*inputs, where))]
    arrays = [*outs, *inputs]
    loops = plan(*(tuple(tuple(getattr(x, name)) for x in arrays) for name in ("shape", "strides")),
                 tuple(x.dtype.itemsize for x in arrays))  # fmt: skip
    shape = loops.shape or (1,)
    walks = [(pointer(x, offset), elements(x, strides) or (0,)) for x, offset, strides
             in zip(arrays, loops.offsets, loops.strides)]  # fmt: skip
    made = kernel(function, tuple(x.dtype.name for x in arrays), len(outs), len(shape), where is not None)
    blocks = min(-(-loops.size // THREADS), multiprocessors() * BLOCKS)
    operands = [part for walk in walks for part in walk]
    launch(made, blocks, loops.size, shape, *operands, stream=like.stream)


def _apart(outs, x):
    """x, or a copy where an out really overlaps it other than element for element."""
    for out in outs:
        if not same(out, x, broadcast_strides(out.shape, x.shape, x.strides)) and clash(out, x):
            other = empty(x.shape, outs[0], x.dtype)
            copy(other, x)
            return other
    return x
