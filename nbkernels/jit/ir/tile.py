"""A record that is a compile-time constant: `Tile` as a Numba type.

Jitted functions take a tile as an argument and read `tile.mr` as a literal number; intrinsics read it while typing. Its
type is part of every signature and symbol, so the disk cache tells tiles apart, which closures over intrinsics do not.
"""

from __future__ import annotations

from dataclasses import dataclass

from .kind import BYTES, Kind
from .vector import LINE


@dataclass(frozen=True)
class Tile:
    """Register tile of a micro-kernel: mr rows by nv vectors of `lanes` words of `dtype`, for a kind of product."""

    dtype: str
    mr: int
    nv: int
    lanes: int
    kind: Kind | None = None  # plain where it is not said

    def __post_init__(self):
        object.__setattr__(self, "kind", self.kind or Kind.plain(self.dtype))

    @property
    def nr(self) -> int:
        """Columns of the tile."""
        return self.nv * self.lanes

    @property
    def itemsize(self) -> int:
        """Bytes of a word of a panel."""
        return BYTES[self.dtype]

    @property
    def narrow(self) -> bool:
        """Whether a vector is less than a cache line."""
        return self.lanes * self.itemsize < LINE

    @property
    def same(self) -> bool:
        """Whether operands in memory are words."""
        return self.kind.same

    @property
    def items(self) -> int:
        """Steps of k in a word."""
        return self.kind.items

    @property
    def group(self) -> int:
        """Steps of k that lie together in a panel: a word, or as many as a matrix unit takes."""
        return self.kind.group

    @property
    def step(self) -> int:
        """Bytes of a panel for each of its rows or columns and groups down: a word, two of complex numbers."""
        return self.planes * self.itemsize * (self.group // self.items)

    @property
    def head(self) -> int:
        """Words at the start of a column's panel of B that its chains begin with."""
        return int(self.kind.offset)

    planes = property(lambda self: self.kind.planes)  # words of an element
    # Bytes of an element of A in memory, of B, of C and X, and of a chain.
    size_a = property(lambda self: BYTES[self.kind.a])
    size_b = property(lambda self: BYTES[self.kind.b])
    size_c = property(lambda self: BYTES[self.kind.out])
    size_t = property(lambda self: BYTES[self.kind.chain])

    def __str__(self) -> str:
        return f"{self.kind}_{self.mr}x{self.nr}_v{self.lanes}"
