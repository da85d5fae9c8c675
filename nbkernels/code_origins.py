"""specializations(): the compiled functions of this process, and where each came from."""

from __future__ import annotations

from typing import NamedTuple

COMPILED, CACHED, PACKAGED = "compiled", "cached", "packaged"


class Specialization(NamedTuple):
    """One compiled function: `where` is compiled, here and now; cached, on disk by an earlier process; or packaged
    and for which level of processors. `bytes` of machine code, `seconds` to compile or to load it; of two that are
    compiled one within the other, the outer one's count both."""

    name: str
    where: str
    bytes: int
    seconds: float


class Specializations(list):
    """Of them; printed, a table."""

    def __str__(self):
        from tabulate import tabulate

        return tabulate(self, Specialization._fields, floatfmt=".4f", intfmt=",", disable_numparse=[0, 1])


_noted = Specializations()
note = _noted.append


def specializations() -> Specializations:
    """The compiled functions that this process has, in the order in which it came to them.

    >>> import numpy as np, nbkernels
    >>> _ = nbkernels.add(np.ones(4), 1.0)
    >>> found = nbkernels.specializations()
    >>> {each.where.split()[0] for each in found} <= {"compiled", "cached", "packaged"}
    True
    """
    return Specializations(_noted)
