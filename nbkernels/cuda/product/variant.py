"""Variant: everything that a kernel's text depends on. A frozen record, and the key of the kernel on disk."""

from __future__ import annotations

from dataclasses import dataclass

from ...jit.ir.kind import BYTES, Kind
from .config import GemmConfig
from .end import End
from .layout import Access


@dataclass(frozen=True)
class Variant:
    """
    a, b      how slices of mat1 and mat2 are read
    vector    elements of C that one store writes, which are contiguous where there are several
    ragged    whether a tile or a slice may reach beyond the edges
    end       the function that each element goes through, or None
    role      "whole": k up to a segment; "long": a block walks several segments; "part" and "sum": a block a segment,
              and then the sum of all, with the epilogue
    """

    config: GemmConfig
    kind: Kind
    a: Access
    b: Access
    vector: int
    ragged: bool
    role: str = "whole"
    end: End | None = None

    @property
    def size(self) -> int:
        """Bytes of an element of a chain."""
        return BYTES[self.kind.chain]

    @property
    def held(self) -> str:
        """dtype of operands in shared memory."""
        return self.kind.a if self.config.tier == "M" else self.kind.chain

    def __str__(self) -> str:
        edges = "ragged" if self.ragged else "whole tiles"
        end = f", {self.end}" if self.end else ""
        return f"{self.kind} {self.config}, {self.a} {self.b}, stores of {self.vector}, {edges}, {self.role}{end}"
