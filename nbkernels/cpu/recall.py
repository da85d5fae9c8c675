"""Element-wise calls of a layout that has been planned before, in one call of compiled code.

The entry gets an operation's memory, SLOTS words: 0, or the address of a record. The dtypes, shapes and strides of the
arrays, a mask among them where there is one, and a number, the variant, that says what else the loops depend on, are a
key; it goes to the slot that its hash is or, if that is taken, to the one beside it, in place of another. A record is
int64 words:

    LENGTH SLOT WALKER LAUNCH SCALAR CONTEXT  low[4]  high[4]  same[4]  context[CONTEXT]  key[LENGTH]

WALKER goes through the context; LAUNCH is 0, or what threads launch by; SCALAR the bytes of alpha, a float, NOTED where
the loops take note of faults, or 0; low and high are the extents of the arrays, in bytes from their data; same says
which inputs are laid out as out is.
"""

from __future__ import annotations

import functools

import numpy as np
from numba import types

from ..jit.address import call, invoke, pointer, scratch, set_word
from ..jit.cache import entry
from ..jit.ndarray import OBJECT, WRITEABLE, address_of, data, descr, flags, ndim, shape, stride
from ..strides import distinct
from . import threads, walk
from .nest import Nest
from .quick import DECLINED, DONE, FAULTY, NOTED, UNKNOWN
from .small import GIL

SLOTS = 256
LENGTH, SLOT, WALKER, LAUNCH, SCALAR, CONTEXT, LOW, HIGH, SAME, WORDS = (*range(6), 6, 10, 14, 18)
MASKED = 2  # the bit of a variant that says that there is a mask
ROOM = 6144  # bytes of stack for a context or a key of arrays of 64 dimensions, NumPy's most


@functools.cache
def recall_entry():
    """int64(memory, out, x, y, mask, alpha, variant, record): DONE, FAULTY, UNKNOWN, DECLINED where memory may overlap.

    A record that is not 0 is entered first. The mask is not read where the variant is not MASKED.
    """

    def run(memory, out, x, y, mask, alpha, variant, record):
        out, x, y, mask = address_of(out), address_of(x), address_of(y), address_of(mask)
        room = scratch(ROOM)
        key, slots = pointer(room), pointer(memory)
        n, code, operands = 1, variant, 3 if variant & MASKED == 0 else 4
        key[0] = variant
        for p in range(operands):
            z = out if p == 0 else x if p == 1 else y if p == 2 else mask
            key[n] = descr(z) + (ndim(z) << 56)
            code = (code ^ key[n]) * 0x9E3779B97F4A7C1
            n += 1
            for d in range(ndim(z)):
                key[n] = shape(z, d)
                key[n + 1] = stride(z, d)
                code = ((code ^ key[n]) * 31 ^ key[n + 1]) * 0x9E3779B97F4A7C1
                n += 2
        slot = (code >> 40) & (SLOTS - 1)
        if record != 0:
            slot ^= slots[slot] != 0
            r = pointer(record)
            r[LENGTH], r[SLOT], slots[slot] = n, slot, record
            for i in range(n):
                r[WORDS + r[CONTEXT] + i] = key[i]
        found = False
        for way in range(2):
            if not found and slots[slot ^ way] != 0:
                r = pointer(slots[slot ^ way])
                at, found = WORDS + r[CONTEXT], r[LENGTH] == n
                for i in range(n if found else 0):
                    found = found and r[at + i] == key[i]
        if not found or flags(out) & WRITEABLE == 0:
            return UNKNOWN
        for i in range(r[CONTEXT]):
            key[i] = r[WORDS + i]
        start = data(out)
        for p in range(operands):
            at = data(out if p == 0 else x if p == 1 else y if p == 2 else mask)
            touch = p > 0 and at + r[HIGH + p] > start + r[LOW] and start + r[HIGH] > at + r[LOW + p]
            if touch and (at != start or r[SAME + p] == 0):
                return DECLINED
            key[walk.HEADER + p] += at
        scalar = room + ROOM - 16
        faults = pointer(scalar)
        faults[0] = faults[1] = 0
        if r[SCALAR] == 4:
            set_word(scalar, np.float32(alpha))
        elif r[SCALAR] == 8:
            set_word(scalar, alpha)
        key[walk.SCALARS] = scalar
        if r[LAUNCH] == 0:
            call(r[WALKER], room, 0)
        else:
            words = pointer(r[LAUNCH])
            if words[threads.SHARE] == 0:
                return DECLINED
            invoke(words[threads.SHARE], (r[LAUNCH], r[WALKER], room, room + 8 * walk.TASKS))
        return FAULTY + faults[0] + 2 * faults[1] if r[SCALAR] == NOTED and faults[0] + faults[1] > 0 else DONE

    kind = types.int64(types.int64, *[OBJECT] * 4, types.float64, types.int64, types.int64)
    return entry(run, kind, "elementwise_recall")


class Memory:
    """The plans of one operation, by layout."""

    def __init__(self):
        self.slots = np.zeros(SLOTS, np.int64)
        self.address = self.slots.ctypes.data
        self.records = {}  # slot -> (record, dtypes whose addresses are in its key)

    def run(self, found: tuple[Nest, int] | None, out, x, y, mask, alpha: float, variant: int) -> int:
        """Run planned loops, which read `found[1]` beside checked arrays, and keep them: what the entry answers.

        DECLINED also where threads cannot be launched from compiled code, or no GIL guards the slots.
        """
        if found is None or not GIL:
            return DECLINED
        loops, scalar = found
        if not (loops.small or threads.open_up()):
            return DECLINED
        arrays, context = (out, x, y, mask), loops.context(1 if loops.small else threads.count())
        ends = [[(n - 1) * s for n, s in zip(z.shape, z.strides)] for z in arrays]
        own = distinct(out.shape, out.strides, max(loops.itemsizes))
        record = np.array([
            0, 0, loops.walker, 0 if loops.small else threads.WORDS, scalar, len(context),
            *(sum(min(e, 0) for e in end) for end in ends),
            *(sum(max(e, 0) for e in end) + z.itemsize for z, end in zip(arrays, ends)),
            *(own and (z.shape, z.strides) == (out.shape, out.strides) for z in arrays),
            *context, *[0] * (1 + sum(1 + 2 * z.ndim for z in arrays)),
        ], np.int64)  # fmt: skip
        status = recall_entry()(self.address, out, x, y, mask, alpha, variant, record.ctypes.data)
        self.records[record[SLOT]] = record, [z.dtype for z in arrays]
        return status
