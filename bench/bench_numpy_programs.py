"""Programs that nobody edited, in NumPy alone and under use_in_numpy: scikit-learn, statsmodels, filterpy, hmmlearn, a
language model in NumPy.

    pip install scikit-learn statsmodels filterpy hmmlearn
    python bench/bench_numpy_programs.py [--json FILE] [--only PATTERN ...] [--floats] [--functions]

Each program is called ROUNDS times in both ways, in turns, in one process, by one thread; the ratio is that of the
shortest times of the processor, as others use the machine, too, and `pairs` the median of the rounds' own. Results are
compared: `difference` is the largest one between two elements, over the largest element. `products` is the share of the
multiply-adds of NumPy's product loops that ran here, `loops` how many calls of element-wise loops did. What SciPy and
Cython call BLAS for, NumPy does not see, nor do we.
"""

import argparse
import fnmatch
import json
import os
import statistics
import sys
import time
import warnings
from pathlib import Path

if __name__ == "__main__":
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")

import numpy as np
from tabulate import tabulate

sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]

from numpy_programs import programs

from nbkernels import use_in_numpy, watch
from nbkernels.benches.peers import at_best
from nbkernels.commands import info
from nbkernels.in_numpy.report import AGAIN, share
from nbkernels.in_numpy.which import PRODUCTS

ROUNDS, LEAST = 7, 0.05


def timed(program, n):
    start = time.process_time()
    for _ in range(n):
        program()
    return (time.process_time() - start) / n


def difference(got, want):
    """The largest difference over the largest element, of all arrays."""
    worst = 0.0
    for mine, theirs in zip(got, want, strict=True):
        mine, theirs = np.asarray(mine, np.float64), np.asarray(theirs, np.float64)
        assert mine.shape == theirs.shape
        assert np.array_equal(np.isnan(mine), np.isnan(theirs))
        largest = max(np.nanmax(np.abs(theirs), initial=0), 1e-300)
        worst = max(worst, np.nanmax(np.abs(mine - theirs), initial=0) / largest)
    return float(worst)


def measure(name, program, how):
    want = program()
    with use_in_numpy(**how):
        program()  # compiles
        with watch() as log:
            got = program()
    n = max(1, int(LEAST / timed(program, 1)))
    times = []
    for _ in range(ROUNDS):
        theirs = timed(program, n)
        with use_in_numpy(**how):
            times.append((theirs, timed(program, n)))
    theirs, ours = map(min, zip(*times))
    here = [call for call in log if call.where == "nbkernels"]
    part = share(log)
    return {
        "program": name, "ratio": round(theirs / ours, 3), "numpy_s": theirs, "rounds": ROUNDS,
        "pairs": round(statistics.median(x / y for x, y in times), 3),
        "difference": difference(got, want), "products": None if part is None else round(part, 3),
        "loops": sum(call.calls for call in here if call.name.split()[0] not in PRODUCTS),
        "product_calls": sum(call.calls for call in here if call.name.split()[0] in PRODUCTS),
        "again": sum(call.calls for call in log if call.why == AGAIN),
    }  # fmt: skip


def table(rows):
    def cells(row):
        part = "-" if row["products"] is None else f"{row['products']:.0%}"
        found = f"{row['difference']:.0e}" if row["difference"] else "none"
        return row["program"], f"{row['numpy_s'] * 1e3:.1f}", f"{row['ratio']:.2f}", part, row["loops"], found

    headers = ["program", "NumPy, ms", "times as fast", "products here", "other loops here", "difference"]
    return tabulate(map(cells, rows), headers=headers, disable_numparse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--only", nargs="+", default=["*"])
    parser.add_argument("--floats", action="store_true")
    parser.add_argument("--functions", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows, how = [], {"floats": args.floats, "functions": args.functions}
    for name, program in programs().items():
        if any(fnmatch.fnmatch(name, pattern) for pattern in args.only):
            rows.append(measure(name, program, how))
            print(rows[-1], file=sys.stderr, flush=True)
    print(table(rows))
    if args.json:
        lines = ",\n".join(map(json.dumps, rows))
        Path(args.json).write_text(f'{{"meta": {json.dumps(info.meta() | how)},\n"rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    at_best()
    sys.exit(main())
