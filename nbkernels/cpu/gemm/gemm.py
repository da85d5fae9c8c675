"""C = alpha * A @ B + beta * X on the CPU: the kernels that the dispatcher knows.

Order of summation, the same on every path, tile, layout and number of threads: k is cut into segments of 4096; within a
segment an element is one chain of fused multiply-adds over increasing p, from zero; segment sums are added in order;
then fma(beta, x, alpha*sum), once. Blocks of kc within a segment carry the chain on through memory.

Operands are read through their strides, or packed into buffers that docs/kernels.md states; copied are operands whose
strides are no multiple of the item size, and outputs that really overlap inputs.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np

from ...dtypes import name_of
from ...jit.ir.kind import wrapped
from ...jit.ir.vector import SIZE
from ..gemv.gemv import gemv
from ..runtime import threads
from ..runtime.status import DECLINED, DONE, GEMV, PACKED, PATHS, SMALL
from ..runtime.workspace import fresh
from . import first_products
from .blocking import Tiles, given
from .context_setup import filled
from .entry import DOORS, SERIALLY, small_entry, small_table, supplied
from .general_entry import MATRICES, general
from .kinds import by_unit, default_tiles, kind_of, of_depth
from .packed import packed
from .paths import PARALLEL, path_of
from .syrk import mirrored, symmetric

NAMES = {np.dtype(name): name for name in SIZE}  # str(dtype) takes 7 us

REAL = {int, float, bool}
ONE = 1
UNIT = 1.0  # the same factor as an entry takes it: to convert a Python int takes 15 ns


def gemm(out, x, a, b, beta, alpha, tiles: Tiles | None = None, conj=None, mode: str | None = None, after=None) -> bool:
    """out = alpha * a @ b + beta * x after all checks; x may be None or be broadcast, and is ignored if beta == 0.

    Whether `after`, what to apply to finished tiles (epilogue.py), was applied; it is where the path is the packed one.
    """
    if beta == 0:
        x = None
    if out.size == 0:
        return False
    kind = of_depth(kind_of(*(name_of(each.dtype) for each in (a, b, out)), conj, mode), a.shape[1])
    tiles = None if tiles is None else given(tiles, kind)
    if a.shape[1] == 0 or alpha == 0:
        _scaled(out, x, beta, kind)
        return False
    ready = getattr(b, "memory", None)  # panels.py's
    overlap = clash(out, a) or clash(out, b) or (x is not None and not same(out, x) and clash(out, x))
    overlap = overlap or (ready is not None and out.strides[1] != out.itemsize)  # it is written by rows
    if overlap or any(stride % out.itemsize for stride in out.strides):
        with fresh(out) as temporary:
            gemm(temporary, x, a, b, beta, alpha, tiles, conj, mode)
            out[...] = temporary
        return False
    if _odd(x) or _odd(a) or _odd(b):
        with _even(x) as x, _even(a) as a, _even(b) as b:
            return gemm(out, x, a, b, beta, alpha, tiles, conj, mode, after)
    plain = x is None and alpha == 1 and tiles is None and mode is None and after is None
    if plain and symmetric(a, b):
        compiled = kind.a not in SIZE and not first_products.suits(a, b, out_dtype=out.dtype)
        entry = general(kind, 0, 1, out.dtype, mixed=True) if compiled else None

        def part(out, a, b):
            if not (entry and entry.done(MATRICES, out, None, a, b)):
                gemm(out, None, a, b, 0, 1)

        mirrored(part, out, a, b)
        return False
    if ready is not None:
        halves = kind.chain == "float32" and replace(kind, out=b.kind.out) != b.kind
        if tiles or halves or a.dtype != b.dtype:
            raise ValueError(f"weights packed for {b.dtype} take matrices of it, no tiles and no other mode: {a.dtype}")
        kind, tiles = replace(b.kind, out=kind.out), b.tiles
    elif tiles is None and first_products.product(out, x, a, b, beta, alpha, kind):
        return False
    if tiles is None and kind.a in SIZE:
        ends = after is not None and path_of(out, x, a, b, threads.count()) == PACKED
        if not ends and by_entry(*(y if y is None else y.view(y.dtype.type) for y in (out, x, a, b)), beta, alpha):
            return False
    m, n, k = *out.shape, a.shape[1]
    kind = kind if tiles else by_unit(kind, m, n, k)
    beta, alpha = (wrapped(factor, kind) for factor in (beta, alpha))
    workers = threads.count() if m * n * k > PARALLEL else 1
    packed(out, 0 if x is None else id(x), a, b, beta, alpha, tiles, kind, workers, after)
    return after is not None


def by_entry(out, x, a, b, beta, alpha, serially=0, found=DECLINED) -> bool:
    """float32 and float64, of NumPy's own dtype objects, by the path that small products' entry chooses, or by the
    small one (SERIALLY); `found`: what it has answered already. False, with nothing written, where it declines."""
    name = NAMES[out.dtype]
    entry, table = small_entry(), small_table(name)
    words, factors = table.buffer_info()[0] | serially, (float(beta), float(alpha))
    if found == DECLINED:
        found = entry(words, out, x, a, b, *factors)
    while found is not out and supplied(found, name, table):
        found = entry(words, out, x, a, b, *factors)
    return found is out or (found in PATHS and by_path(found, out, x, a, b, beta, alpha) == DONE)


def by_path(way: int, out, x, a, b, beta, alpha) -> int:
    """float32 and float64 by one path, after all checks: a status."""
    name, workers = NAMES[out.dtype], threads.count()
    if way == SMALL:
        return DONE if by_entry(out, x, a, b, beta, alpha, SERIALLY) else DECLINED
    x, kind = 0 if x is None else id(x), kind_of(name, name, name)
    if way == PACKED:
        return packed(out, x, a, b, beta, alpha, None, kind, workers)
    f, _ = filled(out, x, a, b, beta, alpha, default_tiles(kind), kind, workers, way)
    if way == GEMV:
        return gemv(name, f, float(beta), float(alpha))
    return DOORS[way](name).product(f, float(beta), float(alpha), workers)


def _scaled(out, x, beta, kind) -> None:
    """out = beta * x, or 0 where there is none; computed in the chain's dtype."""
    if x is None:
        out[...] = np.zeros((), out.dtype)
        return
    if out.dtype.kind == "c":  # as the kernels multiply: a real beta keeps infinities; a sum of -0 changes nothing
        left, right = (np.broadcast_to(out.dtype.type(0), shape) for shape in ((len(out), 1), (1, out.shape[1])))
        gemm(out, x, left, right, beta, -1)
        return
    with np.errstate(all="ignore"):
        np.multiply(x, np.asarray(wrapped(beta, kind), kind.chain), out, dtype=kind.chain, casting="unsafe")


def same(p, q) -> bool:
    """Whether two arrays are the same elements in the same order."""
    return p.shape == q.shape and p.strides == q.strides and p.ctypes.data == q.ctypes.data


def clash(p, q) -> bool:
    """Whether two arrays share memory; assumed where it would take long to find out."""
    try:
        return np.shares_memory(p, q, max_work=1000)
    except np.exceptions.TooHardError:
        return True


def _odd(operand) -> bool:
    """Whether an array's strides are no multiple of its item size: a field of packed records."""
    return operand is not None and any(stride % operand.itemsize for stride in operand.strides)


def whole(operand):
    """The array as the compiled entries of one dtype take it: of NumPy's own dtype object, by whose address they know
    it, and a copy if it is odd. One of one element is copied, too: np.ascontiguousarray would leave its stride."""
    operand = operand.view(operand.dtype.type)
    return operand.copy() if _odd(operand) else operand


def accepted(status, *arrays) -> None:
    """Raise where compiled code declined arrays that have passed every check: nothing is written then."""
    if status == DECLINED:
        said = ", ".join(f"{x.dtype} {x.shape} with strides {x.strides}" for x in arrays)
        raise RuntimeError(f"compiled code declined arrays that it should take: {said}")


@contextlib.contextmanager
def _even(operand):
    """Yield the operand or, if it is `_odd`, a contiguous copy in a workspace, which is valid within the block."""
    if not _odd(operand):
        yield operand
        return
    with fresh(operand) as copy:
        copy[...] = operand
        yield copy


def addmm(out, self, mat1, mat2, beta, alpha, mode=None, conj=None, tiles=None) -> None:
    """out = beta * self + alpha * (mat1 @ mat2)."""
    gemm(out, self, mat1, mat2, beta, alpha, tiles, conj, mode)


def mm(out, self, mat2, mode=None, conj=None, tiles=None) -> None:
    """out = self @ mat2."""
    gemm(out, None, self, mat2, 0, 1, tiles, conj, mode)
