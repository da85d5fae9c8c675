"""Products of any kind, all checks included, of arrays that jitted code of others describes as planner.py says."""

from __future__ import annotations

import functools

from ...jit.abi.address import copy, invoke, scratch, set_word
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit
from ...jit.ir.kind import Kind
from ..elementwise.planner import BLOCK, operand_at
from ..gemv import mv
from . import padded
from .context import BYTES, swap_sides, words_at
from .jitted_kernel import native
from .paths import PARALLEL

# What is wrong, or nothing is.
DONE, INNER, BATCHES, OUT, SELF, OVERLAPS, OVERLAPS_SELF, TWICE, UNEVEN = range(9)


@jit
def _size(x, d):
    """Of the dimension that is the d-th from the end, 1 where there is none."""
    return x.shape[x.ndim - 1 - d] if d < x.ndim else 1


@jit
def _step(x, d):
    """Bytes from one element of it to the next; 0 where it is expanded."""
    return x.step[x.ndim - 1 - d] if _size(x, d) > 1 else 0


@jit
def _unfit(out, x, a, b, strict):
    """What is wrong with the sizes. A vector a is a row, a vector b a column, which out has not."""
    rows, columns = a.ndim > 1, b.ndim > 1
    inner = rows + columns
    if _size(a, 0) != _size(b, 1 if columns else 0):
        return INNER
    batches = max(a.ndim - 2, b.ndim - 2, 0)
    for d in range(batches):
        p, q = _size(a, d + 2), _size(b, d + 2)
        if p != q and (strict or (p != 1 and q != 1)):
            return BATCHES
        if _size(out, d + inner) != (q if p == 1 else p):
            return OUT
    if out.ndim != batches + inner or (columns and _size(out, 0) != _size(b, 0)):
        return OUT
    if rows and _size(out, inner - 1) != _size(a, 1):
        return OUT
    for d in range(x.ndim):
        if _size(x, d) != 1 and _size(x, d) != _size(out, d):
            return SELF
    return DONE


@jit
def _apart(out, x):
    """Whether the extents of two arrays' memory do not meet."""
    low, high, first, last = out.data, out.data + out.width, x.data, x.data + x.width
    for d in range(out.ndim):
        if _size(out, d) == 0:
            return True
        reach = (_size(out, d) - 1) * _step(out, d)
        low, high = low + min(reach, 0), high + max(reach, 0)
    for d in range(x.ndim):
        if _size(x, d) == 0:
            return True
        reach = (_size(x, d) - 1) * _step(x, d)
        first, last = first + min(reach, 0), last + max(reach, 0)
    return first >= high or low >= last


@jit
def _lies(out, x):
    """Whether x, expanded, is element for element out."""
    for d in range(out.ndim):
        if _size(out, d) > 1 and _step(out, d) != _step(x, d):
            return False
    return out.data == x.data


@jit
def _wrong(out, x, a, b, beta):
    """What is wrong with the memory; of an out of no elements nothing, whose strides may be 0."""
    for d in range(out.ndim):
        if _size(out, d) == 0:
            return DONE
    if not (_apart(out, a) and _apart(out, b)):
        return OVERLAPS
    if beta != 0 and not _lies(out, x) and not _apart(out, x):
        return OVERLAPS_SELF
    for d in range(out.ndim):
        if _size(out, d) > 1 and _step(out, d) == 0:
            return TWICE
    for d in range(max(out.ndim, x.ndim, a.ndim, b.ndim)):
        odd = (_step(out, d) | _step(x, d)) & (out.width - 1) | _step(a, d) & (a.width - 1)
        if odd | _step(b, d) & (b.width - 1) != 0:
            return UNEVEN
    return DONE


@jit
def _nothing(f, zero):
    """The product becomes one of no terms: a step of a zero by a zero. Of -1 times that beta * X keeps its sign."""
    f.k, f.a, f.b, f.rsa, f.csa, f.rsb, f.csb = 1, zero, zero, 0, 0, 0, 0


FACTORS = 4  # alpha and beta, and those of a product of no terms, in the dtype of chains


@functools.cache
def checked() -> int:
    """out = alpha * a @ b + beta * x: int64(words of out, x, a, b; address of `by_itself` or 0; of a padded.PLAN; of
    FACTORS, and the bytes of one; beta, alpha; whether batches must be alike, not broadcast): DONE, or what is wrong,
    with nothing written. A beta of 0 reads no x. Of kinds but floats beta and alpha only say whether these are 0 or 1.
    """

    def product(words, alone, plan, factors, size, beta, alpha, strict):
        out, x = operand_at(words), operand_at(words + BLOCK)
        a, b = operand_at(words + 2 * BLOCK), operand_at(words + 3 * BLOCK)
        status = _unfit(out, x, a, b, strict)
        if status == DONE:
            status = _wrong(out, x, a, b, beta)
        if status != DONE:
            return status
        rows, columns = a.ndim > 1, b.ndim > 1
        inner, batches = rows + columns, max(a.ndim - 2, b.ndim - 2, 0)
        m, n, k = _size(a, 1), _size(b, 0) if columns else 1, _size(a, 0)
        rsa, csa = _step(a, 1), _step(a, 0)
        rsb, csb = _step(b, 1 if columns else 0), _step(b, 0) if columns else 0
        rsc, csc = _step(out, inner - 1) if rows else 0, _step(out, 0) if columns else 0
        rsx, csx = _step(x, inner - 1) if rows else 0, _step(x, 0) if columns else 0
        count, own, zero = 1 if m * n > 0 else 0, scratch(BYTES), scratch(16)
        vector = inner == 1 and batches == 0  # by a matrix: floats have an order of their own for it
        f, empty = words_at(own), k == 0 or alpha == 0
        by_itself = alone != 0 and (vector or m * n * k <= PARALLEL)
        for d in range(batches):
            count *= _size(out, d + inner)
        if count > 0 and not by_itself:
            copy(own, padded.plan_at(plan).words, BYTES)
        if empty:
            set_word(zero, 0)
            set_word(zero + 8, 0)
            alpha = 1.0 if beta == 0 else -1.0
        for t in range(count):
            ca, cb, c, px, rest = a.data, b.data, out.data, x.data if beta != 0 else 0, t
            for d in range(batches):
                i, rest = rest % _size(out, d + inner), rest // _size(out, d + inner)
                ca, cb = ca + i * _step(a, d + 2), cb + i * _step(b, d + 2)
                c, px = c + i * _step(out, d + inner), px + i * _step(x, d + inner) if beta != 0 else 0
            f.m, f.n, f.k, f.a, f.b, f.c, f.x = m, n, k, ca, cb, c, px
            f.rsa, f.csa, f.rsb, f.csb = rsa // a.width, csa // a.width, rsb // b.width, csb // b.width
            f.rsc, f.csc = rsc // out.width, csc // out.width
            f.rsx, f.csx = rsx // out.width, csx // out.width
            if empty:
                _nothing(f, zero)
            if by_itself:
                if vector and columns:  # a vector by a matrix: the matrix's transpose by it
                    swap_sides(f)
                invoke(alone, (own, beta, alpha))
            else:
                f.own, f.unit, f.reads = own, alpha == 1, beta != 0
                f.scalars = factors + (2 * size if empty else 0)
                f.csa, f.csb = f.csa if f.k > 1 else 1, f.csb if f.n > 1 else 1
                f.csc = f.csc if f.n > 1 else 1
                padded.product(padded.plan_at(plan).launch, f)
        return DONE

    return compiled(product, "int64(int64, int64, int64, int64, int64, float64, float64, boolean)", "product_checked")


def by_itself(kind: Kind, ndims: tuple[int, int]) -> int:
    """What multiplies small operands, in the order of mv where one is a vector and one a matrix; 0 where padded.py
    does."""
    if kind != Kind.plain(kind.chain) or kind.planes > 1:
        return 0
    return mv.native(kind.chain) if sorted(ndims) == [1, 2] else native(kind.chain)
