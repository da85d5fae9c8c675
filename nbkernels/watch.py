"""watch(): which calls on `asarray` arrays ran here, which in NumPy, and why there."""

from __future__ import annotations

import importlib
import weakref
from contextvars import ContextVar
from typing import NamedTuple

from .shield import Block

HERE, NUMPY = "nbkernels", "NumPy"
LOOPS = "nbkernels.in_numpy.report"  # by name, where a block begins


class Call(NamedTuple):
    """One call: `name` ran `where`, in NumPy because of `why`. Of NumPy's loops that use_in_numpy looks after, `calls`
    that had one fate, and their elements or multiply-adds, `work`."""

    name: str
    where: str
    why: str = ""
    calls: int = 1
    work: int = 0

    def __str__(self):
        times = f"{self.calls} times" + f", {self.why}" * bool(self.why) if self.work else self.why
        return f"{self.name:24}{self.where:12}{times}".rstrip()


class Log(list):
    """The calls in their order; printed, a line each."""

    def __str__(self):
        return "\n".join(map(str, self))

    @property
    def fallbacks(self):
        """The calls that ran in NumPy."""
        return [call for call in self if call.where == NUMPY]


_log = ContextVar("nbkernels_watch", default=None)
current = _log.get  # the log to enter calls in, or None
_open: weakref.WeakSet[watch] = weakref.WeakSet()  # of all threads; an end that a signal has lost is found


def watching() -> int:
    """How many blocks are open, in all threads."""
    return len(_open)


def _loops():
    """What counts NumPy's loops, which has nothing to count before use_in_numpy is used."""
    return importlib.import_module(LOOPS)


class watch(Block):
    """with watch() as log: the calls on `asarray` arrays in the block, in this thread or task

    Ufuncs, their methods and operators are seen, and NumPy's functions: `np.sum` and others that call ufuncs as these,
    `np.concatenate` and others that do not by themselves. Methods of the array that call none, as `x.sort()`, are not.
    Blocks may be nested: a call is noted by the innermost. With `use_in_numpy`, what became of the loops of NumPy's
    ufuncs comes at the end of the block: those of the whole process, summed by ufunc, dtype and reason.

    >>> import numpy as np, nbkernels
    >>> x = nbkernels.asarray([1.0, 4.0])
    >>> with nbkernels.watch() as log:
    ...     y = np.spacing(x) + x
    >>> print(log)
    spacing                 NumPy       nbkernels has no spacing
    add                     nbkernels
    """

    def _begin(self) -> Log:
        self.log, self.before = Log(), None
        self.token = _log.set(self.log)
        _open.add(self)
        self.before = _loops().begin()
        return self.log

    def _end(self):
        _log.reset(self.token)
        _open.discard(self)
        if self.before:
            self.log += _loops().end(self.before)
        _loops().apply()
