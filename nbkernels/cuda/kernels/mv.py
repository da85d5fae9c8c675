"""The kernel of products with vectors, y[i] = beta * x[i] + alpha * sum over p of A[i, p] * V[i, p]; and of their ends.

mv has one vector for all rows; rows of dot's A and V are segments of its vectors. A sum has CHAINS accumulators in each
segment of 4096 steps, step p in accumulator p mod CHAINS, that are added in halves; segments are added in order.

A row is taken by a group of threads, each of which keeps `per` neighbouring accumulators and moves `width` neighbouring
elements by one instruction; the loads of several steps are under way before the first is used.
"""

from numba import cuda, types

from ...jit.ir.kind import Kind
from ..tiles import SEGMENT
from .chain import ending, loader, stepper, word
from .elements import stored
from .stage import AT
from .vectors import vectors

HELD = 32  # elements of each operand that a thread has under way: more take registers that other blocks need
ROOM = 1024  # sums that `final` brings to shared memory at a time


def make(kind: Kind, chains: int, width: int, across: bool, threads: int):
    """(body, signature); across: neighbouring threads take neighbouring rows, not neighbouring steps."""
    WORD, PLANES, THREADS, CHAINS, WIDTH = word(kind), kind.planes, threads, chains, width
    PER = max(width, chains // 32) if chains > 1 else 1  # accumulators of a thread
    EACH = PER if chains > 1 else width  # its elements in a step of the group
    GROUP = chains // PER
    AHEAD = min(8, max(2, HELD // EACH))
    ROWS, STEP, UNDER_WAY, LOADS = threads // GROUP, GROUP * EACH, AHEAD * EACH, EACH // width
    load_a, load_v, advance = loader(kind, "a"), loader(kind, "b"), stepper(kind)
    move_a, move_v = vectors(kind.a, width)[0], vectors(kind.b, width)[0]
    A, V, WORDS, PARTS = stored(kind.a), stored(kind.b), PER * PLANES, ROWS * chains * PLANES
    scale, _, blend, write = ending(kind)

    def sums(sizes, y, x, a, v, beta, alpha):
        parts, chain = cuda.shared.array(PARTS, WORD), cuda.local.array((1, WORDS), WORD)
        left, right = cuda.local.array(PLANES, WORD), cuda.local.array(WORDS, WORD)
        of_a, of_v = cuda.local.array(UNDER_WAY, A), cuda.local.array(UNDER_WAY, V)
        total, thread = cuda.local.array(PLANES, WORD), cuda.threadIdx.x
        rows, k, reads_x, cut = sizes
        line, lane = thread // GROUP, thread % GROUP
        if across:
            line, lane = thread % ROWS, thread // ROWS
        i = cuda.blockIdx.x * ROWS + line
        row = min(i, rows - 1)
        start_a, start_v = row * a[1], row * v[1]
        if cut != 0:
            k = min(SEGMENT, k - row * SEGMENT)
        for e in range(PLANES):
            total[e] = WORD(0)
        for start in range(0, k, SEGMENT):
            for e in range(WORDS):
                chain[0, e] = WORD(0)
            end, p = min(start + SEGMENT, k), start + lane * EACH
            while p + (AHEAD - 1) * STEP + EACH <= end:
                for u in range(AHEAD):
                    for q in range(LOADS):
                        at, to = p + u * STEP + q * WIDTH, u * EACH + q * WIDTH
                        move_a(of_a, to, a[0], start_a + at * a[2])
                        move_v(of_v, to, v[0], start_v + at * v[2])
                for u in range(AHEAD):
                    for e in range(EACH):
                        load_a(left, 0, of_a, u * EACH + e, True)
                        load_v(right, e % PER, of_v, u * EACH + e, True)
                        advance(chain, 0, e % PER, left, right)
                p += AHEAD * STEP
            while p < end:
                for e in range(EACH):
                    if p + e < end:
                        load_a(left, 0, a[0], start_a + (p + e) * a[2], True)
                        load_v(right, e % PER, v[0], start_v + (p + e) * v[2], True)
                        advance(chain, 0, e % PER, left, right)
                p += STEP
            for e in range(WORDS):
                parts[AT((line * CHAINS + lane * PER) * PLANES + e)] = chain[0, e]
            cuda.syncthreads()
            half = CHAINS // 2
            while half > 0:
                for one in range(thread, ROWS * half, THREADS):
                    at = (one // half * CHAINS + one % half) * PLANES
                    for e in range(PLANES):
                        parts[AT(at + e)] += parts[AT(at + half * PLANES + e)]
                cuda.syncthreads()
                half //= 2
            for e in range(PLANES):
                more = parts[AT(line * CHAINS * PLANES + e)]
                total[e] = more if start == 0 else WORD(total[e] + more)
            cuda.syncthreads()
        if lane == 0 and i < rows:
            scale(total, 0, alpha)
            if reads_x != 0:
                blend(total, 0, beta, x[0], i * x[1])
            write(total, 0, beta, y[0], i * y[1])

    whole, factor = types.int64, types.UniTuple(WORD, PLANES)
    out = types.Tuple((types.CPointer(stored(kind.out)), whole))
    left, right = (types.Tuple((types.CPointer(stored(name)), whole, whole)) for name in (kind.a, kind.b))
    return sums, (types.UniTuple(whole, 4), out, out, left, right, factor, factor)


def final(kind: Kind, threads: int):
    """(body, signature) of out = the sums of dot's segments, added in order."""
    WORD, PLANES, THREADS, WORDS = word(kind), kind.planes, threads, ROOM * kind.planes
    load = loader(Kind.plain(kind.chain), "a")
    scale, _, _, write = ending(kind)

    def total(count, out, sums):
        held, line = cuda.shared.array(WORDS, WORD), cuda.local.array(PLANES, WORD)
        one, thread = cuda.local.array(2, WORD), cuda.threadIdx.x
        one[0], one[1] = WORD(1), WORD(0)
        for start in range(0, count, ROOM):
            here = min(ROOM, count - start)
            for s in range(thread, here, THREADS):
                load(held, s, sums, start + s, True)
            cuda.syncthreads()
            if thread == 0:
                for s in range(here):
                    for e in range(PLANES):
                        more = held[AT(s * PLANES + e)]
                        line[e] = more if start + s == 0 else WORD(line[e] + more)
            cuda.syncthreads()
        if thread == 0:
            scale(line, 0, one)
            write(line, 0, one, out, 0)

    return total, (types.int64, types.CPointer(stored(kind.out)), types.CPointer(stored(kind.chain)))
