"""The kernels of dot: the sum of each segment, and of the segments."""

from dataclasses import replace

from numba import cuda, types

from ...jit.kind import Kind
from ..tiles import SEGMENT
from .chain import ending, loader, stepper, word
from .elements import stored
from .stage import AT


def segments(kind: Kind, chains: int):
    """sums[s] = the sum of segment s."""
    WORD, PLANES, THREADS, ROOM = word(kind), kind.planes, chains, chains * kind.planes
    load_a, load_b, step = loader(kind, "a"), loader(kind, "b"), stepper(kind)
    *_, write = ending(replace(kind, out=kind.chain))

    def sums_of(k, sums, a, sa, b, sb):
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
    return sums_of, signature


def final(kind: Kind):
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
    return total, (types.int64, *at)
