"""Derivatives of matrix products: the gradient of each factor is a product again, of grad and the other factor."""

import inspect

from .. import ops
from ..dispatch.views import column, empty, flatten, is_array, restride, row, spec, transpose, turned
from ..epilogues import SLOPES
from ..ops import bmm, mm, mv, sum_to
from .gradients import cast, fit, scale, upright

SWAPPED = {"a": "b", "b": "a"}  # for factors that have changed places


def kept(product):
    """`product` for the gradient of `like`: scaled, in the memory order of its matrices: column-major comes from
    (bᵀ aᵀ)ᵀ, with the same bits."""

    def run(a, b, like, alpha, mode, conj):
        if upright(like):
            return scale(turned(product(turned(b), turned(a), mode=mode, conj=SWAPPED.get(conj, conj))), alpha)
        return scale(product(a, b, mode=mode, conj=conj), alpha)

    return run


def left(product, grad, other, like, alpha=1, mode=None, conj=None):
    """Of the factor "a" of alpha * a @ b: alpha * grad @ bᴴ, given `other`, b turned.

    Where a was conjugated it is alpha * conj(grad) @ bᵀ. Factors of fewer bits than grad are widened first.
    """
    other, alpha, mode, conj = settled(grad, other, alpha, mode, conj or "", "a")
    return product(grad, other, like, alpha, mode, conj)


def right(product, grad, other, like, alpha=1, mode=None, conj=None):
    """Of the factor "b", likewise: alpha * aᴴ @ grad, given `other`, a turned."""
    other, alpha, mode, conj = settled(grad, other, alpha, mode, conj or "", "b")
    return product(other, grad, like, alpha, mode, conj)


def settled(grad, other, alpha, mode, conj, mine):
    """The other factor in grad's dtype, what scales the gradient of factor `mine`, mode, and what is to be conjugated:
    grad where the factor was, the other where both were or neither."""
    wide = spec(grad).dtype
    if other.dtype != grad.dtype and spec(other).dtype != wide:
        other, mode = cast(other, wide), None
    if wide.kind != "c":
        return other, alpha, mode, None
    there = SWAPPED[mine] if len(conj) != 1 else ""
    here = mine if mine in conj else ""
    return other, alpha.conjugate() if here else alpha, mode, "".join(sorted(here + there)) or None


by_mm, by_bmm, by_matmul = kept(mm), kept(bmm), kept(lambda a, b, **keywords: ops.matmul(a, b, **keywords))


def by_rows(a, b, like, alpha, mode, conj):
    """Columns as rows."""
    return by_matmul(turned(b), turned(a), like, alpha, mode, SWAPPED.get(conj, conj))


def by_mv(a, b, like, alpha, mode, conj):
    return scale(mv(a, b, mode=mode, conj=conj), alpha)


def by_vm(a, b, like, alpha, mode, conj):
    """A vector times a matrix."""
    return by_mv(transpose(b), a, like, alpha, mode, SWAPPED.get(conj, conj))


def number(grad, like):
    """A Python number as a 0-d array of like's kind."""
    return grad if is_array(grad) else ops.add(sum_to(empty(like, (0,), spec(like).dtype), ()), grad)


def by_scalar(a, b, like, alpha, mode, conj):
    """A vector times a 0-d array, or the reverse."""
    if not spec(a).shape:
        a, b, conj = b, a, SWAPPED.get(conj, conj)
    return by_mv(column(a), restride(b, (1,), (0,)), like, alpha, mode, conj)


def repeated(grad, batch):
    """grad (m, n) as that of every matrix of a batch."""
    s = spec(grad)
    return restride(grad, (spec(batch).shape[0], *s.shape), (0, *s.strides))


def matrices(grad, input, other):
    """matmul's gradient and factors, with the dimensions that 1-D factors do not have."""
    if len(spec(other).shape) == 1:
        grad, other = restride(grad, (*spec(grad).shape, 1), (*spec(grad).strides, 0)), column(other)
    if len(spec(input).shape) == 1:
        (*lead, n), (*steps, step) = spec(grad).shape, spec(grad).strides
        grad, input = restride(grad, (*lead, 1, n), (*steps, 0, step)), row(input)
    return grad, input, other


def two_dimensional(x, y):
    return len(spec(x).shape) == 2 == len(spec(y).shape)


def matmul_input(grad, input, other, mode, conj):
    if two_dimensional(grad, other):
        return left(by_mm, grad, turned(other), input, 1, mode, conj)
    grad, _, matrix = matrices(grad, input, other)
    return left(by_matmul, grad, turned(matrix), input, 1, mode, conj)


def matmul_other(grad, input, other, mode, conj):
    if two_dimensional(grad, other):
        return right(by_mm, grad, turned(input), other, 1, mode, conj)
    grad, matrix, _ = matrices(grad, input, other)
    if len(spec(other).shape) == 1:
        return right(by_rows, grad, turned(matrix), other, 1, mode, conj)
    rows = flatten(matrix), flatten(grad)
    if len(spec(other).shape) == 2 and all(x is not None for x in rows):  # one product in place of a batch and a sum
        return right(by_mm, rows[1], turned(rows[0]), other, 1, mode, conj)
    return right(by_matmul, grad, turned(matrix), other, 1, mode, conj)


ADDMM = {
    "self": lambda grad, beta: scale(grad, beta),
    "mat1": lambda grad, mat1, mat2, alpha, mode, conj: left(by_mm, grad, turned(mat2), mat1, alpha, mode, conj),
    "mat2": lambda grad, mat1, mat2, alpha, mode, conj: right(by_mm, grad, turned(mat1), mat2, alpha, mode, conj),
}


def active(name):
    """ADDMM's formula for an argument, of the gradient of what an activation was applied to."""

    def formula(grad, self, mat1, mat2, beta, alpha, activation, approximate, out_dtype, mode):
        value = ops.addmm(self, mat1, mat2, beta=beta, alpha=alpha, out_dtype=out_dtype, mode=mode)
        grad = SLOPES[activation, approximate](value, grad)
        given = dict(grad=grad, self=self, mat1=mat1, mat2=mat2, beta=beta, alpha=alpha, mode=mode, conj=None)
        return ADDMM[name](**{need: given[need] for need in inspect.signature(ADDMM[name]).parameters})

    return formula


ADDMM_ACTIVATION = {name: active(name) for name in ADDMM}
MM = {
    "self": lambda grad, self, mat2, mode, conj: left(by_mm, grad, turned(mat2), self, 1, mode, conj),
    "mat2": lambda grad, self, mat2, mode, conj: right(by_mm, grad, turned(self), mat2, 1, mode, conj),
}
BMM = {
    "self": lambda grad, self, mat2, mode, conj: left(by_bmm, grad, turned(mat2), self, 1, mode, conj),
    "mat2": lambda grad, self, mat2, mode, conj: right(by_bmm, grad, turned(self), mat2, 1, mode, conj),
}
BADDBMM = {
    "self": ADDMM["self"],
    "batch1": lambda grad, batch1, batch2, alpha, mode, conj: left(
        by_bmm, grad, turned(batch2), batch1, alpha, mode, conj
    ),
    "batch2": lambda grad, batch1, batch2, alpha, mode, conj: right(
        by_bmm, grad, turned(batch1), batch2, alpha, mode, conj
    ),
}
ADDBMM = {
    "self": ADDMM["self"],
    "batch1": lambda grad, batch1, batch2, alpha, mode, conj: left(
        by_bmm, repeated(grad, batch1), turned(batch2), batch1, alpha, mode, conj
    ),
    "batch2": lambda grad, batch1, batch2, alpha, mode, conj: right(
        by_bmm, repeated(grad, batch2), turned(batch1), batch2, alpha, mode, conj
    ),
}
MV = {
    "self": lambda grad, self, vec, mode, conj: left(by_mm, column(grad), row(vec), self, 1, mode, conj),
    "vec": lambda grad, self, vec, mode, conj: right(by_mv, grad, transpose(self), vec, 1, mode, conj),
}
ADDMV = {
    "self": ADDMM["self"],
    "mat": lambda grad, mat, vec, alpha, mode, conj: left(by_mm, column(grad), row(vec), mat, alpha, mode, conj),
    "vec": lambda grad, mat, vec, alpha, mode, conj: right(by_mv, grad, transpose(mat), vec, alpha, mode, conj),
}
OUTER = {
    "self": lambda grad, self, vec2, mode, conj: left(by_mv, grad, vec2, self, 1, mode, conj),
    "vec2": lambda grad, self, vec2, mode, conj: right(by_vm, grad, self, vec2, 1, mode, conj),
}
ADDR = {
    "self": ADDMM["self"],
    "vec1": lambda grad, vec1, vec2, alpha, mode, conj: left(by_mv, grad, vec2, vec1, alpha, mode, conj),
    "vec2": lambda grad, vec1, vec2, alpha, mode, conj: right(by_vm, grad, vec1, vec2, alpha, mode, conj),
}
DOT = {
    "self": lambda grad, self, tensor, mode, conj: left(by_scalar, number(grad, self), tensor, self, 1, mode, conj),
    "tensor": lambda grad, self, tensor, mode, conj: right(by_scalar, number(grad, self), self, tensor, 1, mode, conj),
}
VDOT = {
    "self": lambda grad, self, other, mode: left(by_scalar, number(grad, self), other, self, 1, mode, "a"),
    "other": lambda grad, self, other, mode: right(by_scalar, number(grad, self), self, other, 1, mode, "a"),
}
MATMUL = {"input": matmul_input, "other": matmul_other}
LINEAR = {
    "input": lambda grad, input, weight, mode, conj: matmul_input(grad, input, turned(weight), mode, conj),
    "weight": lambda grad, input, weight, mode, conj: turned(
        fit(matmul_other(grad, input, turned(weight), mode, conj), turned(weight))
    ),
    "bias": lambda grad: grad,
}
