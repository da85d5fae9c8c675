"""By whose costs products choose their path (nbkernels/cpu/gemm/cost.py): every path that some kind of processor's
costs choose is timed on shapes where they differ, and the kind whose choices take the least time is kept, where it
convinces.

No costs are this machine's own: the nearest kind's may be those of another generation.
"""

from __future__ import annotations

import contextlib
import statistics
from dataclasses import dataclass

from . import keep
from .race import MARGIN, Race, mean, versus

LAPS, ROUNDS = 3, 7
# An A of 0.1 to 8 MB against panels of B, a C of as much in few steps, few rows against a wide B, squares, few columns.
SHAPES = (
    *((m, 500, 256) for m in (100, 200, 400, 800, 1600)),
    *((m, 700, 500) for m in (200, 400, 800, 1600)),
    *((n, n, k) for k in (8, 32) for n in (150, 300, 600, 1200)),
    *((16, n, k) for k in (256, 1000) for n in (500, 1000, 2000)),
    *((n, n, n) for n in (50, 75, 150)),
    *((m, n, k) for m in (200, 2000) for n in (3, 12, 40) for k in (20, 300)),
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


def chosen(lane, dtype, kind) -> Way:
    """The path by a kind's costs."""
    from ..cpu.gemm import blocking, cost, paths

    m, n, k, _, count = lane
    costs = cost.KINDS[kind]["table"]
    return Way(paths.choose(blocking.small(dtype), (m, n, k, k, 1, n, 1), True, count, blocking.caches()[1], costs))


def find(side, store, end, heard) -> str | None:
    """Race the paths and keep a kind of costs; what to say of it, None where there is nothing to say."""
    from ..cpu.gemm import cost
    from ..cpu.runtime import machine

    if side.dtype not in ("float32", "float64"):
        return None
    with _forgotten(store, machine.plan_key(), side):
        own, lanes = cost.kind(machine.stated()), side.lanes(SHAPES, ["NN"], [side.available])
        ways = {lane: {kind: chosen(lane, side.dtype, kind) for kind in cost.KINDS} for lane in lanes}
        lanes = [lane for lane in lanes if len(set(ways[lane].values())) > 1]
        timed, ratios = Paths(side), {}
        for i, lane in enumerate(lanes):
            usual = ways[lane][own]
            race = Race(timed.sample, usual, [lane], end=end)
            for _ in range(LAPS):
                race.lap(sorted(set(ways[lane].values()) - {usual}, key=lambda way: way.number))
            ratios[lane] = {way: race.score(way) for way in ways[lane].values()} | {usual: 1.0}
            heard("paths", i + 1, len(lanes), f"{lane[0]}x{lane[1]}x{lane[2]}")
        known = [lane for lane in lanes if max(ratios[lane].values()) < float("inf")]
        others = [kind for kind in cost.KINDS if kind != own] if known else []
        scores = {kind: mean(ratios[lane][ways[lane][kind]] for lane in known) for kind in others}
        if not scores:
            return None
        best = min(scores, key=scores.get)
        changed = [lane for lane in known if ways[lane][best] != ways[lane][own]]
        if scores[best] > 1 / (1 + MARGIN / 2) or not changed:
            return f"paths: chosen best by the costs of {own}"
        verdicts = [verdict for lane in changed
                    for verdict in versus(timed.sample, ways[lane][own], ways[lane][best], [lane],
                                          rounds=ROUNDS, end=end)]  # fmt: skip
    gain, noise = mean(each.ratio for each in verdicts), statistics.median(each.noise for each in verdicts)
    if not convincing(verdicts):
        return f"paths: no other costs are better by enough: chosen by those of {own}"
    record = {"candidate": {"costs": best}, "ratio": gain, "noise": noise, "versions": keep.versions()}
    said = f"paths: chosen by the costs of {best}, in place of {own}: {gain:.2f} times as fast"
    if store is None or not store.add({machine.plan_key(): record}):
        return f"{said}; not kept"
    side.renew()
    return said


def convincing(verdicts) -> bool:
    """Whether other costs are better: on average by more than MARGIN and the noise, and on more than twice as many
    shapes as they are worse on. Unlike tiles, which are a class's own, all costs are a compromise between shapes.

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
    """Without the kind that was kept before: it is found again, where it is still better."""
    if store is not None and key in store.entries():
        store.remove([key])
        side.renew()
    yield
