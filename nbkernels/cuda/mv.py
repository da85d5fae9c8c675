"""mv and addmv on a CUDA device, in the CPU's order: 8 chains for each segment of 4096 steps.

A thread takes a chain of an output, and neighbouring threads the direction of A that is closer in memory. Pairs of
chains are added through shared memory, segments in order by the thread of the first chain.
"""

from __future__ import annotations

import functools

from numba import cuda, types

from ..strides import broadcast_strides
from .elementwise import copy, fill, multiply
from .gemm import DTYPES, SEGMENT
from .launch import Kernel, elements, empty, launch, pointer
from .memory import clash, same
from .stage import AT

CHAINS = 8
OUTPUTS = 16  # of a block


@functools.cache
def kernel(dtype: str) -> Kernel:
    """y = beta * x + alpha * A @ v, of OUTPUTS outputs in a block."""
    REAL = getattr(types, dtype)

    def sums(m, k, y, sy, x, sx, a, rsa, csa, v, sv, beta, alpha, reads_x):
        chains, thread = cuda.shared.array(OUTPUTS * CHAINS, REAL), cuda.threadIdx.x
        output, c = thread // CHAINS, thread % CHAINS
        if abs(rsa) < abs(csa):
            output, c = thread % OUTPUTS, thread // OUTPUTS
        i, mine = cuda.blockIdx.x * OUTPUTS + output, output * CHAINS + c
        row, total = min(i, m - 1) * rsa, REAL(0.0)
        for start in range(0, k, SEGMENT):
            chain = REAL(0.0)
            for p in range(start + c, min(start + SEGMENT, k), CHAINS):
                chain = cuda.fma(a[row + p * csa], v[p * sv], chain)
            chains[AT(mine)] = chain
            cuda.syncthreads()
            half = CHAINS // 2
            while half > 0:
                if c < half:
                    chains[AT(mine)] += chains[AT(mine + half)]
                cuda.syncthreads()
                half //= 2
            total = chains[AT(mine)] if start == 0 else total + chains[AT(mine)]
            cuda.syncthreads()
        if c == 0 and i < m:
            total = alpha * total
            if reads_x:
                total = cuda.fma(beta, x[i * sx], total)
            y[i * sy] = total

    at, stride = types.CPointer(REAL), types.int64
    signature = (
        types.int64,
        types.int64,
        at,
        stride,
        at,
        stride,
        at,
        stride,
        stride,
        at,
        stride,
        REAL,
        REAL,
        types.int64,
    )
    return Kernel(f"mv {dtype}", sums, signature, OUTPUTS * CHAINS)


def addmv(out, self, mat, vec, beta, alpha, out_dtype=None, mode=None, conj=None) -> None:
    """out = beta * self + alpha * (mat @ vec)."""
    (m, k), dtype = mat.shape, str(mat.dtype)
    if dtype not in DTYPES or mat.dtype != out.dtype:
        raise TypeError(f"no kernel on CUDA multiplies {dtype} to {out.dtype}; {' and '.join(DTYPES)} have one")
    if m == 0:
        return
    x = None if beta == 0 else self
    if k == 0 or alpha == 0:
        fill(out, 0) if x is None else multiply(out, x, beta)
        return
    xs = None if x is None else broadcast_strides((m,), x.shape, x.strides)
    if clash(out, mat) or clash(out, vec) or (x is not None and not same(out, x, xs) and clash(out, x)):
        temporary = empty((m,), out)
        addmv(temporary, x, mat, vec, beta, alpha)
        copy(out, temporary)
        return
    real = out.dtype.type
    addend = (pointer(out), 0) if x is None else (pointer(x), *elements(x, xs))
    launch(kernel(dtype), -(-m // OUTPUTS), m, k, pointer(out), *elements(out, out.strides), *addend, pointer(mat),
           *elements(mat, mat.strides), pointer(vec), *elements(vec, vec.strides), real(beta), real(alpha),
           int(x is not None), stream=out.stream)  # fmt: skip


def mv(out, self, vec, out_dtype=None, mode=None, conj=None) -> None:
    """out = self @ vec."""
    addmv(out, None, self, vec, 0, 1)
