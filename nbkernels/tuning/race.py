"""The race of candidates: successive halving by ratios to a default that is timed in between. Knows no kernel.

A candidate is anything hashable, a lane what it is timed on; `sample(candidate, lane)` gives seconds of one call. The
speed of a machine drifts by more than tiles differ, so that a time is held against those of the default around it.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from dataclasses import dataclass

EACH = 4  # candidates between two samples of the default
NEAR = 3  # samples of the default, the fastest of which stands for it
FEW = 4  # who is left at the end of a race, and runs some laps more
LAPS = 3  # of these
TAKES = 3  # samples that are taken where the clock jumps
ABSURD = 200  # times as long, or as short, as the default: a clock that jumped
MARGIN = 0.03  # what a winner must be faster by, at the least


def sound(seconds, like=None) -> bool:
    """Whether a sample can be a time: not negative, not zero, not hours beside a call of milliseconds.

    >>> sound(0.1), sound(-0.1), sound(float("nan")), sound(3600, like=0.01)
    (True, False, False, False)
    """
    return 0 < seconds < math.inf and (like is None or like / ABSURD < seconds < ABSURD * like)


def mean(ratios) -> float:
    """Geometric."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


def low(times) -> float:
    """The end of the lower third: other work on the machine only adds time.

    >>> low([3.0]), low([3.0, 2.0]), low([4.0, 3.0, 2.0, 1.0])
    (3.0, 2.0, 2.0)
    """
    return sorted(times)[(len(times) - 1) // 3]


@dataclass(frozen=True)
class Verdict:
    """A winner against the default on one lane: seconds by `low`, and how far the default was from itself."""

    lane: object
    default_s: float
    winner_s: float
    noise: float

    @property
    def ratio(self) -> float:
        return self.default_s / self.winner_s


class Race:
    """The race of candidates over `lanes`. `heard(done, total, best)` is told after each sample, `end` is when it is
    over whoever leads, by `clock`."""

    def __init__(self, sample, default, lanes, *, end=math.inf, heard=None, clock=time.perf_counter, seed=0):
        self.sample, self.default, self.lanes, self.end, self.clock = sample, default, list(lanes), end, clock
        self.heard = heard or (lambda done, total, best: None)
        self.ratios, self.base, self.failed = {}, {lane: [] for lane in self.lanes}, {}
        self.done = self.total = 0
        self.random = random.Random(seed)
        self.like = {}
        self._best = None

    @property
    def over(self) -> bool:
        return self.clock() >= self.end

    def take(self, candidate, lane) -> float | None:
        """Seconds, or None where the clock gave none."""
        for _ in range(TAKES):
            seconds = self.sample(candidate, lane)
            if sound(seconds, self.like.get(lane)):
                return seconds
        return None

    def reference(self, lane) -> float:
        seconds = self.take(self.default, lane)
        if seconds is None:
            raise ArithmeticError("the clock of this machine jumps: no time of the default could be taken")
        self.base[lane].append(seconds)
        if lane not in self.like:
            first = [seconds, *filter(sound, (self.sample(self.default, lane) for _ in range(2)))]
            self.like[lane] = min(first)
        return seconds

    def lap(self, candidates) -> None:
        """One sample of each on each lane, in another order each time: a few on all lanes, then the next."""
        order = [c for c in candidates if c not in self.failed]
        self.random.shuffle(order)
        for start in range(0, len(order), EACH):
            for lane in self.lanes:
                if self.over:
                    return
                self._few(order[start : start + EACH], lane)

    def _few(self, candidates, lane) -> None:
        """A sample of each, between two of the default."""
        self.reference(lane)
        taken = {}
        for candidate in candidates:
            try:
                taken[candidate] = None if candidate in self.failed else self.take(candidate, lane)
            except Exception as error:  # it does not compile, say: the others go on
                self.failed[candidate] = f"{type(error).__name__}: {error}".splitlines()[0]
        self.reference(lane)
        like = min(self.base[lane][-NEAR:])  # others' work on the machine only adds time
        for candidate, seconds in taken.items():
            if seconds is not None:
                self.ratios.setdefault(candidate, {}).setdefault(lane, []).append(seconds / like)
            self.done += 1
            self.heard(self.done, self.total, self.best(candidate))

    def best(self, candidate):
        """The best of all after a new sample of this one, by score."""
        if (
            candidate in self.ratios
            and candidate not in self.failed
            and (self._best is None or self._best == candidate or self.score(candidate) < self.score(self._best))
        ):
            self._best = candidate
        return self._best

    def score(self, candidate) -> float:
        """Time over the default's: geometric mean over the lanes; infinite where it has not finished one lap."""
        ratios = self.ratios.get(candidate, {})
        if candidate in self.failed or len(ratios) < len(self.lanes):
            return math.inf
        return mean(low(each) for each in ratios.values())

    def ranked(self) -> list:
        """Who has run, the fastest first."""
        return sorted((c for c in self.ratios if self.score(c) < math.inf), key=self.score)

    def seconds(self, candidate, lane) -> float | None:
        """Its ratio in the default's seconds."""
        if candidate == self.default:
            return low(self.base[lane]) if self.base[lane] else None
        ratios = self.ratios.get(candidate, {}).get(lane)
        return low(ratios) * low(self.base[lane]) if ratios else None

    def run(self, candidates, laps=1) -> list:
        """Halve after `laps` laps until FEW are left, which run LAPS laps more; the ranking, without the default."""
        alive = [c for c in dict.fromkeys(candidates) if c not in self.failed and c != self.default]
        runs, size = 0, len(alive)
        while size > FEW:
            runs, size = runs + size * laps, max(FEW, size // 2)
        self.total = self.done + len(self.lanes) * (runs + size * LAPS)
        while len(alive) > FEW and not self.over:
            for _ in range(laps):
                self.lap(alive)
            alive = [c for c in self.ranked() if c in set(alive)][: max(FEW, len(alive) // 2)]
            if not alive:
                break
        for _ in range(LAPS):
            if not self.over:
                self.lap(alive)
        return self.ranked()


def versus(sample, default, winner, lanes, *, rounds=9, end=math.inf, clock=time.perf_counter):
    """[Verdict] of the winner against the default on every lane, in turns, with the default once more in each: what it
    differs from itself by is noise."""
    found = []
    for lane in lanes:
        times = {0: [], 1: [], 2: []}
        like = min(filter(sound, (sample(default, lane) for _ in range(TAKES))), default=None)
        for turn in range(rounds):
            for which in ((0, 1, 2), (2, 1, 0))[turn % 2]:
                seconds = sample(winner if which == 1 else default, lane)
                if sound(seconds, like):
                    times[which].append(seconds)
            if clock() >= end and turn >= 2:
                break
        if not all(times.values()):
            raise ArithmeticError("the clock of this machine jumps: the winner could not be judged")
        one, own, other = (low(times[i]) for i in range(3))
        found.append(Verdict(lane, math.sqrt(one * other), own, abs(one / other - 1)))
    return found


def convincing(verdicts) -> bool:
    """Whether a winner is to be kept: on every lane faster than the default by more than MARGIN and the noise there.

    >>> convincing([Verdict("a", 1.10, 1.0, 0.02), Verdict("b", 1.05, 1.0, 0.01)])
    True
    >>> convincing([Verdict("a", 1.10, 1.0, 0.02), Verdict("b", 1.05, 1.0, 0.06)])
    False
    """
    return bool(verdicts) and all(each.ratio > 1 + max(MARGIN, each.noise) for each in verdicts)
