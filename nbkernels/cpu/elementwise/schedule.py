"""The choice of the compiled loops for a StridedPlan: tiles, transposed operands, short rows, threads."""

from __future__ import annotations

import ctypes
import functools
import math
from dataclasses import dataclass, field

import numpy as np

from ...jit.compile.python_first import Patience
from ...jit.ir.short_rows import gatherer
from ...jit.ir.turn import MOVED, TILE, turner
from ...jit.ir.vector import LINE
from ...strides import StridedPlan
from ..runtime import threads
from . import gates
from .loop_nest import BUFFERS, HEADER, NEST, ROOM, collector, walker

FEW = 256  # calls of the inner loops
_LOOP = ctypes.PYFUNCTYPE(None, *[ctypes.c_int64] * 6)  # the inner loops
_patient = Patience("walk")


@dataclass(frozen=True, eq=False)
class Nest:
    """Inner loops (their address) over a plan, of operands of `itemsizes`; `parallel` elements are worth threads.

    `short`: the loops take short rows in place. `made`: the fields of Loop that they were compiled with. Each of
    several outputs is written in its place, by any strides.
    """

    plan: StridedPlan
    loop: int
    itemsizes: tuple[int, ...]
    made: gates.Choice = gates.PLAIN
    parallel: int = gates.PARALLEL
    short: bool = False
    outputs: int = 1
    contexts: dict[int, np.ndarray] = field(default_factory=dict, repr=False)

    @functools.cached_property
    def small(self) -> bool:
        """Whether one thread does it."""
        return self.plan.size < self.parallel

    @functools.cached_property
    def direct(self) -> bool:
        """Whether the loops are made for the very steps of the inputs."""
        return self.short and bool(self.made.steps)

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
        short = LINE // max(widths) + 1 if self.short and self.plan.kind != "strided" else gates.SHORT
        if self.plan.kind == "transposed" or len(shape) < 2 or shape[-1] >= short:
            return ()
        compact = [tuple(w * math.prod(shape[d + 1 :]) for d in range(len(shape))) for w in widths]
        if self.plan.strides[: self.outputs] != tuple(compact[: self.outputs]):
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
        moved, (high, wide), tile, span, soon = self.turned, sizes[-2:], [s[-2:] for s in steps], sizes[-1], 0
        movers = [turner(w) if w else 0 for w in moved]
        if any(moved):
            count = sum(map(bool, moved))
            high, pitch = TILE, BUFFERS // TILE // count
            if tall := self.made.streamed and gates.tall(self.plan, self.itemsizes) and count <= 2:
                broad = gates.BROAD // count
                pitch = broad + (2 * LINE if self.made.misaligned else LINE)
                high = min(gates.TALL, BUFFERS // pitch // count - LINE)  # and a line more, see loop_nest.py
            wide = (pitch - min(LINE, pitch // 2)) // most
            tile = [(pitch, w) if w else s for s, w in zip(tile, moved)]
            if tall:
                span, soon = broad // most, gates.SOON
        elif self.gathered:
            wide = min(gates.CHUNK, BUFFERS // operands) // LINE * LINE  # and a line that the last row may reach into
            high, split = (wide - LINE) // most, min(split, ndim - 2)
            movers = [gatherer(w) * (1 if any(s[:-1]) else -1) if w else 0 for s, w in zip(steps, self.gathered)]
            tile = [(0, w if any(s) else 0) for s, w in zip(steps, self.itemsizes)]
        strides = [s[d] for d in range(ndim) for s in steps] + [s[d] for d in range(2) for s in tile]
        f = NEST.array()
        f.loop, f.operands, f.ndim, f.tasks, f.split = self.loop, operands, ndim, tasks, split
        f.high, f.wide, f.span, f.soon = high, wide, span, soon
        f.extra = LINE // self.itemsizes[0] * self.made.misaligned
        return *f, *self.plan.offsets, *movers, *sizes, *strides

    def run(self, arrays: tuple[np.ndarray, ...], scalars: int = 0, first: bool = False) -> None:
        """Run over any number of operands, outputs first, of which no input overlaps an output other than element for
        element; `first`: this is a first call, for which nothing is compiled."""
        if self.flat and (first or _patient()):
            self._at_once(arrays, scalars)
            return
        context = self.context(1 if self.small else threads.count())
        context[NEST["scalars"]] = scalars
        context[HEADER : HEADER + len(arrays)] += [x.ctypes.data for x in arrays]
        threads.launch(self.walker, context.ctypes.data, int(context[NEST["tasks"]]))

    @functools.cached_property
    def flat(self) -> bool:
        """Whether few calls of the inner loops do it, if not as fast: they take any steps."""
        return math.prod(self.plan.shape[:-2]) <= FEW and not self.made.streamed

    def _at_once(self, arrays, scalars: int) -> None:
        """All of a plane by one call of the inner loops: for the first calls, which compile no walker."""
        lead = max(0, 2 - len(self.plan.shape))
        *outer, rows, columns = (1,) * lead + self.plan.shape
        steps = np.array([(0,) * lead + strides for strides in self.plan.strides])
        starts = np.array([x.ctypes.data + offset for x, offset in zip(arrays, self.plan.offsets)])
        *far, down, across = map(np.ascontiguousarray, steps.T)
        for index in np.ndindex(*outer):
            # The inner loops look at two words behind the addresses: how lines of a tile begin and end.
            cell = np.array([*sum((i * step for i, step in zip(index, far)), starts), 0, 0])
            _LOOP(self.loop)(cell.ctypes.data, rows, columns, down.ctypes.data, across.ctypes.data, scalars)
