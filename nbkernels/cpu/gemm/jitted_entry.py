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
from .block import native
from .blocking import FEW_REGISTERS
from .context import BYTES, swap_sides, words_at
from .paths import DEEPEST, PARALLEL, SERIAL

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
def _shift(x):
    """By how many bits bytes are shifted to be elements: a division takes 40 cycles."""
    return (x.width > 1) + (x.width > 2) + (x.width > 4) + (x.width > 8)


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
def _extent(x):
    """Where an array's memory begins and ends, nowhere if it has no elements, and bits of strides that leave elements
    uneven."""
    low, high, bits = x.data, x.data + x.width, 0
    for d in range(x.ndim):
        if x.shape[d] == 0:
            return 0, 0, 0
        if x.shape[d] > 1:
            reach = (x.shape[d] - 1) * x.step[d]
            low, high, bits = low + min(reach, 0), high + max(reach, 0), bits | x.step[d]
    return low, high, bits & (x.width - 1)


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
    (low, high, odd), (a0, a1, odd_a), (b0, b1, odd_b) = _extent(out), _extent(a), _extent(b)
    if low == high:
        return DONE
    if (a0 < high and low < a1) or (b0 < high and low < b1):
        return OVERLAPS
    if beta != 0:
        x0, x1, odd_x = _extent(x)
        odd |= odd_x
        if x0 < high and low < x1 and not _lies(out, x):
            return OVERLAPS_SELF
    for d in range(out.ndim):
        if out.shape[d] > 1 and out.step[d] == 0:
            return TWICE
    return UNEVEN if (odd | odd_a | odd_b) != 0 else DONE


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

    def product(words, alone, plan, factors, width, beta, alpha, strict):
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
        f, empty, sa, sb, sc = words_at(own), k == 0 or alpha == 0, _shift(a), _shift(b), _shift(out)
        size, p = m * n * k, padded.plan_at(plan)
        workers = padded.workers(p.launch, size)
        most = PARALLEL if FEW_REGISTERS or workers > 1 else SERIAL
        by_itself = alone != 0 and (vector or (k <= DEEPEST and size <= most))
        for d in range(batches):
            count *= _size(out, d + inner)
        if count > 0 and not by_itself:
            copy(own, p.words if size <= PARALLEL else p.larger, BYTES)
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
            f.rsa, f.csa, f.rsb, f.csb = rsa >> sa, csa >> sa, rsb >> sb, csb >> sb
            f.rsc, f.csc, f.rsx, f.csx = rsc >> sc, csc >> sc, rsx >> sc, csx >> sc
            if empty:
                _nothing(f, zero)
            f.csa, f.csb = f.csa if f.k > 1 else 1, f.csb if f.n > 1 else 1
            f.csc = f.csc if f.n > 1 else 1
            if by_itself:
                if vector and columns:  # a vector by a matrix: the matrix's transpose by it
                    swap_sides(f)
                invoke(alone, (own, beta, alpha))
            else:
                f.own, f.unit, f.reads, f.workers = own, alpha == 1, beta != 0, workers
                f.scalars = factors + (2 * width if empty else 0)
                padded.product(p.launch, f)
        return DONE

    return compiled(product, "int64(int64, int64, int64, int64, int64, float64, float64, boolean)", "product_checked")


def by_itself(kind: Kind, ndims: tuple[int, int]) -> int:
    """What multiplies small operands, in the order of mv where one is a vector and one a matrix; 0 where padded.py
    does."""
    if kind != Kind.plain(kind.chain) or kind.planes > 1:
        return 0
    return mv.native(kind.chain) if sorted(ndims) == [1, 2] else native(kind.chain)
