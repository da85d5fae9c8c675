"""Sizes from which element-wise calls use threads, streaming stores, tiles, or loops for certain steps.

Every way gives the same bits. Sizes that a cache decides follow from the machine's (runtime/machine.py), those that a
launch, a call or a compilation decides are numbers of their own. Nothing of this is compiled in.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import operations
from ...jit.ir.short_rows import NEAR
from ...jit.ir.vector import LINE, SIZE
from ...operations import ELEMENTWISE
from ...strides import StridedPlan
from ..runtime.machine import machine
from .strided_loads import SHORT

_caches = machine()

# -- threads ----------------------------------------------------------------------------------------------------------

# Elements from which on threads share the work: 10 us of an addition where nothing is contiguous, a launch takes 2. Of
# a user's function, whose cost is not known: 2 ns an element are 60 us, of which a second thread saves more than 5.
PARALLEL, FUNCTION_PARALLEL = 1 << 16, 1 << 15
# Bytes of the widest operand of an addition from which on threads share the work of the small entry, without the GIL,
# those of as many float32: a + b of 100,000 takes one thread 13.1 us, two 8.1.
SHARED = PARALLEL * SIZE["float32"]
# Operations for which sizes at which calls go another way are smaller, by this power of two.
COSTLY = frozenset(op for op, row in ELEMENTWISE.items() if row.cost in (operations.COSTLY, operations.CHAINED))
COSTS_MORE = 3


def parallel(op: str) -> int:
    """Elements of an operation from which on threads share the work."""
    return PARALLEL >> COSTS_MORE * (op in COSTLY)


def alone(op: str, width: int) -> int:
    """Elements, the widest operand's of so many bytes, up to which the small entry keeps the GIL."""
    return SHARED // width >> COSTS_MORE * (op in COSTLY)


# -- loops for the very steps of inputs, short rows -----------------------------------------------------------------

# Elements from which on loops are made for the very steps of the inputs, in 0.1 s.
MANY = 1 << 12
# Bytes of an operand that are put together where rows of fewer than SHORT columns go end to end: the output is
# contiguous then.
CHUNK = _caches.l1 // 4


class Choice(NamedTuple):
    """Fields of Loop that a plan decides: known steps of its inputs, streaming stores, rows that begin within lines."""

    steps: tuple[int | None, ...] = ()
    streamed: bool = False
    misaligned: bool = False


PLAIN = Choice()


def choose(plan: StridedPlan, itemsizes, light: bool = False, many: int = MANY, streams: bool = True) -> Choice:
    """The loops for a plan; `streams` says that they may store past the caches."""
    past = streams and streamed(plan, itemsizes)
    return Choice(steps(plan, itemsizes, light, many, past), past, past and misaligned(plan, itemsizes))


def many(op: str) -> int:
    """Elements from which on inputs that are spread are worth more than the loops for any steps, which do costly ones
    singly: pow of 32 x 32 float32, one of them transposed, 27 us so, 3.2 turned."""
    return 1 << 8 if op in COSTLY else MANY


def steps(
    plan: StridedPlan, itemsizes, short: bool = False, many: int = MANY, streamed: bool = False
) -> tuple[int | None, ...]:
    """The inputs' steps in elements, where loops made for them vectorise and those for any steps would not; else ()."""
    if plan.size < many or not plan.shape or plan.strides[0][-1] != itemsizes[0] or max(itemsizes) > 8:
        return ()
    if plan.kind == "transposed":
        return _across(plan, itemsizes) if short and not (streamed and tall(plan, itemsizes)) else ()
    if plan.kind != "strided" or (plan.shape[-1] < SHORT and not short):
        return ()
    apart = [divmod(s[-1], w) for s, w in zip(plan.strides[1:], itemsizes[1:])]
    return tuple(n for n, _ in apart) if all(rest == 0 and abs(n) <= NEAR for n, rest in apart) else ()


# -- inputs that are transposed ---------------------------------------------------------------------------------------

# Bytes between columns that are turned by way of a buffer: 512 x 512 of float64 take 2.1 times as long as untransposed,
# straight 5.4. Of items of 8 bytes it is twice as far, for a line of them is half as many rows.
CROWDED = 2048


def _across(plan, itemsizes):
    """Return the inputs' steps of a transposed plan, None for each that is contiguous along the last dimension but one;
    () where these have no one width of SIZE or crowd in few lines of L1, or another input's step is neither 0 nor 1."""
    inputs = list(zip(plan.strides[1:], itemsizes[1:]))
    found = tuple({0: 0, w: 1}.get(s[-1], None if s[-2] == w else 2) for s, w in inputs)
    turned = [(s[-1], w) for n, (s, w) in zip(found, inputs) if n is None]
    alike = len({w for _, w in turned}) == 1 and turned[0][1] in SIZE.values()
    straight = all(s % (CROWDED // 4 * w) for s, w in turned)
    return found if 2 not in found and alike and straight else ()


# -- streaming stores -------------------------------------------------------------------------------------------------

# Bytes of an output from which on streaming stores win over reading each line before it is overwritten: the last cache
# does not hold it, or 32 MiB (a + b of f32, 64 MB of output: 34 GB/s, so 54).
STREAMED = min(_caches.l3 or 1 << 25, 1 << 25)
# The same of those that turn an input, and half as many where its columns are crowded. They go by tiles of TALL rows of
# BROAD bytes, of two such inputs half as many, one below the other: the CPU's prefetchers follow runs that long (256
# rows of 4 lines 28 ms, so 16); what lies SOON along a column is asked for meanwhile. Of rows that begin within lines
# each has its own lines, and tiles turn a line more.
TURNED, TALL, BROAD, SOON = 15 * _caches.l2, 128, 8 * LINE, 4 * LINE


def streamed(plan: StridedPlan, itemsizes: tuple[int, ...]) -> bool:
    """Whether the output should be stored past the caches: large, and written in runs of whole lines."""
    least = STREAMED
    if tall(plan, itemsizes):
        least = TURNED >> any(abs(s[-1]) > LINE and s[-1] % CROWDED == 0 for s in plan.strides[1:])
    size = itemsizes[0]
    return plan.size * size >= least and plan.strides[0][-1] == size and plan.shape[-1] * size >= 8 * LINE


def tall(plan: StridedPlan, itemsizes: tuple[int, ...]) -> bool:
    """Whether streaming stores of what turns an input go by tall tiles: of rows that begin at different places in a
    line none that are wider than the output, nor more than two."""
    if plan.kind != "transposed":
        return False
    fits = max(itemsizes) == itemsizes[0] and sum(abs(s[-1]) > w for s, w in zip(plan.strides, itemsizes)) <= 2
    return fits or not _ragged(plan)


def misaligned(plan: StridedPlan, itemsizes: tuple[int, ...]) -> bool:
    """Whether such tiles part at the lines of each row, where these begin at different places in a line."""
    return tall(plan, itemsizes) and _ragged(plan)


def _ragged(plan):
    return any(s % LINE for s in plan.strides[0][:-1])
