"""Launches of threads that compiled code makes by itself: the table that it goes by."""

from __future__ import annotations

from ..jit.address import number, pointer
from ..jit.cache import jit
from . import threads

# A table: threads.WORDS, the kernel, the address of a room or 0, the threads that work in it.
LAUNCH, KERNEL, ROOM, WORKERS, TABLE = range(5)


@jit(forceinline=True)
def launchable(table):
    """Threads of a launch that compiled code may make by itself; or 0."""
    launch = pointer(pointer(table)[LAUNCH])
    return number(launch[threads.COUNT]) if launch[threads.SHARE] != 0 else 0
