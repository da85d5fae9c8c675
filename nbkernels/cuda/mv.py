"""mv and addmv on a CUDA device, in the CPU's order: 8 chains for each segment of 4096 steps of float32 and float64,
and the one chain of a product of other dtypes.

A thread takes a chain of an output, and neighbouring threads the direction of A that is closer in memory. Pairs of
chains are added through shared memory, segments in order by the thread of the first chain. A word there is written by
its own thread alone, and others read it before the barrier that ends an addition: segments need none between them.
"""

from __future__ import annotations

import functools

from numba import cuda, types
from numba.np.numpy_support import as_dtype

from ..jit.kind import Kind
from ..jit.vector import SIZE
from ..strides import broadcast_strides
from .chain import ending, loader, stepper, word
from .elements import stored
from .gemm import SEGMENT, factor
from .kinds import kind_of
from .launch import Kernel, elements, launch, pointer
from .memory import clash, empty, same
from .stage import AT

CHAINS, THREADS = 8, 128


@functools.cache
def kernel(kind: Kind, chains: int) -> Kernel:
    """y = beta * x + alpha * A @ v; a block takes THREADS / chains outputs."""
    WORD, PLANES, OUTPUTS, ROOM = word(kind), kind.planes, THREADS // chains, THREADS * kind.planes
    load_a, load_v, step = loader(kind, "a"), loader(kind, "b"), stepper(kind)
    scale, _, blend, write = ending(kind)

    def sums(m, k, y, sy, x, sx, a, rsa, csa, v, sv, beta, alpha, reads_x):
        halves, chain = cuda.shared.array(ROOM, WORD), cuda.local.array((1, PLANES), WORD)
        left, right = cuda.local.array(PLANES, WORD), cuda.local.array(PLANES, WORD)
        total, thread = cuda.local.array(PLANES, WORD), cuda.threadIdx.x
        output, c = thread // chains, thread % chains
        if abs(rsa) < abs(csa):
            output, c = thread % OUTPUTS, thread // OUTPUTS
        i, mine = cuda.blockIdx.x * OUTPUTS + output, output * chains + c
        row = min(i, m - 1) * rsa
        for e in range(PLANES):
            total[e] = WORD(0)
        for start in range(0, k, SEGMENT):
            for e in range(PLANES):
                chain[0, e] = WORD(0)
            for p in range(start + c, min(start + SEGMENT, k), chains):
                load_a(left, 0, a, row + p * csa, True)
                load_v(right, 0, v, p * sv, True)
                step(chain, 0, 0, left, right)
            for e in range(PLANES):
                halves[AT(mine * PLANES + e)] = chain[0, e]
            cuda.syncthreads()
            half = chains // 2
            while half > 0:
                if c < half:
                    for e in range(PLANES):
                        halves[AT(mine * PLANES + e)] += halves[AT((mine + half) * PLANES + e)]
                cuda.syncthreads()
                half //= 2
            for e in range(PLANES):
                more = halves[AT(mine * PLANES + e)]
                total[e] = more if start == 0 else WORD(total[e] + more)
        if c == 0 and i < m:
            scale(total, 0, alpha)
            if reads_x:
                blend(total, 0, beta, x, i * sx)
            write(total, 0, beta, y, i * sy)

    at_a, at_v, at_y = (types.CPointer(stored(dtype)) for dtype in (kind.a, kind.b, kind.out))
    step_of, scalar = types.int64, types.UniTuple(WORD, PLANES)
    arrays = (at_y, step_of, at_y, step_of, at_a, step_of, step_of, at_v, step_of)
    signature = (types.int64, types.int64, *arrays, scalar, scalar, types.int64)
    return Kernel(f"mv {kind}, {chains} chains", sums, signature, THREADS)


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
        return pointer(array, 0, as_dtype(stored(dtype))), *elements(array, strides)

    target, a, v = (
        vector(dtype, each, each.strides) for dtype, each in zip((kind.out, kind.a, kind.b), (out, mat, vec))
    )
    addend = target if x is None else vector(kind.out, x, xs)
    launch(kernel(kind, chains), -(-m // (THREADS // chains)), m, k, *target, *addend, *a, *v, factor(beta, kind),
           factor(alpha, kind), int(x is not None), stream=out.stream)  # fmt: skip


def mv(out, self, vec, out_dtype=None, mode=None, conj=None) -> None:
    """out = self @ vec."""
    addmv(out, None, self, vec, 0, 1, out_dtype, mode, conj)
