"""dot and vdot on a CUDA device, in the CPU's order: 64 chains for each segment of 4096 steps.

A block takes a segment, a thread of it a chain. Pairs of chains are added through shared memory, segments in order by
one thread. Halves that become float32 have the order of their product, one chain.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
from numba import cuda, types
from numba.np.numpy_support import as_dtype

from ..jit.kind import Kind
from .chain import ending, loader, stepper, word
from .elements import stored
from .elementwise import copy
from .gemm import SEGMENT
from .kinds import kind_of
from .launch import Kernel, elements, launch, pointer
from .memory import empty
from .stage import AT

CHAINS = 64


@functools.cache
def kernel(kind: Kind, chains: int = CHAINS) -> Kernel:
    """sums[s] = the sum of segment s."""
    WORD, PLANES, THREADS, ROOM = word(kind), kind.planes, chains, chains * kind.planes
    load_a, load_b, step = loader(kind, "a"), loader(kind, "b"), stepper(kind)
    *_, write = ending(replace(kind, out=kind.chain))

    def segments(k, sums, a, sa, b, sb):
        halves, chain = cuda.shared.array(ROOM, WORD), cuda.local.array((1, PLANES), WORD)
        x, y = cuda.local.array(PLANES, WORD), cuda.local.array(PLANES, WORD)
        thread, start = cuda.threadIdx.x, cuda.blockIdx.x * SEGMENT
        for e in range(PLANES):
            chain[0, e] = WORD(0)
        for p in range(start + thread, min(start + SEGMENT, k), THREADS):
            load_a(x, 0, a, p * sa, True)
            load_b(y, 0, b, p * sb, True)
            step(chain, 0, 0, x, y)
        for e in range(PLANES):
            halves[AT(thread * PLANES + e)] = chain[0, e]
        cuda.syncthreads()
        half = THREADS // 2
        while half > 0:
            if thread < half:
                for e in range(PLANES):
                    halves[AT(thread * PLANES + e)] += halves[AT((thread + half) * PLANES + e)]
            cuda.syncthreads()
            half //= 2
        if thread == 0:
            for e in range(PLANES):
                x[e] = halves[AT(e)]
            write(x, 0, x, sums, cuda.blockIdx.x)

    vectors = [part for dtype in (kind.a, kind.b) for part in (types.CPointer(stored(dtype)), types.int64)]
    signature = (types.int64, types.CPointer(stored(kind.chain)), *vectors)
    return Kernel(f"dot {kind}, {chains} chains", segments, signature, chains)


@functools.cache
def final(kind: Kind) -> Kernel:
    """out = the sums, added in order."""
    WORD, PLANES = word(kind), kind.planes
    load = loader(Kind.plain(kind.chain), "a")
    scale, add, _, write = ending(kind)

    def total(count, out, sums):
        line, one = cuda.local.array(PLANES, WORD), cuda.local.array(2, WORD)
        one[0], one[1] = WORD(1), WORD(0)
        load(line, 0, sums, 0, True)
        for s in range(1, count):
            add(line, 0, one, sums, s)
        scale(line, 0, one)
        write(line, 0, one, out, 0)

    at = types.CPointer(stored(kind.out)), types.CPointer(stored(kind.chain))
    return Kernel(f"dot's segments {kind}", total, (types.int64, *at), 1)


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
    (k,), at = self.shape, [as_dtype(stored(dtype)) for dtype in (kind.a, kind.b, kind.out)]
    count, chains = max(1, -(-k // SEGMENT)), 1 if kind.way == "fma" and out.dtype != self.dtype else CHAINS
    alone = count == 1 and kind.direct
    sums = out if alone else empty((count,), out, np.dtype(kind.chain))
    launch(kernel(kind, chains), count, k, pointer(sums, 0, as_dtype(stored(kind.chain))),
           pointer(self, 0, at[0]), *elements(self, self.strides),
           pointer(tensor, 0, at[1]), *elements(tensor, tensor.strides), stream=out.stream)  # fmt: skip
    if not alone:
        launch(final(kind), 1, count, pointer(out, 0, at[2]), pointer(sums), stream=out.stream)


def vdot(out, self, other, out_dtype=None, mode=None) -> None:
    """out = the sum over i of conj(self[i]) * other[i]."""
    dot(out, self, other, out_dtype, mode, "a" if self.dtype.kind == "c" else None)
