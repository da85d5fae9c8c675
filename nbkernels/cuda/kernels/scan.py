"""The kernels of folds in order."""

import functools

from numba import cuda, types

from ...dtypes import FLOATS, HALVES
from .elements import always, computed, reading, stored, truth, writing
from .functions import device, inlined


@functools.cache
def placing(ndim: int):
    """place(row, shape, steps): the distance of a row's first element, at each index of `ndim` loops."""
    NDIM = ndim

    @inlined
    def place(row, shape, steps):
        at = 0
        for d in range(NDIM - 1, 0, -1):
            quotient = row // shape[d]
            at += (row - quotient * shape[d]) * steps[d]
            row = quotient
        return at + row * steps[0]

    return place


@functools.cache
def taking(item: str, work: str):
    """take(x, i): an element as `work` holds it, as it is computed: a half is rounded to one first, as NumPy casts."""
    REAL, HALF, read, again, write = computed(work), stored(work), reading(item), reading(work), writing(work)
    WHOLE = REAL if item not in FLOATS else computed(item)

    @inlined
    def take(x, i):
        return REAL(read(x, i))

    @inlined
    def rounded(x, i):
        half = cuda.local.array(1, HALF)
        write(half, 0, WHOLE(read(x, i)))
        return again(half, 0)

    return rounded if work in HALVES and item != work else take


def steps(function, item: str, work: str, compute, ndim: int, started: bool, masked: bool):
    """Rows of `count` steps at each index of `ndim` loops; of an out_step of 0 the last stays.

    started: out has what comes before the first of x; masked: steps are made where a mask is.
    """
    REAL, X, Y, RESULT = map(computed, (work, *compute))
    WORK, STARTED, place = stored(work), int(started), placing(ndim)
    call = device(function, "float32" if compute[0] in HALVES else compute[0])
    take, again, write, chosen = taking(item, work), reading(work), writing(work), truth if masked else always

    def run(rows, count, out, out_steps, out_step, x, x_steps, x_step, mask, mask_steps, mask_step, shape):
        last = cuda.local.array(1, WORK)
        for row in range(cuda.grid(1), rows, cuda.gridsize(1)):
            at, source, mark = place(row, shape, out_steps), place(row, shape, x_steps), place(row, shape, mask_steps)
            if STARTED == 0:
                write(last, 0, take(x, source))
                out[at] = last[0]
            else:
                last[0] = out[at]
            for k in range(1 - STARTED, count):
                if chosen(mask, mark + k * mask_step):
                    write(last, 0, REAL(RESULT(call(X(again(last, 0)), Y(take(x, source + k * x_step))))))
                    if out_step != 0:
                        out[at + k * out_step] = last[0]
            out[at + (count - 1) * out_step] = last[0]

    index = types.UniTuple(types.int64, ndim)
    kinds = WORK, stored(item), types.uint8
    operands = [part for t in kinds for part in (types.CPointer(t), index, types.int64)]
    return run, (types.int64, types.int64, *operands, index)
