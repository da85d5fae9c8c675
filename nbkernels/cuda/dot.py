"""dot and vdot on a CUDA device, in the CPU's order: 64 chains for each segment of 4096 steps.

A block takes a segment, a thread of it a chain. Pairs of chains are added through shared memory, segments in order by
one thread.
"""

from __future__ import annotations

import functools

from numba import cuda, types

from .elementwise import fill
from .gemm import DTYPES, SEGMENT
from .launch import Kernel, elements, empty, launch, pointer
from .stage import AT

CHAINS = 64


@functools.cache
def kernel(dtype: str) -> Kernel:
    """sums[s] = the sum of segment s."""
    REAL = getattr(types, dtype)

    def segments(k, sums, a, sa, b, sb):
        chains = cuda.shared.array(CHAINS, REAL)
        thread, start = cuda.threadIdx.x, cuda.blockIdx.x * SEGMENT
        chain = REAL(0.0)
        for p in range(start + thread, min(start + SEGMENT, k), CHAINS):
            chain = cuda.fma(a[p * sa], b[p * sb], chain)
        chains[AT(thread)] = chain
        cuda.syncthreads()
        half = CHAINS // 2
        while half > 0:
            if thread < half:
                chains[AT(thread)] += chains[AT(thread + half)]
            cuda.syncthreads()
            half //= 2
        if thread == 0:
            sums[cuda.blockIdx.x] = chains[AT(thread)]

    at = types.CPointer(REAL)
    return Kernel(f"dot {dtype}", segments, (types.int64, at, at, types.int64, at, types.int64), CHAINS)


@functools.cache
def ending(dtype: str) -> Kernel:
    """out = the sums, added in order."""

    def add(count, out, sums):
        total = sums[0]
        for s in range(1, count):
            total += sums[s]
        out[0] = total

    at = types.CPointer(getattr(types, dtype))
    return Kernel(f"dot's segments {dtype}", add, (types.int64, at, at), 1)


def dot(out, self, tensor, out_dtype=None, mode=None, conj=None) -> None:
    """out = the sum over i of self[i] * tensor[i]."""
    (k,), dtype = self.shape, str(self.dtype)
    if dtype not in DTYPES:
        raise TypeError(f"no kernel on CUDA multiplies {dtype} to {out.dtype}; {' and '.join(DTYPES)} have one")
    if k == 0:
        fill(out, 0)
        return
    count = -(-k // SEGMENT)
    sums = empty((count,), out) if count > 1 else out
    launch(kernel(dtype), count, k, pointer(sums), pointer(self), *elements(self, self.strides),
           pointer(tensor), *elements(tensor, tensor.strides), stream=out.stream)  # fmt: skip
    if count > 1:
        launch(ending(dtype), 1, count, pointer(out), pointer(sums), stream=out.stream)


def vdot(out, self, other, out_dtype=None, mode=None) -> None:
    """dot: there are no complex numbers here."""
    dot(out, self, other)
