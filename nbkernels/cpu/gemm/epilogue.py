"""A product that ends in a scalar function: a tile of C goes through it as soon as it is done, from L1 and back.

The function's loops are the element-wise ones, called by address from the packed path's loops: no product is compiled
anew, and the bits are those of the function over the whole. Small products go through it whole; they are in the caches.
"""

from __future__ import annotations

import functools
from array import array

import numpy as np

from ...jit.abi.address import invoke, scratch, set_word, word
from ...jit.compile.cache import compiled
from ...jit.user.scalar_function import adopt
from ..elementwise import fused
from .gemm import clash, gemm

MOST = 16  # operands: out, the product, and up to eight more
LOOP, COUNT, OPERANDS = 0, 8, 16  # the words of a context; then base and both steps, in bytes, for each operand


@functools.cache
def _kernel() -> int:
    """void(context, i, j, h, w): the function of the h x w elements at (i, j)."""

    def after(context, i, j, h, w):
        room = scratch(384)  # 3 * MOST words
        pointers, row_steps, column_steps = room, room + 8 * MOST, room + 16 * MOST
        for p in range(word(context + COUNT)):
            at = context + OPERANDS + 24 * p
            down, across = word(at + 8), word(at + 16)
            set_word(pointers + 8 * p, word(at) + i * down + j * across)
            set_word(row_steps + 8 * p, down)
            set_word(column_steps + 8 * p, across)
        invoke(word(context + LOOP), (pointers, h, w, row_steps, column_steps, 0))

    return compiled(after, "void(int64, int64, int64, int64, int64)", "gemm_after")


class After:
    """A function to apply to tiles: out = function(product, *operands), all of one shape."""

    def __init__(self, function, out, inputs):
        dtypes = tuple(x.dtype for x in inputs)
        self.loop = fused._loops(function, adopt(function, dtypes), dtypes, (out.dtype,))
        self.arrays = [out, *(np.broadcast_to(x, out.shape) for x in inputs)]

    def words(self, swapped: bool) -> tuple[int, array]:
        """The kernel and its context; swapped: for tiles of the transposed product."""
        axes = (1, 0) if swapped else (0, 1)
        operands = [word for x in self.arrays for word in (x.ctypes.data, *(x.strides[d] for d in axes))]
        return _kernel(), array("q", [self.loop, len(self.arrays), *operands])


def run(function, out, before, dtype, x, a, b, operands, how) -> None:
    """out = function(product, *operands), product = alpha * a @ b + beta * x of `dtype`, which stays in `before` if
    that is given. `how`: gemm's beta, alpha, mode, conj and tiles.

    All checks are done, and `before` shares no memory with out and operands.
    """
    given = dtype, *(x.dtype for x in operands)
    apart = not (adopt(function, given).raises or any(clash(out, each) for each in operands))
    product = before
    if product is None:  # in out, unless that has another dtype, or the function reads something there
        product = out if apart and out.dtype == dtype else np.empty(out.shape, dtype)
    if product is not out:
        apart = apart and not any(clash(out, each) for each in (a, b, x))
    after = After(function, out, (product, *operands)) if apart else None
    if not gemm(product, x, a, b, **how, after=after):
        fused.run(function, [out], [product, *operands])
