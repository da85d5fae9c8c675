"""Timing of functions in turns; knows no kernel. The module is callable: `nbkernels.tune(...)` is the tuner.

- medians({name: call}): interleaved timing, name -> median seconds
- tune(shape, dtype=...): the fastest tiles of matrix products, kept and used (nbkernels/tuning/run.py)
"""

import importlib
import statistics
import sys
import time
import types

LEAST = 1e-9  # seconds of a call for which the clock did not move


def settle(limit=0.5):
    """Return when the other threads of this process sleep, or after `limit` seconds.

    OpenBLAS's threads spin for 2**28 clock ticks after a call, 0.1 s, and take a core from whoever is timed next: at
    n = 1024 on 2 cores that made the next product 4 times slower (2026-11).
    """
    end = time.perf_counter() + limit
    while time.perf_counter() < end:
        before = time.process_time()  # of all threads
        time.sleep(0.005)
        if time.process_time() - before < 0.001:
            return


def medians(calls, *, seconds=0.2, rounds=5, progress=iter):
    """{name: median seconds of one call}, from {name: call}, by `samples`."""
    found = samples(calls, seconds=seconds, rounds=rounds, progress=progress)
    return {name: middle(times) for name, times in found.items()}


def middle(times):
    """The median; where the clock gave no time, its least step."""
    return statistics.median(times or [LEAST])


def spread(times):
    """How far apart the middle half of the samples is, over their median: what a row can differ by and be the same.

    >>> spread([1.0, 1.0, 1.0]), spread([1.0, 2.0, 3.0])
    (0.0, 1.0)
    """
    if len(times) < 2:
        return 0.0
    low, _, high = statistics.quantiles(times, n=4)
    return (high - low) / middle(times)


def samples(calls, *, seconds=0.2, rounds=5, progress=iter):
    """{name: seconds of one call, of each round}, from {name: call}: timed in turns, `rounds` times, after a few calls.

    Turns, because machine speed drifts: two things timed one after the other are not compared. A turn repeats its call
    until about seconds / rounds / len(calls) have gone by, so that short calls are not lost in the clock. Before it
    threads settle, and one call is not timed. From here on the process has no first calls (docs/first_call.md).
    """
    from . import first_calls

    first_calls.CALLS, repeats = 0, {}
    for name, call in calls.items():
        for _ in range(2):  # compile, touch the memory: the second call of a layout may compile what recalls it
            call()
        settle()
        repeats[name] = max(1, int(seconds / rounds / len(calls) / _least(call)))
    found = {name: [] for name in calls}
    for _ in progress(range(rounds)):
        for name, call in calls.items():
            turns = range(repeats[name])
            settle()
            call()
            start = time.perf_counter()
            for _ in turns:
                call()
            spent = time.perf_counter() - start
            if spent > 0:  # a clock that was set back tells nothing
                found[name].append(spent / repeats[name])
    return found


def _least(call, calls=5, seconds=0.02):
    """Seconds of the fastest of some calls, of one that takes long: a stall is no measure of how often to repeat."""
    least, end = float("inf"), time.perf_counter() + seconds
    for _ in range(calls):
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        least = min(least, now - start)
        if now > end:
            break
    return max(least, 1e-7)


class _Tune(types.ModuleType):
    """The module, which can be called."""

    __module__ = "nbkernels.tuning.run"  # whose function it is then: for stubs

    def __call__(self, *args, **kwargs):
        return importlib.import_module("nbkernels.tuning.run").tune(*args, **kwargs)

    def __reduce__(self):
        return importlib.import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Tune
