"""Rows of benches as text, CSV and JSON; two files of them held against each other."""

from __future__ import annotations

import csv
import json
import os

from ..plots import columns
from ..plots.blocks import bar

SAME = 0.03  # a change up to which rows are level, whatever their spread
BAR = "best, | is 1"
MEASURED = ("bench", "op", "shape", "dtype", "threads", "layout", "device", "tiles")


class Unreadable(ValueError):
    """A file that holds no rows; the text is one line for a person."""


def named(row) -> str:
    op = row.get("op")
    what = [row["bench"], None if op in ("matmul", row["bench"]) else op, "x".join(map(str, row["shape"]))]
    return " ".join(filter(None, what))


def table(rows) -> str:
    """A line a row, with a bar of the ratio to the best peer, where there is room: half of its width is 1."""
    rows = list(rows)
    peers = list(dict.fromkeys(peer for row in rows for peer in row["peers"]))
    lines, plans = [], any("plan" in row for row in rows)
    for row in rows:
        ours, ratios = row["ours_s"], {peer: seconds / row["ours_s"] for peer, seconds in row["peers"].items()}
        lines.append({
            "": " ".join(filter(None, [named(row), row["dtype"], row["layout"]])), "threads": f"{row['threads']}",
            **({"plan": row.get("plan", "")} if plans else {}), "ours us": f"{ours * 1e6:.1f}",
            "GFLOP /s": f"{row['gflops']:.1f}" if row.get("gflops") else "",
            "of peak": f"{row['peak_share']:.0%}" if row.get("peak_share") else "",
            **{f"vs {peer}": f"{ratios[peer]:.2f}x" if peer in ratios else "" for peer in peers},
            BAR: _marked(min(ratios.values())) if ratios else "",
        })  # fmt: skip
    return columns.table(lines, [BAR]) if lines else ""


def _marked(ratio) -> str:
    text = bar(ratio, 10)
    return f"{text[:5]}|{text[5:]}".rstrip()


def writable(*files) -> None:
    """An OSError for a file that cannot be written, before anything is timed, not after."""
    for file in filter(None, files):
        if file != "-":
            there = os.path.exists(file)
            with open(file, "a", encoding="utf-8"):
                pass
            if not there:
                os.unlink(file)


def write_csv(rows, file) -> None:
    """One line a row and peer, with the configuration in each."""
    with open(file, "w", encoding="utf-8", newline="") as out:
        fields = [*MEASURED[:-1], "ours_s", "spread", "gflops", "gb_s", "peak_share", "peak", "peer", "peer_s", "ratio"]
        writer = csv.DictWriter(out, fields, extrasaction="ignore", restval="")
        writer.writeheader()
        for row in rows:
            own = {**row, "shape": "x".join(map(str, row["shape"]))}
            for peer, seconds in row["peers"].items() or [("", None)]:
                writer.writerow({**own, "peer": peer, "peer_s": seconds, "ratio": seconds and seconds / row["ours_s"]})


def read(file) -> dict[tuple, tuple[float, float]]:
    """{what was measured: (seconds, spread)} of a file that `bench --json`, `tune --json`, bench/*.py --json or
    pytest's --benchmark-json has written."""
    try:
        with open(file, encoding="utf-8") as text:
            content = json.load(text)
        if "benchmarks" in content:
            return {(each["fullname"],): _of_pytest(each["stats"]) for each in content["benchmarks"]}
        return {_key(row): (float(row.get("ours_s") or row["seconds"]), float(row.get("spread") or 0))
                for row in content["rows"]}  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = str(error) or type(error).__name__
        raise Unreadable(f"{file} holds no rows of a bench: {type(error).__name__} {why}") from None


def _of_pytest(stats) -> tuple[float, float]:
    return stats["median"], stats["iqr"] / stats["median"]


def _key(row) -> tuple:
    return tuple(str(row[name]) for name in MEASURED if row.get(name) not in (None, ""))


def verdict(before, after) -> tuple[float, str]:
    """(how many times as fast, in a word): a change within SAME or within what both runs spread by is none.

    >>> verdict((1.0, 0.01), (0.5, 0.01)), verdict((1.0, 0.2), (1.1, 0.0)), verdict((1.0, 0.0), (1.1, 0.0))[1]
    ((2.0, 'faster'), (0.9090909090909091, 'within noise'), 'slower')
    """
    ratio = before[0] / after[0]
    noise = max(SAME, before[1], after[1])
    return ratio, "faster" if ratio > 1 + noise else "slower" if ratio < 1 / (1 + noise) else "within noise"


def compare(first, second) -> tuple[str, int]:
    """(a table of what both files measured, how many of these rows are slower in the second)."""
    before, after = read(first), read(second)
    common = [key for key in before if key in after]
    if not common:
        raise Unreadable(f"{first} and {second} measured nothing that is the same")
    lines, slower = [], 0
    for key in common:
        ratio, word = verdict(before[key], after[key])
        slower += word == "slower"
        lines.append(
            [" ".join(key), f"{before[key][0] * 1e6:.2f}", f"{after[key][0] * 1e6:.2f}", f"{ratio:.2f}x", word]
        )
    text = columns.fitted(lines, ["", "A us", "B us", "B's speed over A's", ""])
    alone = [f"{len(side) - len(common)} rows are in {file} alone"
             for side, file in ((before, first), (after, second)) if len(side) > len(common)]  # fmt: skip
    counts = ", ".join(
        f"{sum(line[4] == word for line in lines)} {word}" for word in ("faster", "slower", "within noise")
    )
    return "\n".join([text, counts, *alone]), slower
