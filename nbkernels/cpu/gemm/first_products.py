"""The first products: micro-kernels, called tile by tile from Python.

Nothing else is compiled for them, 0.03 to 0.1 s for each height and width of a tile, where the compiled paths take 2 s;
a tile takes 13 us. B is read in place where its rows are contiguous, else copied, and so are operands of another
dtype than the micro-kernel's words; C that is stored by columns is C' = B' A'. Parts of complex numbers are panels of
their own. The bits are those of every path.
"""

from __future__ import annotations

import ctypes
import functools
from itertools import pairwise

import numpy as np

from ...dtypes import asked, name_of
from ...jit.compile.python_first import Patience
from ...jit.ir.emit import items
from ...jit.ir.kind import BYTES, PLANE, SIGNLESS, Kind, wrapped
from ...jit.ir.tile import Tile
from ...jit.ir.vector import SIZE
from .blocking import SEGMENT, small
from .kinds import default_tiles, kind_of
from .microkernel import APART, ARGUMENTS, STRIDED, place, table
from .store import PLAIN, REGISTERS

DTYPES = {*BYTES, *SIGNLESS}
MOST = 1 << 17  # tiles of a product, or of a stack of them

_products: dict[Kind, Patience] = {}  # of each kind whose micro-kernels make products
_over: set = set()  # operands' dtypes, and the result's, of which no call is a first one any more


# -- which are for it -------------------------------------------------------------------------------------------------


def first(a, b, plain: bool = True, out_dtype=None) -> bool:
    """Whether a product of arrays, or of stacks of them, suits and is one of the first, which are counted. `plain`:
    nothing is added, and alpha is 1; `out_dtype`: the result's, if it is not theirs."""
    dtypes = a.dtype, b.dtype, out_dtype
    if dtypes in _over or not (kind := _suits(a, b, plain, out_dtype)):
        return False
    patience = _products.setdefault(kind, Patience())
    if patience(_tiles_of(kind, a, b) > MOST // 16):
        return suits(a, b, plain, out_dtype)
    if not patience.waits:
        _over.add(dtypes)
    return False


def suits(a, b, plain: bool = True, out_dtype=None) -> bool:
    """Whether a product suits these micro-kernels, while the first products of its kind last."""
    return _suits(a, b, plain, out_dtype, _served) is not None


def _suits(a, b, plain, out_dtype, served=None) -> Kind | None:
    """The kind whose micro-kernels may do it."""
    if not 2 <= a.ndim == b.ndim:
        return None
    first, second = name_of(a.dtype), name_of(b.dtype)
    wanted = first if out_dtype is None else asked(out_dtype)
    alike = a.dtype == b.dtype or (wanted == "int32" and {first, second} == {"int8", "uint8"})
    if not alike or not {wanted, first} <= DTYPES:
        return None
    kind = (served or _alike)(kind_of(first, second, wanted))
    return kind if kind is not None and _fits(kind, a, b, plain) else None


def _served(kind: Kind) -> Kind | None:
    """The kind whose micro-kernels do a product, or None where it is for what is compiled for later ones."""
    alike = _alike(kind)
    lasts = alike and _products.setdefault(alike, Patience()).lasts(f"gemm_*_{tile_of(kind)}*")
    return alike if lasts else None


@functools.cache
def _alike(kind: Kind) -> Kind | None:
    """Whole numbers wrap: those of 4 or of 8 bytes do for all."""
    if kind.chain in ("int32", "int64"):
        return kind_of(*[kind.chain] * 3)
    return kind if kind.group == 1 else None


@functools.cache
def tile_of(kind: Kind) -> Tile:
    return small(kind.a) if kind.a in SIZE else default_tiles(kind).tile(kind)


def _fits(kind: Kind, a, b, plain: bool) -> bool:
    """Whether sums of segments, which NumPy adds, are the result, and its numbers are real where there are factors."""
    sums = a.shape[-1] <= SEGMENT or (plain and a.ndim == 2 and kind.chain == kind.out)
    scales = plain or (kind.planes == 1 and a.dtype.kind != "b")
    return sums and scales and _tiles_of(kind, a, b) <= MOST


def _tiles_of(kind: Kind, a, b) -> int:
    """How many calls of micro-kernels make it."""
    tile, segments = tile_of(kind), -(-a.shape[-1] // SEGMENT)
    tiles = -(-a.shape[-2] // tile.mr) * -(-b.shape[-1] // tile.nr)
    return (len(a) if a.ndim > 2 else 1) * tiles * segments


# -- products ---------------------------------------------------------------------------------------------------------


def product(out, x, a, b, beta, alpha, kind: Kind) -> bool:
    """out = alpha * a @ b + beta * x after all checks, x an array or None; False, with nothing done, where this is not
    for it."""
    given, kind = kind, _served(kind)
    plain = x is None and alpha == 1
    if kind is None or not _fits(kind, a, b, plain):
        return False
    if kind == given:
        return _segments(out, x, a, b, beta, alpha, kind)
    words = [None if each is None else each.astype(kind.chain, copy=False) for each in (x, a, b)]
    into = out if out.dtype == kind.chain else np.empty(out.shape, kind.chain)
    done = _segments(into, *words, beta, alpha, kind)
    if done and into is not out:
        np.copyto(out, into, casting="unsafe")
    return done


def _segments(out, x, a, b, beta, alpha, kind: Kind) -> bool:
    """Add up a product's segments of k in out; return False, with nothing done, where out's strides do not allow it."""
    done = _product(out, x, a[:, :SEGMENT], b[:SEGMENT], beta, alpha, kind)
    for p in range(SEGMENT, a.shape[1] if done else 0, SEGMENT):
        part = np.empty(out.shape, out.dtype)
        _product(part, None, a[:, p : p + SEGMENT], b[p : p + SEGMENT], 0, 1, kind)
        with np.errstate(all="ignore"):
            np.add(out, part, out)
    return done


def _product(out, x, a, b, beta, alpha, kind: Kind) -> bool:
    """Compute a product of one segment of k; return False, with nothing done, where out's strides do not allow it."""
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
    (m, n), k, kind = out.shape, a.shape[1], tile.kind
    least = -(-m // tile.mr)
    tiles = next((tiles for tiles in range(least, least * 3 // 2 + 1) if m % tiles == 0), least)  # of one height
    heights = list(pairwise(m * t // tiles for t in range(tiles + 1)))  # that differ by one at most
    widths = [(j, min(tile.nr, n - j)) for j in range(0, n, tile.nr)]
    rows, columns = [a[i:end] for i, end in heights], [b[:, j : j + width] for j, width in widths]
    if kind.planes > 1:
        rows = [_panel(each.T, tile, tile.mr, "a" in kind.conj).T for each in rows]
        columns = [_panel(each, tile, tile.nr, "b" in kind.conj) for each in columns]
    kernels = {
        (h, width): _kind(kind.chain)(table(tile).supply(place(tile, STRIDED, h, -(-width // tile.lanes))))
        for h in {end - i for i, end in heights}
        for width in {width for _, width in widths}
    }
    at_c, rsc, _ = _lies(out)
    at_x, rsx, stop = (0, 0, PLAIN) if x is None else (*_lies(x)[:2], REGISTERS)
    pieces = [(i, end - i, _lies(row)) for (i, end), row in zip(heights, rows)]
    for (j, width), column in zip(widths, columns):
        (at_b, rsb, _), ahead = _lies(column), APART * column.strides[0]
        for i, h, row in pieces:
            c, own = at_c + (i * rsc + j) * out.itemsize, at_x + (i * rsx + j) * out.itemsize
            kernels[h, width](*row, at_b, rsb, k, c, rsc, c, rsc, width, 0, stop, own, rsx, *factors, ahead)


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
    kinds = [number if kind == "s" else [ctypes.c_int64] for _, kind in items(ARGUMENTS)]
    return ctypes.PYFUNCTYPE(None, *(part for each in kinds for part in each))


# -- sums in chains ---------------------------------------------------------------------------------------------------


def first_sums(a, v, chains: int) -> bool:
    """Whether sums of a matrix, or a vector, and a vector are among the first products, which are counted, and suit."""
    m, k = (1, *a.shape)[-2:]
    given = a.dtype, m, k, chains
    return _few(*given) and _patiences[chains]() and _summed(*given)


def _few(dtype, m: int, k: int, chains: int) -> bool:
    """Whether this is for them, and so few tiles make them. Whole numbers have one sum in any order, NumPy's."""
    there = dtype in FLOATS or (ROOMS[chains] == "dot" and dtype.kind in "biu")
    return there and 0 < m * chains * -(-k // SEGMENT) <= MOST


def _summed(dtype, m: int, k: int, chains: int) -> bool:
    """Whether `_few` allows these sums, and they are still among the first products."""
    code = f"{ROOMS[chains]}_{SIGNLESS.get(name_of(dtype), name_of(dtype))}_*"
    return _few(dtype, m, k, chains) and _patiences[chains].lasts(code)


ROOMS = {8: "mv", 64: "dot"}  # by chains
FLOATS = frozenset(map(np.dtype, SIZE))  # in the machine's byte order
_patiences = {chains: Patience() for chains in ROOMS}


def sums(a, v, chains: int):
    """a @ v, each sum in so many chains (mv.py, dot.py), which are products of every chains-th column; None where this
    is not for it."""
    (m, k), dtype = a.shape, name_of(a.dtype)
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
