"""Shapes and strides of nested loops, planned without a device: broadcast, reorder, flip, coalesce.

    element (i0, ..., in) of operand p lies at base[p] + offsets[p] + sum(i[d] * strides[p][d])

Operand 0 is the output. Sizes are counts, strides and offsets are bytes. A plan is a fact about shapes and strides
alone: it is cached, and the CPU's loops and the GPU's grids run over the same one.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

Sizes = tuple[int, ...]

# A dimension whose neighbours lie further apart than one cache line is worth tiling against one where they touch.
LINE = 64


def broadcast_shapes(*shapes: Sizes) -> Sizes:
    """The common shape: aligned right, sizes equal or 1, the other wins (1 against 0 gives 0).

    >>> broadcast_shapes((8, 1, 6), (7, 1), ())
    (8, 7, 6)
    >>> broadcast_shapes((2, 3), (2, 4))
    Traceback (most recent call last):
    ValueError: shapes (2, 3) and (2, 4) do not broadcast: sizes 3 and 4 in dimension 1
    """
    ndim = max(map(len, shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        for d, size in enumerate(shape, ndim - len(shape)):
            if size != 1 and result[d] not in (1, size):
                other = next(s for s in shapes if len(s) >= ndim - d and s[d - ndim] == result[d])
                raise ValueError(
                    f"shapes {other} and {shape} do not broadcast: sizes {result[d]} and {size} in dimension {d}"
                )
            result[d] = size if size != 1 else result[d]
    return tuple(result)


def broadcast_strides(shape: Sizes, size: Sizes, strides: Sizes) -> Sizes:
    """Strides that walk an operand of shape `size` as if it had `shape`: 0 where it is repeated or its size is 1."""
    lead = len(shape) - len(size)
    return (0,) * lead + tuple(0 if n == 1 else s for n, s in zip(size, strides))


# -- the planner ------------------------------------------------------------------------------------------------------
# Nested loops in indexable words, outermost first, a row each: size, then the stride of every operand. The functions
# below work in place; cpu/elementwise/planner.py and cpu/reduce compile the same ones.


def sort(loops, count: int, operands: int) -> None:
    """The fastest last: by the strides of the first operand that tells two loops apart, else as they stand."""
    row = 1 + operands
    for d in range(1, count):
        at, e, side = d, d - 1, 0
        while e >= 0 and side >= 0:
            side = 0
            for p in range(1, row):
                a, b = abs(loops[d * row + p]), abs(loops[e * row + p])
                if a != 0 and b != 0 and a != b:
                    side = 1 if a > b else -1
                    break
            at = e if side > 0 else at
            e -= 1
        for i in range((d + 1) * row - 1, (at + 1) * row - 1, -1):
            loops[i], loops[i - row] = loops[i - row], loops[i]


def forward(base, loops, count: int, operands: int) -> None:
    """Turn loops round where the output, or the first operand that does not stand, runs backwards."""
    for at in range(0, count * (1 + operands), 1 + operands):
        first = 0
        for p in range(operands):
            first = loops[at + 1 + p] if first == 0 else first
        for p in range(operands if first < 0 else 0):
            base[p] += (loops[at] - 1) * loops[at + 1 + p]
            loops[at + 1 + p] = -loops[at + 1 + p]


def join(loops, count: int, operands: int) -> int:
    """Neighbours that are one walk of every operand become one loop; those that go once vanish. How many are left."""
    row, left = 1 + operands, 0
    for d in range(count):
        size, last, one = loops[d * row], (left - 1) * row, left > 0
        for p in range(1, row):
            one = one and loops[last + p] == size * loops[d * row + p]
        if size != 1:
            left += 0 if one else 1
            to = (left - 1) * row
            loops[to] = size * (loops[to] if one else 1)
            for p in range(1, row):
                loops[to + p] = loops[d * row + p]
    return left


def pair(loops, count: int, operands: int) -> bool:
    """Bring next to the innermost loop the one along which some input is denser than along it, where it is sparse;
    whether there is one."""
    row = 1 + operands
    inner = (count - 1) * row
    for p in range(2, row if count > 1 else 0):
        near, best = abs(loops[inner + p]), -1
        for at in range(0, inner if near > LINE else 0, row):
            step = abs(loops[at + p])
            if step != 0 and step < near:
                best, near = at, step
        if best >= 0:
            for i in range(best, inner - row):
                loops[i], loops[i + row] = loops[i + row], loops[i]
            return True
    return False


def steps_over(sizes, strides, ndim: int, itemsize: int) -> bool:
    """Whether every dimension steps over all that lies inside it."""
    for d in range(ndim):
        reach, step = itemsize, abs(strides[d])
        for e in range(ndim):
            inner = abs(strides[e])
            if sizes[e] > 1 and (inner < step or (inner == step and e < d)):
                reach += inner * (sizes[e] - 1)
        if sizes[d] > 1 and step < reach:
            return False
    return True


# -- plans ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def output_strides(shape: Sizes, shapes: tuple[Sizes, ...], strides: tuple[Sizes, ...], itemsize: int) -> Sizes:
    """Order "K": byte strides of a compact output in the memory order of the first full-size input, then of the rest.

    >>> output_strides((2, 3), ((2, 3), (3,)), ((4, 8), (4,)), 4)  # an F-ordered matrix and a row
    (4, 8)
    """
    full = sorted(range(len(shapes)), key=lambda p: shapes[p] != shape)
    loops = rows(range(len(shape)), [broadcast_strides(shape, shapes[p], strides[p]) for p in full])
    sort(loops, len(shape), len(full))
    result, step = [0] * len(shape), itemsize
    for d in reversed(loops[:: 1 + len(full)]):
        result[d] = step
        step *= max(shape[d], 1)
    return tuple(result)


@lru_cache(maxsize=4096)
def distinct(shape: Sizes, strides: Sizes, itemsize: int) -> bool:
    """Whether every dimension steps over all that lies inside it: then no two elements share memory.

    >>> distinct((2, 3), (-12, 4), 4), distinct((2, 3), (0, 4), 4)
    (True, False)
    """
    return steps_over(shape, strides, len(shape), itemsize)


class StridedPlan(NamedTuple):
    """Nested loops over all operands at once, outermost dimension first; `kind` describes the innermost.

    empty        nothing to do
    contiguous   every operand advances by its item
    scalar       the output advances by its item, each input by its item or not at all
    strided      anything else
    transposed   strided, and some input has its items in the dimension before: to be walked in 2-D tiles
    """

    shape: Sizes
    strides: tuple[Sizes, ...]
    offsets: Sizes
    kind: str

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __str__(self) -> str:
        loops = " x ".join(map(str, self.shape)) or "1"
        steps = ", ".join(f"{'out' if p == 0 else f'in{p}'} {s}" for p, s in enumerate(self.strides))
        return f"{self.kind} {loops}: {steps}"


@lru_cache(maxsize=4096)
def plan(shapes: tuple[Sizes, ...], strides: tuple[Sizes, ...], itemsizes: Sizes) -> StridedPlan:
    """Plan the loops over an output (first) and inputs that broadcast to its shape.

    >>> print(plan(((4, 6), (4, 6), (6,)), ((24, 4), (24, 4), (4,)), (4, 4, 4)))
    contiguous 4 x 6: out (24, 4), in1 (24, 4), in2 (0, 4)
    """
    shape, operands, base = shapes[0], len(shapes), [0] * len(shapes)
    if 0 in shape:
        return StridedPlan((0,), ((0,),) * operands, tuple(base), "empty")
    loops = rows(shape, [broadcast_strides(shape, n, s) for n, s in zip(shapes, strides)])
    sort(loops, len(shape), operands)
    forward(base, loops, len(shape), operands)
    count = join(loops, len(shape), operands)
    transposed = pair(loops, count, operands)
    sizes, *steps = (tuple(loops[p : count * (1 + operands) : 1 + operands]) for p in range(1 + operands))
    kind = "transposed" if transposed else _kind([s[-1] if s else 0 for s in steps], sizes, itemsizes)
    return StridedPlan(sizes, tuple(steps), tuple(base), kind)


def rows(sizes, strides) -> list[int]:
    """Loops as the planner has them."""
    return [word for row in zip(sizes, *strides) for word in row]


def _kind(inner: list[int], sizes: Sizes, itemsizes: Sizes) -> str:
    """How the innermost loop advances; a single element counts as contiguous."""
    if not sizes or all(s == w for s, w in zip(inner, itemsizes)):
        return "contiguous"
    if inner[0] == itemsizes[0] and all(s in (0, w) for s, w in zip(inner, itemsizes)):
        return "scalar"
    return "strided"


class ReducePlan(NamedTuple):
    """Loops of a sum: over the output's elements (`kept`: output first, then input), and over the terms of each.

    The terms of an element are counted in C order of the reduced dimensions, whatever their strides: `sizes` and
    `steps`, outermost first, coalesced.
    """

    kept: StridedPlan
    sizes: Sizes
    steps: Sizes

    @property
    def terms(self) -> int:
        return math.prod(self.sizes)

    def __str__(self) -> str:
        terms = " x ".join(map(str, self.sizes)) or "1"
        return f"sum of {terms} by {self.steps}, kept {self.kept}"


@lru_cache(maxsize=4096)
def reduce_plan(
    shapes: tuple[Sizes, Sizes], strides: tuple[Sizes, Sizes], itemsize: int, ordered: bool = True
) -> ReducePlan:
    """Plan the sum of an input (second) into an output (first) that broadcasts to it; both have elements.

    Terms that are not `ordered` are counted as they lie in memory.

    >>> print(reduce_plan(((3,), (5, 2, 3)), ((4,), (24, 12, 4)), 4))
    sum of 10 by (12,), kept contiguous 3: out (4,), in1 (4,)
    """
    (target, shape), (to, steps) = shapes, strides
    lead = len(shape) - len(target)
    to = broadcast_strides(shape, target, to)
    target = (1,) * lead + target
    kept = [d for d, n in enumerate(target) if n == shape[d]]
    folded = [(n, steps[d]) for d, n in enumerate(shape) if d not in kept]
    if not ordered:
        folded.sort(key=lambda d: (d[1] != 0, -abs(d[1])))
    terms, start = [word for dim in folded for word in dim], [0]
    if not ordered:
        forward(start, terms, len(folded), 1)
    count = join(terms, len(folded), 1)
    size = tuple(shape[d] for d in kept)
    # The input leads: its order makes neighbours of the output's elements, and their sums share its cache lines.
    loops = plan((size, size), (tuple(steps[d] for d in kept), tuple(to[d] for d in kept)), (itemsize, itemsize))
    first, at = loops.offsets[::-1]
    loops = StridedPlan(loops.shape, loops.strides[::-1], (first, at + start[0]), loops.kind)
    return ReducePlan(loops, tuple(terms[: 2 * count : 2]), tuple(terms[1 : 2 * count : 2]))
