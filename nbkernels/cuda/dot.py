"""dot and vdot on a CUDA device, in the CPU's order: 64 chains for each segment of 4096 steps.

A block takes a segment, a thread of it a chain. Pairs of chains are added through shared memory, segments in order by
one thread. Halves that become float32 have the order of their product, one chain.
"""

from __future__ import annotations

import functools

import numpy as np

from ..jit.kind import Kind
from .elementwise import copy
from .kinds import kind_of
from .launch import KERNELS, Kernel, elements, launch, pointer, stored
from .memory import empty
from .tiles import SEGMENT

CHAINS = 64


@functools.cache
def kernel(kind: Kind, chains: int = CHAINS) -> Kernel:
    """sums[s] = the sum of segment s."""
    return Kernel(f"{KERNELS}.dot:segments", (kind, chains), chains)


@functools.cache
def final(kind: Kind) -> Kernel:
    """out = the sums, added in order."""
    return Kernel(f"{KERNELS}.dot:final", (kind,), 1)


def converted(x, dtype):
    """x, or a copy of another dtype."""
    if x.dtype == dtype:
        return x
    made = empty(x.shape, x, dtype)
    copy(made, x)
    return made


def dot(out, self, tensor, out_dtype=None, mode=None, conj=None) -> None:
    """out = the sum over i of self[i] * tensor[i]; vectors of two dtypes are converted to out's before."""
    if out_dtype is None and self.dtype != tensor.dtype:
        self, tensor = (converted(x, out.dtype) for x in (self, tensor))
    kind = kind_of(*(x.dtype.name for x in (self, tensor, out)), conj or "", mode)
    (k,), at = self.shape, [stored(dtype) for dtype in (kind.a, kind.b, kind.out)]
    count, chains = max(1, -(-k // SEGMENT)), 1 if kind.way == "fma" and out.dtype != self.dtype else CHAINS
    alone = count == 1 and kind.direct
    sums = out if alone else empty((count,), out, np.dtype(kind.chain))
    launch(kernel(kind, chains), count, k, pointer(sums, 0, stored(kind.chain)),
           pointer(self, 0, at[0]), *elements(self, self.strides),
           pointer(tensor, 0, at[1]), *elements(tensor, tensor.strides), stream=out.stream)  # fmt: skip
    if not alone:
        launch(final(kind), 1, count, pointer(out, 0, at[2]), pointer(sums), stream=out.stream)


def vdot(out, self, other, out_dtype=None, mode=None) -> None:
    """out = the sum over i of conj(self[i]) * other[i]."""
    dot(out, self, other, out_dtype, mode, "a" if self.dtype.kind == "c" else None)
