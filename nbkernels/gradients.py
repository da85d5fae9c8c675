"""Derivatives: for each op, the gradient of each tensor argument as a formula over library ops.

`grad` is the gradient of the result. A formula names what it needs of grad and of the op's arguments; `op.gradient`
calls those that are wanted. Real dtypes; what broadcasting repeated is summed back by sum_to.
"""

import functools
import inspect

from . import ops, slopes
from .dispatch.views import column, expand, flatten, restride, row, spec, transpose
from .epilogues import SLOPES
from .fusion import elementwise
from .ops import bmm, divide, maximum, minimum, mm, multiply, mv, subtract, sum_to


def fit(grad, x):
    """grad summed to x's shape: undoes x's broadcasting."""
    return sum_to(grad, spec(x).shape)


def scale(grad, factor):
    """The factor's conjugate * grad; grad itself for 1."""
    return grad if factor == 1 else multiply(grad, factor.conjugate())


def matmul(a, b, like, factor="", given=""):
    """a @ b in the memory order of `like`: column-major comes from (bᵀ aᵀ)ᵀ, with the same bits.

    `factor`, "a" or "b", is the one that is conjugated where numbers are complex. A product whose factors were
    conjugated, as `given` says, has no gradient.
    """
    if given:
        raise TypeError(f"a product with conj={given!r} has no gradient: pass x.conj() instead")
    rows, columns = map(abs, spec(like).strides)
    conj = factor if spec(a).dtype.kind == "c" else ""
    if rows < columns:
        return transpose(mm(transpose(b), transpose(a), conj={"a": "b", "b": "a"}.get(conj, "")))
    return mm(a, b, conj=conj)


def of_real(formulas):
    """Formulas for real dtypes; complex ones, whose factors they do not conjugate, are refused."""

    def guard(formula):
        @functools.wraps(formula)
        def guarded(grad, *rest, **needed):
            if spec(grad).dtype.kind == "c":
                raise TypeError("of complex matrices only mm and addmm have a gradient")
            return formula(grad, *rest, **needed)

        return guarded

    return {name: guard(formula) for name, formula in formulas.items()}


def of_masked(formulas):
    """Formulas that know of `where`: what it leaves out does not depend on the operands."""

    def known(formula):
        told = inspect.signature(formula)
        where = inspect.Parameter("where", inspect.Parameter.POSITIONAL_OR_KEYWORD)

        @functools.wraps(formula)
        def masked(grad, where, **needed):
            return formula(grad if where is None or where is True else chosen(grad, where), **needed)

        masked.__signature__ = told.replace(parameters=[*told.parameters.values(), where])
        return masked

    return {name: known(formula) for name, formula in formulas.items()}


def chosen(grad, where):
    """grad where the mask is true, else 0, whatever grad is there."""
    return multiply(grad, 1, where=where, out=ops.fmax(ops.fmin(grad, 0), 0))


def turned(x):
    """x with its last two dimensions exchanged."""
    (*lead, m, n), (*steps, row_step, column_step) = spec(x).shape, spec(x).strides
    return restride(x, (*lead, n, m), (*steps, column_step, row_step))


def matmuls(a, b, like):
    """bmm(a, b), each matrix in the memory order of `like`'s."""
    rows, columns = map(abs, spec(like).strides[1:])
    return turned(bmm(turned(b), turned(a))) if rows < columns else bmm(a, b)


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


def matmul_input(grad, input, other):
    grad, _, matrix = matrices(grad, input, other)
    return fit(ops.matmul(grad, turned(matrix)), input)


def matmul_other(grad, input, other):
    grad, left, _ = matrices(grad, input, other)
    if len(spec(other).shape) == 1:
        return fit(ops.matmul(turned(grad), left), other)
    rows = flatten(left), flatten(grad)
    if len(spec(other).shape) == 2 and all(x is not None for x in rows):  # one product in place of a batch and a sum
        return matmul(turned(rows[0]), rows[1], other)
    return fit(ops.matmul(turned(left), grad), other)


def wins(x, y):
    """1 where x > y, 1/2 where they are equal, 0 where x < y.

    (1 + d/|d|) / 2, with d the difference clipped to +-1 so that nothing overflows. Two unequal floats have no zero
    difference, so with the smallest subnormal in place of |0| the quotient is exactly +-1, or 0 for equal ones.
    """
    d = minimum(maximum(subtract(x, y), -1), 1)
    smallest = {4: 2.0**-149, 8: 2.0**-1074}[spec(d).dtype.itemsize]
    size = maximum(maximum(d, multiply(d, -1)), smallest)
    return multiply(ops.add(divide(d, size), 1), 0.5)


PARTIAL = {name: elementwise(function) for name, function in vars(slopes).items() if inspect.isfunction(function)}

ADDMM = {
    "self": lambda grad, self, beta: fit(scale(grad, beta), self),
    "mat1": lambda grad, mat1, mat2, alpha, conj: scale(matmul(grad, transpose(mat2), mat1, "b", conj), alpha),
    "mat2": lambda grad, mat1, mat2, alpha, conj: scale(matmul(transpose(mat1), grad, mat2, "a", conj), alpha),
}


def active(name):
    """ADDMM's formula for an argument, of the gradient of what an activation was applied to."""

    def formula(grad, self, mat1, mat2, beta, alpha, activation, approximate):
        value = ops.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
        grad = SLOPES[activation, approximate](value, grad)
        given = dict(grad=grad, self=self, mat1=mat1, mat2=mat2, beta=beta, alpha=alpha, conj="")
        return ADDMM[name](**{need: given[need] for need in inspect.signature(ADDMM[name]).parameters})

    return formula


ADDMM_ACTIVATION = {name: active(name) for name in ADDMM}
MM = {
    "self": lambda grad, self, mat2, conj: matmul(grad, transpose(mat2), self, "b", conj),
    "mat2": lambda grad, self, mat2, conj: matmul(transpose(self), grad, mat2, "a", conj),
}
BMM = {
    "self": lambda grad, self, mat2: matmuls(grad, turned(mat2), self),
    "mat2": lambda grad, self, mat2: matmuls(turned(self), grad, mat2),
}
BADDBMM = {
    "self": ADDMM["self"],
    "batch1": lambda grad, batch1, batch2, alpha: scale(matmuls(grad, turned(batch2), batch1), alpha),
    "batch2": lambda grad, batch1, batch2, alpha: scale(matmuls(turned(batch1), grad, batch2), alpha),
}
ADDBMM = {
    "self": ADDMM["self"],
    "batch1": lambda grad, batch1, batch2, alpha: BADDBMM["batch1"](repeated(grad, batch1), batch1, batch2, alpha),
    "batch2": lambda grad, batch1, batch2, alpha: BADDBMM["batch2"](repeated(grad, batch1), batch1, batch2, alpha),
}
MV = {
    "self": lambda grad, self, vec: matmul(column(grad), row(vec), self),
    "vec": lambda grad, self: mv(transpose(self), grad),
}
ADDMV = {
    "self": ADDMM["self"],
    "mat": lambda grad, mat, vec, alpha: scale(matmul(column(grad), row(vec), mat), alpha),
    "vec": lambda grad, mat, alpha: scale(mv(transpose(mat), grad), alpha),
}
OUTER = {
    "self": lambda grad, vec2: mv(grad, vec2),
    "vec2": lambda grad, self: mv(transpose(grad), self),
}
ADDR = {
    "self": ADDMM["self"],
    "vec1": lambda grad, vec2, alpha: scale(mv(grad, vec2), alpha),
    "vec2": lambda grad, vec1, alpha: scale(mv(transpose(grad), vec1), alpha),
}
DOT = {"self": lambda grad, tensor: multiply(grad, tensor), "tensor": lambda grad, self: multiply(grad, self)}
VDOT = {"self": lambda grad, other: multiply(grad, other), "other": lambda grad, self: multiply(grad, self)}
MATMUL = {"input": matmul_input, "other": matmul_other}
LINEAR = {
    "input": lambda grad, input, weight: matmul_input(grad, input, transpose(weight)),
    "weight": lambda grad, input, weight: transpose(matmul_other(grad, input, transpose(weight))),
    "bias": lambda grad, bias: fit(grad, bias),
}
BMM, BADDBMM, ADDBMM, MV, ADDMV, OUTER, ADDR, DOT, VDOT, MATMUL, LINEAR = map(
    of_real, (BMM, BADDBMM, ADDBMM, MV, ADDMV, OUTER, ADDR, DOT, VDOT, MATMUL, LINEAR)
)
ADD = {
    "self": lambda grad, self: fit(grad, self),
    "other": lambda grad, other, alpha: fit(scale(grad, alpha), other),
}
SUBTRACT = {
    "self": lambda grad, self: fit(grad, self),
    "other": lambda grad, other, alpha: fit(multiply(grad, -alpha), other),
}
MULTIPLY = {
    "self": lambda grad, self, other: fit(multiply(grad, other), self),
    "other": lambda grad, self, other: fit(multiply(grad, self), other),
}
DIVIDE = {
    "self": lambda grad, self, other: fit(divide(grad, other), self),
    "other": lambda grad, self, other: fit(multiply(divide(multiply(grad, self), multiply(other, other)), -1), other),
}
MAXIMUM = {
    "self": lambda grad, self, other: fit(multiply(grad, wins(self, other)), self),
    "other": lambda grad, self, other: fit(multiply(grad, wins(other, self)), other),
}
MINIMUM = {
    "self": lambda grad, self, other: fit(multiply(grad, wins(other, self)), self),
    "other": lambda grad, self, other: fit(multiply(grad, wins(self, other)), other),
}
REMAINDER = {
    "self": lambda grad, self: fit(grad, self),
    "other": lambda grad, self, other: fit(PARTIAL["remainder_other"](grad, self, other), other),
}
FMOD = {
    "self": lambda grad, self: fit(grad, self),
    "other": lambda grad, self, other: fit(PARTIAL["fmod_other"](grad, self, other), other),
}
POW = {
    "self": lambda grad, self, other: fit(PARTIAL["pow_self"](grad, self, other), self),
    "other": lambda grad, self, other: fit(PARTIAL["pow_other"](grad, self, other), other),
}
ATAN2 = {
    "self": lambda grad, self, other: fit(PARTIAL["atan2_self"](grad, self, other), self),
    "other": lambda grad, self, other: fit(PARTIAL["atan2_other"](grad, self, other), other),
}
HYPOT = {
    "self": lambda grad, self, other: fit(PARTIAL["hypot_self"](grad, self, other), self),
    "other": lambda grad, self, other: fit(PARTIAL["hypot_other"](grad, self, other), other),
}
COPYSIGN = {
    "self": lambda grad, self, other: fit(PARTIAL["copysign_self"](grad, self, other), self),
    "other": lambda grad, self, other: fit(PARTIAL["copysign_other"](grad, self, other), other),
}
LOGADDEXP = {
    "self": lambda grad, self, other: fit(PARTIAL["logaddexp_self"](grad, self, other), self),
    "other": lambda grad, self, other: fit(PARTIAL["logaddexp_other"](grad, self, other), other),
}
FMAX = {
    "self": lambda grad, self, other: fit(PARTIAL["fmax_self"](grad, self, other), self),
    "other": lambda grad, self, other: fit(PARTIAL["fmax_other"](grad, self, other), other),
}
FMIN = {
    "self": lambda grad, self, other: fit(PARTIAL["fmin_self"](grad, self, other), self),
    "other": lambda grad, self, other: fit(PARTIAL["fmin_other"](grad, self, other), other),
}
LDEXP = {"self": lambda grad, self, other: fit(ops.ldexp(grad, other), self)}
for _formulas in (ADD, SUBTRACT, MULTIPLY, DIVIDE, MAXIMUM, MINIMUM, REMAINDER, FMOD, POW, ATAN2, HYPOT, COPYSIGN,
                  LOGADDEXP, FMAX, FMIN, LDEXP):  # fmt: skip
    _formulas.update(of_masked(_formulas))
SUM_TO = {"self": lambda grad, self: expand(grad, spec(self).shape)}
