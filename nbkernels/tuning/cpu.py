"""The CPU's side of the tuner: what a candidate is, whether it is right, and how one call is timed."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace

import numpy as np

from .ask import Impossible

NAMES = ("mr", "nr", "kc", "nb", "mc", "nc")
TILES = 3  # register tiles beside the default's that are tried
DEPTHS = (192, 256, 384, 512, 1024, 2048)  # kc, in words
BLOCKS = tuple(1 << i for i in range(17, 21))  # bytes of a block of B: 128 KiB to 1 MiB
OUTER = 4096  # mc and nc, at most, of candidates
TURNS = 3  # of a sample, of which the fastest counts: other work on the machine only adds time; of long calls
LONG = 0.03  # seconds of all of them, one: they outlast what disturbs them
LANES = 3  # whose arrays are there at once
LEAST = 0.002  # seconds of a sample: shorter calls are repeated


class Cpu:
    """Products of one dtype; a lane is (m, n, k, layout, threads)."""

    device, names = "cpu", NAMES

    def __init__(self, dtype: str):
        from ..cpu.gemm import kinds
        from ..cpu.runtime import threads
        from ..dtypes import DTYPES

        if dtype not in DTYPES:
            raise Impossible(f"dtype {dtype!r}: there are {', '.join(DTYPES)}")
        self.dtype, self.kind = dtype, kinds.kind_of(dtype, dtype, dtype)
        self.available = threads.count()
        self.default = kinds.default_tiles(self.kind)
        self._kept, self._arrays, self._repeats, self._checked = {}, None, {}, set()

    # -- candidates --------------------------------------------------------------------------------------------------

    def illegal(self, tiles):
        from ..cpu.gemm.blocking import illegal

        return illegal(tiles, self.kind.word, self.kind.planes)

    def complete(self, given):
        """Tiles of some sizes; the others as the default has them, made to fit."""
        base, size = self.default, self.bytes_of_a_word
        mr, nr, kc = (given.get(name, getattr(base, name)) for name in ("mr", "nr", "kc"))
        room = base.kc * base.nb * size // self.kind.group
        nb = given.get("nb") or min(fit(room * self.kind.group // (kc * size), nr), fit(given.get("nc", OUTER), nr))
        return replace(base, mr=mr, nr=nr, kc=kc, nb=nb, mc=given.get("mc") or fit(base.mc, mr),
                       nc=given.get("nc") or fit(max(base.nc, nb), nb))  # fmt: skip

    @property
    def bytes_of_a_word(self) -> int:
        from ..jit.ir.kind import BYTES

        return BYTES[self.kind.word] * self.kind.planes

    def candidates(self, shapes) -> list:
        """Around the default, and far from it, for a machine that says wrong things of its caches: other register
        tiles with three depths, the default's with every depth and block; some 50."""
        from ..cpu.gemm import blocking as derived
        from ..jit.ir.vector import SIZE

        size, found = self.bytes_of_a_word, [self.default]
        if self.dtype in SIZE:
            found += derived.candidates(self.dtype)
        for mr, nr in [(self.default.mr, self.default.nr), *self.register_tiles()]:
            own = (mr, nr) == (self.default.mr, self.default.nr)
            for words in DEPTHS if own else DEPTHS[1::2]:
                for room in BLOCKS if own else BLOCKS[1::2]:
                    kc = words * self.kind.group
                    nb = fit(min(room // (words * size), OUTER), nr)
                    found.append(self.complete({"mr": mr, "nr": nr, "kc": kc, "nb": nb}))
        return self.distinct([tiles for tiles in found if not self.illegal(tiles)], shapes)

    def register_tiles(self) -> list[tuple[int, int]]:
        """At most TILES register tiles beside the default's: those that fit with the fewest loads per multiply-add."""
        from ..jit.ir.kind import BYTES
        from ..jit.ir.vector import width_bits

        lanes = width_bits() // (8 * BYTES[self.kind.word])
        ways = [(mr, v) for v in range(1, 6) for mr in range(2, 15) if mr * v >= 8 // self.kind.planes]
        legal = [(mr, v) for mr, v in ways if not self.illegal(self.complete({"mr": mr, "nr": v * lanes, "kc": 64}))]
        legal.sort(key=lambda way: (sum(way) / (way[0] * way[1]), way))
        found = [(mr, v * lanes) for mr, v in legal]
        return [way for way in found if way != (self.default.mr, self.default.nr)][:TILES]

    def distinct(self, candidates, shapes) -> list:
        """Without those that cut these shapes as an earlier one does."""
        seen = {}
        for tiles in candidates:
            seen.setdefault((tiles.mr, tiles.nr, *(cut(tiles, *shape) for shape in shapes)), tiles)
        return list(seen.values())

    def neighbours(self, tiles, shapes) -> list:
        """One size of these changed, the register tile kept."""
        steps = [{"kc": tiles.kc * 3 // 4 // 8 * 8}, {"kc": tiles.kc * 5 // 4 // 8 * 8},
                 {"nb": fit(tiles.nb // 2, tiles.nr)}, {"nb": fit(tiles.nb * 3 // 2, tiles.nr)},
                 {"mc": fit(tiles.mc // 4, tiles.mr)}, {"nc": fit(tiles.nc // 4, tiles.nb)}]  # fmt: skip
        made = []
        for step in steps:
            changed = replace(tiles, **step)
            made.append(replace(changed, nc=fit(max(changed.nc, changed.nb), changed.nb)))
        return [t for t in self.distinct([tiles, *made], shapes)[1:] if not self.illegal(t)]

    # -- time --------------------------------------------------------------------------------------------------------

    def lanes(self, shapes, layouts, threads):
        for count in threads:
            if count > self.available:
                raise Impossible(f"threads {count}: there are {self.available}")
        return [(*shape, layout, count) for count in threads for layout in layouts for shape in shapes]

    def judging(self, shapes, sizes):
        """The shapes that a winner is judged by: those that are asked for and those of the class."""
        return [*shapes, *sizes]

    def compile(self, work, end, heard) -> None:
        """What the candidates need, apart from the races: a product by each register tile, until `end`. What fails says
        so there."""
        tiles = list({(each.mr, each.nr): each for each, _ in work}.values())
        for i, each in enumerate(tiles):
            for layout in ("NN", "TN"):
                self.prepare((2 * each.mr, each.nr, 64, layout, 1))
                with contextlib.suppress(Exception):
                    self._run(each, self._arrays[2])
            heard("compile", i + 1, len(tiles), each)
            if time.perf_counter() > end:
                return

    def prepare(self, lane) -> None:
        """Arrays of the tuner's own for a lane, and the result; those of LANES lanes are kept."""
        from .matrices import matrices

        if (found := self._kept.pop(lane, None)) is None:
            while len(self._kept) >= LANES:
                del self._kept[next(iter(self._kept))]
            a, b, out = matrices(*lane[:4], self.dtype)
            found = self._arrays = a, b, out, np.empty_like(out)
            self._run(self.default, found[3])
        self._kept[lane] = self._arrays = found

    def _run(self, tiles, out):
        from ..cpu.gemm import gemm

        a, b, *_ = self._arrays
        gemm.gemm(out, None, a, b, 0, 1, tiles)

    def sample(self, tiles, lane) -> float:
        """Seconds of one call. The first one of a candidate on a lane is held against the default's result, bit by bit:
        tiles never change them."""
        with workers(lane[-1]):
            self.prepare(lane)
            out = self._arrays[2]
            if (tiles, lane) not in self._checked:
                out.fill(0)
                self._run(tiles, out)
                if out.tobytes() != self._arrays[3].tobytes():
                    raise ArithmeticError(f"wrong: {tiles} gave other bits than the default at {lane}")
                self._checked.add((tiles, lane))
            return self.timed(self._run, tiles, lane)

    def timed(self, run, tiles, lane) -> float:
        """Seconds of run(tiles, out) on the arrays of a lane: the fastest of TURNS, or fewer."""
        out = self._arrays[2]
        if lane not in self._repeats:
            least = min(_timed(run, tiles, out, 1) for _ in range(3))
            repeats = max(1, int(LEAST / least))
            self._repeats[lane] = repeats, max(1, min(TURNS, int(LONG / (repeats * least))))
        repeats, turns = self._repeats[lane]
        return min(_timed(run, tiles, out, repeats) for _ in range(turns))

    # -- what is kept ------------------------------------------------------------------------------------------------

    def store(self):
        from .. import winners

        return winners.store()

    def key(self, name, layout) -> str:
        from .. import winners
        from ..cpu.gemm import tuned
        from ..problem import CLASSES, LAYOUTS

        return winners.key(tuned.named(self.kind), 4 * CLASSES.index(name) + LAYOUTS.index(layout), tuned.place())

    def place(self) -> str:
        from ..cpu.gemm import tuned

        return tuned.place()

    def renew(self) -> None:
        from ..cpu.runtime.invalidate import renew

        renew()


def _timed(run, tiles, out, repeats) -> float:
    turns = range(repeats)
    start = time.perf_counter()
    for _ in turns:
        run(tiles, out)
    return (time.perf_counter() - start) / repeats


def fit(size: int, step: int) -> int:
    """The largest multiple of step that is not more than size; one step at least.

    >>> fit(100, 16), fit(3, 16)
    (96, 16)
    """
    return max(step, size // step * step)


def cut(tiles, m, n, k) -> tuple:
    """What of the tiles a product of this shape shows: kc, nb, mc, nc as far as it goes."""
    return min(tiles.kc, k), min(tiles.nb, -(-n // tiles.nr) * tiles.nr), min(tiles.mc, m), min(tiles.nc, n)


@contextlib.contextmanager
def workers(count):
    """The library on so many threads."""
    import numba

    available = numba.get_num_threads()
    numba.set_num_threads(count)
    try:
        yield
    finally:
        numba.set_num_threads(available)
