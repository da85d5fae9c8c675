"""The kernel of element-wise operations."""

from numba import cuda, types

from ...dtypes import HALVES
from .elements import always, computed, reading, stored, truth, writing
from .functions import device, inlined


def make(
    function, dtypes, compute, ndim: int, arrays: tuple[bool, bool], scaled: bool, masked: bool, threads: int, each: int
):
    """out = function(self, other) for dtypes (out, self, other), computed in `compute` (self, other, result).

    `arrays`: whether self and other are arrays; scaled: the function takes alpha too; masked: only where a mask is.
    """
    OUT, X, Y = map(stored, dtypes)
    COMPUTE_X, COMPUTE_Y, RESULT = map(computed, compute)
    NDIM, THREADS, EACH, CHUNK = ndim, threads, each, threads * each
    call = device(function, "float32" if compute[0] in HALVES else compute[0])

    @inlined
    def value(x, i):
        return x

    @inlined
    def apply(x, y, alpha):
        return call(x, y)

    @inlined
    def apply_scaled(x, y, alpha):
        return call(x, y, alpha)

    read_x, read_y = (reading(dtype) if array else value for dtype, array in zip(dtypes[1:], arrays))
    write, chosen = writing(dtypes[0]), truth if masked else always
    operate = apply_scaled if scaled else apply

    def loop(size, shape, out, out_steps, x, x_steps, y, y_steps, mask, mask_steps, alpha):
        places, marks = cuda.local.array(EACH, types.int64), cuda.local.array(EACH, types.boolean)
        xs, ys = cuda.local.array(EACH, COMPUTE_X), cuda.local.array(EACH, COMPUTE_Y)
        for chunk in range(cuda.blockIdx.x * CHUNK + cuda.threadIdx.x, size, cuda.gridDim.x * CHUNK):
            for e in range(EACH):
                rest, at, at_x, at_y, at_mask = min(chunk + e * THREADS, size - 1), 0, 0, 0, 0
                for d in range(NDIM - 1, 0, -1):
                    quotient = rest // shape[d]
                    i, rest = rest - quotient * shape[d], quotient
                    at, at_x, at_y = at + i * out_steps[d], at_x + i * x_steps[d], at_y + i * y_steps[d]
                    at_mask += i * mask_steps[d]
                places[e], marks[e] = at + rest * out_steps[0], chosen(mask, at_mask + rest * mask_steps[0])
                xs[e], ys[e] = read_x(x, at_x + rest * x_steps[0]), read_y(y, at_y + rest * y_steps[0])
            for e in range(EACH):
                if chunk + e * THREADS < size and marks[e]:
                    write(out, places[e], RESULT(operate(xs[e], ys[e], alpha)))

    index = types.UniTuple(types.int64, ndim)
    inputs = (types.CPointer(t) if array else c for t, c, array in zip((X, Y), (COMPUTE_X, COMPUTE_Y), arrays))
    operands = [
        part for operand in (types.CPointer(OUT), *inputs, types.CPointer(types.uint8)) for part in (operand, index)
    ]
    signature = (types.int64, index, *operands, RESULT)
    return loop, signature
