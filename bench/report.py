"""README's table of measured ratios, from the committed results: python bench/report.py [--check].

A result file, bench/results/NAME.json, is one run on one machine:

    {"meta": {"cpu": str, "cores": int, "versions": {package: str}, "date": "YYYY-MM-DD"},
     "rows": [{"bench": "addmm", "shape": [m, n, k], "dtype": "float32", "threads": 1, "layout": "NN",
               "ours_s": median seconds, "peers": {"NumPy": median seconds, ...},
               "gflops": 2mnk / ours_s / 1e9 or null, "peak_share": share of the measured FMA peak or null}]}

`nbkernels.info.meta()` gives the meta; `python bench/bench_addmm.py --json FILE` writes such a file. README says where
the rows of one bench go, as a table that this script rewrites:

    <!-- table NAME BENCH -->
    <!-- end -->

--check writes nothing and fails where README and results are out of step.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARKERS = re.compile(r"(<!-- table (?P<name>[\w-]+) (?P<bench>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def size(row):
    """How a row's shape prints: n for a square product.

    >>> size({"shape": [64, 64, 64]}), size({"shape": [8, 128, 1024]}), size({"shape": [16000000]})
    ('64', '8x128x1024', '16000000')
    """
    shape = row["shape"]
    return str(shape[0]) if len(set(shape)) == 1 else "x".join(map(str, shape))


def cell(rows, peers):
    """The least ratio to each peer over the rows (one for each layout), and the least share of peak."""
    if not rows:
        return ""
    ratios = [min(row["peers"][peer] / row["ours_s"] for row in rows) for peer in peers]
    shares = [row["peak_share"] for row in rows if row.get("peak_share") is not None]
    return " / ".join(f"{ratio:.2f}" for ratio in ratios) + (f" ({min(shares):.0%})" if shares else "")


def markdown(results, bench):
    """Sizes down, dtypes and threads across; in a cell peers' time / ours and the share of peak, worst layout."""
    rows = [row for row in results["rows"] if row["bench"] == bench]
    peers = [
        peer for peer in dict.fromkeys(p for row in rows for p in row["peers"]) if all(peer in r["peers"] for r in rows)
    ]
    columns = sorted({(row["dtype"], row["threads"]) for row in rows})
    lines = [[bench, *(f"{dtype}, {threads} thread{'s' * (threads > 1)}" for dtype, threads in columns)]]
    lines.append(["---:"] * len(lines[0]))
    for name in dict.fromkeys(map(size, rows)):
        groups = [[r for r in rows if size(r) == name and (r["dtype"], r["threads"]) == column] for column in columns]
        lines.append([name, *(cell(group, peers) for group in groups)])
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    meta, layouts = results["meta"], list(dict.fromkeys(row["layout"] for row in rows))
    versions = ", ".join(f"{package} {version}" for package, version in meta["versions"].items())
    machine = f"{meta['cpu']}, {meta['cores']} cores, {versions}"
    return (
        f"{table}\n\nTime of {' / '.join(peers)} over ours (share of the FMA peak), in the worst of the layouts "
        f"{', '.join(layouts)}: interleaved medians of {meta['date']} on {machine}.\n"
    )


def rewrite(text, directory):
    """The text with every marked table made anew from its result file in `directory`."""

    def table(match):
        results = json.loads((directory / f"{match['name']}.json").read_text(encoding="utf-8"))
        return match[1] + markdown(results, match["bench"]) + match[4]

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
