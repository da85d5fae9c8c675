"""An operation's compiled loops by the dtypes of its arrays, as the small entry (entry.py) finds them."""

from __future__ import annotations

import functools

import numpy as np

from ... import scalar
from ...dtypes import known, resolve
from ...jit.abi.new_arrays import words
from ..runtime import threads
from . import gates
from .elementwise import loop
from .entry import HEAD, LARGE, NOTED, ROW, UNKNOWN, allow, small_entry


def joins(op) -> bool:
    """Whether a number gives what it would as an array of the other operand's dtype."""
    return op != "ldexp"


class Table:
    """An operation's compiled loops by the addresses of three dtype objects: rows for the small entry, below its head.

    Only results of the computing dtype are here, so a row that matches a fresh result has found the right dtype for it.
    Of the scaled operations only those on floats are.
    """

    ROWS = 256

    def __init__(self, op: str, kind=np.ndarray):
        self.op = op
        self.rows = np.zeros((self.ROWS, ROW.words), np.int64)  # the last stays zero: the end
        head = HEAD.array()
        head.launch, head.numpy, head.streamed = threads.WORDS, words(joins(op), kind).ctypes.data, gates.STREAMED
        self.rows[0] = head
        self.dtypes = []  # keeps the dtype objects, hence their addresses, alive
        self.address = self.rows.ctypes.data

    @functools.cached_property
    def small(self):
        """The small entry for this table."""
        return small_entry()(self.rows)

    def again(self, answer, dtypes, *given):
        """Call the entry again after UNKNOWN, with loops over these dtypes, or after LARGE, with launches allowed."""
        if answer is UNKNOWN and dtypes is not None and self.add(*dtypes):
            answer = self.small(*given)
        if answer is LARGE and allow(self.rows[0]):
            answer = self.small(*given)
        return answer

    def add(self, out: np.dtype, first: np.dtype, second: np.dtype) -> bool:
        """Compile and enter the loops over these dtypes; False where the small entry will not have them."""
        dtypes, name = (out, first, second), self.op.removesuffix("_scaled")
        try:
            work, _, result = resolve(name, first, second)
        except TypeError:
            return False
        scaled, noted = self.op != name, scalar.find(f"{name}_faults", work) is not None
        if result != out or len(self.dtypes) == self.ROWS - 2 or (name == "pow" and work.kind in "iu"):
            return False
        if not all(map(known, dtypes)) or (scaled and out.name not in ("float32", "float64")):
            return False
        loops = loop(self.op, first, second, out)
        sizes = tuple(d.itemsize for d in dtypes)
        most, many = gates.alone(name, max(sizes)), gates.many(name)
        limits = most << 24 | many << 8 | (out.itemsize if scaled else NOTED * noted)
        row = (*map(id, dtypes), *sizes, loops, limits)
        self.dtypes.append(dtypes)
        self.rows[len(self.dtypes)] = row
        return True
