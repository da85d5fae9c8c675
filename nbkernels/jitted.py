"""Matrix products inside other jitted code: `import nbkernels.jitted` teaches Numba mm, addmm, bmm and baddbmm.

    import numba, numpy as np, nbkernels, nbkernels.jitted

    @numba.njit
    def power(a, n):
        result = np.eye(len(a), dtype=a.dtype)
        for _ in range(n):
            result = nbkernels.mm(result, a)
        return result

The product runs in the calling thread, which holds no Python object: it may be a thread of a prange. float32 and
float64, arrays of any strides, self of any shape that expands; the bits are those of the same call from Python. out is
checked as there, but must not overlap the matrices. The kernel is found by its address, so Numba does not cache
functions that call it.
"""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from . import ops
from .cpu.native import native


@intrinsic
def _call(typing, out, numbers, beta, alpha):
    """Call the product of out's dtype with fifteen integers."""

    def emit(context, builder, signature, args):
        kinds = [ir.IntType(64)] * 15 + [ir.DoubleType()] * 2
        pointer = ir.FunctionType(ir.VoidType(), kinds).as_pointer()
        address = context.add_dynamic_addr(builder, native(str(signature.args[0].dtype)), info="nbkernels product")
        integers = [builder.extract_value(args[1], i) for i in range(15)]
        builder.call(builder.bitcast(address, pointer), [*integers, args[2], args[3]])
        return context.get_dummy_value()

    return types.void(out, numbers, types.float64, types.float64), emit


@numba.njit
def _address(x):
    return np.int64(x.ctypes.data)  # which is unsigned: with an int64 it would make a float


@numba.njit
def _extent(x):
    """First byte of an array's memory and the one after its last."""
    low, high = _address(x), _address(x) + x.itemsize
    for size, step in zip(x.shape, x.strides):
        reach = (size - 1) * step
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


@numba.njit
def _overlap(x, y):
    (low, high), (first, last) = _extent(x), _extent(y)
    return x.size > 0 and y.size > 0 and first < high and low < last


@numba.njit
def _multiply(out, x, a, b, beta, alpha):
    """out = beta*x + alpha*(a @ b), x of out's shape."""
    size, (m, n), k = out.itemsize, out.shape, a.shape[1]
    if b.shape[0] != k:
        raise ValueError("nbkernels: the matrices cannot be multiplied, their inner sizes differ")
    if m != a.shape[0] or n != b.shape[1]:
        raise ValueError("nbkernels: out has not the product's shape")
    if _overlap(out, a) or _overlap(out, b):
        raise ValueError("nbkernels: out overlaps a matrix")
    same = _address(x) == _address(out) and x.strides == out.strides
    if beta != 0 and not same and _overlap(out, x):
        raise ValueError("nbkernels: out overlaps self")
    if k == 0 or alpha == 0:
        for i in range(m):
            for j in range(n):
                out[i, j] = 0 if beta == 0 else x.dtype.type(beta) * x[i, j]
    elif out.size > 0:
        numbers = (
            m, n, k, _address(a), a.strides[0] // size, a.strides[1] // size, _address(b), b.strides[0] // size,
            b.strides[1] // size, _address(out), out.strides[0] // size, out.strides[1] // size,
            _address(x) if beta != 0 else 0, x.strides[0] // size, x.strides[1] // size,
        )  # fmt: skip
        _call(out, numbers, float(beta), float(alpha))


def _products(ndim, *arrays):
    """Whether these Numba types are arrays of one dtype that has a kernel, the last two of `ndim` dimensions."""
    return (
        all(isinstance(x, types.Array) and x.dtype == arrays[-1].dtype for x in arrays)
        and arrays[-1].dtype in (types.float32, types.float64)
        and all(x.ndim == ndim for x in arrays[-2:])
    )


def _absent(x):
    return x is None or isinstance(x, types.NoneType | types.Omitted)


def _teach(function, ndim, fill, adds):
    """Overload a public function; fill(out, self, a, b, beta, alpha) does its work."""

    def added(self, mat1, mat2, beta=1, alpha=1, out=None):
        if not _products(ndim, self, mat1, mat2):
            return None
        if _absent(out):

            def run(self, mat1, mat2, beta=1, alpha=1, out=None):
                result = np.empty(mat1.shape[:-1] + mat2.shape[-1:], mat1.dtype)
                fill(result, np.broadcast_to(self, result.shape), mat1, mat2, beta, alpha)
                return result
        else:

            def run(self, mat1, mat2, beta=1, alpha=1, out=None):
                fill(out, np.broadcast_to(self, out.shape), mat1, mat2, beta, alpha)
                return out

        return run

    def plain(self, mat2, out=None):
        if not _products(ndim, self, mat2):
            return None
        if _absent(out):

            def run(self, mat2, out=None):
                result = np.empty(self.shape[:-1] + mat2.shape[-1:], self.dtype)
                fill(result, result, self, mat2, 0, 1)
                return result
        else:

            def run(self, mat2, out=None):
                fill(out, out, self, mat2, 0, 1)
                return out

        return run

    overload(function)(added if adds else plain)


@numba.njit
def _multiply_each(out, x, a, b, beta, alpha):
    if a.shape[0] != b.shape[0] or out.shape[0] != a.shape[0]:
        raise ValueError("nbkernels: the batches differ in size")
    for i in range(len(out)):
        _multiply(out[i], x[i], a[i], b[i], beta, alpha)


_teach(ops.mm, 2, _multiply, adds=False)
_teach(ops.addmm, 2, _multiply, adds=True)
_teach(ops.bmm, 3, _multiply_each, adds=False)
_teach(ops.baddbmm, 3, _multiply_each, adds=True)
