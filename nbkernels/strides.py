"""Shapes and strides of element-wise loops, planned without a device: broadcast, reorder, flip, coalesce.

    element (i0, ..., in) of operand p lies at base[p] + offsets[p] + sum(i[d] * strides[p][d])

Operand 0 is the output. Sizes are counts, strides and offsets are bytes. A plan is a fact about shapes and strides
alone: it is cached, and the CPU's loops and the GPU's grids run over the same one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

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


def _order(shape: Sizes, operands: list[Sizes]) -> list[int]:
    """Dimensions, the fastest last: by the strides of the first operand that tells two apart, else as they stand."""

    def outside(d: int, e: int) -> int:
        """1 where d belongs outside e, -1 where inside, 0 where no operand tells."""
        for strides in operands:
            a, b = abs(strides[d]), abs(strides[e])
            if a and b and a != b:
                return 1 if a > b else -1
        return 0

    order: list[int] = []
    for d in range(len(shape)):
        at = len(order)
        for i in range(len(order) - 1, -1, -1):
            side = outside(d, order[i])
            if side > 0:
                at = i
            elif side < 0:
                break
        order.insert(at, d)
    return order


@lru_cache(maxsize=4096)
def output_strides(shape: Sizes, shapes: tuple[Sizes, ...], strides: tuple[Sizes, ...], itemsize: int) -> Sizes:
    """Order "K": byte strides of a compact output in the memory order of the first full-size input, then of the rest.

    >>> output_strides((2, 3), ((2, 3), (3,)), ((4, 8), (4,)), 4)  # an F-ordered matrix and a row
    (4, 8)
    """
    full = sorted(range(len(shapes)), key=lambda p: shapes[p] != shape)
    result, step = [0] * len(shape), itemsize
    for d in reversed(_order(shape, [broadcast_strides(shape, shapes[p], strides[p]) for p in full])):
        result[d] = step
        step *= max(shape[d], 1)
    return tuple(result)


@lru_cache(maxsize=4096)
def distinct(shape: Sizes, strides: Sizes, itemsize: int) -> bool:
    """Whether every dimension steps over all that lies inside it: then no two elements share memory.

    >>> distinct((2, 3), (-12, 4), 4), distinct((2, 3), (0, 4), 4)
    (True, False)
    """
    reach = itemsize
    for step, size in sorted((abs(s), n) for n, s in zip(shape, strides) if n > 1):
        if step < reach:
            return False
        reach += step * (size - 1)
    return True


@dataclass(frozen=True)
class StridedPlan:
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
    shape = shapes[0]
    steps = [broadcast_strides(shape, n, s) for n, s in zip(shapes, strides)]
    offsets = [0] * len(shapes)
    if 0 in shape:
        return StridedPlan((0,), ((0,),) * len(shapes), tuple(offsets), "empty")

    dims = [d for d in _order(shape, steps) if shape[d] > 1]
    loops: list[tuple[int, list[int]]] = []  # (size, one stride an operand), outermost first
    for d in dims:
        size, step = shape[d], [s[d] for s in steps]
        if next(s for s in (*step, 1) if s) < 0:  # the output runs forward, and with it whatever ran the same way
            offsets = [o + (size - 1) * s for o, s in zip(offsets, step)]
            step = [-s for s in step]
        if loops and all(outer == size * inner for outer, inner in zip(loops[-1][1], step)):
            loops[-1] = (loops[-1][0] * size, step)
        else:
            loops.append((size, step))

    partner = _transposed(loops)
    if partner is not None:
        row = loops.pop(partner)
        loops.insert(len(loops) - 1, row)
    sizes = tuple(size for size, _ in loops)
    by_operand = tuple(tuple(step[p] for _, step in loops) for p in range(len(shapes)))
    kind = "transposed" if partner is not None else _kind([s[-1] if s else 0 for s in by_operand], sizes, itemsizes)
    return StridedPlan(sizes, by_operand, tuple(offsets), kind)


def _kind(inner: list[int], sizes: Sizes, itemsizes: Sizes) -> str:
    """How the innermost loop advances; a single element counts as contiguous."""
    if not sizes or all(s == w for s, w in zip(inner, itemsizes)):
        return "contiguous"
    if inner[0] == itemsizes[0] and all(s in (0, w) for s, w in zip(inner, itemsizes)):
        return "scalar"
    return "strided"


def _transposed(loops: list[tuple[int, list[int]]]) -> int | None:
    """The outer dimension along which some input is denser than along the innermost, where it is sparse; or None."""
    if len(loops) < 2:
        return None
    for p in range(1, len(loops[-1][1])):
        far = abs(loops[-1][1][p])
        near = min((abs(step[p]), d) for d, (_, step) in enumerate(loops) if step[p]) if far else (0, 0)
        if far > LINE and near[0] < far:
            return near[1]
    return None


@dataclass(frozen=True)
class ReducePlan:
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
    folded = [(n, steps[d]) for d, n in enumerate(shape) if d not in kept and n != 1]
    start = 0
    if not ordered:
        start = sum((n - 1) * s for n, s in folded if s < 0)
        folded = sorted(((n, abs(s)) for n, s in folded), key=lambda d: (d[1] != 0, -d[1]))
    terms: list[tuple[int, int]] = []
    for n, step in folded:
        if terms and terms[-1][1] == n * step:
            terms[-1] = (terms[-1][0] * n, step)
        else:
            terms.append((n, step))
    size = tuple(shape[d] for d in kept)
    # The input leads: its order makes neighbours of the output's elements, and their sums share its cache lines.
    loops = plan((size, size), (tuple(steps[d] for d in kept), tuple(to[d] for d in kept)), (itemsize, itemsize))
    first, at = loops.offsets[::-1]
    loops = StridedPlan(loops.shape, loops.strides[::-1], (first, at + start), loops.kind)
    return ReducePlan(loops, tuple(n for n, _ in terms), tuple(s for _, s in terms))
