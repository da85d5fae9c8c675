"""Products of matrices, batches and vectors: float32 and float64, in the calling thread."""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload

from .. import ops
from ..cpu.elementwise.planner import MOST, OPERAND
from ..cpu.gemm import checked
from ..cpu.gemv import dot
from ..jit.vector import I64
from .memory import absent, address, described

MESSAGES = {
    checked.INNER: "nbkernels: the operands cannot be multiplied, their inner sizes differ",
    checked.BATCHES: "nbkernels: the batches differ in size",
    checked.OUT: "nbkernels: out has not the product's shape",
    checked.SELF: "nbkernels: self cannot be expanded to the product's shape",
    checked.OVERLAPS: "nbkernels: out overlaps a matrix or a vector",
    checked.OVERLAPS_SELF: "nbkernels: out overlaps self",
    checked.TWICE: "nbkernels: out has one element in several places",
    checked.UNEVEN: "nbkernels: strides that are no multiple of the item's size",
}


def _raising():
    """A jitted function that raises what a status says: messages must be literals."""
    lines = [f"    if status == {status}:\n        raise ValueError({text!r})" for status, text in MESSAGES.items()]
    scope = {}
    exec("def told(status):\n" + "\n".join(lines), scope)
    return numba.njit(scope["told"])


_told = _raising()


def _product(strict):
    """An intrinsic: cpu/checked.py's answer for these arrays; `strict`: batches are alike, and not broadcast."""

    @intrinsic
    def product(typing, out, x, a, b, beta, alpha):
        def emit(context, builder, signature, args):
            words, dtype = cgutils.alloca_once(builder, I64, 4 * OPERAND.words), str(out.dtype)
            for p, kind in enumerate((out, x, a, b)):
                data, item, shape, steps = described(context, builder, kind, args[p])
                block = dict(enumerate((data, item, I64(kind.ndim), *shape))) | dict(enumerate(steps, OPERAND["step"]))
                for at, value in block.items():
                    builder.store(value, builder.gep(words, [I64(OPERAND.words * p + at)]))
            addresses = checked.checked(dtype), checked.multiplier(dtype, (a.ndim, b.ndim))
            run, multiply = (context.add_dynamic_addr(builder, at, info="nbkernels product") for at in addresses)
            words, multiply = builder.ptrtoint(words, I64), builder.ptrtoint(multiply, I64)
            given = [words, multiply, *args[4:], ir.IntType(8)(int(strict))]
            kind = ir.FunctionType(I64, [value.type for value in given])
            return builder.call(builder.bitcast(run, kind.as_pointer()), given)

        return types.int64(out, x, a, b, types.float64, types.float64), emit

    return product


_alike, _broadcast = _product(True), _product(False)


@intrinsic
def _call_dot(typing, dtype, k, a, sa, b, sb, out):
    """The sum of products of two vectors at addresses, strides in elements, to an address."""

    def emit(context, builder, signature, args):
        kind = ir.FunctionType(ir.VoidType(), [I64] * 6).as_pointer()
        run = context.add_dynamic_addr(builder, dot.native(str(dtype.dtype)), info="nbkernels product")
        builder.call(builder.bitcast(run, kind), args[1:])
        return context.get_dummy_value()

    return types.void(dtype, *[types.int64] * 6), emit


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
    if max(x.ndim for x in arrays) > MOST:
        raise TypingError(f"{name}: jitted products are of arrays of at most {MOST} dimensions")


def _refuse_factors(name, **factors):
    """An error where beta or alpha is no real number."""
    for factor, x in factors.items():
        if isinstance(x, types.Type) and not isinstance(x, types.Integer | types.Float | types.Boolean | types.Omitted):
            raise TypingError(f"{name}: {factor} must be a real number, not {x}")


def _teach(function, ndims, adds):
    """Overload a public function of a, b and out of `ndims`, and of self where it adds one."""
    name, last = function.__name__, max(ndims[1] - 1, 1)

    def added(self, mat1, mat2, beta=1, alpha=1, out=None):
        _refuse(name, ndims, out, self, mat1, mat2)
        _refuse_factors(name, beta=beta, alpha=alpha)
        if absent(out):

            def run(self, mat1, mat2, beta=1, alpha=1, out=None):
                result = np.empty(mat1.shape[:-1] + mat2.shape[last:], mat1.dtype)
                _told(_alike(result, self, mat1, mat2, float(beta), float(alpha)))
                return result
        else:

            def run(self, mat1, mat2, beta=1, alpha=1, out=None):
                _told(_alike(out, self, mat1, mat2, float(beta), float(alpha)))
                return out

        return run

    def plain(self, mat2, out=None):
        _refuse(name, ndims, out, self, mat2)
        if absent(out):

            def run(self, mat2, out=None):
                result = np.empty(self.shape[:-1] + mat2.shape[last:], self.dtype)
                _told(_alike(result, result, self, mat2, 0.0, 1.0))
                return result
        else:

            def run(self, mat2, out=None):
                _told(_alike(out, out, self, mat2, 0.0, 1.0))
                return out

        return run

    overload(function)(added if adds else plain)


_teach(ops.mm, (2, 2, 2), adds=False)
_teach(ops.addmm, (2, 2, 2), adds=True)
_teach(ops.bmm, (3, 3, 3), adds=False)
_teach(ops.baddbmm, (3, 3, 3), adds=True)
_teach(ops.mv, (2, 1, 1), adds=False)
_teach(ops.addmv, (2, 1, 1), adds=True)


# -- vectors, and matmul ----------------------------------------------------------------------------------------------


@numba.njit
def _dot(a, b):
    """The sum of a vector's elements times another's."""
    size, total = a.itemsize, np.zeros(1, a.dtype)
    if len(a) != len(b):
        raise ValueError("nbkernels: the vectors differ in length")
    if a.strides[0] % size != 0 or b.strides[0] % size != 0:
        raise ValueError("nbkernels: strides that are no multiple of the item's size")
    if len(a) > 0:
        _call_dot(total, len(a), address(a), a.strides[0] // size, address(b), b.strides[0] // size, address(total))
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


# The result's shape by the factors' dimensions, 3 for more than 2.
_SHAPES = {
    (2, 2): lambda a, b: (a.shape[0], b.shape[1]),
    (2, 1): lambda a, b: a.shape[:1],
    (1, 2): lambda a, b: b.shape[1:],
    (3, 1): lambda a, b: a.shape[:-1],
    (1, 3): lambda a, b: b.shape[:-2] + b.shape[-1:],
}


def _of_batches(a, b):
    return np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1])


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
    shape = numba.njit(_SHAPES.get(tuple(min(n, 3) for n in ndims), _of_batches))

    def new(input, other, out=None):
        result = np.empty(shape(input, other), input.dtype)
        _told(_broadcast(result, result, input, other, 0.0, 1.0))
        return result

    def into(input, other, out=None):
        _told(_broadcast(out, out, input, other, 0.0, 1.0))
        return out

    return new if absent(out) else into
