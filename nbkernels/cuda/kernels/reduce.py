"""The kernel of folds in any order."""

from numba import cuda, types

from .elements import computed, reading, stored
from .functions import device, inlined
from .stage import AT


def make(function, item: str, work: str, kept_ndim: int, reduced_ndim: int, lanes: int, across: bool, threads: int):
    """Folds, in the dtype `work`, over `reduced_ndim` loops for each index of `kept_ndim`.

    across: neighbouring threads work on other results.
    """
    REAL, THREADS = computed(work), threads
    call = device(function, work)
    KEPT, REDUCED, LANES, SUMS = kept_ndim, reduced_ndim, lanes, threads // lanes
    LANE_STEP = SUMS if across else 1
    read = reading(item)

    @inlined
    def place(thread):
        """(sum, lane)"""
        if across:
            return thread % SUMS, thread // SUMS
        return thread // LANES, thread % LANES

    def folds(count, size, length, out, out_steps, chunk_step, x, kept, kept_steps, reduced, reduced_steps):
        lane_sums = cuda.shared.array(THREADS, REAL)
        thread = cuda.threadIdx.x
        which, lane = place(thread)
        groups = (count + SUMS - 1) // SUMS
        chunk = cuda.blockIdx.x // groups
        index = cuda.blockIdx.x % groups * SUMS + which
        rest, at, start = min(index, count - 1), chunk * chunk_step, 0
        for d in range(KEPT - 1, 0, -1):
            quotient = rest // kept[d]
            i, rest = rest - quotient * kept[d], quotient
            at, start = at + i * out_steps[d], start + i * kept_steps[d]
        at, start = at + rest * out_steps[0], start + rest * kept_steps[0]

        terms, total = min(length, size - chunk * length), REAL(0)
        for r in range(lane, terms, LANES):
            rest, place_x = chunk * length + r, start
            for d in range(REDUCED - 1, 0, -1):
                quotient = rest // reduced[d]
                place_x += (rest - quotient * reduced[d]) * reduced_steps[d]
                rest = quotient
            term = REAL(read(x, place_x + rest * reduced_steps[0]))
            total = term if r < LANES else REAL(call(total, term))
        lane_sums[AT(thread)] = total
        cuda.syncthreads()
        width = LANES // 2
        while width > 0:
            if lane < width and lane + width < terms:
                other = lane_sums[AT(thread + width * LANE_STEP)]
                lane_sums[AT(thread)] = REAL(call(lane_sums[AT(thread)], other))
            cuda.syncthreads()
            width //= 2
        if lane == 0 and index < count:
            out[at] = lane_sums[AT(thread)]

    kept, reduced = types.UniTuple(types.int64, kept_ndim), types.UniTuple(types.int64, reduced_ndim)
    result, source = types.CPointer(stored(work)), types.CPointer(stored(item))
    signature = (types.int64,) * 3 + (result, kept, types.int64, source, kept, kept, reduced, reduced)
    return folds, signature
