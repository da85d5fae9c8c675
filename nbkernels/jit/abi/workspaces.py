"""Workspaces of compiled code that are too large for a stack: threads may have one of 128 KiB.

A function takes a workspace with `acquire` and gives it back with `release`, both with the same literal size. The
first one belongs to the compiled function; where several threads are in it at once the others get memory from Python's
allocator, and up to MOST such workspaces stay for the next calls. Neither needs the GIL, and `acquire` always succeeds:
without memory the thread waits until another one releases its workspace.
"""

from __future__ import annotations

from ..compile.lazy import jit
from .address import c_function, pointer, set_word, static, word
from .sharing import exchange, let_others, replace, seen

MOST = 16
TABLE = 8 * (1 + MOST)  # bytes: whether the function's own room is taken; the addresses of those that wait, or 0
LINE = 64  # bytes of a cache line, at which a room begins
# Python's allocator that needs no GIL: an address, or 0.
_allocate, _free = c_function("PyMem_RawMalloc", "int64(int64)"), c_function("PyMem_RawFree", "void(int64)")


@jit(forceinline=True)
def acquire(size):
    """Address of `size` (a literal) bytes at the start of a cache line, the caller's until it calls `release`."""
    return _acquire(static(TABLE), static(size), size)


@jit(forceinline=True)
def release(size, room):
    """The room is the next caller's."""
    _release(static(TABLE), static(size), room)


@jit
def _acquire(table, own, size):
    w = pointer(table)
    if exchange(w, 0, 1) == 0:
        return own
    while True:
        for i in range(1, MOST + 1):
            if seen(w, i) != 0:
                room = exchange(w, i, 0)
                if room != 0:
                    return room
        memory = _allocate(size + LINE)
        if memory != 0:
            room = (memory + LINE) & -LINE
            set_word(room - 8, memory)
            return room
        let_others()


@jit
def _release(table, own, room):
    w = pointer(table)
    if room == own:
        exchange(w, 0, 0)
        return
    for i in range(1, MOST + 1):
        if replace(w, i, 0, room):
            return
    _free(word(room - 8))


@jit
def allocate(size):
    """Address of `size` bytes at the start of a cache line, of any size, the caller's until it calls `free`."""
    while True:
        memory = _allocate(size + 2 * LINE)
        if memory != 0:
            room = (memory + 2 * LINE) & -LINE
            set_word(room - 8, memory)
            return room
        let_others()


@jit
def free(room):
    """The system has them back."""
    _free(word(room - 8))
