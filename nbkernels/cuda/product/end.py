"""The function at the end of a product: as a kernel's text depends on it, and as a launch gives it what it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .matrix import Matrix


@dataclass(frozen=True)
class End:
    """A scalar function at the end of a product: C = function(product, *operands), element for element.

    function    a plain function, compiled for chains of `dtype`
    product     dtype in which it takes the product, which is rounded to that
    operands    (dtype in memory, dtype as computed) of an array, (dtype,) of a number
    out         (dtype in memory, dtype as computed) of C
    before      whether the product itself is stored, too
    """

    function: Callable
    dtype: str
    product: str
    out: tuple[str, str]
    operands: tuple[tuple[str, ...], ...] = ()
    before: bool = False

    def __str__(self) -> str:
        of = ", ".join(["-".join(dict.fromkeys(each)) for each in self.operands])
        return f"{self.function.__name__}({of})"


@dataclass(frozen=True)
class Ending:
    """An End and what it reads and writes beside C: `arrays` are `before`, where that is stored, and operands, as
    matrices of C's shape; `numbers` are of their computed dtypes."""

    end: End
    arrays: tuple[Matrix, ...] = ()
    numbers: tuple = ()

    @property
    def transposed(self) -> Ending:
        return replace(self, arrays=tuple(each.transposed for each in self.arrays))


def arguments(ending: Ending | None) -> tuple:
    """(matrices, numbers), as kernels take them."""
    return (tuple(each.arguments for each in ending.arrays), ending.numbers) if ending else ((), ())
