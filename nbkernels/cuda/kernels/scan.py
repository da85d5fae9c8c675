"""The kernels of folds in order."""

from numba import cuda, types

from ...dtypes import HALVES
from .elements import always, computed, reading, stored, truth, writing
from .functions import device


def steps(function, item: str, work: str, compute, ndim: int, started: bool, masked: bool):
    """Rows of `count` steps at each index of `ndim` loops; of an out_step of 0 the last stays.

    started: out has what comes before the first of x; masked: steps are made where a mask is.
    """
    REAL, X, Y, RESULT = map(computed, (work, *compute))
    NDIM, STARTED = ndim, int(started)
    call = device(function, "float32" if compute[0] in HALVES else compute[0])
    read, again, write, chosen = reading(item), reading(work), writing(work), truth if masked else always

    def run(rows, count, out, out_steps, out_step, x, x_steps, x_step, mask, mask_steps, mask_step, shape):
        for row in range(cuda.grid(1), rows, cuda.gridsize(1)):
            rest, at, source, mark = row, 0, 0, 0
            for d in range(NDIM - 1, -1, -1):
                quotient = rest // shape[d]
                i, rest = rest - quotient * shape[d], quotient
                at, source, mark = at + i * out_steps[d], source + i * x_steps[d], mark + i * mask_steps[d]
            if STARTED == 0:
                write(out, at, REAL(read(x, source)))
            for k in range(1 - STARTED, count):
                if chosen(mask, mark + k * mask_step):
                    before = again(out, at + (k - 1) * out_step)
                    write(out, at + k * out_step, REAL(RESULT(call(X(before), Y(read(x, source + k * x_step))))))

    index = types.UniTuple(types.int64, ndim)
    kinds = stored(work), stored(item), types.uint8
    operands = [part for t in kinds for part in (types.CPointer(t), index, types.int64)]
    return run, (types.int64, types.int64, *operands, index)


def visitor(function, out: str, item: str, compute):
    """out[targets[g]] = function(out[targets[g]], x[sources[j]]) for j from starts[g] to starts[g + 1], in order."""
    X, Y, RESULT = map(computed, compute)
    call = device(function, "float32" if compute[0] in HALVES else compute[0])
    read, again, write = reading(item), reading(out), writing(out)

    def visits(groups, targets, starts, sources, out, x):
        for group in range(cuda.grid(1), groups, cuda.gridsize(1)):
            at = targets[group]
            for j in range(starts[group], starts[group + 1]):
                write(out, at, RESULT(call(X(again(out, at)), Y(read(x, sources[j])))))

    places = (types.CPointer(types.int64),) * 3
    signature = (types.int64, *places, types.CPointer(stored(out)), types.CPointer(stored(item)))
    return visits, signature
