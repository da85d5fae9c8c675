"""mv and addmv on a CUDA device, in the CPU's order: 8 chains for each segment of 4096 steps of float32 and float64,
and the one chain of a product of other dtypes.

A thread takes a chain of an output, and neighbouring threads the direction of A that is closer in memory. Pairs of
chains are added through shared memory, segments in order by the thread of the first chain. A word there is written by
its own thread alone, and others read it before the barrier that ends an addition: segments need none between them.
"""

from __future__ import annotations

import functools

from ..jit.kind import Kind
from ..jit.vector import SIZE
from ..strides import broadcast_strides
from .gemm import factor
from .kinds import kind_of
from .launch import KERNELS, Kernel, elements, launch, pointer, stored
from .memory import clash, empty, same

CHAINS, THREADS = 8, 128


@functools.cache
def kernel(kind: Kind, chains: int) -> Kernel:
    """y = beta * x + alpha * A @ v; a block takes THREADS / chains outputs."""
    return Kernel(f"{KERNELS}.mv:make", (kind, chains, THREADS), THREADS)


def addmv(out, self, mat, vec, beta, alpha, out_dtype=None, mode=None, conj=None) -> None:
    """out = beta * self + alpha * (mat @ vec)."""
    kind, (m, k) = kind_of(*(each.dtype.name for each in (mat, vec, out)), conj or "", mode), mat.shape
    if m == 0:
        return
    x = None if beta == 0 else self
    if alpha == 0 or k == 0:  # as gemm.py: an empty sum, which is -0 beside x
        k, alpha = 0, 1 if x is None else -1
    xs = None if x is None else broadcast_strides((m,), x.shape, x.strides)
    if (k and (clash(out, mat) or clash(out, vec))) or (x is not None and not same(out, x, xs) and clash(out, x)):
        temporary = empty((m,), out)
        addmv(temporary, x, mat, vec, beta, alpha if k else 0, out_dtype, mode, conj)
        addmv(out, temporary, mat, vec, 1, 0)
        return
    chains = CHAINS if kind == Kind.plain(kind.chain) and kind.chain in SIZE else 1

    def vector(dtype, array, strides):
        return pointer(array, 0, stored(dtype)), *elements(array, strides)

    target, a, v = (
        vector(dtype, each, each.strides) for dtype, each in zip((kind.out, kind.a, kind.b), (out, mat, vec))
    )
    addend = target if x is None else vector(kind.out, x, xs)
    launch(kernel(kind, chains), -(-m // (THREADS // chains)), m, k, *target, *addend, *a, *v, factor(beta, kind),
           factor(alpha, kind), int(x is not None), stream=out.stream)  # fmt: skip


def mv(out, self, vec, out_dtype=None, mode=None, conj=None) -> None:
    """out = self @ vec."""
    addmv(out, None, self, vec, 0, 1, out_dtype, mode, conj)
