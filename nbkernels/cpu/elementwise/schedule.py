"""Which compiled loops go over a StridedPlan, and with what: tiles, transposed operands, short rows, threads."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field

import numpy as np

from ...jit.address import call
from ...jit.cache import entry
from ...jit.gather import gatherer
from ...jit.ndarray import data, ndim, shape, stride
from ...jit.turn import MOVED, TILE, turner
from ...jit.vector import LINE, SIZE, width_bits
from ...strides import StridedPlan
from ..gemm.entry import apart
from ..runtime import threads
from .loop_nest import ASKEW, BELOW, BUFFERS, HEADER, NEST, ROOM, collector, nest_at, walker

# Elements from which on threads share the work: 10 us of an addition where nothing is contiguous, a launch takes 2.
PARALLEL = 1 << 16
# Elements in all and in a row from which on loops are made for the very steps of the inputs, in 0.1 s, and the most
# elements that may lie between two neighbours for it.
MANY, NARROW, NEAR = 1 << 12, 64, 4
# Columns below which rows are put end to end where the output is contiguous (NARROW where inputs are strided), elements
# from which on, and bytes of an operand that are put together.
SHORT, GATHERED, CHUNK = 32, 1 << 7, 1 << 13
# Bytes from row to row of a transposed tile, at most, a line of which stays free: then rows do not meet in a cache set
# (a + b.T of 4000 x 4000 float32, one thread, 12.0 ms without, 10.4; Zen 4, 2026-11). It has TILE rows.
ROW = 1024
# Bytes of an output beyond which such a tile is one line of the transposed operand high, what is read next is asked for
# in time, and a band of SPAN columns is done at once, so that L2 still has the lines that rows share. Times of a + b.T
# over those of a + b, float32, two threads: 2000 x 2000 2.9 without, 1.6 with it, 4000 x 4000 1.7, 1.4, but where rows
# meet in a few cache sets, 4096 x 4096, 1.6-2.0, 1.7-1.9 (Zen 4, 2026-11).
FAR, SPAN = 1 << 22, 2048
# Bytes between columns that are turned by way of a buffer: 512 x 512 of float64 2.1, straight 5.4. Vectors of 256 bits
# turn all others straight, and these from THRONG bytes of output on: 2880 x 2880 float32 by a buffer 2.9, straight 1.6,
# 4096 x 4096 4.5 and 3.2, but 512 x 512 of float64 1.8 and 4.1; items of 8 bytes twice as far apart, for a line of them
# is half as many rows: 256 x 256 of float64 2.6 by a buffer, straight 2.2 (Zen 3, 2026-11).
WIDE = width_bits() == 512
CROWDED, THRONG = 4096 if WIDE else 2048, 1 << 21
# Bytes of an output from which on streaming stores win over reading each line before it is overwritten: a + b of f32 on
# two threads, 16 MB of output 46 against 45 GB/s, 32 MB 44 against 37, 64 MB 54 against 34 (2026-11, Sapphire Rapids).
STREAMED = 1 << 25
# With vectors of 256 bits the same of those that turn an input, and half as many where its columns are crowded. They go
# by tiles of TALL rows of BROAD bytes, one below the other: runs of a KiB are read along 8 columns at once, which the
# CPU's prefetchers follow (17-20 GB/s; those of a line or four down a band of columns 5-8), and 4 lines are stored at
# once in each row (19 GB/s; one 6-11), if rows begin with a line. ms of a + b.T, float32, straight and so: 1440 x 1440
# 1.73 and 1.45, 2000 x 2000 4.0, 2.9, 2880 x 2880 8.5, 6.0, 4096 x 4096 25.3, 14.4; two threads 2880 x 2880 5.0, 4.4,
# 4096 x 4096 12.7, 9.2. Of rows that begin within lines each has its own lines, and tiles turn a line more: 3162 x 3162
# 14.1, 8.6, 5477 x 5477 47, 29, float64 88, 55 (Zen 3, 2026-11).
TURNED, TALL, BROAD = 15 << 19, 256, 4 * LINE


@functools.cache
def binder():
    def bind(context, scalars, out, first, second, third, width, walker):
        """Add the arrays' addresses to the context's offsets; walk at once if given a walker. The context's address.

        0, and nothing is done, where an input's extent meets out's and it is not out element for element; `width` is
        the widest item, or 0 to leave this out. `third` is 0 where there are two inputs.
        """
        for x in (first, second, third if third != 0 else first):
            same = data(x) == data(out) and ndim(x) == ndim(out)
            for d in range(ndim(out) if same else 0):
                own = shape(x, d) == shape(out, d) and stride(x, d) == stride(out, d) and abs(stride(x, d)) >= width
                same = same and own
            if width != 0 and not (same or apart(out, x, width)):
                return 0
        context = data(context)
        f = nest_at(context)
        f.scalars = data(scalars)
        f[HEADER] += data(out)
        f[HEADER + 1] += data(first)
        f[HEADER + 2] += data(second)
        if third != 0:
            f[HEADER + 3] += data(third)
        if walker != 0:
            call(walker, context, 0)
        return context

    return entry(bind, "int64(int64, int64, int64, int64, int64, int64, int64, int64)", "nest_bind")


@dataclass(frozen=True, eq=False)
class Nest:
    """Inner loops (their address) over a plan, of operands of `itemsizes`; `parallel` elements are worth threads.

    They may be good for `short` rows as these are, where they know the steps of all operands, or store past the caches,
    `streamed`. Of several outputs each is written in its place, however it lies.
    """

    plan: StridedPlan
    loop: int
    itemsizes: tuple[int, ...]
    parallel: int = PARALLEL
    short: bool = False
    streamed: bool = False
    outputs: int = 1
    contexts: dict[int, np.ndarray] = field(default_factory=dict, repr=False)

    @functools.cached_property
    def small(self) -> bool:
        """Whether one thread does it."""
        return self.plan.size < self.parallel

    @functools.cached_property
    def direct(self) -> bool:
        """Whether the loops are made for the very steps of the inputs."""
        return self.short and bool(steps(self.plan, self.itemsizes, True, streamed=self.streamed))

    @functools.cached_property
    def askew(self) -> bool:
        return self.streamed and askew(self.plan, self.itemsizes)

    @functools.cached_property
    def turned(self) -> tuple[int, ...]:
        """For each operand the width of its items, if tiles of it are to be transposed, else 0."""
        if self.plan.kind != "transposed" or self.direct:
            return (0,) * len(self.itemsizes)
        inputs = list(zip(self.plan.strides, self.itemsizes))[self.outputs :]
        found = (w if s[-2] == w and abs(s[-1]) > w and w in MOVED else 0 for s, w in inputs)
        return (0,) * self.outputs + tuple(found)

    @functools.cached_property
    def gathered(self) -> tuple[int, ...]:
        """For each operand the width of its items, if its rows are to be gathered, else 0; () if none are."""
        shape, widths = self.plan.shape, self.itemsizes
        if self.direct:
            return ()
        short = NARROW if self.plan.kind == "strided" else LINE // max(widths) + 1 if self.short else SHORT
        if self.plan.kind == "transposed" or len(shape) < 2 or shape[-1] >= short or self.plan.size < GATHERED:
            return ()
        compact = [tuple(w * math.prod(shape[d + 1 :]) for d in range(len(shape))) for w in widths]
        if self.plan.strides[0] != compact[0]:
            return ()
        return tuple(0 if s == c or not any(s) else w for s, c, w in zip(self.plan.strides, compact, widths))

    @property
    def walker(self) -> int:
        return collector() if self.gathered else walker()

    def context(self, tasks: int) -> np.ndarray:
        """All of a context but the arrays and scalars."""
        if tasks not in self.contexts:
            self.contexts[tasks] = np.array(self._context(tasks), np.int64)
        return self.contexts[tasks].copy()

    def _context(self, tasks):
        operands, lead = len(self.itemsizes), max(0, 2 - len(self.plan.shape))
        sizes = (1,) * lead + self.plan.shape
        steps = [(0,) * lead + strides for strides in self.plan.strides]
        ndim, most = len(sizes), max(self.itemsizes)
        if 16 * (operands + ndim + 1) > ROOM:
            raise ValueError(f"{operands} operands of {ndim} dimensions are more than loops have room for")
        split = next((d for d, n in enumerate(sizes) if n >= 8 * tasks), sizes.index(max(sizes)))
        moved, (high, wide), tile, span, beside = self.turned, sizes[-2:], [s[-2:] for s in steps], sizes[-1], -1
        movers = [turner(w) if w else 0 for w in moved]
        if any(moved):
            count = sum(map(bool, moved))
            high, pitch = TILE, min(ROW, BUFFERS // TILE // count)
            if upright := self.streamed and tall(self.plan, self.itemsizes) and count <= 2:
                pitch = BROAD + (2 * LINE if self.askew else LINE)
                high = min(TALL // count, BUFFERS // pitch // count - LINE)  # and a line more, see loop_nest.py
            wide = (pitch - min(LINE, pitch // 2)) // most
            tile = [(pitch, w) if w else s for s, w in zip(tile, moved)]
            if upright:
                span, beside = BROAD // most, ASKEW if self.askew else BELOW
            elif self.plan.size * most > FAR:
                high, span = LINE // most, SPAN
                rows = (p for p in range(self.outputs, operands) if not moved[p] and tile[p][1] == self.itemsizes[p])
                beside = next(rows, 0)
        elif self.gathered:
            wide = min(CHUNK, BUFFERS // operands) // LINE * LINE  # and a line that the last row may reach into
            high, split = (wide - LINE) // most, min(split, ndim - 2)
            movers = [gatherer(w) if w else 0 for w in self.gathered]
            tile = [(0, w if any(s) else 0) for s, w in zip(steps, self.itemsizes)]
        strides = [s[d] for d in range(ndim) for s in steps] + [s[d] for d in range(2) for s in tile]
        f = NEST.array()
        f.loop, f.operands, f.ndim, f.tasks, f.split = self.loop, operands, ndim, tasks, split
        f.high, f.wide, f.span, f.beside = high, wide, span, beside
        return *f, *self.plan.offsets, *movers, *sizes, *strides

    def run(self, scalars: np.ndarray, out: np.ndarray, inputs: tuple[np.ndarray, ...], apart: bool) -> bool:
        """Run over two or three inputs; False, and nothing is done, where an input may overlap out.

        `apart` says that none does, other than element for element.
        """
        context, go = self.context(1 if self.small else threads.count()), self.walker
        width, alone = 0 if apart else max(self.itemsizes), go if self.small else 0
        third = id(inputs[2]) if len(inputs) > 2 else 0
        at = binder()(id(context), id(scalars), id(out), id(inputs[0]), id(inputs[1]), third, width, alone)
        if at and not self.small:
            threads.launch(go, at, int(context[NEST["tasks"]]))
        return at != 0

    def run_all(self, arrays: tuple[np.ndarray, ...]) -> None:
        """Run over any number of operands, outputs first, of which no input overlaps an output other than element for
        element."""
        context, start = self.context(1 if self.small else threads.count()), HEADER
        context[start : start + len(arrays)] += [x.ctypes.data for x in arrays]
        threads.launch(self.walker, context.ctypes.data, int(context[NEST["tasks"]]))


def streamed(plan: StridedPlan, itemsizes: tuple[int, ...]) -> bool:
    """Whether the output should be stored past the caches: large, and written in runs of whole lines."""
    least = STREAMED
    if tall(plan, itemsizes):
        least = TURNED >> any(abs(s[-1]) > LINE and s[-1] % CROWDED == 0 for s in plan.strides[1:])
    size = itemsizes[0]
    return plan.size * size >= least and plan.strides[0][-1] == size and plan.shape[-1] * size >= 8 * LINE


def tall(plan: StridedPlan, itemsizes: tuple[int, ...]) -> bool:
    """Whether streaming stores of what turns an input go by tall tiles: of rows that begin at different places in a
    line none that are wider than the output, nor more than two."""
    if WIDE or plan.kind != "transposed":
        return False
    fits = max(itemsizes) == itemsizes[0] and sum(abs(s[-1]) > w for s, w in zip(plan.strides, itemsizes)) <= 2
    return fits or not _ragged(plan)


def askew(plan: StridedPlan, itemsizes: tuple[int, ...]) -> bool:
    """Whether such tiles part at the lines of each row, where these begin at different places in a line."""
    return tall(plan, itemsizes) and _ragged(plan)


def _ragged(plan):
    return any(s % LINE for s in plan.strides[0][:-1])


def steps(
    plan: StridedPlan, itemsizes, short: bool = False, many: int = MANY, streamed: bool = False
) -> tuple[int | None, ...]:
    """The inputs' steps in elements, where loops made for them vectorise and those for any steps would not; else ()."""
    if plan.size < many or not plan.shape or plan.strides[0][-1] != itemsizes[0] or max(itemsizes) > 8:
        return ()
    if plan.kind == "transposed":
        return _across(plan, itemsizes) if short and not (streamed and tall(plan, itemsizes)) else ()
    if plan.kind != "strided" or (plan.shape[-1] < NARROW and not short):
        return ()
    apart = [divmod(s[-1], w) for s, w in zip(plan.strides[1:], itemsizes[1:])]
    return tuple(n for n, _ in apart) if all(rest == 0 and abs(n) <= NEAR for n, rest in apart) else ()


def _across(plan, itemsizes):
    """The same where inputs touch along the dimension before, all of one width; of those the steps are None. Not where
    their columns meet in the same few lines of L1, nor where a buffer is better for other reasons."""
    inputs = list(zip(plan.strides[1:], itemsizes[1:]))
    found = tuple({0: 0, w: 1}.get(s[-1], None if s[-2] == w else 2) for s, w in inputs)
    turned = [(s[-1], w) for n, (s, w) in zip(found, inputs) if n is None]
    alike = len({w for _, w in turned}) == 1 and turned[0][1] in SIZE.values()
    size, free = plan.size * max(itemsizes), all(s % (CROWDED if WIDE else CROWDED // 4 * w) for s, w in turned)
    straight = free and size <= FAR if WIDE else free or size > THRONG
    return found if 2 not in found and alike and straight else ()
