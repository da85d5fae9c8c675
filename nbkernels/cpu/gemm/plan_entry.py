"""The entry of thin, deep, short and columns: from the words of a product to the last thread in one compiled call."""

from __future__ import annotations

import numpy as np

from ...jit.abi.address import invoke, pointer, poke, scratch
from ...jit.abi.record import lasting
from ...jit.compile.cache import both
from ...jit.compile.lazy import jit
from ..runtime import threads
from ..runtime.launch import launch_table, table_at
from ..runtime.status import DONE, LACKING, WANTED
from ..runtime.workspace import ROOMS, acquire, release, room, without
from .blocking import small
from .context import TASKS, WORDS, words_at
from .kernels import supply
from .paths import SERIAL


@jit(forceinline=True)
def factored(tile, f, factors, alpha, beta):
    """The factors, of the tile's dtype, where jobs read them; no job is taken yet."""
    f.next, f.scalars, f.unit = 0, factors, alpha == 1
    poke(tile, factors, alpha)
    poke(tile, factors + tile.itemsize, beta)


@jit(forceinline=True)
def nothing(tile, f):
    """What is left to do after jobs."""


@jit(forceinline=True)
def nowhere(tile, f, need):
    """The place of a kernel that jobs lack."""
    return -1


def whole_call(run, name: str):
    """A path's whole call, run(table, words, beta, alpha), where the words tell checked arrays (`operands`), which may
    be changed: from Python, and its address, by which small products' entry goes on to it."""
    return both(run, "int64(int64, int64, float64, float64)", name)


def doors(kernel, plan, name: str, **more):
    """A function of a dtype: a path's products of it, whose jobs kernel(tile) does."""

    @lasting
    def door(dtype: str) -> Door:
        tile = small(dtype)
        return Door(tile, kernel(tile), plan, name, **more)

    return door


class Door:
    """A path's products of one register tile.

    `plan(tile, f, table)` cuts one for the threads that are `available`, says in WORKERS how many it is for, and
    answers the bytes of its room, or a status, negative. `lacking(tile, f, need)` is the place of a kernel that it
    needs and that is not compiled, or -1; `end(tile, f)` what is left to do after jobs, which `kernel` does.
    """

    def __init__(self, tile, kernel: int, plan, name: str, lacking=nowhere, end=nothing):
        element = getattr(np, tile.dtype)

        def run(table, words, beta, alpha):
            f, factors, t = words_at(words), scratch(16), table_at(table)
            kept = pointer(t.kept)
            factored(tile, f, factors, element(alpha), element(beta))
            need = plan(tile, f, table)
            if need < 0:
                return -need
            at = lacking(tile, f, need)
            if at >= 0:
                return LACKING + at
            f.room, f.tasks = t.room, 1
            if need > 0 and t.kept != 0:
                f.room = acquire(kept, need)
                if f.room == 0:
                    return without(kept, need)
            elif need > t.size:
                return WANTED + need
            if f.workers > 1 or f.m * f.n * f.k > SERIAL:
                threads.shared(t.launch, t.kernel, words, words + TASKS)
            else:
                invoke(t.kernel, (words, 0))
            end(tile, f)
            if need > 0 and t.kept != 0:
                release(kept)
            return DONE

        self.tile, self.kernel = tile, kernel
        self.run, self.address = whole_call(run, f"gemm_{name}_whole_{tile}")
        self.table = launch_table(kernel, ROOMS)

    def whole(self) -> tuple[int, int]:
        """The address of the whole call, and its first argument. It answers, with nothing done, LARGE where somebody
        has the kept room or nothing says how many threads there are, WANTED + bytes where it is too small, LACKING +
        its place where a kernel is not compiled."""
        return self.address, self.table.buffer_info()[0]

    def product(self, f, beta, alpha, workers: int) -> int:
        """Run the whole call from Python, on words of checked arrays, in a workspace of its own; return a status."""
        need, table = 0, launch_table(self.kernel)
        threads.open_up()
        table.workers = workers
        while True:
            own = room(need)
            with own as table.room:
                table.size, words = own.buffer[0], WORDS.array(f.tobytes())
                status = self.run(table.buffer_info()[0], words.buffer_info()[0], beta, alpha)
            if status >= WANTED:
                need = status - WANTED
            elif status >= LACKING:
                supply(self.tile, status - LACKING)
            else:
                return status
