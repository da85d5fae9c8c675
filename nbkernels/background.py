"""A thread that compiles the code of later calls, while the first calls go on without it.

The thread makes the call again, of arrays of ones with the same dtypes, shapes and strides (calls/call.py), and there
no call is a first one. LLVM lets go of the GIL and Numba's passes share it: while 6.7 s of compilation ran, calls of
the main thread took 2.3 us as ever, 21 us in the mean (2 cores, AVX2, 2026-11).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import sys
import threading

import numpy as np

from .shield import importing, in_children, start

CALL, RECORD = "nbkernels.calls.call", "nbkernels.calls.record"  # by name, once a call is to be made again
_asked: dict[str, bool] = {}  # calls, as lines of a record, and other work -> whether it is done
_waiting: list = []  # of these, which are still to be done, and how
_lock = threading.Condition()
_thread: int | None = None  # the thread that makes them, while there are any
_ending = False


class Ended(BaseException):
    """The process ends: nothing more is compiled for it."""


def here() -> bool:
    """Whether this is the thread that compiles ahead."""
    return _thread == threading.get_ident()


def busy() -> bool:
    return _thread is not None


def kept(entries: dict, key, found):
    """What was found for a key, among the entries that calls look at first; in this thread it is not, for what it hands
    on to is not compiled yet."""
    if not here():
        entries[key] = found
    return found


def made(frame) -> bool:
    """Whether what later calls need is there, of the public call that leads to a frame; else it is on its way. True
    where the call cannot be made again: of a function without a name, say."""
    line = importlib.import_module(RECORD).call_of(frame)
    if line in _asked:
        return _asked[line]
    module = importlib.import_module(CALL)
    try:
        return done(line, functools.partial(_again, module.Call.parse(line)))
    except module.Unfit:
        return True


def _again(call) -> None:
    function, args, keywords = call.made()
    for _ in range(2):  # the second is the first one of its layout that needs no checks
        function(*args, **keywords)


def done(key: str, work) -> bool:
    """Whether `work()` of a key is done, or cannot be; else the thread will do it."""
    with _lock:
        if key not in _asked:
            _asked[key] = _ending or not _ask(key, work)
        return _asked[key]


def _ask(key: str, work) -> bool:
    """Whether the thread will do the work."""
    global _thread
    _waiting.append((key, work))
    if _thread is None:
        _thread = 0  # until it says which one it is
        try:
            start(_work)
        except RuntimeError:  # there are no more threads
            _thread = None
            _waiting.clear()
            return False
    return True


def _work() -> None:
    global _thread
    _thread = threading.get_ident()
    while True:
        with _lock:
            if _ending or not _waiting:
                _thread = None
                _lock.notify_all()
                return
            key, work = _waiting.pop(0)
        # The caller of a call that raises sees the error where it makes the call itself.
        imported = contextlib.nullcontext() if "numba" in sys.modules else importing()
        with contextlib.suppress(Exception, Ended), np.errstate(all="ignore"), imported:
            work()
        _asked[key] = True


def proceed() -> None:
    """Called before each compilation: end in this thread where the process ends."""
    if _ending and here():
        raise Ended


@atexit.register
def _end() -> None:
    """LLVM must not run while the process ends: wait for the compilation that is under way."""
    global _ending
    _ending = True
    with _lock:
        _lock.wait_for(lambda: _thread is None)


def _after_fork() -> None:
    """The thread is not in the child, which asks anew."""
    global _thread, _lock
    _thread, _lock = None, threading.Condition()
    _waiting.clear()
    _asked.clear()


in_children(_after_fork)
