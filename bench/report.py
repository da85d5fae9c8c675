"""README's tables of measured ratios, from the committed results: python bench/report.py [--check].

A result file, bench/results/NAME.json, is one run on one machine:

    {"meta": {"cpu": str, "cores": int, "versions": {package: str}, "date": "YYYY-MM-DD"},
     "rows": [{"bench": "addmm", "shape": [m, n, k], "dtype": "float32", "threads": 1, "layout": "NN",
               "ours_s": median seconds, "peers": {"NumPy": median seconds, ...},
               "gflops": 2mnk / ours_s / 1e9 or null, "peak_share": share of the measured FMA peak or null}]}

`nbkernels.info.meta()` gives the meta; `nbkernels.compare` gives rows. README says where a table goes:

    <!-- table NAME -->
    (rewritten by this script)
    <!-- end -->

--check writes nothing and fails where README and results are out of step.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARKERS = re.compile(r"(<!-- table (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def size(row):
    """How a row's shape prints: n for a square product.

    >>> size({"shape": [64, 64, 64]}), size({"shape": [8, 128, 1024]}), size({"shape": [16000000]})
    ('64', '8x128x1024', '16000000')
    """
    shape = row["shape"]
    if isinstance(shape, str):
        return shape
    return str(shape[0]) if len(set(shape)) == 1 else "x".join(map(str, shape))


def markdown(results):
    """A Markdown table, a line per row, peers as ratios (above 1: this library is faster), and where that was."""
    meta, rows = results["meta"], results["rows"]
    peers = list(dict.fromkeys(peer for row in rows for peer in row["peers"]))
    columns = [
        "",
        "size",
        "dtype",
        "layout",
        "threads",
        "time",
        "GFLOP/s",
        "of peak",
        *(f"vs {peer}" for peer in peers),
    ]
    lines = [columns, ["---"] * 5 + ["---:"] * (len(columns) - 5)]
    for row in rows:
        ratios = [f"{row['peers'][peer] / row['ours_s']:.2f}x" if peer in row["peers"] else "" for peer in peers]
        gflops = "" if row.get("gflops") is None else f"{row['gflops']:.1f}"
        share = "" if row.get("peak_share") is None else f"{row['peak_share']:.0%}"
        cells = [row["bench"], size(row), row["dtype"], row.get("layout") or "", row["threads"], seconds(row["ours_s"])]
        lines.append([*map(str, cells), gflops, share, *ratios])
    versions = ", ".join(f"{name} {version}" for name, version in meta["versions"].items())
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    where = f"{meta['cpu']} ({meta['cores']} cores) with {versions}"
    return f"{table}\n\nInterleaved medians, measured {meta['date']} on {where}.\n"


def seconds(value):
    """Three digits and a unit.

    >>> seconds(3.2e-7), seconds(0.0123), seconds(2)
    ('0.320 us', '12.3 ms', '2.00 s')
    """
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if value * scale >= 1 or unit == "us":
            break
    number = value * scale
    digits = 0 if number >= 100 else 1 if number >= 10 else 2 if number >= 1 else 3
    return f"{number:.{digits}f} {unit}"


def rewrite(text, directory):
    """The text with every marked table made anew from its result file in `directory`."""

    def table(match):
        results = json.loads((directory / f"{match['name']}.json").read_text(encoding="utf-8"))
        return match[1] + markdown(results) + match[3]

    return MARKERS.sub(table, text)


def main(arguments):
    readme = ROOT / "README.md"
    old = readme.read_text(encoding="utf-8")
    new = rewrite(old, ROOT / "bench" / "results")
    if arguments == ["--check"]:
        if new != old:
            print("README's tables are not what bench/results says: run python bench/report.py", file=sys.stderr)
        return int(new != old)
    if arguments:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    readme.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
