"""Tuning: the result of a tune, a record that prints, and goes to JSON, CSV and pictures."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, dataclass, field, fields

from ..plots import columns

SHOWN = 12  # candidates of a class in the table


@dataclass(frozen=True)
class Row:
    """A candidate on a lane: seconds of a call, and its speed over the default's (above 1: faster).

    `mark` says what it is: "default", "winner" (kept), "fastest" (of all, but not by enough to be kept), or "".
    """

    shape: tuple
    shape_class: str
    dtype: str
    layout: str
    threads: int
    device: str
    tiles: dict
    seconds: float
    ratio: float
    samples: int
    mark: str = ""

    @property
    def gflops(self) -> float:
        m, n, k = self.shape
        return 2 * m * n * k / self.seconds / 1e9

    def flat(self) -> dict:
        """One level deep: a line of a CSV file."""
        m, n, k = self.shape
        row = asdict(self)
        return {"class": row["shape_class"], "m": m, "n": n, "k": k, "dtype": self.dtype, "layout": self.layout,
                "threads": self.threads, "device": self.device, **self.tiles, "seconds": self.seconds,
                "gflops": self.gflops, "ratio": self.ratio, "samples": self.samples, "mark": self.mark}  # fmt: skip


@dataclass(frozen=True)
class Final:
    """A class and layout in which a candidate was measured against the default at the end, and whether it is kept."""

    shape_class: str
    layout: str
    tiles: dict
    default: dict
    kept: bool
    why: str
    verdicts: tuple


@dataclass
class Tuning:
    """The result of `nbkernels.tune`: rows, one for each candidate on each lane; finals; what failed, and notes."""

    meta: dict
    names: tuple
    rows: list = field(default_factory=list)
    finals: list = field(default_factory=list)
    failed: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)
    interrupted: bool = False

    @property
    def kept(self) -> list:
        return [final for final in self.finals if final.kept]

    def candidates(self, shape_class) -> list[tuple]:
        """(tiles, geometric mean of ratios, {shape: GFLOP/s}, mark), the fastest first."""
        from .race import mean

        found = {}
        for row in self.rows:
            if row.shape_class == shape_class:
                found.setdefault(tuple(row.tiles.items()), []).append(row)
        lines = [
            (dict(tiles), mean(row.ratio for row in rows), {row.shape: row.gflops for row in rows}, rows[0].mark)
            for tiles, rows in found.items()
        ]
        return sorted(lines, key=lambda line: -line[1])

    def __str__(self) -> str:
        parts = []
        for name in dict.fromkeys(row.shape_class for row in self.rows):
            parts.append(self._table(name))
        for final in self.finals:
            parts.append(columns.line(_said(final)))
        parts += [columns.line(f"failed: {tiles}: {why}") for tiles, why in self.failed.items()]
        return "\n".join([*parts, *map(columns.line, self.notes)])

    def _repr_html_(self) -> str:
        """A table of all rows, as notebooks show it."""
        from tabulate import tabulate

        return tabulate([row.flat() for row in self.rows], headers="keys", tablefmt="html")

    def _table(self, name) -> str:
        every = self.candidates(name)
        shown = [line for i, line in enumerate(every) if i < SHOWN or line[3]]
        shapes = dict.fromkeys(shape for _, _, speeds, _ in every for shape in speeds)
        heads = {shape: f"{'x'.join(map(str, shape))} GFLOP/s" for shape in shapes}
        lines = [
            {**{size: tiles[size] for size in self.names}, "x default": f"{ratio:.3f}"}
            | {head: f"{speeds[shape]:.1f}" if shape in speeds else "" for shape, head in heads.items()}
            | {"": mark}
            for tiles, ratio, speeds, mark in shown
        ]
        more = f"\n... {len(every) - len(shown)} slower ones" if len(every) > len(shown) else ""
        head = self.rows[0]
        return f"{name}, {head.dtype}, {head.device}\n{columns.table(lines, list(heads.values())[1:])}{more}\n"

    def json(self, file) -> None:
        """Write all of it; `python -m nbkernels bench --compare` reads the rows."""
        content = {
            "meta": self.meta,
            "names": self.names,
            "rows": [{"bench": "tiles", **asdict(row), "gflops": row.gflops} for row in self.rows],
            "finals": [asdict(final) for final in self.finals],
            "failed": self.failed,
            "notes": self.notes,
        }
        with open(file, "w", encoding="utf-8") as out:
            json.dump(content, out, indent=1)

    @classmethod
    def read(cls, file):
        """What `json` has written: its rows."""
        with open(file, encoding="utf-8") as text:
            content = json.load(text)
        known = {each.name for each in fields(Row)}
        rows = [Row(**{k: tuple(v) if k == "shape" else v for k, v in row.items() if k in known})
                for row in content["rows"]]  # fmt: skip
        return cls(content["meta"], tuple(content["names"]), rows)

    def csv(self, file) -> None:
        """Write the rows, with the configuration in each."""
        with open(file, "w", encoding="utf-8", newline="") as out:
            lines = [row.flat() for row in self.rows]
            writer = csv.DictWriter(out, list(lines[0]) if lines else ["class"])
            writer.writeheader()
            writer.writerows(lines)

    def t4(self, file) -> None:
        """Write the rows as T4, the results format of Kernel Tuner and others, version 1.0.0.

        A configuration has the tiles, and of the product m, n, k, dtype, layout, threads and device; times are
        milliseconds, the median of a call's samples. Every candidate had the default's bits: all are correct.
        """
        content = {"schema_version": "1.0.0", "results": [_as_t4(row, self.meta["date"]) for row in self.rows]}
        with open(file, "w", encoding="utf-8") as out:
            json.dump(content, out, indent=1)

    def plot(self, file, x=None, y=None) -> None:
        """Draw the heat map over two sizes of tiles; by default the two with the most values."""
        from ..plots import draw

        draw.save(file, draw.tiles, self, x, y)


def _as_t4(row, date) -> dict:
    m, n, k = row.shape
    problem = {"m": m, "n": n, "k": k, "dtype": row.dtype, "layout": row.layout, "threads": row.threads}
    spent, speed = row.seconds * 1e3, row.gflops
    return {
        "timestamp": date,
        "configuration": {**row.tiles, **problem, "device": row.device},
        "times": {"runtimes": [spent]},
        "invalidity": "correct",
        "correctness": 1,
        "measurements": [
            {"name": "time", "value": spent, "unit": "ms"},
            {"name": "GFLOP/s", "value": speed, "unit": "GFLOP/s"},
        ],
        "objectives": ["time"],
    }


def _said(final) -> str:
    sizes = " ".join(f"{name}={size}" for name, size in final.tiles.items())
    ratios = [each.ratio for each in final.verdicts]
    noise = max(each.noise for each in final.verdicts)
    span = f"{min(ratios):.3f} to {max(ratios):.3f} times the default's speed, noise {noise:.1%}"
    return f"{final.shape_class} {final.layout}: {sizes}: {span}: {final.why}"
