"""What the paths' compiled calls share: factors that jobs read, the whole call, and one whose plan counts its room."""

from __future__ import annotations

import numpy as np

from ...jit.address import poke, scratch
from ...jit.cache import both, entry, jit
from ..runtime import threads
from ..runtime.launch import launch_table, table_at
from ..runtime.status import DECLINED, DONE
from ..runtime.workspace import room
from .context import BYTES, TASKS, alone, words_at


@jit(forceinline=True)
def factored(tile, f, factors, alpha, beta):
    """The factors, of the tile's dtype, where jobs read them; no job is taken yet."""
    f.next, f.scalars, f.unit = 0, factors, alpha == 1
    poke(tile, factors, alpha)
    poke(tile, factors + tile.itemsize, beta)


def whole_call(run, name: str):
    """A path's whole call, run(table, out, x, a, b, beta, alpha) on checked arrays by their ids, x's or 0: from Python,
    and its address, by which small products' entry goes on to it."""
    return both(run, "int64(int64, int64, int64, int64, int64, float64, float64)", name)


def planned_entry(tile, plan, end, name: str):
    """int64(table, out, x, a, b, beta, alpha, trusted): DONE or DECLINED; or, where the table's room is too small, the
    bytes that it must have, more than any status.

    `plan(tile, f, workers)` cuts the product and answers these bytes; `end(tile, f)` is what is left to do after jobs.
    """
    element = getattr(np, tile.dtype)

    def run(table, out, x, a, b, beta, alpha, trusted):
        words, factors, t = scratch(BYTES), scratch(16), table_at(table)
        f = words_at(words)
        if alone(tile, f, out, x, a, b, beta, trusted) != DONE:
            return DECLINED
        need = plan(tile, f, t.workers)
        if need > t.size:
            return need
        f.room, f.workers = t.room, t.workers
        factored(tile, f, factors, element(alpha), element(beta))
        threads.shared(t.launch, t.kernel, words, words + TASKS)
        end(tile, f)
        return DONE

    return entry(run, "int64(int64, int64, int64, int64, int64, float64, float64, boolean)", name)


def in_room(run, work: int, workers: int, out, x, a, b, beta, alpha, trusted: bool) -> int:
    """`run`, which launches `work`, with as much room as it asks for: DONE or DECLINED."""
    need, status, table = 0, DECLINED + 1, launch_table(work)
    threads.open_up()
    table.workers = workers
    while status > DECLINED:
        own = room(need)
        with own as table.room:
            table.size = own.buffer[0]
            status = run(table.buffer_info()[0], id(out), x, id(a), id(b), beta, alpha, trusted)
        need = status
    return status
