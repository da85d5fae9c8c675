"""nbkernels.tune: classes one after another, each a race and, for whoever leads, a last measure against the default."""

from __future__ import annotations

import math
import time

from ..plots import columns
from . import ask, keep
from .race import MARGIN, Race, convincing, versus
from .result import Final, Row, Tuning

BUDGET = 240.0  # seconds for all classes
ROUNDS = 7  # turns of the last measure
PROMISING = 1 / (1 + MARGIN / 2)  # the score from which a candidate is worth a last measure
SWEEPS = 4  # laps of all candidates, where sizes are asked for: each is a cell of a picture
PATHS = 0.15  # of the budget, for paths
COMPILING = 0.4  # of the budget, at most
DEVICES = ("cpu", "cuda")


def backend(device, dtype, mode=None):
    """The device's side of the tuner, or Impossible."""
    if device == "cpu":
        from .cpu import Cpu

        if mode:
            raise ask.Impossible(f"mode {mode!r}: of device cuda")
        return Cpu(dtype)
    if device == "cuda":
        from .cuda import side

        return side(dtype, mode)
    raise ask.Impossible(f"device {device!r}: one of {', '.join(DEVICES)} is wanted")


class Plan:
    """What a tune would do: classes with shapes, lanes and candidates; said by --dry-run."""

    def __init__(self, side, shape, layout, threads, tiles):
        self.side, self.layouts = side, ask.layouts(layout)
        self.shapes = ask.shapes(shape)
        counts = [threads] if isinstance(threads, int) else threads
        self.threads = list(dict.fromkeys(counts or (side.available, 1)))
        asked = ask.tiles(tiles, side.names)
        self.sweep = bool(asked)
        self.turned_away, self.candidates = {}, {}
        if asked:
            found, self.turned_away = ask.grid(asked, side.complete, side.illegal)
            if not found:
                reasons = "; ".join(list(self.turned_away)[:3])
                raise ask.Impossible(f"none of these tiles can be used: {reasons}")
        for name, shapes in self.shapes.items():
            self.candidates[name] = found if asked else side.candidates(shapes)
        side.lanes([(1, 1, 1)], self.layouts, self.threads)  # says what cannot be had

    def racing(self, name):
        """Where candidates of a class race: in the first layout, by the most threads, on the shapes that are asked for,
        of a class on the smallest and the largest one."""
        shapes = self.shapes[name]
        if shapes == ask.SIZES[name]:
            by_size = sorted(shapes, key=math.prod)
            shapes = list(dict.fromkeys((by_size[0], by_size[-1])))
        return self.side.lanes(shapes, self.layouts[:1], [max(self.threads)])

    def judging(self, name, layout):
        """Where the best one is held against the default."""
        shapes = dict.fromkeys(self.side.judging(self.shapes[name], ask.SIZES[name]))
        return self.side.lanes(shapes, [layout], self.threads)

    def work(self):
        """(candidate, lane) of all that is going to race."""
        return [(each, lane) for name in self.shapes for each in (self.side.default, *self.candidates[name])
                for lane in self.racing(name)]  # fmt: skip

    def __str__(self):
        lines = []
        for name, shapes in self.shapes.items():
            said = ", ".join("x".join(map(str, shape)) for shape in shapes)
            lines.append(f"{name}: {len(self.candidates[name])} candidates on {said}")
        lines.append(f"raced in {self.layouts[0]} by {max(self.threads)} threads, judged in {', '.join(self.layouts)} "
                     f"by {' and '.join(map(str, self.threads))}")  # fmt: skip
        lines += [f"left out: {count} of the tiles: {why}" for why, count in self.turned_away.items()]
        return "\n".join(map(columns.line, lines))


def tune(shape=None, *, dtype="float32", layout=None, threads=None, device="cpu", tiles=None, budget=BUDGET, save=True,
         mode=None, heard=None, side=None):  # fmt: skip
    """Find the tiles that are fastest here for matrix products, keep those that are, and use them from then on.

    `shape` is (m, n, k), a class ("square", "tall", "wide", "deep", "flat") or a list of these, by default every class;
    `layout` "NN", "NT", "TN", "TT" or several, by default all; `threads` how many, by default all and one; `tiles`
    sizes to sweep in place of those around the default, as {"kc": [128, 256]} or ["kc=128:512:64"] (mr, nr, kc, nb, mc,
    nc on the CPU; on CUDA tier, bm, bn, bk, stages, warps, raster, split, before compute capability 8.0 bm, bn, bk, tm,
    tn); `budget` seconds; `mode` "chain" or "tf32", of products on CUDA. Winners that are faster than the default by
    3 %, and by more than the default differs from itself, at every shape and number of threads are kept for the layout
    and class, unless `save` is False. Returns a Tuning: `rows`, `kept`, `json(file)`, `csv(file)`, `plot(file)`; it
    prints as a table.

    ValueError: what was asked for cannot be had, or another tune is at work. KeyboardInterrupt ends the measuring, not
    the result: `interrupted` says so.

    >>> import nbkernels
    >>> found = nbkernels.tune((64, 64, 64), tiles={"kc": [32, 64]}, layout="NN", threads=1, budget=60, save=False)
    >>> sorted(row.tiles["kc"] for row in found.rows)[:2]
    [32, 64]
    """
    side = side or backend(device, dtype, mode)
    plan = Plan(side, shape, layout, threads, tiles)
    if not 0 < budget < math.inf:
        raise ask.Impossible(f"budget {budget}: a positive number of seconds is wanted")
    from ..commands.info import meta

    store = side.store() if save else None
    found = Tuning(meta(), side.names)
    found.notes += [f"left out: {count} of the tiles: {why}" for why, count in plan.turned_away.items()]
    begun, names, heard = time.perf_counter(), list(plan.shapes), heard or (lambda *_: None)
    end = begun + budget
    with keep.alone(store):
        try:
            if shape is None and not plan.sweep:
                _machine(side, store, found, end, heard)
            side.compile(plan.work(), begun + COMPILING * budget, heard)
            for i, name in enumerate(names):
                left = end - time.perf_counter()
                until = time.perf_counter() + max(0.0, left) / (len(names) - i)
                try:
                    _class(side, plan, name, store, found, until, heard)
                except (ArithmeticError, MemoryError) as error:  # a clock that jumps, a large shape: others go on
                    found.notes.append(f"{name}: {error}")
        except KeyboardInterrupt:
            found.interrupted = True
            found.notes.append("interrupted: what was measured until then is above, what was kept stays")
    if save and store is None:
        found.notes.append("nothing can be kept: there is no directory of this user's to write to")
    return found


def _machine(side, store, found, end, heard):
    """What comes before a tune of all classes: the costs by which paths are chosen, and the peaks, which info shows."""
    if side.device != "cpu":
        return
    from ..benches import peak
    from . import plans

    top = peak.peaks(side.available)
    said = f"{top['gflops']:.0f} GFLOP/s, copies " + ", ".join(f"{k} {v:.0f} GB/s" for k, v in top["gb_s"].items())
    found.notes.append(f"peak by {side.available} threads: {said}")
    if store is not None:
        store.add({f"peaks on {side.place()}": {"candidate": top, "date": found.meta["date"]}})
    begun = time.perf_counter()
    if note := plans.find(side, store, begun + PATHS * (end - begun), heard):
        found.notes.append(note)


def _class(side, plan, name, store, found, until, heard):
    """One class: the race, its rows, and a last measure in each layout where it is worth one."""
    lanes = plan.racing(name)
    begun = time.perf_counter()
    share = 0.9 if plan.sweep else 0.7
    race = Race(side.sample, side.default, lanes, end=begun + share * (until - begun),
                heard=lambda done, total, best: heard(name, done, total, best))  # fmt: skip
    best = None
    try:
        race.run(plan.candidates[name], laps=SWEEPS if plan.sweep else 1)
        ranked = race.ranked()
        if ranked and not plan.sweep and not race.over:
            race.run([*side.neighbours(ranked[0], plan.shapes[name]), *ranked[:1]])
            ranked = race.ranked()
        best = ranked[0] if ranked else None
        if best is not None and race.score(best) < PROMISING:
            for layout in plan.layouts:
                if not _last(side, plan, name, layout, best, store, found, until, heard):
                    break
    finally:  # after Ctrl-C, too
        ranked = race.ranked()
        best = best or (ranked[0] if ranked else None)
        won = any(final.kept and final.shape_class == name and final.tiles == vars(best) for final in found.finals)
        marks = {side.default: "default"}
        if best is not None and (won or race.score(best) < 1):
            marks[best] = "winner" if won else "fastest"
        found.rows += _rows(side, race, name, marks)
        found.failed.update({str(tiles): why for tiles, why in race.failed.items()})
        if best is not None and not won:
            found.notes.append(f"{name}: the default stays")
        late = [c for c in plan.candidates[name] if c != side.default and race.score(c) == math.inf]
        if late := [c for c in late if c not in race.failed]:
            found.notes.append(f"{name}: time ran out before {len(late)} candidates were timed: a larger --budget")


def _last(side, plan, name, layout, best, store, found, until, heard):
    """The final of a class in one layout: whether the candidate convinces."""
    verdicts = []
    for lane in plan.judging(name, layout):
        verdicts += versus(side.sample, side.default, best, [lane], rounds=ROUNDS, end=until)
        heard(f"{name} {layout}, last measure", 0, 0, best)
        if not convincing(verdicts):
            break  # it is not to be kept, wherever else it is faster
    good, why = convincing(verdicts), f"not faster by enough on {named(verdicts[-1].lane)}: the default stays"
    if good:
        why = "faster; not kept, as was asked for" if store is None else "kept"
        if store is not None and not store.add({side.key(name, layout): keep.entry(best, verdicts, side.default)}):
            good, why = False, f"faster, but {store.path} cannot be written"
        side.renew()
    elif store is not None and side.key(name, layout) in store.entries():
        store.remove([side.key(name, layout)])  # a winner of old that is none any more
        side.renew()
    found.finals.append(Final(name, layout, vars(best), vars(side.default), good and store is not None, why,
                              tuple(verdicts)))  # fmt: skip
    return good


def named(lane) -> str:
    """
    >>> named((8, 9, 10, "NT", 2))
    '8x9x10 NT, 2 threads'
    """
    *shape, layout, count = lane
    return f"{'x'.join(map(str, shape))} {layout}, {count} thread{'s' * (count > 1)}"


def _rows(side, race, name, marks):
    """A row for the default and for each candidate that has finished a lap, on each lane."""
    rows = []
    for candidate in [side.default, *race.ranked()]:
        for lane in race.lanes:
            *shape, layout, threads = lane
            samples = race.base[lane] if candidate == side.default else race.ratios[candidate][lane]
            if samples:
                seconds, base = (race.seconds(each, lane) for each in (candidate, side.default))
                rows.append(Row(tuple(shape), name, side.dtype, layout, threads, side.device, dict(vars(candidate)),
                                seconds, base / seconds, len(samples), marks.get(candidate, "")))  # fmt: skip
    return rows
