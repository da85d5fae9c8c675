"""dot and vdot, in an order of their own: 64 chains where a product has one, which waits for its additions.

k is cut into segments of 4096. Within one chain c takes the steps c, c + 64, c + 128, ... in order, each a fused
multiply-add, from zero; then chain c takes in chain c + h, for h = 32, 16, 8, 4, 2 and 1, and the first is the sum of
the segment. Segments are added in order. So the bits depend on the numbers alone: not on strides, vectors or threads.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy import empty

from ... import background
from ...dtypes import name_of
from ...jit.abi.address import scratch
from ...jit.abi.ndarray import WRITEABLE, address_of, data, descr, dims, flags, layout_is_known, ndim
from ...jit.abi.new_arrays import answer, as_returned, new_strided, words
from ...jit.abi.record import Record
from ...jit.abi.sharing import take_from
from ...jit.abi.workspaces import allocate, free
from ...jit.compile.cache import compiled, entry
from ...jit.compile.lazy import jit
from ...jit.ir.kind import BYTES, SIGNLESS, Kind
from ...jit.ir.tile import Tile
from ...jit.ir.vector import width_bits
from ..gemm import first_products
from ..gemm.blocking import SEGMENT
from ..gemm.checks import size, step
from ..gemm.gemm import accepted, gemm, whole
from ..gemm.kinds import kind_of
from ..gemm.store import finish
from ..runtime.arrays import alike, optional, promoted
from ..runtime.launch import SIZE, available
from ..runtime.status import DECLINED, DONE, LARGE
from .chains import MANY, pair_of
from .jobs import HERE, SHARED, answered, known, run_jobs

DTYPES = {*BYTES, *SIGNLESS}
EACH = 2  # segments of a job: 0.5 us of float32
# Sums of rows: a job is `each` segments, of `parts` in all; where their sums wait; a row's segments and steps; a and b.
DOT = Record("Dot", "next jobs each sums parts segments k a ra sa b rb sb tasks")
dot_at, NEXT, HEAD, TASKS = DOT.pointer(), DOT["next"], DOT.bytes, 8 * DOT["tasks"]


@functools.cache
def tile_of(dtype: str, conj: str = "") -> Tile:
    """A vector of chains for a dtype, each of single elements: those of whole numbers have one sum in any order."""
    kind = kind_of(dtype, dtype, dtype, conj, "chain")
    if kind.group > 1:
        dtype = SIGNLESS.get(dtype, dtype)
        kind = Kind(dtype, dtype, "int32", dtype, "mul")
    return Tile(kind.word, 1, 1, width_bits() // 8 // BYTES[kind.word], kind)


@jit(forceinline=True)
def _part(tile, s, k, a, sa, b, sb, total):
    """The sum of segment s."""
    start = s * SEGMENT
    a, b = a + start * sa * tile.size_a, b + start * sb * tile.size_b
    pair_of(tile, min(SEGMENT, k - start), a, sa, b, sb, total)


@jit(forceinline=True)
def inner(tile, k, a, sa, b, sb, out, unit):
    """out = the sum of k steps, by one thread."""
    last, total, part = (k - 1) // SEGMENT, scratch(64), scratch(64)
    for s in range(last + 1):
        _part(tile, s, k, a, sa, b, sb, part)
        finish(tile, (1, 1), (part, 0), (total, 0), s == 0, s == last, (out, 0, 0), (0, 0, 0), unit, unit)


@functools.cache
def _work(tile) -> int:
    """The jobs of one thread: void(address of the words, task)."""

    def work(f, task):
        job = take_from(f, NEXT, task % 2)
        while job >= 0:
            for part in range(job * f.each, min((job + 1) * f.each, f.parts)):
                r = part // f.segments if f.segments > 1 else part  # a division takes as long as a short sum
                s = part - r * f.segments
                a, b = f.a + r * f.ra, f.b + r * f.rb
                _part(tile, s, f.k, a, f.sa, b, f.sb, f.sums + part * tile.size_t)
            job = take_from(f, NEXT, task % 2)

    return compiled(work, DOT.kernel, f"dot_work_{tile}")


@jit(forceinline=True)
def _sum(tile, table, out, a, b, many, unit):
    """DONE; DECLINED, with nothing written; or LARGE where it wants to be let launch. Of matrices, which are taken
    where `many` says so, the sums of their rows, into a new out."""
    if not alike(out, 0, a, b) or ndim(out) != many or ndim(a) != many + 1 or ndim(b) != many + 1:
        return DECLINED
    k, rows, sa, ra, sb, rb, width = size(a, 0), size(a, 1), step(a, 0), step(a, 1), step(b, 0), step(b, 1), tile.size_a
    if size(b, 0) != k or size(b, 1) != rows or k * rows == 0 or flags(out) & WRITEABLE == 0:
        return DECLINED
    if (sa | ra | sb | rb) & (width - 1) != 0:
        return DECLINED
    segments, words, sums, total = (k + SEGMENT - 1) // SEGMENT, scratch(HEAD), scratch(HERE), scratch(64)
    workers, parts = available(table) if 2 * rows * k * width > SHARED else 1, rows * segments
    if workers == 0:
        return LARGE
    own = allocate(parts * tile.size_t) if parts * tile.size_t > HERE else 0
    sums = own if own != 0 else sums
    f, each = dot_at(words), EACH if rows == 1 else EACH * SEGMENT // min(k, SEGMENT)
    f.next, f.each, f.sums, f.parts, f.segments = 0, each, sums, parts, segments
    f.jobs = 1 if parts <= each else (parts + each - 1) // each
    f.k, f.a, f.ra, f.sa, f.b, f.rb, f.sb = k, data(a), ra, sa // width, data(b), rb, sb // width
    run_jobs(table, words, f.jobs, workers, TASKS)
    for r in range(rows):
        for s in range(segments):
            part, last, c = (sums + (r * segments + s) * tile.size_t, 0), s == segments - 1, data(out) + r * tile.size_c
            finish(tile, (1, 1), part, (total, 0), s == 0, last, (c, 0, 0), (0, 0, 0), unit, unit)
    if own != 0:
        free(own)
    return DONE


@functools.cache
def _entry(tile):
    """The call from Python: answer(address of made.words(), out or None, a, b, whether of matrices): out, or a number;
    else what `_sum` answers. Before made.words() is a table as gemv's."""
    element = getattr(np, tile.kind.chain)

    def run(numpy, out, a, b, many):
        given, a, b, made = optional(numpy, out), address_of(a), address_of(b), 0
        if given == 0:
            made = new_strided(numpy, descr(a), many, dims(a), 0, 0, 0) if ndim(a) == many + 1 else 0
            if made == 0:
                return answer(DONE if ndim(a) == many + 1 else DECLINED, 0, 0)
        status = _sum(tile, numpy - SIZE, given + made, a, b, many, element(1))
        number = made != 0 and status == DONE and many == 0
        return answer(status, given, as_returned(numpy, made) if number else made)

    return entry(run, "answer(int64, object, object, object, int64)", f"dot_{tile}")


@functools.cache
def native(dtype: str, conj: str = "") -> int:
    """The sum by one thread, of what addresses say: void(k, a, sa, b, sb, out), k at least 1, strides in elements."""
    tile = tile_of(dtype, conj)
    element = getattr(np, tile.kind.chain)

    def sums(k, a, sa, b, sb, out):
        inner(tile, k, a, sa, b, sb, out, element(1))

    return compiled(sums, f"void({', '.join(['int64'] * 6)})", f"dot_native_{tile}")


# The factor that is conjugated -> dtype -> the entry, as jobs.known has it.
_entries = {"": {}, "a": {}, "b": {}, "ab": {}}


def _found(dtype, conj: str):
    """The entry for a dtype, compiled or loaded at its first use; else None."""
    if dtype not in _entries[conj] and name_of(dtype) in DTYPES and layout_is_known():
        tile = tile_of(name_of(dtype), conj if dtype.kind == "c" else "")
        return background.kept(_entries[conj], dtype, known(_entry(tile), _work(tile), words()))
    return _entries[conj].get(dtype)


def _general(out, a, b, conj: str, mode=None) -> None:
    """A mode and a wider out have the order of the product."""
    if mode is None and out.dtype == a.dtype and (sums := first_products.sums(a[None], b, MANY)) is not None:
        out[...] = sums[0]
        return
    found = _found(a.dtype, conj) if a.size and mode is None and out.dtype == a.dtype else None
    if found is None:
        gemm(out.reshape(1, 1), None, a[None], b[:, None], 0, 1, conj=conj, mode=mode)
        return
    arrays = whole(out), whole(a), whole(b)
    if (status := answered(found, *arrays, 0)) is not arrays[0]:
        accepted(status, out, a, b)


def dot(out, self, tensor, out_dtype=None, mode=None, conj=None) -> None:
    """out = the sum over i of self[i] * tensor[i]; vectors of two dtypes are converted to out's before."""
    if out_dtype is None and self.dtype != tensor.dtype:
        self, tensor = (x.astype(out.dtype, copy=False) for x in (self, tensor))
    _general(out, self, tensor, conj or "", mode)


def vdot(out, self, other, out_dtype=None, mode=None) -> None:
    """out = the sum over i of conj(self[i]) * other[i]."""
    _general(out, self, other, "a" if self.dtype.kind == "c" else "", mode)


def dot_fast(self, tensor, out, conj="", ndarray=np.ndarray):
    """dot of plain arrays in few calls; None, with nothing written, where more care is needed."""
    found = _entries[conj].get(self.dtype)
    if found is None and self.dtype == tensor.dtype:
        if self.ndim == 1 and first_products.first_sums(self, tensor, MANY):
            return None
        found = _found(self.dtype, conj)
    if found is None or not (out is None or type(out) is ndarray):
        return _mixed(self, tensor, out, conj)
    status = found[0](found[1], out, self, tensor, 0)
    if type(status) is not int:
        return status
    status = answered(found, out, self, tensor, 0) if status == LARGE else DECLINED
    return _mixed(self, tensor, out, conj) if type(status) is int else status


def rows(a, b, conj=""):
    """The sums over i of a[r, i] * b[r, i], each dot's, or vdot's for conj="a", of matrices alike and not empty."""
    if (found := _entries[conj].get(a.dtype)) is None and not first_products.first_sums(a, b[0], MANY):
        found = _found(a.dtype, conj)
    status = answered(found, None, a, b, 1) if found else DECLINED
    if type(status) is int and found:
        status = answered(found, None, whole(a), whole(b), 1)
    if type(status) is np.ndarray:
        return status
    made = empty(len(a), a.dtype)
    for r in range(len(a)):
        _general(made[r : r + 1].reshape(()), a[r], b[r], conj)
    return made


def _mixed(self, tensor, out, conj):
    """dot of arrays of two dtypes, likewise; vdot takes none."""
    found = promoted(self, tensor) if conj == "" and self.dtype != tensor.dtype else None
    return dot_fast(*found, out) if found else None


def vdot_fast(self, other, out):
    """vdot, likewise."""
    return dot_fast(self, other, out, "a")
