"""Run a product of arrays of any dtype and number of dimensions in one call from Python.

The entry makes the result, and hands the arrays to call.py, which checks and multiplies them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...jit.abi import new_arrays
from ...jit.abi.address import asked, pointer, poke, scratch
from ...jit.abi.ndarray import MOST, WRITEABLE, address_of, data, flags, ndim, shape
from ...jit.abi.new_arrays import answer, new_strided
from ...jit.abi.record import Record
from ...jit.compile.cache import entry
from ...jit.compile.lazy import jit, plain
from ...jit.ir.kind import BYTES, Kind
from ..runtime import threads
from ..runtime.arrays import alike, optional
from ..runtime.machine import l2
from ..runtime.status import DECLINED, DONE, LACKING, LARGE, WANTED
from ..runtime.workspace import make_room
from .blocking import caches, small
from .call import ASKED, F32, F64, HELD, NEW, OVERHEAD, STRICT, by_itself, checked, plan
from .checks import size, step
from .kernels import TINY, supply
from .kinds import SHALLOW, by_unit, default_tiles, of_depth
from .packed import LAUNCH
from .paths import ALONE, AWAKE, PARALLEL, SERIAL, mirrors
from .stacks import even_over, served
from .tuned import SLOTS, tuned

# Bits of a call's address beside STRICT: for matrices alone; for products that are known to be for one thread each.
MATRICES, CHOSEN = 2, 4
# A kind of product with its factors: made.words(); what says how many threads there are; the result's dtype; whether
# dtypes differ, which the caller has looked at; multiply-adds of one product at most; what `checked` takes.
CALL = Record("GeneralCall", "numpy launch dtype mixed single run alone plan shallow factors width")
call_at, SHAPE = CALL.pointer(), 8 * MOST


@jit(forceinline=True)
def _sizes(a, b, sizes):
    """Write the shape of a product to an address: how many dimensions and products, and each one's sizes."""
    s, batches, count, m, n = pointer(sizes), max(max(ndim(a), ndim(b)) - 2, 0), 1, 1, 1
    at = batches
    for d in range(batches):
        p, q = size(a, d + 2), size(b, d + 2)
        s[batches - 1 - d] = q if p == 1 else p
        count *= s[batches - 1 - d]
    if ndim(a) > 1:
        m = s[at] = shape(a, ndim(a) - 2)
        at += 1
    if ndim(b) > 1:
        n = s[at] = shape(b, ndim(b) - 1)
        at += 1
    return at, count, (m, n, shape(a, ndim(a) - 1))


def largest_single(kind: Kind) -> int:
    """Multiply-adds of one product at most: larger ones of floats have other paths, and those of tuned kinds tiles by
    their size."""
    kinds = kind, of_depth(kind, SHALLOW), by_unit(kind, 1, 1, LAUNCH)
    return PARALLEL if by_itself(kind) or any(tuned(each, i) for each in kinds for i in range(SLOTS)) else LAUNCH


@jit
def itself(a, b, workers):
    """Tell whether b is a's transpose, and one triangle is enough (syrk.py)."""
    if ndim(a) != 2 or ndim(b) != 2 or data(a) != data(b):
        return False
    turned = step(a, 1) == step(b, 0) and step(a, 0) == step(b, 1)
    return turned and mirrors(shape(a, 0), shape(b, 1), shape(a, 1), workers)


@plain
def shared(count, sizes, workers, size, cache):
    """Threads for a stack of m x n products over k steps; 0 where they had better share each of them. `size`: bytes of
    an element of floats, of which there are other paths, or 0."""
    m, n, k = sizes
    one = m * n * k
    if one > SERIAL or (one > PARALLEL and count % workers != 0 and count < workers * workers):
        return 0
    if size > 0 and one > ALONE and not (even_over(count, workers) and served(m, n, k, size, cache)):
        return 0
    return min(workers, count) if count * (one + OVERHEAD) > AWAKE else 1


@functools.cache
def _entry():
    """answer(address of a CALL's words, and bits; out or None, x or None, a, b, beta, alpha): out, or made;
    DECLINED, with nothing written, where arrays are unusual or empty; LARGE, likewise, where it is the caller's to
    launch or to let Ctrl-C through; LACKING + the place of a kernel."""

    def run(words, out, x, a, b, beta, alpha):
        how, chosen, matrices, words = words & STRICT | HELD, words & CHOSEN != 0, words & MATRICES != 0, words & -8
        c, sizes, operands = call_at(words), scratch(SHAPE), scratch(32)
        given, x, a, b, made = optional(c.numpy, out), optional(c.numpy, x), address_of(a), address_of(b), 0
        if (matrices and (ndim(a) != 2 or ndim(b) != 2)) or (how & STRICT != 0 and (ndim(a) != 3 or ndim(b) != 3)):
            return answer(DECLINED, given, made)
        if max(ndim(a), ndim(b)) >= MOST or min(ndim(a), ndim(b)) < 1 or (x != 0 and ndim(x) > MOST):
            return answer(DECLINED, given, made)
        dimensions, count, (m, n, k) = _sizes(a, b, sizes)
        one = m * n * k
        if count * one == 0 or (c.alone != 0 and ndim(a) + ndim(b) == 3):  # mv has an order of its own
            return answer(DECLINED, given, made)
        pool, workers, several = threads.pool_at(c.launch), 1, 1
        if count * (one + OVERHEAD) > AWAKE:
            workers = threads.workers(pool) if pool.share != 0 else 2  # nothing says how many there are
            several = shared(count, (m, n, k), workers, c.width if c.alone != 0 else 0, l2()) if count > 1 else 1
        large = several == 0 or count * one > (LAUNCH if count > 1 else c.single)
        half = count == 1 and one > PARALLEL and x == 0 and itself(a, b, workers)
        if (large and not chosen) or half or (several > 1 and pool.share == 0):
            return answer(LARGE, given, made)
        if given == 0:
            made = new_strided(c.numpy, c.dtype, dimensions, sizes, 0, 0, 0)
            if made == 0:
                return answer(DONE, given, made)
            how |= NEW
        out = given + made
        if ndim(out) > MOST or flags(out) & WRITEABLE == 0 or (c.mixed == 0 and not alike(out, x, a, b)):
            return answer(DECLINED, given, made)
        told = pointer(operands)
        told[0], told[1], told[2], told[3] = out, x if x != 0 else out, a, b
        way, factors, beta = c.shallow if k <= SHALLOW else c.plan, c.factors, beta if x != 0 else 0.0
        if c.alone != 0:  # of floats they are the call's
            factors = scratch(32)
            for i, factor in enumerate((alpha, beta, 1.0 if beta == 0 else -1.0, beta)):
                if c.width == 4:
                    poke(F32, factors + 4 * i, np.float32(factor))
                else:
                    poke(F64, factors + 8 * i, factor)
        found = asked(c.run, (operands, c.alone, way, factors, c.width, beta, alpha, how))
        return answer(DECLINED if 0 < found < LACKING else found, given, made)

    return entry(run, "answer(int64, object, object, object, object, float64, float64)", "gemm_general")


@dataclass(frozen=True)
class General:
    """A product without its arrays: kind, factors, and dtype of the result; whether the arrays' dtypes differ, which
    the caller has looked at; the entry, what it takes, and what must live while it is read."""

    kind: Kind
    beta: object
    alpha: object
    dtype: np.dtype
    mixed: bool
    run: Callable
    address: int
    told: tuple[float, float]
    words: tuple

    def stack(self, out, x, a, b) -> bool:
        """out[t] = alpha * a[t] @ b[t] + beta * x[t] after all checks, x of out's shape or None; False, with nothing
        written, where threads had better share each product, or strides are no whole elements."""
        sizes, floats = (*a.shape[1:], b.shape[2]), BYTES[self.kind.chain] if by_itself(self.kind) else 0
        if not shared(len(a), sizes, threads.count(), floats, caches()[1]):
            return False
        one = math.prod(sizes)
        each = max(1, LAUNCH // one)  # Ctrl-C works between launches
        for i in range(0, len(a), each):
            part = slice(i, i + each)
            if not self.done(STRICT | CHOSEN, out[part], None if x is None else x[part], a[part], b[part]):
                return False
        return True

    def done(self, how, *given) -> bool:
        """Compute a product of out, x, a and b with the factors that are known; tell whether it is in out."""
        found = self.run(self.address | how, *given, *self.told)
        return found is given[0] or self.again(found, *given, how, self.told) is given[0]

    def again(self, found, out, x, a, b, how, told):
        """Ask the entry, which has answered `found`, until it lacks nothing any more; return its answer. `told`: the
        factors that it is told, `self.told` but for floats."""
        opened = False
        while type(found) is int and (found >= LACKING or (found == LARGE and not opened)):
            if found == LARGE:
                opened = True
                threads.open_up()
            elif found >= WANTED:
                if not make_room(found - WANTED):
                    break
            else:
                m, n, k = a.shape[-2] if a.ndim > 1 else 1, b.shape[-1] if b.ndim > 1 else 1, a.shape[-1]
                kind, at = by_unit(of_depth(self.kind, k), m, n, k), found - LACKING
                supply(small(kind.a) if at >= TINY else default_tiles(kind).tile(kind), at)
            found = self.run(self.address | how, out, x, a, b, *told)
        return found


def general(kind: Kind, beta, alpha, dtype: np.dtype, mixed: bool) -> General:
    """The entry for products of a kind with these factors, of which alpha is not 0."""
    return (_made if kind.planes > 1 else known)(kind, beta, alpha, dtype, mixed)


def _made(kind, beta, alpha, dtype, mixed) -> General:
    c, chain = CALL.array(), np.dtype(kind.chain)
    factors = np.array([alpha, beta, 1 if beta == 0 else -1, beta], chain)
    c.numpy, c.launch, c.dtype, c.mixed = new_arrays.words().ctypes.data, threads.WORDS, id(dtype), mixed
    c.run, c.factors, c.width = checked(), factors.ctypes.data, chain.itemsize
    plans = [plan(each, True) for each in (kind, of_depth(kind, SHALLOW))]
    c.plan, c.shallow = (address for address, *_ in plans)
    c.alone, c.single = ASKED if by_itself(kind) else 0, largest_single(kind)
    told = tuple(float(x) if chain.kind == "f" else {0: 0.0, 1: 1.0}.get(x, 2.0) for x in (beta, alpha))
    return General(kind, beta, alpha, dtype, mixed, _entry(), c.buffer_info()[0], told, (c, factors, plans))


known = functools.lru_cache(256)(_made)  # of real numbers: 0j and -0j are one key, and two factors
