"""out[i] = fn(self[i], other[i]) over broadcast device arrays of any strides: a grid-stride kernel over a StridedPlan.

Kernels get an `out` of the broadcast shape, every check passed; self or other may be a Python scalar. Both are
converted to the computing dtype, the result to out's. Where an input really overlaps out other than element for
element, the result goes through a temporary.
"""

from __future__ import annotations

import functools

import numpy as np
from numba import cuda, from_dtype, types

from .. import scalar
from ..strides import broadcast_strides, plan
from .functions import device
from .launch import Kernel, elements, empty, inlined, launch, multiprocessors, pointer
from .memory import clash, same

FLOATS = ("float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

THREADS = 256  # per block
BLOCKS = 8  # per multiprocessor: what its 2048 threads allow; more of them would be started one after the other
# Elements of a thread at a time, their loads all under way before the first is needed: with 1024 threads on each of an
# H200's 132 multiprocessors, 4 x 2 loads of 4 bytes are 4.3 MB in flight; 4.3 TB/s at 1 us of latency ask for as much.
EACH = 4


def first(x, y):
    """x: what a copy computes."""
    return x


@functools.cache
def kernel(function, dtypes: tuple[str, str, str, str], ndim: int, arrays: tuple[bool, bool], scaled: bool) -> Kernel:
    """out = function(self, other) for dtypes (out, self, other, computing); `arrays`: whether self and other are."""
    OUT, X, Y, COMPUTE = (from_dtype(np.dtype(dtype)) for dtype in dtypes)
    NDIM, CHUNK = ndim, THREADS * EACH
    call = device(function, dtypes[3])

    @inlined
    def element(x, i):
        return x[i]

    @inlined
    def value(x, i):
        return x

    @inlined
    def apply(x, y, alpha):
        return call(x, y)

    @inlined
    def apply_scaled(x, y, alpha):
        return call(x, y, alpha)

    read_x, read_y = (element if is_array else value for is_array in arrays)
    operate = apply_scaled if scaled else apply

    def loop(size, shape, out, out_steps, x, x_steps, y, y_steps, alpha):
        places = cuda.local.array(EACH, types.int64)
        xs, ys = cuda.local.array(EACH, COMPUTE), cuda.local.array(EACH, COMPUTE)
        for chunk in range(cuda.blockIdx.x * CHUNK + cuda.threadIdx.x, size, cuda.gridDim.x * CHUNK):
            for e in range(EACH):
                rest, at, at_x, at_y = min(chunk + e * THREADS, size - 1), 0, 0, 0
                for d in range(NDIM - 1, 0, -1):
                    quotient = rest // shape[d]
                    i, rest = rest - quotient * shape[d], quotient
                    at, at_x, at_y = at + i * out_steps[d], at_x + i * x_steps[d], at_y + i * y_steps[d]
                places[e] = at + rest * out_steps[0]
                xs[e], ys[e] = read_x(x, at_x + rest * x_steps[0]), read_y(y, at_y + rest * y_steps[0])
            for e in range(EACH):
                if chunk + e * THREADS < size:
                    out[places[e]] = operate(xs[e], ys[e], alpha)

    index = types.UniTuple(types.int64, ndim)
    first_input, second_input = (types.CPointer(t) if is_array else COMPUTE for t, is_array in zip((X, Y), arrays))
    signature = (types.int64, index, types.CPointer(OUT), index, first_input, index, second_input, index, COMPUTE)
    return Kernel(f"{function.__name__} {'-'.join(dtypes)} {ndim}-D", loop, signature, THREADS)


def run(function, out, self, other, compute, alpha=None) -> None:
    """out = function(self, other), or function(self, other, alpha), computed in `compute`."""
    if out.size == 0:
        return
    inputs = [x for x in (self, other) if _is_array(x)]
    if any(not same(out, x, broadcast_strides(out.shape, x.shape, x.strides)) and clash(out, x) for x in inputs):
        temporary = empty(out.shape, out)
        run(function, temporary, self, other, compute, alpha)
        run(first, out, temporary, temporary, out.dtype)
        return
    arrays = [out, *inputs]
    loops = plan(*(tuple(tuple(getattr(x, name)) for x in arrays) for name in ("shape", "strides")),
                 tuple(x.dtype.itemsize for x in arrays))  # fmt: skip
    shape = loops.shape or (1,)
    walks = iter([(pointer(x, offset), elements(x, strides) or (0,)) for x, offset, strides
                  in zip(arrays, loops.offsets, loops.strides)])  # fmt: skip
    number = np.dtype(compute).type
    target = next(walks)
    x, y = (next(walks) if _is_array(x) else (number(x), (0,) * len(shape)) for x in (self, other))
    dtypes = tuple(str(x.dtype) if _is_array(x) else str(compute) for x in (out, self, other)) + (str(compute),)
    compiled = kernel(function, dtypes, len(shape), (_is_array(self), _is_array(other)), alpha is not None)
    blocks = min(-(-loops.size // (THREADS * EACH)), multiprocessors() * BLOCKS)
    scale = number(1 if alpha is None else alpha)
    launch(compiled, blocks, loops.size, shape, *target, *x, *y, scale, stream=out.stream)


def binary(op: str, out, self, other, alpha=1) -> None:
    """out = op(self, other), or op_scaled(self, other, alpha) for an alpha that is not 1."""
    dtypes = [x.dtype if _is_array(x) else x for x in (self, other)]
    for dtype in (out.dtype, *dtypes):
        if isinstance(dtype, np.dtype) and not (dtype.isnative and dtype.name in (*FLOATS, *INTEGERS)):
            raise TypeError(f"{op}: no CUDA loop for dtype {dtype!r}")
    compute = np.result_type(*dtypes)
    if op == "divide" and compute.kind != "f":
        compute = np.dtype(np.float64)
    if not np.can_cast(compute, out.dtype, "same_kind"):
        raise TypeError(f"{op}: cannot cast the result from {compute} to {out.dtype} under casting='same_kind'")
    name = op if alpha == 1 else f"{op}_scaled"
    run(getattr(scalar, name), out, self, other, compute, None if alpha == 1 else alpha)


def copy(out, x) -> None:
    """out = x."""
    run(first, out, x, x, out.dtype)


def fill(out, value) -> None:
    """out = value, a Python scalar."""
    run(first, out, value, value, out.dtype)


def _is_array(x) -> bool:
    return hasattr(x, "strides")


def add(out, self, other, alpha=1) -> None:
    """out = self + alpha*other."""
    binary("add", out, self, other, alpha)


def subtract(out, self, other, alpha=1) -> None:
    """out = self - alpha*other."""
    binary("subtract", out, self, other, alpha)


def multiply(out, self, other) -> None:
    """out = self * other."""
    binary("multiply", out, self, other)


def divide(out, self, other) -> None:
    """out = self / other, of integers in float64."""
    binary("divide", out, self, other)


def maximum(out, self, other) -> None:
    """out = the larger of self and other; NaN where either is NaN."""
    binary("maximum", out, self, other)


def minimum(out, self, other) -> None:
    """out = the smaller of self and other; NaN where either is NaN."""
    binary("minimum", out, self, other)
