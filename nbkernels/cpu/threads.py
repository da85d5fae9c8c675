"""The safe way to run in parallel: one launcher for every kernel of the library.

A kernel is a C function void(int64 context, int64 task); `launch` calls it for every task. Numba's threading layers
differ in what they survive, so each is used only where it is safe and the same tasks run serially elsewhere: results do
not depend on it.

- workqueue aborts the process when two threads are in parallel code at once: parallel only from the sole Python thread.
- omp (GNU) kills a forked child at its first parallel region if the parent had one: serial after a fork.
- every layer: one launch at a time from this library; a thread that finds another one launching works by itself.
"""

from __future__ import annotations

import functools
import os
import threading

import numba
from numba import prange

from ..jit.address import call
from ..jit.cache import entry

_launching = threading.Lock()
_forked = False


def _after_fork() -> None:
    global _forked, _launching
    _forked, _launching = True, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@functools.cache
def layer() -> str:
    """Numba's threading layer, started if it has not been: tbb, omp, workqueue, or none."""
    from numba.np.ufunc.parallel import _launch_threads

    try:
        _launch_threads()
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
    return numba.get_num_threads() if _safe() else 1


@functools.cache
def _runner(parallel: bool):
    loop = prange if parallel else range

    def run(address, context, tasks):
        for task in loop(tasks):
            call(address, context, task)

    return entry(run, "void(int64, int64, int64)", "parallel" if parallel else "serial", nogil=True, parallel=parallel)


def launch(address: int, context: int, tasks: int) -> None:
    """Call the kernel at `address` with `context` for every task in range(tasks), in parallel where that is safe."""
    if tasks > 1 and count() > 1 and _launching.acquire(blocking=False):
        try:
            _runner(True)(address, context, tasks)
        finally:
            _launching.release()
    else:
        _runner(False)(address, context, tasks)
