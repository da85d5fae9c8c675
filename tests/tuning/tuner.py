"""A side of the tuner without a machine: tiles of two sizes, and a clock that is a function of them."""

import dataclasses
import random

from nbkernels.store import Store


@dataclasses.dataclass(frozen=True)
class Tiles:
    kc: int
    nb: int = 1


class Device:
    """A side of the tuner whose calls take what `speed` says of (tiles, lane), with noise."""

    device, names, available, dtype = "cpu", ("kc", "nb"), 2, "float32"
    default = Tiles(100)

    def __init__(self, speed, path, noise=0.01, kcs=range(10, 200, 10)):
        self.speed, self.noise, self.kcs = speed, noise, kcs
        self.kept, self.random, self.renewed, self.calls = Store(path), random.Random(1), 0, 0

    def sample(self, tiles, lane):
        self.calls += 1
        return self.speed(tiles, lane) * (1 + self.noise * self.random.random())

    def illegal(self, tiles):
        return ("kc is odd",) if tiles.kc % 2 else ()

    def complete(self, given):
        return Tiles(**{"kc": 100} | given)

    def candidates(self, shapes):
        return [Tiles(kc) for kc in self.kcs]

    def neighbours(self, tiles, shapes):
        return [Tiles(tiles.kc + 2)]

    def lanes(self, shapes, layouts, threads):
        return [(*shape, layout, count) for count in threads for layout in layouts for shape in shapes]

    def store(self):
        return self.kept

    def key(self, name, layout):
        return f"gemm float32 {name} {layout} on {self.place()}"

    def place(self):
        return "test machine"

    def renew(self):
        self.renewed += 1

    def judging(self, shapes, sizes):
        return [*shapes, *sizes]

    def compile(self, work, end, heard):
        pass


def best_at(kc):
    """Seconds that grow by a hundredth for each step away from a depth."""
    return lambda tiles, lane: 0.01 * (1 + abs(tiles.kc - kc) / 100)
