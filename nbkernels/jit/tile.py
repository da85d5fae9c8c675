"""A record that is a compile-time constant: `Tile` as a Numba type.

Jitted functions take a tile as an argument and read `tile.mr` as a literal number; intrinsics read it while typing. Its
type is part of every signature and symbol, so the disk cache tells tiles apart, which closures over intrinsics do not.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from numba import types
from numba.core.imputils import lower_constant
from numba.extending import models, overload_attribute, register_model, typeof_impl


@dataclass(frozen=True)
class Tile:
    """Register tile of a micro-kernel: mr rows by nv vectors of `lanes` elements of `dtype`."""

    dtype: str
    mr: int
    nv: int
    lanes: int

    @property
    def nr(self) -> int:
        """Columns of the tile."""
        return self.nv * self.lanes

    @property
    def itemsize(self) -> int:
        return int(self.dtype[5:]) // 8

    def __str__(self) -> str:
        return f"{self.dtype}_{self.mr}x{self.nr}_v{self.lanes}"


class TileType(types.Opaque):
    """The Numba type whose only value is `tile`."""

    def __init__(self, tile: Tile):
        self.tile = tile
        super().__init__(f"Tile({tile})")


register_model(TileType)(models.OpaqueModel)


@typeof_impl.register(Tile)
def _typeof(tile, context):
    return TileType(tile)


@lower_constant(TileType)
def _constant(context, builder, kind, value):
    return context.get_dummy_value()


def _attribute(name: str) -> None:
    @overload_attribute(TileType, name)
    def read(tile):
        value = getattr(tile.tile, name)
        return lambda tile: value


for _name in [f.name for f in fields(Tile) if f.name != "dtype"] + ["nr", "itemsize"]:
    _attribute(_name)
