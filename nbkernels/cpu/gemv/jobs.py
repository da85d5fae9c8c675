"""y = alpha * A @ v + beta * x in jobs, for gemv.py and mv.py; calls with threads or a room, for dot.py as well.

A job is a segment of k and a block of outputs; it leaves its sums in the segment's plane. Planes are added in order, so
that y has the bits of every other path.
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.abi.address import invoke, peek, poke, scratch
from ...jit.abi.record import address
from ...jit.abi.sharing import take_from
from ...jit.abi.workspaces import acquire, allocate, free, release
from ...jit.compile.cache import compiled
from ...jit.compile.lazy import jit
from ..gemm.blocking import SEGMENT
from ..gemm.context import NEXT, TASKS, WORDS, sub, up
from ..gemm.store import finish
from ..runtime import threads
from ..runtime.launch import SIZE, TABLE, available, launch_table, table_at
from ..runtime.machine import l2
from ..runtime.status import DONE, LARGE
from .axpyf import columns
from .chains import WIDE
from .dotxf import few, rows_of

FAR = 32 << 20  # bytes of A from which the next lines of its rows are prefetched: 3000x3000 f32 0.89 ms for 1.36
SHARED = 3 << 17  # bytes of A, or of dot's two vectors, from which threads share the work: 6 us of it
ROWS_SHARED = 1 << 17  # bytes of a row-major A from which they do: 256x256 f32 by one thread 9.1 us, by two 6.3
PIECE = 1 << 16  # bytes of A of a job of rows: 10,000 x 64 f32 by two threads takes 25 us, with 16 KiB 27
RUN = 16384  # bytes of a column of a job at least: 3000 x 3000 f32 by two threads takes 930 us, with 2 KiB 1230

BY_ROWS, BY_COLUMNS, BY_SEGMENTS = 0, 1, 2  # how jobs read the matrix (PACK)
HERE = 8 * 2048  # bytes of stack for sums
KEPT = 16 * SEGMENT  # bytes for a v that is not contiguous


# -- jobs --------------------------------------------------------------------------------------------------------------


@jit(forceinline=True)
def _share(form, m, k, size, workers):
    """Outputs of a job: WIDE columns at most, and some jobs for each thread where there are several, which take them
    in turn: whoever has begun late or is slower does less. Rows by 48, or, where jobs are few, by 24 or 16, which
    dotxf.py takes at once: 64 x 10000 of float32 by two threads takes 29 us, by 48 34."""
    if form == BY_COLUMNS:
        if workers == 1:
            return min(WIDE, m)
        part, most = up((m + 4 * workers - 1) // (4 * workers), 64), up((m + workers - 1) // workers, 64)
        each = min(WIDE, max(min(RUN // size, most), part))
        # As many for each thread: 10000 outputs of 64 steps f32 28 -> 25 us, f64 53 -> 47, mv 36 -> 32, 65 -> 56.
        jobs = up((m + each - 1) // each, workers)
        return min(each, up((m + jobs - 1) // jobs, 64))
    few_jobs = m * ((k + SEGMENT - 1) // SEGMENT) < 48 * 4 * workers
    least = (24 if size == 4 else 16) if few_jobs else 48
    return m if workers == 1 else max(least, PIECE // (min(k, SEGMENT) * size) // 48 * 48)


@jit(forceinline=True)
def copied(tile, k, source, step, target):
    """k numbers, `step` apart, to where they touch."""
    for p in range(k):
        poke(tile, target + p * tile.size_t, peek(tile, source + p * step * tile.size_t))


@jit(forceinline=True)
def sums_of(tile, h, matrix, vector, k, t, held):
    """t[i] = the sum of a[i, p] * v[p] over the k steps of a segment, for i < h, a chain each; `held`: bytes of the
    matrix."""
    (a, rsa, csa), (v, sv, _) = matrix, vector
    if csa != 1 or (rsa == 1 and h > 1):
        columns(tile, h, a, csa, v, sv, k, t, 0)
        return
    room = acquire(KEPT) if sv != 1 else 0
    if room != 0:
        copied(tile, k, v, sv, room)
        v = room
    rows_of(tile, h, a, rsa, v, k, t, held <= l2(), held > FAR)
    if room != 0:
        release(KEPT, room)


@jit(forceinline=True)
def _end(tile, f, i, h):
    """y = fma(beta, x, alpha * (the planes, added in order)), of h outputs from the i-th on."""
    if f.room == f.c:  # sums are results
        return
    size, last, sums = tile.itemsize, (f.k - 1) // SEGMENT, f.room + i * tile.itemsize
    alpha, beta = peek(tile, f.scalars), peek(tile, f.scalars + size)
    c, x = sub((f.c, f.rsc, 0), i, 0, size), sub((f.x, f.rsx, 0), i, 0, size)
    for s in range(last + 1):
        finish(tile, (h, 1), (sums + s * f.m * size, 1), (sums, 1), s == 0, s == last, c, x, alpha, beta)


@functools.cache
def work(tile, sums, name: str) -> int:
    """The jobs of one thread: void(a product's words, task). BLOCK outputs are a job, BLOCKS jobs a segment, whose sums
    are a plane of the ROOM. `sums(tile, f, i, h, k, a, v, t)` leaves those of h outputs from the i-th on, over k steps,
    at t."""

    def run(f, task):
        size, job = tile.itemsize, take_from(f, NEXT, task % 2)
        while job >= 0:
            s, i = job // f.blocks, job % f.blocks * f.block
            start, h = s * SEGMENT, min(f.block, f.m - i)
            a, v = f.a + (i * f.rsa + start * f.csa) * tile.size_a, f.b + start * f.rsb * size
            sums(tile, f, i, h, min(SEGMENT, f.k - start), a, v, f.room + (s * f.m + i) * size)
            if f.k <= SEGMENT:
                _end(tile, f, i, h)
            job = take_from(f, NEXT, task % 2)

    return compiled(run, WORDS.kernel, f"{name}_work_{tile}")


# -- calls -------------------------------------------------------------------------------------------------------------


@jit(forceinline=True)
def run_jobs(table, words, jobs, workers, tasks):
    """All jobs of the words at an address, by the table's kernel; `tasks` bytes on is room for a number."""
    t = table_at(table)
    if workers > 1 and jobs > 1:
        threads.shared(t.launch, t.kernel, words, words + tasks)
    else:
        invoke(t.kernel, (words, 0))


@jit(forceinline=True)
def product(tile, table, f, form, alpha, beta):
    """The product of the matrix A and the vector B that f tells: DONE; or LARGE, with nothing done, where it wants to
    be let launch."""
    size, m, k = tile.itemsize, f.m, f.k
    segments = (k + SEGMENT - 1) // SEGMENT
    direct = segments == 1 and f.rsc == 1 and f.x == 0 and alpha == 1  # sums are results
    workers = available(table) if m * k * tile.size_a > (ROWS_SHARED if form == BY_ROWS else SHARED) else 1
    if workers == 0:
        return LARGE
    outputs = segments if form == BY_SEGMENTS else m
    each = few(tile) if form == BY_SEGMENTS else _share(form, m, k, size, workers)
    blocks, here, room = (outputs + each - 1) // each, scratch(HERE), 0 if direct else segments * m * size
    own, factors = allocate(room) if room > HERE else 0, scratch(16)
    f.next, f.pack, f.block, f.blocks, f.scalars = 0, form, each, blocks, factors
    f.jobs = blocks if form == BY_SEGMENTS else blocks * segments
    f.room, f.rsb = f.c if direct else own if own != 0 else here, f.rsb if k > 1 else 1
    poke(tile, factors, alpha)
    poke(tile, factors + size, beta)
    run_jobs(table, address(f), f.jobs, workers, TASKS)
    if segments > 1:
        _end(tile, f, 0, m)
    if own != 0:
        free(own)
    return DONE


def known(run, kernel: int, *words):
    """An entry, the address that it goes by, and what is there: a table of its launches, and these words behind it."""
    table = np.concatenate([launch_table(kernel), *words])
    return run, table.ctypes.data + SIZE, table


def answered(entry, *arguments):
    """Call an entry, and again after LARGE: with launches allowed or, where they cannot be, with one thread."""
    run, address, table = entry
    status = run(address, *arguments)
    if type(status) is int and status == LARGE:
        table[TABLE["workers"]] = not threads.open_up()
        status = run(address, *arguments)
    return status
