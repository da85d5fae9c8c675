"""Rooms: memory that a call needs beside its arrays, of which one is kept for the next call."""

from __future__ import annotations

import contextlib
import functools
import threading

import numpy as np

from ...jit.abi.address import pointer
from ...jit.abi.sharing import exchange, replace
from ...jit.compile.cache import entry
from ...jit.compile.lazy import jit
from ...shield import in_children
from .status import LARGE, WANTED

KEPT = 64 << 20  # bytes of the largest room that the next call finds
HELD, PLACE, LENGTH = range(3)  # of the kept room: who has it, if there is one; its address and bytes
NOBODY, PYTHON, COMPILED = range(3)  # who has it; also where there is none it is Python's


class room:
    """Address of `size` bytes at the start of a cache line. One room of up to 64 MiB is kept for the next call: a fresh
    one would cost a page fault every 4 KiB, a tenth of the time at n = 512."""

    def __init__(self, size: int):
        self.rooms = _own.rooms if _own.rooms is not None else _rooms
        self.buffer = _kept() if self.rooms is _rooms else _last(self.rooms)
        if self.buffer is None or self.buffer[0] < size:
            memory = np.empty(size + 64, np.uint8)
            self.buffer = size, -(-memory.ctypes.data // 64) * 64, memory

    def __enter__(self) -> int:
        return self.buffer[1]

    def __exit__(self, *_):
        if self.rooms is not _rooms:
            self.rooms.append(self.buffer)
        else:
            _keep(self.buffer)


def _last(rooms):
    """The last room, taken away, or None."""
    try:
        return rooms.pop()
    except IndexError:
        return None


@functools.cache
def _take():
    """Whether the kept room is nobody's, and is the caller's now."""

    def run(words):
        return replace(pointer(words), HELD, NOBODY, PYTHON)

    return entry(run, "boolean(int64)", "room_take")


def _kept():
    """The kept room, taken away, or None."""
    take = _take()
    with _keeping:
        if _rooms and _room[HELD] == PYTHON:  # a signal came between the word and the list
            _room[HELD] = NOBODY
        if not take(ROOMS):
            return None
        _room[LENGTH] = 0  # there is none: compiled code may ask for one
        return _last(_rooms)


def _keep(buffer):
    """Leave a room to the next call."""
    with _keeping:
        if buffer[0] <= KEPT and not _rooms:
            _rooms.append(buffer)
            _room[LENGTH], _room[PLACE] = buffer[:2]
            _room[HELD] = NOBODY


@jit(forceinline=True)
def acquire(kept, need):
    """From compiled code: the address of the kept room, the caller's until it calls `release`; 0 where it is somebody's
    or smaller than `need` bytes."""
    if not replace(kept, HELD, NOBODY, COMPILED):
        return 0
    if kept[LENGTH] < need:
        exchange(kept, HELD, NOBODY)
        return 0
    return kept[PLACE]


@jit(forceinline=True)
def without(kept, need):
    """The status of a call whose `acquire` failed: WANTED + the bytes it needs, or LARGE if they are there."""
    return WANTED + need if kept[LENGTH] < need and need <= KEPT else LARGE


@jit(forceinline=True)
def release(kept):
    """The kept room is nobody's."""
    exchange(kept, HELD, NOBODY)


def make_room(size: int) -> bool:
    """Whether the next call finds a room of so many bytes: it is made, unless somebody has the one that is kept."""
    with room(size):
        pass
    return _room[LENGTH] >= size


def forget():
    """Give the kept room back to the system, if it is nobody's."""
    _kept()


class _Own(threading.local):
    rooms = None  # the rooms of this thread's products, while it goes through several


_own = _Own()
_rooms: list[tuple[int, int, np.ndarray]] = []  # size, address, memory: of the one that is kept, if there is one
_keeping = threading.Lock()
# As compiled code knows it. Who takes it from Python takes it out of the list, too.
_room = np.array([PYTHON, 0, 0], np.int64)
ROOMS = _room.ctypes.data


def _after_fork() -> None:
    """No other thread gives it back in the child."""
    _keeping._at_fork_reinit()
    if _room[HELD] == COMPILED:
        _room[HELD] = NOBODY


in_children(_after_fork)


@contextlib.contextmanager
def one_room():
    """The products within, alike, use one room, of any size: what the first one had, the others cannot be refused."""
    if _own.rooms is not None:
        yield
        return
    kept = _kept()
    try:
        _own.rooms = [] if kept is None else [kept]
        yield
    finally:
        rooms, _own.rooms = _own.rooms, None
        if rooms:
            _keep(max(rooms, key=lambda buffer: buffer[0]))


@contextlib.contextmanager
def fresh(like):
    """A new array with the shape and dtype of `like`, in a room."""
    own = room(like.nbytes)
    with own as address:
        size, _, memory = own.buffer
        first = address - memory.ctypes.data
        yield memory[first : first + like.nbytes].view(like.dtype).reshape(like.shape)
