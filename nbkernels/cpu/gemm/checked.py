"""Products by one thread, all checks included, of arrays that jitted code of others describes as planner.py says."""

from __future__ import annotations

import functools

import numpy as np

from ...jit.address import invoke, nothing, peek, poke, scratch
from ...jit.cache import compiled, jit
from ..elementwise.planner import BLOCK, operand_at
from ..gemv import mv
from .blocking import small
from .context import BYTES, swap_sides, words_at
from .matrix import matrices, sub
from .native import native

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
    """What is wrong with the memory."""
    if not (_apart(out, a) and _apart(out, b)):
        return OVERLAPS
    if beta != 0 and not _lies(out, x) and not _apart(out, x):
        return OVERLAPS_SELF
    for d in range(out.ndim):
        if _size(out, d) > 1 and _step(out, d) == 0:
            return TWICE
    for d in range(max(out.ndim, x.ndim, a.ndim, b.ndim)):
        if (_step(out, d) | _step(x, d) | _step(a, d) | _step(b, d)) & (out.width - 1) != 0:
            return UNEVEN
    return DONE


@jit
def _scaled(tile, f, beta):
    """C = beta * X: a product of no steps."""
    _, _, c, x = matrices(f)
    for i in range(f.m):
        for j in range(f.n):
            value = beta * peek(tile, sub(x, i, j, tile.itemsize)[0]) if f.x != 0 else nothing(tile)
            poke(tile, sub(c, i, j, tile.itemsize)[0], value)


@functools.cache
def checked(dtype: str) -> int:
    """out = alpha * a @ b + beta * x: int64(words of out, x, a, b; address of `multiplier`; beta, alpha; whether
    batches must be alike, not broadcast): DONE, or what is wrong, with nothing written. A beta of 0 reads no x."""
    tile = small(dtype)
    element, size = getattr(np, dtype), tile.itemsize

    def product(words, multiply, beta, alpha, strict):
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
        count, own = 1 if m * n > 0 else 0, scratch(BYTES)
        f = words_at(own)
        for d in range(batches):
            count *= _size(out, d + inner)
        for t in range(count):
            ca, cb, c, px, rest = a.data, b.data, out.data, x.data if beta != 0 else 0, t
            for d in range(batches):
                i, rest = rest % _size(out, d + inner), rest // _size(out, d + inner)
                ca, cb = ca + i * _step(a, d + 2), cb + i * _step(b, d + 2)
                c, px = c + i * _step(out, d + inner), px + i * _step(x, d + inner) if beta != 0 else 0
            f.m, f.n, f.k, f.a, f.b, f.c, f.x = m, n, k, ca, cb, c, px
            f.rsa, f.csa, f.rsb, f.csb = rsa // size, csa // size, rsb // size, csb // size
            f.rsc, f.csc, f.rsx, f.csx = rsc // size, csc // size, rsx // size, csx // size
            if k == 0 or alpha == 0:
                _scaled(tile, f, element(beta))
                continue
            if inner == 1 and batches == 0 and columns:  # a vector by a matrix: the matrix's transpose by it
                swap_sides(f)
            invoke(multiply, (own, beta, alpha))
        return DONE

    return compiled(product, "int64(int64, int64, float64, float64, boolean)", f"product_checked_{dtype}")


def multiplier(dtype: str, ndims: tuple[int, int]) -> int:
    """What `checked` multiplies such operands by: in the order of mv where one is a vector and the other a matrix."""
    return mv.native(dtype) if sorted(ndims) == [1, 2] else native(dtype)
