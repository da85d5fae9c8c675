"""Loop: the record that describes an inner loop of an element-wise operation, which loops.py emits."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Loop:
    """A scalar function over `inputs`, converted to `compute` (the last of them is the result's), stored as `output`.

    Dtypes go by NumPy's names. A function of several outputs returns a tuple: `more` are the dtypes of all but the
    first, and `compute` ends with one for each. `scalars` further arguments, of the result's dtype, are the same for
    every element. `streamed` loops store whole lines of contiguous output past the caches and drain them before
    returning. Of rows that begin at different places of a line a `misaligned` loop does a part of whole lines: two
    words behind the pointers are -1, or 0, where what precedes each row's first whole line is left out, and where as
    many elements follow the last column. `light` says that memory, not arithmetic, takes the time; `paired`, that its
    steps wait for each other: two vectors at once take less. `steps` are the distances of the inputs' neighbours in
    elements, where they are known beforehand and the output is contiguous; None is that of an input whose columns are,
    in place of its rows. Where it is `chained`, a function of two is applied to the first input and the second, to that
    and the third, and so on. A `plain` function gives what `function` does, in less time, and whether it does and there
    is no fault: it is asked first. Where it is `alone`, an operation of one, both inputs are the same array. Rows
    whose second operand is one of the `numbers` have loops of their own, in which it is known.
    """

    function: Callable
    inputs: tuple[str, ...]
    compute: tuple[str, ...]
    output: str
    scalars: int = 0
    streamed: bool = False
    misaligned: bool = False
    masked: bool = False
    faults: Callable | None = None
    light: bool = False
    paired: bool = False
    steps: tuple[int | None, ...] = ()
    more: tuple[str, ...] = ()
    chained: bool = False
    plain: Callable | None = None
    alone: bool = False
    numbers: tuple[float, ...] = ()

    @property
    def outputs(self) -> tuple[str, ...]:
        return (self.output, *self.more)

    def cases(self, widths: list[int]) -> list[list[int | None]]:
        """The steps in bytes, of operands of these widths, of rows that have loops of their own."""
        outputs, inputs = widths[: len(self.outputs)], range(len(self.outputs), len(widths))
        if self.steps:
            return [outputs + [n * w for n, w in zip(self.steps, widths[len(outputs) :])]]
        most = len(inputs) if len(inputs) <= 3 and not self.alone else 1  # fewer inputs than these are numbers
        numbers = [each for n in range(most) for each in itertools.combinations(inputs, n)]
        cases = [[0 if p in each else w for p, w in enumerate(widths)] for each in numbers]
        return cases + [[widths[0]] + [None] * len(inputs)] * self.streamed

    def __str__(self) -> str:
        parts = (self.function.__name__, *self.inputs, "by", *self.compute, "to", *self.outputs)
        words = ("streamed",) * self.streamed + ("misaligned",) * self.misaligned
        words += ("masked",) * self.masked + ("checked",) * (self.faults is not None)
        words += ("light",) * self.light + ("paired",) * self.paired + ("chained",) * self.chained
        words += ("plain",) * (self.plain is not None)
        words += tuple(map(str, self.steps))
        return "_".join(parts + words)
