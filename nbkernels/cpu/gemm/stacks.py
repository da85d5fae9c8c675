"""Stacks of small products of floats: which are served, the kernel that takes them (stacks_float.py), and the call."""

from __future__ import annotations

import functools

from ...jit.abi.address import invoke, pointer
from ...jit.abi.record import address
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import plain
from ..runtime import threads
from ..runtime.machine import l2
from ..runtime.status import DECLINED, DONE, LACKING
from .block import PANEL
from .blocking import SEGMENT, caches, small
from .context import up
from .even import suits
from .kernels import MULTIPLIER, STACKS, supply
from .kernels import TINY as LINES
from .paths import ALONE, DEEPEST, PARALLEL, SERIAL, seen
from .stacks_float import EVEN, NONE, ONE_BLOCK, STACK, TINY, TURNED, VECTOR, WAYS, bytes_of, job, lacking, pairs
from .tiny import every, known

LONE = 1 << 10  # bytes of a matrix from which vectors go by dotxf.py and axpyf.py: 500x30x1x30 of f32 TT 150 us, so 36
MET = 4  # blocks of rows up to which a stack's B is as well read in place, wherever it comes from
# Rows and columns at least, and steps at most, of products of a stack that are written by rows (thin.py).
THIN_ROWS, THIN_STEPS = 64, 32
OVERHEAD = 200  # multiply-adds in the time that a product takes beside them, 5 ns: for the question of threads
TASKS = 8 * STACK["tasks"]


@plain
def even_over(count, workers):
    """Tell whether threads that take a product each are done together, or nearly; else all of them share each."""
    return count % workers == 0 or count > 4 * workers


@plain
def _gains(tile, f):
    """Tell whether threads share the products, two of which take the time of one (200x1x64x64)."""
    return f.count > f.each and f.count * (f.m * f.n * f.k + OVERHEAD) + bytes_of(tile, f) // 2 > PARALLEL


@plain
def served(m, n, k, size, cache):
    """Tell whether one thread may take a product of a stack at once: few rows and few steps have other ways. A C from
    beyond L2 is better written by rows (thin.py)."""
    thin = min(m, n) >= THIN_ROWS and k <= THIN_STEPS and m * n * size > cache
    larger = k <= DEEPEST and m * n * k <= SERIAL and min(m, n) > 3 and not thin
    return k <= SEGMENT and (m * n * k <= ALONE or larger)


@plain
def chosen(tile, f):
    """The kernel of a stack. A row or a column goes by the other operand where that is of some size
    and contiguous, along C or along k; but a row that is tiny has a vector or two against B's rows in place."""
    m, n, k, width = f.m, f.n, f.k, 2 * tile.lanes
    long, across, along = (n, f.csb, f.rsb) if m == 1 else (m, f.rsa, f.csa)
    if min(m, n) == 1 and long * k * tile.itemsize >= LONE and (along == 1 or (across == 1 and (m > 1 or n > width))):
        return VECTOR
    if pairs(f):
        return VECTOR
    plain = f.csc == 1 and (f.x == 0 or f.csx == 1)
    if plain and f.x == 0 and f.unit != 0 and suits(tile, m, n, k, f.rsa, f.csa):
        return EVEN
    there = f.csb == 1 or k * up(n, tile.lanes) * tile.itemsize <= PANEL
    # Rows of a B from beyond L1, met again and again, are better packed: 64x64x64x64 of f64 1300 us, so 960.
    again = m > MET * tile.mr and k * n * tile.itemsize >= 4 * TURNED
    if plain and there and m * n * k <= ALONE and not (again and k <= DEEPEST):
        return TINY
    return ONE_BLOCK if k <= DEEPEST else NONE


def supply_matrices(tile) -> None:
    """Compile or load what stacks of matrices may lack, for callers that cannot ask."""
    every(tile)
    for way in (ONE_BLOCK, TINY, *[EVEN] * tile.narrow):
        supply(tile, STACKS + way)


@functools.cache
def whole(tile) -> int:
    """A stack of products: int64(words of a STACK, address of the tile's kernels): DONE; DECLINED, with nothing done,
    where none of them is for it; LACKING + the place of what is missing."""

    def run(f, kernels):
        one, way = f.m * f.n * f.k, chosen(tile, f)
        if way == NONE or not served(f.m, f.n, f.k, tile.itemsize, l2()):
            return DECLINED
        kernel = pointer(kernels)[MULTIPLIER + way]
        if kernel == 0:
            return LACKING + STACKS + way
        at = lacking(tile, known(tile), f) if way == TINY else -1
        if at >= 0:
            return LACKING + LINES + at
        f.next, f.each = 0, job(tile, f)
        if f.launch == 0 or not (one > ALONE or _gains(tile, f)):
            invoke(kernel, (address(f), 0))
        elif f.held != 0:
            threads.shared(f.launch, kernel, address(f), address(f) + TASKS)
        else:
            threads.unheld(f.launch, kernel, address(f), address(f) + TASKS)
        return DONE

    return compiled(run, f"int64({STACK}, int64)", f"gemm_stack_{tile}")


def choose(out, x, a, b, workers: int, dtype: str, alpha=1) -> tuple[str, int] | None:
    """('tiny', 'small', 'even' or 'vectors', threads) of a stack that has a path of its own, None where each product
    goes its own way. Arrays, of which x may be None, tell their shapes and strides; none is empty."""
    count, tile, f = len(out), small(dtype), STACK.array()
    f.m, f.n, f.k, f.rsa, f.csa, f.rsb, f.csb, f.csc = seen(out, x, a, b)  # rows that are contiguous, x's too, or not
    f.count, f.unit, f.x, f.csx, large = count, alpha == 1, x is not None, f.csc, f.m * f.n * f.k > ALONE
    if not served(f.m, f.n, f.k, tile.itemsize, caches()[1]) or (large and not even_over(count, workers)):
        return None
    f.each, way = job(tile, f), chosen(tile, f)
    if way == NONE:
        return None
    return WAYS[way][0], min(count, workers) if large or _gains(tile, f) else 1
