"""The safe way to run in parallel: one launcher for every kernel of the library.

A kernel is a C function void(int64 context, int64 task); `launch` calls it for every task. Numba's threading layers
differ in what they survive, so each is used only where it is safe and the same tasks run serially elsewhere: results do
not depend on it.

- workqueue aborts the process when two threads are in parallel code at once: parallel only from the sole Python thread.
- omp (GNU) kills a forked child at its first parallel region if the parent had one: serial after a fork.
- every layer: one launch at a time from this library; a thread that finds another one launching works by itself.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading

import numba
import numpy as np
from numba import prange
from numba.np.ufunc import parallel as pool

from ..jit.address import call, invoke, number, pointer, reacquire, release, set_word, word
from ..jit.cache import compiled, entry, native

# What launches go by, also those that compiled code makes by itself while it holds the GIL: whether one is under way,
# the address of `_share` if compiled code may make one, those of the runner and of a C function that counts threads.
BUSY, SHARE, RUNNER, COUNT = range(4)  # words
_words = np.zeros(4, np.int64)
WORDS = _words.ctypes.data
_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True
    _words[:] = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@functools.cache
def layer() -> str:
    """Numba's threading layer, started if it has not been: tbb, omp, workqueue, or none."""
    try:
        pool._launch_threads()
        return numba.threading_layer()
    except ValueError:  # no layer could be loaded
        return "none"


def _safe() -> bool:
    """Whether a parallel region may be entered here and now."""
    if _forked:
        return False
    name = layer()
    if name == "workqueue":
        return threading.active_count() == 1 and threading.current_thread() is threading.main_thread()
    return name != "none"


def count() -> int:
    """Threads that the next launch would use: numba.get_num_threads(), or 1 where parallel work is not safe."""
    return pool._get_num_threads() if _safe() else 1  # Numba's own takes 0.6 us to see that its threads are there


def _run(parallel: bool):
    loop = prange if parallel else range

    def run(address, context, tasks):
        for task in loop(tasks):
            call(address, context, task)

    return run, "void(int64, int64, int64)", "parallel" if parallel else "serial"


@functools.cache
def _runner(parallel: bool):
    return entry(*_run(parallel), nogil=True, parallel=parallel)


@functools.cache
def _taker():
    def take(words):
        taken = word(words + 8 * BUSY)
        set_word(words + 8 * BUSY, 1)
        return taken == 0

    return entry(take, "boolean(int64)", "take")


def _share(words, address, context, room):
    """Call the kernel at `address` with `context` for as many tasks as there are threads, a number that goes to `room`,
    without the GIL, which the caller holds."""
    w = pointer(words)
    tasks = number(w[COUNT]) if w[BUSY] == 0 else 1
    set_word(room, tasks)
    if tasks > 1:
        w[BUSY] = 1
    state = release()
    if tasks > 1:
        invoke(w[RUNNER], (address, context, tasks))
    else:
        call(address, context, 0)
    reacquire(state)
    if tasks > 1:
        w[BUSY] = 0


def open_up() -> bool:
    """Let compiled code launch by WORDS; False where only `launch` may."""
    if not _words[SHARE]:
        if not _safe() or layer() == "workqueue":
            return False
        counter = ctypes.cast(pool._get_num_threads, ctypes.c_void_p).value
        _words[RUNNER:] = native(*_run(True), nogil=True, parallel=True), counter
        _words[SHARE] = compiled(_share, "void(int64, int64, int64, int64)", "share")
    return True


def launch(address: int, context: int, tasks: int) -> None:
    """Call the kernel at `address` with `context` for every task in range(tasks), in parallel where that is safe."""
    if tasks > 1 and count() > 1 and _taker()(WORDS):
        try:
            _runner(True)(address, context, tasks)
        finally:
            _words[BUSY] = 0
    else:
        _runner(False)(address, context, tasks)
