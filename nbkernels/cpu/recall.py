"""Element-wise calls of a layout that has been planned before, in one call of compiled code.

The entry gets an operation's memory, SLOTS words: 0, or the address of a record. The dtypes, shapes and strides of the
arrays, a mask among them where there is one, and a number, the variant, that says what else the loops depend on, are a
key; it goes to the slot that its hash is or, if that is taken, to the one beside it, in place of another. A record is
int64 words:

    LENGTH SLOT WALKER LAUNCH SCALAR CONTEXT  low[MOST]  high[MOST]  same[MOST]  context[CONTEXT]  key[LENGTH]

WALKER goes through the context; LAUNCH is 0, or what threads launch by; SCALAR the bytes of alpha, a float, NOTED where
the loops take note of faults, or 0; low and high are the extents of the arrays, in bytes from their data; same says
which inputs are laid out as out is.
"""

from __future__ import annotations

import functools

import numpy as np
from numba import types

from ..jit.address import call, invoke, pointer, scratch, set_word
from ..jit.cache import entry, jit
from ..jit.ndarray import OBJECT, WRITEABLE, address_of, data, descr, flags, ndim, shape, stride
from ..strides import distinct
from . import threads, walk
from .nest import Nest
from .quick import DECLINED, DONE, FAULTY, NOTED, UNKNOWN
from .small import GIL

SLOTS = 256
MOST = 10  # operands: an output, eight arguments and a mask
LENGTH, SLOT, WALKER, LAUNCH, SCALAR, CONTEXT, LOW = range(7)
HIGH, SAME, WORDS = LOW + MOST, LOW + 2 * MOST, LOW + 3 * MOST
MASKED = 2  # the bit of a variant that says that there is a mask
# Bytes of stack for a context or a key of arrays of 64 dimensions, NumPy's most: of four, of MOST; for their addresses.
ROOM, LARGE_ROOM, ADDRESSES = 6144, 12288, 8 * MOST
FACTORS = 16  # bytes at the end of a room, for alpha or the faults


@jit(inline="always")
def _recall(memory, arrays, operands, alpha, variant, record, room, scalar):
    """DONE, FAULTY, UNKNOWN, or DECLINED where memory may overlap; `arrays`, out first, are objects by address."""
    key, slots, out = pointer(room), pointer(memory), arrays[0]
    n, code = 1, variant
    key[0] = variant
    for p in range(operands):
        z = arrays[p]
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
        at = data(arrays[p])
        touch = p > 0 and at + r[HIGH + p] > start + r[LOW] and start + r[HIGH] > at + r[LOW + p]
        if touch and (at != start or r[SAME + p] == 0):
            return DECLINED
        key[walk.HEADER + p] += at
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


@functools.cache
def recall_entry():
    """int64(memory, out, x, y, mask, alpha, variant, record): what `_recall` answers.

    A record that is not 0 is entered first. The mask is not read where the variant is not MASKED.
    """

    def run(memory, out, x, y, mask, alpha, variant, record):
        room, arrays = scratch(ROOM), pointer(scratch(ADDRESSES))
        arrays[0], arrays[1], arrays[2], arrays[3] = address_of(out), address_of(x), address_of(y), address_of(mask)
        operands = 3 if variant & MASKED == 0 else 4
        return _recall(memory, arrays, operands, alpha, variant, record, room, room + ROOM - FACTORS)

    kind = types.int64(types.int64, *[OBJECT] * 4, types.float64, types.int64, types.int64)
    return entry(run, kind, "elementwise_recall")


@functools.cache
def many_entry():
    """int64(memory, operands, variant, record, array, ...): the same of one to MOST arrays, of which MOST are given."""

    def run(memory, operands, variant, record, a, b, c, d, e, f, g, h, i, j):
        room, arrays = scratch(LARGE_ROOM), pointer(scratch(ADDRESSES))
        arrays[0], arrays[1], arrays[2], arrays[3] = address_of(a), address_of(b), address_of(c), address_of(d)
        arrays[4], arrays[5], arrays[6], arrays[7] = address_of(e), address_of(f), address_of(g), address_of(h)
        arrays[8], arrays[9] = address_of(i), address_of(j)
        return _recall(memory, arrays, operands, 0.0, variant, record, room, room + LARGE_ROOM - FACTORS)

    return entry(run, types.int64(*[types.int64] * 4, *[OBJECT] * MOST), "elementwise_recall_many")


class Memory:
    """The plans of one operation, by layout."""

    def __init__(self):
        self.slots = np.zeros(SLOTS, np.int64)
        self.address = self.slots.ctypes.data
        self.records = {}  # slot -> (record, dtypes whose addresses are in its key)

    def run(self, found: tuple[Nest, int] | None, arrays, enter) -> int:
        """Run planned loops, which read `found[1]` beside checked arrays, and keep them: what the entry answers, which
        enter(record) calls with a record.

        DECLINED also where threads cannot be launched from compiled code, or no GIL guards the slots.
        """
        if found is None or not GIL:
            return DECLINED
        loops, scalar = found
        if not (loops.small or threads.open_up()):
            return DECLINED
        out, none = arrays[0], [0] * (MOST - len(arrays))
        context = loops.context(1 if loops.small else threads.count())
        ends = [[(n - 1) * s for n, s in zip(z.shape, z.strides)] for z in arrays]
        own = distinct(out.shape, out.strides, max(loops.itemsizes))
        record = np.array([
            0, 0, loops.walker, 0 if loops.small else threads.WORDS, scalar, len(context),
            *(sum(min(e, 0) for e in end) for end in ends), *none,
            *(sum(max(e, 0) for e in end) + z.itemsize for z, end in zip(arrays, ends)), *none,
            *(own and (z.shape, z.strides) == (out.shape, out.strides) for z in arrays), *none,
            *context, *[0] * (1 + sum(1 + 2 * z.ndim for z in arrays)),
        ], np.int64)  # fmt: skip
        status = enter(record.ctypes.data)
        self.records[record[SLOT]] = record, [z.dtype for z in arrays]
        return status
