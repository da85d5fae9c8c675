"""Threads for every kernel of the library, and the one function that launches work on them.

A kernel is a C function void(int64 context, int64 task); `launch` calls it for every task, which all finish one after
another, too. The launching thread never depends on the others: it offers each helper its tasks, does its own, and then
takes back and does what no helper has begun. So a helper that the system has put to sleep, or behind another thread on
the same core, costs nothing but its help. Numba's layers wait for all of their threads, up to a tick of the system's
clock (a call of 30 us then takes 4 ms); GNU's OpenMP kills a forked child, and workqueue a process where two threads
launch at once.

Only one launch at a time is shared: a thread that finds another one launching works by itself.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import sys
import threading
import time
from importlib import import_module

import numpy as np

from ...jit.abi.address import INT32, asked, invoke, pointer, set_word
from ...jit.abi.flags import given, modes, set_modes, taken
from ...jit.abi.record import Record
from ...jit.abi.sharing import (
    SPINS,
    exchange,
    keep_off,
    let_others,
    reacquire,
    release,
    replace,
    seen,
    set_in,
    sleep,
    wait,
    wake,
)
from ...jit.compile.cache import compiled, entry
from ...jit.compile.lazy import jit
from ...jit.disk.settings import cores, numba_decides
from ...shield import after_import, import_numba, in_children, start, whole
from ...threads import LIMITS, ceiling

# What launches go by, also those that compiled code makes by itself while it holds the GIL: whether one is under way,
# the address of `_share` if compiled code may make one, Numba's C functions that read and set the thread's number of
# threads (0 without Numba), nbkernels/threads.py's limits, helpers and their places, how the launching thread computes,
# and the flags that helpers have raised.
POOL = Record("Pool", "busy share count set limits helpers places modes raised")
# A helper's place, a cache line: what it does, the lock that it sleeps at, what it is offered, its system's number.
HELPER = Record("Helper", "state lock kernel context first step tasks thread")
pool_at, helper_at = POOL.pointer(), HELPER.pointer()
BUSY, RAISED, STATE = POOL["busy"], POOL["raised"], HELPER["state"]
PARALLEL = "numba.np.ufunc.parallel"
WORKING, IDLE, ASLEEP, OFFERED = range(4)
LINE = 8  # words
PATIENCE = 64 * SPINS  # looks for work, 0.6 ms of them, before a helper sleeps: to wake it takes 50 us

_words = POOL.array()
WORDS = _words.buffer_info()[0]
_rooms: list = []  # of the helpers' places
_new_lock = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThread_allocate_lock", ctypes.pythonapi))
_close = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(("PyThread_acquire_lock", ctypes.pythonapi))
_beginning = threading.Lock()


def _after_fork() -> None:
    """The child has no helpers yet."""
    _words[:] = POOL.array()
    _beginning._at_fork_reinit()


in_children(_after_fork)


# -- how many ----------------------------------------------------------------------------------------------------------


@functools.cache
def layer() -> str:
    """Numba's threading layer, started if it has not been, for it knows how many threads: tbb, omp, workqueue, none."""
    from concurrent.futures import ThreadPoolExecutor

    import_numba()
    numba, parallel = sys.modules["numba"], import_module(PARALLEL)
    try:
        with whole(), ThreadPoolExecutor(1) as apart:  # it sets its thread's number for OpenMP, which is torch's, too
            apart.submit(parallel._launch_threads).result()
        LIMITS[1] = min(ceiling(), numba.config.NUMBA_NUM_THREADS)
        _numbas[:] = parallel._get_num_threads, parallel._set_num_threads
        return numba.threading_layer()
    except (ValueError, RuntimeError):  # no layer could be loaded, or no thread started
        return "none"


@functools.cache
def _several() -> bool:
    """Whether there can be several threads, LIMITS[1] at most: what Numba says if it is there, else its default."""
    if numba_decides("NUMBA_THREADING_LAYER"):
        return layer() != "none"
    LIMITS[1] = min(ceiling(), cores())
    return True


def count() -> int:
    """Threads that the next launch would use: what the innermost block of nbkernels.threads says, else
    numba.get_num_threads(); at most OMP_NUM_THREADS."""
    if not _several():
        return 1
    # Numba's own function takes 0.6 us to see that they are there.
    return min(LIMITS[0] or (_numbas[0]() if _numbas else LIMITS[1]), LIMITS[1])


_numbas: list = []  # Numba's C functions that read and set the thread's number of threads, once there are any


def _numba_is_there(parallel) -> None:
    """Numba's module of threads was imported: from the first time on that somebody asks it for its number of threads,
    or changes it, that number counts."""
    launch = parallel._launch_threads

    def launch_threads():
        launch()
        parallel._launch_threads = launch
        layer()
        _open_words()

    parallel._launch_threads = launch_threads


def _open_words() -> None:
    """Tell compiled code where Numba's functions are."""
    if _numbas:
        _words.count, _words.set = (ctypes.cast(each, ctypes.c_void_p).value for each in _numbas)


if "numba" in sys.modules:
    import_numba()  # which another thread may be at
    _numba_is_there(import_module(PARALLEL))
else:
    after_import(PARALLEL, _numba_is_there)


# -- helpers -----------------------------------------------------------------------------------------------------------


def _serve(words, place):
    """What a helper does for as long as the process lives."""
    pool, w, looks = pool_at(words), helper_at(place), 0
    sleep(w.lock, 1)
    while w.lock != 0:
        while seen(w, STATE) != OFFERED:
            looks += 1
            if looks % SPINS == 0:
                let_others()
            if looks >= PATIENCE and replace(w, STATE, IDLE, ASLEEP):
                sleep(w.lock, 1)
                looks = 0
        if replace(w, STATE, OFFERED, WORKING):
            set_modes(pool.modes)  # a thread keeps those of whoever started it, and elements would round in two ways
            for task in range(w.first, w.tasks, w.step):
                invoke(w.kernel, (w.context, task))
            set_in(pool, RAISED, taken())
            exchange(w, STATE, IDLE)
            looks = 0


def _begin() -> None:
    """Start the helpers, asleep; fewer where the system gives no more threads."""
    helpers, begun, line = LIMITS[1] - 1, 0, 8 * LINE

    def begin(place, w):
        w[HELPER["thread"]] = threading.get_native_id()
        serve(WORDS, place)

    room, serve = np.zeros(LINE * (helpers + 1), np.int64), entry(_serve, "void(int64, int64)", "serve", nogil=True)
    places = -(-room.ctypes.data // line) * line
    _rooms.append(room)
    with contextlib.suppress(RuntimeError):  # no more threads
        while begun < helpers:
            place = places + begun * line
            w = (ctypes.c_int64 * LINE).from_address(place)
            w[STATE], lock = ASLEEP, _new_lock()
            w[HELPER["lock"]] = lock
            _close(lock, 1)  # it opens for a moment to wake the helper
            start(begin, place, w)
            begun += 1
    _words.places, _words.helpers = places, begun


@atexit.register
def _rest() -> None:
    """Before Python takes the compiled code away helpers sleep, and nobody wakes them any more."""
    _words.busy, end = 1, time.monotonic() + 0.5
    states = [ctypes.c_int64.from_address(_words.places + 8 * LINE * i) for i in range(_words.helpers)]
    while any(state.value != ASLEEP for state in states) and time.monotonic() < end:
        time.sleep(1e-4)


# -- launches ----------------------------------------------------------------------------------------------------------


@jit(forceinline=True)
def own(w):
    """The calling thread's number of threads, where launches may be made: Numba's, if it has one."""
    return asked(w.count, ()) & INT32 if w.count != 0 else pointer(w.limits)[1]


@jit(forceinline=True)
def workers(w):
    """What `count` says, where launches may be made."""
    limits = pointer(w.limits)
    return min(limits[0] if limits[0] > 0 else own(w), limits[1])


@jit
def _all(words, kernel, context, tasks):
    """The kernel for every task, shared with the helpers if nobody else is at it; the flags that they raise, too.
    (Sleeping ones that are woken for the next launch alone gain nothing beside peers' threads, and lose their half,
    1.03 for 0.55, 3 ms after a launch.)"""
    w = pool_at(words)
    helpers = min(w.helpers, tasks - 1)
    if helpers < 1 or exchange(w, BUSY, 1) != 0:
        for task in range(tasks):
            invoke(kernel, (context, task))
        return
    w.modes, w.raised = modes(), 0
    for helper in range(helpers):
        place = helper_at(w.places + helper * 8 * LINE)
        place.kernel, place.context = kernel, context
        place.first, place.step, place.tasks = helper + 1, helpers + 1, tasks
        if exchange(place, STATE, OFFERED) == ASLEEP:
            if place.thread != 0:  # else it may wake on this core, and share it for 2-14 ms while others idle
                keep_off(place.thread)
            wake(place.lock)
    for task in range(0, tasks, helpers + 1):
        invoke(kernel, (context, task))
    for helper in range(helpers):
        if replace(helper_at(w.places + helper * 8 * LINE), STATE, OFFERED, IDLE):
            for task in range(helper + 1, tasks, helpers + 1):
                invoke(kernel, (context, task))
    for helper in range(helpers):
        wait(helper_at(w.places + helper * 8 * LINE), STATE, IDLE)
    given(w.raised)
    exchange(w, BUSY, 0)


def _share(words, kernel, context, room):
    """Call the kernel with `context` for as many tasks as there are threads, a number that goes to `room`, without the
    GIL, which the caller holds."""
    w = pool_at(words)
    tasks = workers(w) if w.busy == 0 else 1
    set_word(room, tasks)
    state = release()
    _all(words, kernel, context, tasks)
    reacquire(state)


@jit(forceinline=True)
def shared(words, kernel, context, room):
    """Call `_share` from compiled code that holds the GIL; without threads, run task 0 alone and do not set `room`."""
    share = pool_at(words).share
    if share != 0:
        invoke(share, (words, kernel, context, room))
    else:
        invoke(kernel, (context, 0))


@jit
def unheld(words, kernel, context, room):
    """Call the kernel for one task per thread, their number written to `room`; the GIL stays as it is, held or not."""
    w = pool_at(words)
    tasks = workers(w) if w.share != 0 and w.busy == 0 else 1
    set_word(room, tasks)
    _all(words, kernel, context, tasks)


@functools.cache
def _launcher():
    def run(words, kernel, context, tasks):
        _all(words, kernel, context, tasks)

    return entry(run, "void(int64, int64, int64, int64)", "launch", nogil=True)


def open_up() -> bool:
    """Let compiled code launch by WORDS; False where it cannot be known by how many threads."""
    if not _words.share:
        if not _several():
            return False
        with whole(), _beginning:
            if not _words.places:
                _begin()
        _open_words()
        _words.limits = LIMITS.buffer_info()[0]
        _words.share = compiled(_share, "void(int64, int64, int64, int64)", "share")
    return True


def launch(kernel: int, context: int, tasks: int) -> None:
    """Call the kernel at this address with `context` for every task in range(tasks), shared among threads."""
    if tasks > 1:
        open_up()
    _launcher()(WORDS, kernel, context, tasks)


def _fewer(words, most):
    """The calling thread's number where it is more than `most` and no block says another one; else 0."""
    w = pool_at(words)
    now = own(w)
    return now if now > most and pointer(w.limits)[0] == 0 else 0


def _set(words, threads):
    """Give the calling thread this number."""
    invoke(pool_at(words).set, (threads,))


def own_number():
    """`_fewer` and `_set` as functions of a number of threads; without threads, one that returns 0, and None."""
    if layer() == "none" or not open_up():
        return (lambda most: 0), None
    _open_words()
    fewer = functools.partial(entry(_fewer, "int64(int64, int64)", "fewer_threads"), WORDS)
    return fewer, functools.partial(entry(_set, "void(int64, int64)", "set_threads"), WORDS)
