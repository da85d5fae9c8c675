"""Launches of threads that compiled code makes by itself, and the table that they need."""

from __future__ import annotations

from ...jit.abi.record import Record
from ...jit.compile.lazy import jit
from .threads import WORDS, pool_at, workers

# What a launch goes by: threads.WORDS, the kernel, a room or 0 and its bytes, its threads, and where the kept room is
# told of.
TABLE = Record("Launch", "launch kernel room workers kept size")
table_at, SIZE = TABLE.pointer(), TABLE.bytes


def launch_table(kernel: int = 0, kept: int = 0):
    """Such a table."""
    made = TABLE.array()
    made.launch, made.kernel, made.kept = WORDS, kernel, kept
    return made


@jit(forceinline=True)
def launchable(table):
    """Threads of a launch that compiled code may make by itself; or 0."""
    pool = pool_at(table_at(table).launch)
    return workers(pool) if pool.share != 0 else 0


@jit(forceinline=True)
def available(table):
    """Threads that a plan may count on: of a launch, or those that the table names; 0 where nothing says how many."""
    return launchable(table) or table_at(table).workers
