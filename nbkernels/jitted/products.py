"""Products of matrices, batches and vectors: float32 and float64, in the calling thread."""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload

from .. import ops
from ..cpu import dot, mv
from ..cpu.native import native
from .memory import absent, address, overlap


def _calling(address, integers, floats=0):
    """An intrinsic that calls the function at address(out's dtype) with so many integers and floats."""

    @intrinsic
    def call(typing, out, integers_, floats_):
        def emit(context, builder, signature, args):
            kinds = [ir.IntType(64)] * integers + [ir.DoubleType()] * floats
            pointer = ir.FunctionType(ir.VoidType(), kinds).as_pointer()
            function = context.add_dynamic_addr(
                builder, address(str(signature.args[0].dtype)), info="nbkernels product"
            )
            values = [builder.extract_value(x, i) for x, n in zip(args[1:], (integers, floats)) for i in range(n)]
            builder.call(builder.bitcast(function, pointer), values)
            return context.get_dummy_value()

        given = types.UniTuple(types.int64, integers), types.UniTuple(types.float64, floats)
        return types.void(out, *given), emit

    return call


_call, _call_mv, _call_dot = _calling(native, 15, 2), _calling(mv.native, 11, 2), _calling(dot.native, 6)


@numba.njit
def _check(out, x, a, b, beta):
    """The errors of a product of matrices or of batches, x of out's shape."""
    if a.shape[-1] != b.shape[-2]:
        raise ValueError("nbkernels: the matrices cannot be multiplied, their inner sizes differ")
    if a.shape[:-2] != b.shape[:-2]:
        raise ValueError("nbkernels: the batches differ in size")
    if out.shape != a.shape[:-1] + b.shape[-1:]:
        raise ValueError("nbkernels: out has not the product's shape")
    _check_memory(out, x, a, b, beta)


@numba.njit
def _check_memory(out, x, a, b, beta):
    if overlap(out, a) or overlap(out, b):
        raise ValueError("nbkernels: out overlaps a matrix or a vector")
    same = address(x) == address(out) and x.strides == out.strides
    if beta != 0 and not same and overlap(out, x):
        raise ValueError("nbkernels: out overlaps self")
    for size, step in zip(out.shape, out.strides):
        if size > 1 and step == 0:
            raise ValueError("nbkernels: out has one element in several places")
    for step in out.strides + x.strides + a.strides + b.strides:
        if step % out.itemsize != 0:
            raise ValueError("nbkernels: strides that are no multiple of the item's size")


@numba.njit
def _multiply(out, x, a, b, beta, alpha):
    """out = beta*x + alpha*(a @ b), of checked arrays."""
    size, (m, n), k = out.itemsize, out.shape, a.shape[1]
    if k == 0 or alpha == 0:
        for i in range(m):
            for j in range(n):
                out[i, j] = 0 if beta == 0 else x.dtype.type(beta) * x[i, j]
    elif out.size > 0:
        numbers = (
            m, n, k, address(a), a.strides[0] // size, a.strides[1] // size, address(b), b.strides[0] // size,
            b.strides[1] // size, address(out), out.strides[0] // size, out.strides[1] // size,
            address(x) if beta != 0 else 0, x.strides[0] // size, x.strides[1] // size,
        )  # fmt: skip
        _call(out, numbers, (float(beta), float(alpha)))


def _refuse(name, ndims, out, *operands):
    """An error where these Numba types are not what a product takes: the last two, and out, of `ndims` dimensions, if
    these are given."""
    arrays = operands if absent(out) else (*operands, out)
    if any(not isinstance(x, types.Array) or x.dtype != arrays[0].dtype for x in arrays):
        raise TypingError(f"{name}: arrays of one dtype are wanted, not {', '.join(map(str, arrays))}")
    if arrays[0].dtype not in (types.float32, types.float64):
        raise TypingError(f"{name}: jitted products are of float32 and float64, not {arrays[0].dtype}")
    given = [x.ndim for x in (*operands[-2:], *arrays[len(operands) :])]
    if ndims and any(x != y for x, y in zip(given, ndims)):
        wanted = " and ".join(map(str, dict.fromkeys(ndims)))
        raise TypingError(f"{name}: {wanted} dimensions are wanted, not {', '.join(map(str, given))}")
    if not (absent(out) or out.mutable):
        raise TypingError(f"{name}: out is read-only")


def _refuse_factors(name, **factors):
    """An error where beta or alpha is no real number."""
    for factor, x in factors.items():
        if isinstance(x, types.Type) and not isinstance(x, types.Integer | types.Float | types.Boolean | types.Omitted):
            raise TypingError(f"{name}: {factor} must be a real number, not {x}")


def _teach(function, ndims, fill, adds):
    """Overload a public function of a, b and out of `ndims`; fill(out, self, a, b, beta, alpha) does its work."""
    name, last = function.__name__, max(ndims[1] - 1, 1)

    def added(self, mat1, mat2, beta=1, alpha=1, out=None):
        _refuse(name, ndims, out, self, mat1, mat2)
        _refuse_factors(name, beta=beta, alpha=alpha)
        if absent(out):

            def run(self, mat1, mat2, beta=1, alpha=1, out=None):
                result = np.empty(mat1.shape[:-1] + mat2.shape[last:], mat1.dtype)
                fill(result, np.broadcast_to(self, result.shape), mat1, mat2, beta, alpha)
                return result
        else:

            def run(self, mat1, mat2, beta=1, alpha=1, out=None):
                fill(out, np.broadcast_to(self, out.shape), mat1, mat2, beta, alpha)
                return out

        return run

    def plain(self, mat2, out=None):
        _refuse(name, ndims, out, self, mat2)
        if absent(out):

            def run(self, mat2, out=None):
                result = np.empty(self.shape[:-1] + mat2.shape[last:], self.dtype)
                fill(result, result, self, mat2, 0, 1)
                return result
        else:

            def run(self, mat2, out=None):
                fill(out, out, self, mat2, 0, 1)
                return out

        return run

    overload(function)(added if adds else plain)


@numba.njit
def _multiply_one(out, x, a, b, beta, alpha):
    _check(out, x, a, b, beta)
    _multiply(out, x, a, b, beta, alpha)


@numba.njit
def _multiply_each(out, x, a, b, beta, alpha):
    _check(out, x, a, b, beta)
    for i in np.ndindex(out.shape[:-2]):
        _multiply(out[i], x[i], a[i], b[i], beta, alpha)


_teach(ops.mm, (2, 2, 2), _multiply_one, adds=False)
_teach(ops.addmm, (2, 2, 2), _multiply_one, adds=True)
_teach(ops.bmm, (3, 3, 3), _multiply_each, adds=False)
_teach(ops.baddbmm, (3, 3, 3), _multiply_each, adds=True)


# -- vectors, and matmul ----------------------------------------------------------------------------------------------


@numba.njit
def _multiply_vector(out, x, a, v, beta, alpha):
    """out = beta*x + alpha*(a @ v), in the order of mv."""
    size, (m, k) = out.itemsize, a.shape
    if k != len(v):
        raise ValueError("nbkernels: the matrix and the vector cannot be multiplied, their inner sizes differ")
    if len(out) != m:
        raise ValueError("nbkernels: out has not the product's shape")
    _check_memory(out, x, a, v, beta)
    if k == 0 or alpha == 0:
        for i in range(m):
            out[i] = 0 if beta == 0 else x.dtype.type(beta) * x[i]
    elif m > 0:
        numbers = (
            m, k, address(a), a.strides[0] // size, a.strides[1] // size, address(v), v.strides[0] // size,
            address(out), out.strides[0] // size, address(x) if beta != 0 else 0, x.strides[0] // size,
        )  # fmt: skip
        _call_mv(out, numbers, (float(beta), float(alpha)))


_teach(ops.mv, (2, 1, 1), _multiply_vector, adds=False)
_teach(ops.addmv, (2, 1, 1), _multiply_vector, adds=True)


@numba.njit
def _dot(a, b):
    """The sum of a vector's elements times another's."""
    size, total = a.itemsize, np.zeros(1, a.dtype)
    if len(a) != len(b):
        raise ValueError("nbkernels: the vectors differ in length")
    if a.strides[0] % size != 0 or b.strides[0] % size != 0:
        raise ValueError("nbkernels: strides that are no multiple of the item's size")
    if len(a) > 0:
        numbers = (len(a), address(a), a.strides[0] // size, address(b), b.strides[0] // size, address(total))
        _call_dot(total, numbers, ())
    return total[0]


def _multiply_vectors(name, out):
    """dot, with an out of this Numba type."""
    if not absent(out) and out.ndim != 0:
        raise TypingError(f"{name}: an out of no dimensions is wanted, not {out}")
    if absent(out):
        return lambda a, b, out: _dot(a, b)

    def into(a, b, out):
        out[()] = _dot(a, b)
        return out

    return into


@overload(ops.dot)
def _typed_dot(self, tensor, out=None):
    _refuse("dot", (), out, self, tensor)
    if self.ndim != 1 or tensor.ndim != 1:
        raise TypingError(f"dot: two vectors are wanted, not {self} and {tensor}")
    body = numba.njit(_multiply_vectors("dot", out))
    return lambda self, tensor, out=None: body(self, tensor, out)


@numba.njit
def _multiply_batches(out, a, b):
    """Products of all pairs of matrices, in batches that broadcast to out's."""
    if out.shape[:-2] != np.broadcast_shapes(a.shape[:-2], b.shape[:-2]):
        raise ValueError("nbkernels: out has not the product's shape")
    a, b = np.broadcast_to(a, out.shape[:-2] + a.shape[-2:]), np.broadcast_to(b, out.shape[:-2] + b.shape[-2:])
    _multiply_each(out, out, a, b, 0, 1)


# What fills out, and out's shape: of batches; by the factors' dimensions, 3 for more than 2, of others.
_BATCHES = (
    lambda out, a, b: _multiply_batches(out, a, b),
    lambda a, b: np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1]),
)
_WAYS = {
    (2, 2): (lambda out, a, b: _multiply_one(out, out, a, b, 0, 1), lambda a, b: (a.shape[0], b.shape[1])),
    (2, 1): (lambda out, a, b: _multiply_vector(out, out, a, b, 0, 1), lambda a, b: a.shape[:1]),
    (1, 2): (lambda out, a, b: _multiply_vector(out, out, b.T, a, 0, 1), lambda a, b: b.shape[1:]),
    (3, 1): (lambda out, a, b: _multiply_batches(out[..., None], a, b[:, None]), lambda a, b: a.shape[:-1]),
    (1, 3): (
        lambda out, a, b: _multiply_batches(out[..., None, :], a[None], b), lambda a, b: b.shape[:-2] + b.shape[-1:],
    ),
}  # fmt: skip


@overload(ops.matmul)
def _typed_matmul(input, other, out=None):
    """By NumPy's rules."""
    _refuse("matmul", (), out, input, other)
    ndims = input.ndim, other.ndim
    if min(ndims) == 0:
        raise TypingError(f"matmul: vectors, matrices or batches are wanted, not {input} and {other}")
    if ndims == (1, 1):
        body = numba.njit(_multiply_vectors("matmul", out))
        return lambda input, other, out=None: body(input, other, out)
    ndim = max(ndims) - (min(ndims) == 1)
    if not absent(out) and out.ndim != ndim:
        raise TypingError(f"matmul: an out of {ndim} dimensions is wanted, not {out}")
    fill, shape = map(numba.njit, _WAYS.get(tuple(min(n, 3) for n in ndims), _BATCHES))

    def new(input, other, out=None):
        result = np.empty(shape(input, other), input.dtype)
        fill(result, input, other)
        return result

    def into(input, other, out=None):
        fill(out, input, other)
        return out

    return new if absent(out) else into
