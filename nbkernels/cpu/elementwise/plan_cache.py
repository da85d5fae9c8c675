"""Element-wise calls of a layout that has been planned before, in one call of compiled code.

The entry gets an operation's memory, SLOTS words, each 0 or the address of a record, and one more, that of
made.words(). The dtypes, shapes and strides of the arrays, a mask among them where there is one, and three words that
say what else the loops depend on, are a key; it goes to the slot that its hash is or, if that is taken, to the one
beside it, in place of another. A record is PLAN, and behind it

    context[PLAN.context]  dtype ndim shape[ndim] strides[ndim] of a new out  key[PLAN.length]
"""

from __future__ import annotations

import functools

import numpy as np

from ...jit.abi.address import invoke, pointer, scratch, set_word
from ...jit.abi.ndarray import WRITEABLE, ZERO_D, address_of, as_array, data, descr, flags, ndim, shape, stride
from ...jit.abi.new_arrays import NONE, TRUE, answer, as_returned, new_strided, words
from ...jit.abi.record import Record
from ...jit.compile.cache import entry
from ...jit.compile.lazy import jit
from ...jit.ir.vector import LINE
from ...strides import distinct
from ..reduce.loops import SMALL
from ..runtime import threads
from ..runtime.arrays import GIL
from .entry import DECLINED, DONE, NOTED, UNKNOWN
from .loop_nest import HEADER, NEST, nest_at
from .schedule import Nest

SLOTS = 256
TASKS = 8 * NEST["tasks"]  # bytes
MOST = 10  # operands: an output, eight arguments and a mask
# Words of the key, its slot; what goes through the context; 0, or what threads launch by; the bytes of alpha, a float,
# NOTED where the loops take note of faults, 0, or the address of what they read; words of the context; the word where
# the key begins; the extents of the arrays, in bytes from their data; which inputs are laid out as out is.
PLAN = Record("Plan", f"length slot walker launch scalar context key low[{MOST}] high[{MOST}] same[{MOST}]")
plan_at, WORDS = PLAN.pointer(), PLAN.words
# Bytes of stack for a context or a key of arrays of 64 dimensions, NumPy's most: of four, of MOST; for their addresses.
ROOM, LARGE_ROOM, ADDRESSES = 6144, 12288, 8 * MOST
FOLD_ROOM = SMALL + LINE  # the same for a fold, with its partial results
FACTORS = 16  # bytes at the end of a room, for alpha or the faults
COUNT, ITEMS = object.__basicsize__, tuple.__basicsize__  # where a tuple says how many items it has, and has them


@jit(forceinline=True)
def _recall(memory, arrays, operands, alpha, variant, record, room, scalar):
    """DONE, -faults, UNKNOWN, or DECLINED where memory may overlap; `arrays`, out first, are objects by address.

    An out of 0 is made and put there. `variant` are the three words that begin the key.
    """
    key, slots, out, n, code = pointer(room), pointer(memory), arrays[0], 0, 0
    for word in variant:
        key[n] = word
        code = (code ^ word) * 0x9E3779B97F4A7C1
        n += 1
    for p in range(operands):
        z = arrays[p]
        key[n] = 0 if z == 0 else descr(z) + (ndim(z) << 56)
        code = (code ^ key[n]) * 0x9E3779B97F4A7C1
        n += 1
        for d in range(0 if z == 0 else ndim(z)):
            key[n] = shape(z, d)
            key[n + 1] = stride(z, d)
            code = ((code ^ key[n]) * 31 ^ key[n + 1]) * 0x9E3779B97F4A7C1
            n += 2
    slot = (code >> 40) & (SLOTS - 1)
    if record != 0:
        slot ^= slots[slot] != 0
        r = plan_at(record)
        r.length, r.slot, slots[slot] = n, slot, record
        for i in range(n):
            r[r.key + i] = key[i]
    found, plan = False, 0
    for way in range(2):
        if not found and slots[slot ^ way] != 0:
            plan = slots[slot ^ way]
            r = plan_at(plan)
            at, found = r.key, r.length == n
            for i in range(n if found else 0):
                found = found and r[at + i] == key[i]
    if not found or (out != 0 and flags(out) & WRITEABLE == 0):
        return UNKNOWN
    if out == 0:
        like = plan + 8 * (WORDS + r.context)
        made = pointer(like)
        out = new_strided(slots[SLOTS], made[0], made[1], like + 16, like + 16 + 8 * made[1], 0, 0)
        arrays[0] = out
        if out == 0:
            return DONE
    for i in range(r.context):
        key[i] = r[WORDS + i]
    start = data(out)
    for p in range(operands):
        at = data(arrays[p])
        touch = p > 0 and at + r.high[p] > start + r.low[0] and start + r.high[0] > at + r.low[p]
        if touch and (at != start or r.same[p] == 0):
            return DECLINED
        key[HEADER + p] += at
    faults = pointer(scalar)
    faults[0] = faults[1] = 0
    if r.scalar == 4:
        set_word(scalar, np.float32(alpha))
    elif r.scalar == 8:
        set_word(scalar, alpha)
    nest_at(room).scalars = scalar if r.scalar <= 8 else r.scalar
    if r.launch == 0:
        invoke(r.walker, (room, 0))
    else:
        pool = threads.pool_at(r.launch)
        if pool.share == 0:
            return DECLINED
        invoke(pool.share, (r.launch, r.walker, room, room + TASKS))
    return -faults[0] - 2 * faults[1] if r.scalar == NOTED else DONE


@functools.cache
def recall_entry():
    """answer(memory, out, x, y, where, alpha, casting, order, dtype, record): the result, or what `_recall` answers.

    An out that is None is made; x or y may be a number where dtype is None. What casting, order and dtype are is known
    by their addresses alone. A record that is not 0 is entered first.
    """

    def run(memory, out, x, y, where, alpha, casting, order, dtype, record):
        room, arrays, numpy = scratch(ROOM), pointer(scratch(ADDRESSES)), pointer(memory)[SLOTS]
        names, out, x, y, mask = pointer(numpy), address_of(out), address_of(x), address_of(y), address_of(where)
        weak, given = address_of(dtype) == names[NONE], 0 if out == names[NONE] else as_array(out, out, numpy, 0)
        arrays[0] = given
        arrays[1] = as_array(x, y if weak else x, numpy, scratch(ZERO_D))
        arrays[2] = as_array(y, x if weak else y, numpy, scratch(ZERO_D))
        masked = mask != names[NONE] and mask != names[TRUE]
        arrays[3] = as_array(mask, mask, numpy, 0) if masked else mask
        if arrays[1] == 0 or arrays[2] == 0 or arrays[3] == 0 or (given == 0 and out != names[NONE]):
            return answer(UNKNOWN, given, 0)
        variant = address_of(casting), address_of(order), address_of(dtype)
        status = _recall(memory, arrays, 4 if masked else 3, alpha, variant, record, room, room + ROOM - FACTORS)
        made = 0 if given != 0 else arrays[0]
        if made != 0 and ndim(made) == 0 and status <= 0:
            made = as_returned(numpy, made)
        return answer(status, given, made)

    kind = f"answer(int64, {'object, ' * 4}float64, {'object, ' * 3}int64)"
    return entry(run, kind, "elementwise_recall")


@functools.cache
def many_entry():
    """answer(memory, variant, record, out, arrays): the same of out, which is made where it is None, and a tuple of up
    to MOST - 1 arrays."""

    def run(memory, variant, record, out, given):
        room, arrays, numpy = scratch(LARGE_ROOM), pointer(scratch(ADDRESSES)), pointer(memory)[SLOTS]
        own, given = address_of(out), address_of(given)
        own, operands = 0 if own == pointer(numpy)[NONE] else own, 1 + pointer(given + COUNT)[0]
        arrays[0] = own
        for p in range(1, operands):
            arrays[p] = pointer(given + ITEMS)[p - 1]
        status = _recall(memory, arrays, operands, 0.0, (variant, 0, 0), record, room, room + LARGE_ROOM - FACTORS)
        return answer(status, own, 0 if own != 0 else arrays[0])

    return entry(run, "answer(int64, int64, int64, object, object)", "elementwise_recall_many")


@functools.cache
def fold_entry():
    """answer(memory, x, op, axis, keepdims, record): the same of a fold into a new array; all but x are known by their
    addresses alone."""

    def run(memory, x, op, axis, keepdims, record):
        room, arrays, numpy = scratch(FOLD_ROOM), pointer(scratch(ADDRESSES)), pointer(memory)[SLOTS]
        variant = address_of(op), address_of(axis), address_of(keepdims)
        arrays[0], arrays[1] = 0, address_of(x)
        status = _recall(memory, arrays, 2, 0.0, variant, record, room, room + FOLD_ROOM - FACTORS)
        made = arrays[0]
        return answer(status, 0, as_returned(numpy, made) if made != 0 and ndim(made) == 0 else made)

    return entry(run, f"answer(int64, {'object, ' * 4}int64)", "elementwise_recall_fold")


class Memory:
    """The plans of one operation, by layout."""

    def __init__(self, numbers=True):
        self.slots = np.zeros(SLOTS + 1, np.int64)
        self.slots[SLOTS] = words(numbers).ctypes.data
        self.address = self.slots.ctypes.data
        self.records = {}  # slot -> (record, dtypes and words whose addresses are in its key)
        self.entering = {}  # by address, those that compiled code may know already: a signal may come before `records`

    def run(self, found: tuple[Nest, int] | None, arrays, enter, variant=()):
        """Run planned loops, which read `found[1]` beside checked arrays, and keep them: what the entry answers, which
        enter(record) calls with a record; `variant` are objects that it is told.

        DECLINED also where threads cannot be launched from compiled code, or no GIL guards the slots.
        """
        if found is None or not GIL:
            return DECLINED
        loops, scalar = found
        if not (loops.small or threads.open_up()):
            return DECLINED
        out = arrays[0]
        context, launch = loops.context(1 if loops.small else threads.count()), 0 if loops.small else threads.WORDS
        ends = [[(n - 1) * s for n, s in zip(z.shape, z.strides)] for z in arrays]
        own = distinct(out.shape, out.strides, max(loops.itemsizes))
        low = [sum(min(e, 0) for e in end) for end in ends]
        high = [sum(max(e, 0) for e in end) + z.itemsize for z, end in zip(arrays, ends)]
        same = [own and (z.shape, z.strides) == (out.shape, out.strides) for z in arrays]
        return self.keep((loops.walker, launch, scalar), context, (low, high, same), arrays, enter, variant)

    def keep(self, code, context, extents, arrays, enter, variant):
        """Make a record of these words, keep it, and run it; what `run` answers."""
        out, plan, none = arrays[0], PLAN.array(), [0] * (MOST - len(arrays))
        plan.walker, plan.launch, plan.scalar = code
        plan.low, plan.high, plan.same = ((*words, *none) for words in extents)
        plan.context, plan.key = len(context), WORDS + len(context) + 2 + 2 * out.ndim
        new, key = (id(out.dtype), out.ndim, *out.shape, *out.strides), [0] * (3 + sum(1 + 2 * z.ndim for z in arrays))
        record = np.array((*plan, *context, *new, *key), np.int64)
        kept = self.entering[record.ctypes.data] = record, [*(z.dtype for z in arrays), *variant]
        status = enter(record.ctypes.data)
        self.records[record[PLAN["slot"]]] = kept
        del self.entering[record.ctypes.data]
        return status
