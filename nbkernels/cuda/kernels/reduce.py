"""The kernel of folds in any order.

A thread takes pieces of `width` neighbours of x, each a fold of its own, with the loads of several steps under way
before the first is used; then the folds of a group of threads, its lanes, become one by halves.

across: the neighbours belong to different results; else they are terms of one, whose folds become one at the end.
"""

from numba import cuda, types

from .elements import computed, reading, stored
from .functions import device, inlined
from .stage import AT
from .vectors import vectors


def make(
    function, item: str, work: str, loops, lanes: int, width: int, way: str, across: bool, wide: bool, threads: int
):
    """(body, signature) of out = x folded by the function in the dtype `work`.

    loops   how many there are over results, and over the terms of one
    way     how a piece is read: "vector", by one instruction; "strided", one element after the other; "apart", terms
            that are found one by one, since a piece may reach into the next line of the inner loop
    wide    there are 2**31 terms or more
    """
    REAL, ITEM, THREADS, LANES, WIDTH, ACROSS = computed(work), stored(item), threads, lanes, width, across
    (KEPT, REDUCED), GROUPS = loops, threads // lanes
    PER = 1 if across else width  # terms of a result in a piece
    PIECE, STEP, JOINED = width // PER, lanes * PER, width if across else 1
    INNER, OUTER = KEPT - 1, KEPT - 1 - (PIECE > 1)  # loops over results
    AHEAD = 4 if width > 1 else 8  # pieces under way
    UNDER_WAY, ROOM, NEXT = AHEAD * width, threads * JOINED, GROUPS if across else 1
    call, read, move = inlined(device(function, work)), reading(item), vectors(item, width)[0]
    VECTOR, APART, WIDE = way == "vector", way == "apart", wide

    @inlined
    def place(thread):
        """(group, lane)"""
        if ACROSS:
            return thread % GROUPS, thread // GROUPS
        return thread // LANES, thread % LANES

    @inlined
    def distance(term, sizes, divisors, steps):
        """From the first term of a result to another one."""
        if REDUCED == 1:
            return term * steps[0]
        rest, found = term, types.int64(0)
        for d in range(REDUCED - 1, 0, -1):
            if WIDE:
                over = rest // divisors[d][0]
            else:
                over = types.int64(types.uint64(rest) * types.uint64(divisors[d][0]) >> types.uint64(divisors[d][1]))
            found += (rest - over * sizes[d]) * steps[d]
            rest = over
        return found + rest * steps[0]

    @inlined
    def load(held, first, x, start, term, sizes, divisors, steps):
        """A piece that begins at a term."""
        if APART:
            for e in range(WIDTH):
                held[first + e] = x[start + distance(term + e, sizes, divisors, steps)]
        else:
            at = start + distance(term, sizes, divisors, steps)
            if VECTOR:
                move(held, first, x, at)
            else:
                for e in range(WIDTH):
                    held[first + e] = x[at + e * steps[REDUCED - 1]]

    @inlined
    def some(held, x, start, term, there, sizes, divisors, steps):
        """The first `there` terms of a piece of one result."""
        for e in range(WIDTH):
            if e < there:
                held[e] = x[start + distance(term + e, sizes, divisors, steps)]

    @inlined
    def gather(total, held, first, there):
        """One more piece, of which the first `there` are."""
        for e in range(WIDTH):
            if e < there:
                total[e] = REAL(call(total[e], REAL(read(held, first + e))))

    def folds(count, size, length, out, out_steps, chunk_step, x, kept, kept_steps, reduced, divisors, reduced_steps):
        shared, total = cuda.shared.array(ROOM, REAL), cuda.local.array(WIDTH, REAL)
        held, thread = cuda.local.array(UNDER_WAY, ITEM), cuda.threadIdx.x
        group, lane = place(thread)
        blocks = (count + GROUPS - 1) // GROUPS
        chunk, index = cuda.blockIdx.x // blocks, cuda.blockIdx.x % blocks * GROUPS + group
        rest, at, start = min(index, count - 1), chunk * chunk_step, types.int64(0)
        if PIECE > 1:
            over = rest // (kept[INNER] // PIECE)
            column, rest = (rest - over * (kept[INNER] // PIECE)) * PIECE, over
            at, start = at + column * out_steps[INNER], column * kept_steps[INNER]
        for d in range(OUTER, -1, -1):
            over = rest // kept[d] if d > 0 else 0
            i, rest = rest - over * kept[d], over
            at, start = at + i * out_steps[d], start + i * kept_steps[d]

        first, terms = chunk * length, min(size, (chunk + 1) * length)
        term = first + lane * PER
        last = terms - PER  # where a whole piece may begin
        if term + (AHEAD - 1) * STEP <= last:
            for u in range(AHEAD):
                load(held, u * WIDTH, x, start, term + u * STEP, reduced, divisors, reduced_steps)
            for e in range(WIDTH):
                total[e] = REAL(read(held, e))
            for u in range(1, AHEAD):
                gather(total, held, u * WIDTH, WIDTH)
            term += AHEAD * STEP
        else:
            there = min(terms - term, PER)
            if there == PER:
                load(held, 0, x, start, term, reduced, divisors, reduced_steps)
            else:
                some(held, x, start, term, there, reduced, divisors, reduced_steps)
            for e in range(WIDTH):
                total[e] = REAL(read(held, e)) if ACROSS or e < there else REAL(0)
            term += STEP
        while term + (AHEAD - 1) * STEP <= last:
            for u in range(AHEAD):
                load(held, u * WIDTH, x, start, term + u * STEP, reduced, divisors, reduced_steps)
            for u in range(AHEAD):
                gather(total, held, u * WIDTH, WIDTH)
            term += AHEAD * STEP
        while term <= last:
            load(held, 0, x, start, term, reduced, divisors, reduced_steps)
            gather(total, held, 0, WIDTH)
            term += STEP
        if PER > 1 and term < terms:
            some(held, x, start, term, terms - term, reduced, divisors, reduced_steps)
            gather(total, held, 0, terms - term)

        here = terms - first  # of these a lane's first ones are there where its place is below
        width = PER // 2
        while width > 0:
            for e in range(width):
                if lane * PER + e + width < here:
                    total[e] = REAL(call(total[e], total[e + width]))
            width //= 2
        if LANES > 1:
            for e in range(JOINED):
                shared[AT(e * THREADS + thread)] = total[e]
            cuda.syncthreads()
            width = LANES // 2
            while width > 0:
                if lane < width and (lane + width) * PER < here:
                    for e in range(JOINED):
                        other = shared[AT(e * THREADS + thread + width * NEXT)]
                        mine = AT(e * THREADS + thread)
                        shared[mine] = REAL(call(shared[mine], other))
                cuda.syncthreads()
                width //= 2
            for e in range(JOINED):
                total[e] = shared[AT(e * THREADS + thread)]
        if lane == 0 and index < count:
            for e in range(PIECE):
                out[at + e * out_steps[INNER]] = total[e]

    whole = types.int64
    kept, reduced = types.UniTuple(whole, KEPT), types.UniTuple(whole, REDUCED)
    over, result, source = types.UniTuple(types.UniTuple(whole, 2), REDUCED), stored(work), stored(item)
    signature = (whole, whole, whole, types.CPointer(result), kept, whole, types.CPointer(source), kept, kept, reduced,
                 over, reduced)  # fmt: skip
    return folds, signature
