"""Products with one row or one column: y = alpha * A @ v + beta * x, m outputs over k steps.

A job is a segment of k and a block of outputs; it leaves its chains, by rows, columns or segments as dotxf.py tells,
in the segment's plane. Planes are added in order, so that y has the bits of every other path.
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.address import call, fma, invoke, peek, poke, scratch, take_from
from ...jit.cache import both, compiled, entry, jit
from ...jit.ndarray import data, descr, ndim, shape, stride
from ...jit.record import Record, address
from ..gemm.blocking import SEGMENT, small, vector_registers
from ..gemm.context import room, up
from ..runtime import threads
from ..runtime.launch import launch_table, launchable, table_at
from ..runtime.machine import l2
from ..runtime.status import DECLINED, DONE, LARGE
from .axpyf import columns
from .dotxf import few, is_near, one, rows_of, segments_of

WIDE = 4096  # outputs of a job of columns at most: their chains stay in L1
# Bytes of A from which what comes next is asked for: of 3000x3000 f32 columns take 0.93 ms for 1.50, rows 0.89 for
# 1.36; of 1000x1000, which L3 holds, they would take 70 us for 56, and 145 for 108.
FAR = 32 << 20
# With 16 registers no column gains by that (Zen 3, 2026-11, of the best peer's speed, asked for and not: of 3000x3000
# f32 .98, 1.04, f64 .84, 1.01, mv by rows .96 and 1.01, by columns .58 and .76).
AHEAD = vector_registers() == 32
KEPT = 8 * SEGMENT  # bytes of stack for a strided v
SHARED = 3 << 17  # bytes of A from which threads share the work: 6 us of it
# Of a matrix by rows with 16 registers, of which that is more (Zen 3, 2026-11, two threads, us, from 384 KiB on and so:
# 256x256 f32 9.1 and 6.3, mv 6.5 and 5.1, 150x150 f64 6.0 and 4.7; by columns 256x256 f32 4.6 and 5.4, mv 5.1 and 6.9).
ROWS_SHARED = SHARED if vector_registers() == 32 else 1 << 17
PIECE = 1 << 16  # bytes of A of a job of rows: 10,000 x 64 f32 by two threads takes 25 us, with 16 KiB 27
# Bytes of a column of a job at least: 1000 x 1000 f32 by two threads takes 33 us, with 1 KiB 37. With 16 registers each
# thread has its half of them (Zen 3, 2026-11, two threads, 3000 x 3000, 2 KiB and so: f32 1230 and 930 us, f64 2680 and
# 2300, mv f32 1420 and 990, f64 3000 and 2250; 1000 x 1000 mv f64 133 and 109, the rest the same).
RUN = 2048 if vector_registers() == 32 else 16384

BY_ROWS, BY_COLUMNS, BY_SEGMENTS = 0, 1, 2
# What a product with one row or column is: the jobs; the matrix, m outputs by k; the vector; where the chains of each
# segment wait, the outputs of a job and the jobs of a segment; what becomes of the sums.
VECTOR = Record("Vector", "next jobs form m k a rsa csa v sv planes each blocks c rsc x rsx alpha beta tasks")
vector_at, NEXT = VECTOR.pointer(), VECTOR["next"]
HEAD, HERE = VECTOR.bytes, 8 * 2048  # bytes of stack for the words and for chains
ALPHA, BETA, TASKS = (8 * VECTOR[name] for name in ("alpha", "beta", "tasks"))


@jit(forceinline=True)
def share(form, m, k, size, workers, wide):
    """Outputs of a job: `wide` columns at most, and some jobs for each thread where there are several, which take them
    in turn: whoever has begun late or is slower does less. Rows by 48, or, where jobs are few, by 24 or 16, which
    dotxf.py takes at once: 64 x 10000 of float32 by two threads takes 29 us, by 48 34."""
    if form == BY_COLUMNS:
        if workers == 1:
            return min(wide, m)
        part, most = up((m + 4 * workers - 1) // (4 * workers), 64), up((m + workers - 1) // workers, 64)
        each = min(wide, max(min(RUN // size, most), part))
        # As many for each thread: 10000 outputs of 64 steps f32 28 -> 25 us, f64 53 -> 47, mv 36 -> 32, 65 -> 56.
        jobs = up((m + each - 1) // each, workers)
        return min(each, up((m + jobs - 1) // jobs, 64))
    few_jobs = m * ((k + SEGMENT - 1) // SEGMENT) < 48 * 4 * workers
    least = (24 if size == 4 else 16) if few_jobs else 48
    return m if workers == 1 else max(least, PIECE // (min(k, SEGMENT) * size) // 48 * 48)


@jit(forceinline=True)
def run_jobs(table, words, jobs, workers, tasks):
    """All jobs of the words at an address, by the table's kernel; `tasks` bytes on is room for a number."""
    t = table_at(table)
    if workers > 1 and jobs > 1:
        invoke(threads.pool_at(t.launch).share, (t.launch, t.kernel, words, words + tasks))
    else:
        call(t.kernel, words, 0)


@jit(forceinline=True)
def _job(tile, f, job, cache):
    """The chains of one block of outputs over one segment of k."""
    size, m, form = tile.itemsize, f.m, f.form
    segment, i = job // f.blocks, job % f.blocks * f.each
    start, rsa, csa, sv = segment * SEGMENT, f.rsa, f.csa, f.sv
    k = min(SEGMENT, f.k - start)
    a, v = f.a + (i * rsa + start * csa) * size, f.v + start * sv * size
    t, h = f.planes + (segment * m + i) * size, min(f.each, m - i)
    if sv != 1 and m > 1 and form == BY_ROWS:
        kept = scratch(KEPT)
        for p in range(k):
            poke(tile, kept + p * size, peek(tile, v + p * sv * size))
        v = kept
    far = m * f.k * size > FAR
    if form == BY_COLUMNS:
        columns(tile, h, a, csa, v, sv, k, t, 0, far and AHEAD)
    elif m == 1 and form == BY_ROWS:
        poke(tile, t, one(tile, a, csa, v, sv, k))
    elif form == BY_SEGMENTS:  # m is 1, and an output is a segment
        start = i * SEGMENT
        a, v, t = f.a + start * size, f.v + start * size, f.planes + i * size
        whole = min(f.each, (f.k - start) // SEGMENT)
        if whole > 0:
            segments_of(tile, whole, a, v, SEGMENT, t)
        left = f.k - start - whole * SEGMENT
        if whole < f.each and left > 0:
            done = whole * SEGMENT * size
            poke(tile, t + whole * size, one(tile, a + done, 1, v + done, 1, left))
    else:
        rows_of(tile, h, a, rsa, v, k, t, is_near(tile, m * f.k * size, cache, rsa, k), far)


@jit(forceinline=True)
def end(tile, f, i, h):
    """y = fma(beta, x, alpha * (the planes, added in order)), of h outputs from the i-th on."""
    size, m = tile.itemsize, f.m
    planes, segments = f.planes, (f.k + SEGMENT - 1) // SEGMENT
    if planes == f.c:
        return
    alpha, beta, c, x = peek(tile, address(f) + ALPHA), peek(tile, address(f) + BETA), f.c, f.x
    rsc, rsx = f.rsc, f.rsx
    for r in range(i, i + h):
        value = peek(tile, planes + r * size)
        for s in range(1, segments):
            value = value + peek(tile, planes + (s * m + r) * size)
        value = alpha * value
        if x != 0:
            value = fma(beta, peek(tile, x + r * rsx * size), value)
        poke(tile, c + r * rsc * size, value)


@functools.cache
def _work(dtype: str) -> int:
    """The jobs of one thread."""
    tile = small(dtype)

    def work(f, task):
        job = take_from(f, NEXT, task % 2)
        while job >= 0:
            _job(tile, f, job, l2())
            job = take_from(f, NEXT, task % 2)

    return compiled(work, VECTOR.kernel, f"gemv_work_{tile}")


@functools.cache
def ending(tile):
    """`end`, of all outputs, from Python: void(address of the words)."""

    def run(words):
        f = vector_at(words)
        end(tile, f, 0, f.m)

    return entry(run, "void(int64)", f"gemv_end_{tile}")


@functools.cache
def _entry(dtype: str):
    """int64(table, ids of out, of x or 0, of a and b, beta, alpha), after all checks, from Python, and its address:
    plans the jobs and does them, by all threads where that gains.

    DECLINED where A is contiguous along neither side. LARGE: a room is wanted, of WORDS and a number for each output
    and segment, or to be let launch; or, where the table has a room, this is planned, for the caller to launch.
    """
    tile = small(dtype)
    size, element = tile.itemsize, getattr(np, dtype)

    def run(table, out, x, a, b, beta, alpha):
        words, workers = table_at(table).room, table_at(table).workers
        planes, head, here = words + HEAD, scratch(HEAD), scratch(HERE)
        m, n, k = shape(out, 0), shape(out, 1), shape(a, 1)
        turned = m == 1 and n > 1  # y' = b' a'
        mat, vec, along, down = (b, a, 1, 0) if turned else (a, b, 0, 1)
        m, rsa, csa, sv = n if turned else m, stride(mat, along), stride(mat, down), stride(vec, down if turned else 0)
        rsc, rsx, px = stride(out, along), 0, 0
        if turned:
            sv = stride(vec, 1)
        if x != 0 and beta != 0:
            side = ndim(x) - 2 + along
            rsx, px = stride(x, side) if side >= 0 and shape(x, side) > 1 else 0, data(x)
        if (rsa | csa | sv | rsc | rsx) & (size - 1) != 0 or descr(a) != descr(b):
            return DECLINED
        rsa, csa, sv = rsa // size, csa // size, sv // size
        segments = (k + SEGMENT - 1) // SEGMENT
        form = (
            BY_SEGMENTS
            if m == 1 and segments > 1 and csa == 1 and sv == 1
            else BY_COLUMNS
            if rsa == 1 and m > 1
            else BY_ROWS
        )
        if form == BY_ROWS and csa != 1 and m > 1:
            return DECLINED
        direct = segments == 1 and rsc == size and px == 0 and alpha == 1  # chains are results
        own = words == 0
        if own:
            workers = launchable(table) if m * k * size > (ROWS_SHARED if form == BY_ROWS else SHARED) else 1
            if workers == 0 or (not direct and segments * m * size > HERE):
                return LARGE
            words, planes = head, here
        if direct:
            planes = data(out)
        each = few(tile) if form == BY_SEGMENTS else share(form, m, k, size, workers, WIDE)
        blocks = ((segments if form == BY_SEGMENTS else m) + each - 1) // each
        jobs = blocks if form == BY_SEGMENTS else blocks * segments
        f = vector_at(words)
        f.next = 0
        f.form = form
        f.m = m
        f.k = k
        f.a = data(mat)
        f.rsa = rsa
        f.csa = csa
        f.v = data(vec)
        f.sv = sv
        f.planes = planes
        f.each = each
        f.blocks = blocks
        f.jobs = jobs
        f.c = data(out)
        f.rsc = rsc // size
        f.x = px
        f.rsx = rsx // size
        poke(tile, words + ALPHA, element(alpha))
        poke(tile, words + BETA, element(beta))
        if not own:
            return LARGE
        run_jobs(table, words, jobs, workers, TASKS)
        end(tile, f, 0, m)
        return DONE

    return both(run, f"int64({'int64, ' * 5}float64, float64)", f"gemv_{tile}")


@functools.cache
def _table(dtype: str):
    return launch_table(_work(dtype))


def whole(dtype: str) -> tuple[int, int]:
    """The address of the whole call, and its first argument. It answers LARGE, with nothing done, where `gemv` has to
    be called."""
    return _entry(dtype)[1], _table(dtype).buffer_info()[0]


def gemv(dtype: str, out, x, a, b, beta, alpha) -> bool:
    """out = alpha * a @ b + beta * x after all checks, where out has one row or one column; x is an id, or 0.

    False, with nothing written, where the matrix is contiguous along neither side.
    """
    run, table, arrays = _entry(dtype)[0], _table(dtype), (id(out), x, id(a), id(b), beta, alpha)
    status = run(table.buffer_info()[0], *arrays)
    if status == LARGE and threads.open_up():
        status = run(table.buffer_info()[0], *arrays)
    if status == LARGE:
        planes, workers = -(-a.shape[1] // SEGMENT), threads.count() if max(a.nbytes, b.nbytes) > SHARED else 1
        with room(HEAD + 8 * planes * out.size) as f:  # words and elements of 8 bytes at most
            own = launch_table(_work(dtype))
            own.room, own.workers = f, workers
            status = run(own.buffer_info()[0], *arrays)
            if status != DECLINED:
                threads.launch(_work(dtype), f, workers)
                ending(small(dtype))(f)
    return status != DECLINED
