"""What a first call costs, as CPU time on one core: python bench/bench_first_call.py [--json FILE] [--turns N].

Each row is a process of its own in which the calls before it were not made: with an empty cache, and again from what
the first one left there. `thirty` makes the thirty everyday calls of nbkernels.calls.sets; `import` is that of
nbkernels over NumPy's. Medians of the turns; seconds of the process's own clock, over `import numpy`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tabulate import tabulate
from tqdm import tqdm

from nbkernels.benches.peers import at_best
from nbkernels.commands import info

START = "import time, numpy as np; start = time.process_time(); import nbkernels as nb\n"
END = "\nprint(time.process_time() - start)"
SQUARE = "a = np.ones((4, 4), '{}'); "
ROWS = {
    "import": "",
    "add": SQUARE.format("f4") + "nb.add(a, a)",
    "mm": SQUARE.format("f4") + "nb.mm(a, a)",
    "mm, then float64": SQUARE.format("f4") + "nb.mm(a, a); " + SQUARE.format("f8") + "nb.mm(a, a)",
    "mv": SQUARE.format("f4") + "nb.mv(a, a[0])",
    "bmm": SQUARE.format("f4") + "nb.bmm(a[None], a[None])",
    "sum_to": SQUARE.format("f4") + "nb.sum_to(a, (4,))",
    "a function of one's own": SQUARE.format("f4") + "nb.elementwise(lambda x, y: x * x + y)(a, a)",
    "thirty": "from nbkernels.calls import sets\nfor _, call in sets.thirty(): call()",
}


def seconds(code, cache):
    environment = dict(os.environ, NBKERNELS_CACHE_DIR=str(cache))
    command = [sys.executable, "-c", START + code + END]
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def measured(turns):
    """Of each row: (seconds from an empty cache, seconds from a full one)."""
    found = {name: ([], []) for name in ROWS}
    for name, _ in tqdm([(name, turn) for turn in range(turns) for name in ROWS], leave=False):
        with tempfile.TemporaryDirectory() as cache:
            for times in found[name]:
                times.append(seconds(ROWS[name], cache))
    return {name: tuple(map(statistics.median, times)) for name, times in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the rows there too, as bench/report.py reads them")
    args = parser.parse_args()
    rows = [dict(bench="first call", call=name, empty_s=cold, full_s=warm)
            for name, (cold, warm) in measured(args.turns).items()]  # fmt: skip
    print(tabulate([(r["call"], f"{r['empty_s']:.2f}", f"{r['full_s']:.2f}") for r in rows],
                   headers=["first call", "empty cache, s", "full cache, s"], disable_numparse=True))  # fmt: skip
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"meta": info.meta(), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    at_best()
    main()
