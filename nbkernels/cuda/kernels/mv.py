"""The kernels of products with vectors, y[i] = beta * x[i] + alpha * sum over p of A[i, p] * V[i, p], and of dot.

A sum has CHAINS accumulators in each segment of 4096 steps, step p in accumulator p mod CHAINS, that are added in
halves; segments are added in order. mv has one vector for all rows; dot's segments are like rows of both vectors.

A row is taken by a group of threads, each of which keeps `per` neighbouring accumulators and moves `width` neighbouring
elements by one instruction; the loads of several steps are under way before the first is used.
"""

import functools

from numba import cuda, types
from numba.cuda.extending import intrinsic

from ...jit.ir.kind import Kind
from ..tiles import SEGMENT
from .chain import ending, loader, stepper, word
from .elements import stored
from .functions import SIMULATED, inlined
from .stage import AT
from .vectors import vectors

BATCH = 64  # sums that a thread reads before it adds them: 4 cycles an addition, 30 the first read


@functools.cache
def walker(kind: Kind, chains: int, width: int, across: bool, threads: int, ahead: int):
    """(rows of a block, words that a block needs for sums, place, segment) for groups of threads with a row each.

    place(thread)               (row of the block, lane of the group)
    segment(parts, thread, line, lane, a, at_a, step_a, v, at_v, step_v, k)
                                parts[line * chains] = the sum of k products, a[at_a] * v[at_v] the first; by the whole
                                block, after a barrier
    """
    WORD, PLANES, THREADS, CHAINS, WIDTH = word(kind), kind.planes, threads, chains, width
    PER = max(width, chains // 32) if chains > 1 else 1  # accumulators of a thread
    EACH = PER if chains > 1 else width  # its elements in a step of the group
    GROUP, AHEAD, HALVINGS = chains // PER, ahead, chains.bit_length() - 1
    ROWS, STEP, UNDER_WAY, LOADS = threads // GROUP, GROUP * EACH, AHEAD * EACH, EACH // width
    load_a, load_v, advance = loader(kind, "a"), loader(kind, "b"), stepper(kind)
    move_a, move_v = vectors(kind.a, width)[0], vectors(kind.b, width)[0]
    A, V, WORDS = stored(kind.a), stored(kind.b), PER * PLANES

    @inlined
    def place(thread):
        if across:  # neighbouring threads take neighbouring rows, not neighbouring steps
            return thread % ROWS, thread // ROWS
        return thread // GROUP, thread % GROUP

    @inlined
    def segment(parts, thread, line, lane, a, at_a, step_a, v, at_v, step_v, k):
        chain = cuda.local.array((1, WORDS), WORD)
        left, right = cuda.local.array(PLANES, WORD), cuda.local.array(WORDS, WORD)
        of_a, of_v = cuda.local.array(UNDER_WAY, A), cuda.local.array(UNDER_WAY, V)
        for e in range(WORDS):
            chain[0, e] = WORD(0)
        p = lane * EACH
        while p + (AHEAD - 1) * STEP + EACH <= k:
            for u in range(AHEAD):
                for q in range(LOADS):
                    at, to = p + u * STEP + q * WIDTH, u * EACH + q * WIDTH
                    move_a(of_a, to, a, at_a + at * step_a)
                    move_v(of_v, to, v, at_v + at * step_v)
            for u in range(AHEAD):
                for e in range(EACH):
                    load_a(left, 0, of_a, u * EACH + e, True)
                    load_v(right, e % PER, of_v, u * EACH + e, True)
                    advance(chain, 0, e % PER, left, right)
            p += AHEAD * STEP
        while p < k:
            for e in range(EACH):
                if p + e < k:
                    load_a(left, 0, a, at_a + (p + e) * step_a, True)
                    load_v(right, e % PER, v, at_v + (p + e) * step_v, True)
                    advance(chain, 0, e % PER, left, right)
            p += STEP
        for e in range(WORDS):
            parts[AT((line * CHAINS + lane * PER) * PLANES + e)] = chain[0, e]
        cuda.syncthreads()
        for half in range(HALVINGS - 1, -1, -1):  # by 1 << half
            for one in range(thread, ROWS << half, THREADS):
                at = ((one >> half) * CHAINS + (one & ((1 << half) - 1))) * PLANES
                for e in range(PLANES):
                    parts[AT(at + e)] += parts[AT(at + (PLANES << half) + e)]
            cuda.syncthreads()

    return ROWS, ROWS * chains * PLANES, place, segment


def make(kind: Kind, chains: int, width: int, across: bool, threads: int, ahead: int):
    """(body, signature); across: neighbouring threads take neighbouring rows, not neighbouring steps."""
    WORD, PLANES, CHAINS = word(kind), kind.planes, chains
    ROWS, PARTS, place, segment = walker(kind, chains, width, across, threads, ahead)
    scale, _, blend, write = ending(kind)

    def sums(sizes, y, x, a, v, beta, alpha):
        parts, total, thread = cuda.shared.array(PARTS, WORD), cuda.local.array(PLANES, WORD), cuda.threadIdx.x
        rows, k, reads_x = sizes
        line, lane = place(thread)
        i = cuda.blockIdx.x * ROWS + line
        row = min(i, rows - 1)
        for e in range(PLANES):
            total[e] = WORD(0)
        for start in range(0, k, SEGMENT):
            segment(parts, thread, line, lane, a[0], row * a[1] + start * a[2], a[2], v[0], row * v[1] + start * v[2],
                    v[2], min(SEGMENT, k - start))  # fmt: skip
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
    return sums, (types.UniTuple(whole, 3), out, out, left, right, factor, factor)


@intrinsic
def _counted(typing, x, i, more):
    """x[i] += more of whole numbers, as one step for all blocks; what x[i] was."""

    def emit(context, builder, signature, args):
        return builder.atomic_rmw("add", builder.gep(args[0], [args[1]]), args[2], "monotonic")

    return types.int32(x, types.int64, types.int32), emit


@inlined
def _counted_alone(x, i, more):
    before = x[i]
    x[i] = before + more
    return before


counted = _counted_alone if SIMULATED else _counted


def dot(kind: Kind, chains: int, width: int, threads: int, ahead: int, group: int):
    """(body, signature) of out = the sum over p of a[p] * v[p], a group of threads a segment.

    Segments' sums are added in order while others are still computed. They stand in `sums`, by `group` of them; a group
    is added, to the total of those before it, by the block that is the last to arrive at it: its own blocks arrive, and
    the one that has added the group before. Nobody waits, so that any number of blocks may run at a time. `arrived`
    counts how many segments, and totals, have arrived at each group; totals stand in `sums` behind the segments' sums.
    """
    WORD, PLANES, CHAINS, THREADS, GROUP = word(kind), kind.planes, chains, threads, group
    ROWS, PARTS, place, segment = walker(kind, chains, width, False, threads, ahead)
    SOME, TOTAL, EACH = BATCH * kind.planes, types.int32(1), -(-group // threads)  # EACH: sums that a thread brings
    OF_THREAD, HELD = EACH * kind.planes, EACH * threads * kind.planes
    NONE = word(kind)(-0.0 if kind.way == "fma" else 0)  # what changes no sum
    plain = Kind.plain(kind.chain)
    load, keep = loader(plain, "a"), ending(plain)[-1]
    scale, _, _, write = ending(kind)

    @inlined
    def add(line, held, count):
        """line += held[0], held[1], ..., in order."""
        some, s = cuda.local.array(SOME, WORD), 0
        while s + BATCH <= count:
            for q in range(SOME):
                some[q] = held[AT(s * PLANES + q)]
            for q in range(BATCH):
                for e in range(PLANES):
                    line[e] = WORD(line[e] + some[q * PLANES + e])
            s += BATCH
        while s < count:
            for e in range(PLANES):
                line[e] = WORD(line[e] + held[AT(s * PLANES + e)])
            s += 1

    def dot(k, out, sums, arrived, a, v):
        parts, held = cuda.shared.array(PARTS, WORD), cuda.shared.array(HELD, WORD, alignment=16)
        mine, line, one = cuda.shared.array(1, types.int32), cuda.local.array(PLANES, WORD), cuda.local.array(2, WORD)
        thread, count = cuda.threadIdx.x, (k + SEGMENT - 1) // SEGMENT
        some = cuda.local.array(OF_THREAD, WORD)
        one[0], one[1] = WORD(1), WORD(0)
        first = cuda.blockIdx.x * ROWS
        here, lane = place(thread)
        row = min(first + here, count - 1)
        segment(parts, thread, here, lane, a[0], row * SEGMENT * a[1], a[1], v[0], row * SEGMENT * v[1], v[1],
                min(SEGMENT, k - row * SEGMENT))  # fmt: skip
        if lane == 0 and first + here < count:
            for e in range(PLANES):
                line[e] = parts[AT(here * CHAINS * PLANES + e)]
            keep(line, 0, one, sums, first + here)
        cuda.syncthreads()
        number = first // GROUP
        if thread == 0:
            cuda.threadfence()
            more = min(ROWS, count - first)
            before = counted(arrived, number, more)
            mine[0] = before + more == min(GROUP, count - number * GROUP) + (number > 0)
            cuda.threadfence()
        cuda.syncthreads()
        goes_on = mine[0]
        while goes_on != 0:
            start = number * GROUP
            these = min(GROUP, count - start)
            for q in range(EACH):
                s = q * THREADS + thread
                load(some, q, sums, start + s, s < these)
            for e in range(PLANES):
                line[e] = NONE
            if number > 0:
                load(line, 0, sums, count + number - 1, True)
            for q in range(EACH):
                for e in range(PLANES):
                    held[AT((q * THREADS + thread) * PLANES + e)] = some[q * PLANES + e]
            cuda.syncthreads()
            if thread == 0:
                add(line, held, these)
                left = count - start - these
                mine[0] = 0
                if left == 0:
                    scale(line, 0, one)
                    write(line, 0, one, out, 0)
                else:
                    keep(line, 0, one, sums, count + number)
                    cuda.threadfence()
                    before = counted(arrived, number + 1, TOTAL)
                    mine[0] = before == min(GROUP, left)
                    cuda.threadfence()
            cuda.syncthreads()
            goes_on, number = mine[0], number + 1

    whole = types.int64
    left, right = (types.Tuple((types.CPointer(stored(name)), whole)) for name in (kind.a, kind.b))
    sums, arrived = types.CPointer(stored(kind.chain)), types.CPointer(types.int32)
    return dot, (whole, types.CPointer(stored(kind.out)), sums, arrived, left, right)
