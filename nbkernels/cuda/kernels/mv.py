"""The kernel of mv and addmv."""

from numba import cuda, types

from ...jit.kind import Kind
from ..tiles import SEGMENT
from .chain import ending, loader, stepper, word
from .elements import stored
from .stage import AT


def make(kind: Kind, chains: int, threads: int):
    """y = beta * x + alpha * A @ v; a block takes threads / chains outputs."""
    WORD, PLANES, OUTPUTS, ROOM = word(kind), kind.planes, threads // chains, threads * kind.planes
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
    return sums, signature
