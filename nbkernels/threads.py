"""The number of threads that calls take: threads(n), OMP_NUM_THREADS, torch's number; compiled code reads it, too."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from array import array

from .dispatch.adapter import library
from .dispatch.devices import Torch
from .shield import Nested

RUNTIME = "nbkernels.cpu.runtime.threads"  # by name, where a call is narrowed


def ceiling() -> int:
    """The number that OMP_NUM_THREADS gives, of a list the first; as many as can be without one."""
    text = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(text) if text.isdecimal() and int(text) > 0 else sys.maxsize


# The number of the innermost block, or 0; the most that any call takes.
LIMITS = array("q", [0, min(ceiling(), os.cpu_count() or 1)])


@functools.cache
def own_number():
    """(fewer, set): functions of a number of threads, which tell where the calling thread has more and change that."""
    return importlib.import_module(RUNTIME).own_number()


@contextlib.contextmanager
def at_most(n: int):
    """In the block, calls of this thread take at most n threads, where no `threads` block says another number."""
    fewer, number = own_number()
    before = fewer(n)
    try:
        if before:
            number(n)
        yield
    finally:
        if before:
            number(before)


def as_torch():
    """In the block, calls of this thread take no more threads than torch's, by torch.set_num_threads."""
    number = library("torch").get_num_threads()
    return at_most(number) if number < LIMITS[1] else contextlib.nullcontext()


Torch.limited = staticmethod(as_torch)


class threads(Nested):
    """with threads(n): calls in the block take at most n threads, the calling one among them

    It holds for the whole process: in all of its threads, also those that the block starts, as a ThreadPoolExecutor's.
    Of blocks within each other the inner one holds. No call takes more threads than there are, which is
    `numba.config.NUMBA_NUM_THREADS`, nor than OMP_NUM_THREADS says, where it is set.

    Raises TypeError where n is no int, ValueError where it is less than 1.

    >>> import numpy as np, nbkernels
    >>> x = np.ones((600, 600), np.float32)
    >>> with nbkernels.threads(1):
    ...     nbkernels.explain(nbkernels.mm, x, x).threads
    1
    """

    def __init__(self, n: int):
        if not isinstance(n, int) or isinstance(n, bool):
            raise TypeError(f"threads: a number of threads is wanted, not {n!r}")
        if n < 1:
            raise ValueError(f"threads: at least 1 thread is wanted, not {n}")
        self.n = n

    @classmethod
    def _renewed(cls) -> None:
        block = cls.innermost()
        LIMITS[0] = 0 if block is None else block.n
