"""The compiled code of folds: the terms of results, by rows and by columns, in reduce.py's order."""

from __future__ import annotations

import functools

from ...jit.abi.address import invoke, pointer, scratch, word
from ...jit.abi.calling import call_binary, call_rows
from ...jit.abi.ndarray import address_of, data, shape
from ...jit.abi.record import Record, address
from ...jit.compile.cache import compiled, entry
from ...jit.compile.lazy import jit
from ...jit.ir.vector import LINE
from ..elementwise import loop_nest
from ..runtime.threads import _all
from .fold_loop import BLOCK, DEALT

# Terms that are copied together where they do not touch, a power of two of blocks.
GATHER = 4096
# Bytes of a context and a room that go to the stack.
SMALL = 1 << 16
# Rows of terms that go to a row of partial results at once, with one store in place of five: 16 + 3 * 5 * 16 = 256.
FUSED = 5
FEW = 8  # rows that are not transposed alone: fewer would go one by one

# The context: these words, then for each kept dimension size, output and input stride, for each reduced one size and
# stride. `neutral` and `out` are where plan_cache.py puts addresses. `fold` is 0 for columns; `take`, `chain`, `merge`,
# `first` and `give` are loops: one row of terms or FUSED of them to partial results, partial results to others, the
# first terms, results to the output. `turn` is 0, or what transposes the terms of one result where the outermost of its
# dimensions is the one that touches, `high` rows of the others at a time; each job then folds `length` terms of it.
# Launches go by `launch`.
FOLD = Record(
    "Fold",
    """
    fold neutral jobs tasks copy width chunk length | room rooms kept reduced terms item lanes levels |
    out x take chain merge first give turn | high launch
    """,
)
fold_at, HEADER = FOLD.pointer(), FOLD.bytes
# What a call of fused loops reads: addresses and steps, of partial results twice and of FUSED rows of terms.
CHAIN = Record("Chain", "at[8] row_step[8] step[8]")
chain_at, DESK = CHAIN.pointer(), CHAIN.bytes
# Folds of parts that are merged: loops that merge, and give to out; how many are whole, their rows, columns; widths of
# both.
MERGING = Record("Merging", "merge give whole rows columns width wide")
merging_at = MERGING.pointer()
assert (FOLD["neutral"], FOLD["out"]) == (loop_nest.NEST["scalars"], loop_nest.HEADER)


@jit(forceinline=True)
def _innermost(context):
    """Where the innermost of the reduced dimensions stands, its size, its stride."""
    f = fold_at(context)
    inner = context + HEADER + 24 * f.kept + 16 * (f.reduced - 1)
    return inner, word(inner), word(inner + 8)


@jit
def _place(context, x, first):
    """Address of term `first` of the result whose terms begin at x."""
    inner, _, _ = _innermost(context)
    for d in range(fold_at(context).reduced):
        size = word(inner - 16 * d)
        x += first % size * word(inner - 16 * d + 8)
        first //= size
    return x


@jit
def _merge(context, stack, top, count, columns):
    """Fold the pairs that are complete after `count` results were pushed; the new top."""
    f = fold_at(context)
    width = f.width
    pitch = columns * width
    while count % 2 == 0:
        x = stack + (top - 2) * pitch
        call_binary(f.merge, (x, x, x + pitch), columns, (width, width, width))
        top -= 1
        count //= 2
    return top


@jit
def _merged(loops, results, whole, rest, columns, width):
    """Fold `whole` rows of results, and one of a rest, into the first: in pairs, pairs in pairs and so on; what is
    left over from the last to the first."""
    pitch, apart = columns * width, 1
    while 2 * apart <= whole:
        step, n, x, y = 2 * apart * pitch, whole // (2 * apart), results, results + apart * pitch
        if columns == 1:  # along these then
            call_binary(loops, (x, x, y), n, (step, step, step))
        else:
            call_rows(loops, (x, x, y), (n, columns), (step, step, step), (width, width, width))
        apart *= 2
    last = whole if rest else -1
    for k in range(63):
        if whole >> k & 1:
            x = results + (whole >> k + 1 << k + 1) * pitch
            if last >= 0:
                call_binary(loops, (x, x, results + last * pitch), columns, (width, width, width))
            last = whole >> k + 1 << k + 1


@jit
def _gather(context, x, first, length, buffer):
    """Copy terms to a buffer, run by run."""
    f = fold_at(context)
    item, (_, longest, pace) = f.item, _innermost(context)
    while length > 0:
        run, at = min(length, longest - first % longest), _place(context, x, first)
        call_binary(f.copy, (buffer, at, at), run, (item, pace, pace))
        first, length, buffer = first + run, length - run, buffer + run * item


@jit
def _rows(context, x, columns, step, stack, job):
    """`columns` results, whose first terms are `step` bytes apart, to a row at `stack`; or a job's share of one."""
    f = fold_at(context)
    fold, terms, item, width = f.fold, f.terms, f.item, f.width
    buffer = stack + f.levels * f.chunk * width
    dimensions, (_, longest, pace) = f.reduced, _innermost(context)
    if dimensions == 1 and pace == item:
        invoke(fold, (x, step, columns, terms, stack))
    elif f.turn != 0:
        _turned(context, x, stack, buffer, job * f.length)
    elif terms <= GATHER and dimensions == 1:
        several = GATHER // terms
        for i in range(0, columns, several):
            n, first = min(several, columns - i), x + i * step
            call_rows(f.copy, (buffer, first, first), (n, terms), (terms * item, step, step), (item, pace, pace))
            invoke(fold, (buffer, terms * item, n, terms, stack + i * width))
    else:
        pitch, group, top = columns * width, f.length, 0
        for start in range(0, terms, group):
            length = min(group, terms - start)
            direct = pace == item and longest - start % longest >= length
            source = _place(context, x, start)
            for i in range(columns):
                if not direct:
                    _gather(context, x + i * step, start, length, buffer)
                at = source + i * step if direct else buffer
                invoke(fold, (at, 0, 1, length, stack + top * pitch + i * width))
            top = _merge(context, stack, top + 1, start // group + 1, columns) if length == group else top + 1
        while top > 1:
            top = _merge(context, stack, top, 2, columns)


@jit
def _turned(context, x, results, stage, first):
    """One result of terms that are to be transposed, or a share of them, from term `first` on: rows at a time to a
    stage, behind what is left over of those before, and folds of their blocks to `results`, which are merged."""
    f = fold_at(context)
    fold, terms, item, width = f.fold, f.terms, f.item, f.width
    (_, longest, pace), rows, high = _innermost(context), word(context + HEADER + 24 * f.kept), f.high
    row_terms, last, base = terms // rows, min(terms, first + f.length), stage + BLOCK * item
    lead, end = (x & (LINE - 1)) // item, (last + row_terms - 1) // row_terms
    row, count, held, left, at = first // row_terms, 0, 0, 0, base
    end = min(rows, max(end, row + FEW))
    while row < end:
        h = high - (row + lead) % high  # up to the start of a line, and not a few rows alone
        h += high if h < FEW else 0
        h = end - row if end - row < h + FEW else h
        for part in range(0, row_terms, longest):
            source = _place(context, x, row * row_terms + part)
            invoke(f.turn, (source, pace, base + part * item, row_terms * item, h, longest, 0))
        before = row * row_terms
        start, stop = max(0, first - before), min(h * row_terms, last - before)
        at, left, row = base + (start - held) * item, held + stop - start, row + h
        blocks = left // BLOCK
        invoke(fold, (at, BLOCK * item, blocks, BLOCK, results + count * width))
        count, at, held = count + blocks, at + blocks * BLOCK * item, left - blocks * BLOCK
        if held > 0 and row < end:
            call_binary(f.copy, (base - held * item, at, at), held, (item, item, item))
    if held > 0:
        invoke(fold, (at, 0, 1, held, results + count * width))
    _merged(f.merge, results, count, held > 0, 1, width)


@jit
def _block(context, x, first, length, columns, step, desk, partial, target):
    """Folds of `length` terms from `first` on, of `columns` results `step` bytes apart, to a row at `target`."""
    f, c = fold_at(context), chain_at(desk)
    width, lanes = f.width, f.lanes
    if length < DEALT or lanes == 1:
        lanes, partial = 1, target
    pitch, (_, longest, pace), k = columns * width, _innermost(context), 0
    while k < length:
        lane, run = k % lanes, min(length - k, longest - (first + k) % longest)
        at, to = _place(context, x, first + k), partial + lane * pitch
        if k >= lanes and lane == 0 and run >= FUSED * lanes:
            one = pace == columns * step
            for p in range(2):
                c.at[p], c.row_step[p], c.step[p] = partial, pitch, width
            for p in range(FUSED):
                c.at[2 + p], c.row_step[2 + p], c.step[2 + p] = at + p * lanes * pace, pace, step
            rows, wide = (1, lanes * columns) if one else (lanes, columns)
            invoke(f.chain, (desk, rows, wide, address(c.row_step), address(c.step), 0))
            k += FUSED * lanes
            continue
        rows = min(lanes - lane, run)
        if k < lanes:
            call_rows(f.first, (to, at, at), (rows, columns), (pitch, pace, pace), (width, step, step))
        else:
            call_rows(f.take, (to, to, at), (rows, columns), (pitch, pitch, pace), (width, width, step))
        k += rows
    merge, half = f.merge, lanes // 2
    while half > 0:
        out = partial if half > 1 else target
        call_binary(merge, (out, partial, partial + half * pitch), half * columns, (width, width, width))
        half //= 2


@jit
def _columns(context, x, columns, step, stack):
    """Fold `columns` results together, whose first terms are `step` bytes apart, to a row at `stack`."""
    f = fold_at(context)
    width, terms, longest = f.width, f.terms, f.length
    pitch = columns * width
    desk = stack + (f.levels * f.chunk * width + LINE - 1) // LINE * LINE
    partial = desk + DESK
    top, start, count = 0, 0, 0
    while start < terms:
        length = min(longest, terms - start)
        _block(context, x, start, length, columns, step, desk, partial, stack + top * pitch)
        start += length
        count += 1
        top = _merge(context, stack, top + 1, count, columns) if length == longest else top + 1
    while top > 1:
        top = _merge(context, stack, top, 2, columns)


def _walk(context, task):
    """The task's share of the jobs: chunks of the innermost kept dimension, for each place in the outer ones."""
    f = fold_at(context)
    chunk, kept, jobs, tasks = f.chunk, f.kept, f.jobs, f.tasks
    dims, width = context + HEADER, f.width
    inner = dims + 24 * (kept - 1)
    length, out_step, step = word(inner), word(inner + 8), word(inner + 16)
    room = (context + f.rooms + LINE) // LINE * LINE + task * f.room
    for job in range(jobs * task // tasks, jobs * (task + 1) // tasks):
        chunks = (length + chunk - 1) // chunk
        first, rest = job % chunks * chunk, job // chunks
        out, x = f.out + first * out_step, f.x + first * step
        for d in range(kept - 2, -1, -1):
            i = rest % word(dims + 24 * d)
            rest //= word(dims + 24 * d)
            out += i * word(dims + 24 * d + 8)
            x += i * word(dims + 24 * d + 16)
        columns = min(chunk, length - first)
        if f.fold != 0:
            _rows(context, x, columns, step, room, job)
        else:
            _columns(context, x, columns, step, room)
        call_binary(f.give, (out, room, f.neutral), columns, (out_step, width, 0))


@functools.cache
def walker() -> int:
    return compiled(_walk, "void(int64, int64)", "reduce_walk")


@jit
def _filled(words, nothing, context, out, x):
    """The context of a fold of the array x into memory at `out`, made at an address with a room for each task."""
    source, f = pointer(data(words)), fold_at(context)
    for i in range(shape(words, 0)):
        f[i] = source[i]
    f.neutral = data(nothing)
    f.out += out
    f.x += data(x)
    return context


@jit
def _go(words, nothing, walker, context, out, x):
    """A fold by all of its tasks."""
    f = fold_at(_filled(words, nothing, context, out, x))
    if f.tasks == 1:
        invoke(walker, (context, 0))
    else:
        _all(f.launch, walker, context, f.tasks)


@functools.cache
def at_once():
    def run(words, nothing, walker, out, x):
        """One thread's fold, with a context and a room on the stack."""
        words, nothing, out, x = address_of(words), address_of(nothing), address_of(out), address_of(x)
        invoke(walker, (_filled(words, nothing, scratch(SMALL), data(out), x), 0))

    return entry(run, "void(object, object, int64, object, object)", "reduce_at_once")


@functools.cache
def together():
    def run(words, rest, merging, nothing, walker, context, results, out, x):
        """Fold x into out by all tasks; the array `context` holds the context and the workspace of each task.

        Where `merging` has words parts are folded to rows of `results`, and a `rest`, if that has words; then what they
        merge to is given to out, which is contiguous.
        """
        words, rest, merging = address_of(words), address_of(rest), address_of(merging)
        nothing, context, out, x = address_of(nothing), data(address_of(context)), data(address_of(out)), address_of(x)
        if shape(merging, 0) == 0:
            _go(words, nothing, walker, context, out, x)
            return
        m, results = merging_at(data(merging)), data(address_of(results))
        _go(words, nothing, walker, context, results, x)
        if shape(rest, 0) != 0:
            _go(rest, nothing, walker, context, results + m.whole * m.columns * m.width, x)
        _merged(m.merge, results, m.whole, m.rows > m.whole, m.columns, m.width)
        call_binary(m.give, (out, results, results), m.columns, (m.wide, m.width, m.width))

    return entry(run, f"void({'object, ' * 4}int64{', object' * 4})", "reduce_together", nogil=True)
