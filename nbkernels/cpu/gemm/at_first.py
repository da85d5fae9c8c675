"""The first products: micro-kernels, called tile by tile from Python.

Nothing else is compiled for them, 0.03 to 0.1 s for each height and width of a tile, where the compiled paths take 2 s;
a tile's call takes 5 us. B is read in place where its rows are contiguous, else copied, and so are operands of another
dtype than the micro-kernel's words; C that is stored by columns is C' = B' A'. Parts of complex numbers are panels of
their own. The bits are those of every path.
"""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from ...dtypes import asked
from ...jit.kind import BYTES, PLANE, SIGNLESS, Kind, wrapped
from ...jit.patience import Patience
from ...jit.tile import Tile
from ...jit.vector import SIZE
from .blocking import SEGMENT, small
from .kinds import default_tiles, kind_of
from .microkernel import SPEC, STRIDED, place, table
from .store import PLAIN, REGISTERS

DTYPES = {*BYTES, *SIGNLESS}
MOST = 8192  # tiles of a product, or of a stack of them

patience = Patience()  # of products, whatever their dtypes


# -- which are for it -------------------------------------------------------------------------------------------------


def first(a, b, plain: bool = True, out_dtype=None) -> bool:
    """Whether a product of arrays, or of stacks of them, is one of the first, which are counted, and suits. `plain`:
    nothing is added, and alpha is 1; `out_dtype`: the result's, if it is not theirs."""
    return patience() and suits(a, b, plain, out_dtype)


def suits(a, b, plain: bool = True, out_dtype=None) -> bool:
    """Whether it could be one."""
    if not patience.lasts():
        return False
    wanted = a.dtype.name if out_dtype is None else asked(out_dtype)
    if a.dtype != b.dtype or not 2 <= a.ndim == b.ndim or not {wanted, a.dtype.name} <= DTYPES:
        return False
    kind = _served(kind_of(a.dtype.name, b.dtype.name, wanted))
    return kind is not None and (plain or _scales(kind, a)) and _fits(tile_of(kind), a, b)


def _served(kind: Kind) -> Kind | None:
    """The kind whose micro-kernels do a product, or None where it is for what is compiled for later ones."""
    return _alike(kind) if patience.lasts(f"gemm_*_{tile_of(kind)}*") else None


@functools.cache
def _alike(kind: Kind) -> Kind | None:
    """Whole numbers wrap: those of 4 or of 8 bytes do for all."""
    if kind.chain in ("int32", "int64"):
        return kind_of(*[kind.chain] * 3)
    return kind if kind.group == 1 else None


@functools.cache
def tile_of(kind: Kind) -> Tile:
    return small(kind.a) if kind.a in SIZE else default_tiles(kind).tile(kind)


def _scales(kind: Kind, x) -> bool:
    """Whether there may be factors and something that is added."""
    return kind.planes == 1 and x.dtype.kind != "b"


def _fits(tile: Tile, a, b) -> bool:
    tiles = -(-a.shape[-2] // tile.mr) * -(-b.shape[-1] // tile.nr)
    return a.shape[-1] <= SEGMENT and (len(a) if a.ndim > 2 else 1) * tiles <= MOST


# -- products ---------------------------------------------------------------------------------------------------------


def product(out, x, a, b, beta, alpha, kind: Kind) -> bool:
    """out = alpha * a @ b + beta * x after all checks, x an array or None; False, with nothing done, where this is not
    for it."""
    given, kind = kind, _served(kind)
    if kind is None or not _fits(tile_of(kind), a, b) or not ((x is None and alpha == 1) or _scales(kind, out)):
        return False
    if kind == given:
        return _product(out, x, a, b, beta, alpha, kind)
    words = [None if each is None else each.astype(kind.chain, copy=False) for each in (x, a, b)]
    into = out if out.dtype == kind.chain else np.empty(out.shape, kind.chain)
    done = _product(into, *words, beta, alpha, kind)
    if done and into is not out:
        np.copyto(out, into, casting="unsafe")
    return done


def _product(out, x, a, b, beta, alpha, kind: Kind) -> bool:
    """The same of what is for it but for out's strides."""
    tile, size = tile_of(kind), out.itemsize
    x = x if x is None else np.broadcast_to(x, out.shape)
    if kind.planes == 1 and out.strides[1] != size and out.strides[0] == size:  # chains do not tell a from b
        out, a, b, x = out.T, b.T, a.T, x if x is None else x.T
    if out.strides[1] != size and out.shape[1] > 1:
        return False
    if kind.planes == 1:
        a, b = (each.astype(tile.dtype, copy=False) for each in (a, b))
        b = b if b.strides[1] == tile.itemsize else np.ascontiguousarray(b)
    beta, alpha = wrapped(beta, kind), wrapped(alpha, kind)
    if x is None and alpha != 1:  # beside -0 a number is what it is, whatever its sign
        x, beta = np.broadcast_to(np.full(out.shape[1], -0.0, out.dtype), out.shape), 1
    if x is not None and x.strides[1] != size:
        x = np.ascontiguousarray(x)
    _tiles(tile, out, x, a, b, (alpha, beta) if kind.planes == 1 else (1, 0, 0, 0))
    return True


def _tiles(tile, out, x, a, b, factors) -> None:
    (m, n), k, tiles, called = out.shape, a.shape[1], -(-out.shape[0] // tile.mr), _kind(tile.kind.chain)
    at_c, rsc, _ = _lies(out)
    at_x, rsx, stop = (0, 0, PLAIN) if x is None else (*_lies(x)[:2], REGISTERS)
    for j in range(0, n, tile.nr):
        width = min(tile.nr, n - j)
        columns = b[:, j : j + width]
        columns = columns if tile.kind.planes == 1 else _panel(columns, tile, tile.nr, "b" in tile.kind.conj)
        for t in range(tiles):  # heights differ by one at most
            i, h = m * t // tiles, m * (t + 1) // tiles - m * t // tiles
            rows = a[i : i + h]
            rows = rows if tile.kind.planes == 1 else _panel(rows.T, tile, tile.mr, "a" in tile.kind.conj).T
            c, own = at_c + (i * rsc + j) * out.itemsize, at_x + (i * rsx + j) * out.itemsize
            called(table(tile).supply(place(tile, STRIDED, h, -(-width // tile.lanes))))(
                *_lies(rows), *_lies(columns)[:2], k, c, rsc, c, rsc, width, 0, stop, own, rsx, *factors
            )


def _lies(x) -> tuple[int, int, int]:
    """Address and strides, in elements."""
    return x.ctypes.data, x.strides[0] // x.itemsize, x.strides[1] // x.itemsize


def _panel(x, tile, width: int, conj: bool):
    """k x n complex numbers as the micro-kernel reads them: a row of `width` real parts, and one of imaginary parts."""
    panel = np.zeros((len(x), 2 * width), tile.dtype)
    panel[:, : x.shape[1]] = x.real
    panel[:, width : width + x.shape[1]] = -x.imag if conj else x.imag
    return panel


@functools.cache
def _kind(chain: str):
    """The C function that a micro-kernel is; a complex number is two of its arguments."""
    number = [np.ctypeslib.as_ctypes_type(np.dtype(PLANE.get(chain, chain)))] * (1 + (chain in PLANE))
    kinds = [number if kind == "s" else [ctypes.c_int64] for _, kind in SPEC]
    return ctypes.PYFUNCTYPE(None, *(part for each in kinds for part in each))


# -- sums in chains ---------------------------------------------------------------------------------------------------


def first_sums(a, v, chains: int) -> bool:
    """Whether sums of a matrix, or a vector, and a vector are among the first products, which are counted, and suit."""
    m, k = (1, *a.shape)[-2:]
    return patience() and _summed(a.dtype, m, k, chains)


def _summed(dtype, m: int, k: int, chains: int) -> bool:
    """Whether this is for them, and so few tiles make them. Whole numbers have one sum in any order, NumPy's."""
    name = SIGNLESS.get(dtype.name, dtype.name)
    there = name in SIZE or (ROOMS[chains] == "dot" and dtype.kind in "biu")
    return there and patience.lasts(f"{ROOMS[chains]}_{name}_*") and 0 < m * chains * -(-k // SEGMENT) <= MOST


ROOMS = {8: "mv", 64: "dot"}  # by chains


def sums(a, v, chains: int):
    """a @ v, each sum in so many chains (mv.py, dot.py), which are products of every chains-th column; None where this
    is not for it."""
    (m, k), dtype = a.shape, a.dtype.name
    if a.dtype != v.dtype or not _summed(a.dtype, m, k, chains):
        return None
    if dtype not in SIZE:
        return np.dot(a, v)
    if any(stride % a.itemsize for stride in (*a.strides, *v.strides)):
        return None
    total, kind = None, Kind.plain(dtype)
    for p in range(0, k, SEGMENT):
        part = np.zeros((m, chains), dtype)
        for c in range(min(chains, k - p)):
            steps = slice(p + c, min(p + SEGMENT, k), chains)
            _product(part[:, c : c + 1], None, a[:, steps], v[steps, None], 0, 1, kind)
        with np.errstate(all="ignore"):
            while part.shape[1] > 1:
                half = part.shape[1] // 2
                part = part[:, :half] + part[:, half:]
            total = part[:, 0] if total is None else total + part[:, 0]
    return total
