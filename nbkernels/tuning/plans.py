"""By which L2 products choose their path (nbkernels/cpu/gemm/paths.py): every path that some L2 chooses is timed on
shapes around its borders, and the L2 whose choices take the least time is kept, where it convinces.

A record of a machine can be wrong: a guest is told its host's caches, or those of another processor.
"""

from __future__ import annotations

import contextlib
import statistics
from dataclasses import dataclass

from . import keep
from .race import MARGIN, Race, mean, versus

FACTORS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 2, 4, 8)  # of the stated L2
LEAST, MOST = 64 << 10, 64 << 20
LAPS, ROUNDS = 3, 7
# Around the borders: an A of 0.1 to 8 MB against panels of B, a C of as much in few steps, few rows against a wide B.
SHAPES = (
    *((m, 500, 256) for m in (100, 200, 400, 800, 1600)),
    *((m, 700, 500) for m in (200, 400, 800, 1600)),
    *((n, n, k) for k in (8, 32) for n in (150, 300, 600, 1200)),
    *((16, n, k) for k in (256, 1000) for n in (500, 1000, 2000)),
)


@dataclass(frozen=True)
class Way:
    """A path as a candidate of the race."""

    number: int


class Paths:
    """Products by a path of their own; a lane is (m, n, k, layout, threads)."""

    def __init__(self, side):
        self.side = side

    def sample(self, way, lane) -> float:
        from ..cpu.gemm import gemm
        from .cpu import workers

        with workers(lane[-1]):
            self.side.prepare(lane)
            a, b, out, _ = self.side._arrays

            def call(tiles, out):
                return gemm.by_path(way.number, out, None, a, b, 0, 1)

            return self.side.timed(call, None, lane)


def chosen(lane, dtype, l2) -> Way:
    """The path by an L2."""
    from ..cpu.gemm import blocking, paths

    m, n, k, _, count = lane
    return Way(paths.choose(blocking.small(dtype), m, n, k, paths.BY_ROWS, paths.BY_ROWS, True, count, l2))


def find(side, store, end, heard) -> str | None:
    """Race the paths and keep an L2; what to say of it, None where there is nothing to say."""
    from ..cpu.runtime import machine

    if side.dtype not in ("float32", "float64"):
        return None
    stated = machine.stated()
    sizes = [int(stated.l2 * factor) for factor in FACTORS]
    sizes = [size for size in sizes if max(LEAST, stated.l1) <= size <= min(MOST, stated.l3 or MOST)]
    with _forgotten(store, machine.plan_key(), side):
        lanes = side.lanes(SHAPES, ["NN"], [side.available])
        ways = {lane: {size: chosen(lane, side.dtype, size) for size in (stated.l2, *sizes)} for lane in lanes}
        lanes = [lane for lane in lanes if len(set(ways[lane].values())) > 1]
        timed, ratios = Paths(side), {}
        for i, lane in enumerate(lanes):
            usual = ways[lane][stated.l2]
            race = Race(timed.sample, usual, [lane], end=end)
            for _ in range(LAPS):
                race.lap(sorted(set(ways[lane].values()) - {usual}, key=lambda way: way.number))
            ratios[lane] = {way: race.score(way) for way in ways[lane].values()} | {usual: 1.0}
            heard("paths", i + 1, len(lanes), f"{lane[0]}x{lane[1]}x{lane[2]}")
        known = [lane for lane in lanes if max(ratios[lane].values()) < float("inf")]
        scores = {size: mean(ratios[lane][ways[lane][size]] for lane in known) for size in sizes} if known else {}
        if not scores:
            return None
        best = min(scores, key=scores.get)
        changed = [lane for lane in known if ways[lane][best] != ways[lane][stated.l2]]
        if scores[best] > 1 / (1 + MARGIN / 2) or not changed:
            return "paths: chosen best as the caches tell"
        verdicts = [verdict for lane in changed
                    for verdict in versus(timed.sample, ways[lane][stated.l2], ways[lane][best], [lane],
                                          rounds=ROUNDS, end=end)]  # fmt: skip
    gain, noise = mean(each.ratio for each in verdicts), statistics.median(each.noise for each in verdicts)
    if not convincing(verdicts):
        return "paths: no other L2 is better by enough: chosen as the caches tell"
    record = {"candidate": {"l2": best}, "ratio": gain, "noise": noise, "versions": keep.versions()}
    said = f"paths: chosen as with an L2 of {best >> 10} KiB, stated are {stated.l2 >> 10}: {gain:.2f} times as fast"
    if store is None or not store.add({machine.plan_key(): record}):
        return f"{said}; not kept"
    side.renew()
    return said


def convincing(verdicts) -> bool:
    """Whether another L2 is better: on average by more than MARGIN and the noise, and on more than twice as many shapes
    as it is worse on. Unlike tiles, which are a class's own, every L2 is a compromise between shapes.

    >>> from nbkernels.tuning.race import Verdict
    >>> convincing([Verdict(0, 1.5, 1.0, 0.1)] * 5 + [Verdict(0, 0.8, 1.0, 0.1)] * 2)
    True
    >>> convincing([Verdict(0, 1.5, 1.0, 0.1)] * 4 + [Verdict(0, 0.8, 1.0, 0.1)] * 2)
    False
    """
    noise = statistics.median(each.noise for each in verdicts)
    better = sum(each.ratio > 1 + max(MARGIN, each.noise) for each in verdicts)
    worse = sum(each.ratio < 1 / (1 + max(MARGIN, each.noise)) for each in verdicts)
    return mean(each.ratio for each in verdicts) > 1 + max(MARGIN, noise) and better > 2 * worse


@contextlib.contextmanager
def _forgotten(store, key, side):
    """Without the L2 that was kept before: it is found again, where it is still better."""
    if store is not None and key in store.entries():
        store.remove([key])
        side.renew()
    yield
