"""C = alpha * A @ B + beta * X on the CPU: the kernels that the dispatcher knows.

Order of summation, the same on every path, tile, layout and number of threads: k is cut into segments of 4096; within a
segment an element is one chain of fused multiply-adds over increasing p, from zero; segment sums are added in order;
then fma(beta, x, alpha*sum), once. Blocks of kc within a segment carry the chain on through memory.

Operands are read through their strides, or packed into buffers that docs/kernels.md states; copied are operands whose
strides are no multiple of the item size, and outputs that really overlap inputs.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from dataclasses import dataclass

import numpy as np
from numpy import empty

from ...dtypes import asked
from ...jit.chain import ways
from ...jit.kind import BYTES, SIGNLESS, wrapped
from ...jit.made import words
from ...jit.ndarray import layout_is_known
from ...jit.vector import SIZE
from ...problem import GemmProblem, slot
from ..gemv.gemv import gemv
from ..gemv.gemv import whole as gemv_whole
from ..runtime import threads
from ..runtime.status import (
    COLUMNS,
    DECLINED,
    DEEP,
    DONE,
    GEMV,
    LARGE,
    PACKED,
    PATHS,
    SHORT,
    SMALL,
    SYMMETRIC,
    THIN,
    UNMADE,
)
from .blocking import Tiles, given
from .blocking import small as small_tile
from .columns import columns
from .columns import whole as columns_whole
from .context import fresh
from .deep import deep
from .deep import whole as deep_whole
from .entry import KNOWN, SERIALLY, small_entry
from .kinds import MODES, WIDENED, kind_of, tiles_of
from .loops import packed
from .loops import whole as packed_whole
from .paths import PARALLEL, path, path_of, shared
from .serial import planned
from .short import short
from .syrk import mirrored, symmetric
from .thin import thin
from .thin import whole as thin_whole
from .tuned import slot_of

NAMES = {np.dtype(name): name for name in SIZE}  # str(dtype) takes 7 us
OTHERS = {np.dtype(name): name for name in BYTES if name not in (*SIZE, "bfloat16")}
OTHERS |= {np.dtype(name): name for name in SIGNLESS}

# What does a path's product: from compiled code, which the small entry is to know, and from Python.
WHOLE = {GEMV: gemv_whole, THIN: thin_whole, DEEP: deep_whole, COLUMNS: columns_whole, PACKED: packed_whole}
RUN = {THIN: thin, DEEP: deep, SHORT: short, COLUMNS: columns}
REAL = {int, float, bool}
ONE = 1


def gemm(
    out, x, a, b, beta, alpha, tiles: Tiles | None = None, conj: str = "", mode: str | None = None, after=None
) -> bool:
    """out = alpha * a @ b + beta * x after all checks; x may be None or be broadcast, and is ignored if beta == 0.

    Whether `after`, what to apply to finished tiles (epilogue.py), was applied; it is where the path is the packed one.
    """
    if beta == 0:
        x = None
    if out.size == 0:
        return False
    kind = kind_of(*(name_of(each.dtype) for each in (a, b, out)), conj, mode)
    tiles = None if tiles is None else given(tiles, kind)
    if a.shape[1] == 0 or alpha == 0:
        _scaled(out, x, beta, kind)
        return False
    overlap = clash(out, a) or clash(out, b) or (x is not None and not same(out, x) and clash(out, x))
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
        mirrored(product, out, a, b)
        return False
    if tiles is None and kind.a in SIZE:
        way = path_of(out, x, a, b, threads.count())
        if way != PACKED and by_path(way, out, x, a, b, beta, alpha) == DONE:
            return False
    tiles = tiles or tiles_of(kind, slot_of(out, a, b))
    m, n, k = *out.shape, a.shape[1]
    beta, alpha = (wrapped(factor, kind) for factor in (beta, alpha))
    workers = threads.count() if m * n * k > PARALLEL else 1
    packed(out, 0 if x is None else id(x), a, b, beta, alpha, tiles, kind, workers, after=after)
    return after is not None


def product(out, a, b) -> None:
    """out = a @ b, at once where that can be."""
    if mm_fast(a, b, out) is not out:
        gemm(out, None, a, b, 0, 1)


def by_path(way: int, out, x, a, b, beta, alpha, trusted: bool = True) -> int:
    """float32 and float64 by one path: a status. Not trusted: whether arrays are sound is looked at again."""
    name, workers = NAMES[out.dtype], threads.count()
    if way == GEMV:
        done = gemv(name, out, 0 if x is None else id(x), a, b, float(beta), float(alpha))
        return DONE if done else DECLINED
    if way == SMALL:
        return _run_small(out, x, a, b, beta, alpha)
    x = 0 if x is None else id(x)
    if way == PACKED:
        kind = kind_of(name, name, name)
        return packed(out, x, a, b, beta, alpha, tiles_of(kind, slot_of(out, a, b)), kind, workers, trusted)
    return RUN[way](out, x, a, b, beta, alpha, name, workers, trusted)


def name_of(dtype) -> str:
    return NAMES.get(dtype) or dtype.name  # .name takes 1 us


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


@functools.cache
def _small(name):
    """The compiled entry for small products, the address of what it knows NumPy by, and the words around that."""
    known = np.concatenate([np.zeros(KNOWN, np.int64), words()])
    known[0] = threads.WORDS
    return small_entry(small_tile(name)), known.ctypes.data + 8 * KNOWN, known


def _run_small(out, x, a, b, beta, alpha) -> int:
    entry, numpy, _ = _small(NAMES[out.dtype])
    found = entry(numpy | SERIALLY, out, x, a, b, float(beta), float(alpha))
    return DONE if found is out else found


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
    """The same, for as long as the product takes: the copy is in a room."""
    if not _odd(operand):
        yield operand
        return
    with fresh(operand) as copy:
        copy[...] = operand
        yield copy


def addmm(out, self, mat1, mat2, beta, alpha, mode=None, conj=None, tiles=None) -> None:
    """out = beta * self + alpha * (mat1 @ mat2)."""
    gemm(out, self, mat1, mat2, beta, alpha, tiles, conj or "", mode)


def mm(out, self, mat2, mode=None, conj=None, tiles=None) -> None:
    """out = self @ mat2."""
    gemm(out, None, self, mat2, 0, 1, tiles, conj or "", mode)


_entries = {}  # dtype -> what _small says, once the layout of ndarray is known to be what it reads; or a plan and 0


def _entry(dtype):
    """The entry for a supported dtype, compiled or loaded at its first use; else None."""
    if not layout_is_known():
        return None
    if dtype in NAMES:
        _entries[dtype] = _small(NAMES[dtype])
    elif entry := _planned(dtype, 1, 1):
        _entries[dtype] = entry, 0, None
    return _entries.get(dtype)


@functools.lru_cache(512, typed=True)
def _planned(dtype, beta, alpha, second=None, out_dtype=None, mode=None, conj=None):
    """The entry for other dtypes, with factors and keywords in its plan; None where they cannot be had."""
    second, wanted = second or dtype, dtype.name if out_dtype is None else asked(out_dtype)
    names = [OTHERS.get(each) or (each.name if each.name == "bfloat16" else None) for each in (dtype, second)]
    allowed = {int, bool} if dtype.kind in "biu" else REAL
    if None in names or alpha == 0 or type(beta) not in allowed or type(alpha) not in allowed:
        return None
    widened = {WIDENED.get(name) for name in names} == {wanted} and (dtype == second or wanted == "int32")
    alike = dtype == second and dtype.name == wanted
    if not (widened or alike) or (conj and (dtype.kind != "c" or conj not in ("a", "b", "ab"))):
        return None
    if mode is not None and (names[0] != "bfloat16" or MODES.get(mode) not in ways()):
        return None
    if max(abs(beta), abs(alpha)) > sys.float_info.max or not layout_is_known():
        return None
    kind, result = kind_of(*names, wanted, conj or "", mode), dtype if alike else np.dtype(wanted)
    return planned(kind, wrapped(beta, kind), wrapped(alpha, kind), result, mixed=not alike)


def addmm_fast(self, mat1, mat2, beta, alpha, out):
    """addmm of small plain arrays in few calls; None, with nothing written, where more care is needed."""
    if (beta is ONE and alpha is ONE) or (type(beta) in REAL and type(alpha) in REAL):
        return mm_fast(mat1, mat2, out, self, beta, alpha)
    return None


def mm_fast(a, b, out, x=None, beta=0, alpha=1, ndarray=np.ndarray):
    """mm, likewise; and what addmm adds."""
    try:
        found = _entries.get(a.dtype) or _entry(a.dtype)
        if found is None:
            return None
        entry, numpy, known = found
        if numpy == 0:
            plain = x is None or (beta is ONE and alpha is ONE)
            return _by_plan(entry if plain else _planned(a.dtype, beta, alpha), x, a, b, out)
        if out is not None and type(out) is not ndarray:
            return None
        status = entry(numpy, out, x, a, b, beta, alpha)
        if type(status) is ndarray:
            return status
        if status == DECLINED:
            return None
        if out is None:
            out = empty((len(a), b.shape[1]), a.dtype)
            status = entry(numpy, out, x, a, b, beta, alpha) if status == UNMADE else status
            if status is out:
                return out
        if status == SYMMETRIC:
            mirrored(product, out, a, b)
            return out
        while status in WHOLE and not known[place := 1 + 2 * (status - GEMV)]:
            known[place : place + 2] = WHOLE[status](NAMES[a.dtype])
            status = entry(numpy, out, x, a, b, beta, alpha)  # another path, where threads were not there before
            if status is out:
                return out
        done = status in PATHS and by_path(status, out, x, a, b, beta, alpha, trusted=False) == DONE
        return out if done else None
    except (TypeError, IndexError, OverflowError):  # not a float, not a matrix: the checks will say it properly
        return None


def addmm_keywords(self, mat1, mat2, beta, alpha, out_dtype, mode, conj, tiles, out):
    """addmm_fast where a keyword is given that only some matrices have."""
    return _keywords(self, mat1, mat2, beta, alpha, out_dtype, mode, conj, out) if tiles is None else None


def mm_keywords(self, mat2, out_dtype, mode, conj, tiles, out):
    """mm_fast, likewise."""
    return _keywords(None, self, mat2, 1, 1, out_dtype, mode, conj, out) if tiles is None else None


addmm_fast.with_keywords, mm_fast.with_keywords = addmm_keywords, mm_keywords


def _keywords(x, a, b, beta, alpha, out_dtype, mode, conj, out):
    try:
        return _by_plan(_planned(a.dtype, beta, alpha, b.dtype, out_dtype, mode, conj), x, a, b, out)
    except TypeError:  # no dtype
        return None


def _by_plan(entry, x, a, b, out):
    """A product with its factors and keywords in the plan of an entry, if there is one."""
    if entry is None:
        return None
    try:
        plan = entry.plan
        dtype = plan.dtype
        if out is not None and (type(out) is not np.ndarray or out.dtype != dtype):
            return None
        if x is not None and x.dtype != dtype:
            return None
        status = entry(out, x, a, b)
        if type(status) is np.ndarray:
            return status
        if status == DECLINED:
            return None
        if out is None:
            out = empty((len(a), b.shape[1]), dtype)
            status = entry(out, x, a, b) if status == UNMADE else status
            if status is out:
                return out
        if status == LARGE and x is None and symmetric(a, b):
            return None  # the general path sees to it
        workers, xid = threads.count() if out.size * a.shape[1] > PARALLEL else 1, 0 if x is None else id(x)
        if status == LARGE and workers == 1:
            status = entry.serially(out, x, a, b)
            if status is out:
                return out
        if status != LARGE:
            return None
        tiles = tiles_of(plan.kind, slot_of(out, a, b))
        return out if packed(out, xid, a, b, plan.beta, plan.alpha, tiles, plan.kind, workers) == DONE else None
    except (TypeError, IndexError):  # not a matrix: the checks will say it properly
        return None


@dataclass(frozen=True)
class Choice:
    """What a product will run on: prints as `packed 8x48 kc=272 nb=960 mc=4096 nc=3840, 2 threads`."""

    problem: GemmProblem
    path: str
    tiles: Tiles
    threads: int

    def __str__(self) -> str:
        tile = small_tile(self.problem.dtype)
        shape = str(self.tiles) if self.path == "packed" else f"{tile.mr}x{tile.nr}"
        return f"{self.path} {shape}, {self.threads} thread{'s' * (self.threads > 1)}"


def describe(m: int, n: int, k: int, dtype: str = "float32") -> Choice:
    """The path, tiles and threads that an m x k by k x n product takes; nothing runs."""
    problem, available = GemmProblem(m, n, k, str(np.dtype(dtype))), threads.count()
    way = path(m, n, k, available, problem.dtype)
    tiles = tiles_of(kind_of(*[problem.dtype] * 3), slot(m, n, k, 0, 0, 0))
    return Choice(problem, PATHS[way], tiles, available if shared(way, m, n, k) else 1)
