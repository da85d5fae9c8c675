"""watch(): which calls on `asarray` arrays ran here, which in NumPy, and why there."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

HERE, NUMPY = "nbkernels", "NumPy"


@dataclass(frozen=True)
class Call:
    """One call: `name` ran `where`, in NumPy because of `why`."""

    name: str
    where: str
    why: str = ""

    def __str__(self):
        return f"{self.name:24}{self.where:12}{self.why}".rstrip()


class Log(list):
    """The calls in their order; printed, a line each."""

    def __str__(self):
        return "\n".join(map(str, self))

    @property
    def fallbacks(self):
        """Those that ran in NumPy."""
        return [call for call in self if call.where == NUMPY]


_log = ContextVar("nbkernels_watch", default=None)
current = _log.get  # the log to enter calls in, or None


class watch:
    """with watch() as log: the calls on `asarray` arrays in the block, in this thread or task

    Ufuncs, their methods and operators are seen, and NumPy's functions: `np.sum` and others that call ufuncs as these,
    `np.concatenate` and others that do not by themselves. Methods of the array that call none, as `x.sort()`, are not.
    Blocks may be nested: a call is noted by the innermost.

    >>> import numpy as np, nbkernels
    >>> x = nbkernels.asarray([1.0, 4.0])
    >>> with nbkernels.watch() as log:
    ...     y = np.spacing(x) + x
    >>> print(log)
    spacing                 NumPy       nbkernels has no spacing
    add                     nbkernels
    """

    def __enter__(self) -> Log:
        log = Log()
        self.token = _log.set(log)
        return log

    def __exit__(self, *exception):
        _log.reset(self.token)
