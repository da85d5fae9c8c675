"""Small products of any kind in one call: the packed path by one thread, all that the arrays do not say made ready."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ...jit.abi import new_arrays
from ...jit.abi.address import invoke, pointer, scratch, static
from ...jit.abi.ndarray import address_of, stride
from ...jit.abi.new_arrays import NONE, answer
from ...jit.compile.cache import entry
from ...jit.compile.lazy import jit
from ...jit.ir.kind import Kind
from ..runtime.arrays import GIL, alike, large, new_matrix
from ..runtime.status import DECLINED, DONE, LACKING, LARGE, UNMADE
from .block import ROOM, SQUARE
from .blocking import Tiles
from .context import cuts, operands, words_at
from .context_setup import started
from .entry import SERIALLY
from .kernels import PANEL_A, PANEL_B, TILE_BYTES, missing, multiplier, single, tile_at
from .kinds import SHALLOW, by_unit, default_tiles, of_depth
from .loops import loops
from .paths import PARALLEL, SERIAL
from .store import ending


@dataclass(frozen=True)
class Plan:
    """A product without its arrays: kind, tiles, factors and the result's dtype, and the words that say so."""

    kind: Kind
    tiles: Tiles
    beta: object
    alpha: object
    dtype: object
    words: tuple


@jit(forceinline=True)
def one_tile(f, b):
    """What the loops do where there is nothing to loop over, 80 ns less; b is where the panel of B goes."""
    own, packs = scratch(TILE_BYTES), pointer(f.packs)
    invoke(packs[PANEL_A], (f.a, f.rsa, f.csa, f.m, f.k, f.room))
    invoke(packs[PANEL_B], (f.b, f.csb, f.rsb, f.n, f.k, b))
    t = tile_at(own)
    t.height, t.width, t.a, t.b, t.words = f.m, f.n, f.room, b, (f.k + f.group - 1) // f.group
    t.rsa, t.csa, t.stop = f.step, f.mr * f.step, ending(f.csc, f.x, f.csx, f.unit)
    t.starts = t.first = t.last = 1
    t.part, t.rsp, t.total, t.rst, t.c, t.x = scratch(SQUARE), f.nr, f.c, f.rsc, f.c, f.x
    if f.brackets != 0:
        invoke(f.brackets, (1,))
    invoke(f.multiply, (own, f.own))
    if f.brackets != 0:
        invoke(f.brackets, (0,))


@functools.cache
def serial():
    """answer(address of a plan's words, out or None, x or None, a, b): out, or made; or DECLINED with nothing written;
    LARGE: sound, but too much for one thread, unless the address has the bit SERIALLY, or for the room; UNMADE and
    LACKING, as entry.py.

    It holds the GIL, so the words and the room are its own.
    """

    def run(words, out, x, a, b):
        given, x, a, b, made = address_of(out), address_of(x), address_of(a), address_of(b), 0
        limit, words = SERIAL if words & SERIALLY != 0 else PARALLEL, words & ~SERIALLY
        f = words_at(words)
        none = pointer(f.numpy)[NONE]
        x = 0 if x == none else x
        if given == none:
            if large(a, b, f.size_c):
                return answer(UNMADE, 0, 0)
            given, made = 0, new_matrix(f.numpy, f.result, a, b)
            if made == 0:
                return answer(DONE, 0, 0)
        out = given + made
        if f.mixed == 0 and not alike(out, x, a, b):
            return answer(DECLINED, given, made)
        status = operands(f, out, x, a, b)
        if status != DONE:
            return answer(status, given, made)
        turned = stride(out, 1) != f.size_c and stride(out, 0) == f.size_c and f.sided != 0
        m, n, k = f.m, f.n, f.k
        if turned or max(m, n, k) > limit or m * n * k > limit or not GIL:
            return answer(LARGE, given, made)
        f.room, alone = static(ROOM), single(f)
        if not alone:
            cuts(f)
            if f.need > ROOM:
                return answer(LARGE, given, made)
        at = missing(f, alone)
        if at >= 0:
            return answer(LACKING + at, given, made)
        if alone:
            one_tile(f, f.room + ROOM // 2)
            return answer(DONE, given, made)
        f.start, f.stop = 0, f.blocks
        invoke(f.loops, (words, 0))
        return answer(DONE, given, made)

    return entry(run, "answer(int64, object, object, object, object)", "gemm_serial")


def planned(kind: Kind, beta, alpha, dtype, mixed: bool):
    """`serial` of a plan; `mixed`: the arrays' dtypes are not alike, and the caller has looked at them."""
    tiles = default_tiles(kind)
    f, factors = started(beta, alpha, tiles, kind, 1)
    f.multiply = multiplier(tiles.tile(kind))
    f.loops, f.mixed = loops(), mixed
    f.numpy, f.result = new_arrays.words().ctypes.data, id(dtype)
    run = functools.partial(serial(), f.own)
    run.serially = functools.partial(serial(), f.own | SERIALLY)
    run.plan = Plan(kind, tiles, beta, alpha, dtype, (f, factors))
    run.larger = functools.cache(functools.partial(_other, run, mixed, by_unit(kind, 1, 1, PARALLEL + 1)))
    chains = of_depth(kind, SHALLOW)
    run.shallow = None if chains is kind else functools.cache(functools.partial(_other, run, mixed, chains))
    return run


def _other(entry, mixed: bool, kind: Kind):
    """The entry for products of another kind: of more than PARALLEL multiply-adds (`larger`), which may go by a matrix
    unit, or of up to SHALLOW steps (`shallow`), which may be chains where deeper ones are not."""
    plan = entry.plan
    return entry if kind is plan.kind else planned(kind, plan.beta, plan.alpha, plan.dtype, mixed)
