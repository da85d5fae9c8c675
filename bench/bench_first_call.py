"""What first calls cost, as CPU time of the thread that makes them: python bench/bench_first_call.py [--json FILE]
[--turns N] [--all].

Each row is a process of its own in which the calls before it were not made: with an empty cache, and again from what
the first one left there. It makes its calls 40 times: the first time costs what is named, over `import numpy`; of the
later calls the worst is named, and which one it was. What a thread of its own compiles meanwhile is counted apart.
`thirty` makes the thirty everyday calls of nbkernels.calls.sets; `import` is that of nbkernels over NumPy's. Medians of
the turns. --all lists every one of the 40 calls.
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

CALLS = 40
PROGRAM = """
import json, time, numpy as np
start = time.thread_time()
import nbkernels as nb
def a(dtype, *shape): return np.ones(shape, dtype)
calls = {calls}
times, before = [], start
for turn in range({count}):
    for call in calls:
        call()
        now = time.thread_time()
        times.append(now - before)
        before = now
each = len(calls) or 1
own = time.thread_time()
from nbkernels import background
while background.busy():
    time.sleep(0.01)
later = [max(times[i : i + each]) for i in range(each, len(times), each)]
print(json.dumps([[sum(times[:each]) or own - start, *later], time.process_time() - time.thread_time()]))
"""
ROWS = {
    "import": "[]",
    "import, and Numba's": "[lambda: __import__('numba')]",
    "add": "[lambda x=a('f4', 4, 4): nb.add(x, x)]",
    "mm": "[lambda x=a('f4', 4, 4): nb.mm(x, x)]",
    "mm, then float64": "[lambda x=a('f4', 4, 4), y=a('f8', 4, 4): (nb.mm(x, x), nb.mm(y, y))]",
    "mm of 8x5000x8": "[lambda x=a('f4', 8, 5000), y=a('f4', 5000, 8): nb.mm(x, y)]",
    "mm of uint8 and int8": "[lambda x=a('u1', 64, 64), y=a('i1', 64, 64): nb.mm(x, y, out_dtype=np.int32)]",
    "mv": "[lambda x=a('f4', 4, 4): nb.mv(x, x[0])]",
    "bmm": "[lambda x=a('f4', 1, 4, 4): nb.bmm(x, x)]",
    "sum_to": "[lambda x=a('f4', 4, 4): nb.sum_to(x, (4,))]",
    "add.reduce of 5M x 2": "[lambda x=a('f8', 5_000_000, 2): nb.add.reduce(x, axis=0)]",
    "a function of one's own": "[lambda x=a('f4', 4, 4), f=nb.elementwise(lambda x, y: x * x + y): f(x, x)]",
    "thirty": "[call for _, call in __import__('nbkernels.calls.sets', fromlist=['sets']).thirty()]",
}


def seconds(calls, cache):
    """(seconds of the first call and, the worst of each, of all later ones; of other threads)."""
    environment = dict(os.environ, NBKERNELS_CACHE_DIR=str(cache))
    command = [sys.executable, "-c", PROGRAM.format(calls=calls, count=CALLS)]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def measured(turns):
    """Of each row: (medians of every call, of other threads) from an empty cache, and from a full one."""
    found = {name: ([], []) for name in ROWS}
    for name, _ in tqdm([(name, turn) for turn in range(turns) for name in ROWS], leave=False):
        with tempfile.TemporaryDirectory() as cache:
            for times in found[name]:
                times.append(seconds(ROWS[name], cache))
    return {name: tuple(map(middle, times)) for name, times in found.items()}


def middle(runs):
    """
    >>> middle([([1, 2], 3), ([2, 2], 5), ([3, 3], 4)])
    ([2, 2], 4)
    """
    calls, others = zip(*runs)
    return [statistics.median(each) for each in zip(*calls)], statistics.median(others)


def row(name, empty, full):
    (first, *later), behind = empty
    which = max(range(len(later)), key=later.__getitem__) if later else None
    worst = {} if which is None else {"worst_s": later[which], "worst_at": which + 2}
    own = dict(bench="first call", call=name, empty_s=first, full_s=full[0][0], behind_s=behind, empty_calls_s=empty[0])
    return own | worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the rows there too, as bench/report.py reads them")
    parser.add_argument("--all", action="store_true", help=f"list each of the {CALLS} calls")
    args = parser.parse_args()
    rows = [row(name, *times) for name, times in measured(args.turns).items()]
    lines = [(r["call"], *(f"{r[key]:.2f}" if key in r else "" for key in ("empty_s", "full_s", "worst_s", "behind_s")),
              r.get("worst_at", "")) for r in rows]  # fmt: skip
    print(tabulate(lines, headers=["first call", "empty cache, s", "full cache, s", "worst later call, s",
                                   "by a thread, s", "which was worst"], disable_numparse=True))  # fmt: skip
    for r in rows if args.all else ():
        print(f"\n{r['call']}:", " ".join(f"{each:.3f}" for each in r["empty_calls_s"]))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"meta": info.meta(), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    at_best()
    main()
