"""The first element-wise calls of a process, which NumPy makes where it has the same bits.
So none of them waits for Numba (0.2 to 0.6 s to import) or for a kernel (0.2 s to load, 0.5 to compile).

NBKERNELS_FIRST_CALLS=n   how many calls of a kind are the first ones; 0 for none

What the compiler's rooms do for the first calls of other kinds is counted in jit/compile/python_first.py.
"""

from __future__ import annotations

import os
import sys
import warnings

import numpy as np

from . import background
from .dispatch import keys
from .dtypes import ALONE, kind, known, resolve, ufunc
from .operations import ELEMENTWISE

VARIABLE, USUAL = "NBKERNELS_FIRST_CALLS", 32
MOST = 1 << 20  # elements of a result: NumPy takes 0.2 to 5 ms for them
LARGEST = 1 << 15  # of a number, which every dtype but the small integers' holds: NumPy's error for those is not ours

# Kinds of dtypes in which an operation has one result, to the bit: it is exact, or rounded once. Not the sign of a zero
# that is the larger of two, nor what warns.
KINDS = {op: row.exact for op, row in ELEMENTWISE.items() if row.exact}


def asked(text: str) -> int:
    """The number in the variable."""
    if text.isdecimal():
        return int(text)
    warnings.warn(
        f"{VARIABLE}={text!r} is no number of calls: {USUAL} are the first ones", RuntimeWarning, stacklevel=2
    )
    return USUAL


CALLS = asked(os.environ.get(VARIABLE, str(USUAL)))  # that are made without what is compiled for later ones


def first(op):
    """The fast path of an operation's first calls, for NumPy's arrays and numbers; None where they are over."""
    kinds = KINDS.get(op.schema.name)
    if kinds is None or not CALLS or "NBKERNELS_RECORD" in os.environ:  # a record has what is compiled
        return None
    found = _MADE.setdefault(op.schema.full_name, First(op, kinds))
    return None if found.over else found


_MADE: dict[str, First] = {}


class First:
    """The fast path of one operation's first calls: NumPy makes them, until there were enough or one is not for NumPy.
    That one and all others are for the fast path of later calls. What calls need after the first ones is compiled in a
    thread of its own, as jit/compile/python_first.py says, and until it is there NumPy goes on."""

    def __init__(self, op, kinds: str):
        self.op, self.kinds, self.ufunc = op, kinds, ufunc(op.schema.name)
        self.inputs, self.calls, self.over = 1 if op.schema.name in ALONE else 2, 0, False
        self.usual = 0 if op.schema.name == "round" else ONE  # decimals, or alpha

    def __call__(self, *given):
        if background.here():
            return self.op.table.row(keys.CPU).row.load_fast()(*given)
        self.calls += 1
        *inputs, out = given
        usual = len(inputs) == self.inputs or inputs.pop() is self.usual
        if usual and self._suits(inputs, out) and self._lasts():
            try:
                with np.errstate(all="ignore"):
                    return self.ufunc(*inputs, out=out)
            except (TypeError, ValueError, OverflowError):  # the general path says what is wrong
                pass
        later = self._end(given)
        return later and later(*given)

    def with_keywords(self, *given):
        """Calls with keywords are none of them."""
        later = self._end(given)
        return later and later.with_keywords(*given)

    def _end(self, given):
        """The fast path of later calls like this one, or None."""
        self.over = True
        self.op.forget()
        return self.op.enrol(tuple(type(given[i]) for i in self.op.keyed))

    def _lasts(self) -> bool:
        """Whether this call is one of the first."""
        if self.calls <= CALLS:
            return True
        if self.calls > 2 * CALLS:
            return background.busy()
        return not background.made(sys._getframe(2))

    def _suits(self, inputs, out) -> bool:
        name, arrays = self.op.schema.name, [x for x in inputs if type(x) is np.ndarray]
        numbers = [x for x in inputs if type(x) in (int, float) and -LARGEST <= x <= LARGEST]
        if len(arrays) + len(numbers) < len(inputs) or (numbers and name.startswith("logical")):
            return False
        try:
            if not all(known(x.dtype) for x in arrays) or np.broadcast(*arrays).size > MOST:
                return False
            first, second, result = resolve(name, kind(inputs[0]), kind(inputs[-1]))
        except (TypeError, ValueError):
            return False
        if first.kind not in self.kinds or second.kind not in self.kinds or out is None:
            return first.kind in self.kinds and second.kind in self.kinds
        whole = type(out) is np.ndarray and out.dtype == result and out.flags.c_contiguous and out.flags.writeable
        return whole and all(x.shape == out.shape for x in arrays)


ONE = 1
