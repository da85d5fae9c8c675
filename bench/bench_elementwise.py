"""Element-wise operations against NumPy, torch and numexpr in one run: sizes, dtypes, patterns of strides.

    python bench/bench_elementwise.py                             # the whole table, an hour
    python bench/bench_elementwise.py --quick                     # a few of each, a minute
    python bench/bench_elementwise.py --quick --json FILE         # and into a file
    python bench/bench_elementwise.py --sides 100 316 1000 4096 --seconds 0.06    # what docs/elementwise.md shows
    pytest bench/bench_elementwise.py --benchmark-enable          # with pytest-benchmark's statistics

Medians of calls in turns, by as many threads as the library uses. A row's share is that of a copy of as many bytes
(inputs and output, each element once) as glibc's memcpy makes it with those threads.
"""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tabulate import tabulate
from tqdm import tqdm

from nbkernels import tune
from nbkernels.benches.elementwise import ALL, DTYPES, EXPRESSION, OPS, QUICK, SIDES, calls, copy
from nbkernels.benches.peers import at_best
from nbkernels.cpu.runtime import threads

sys.path.insert(0, str(Path(__file__).resolve().parent))

from results_file import keep, key


def head(op, dtype, n, pattern):
    """What a row of the table says that it measures."""
    row = {"bench": pattern.replace(" ", "_"), "op": op, "dtype": dtype, "size": n * n, "pattern": pattern}
    return row | {"threads": threads.count()}


def measure(op, dtype, n, pattern, seconds=0.5):
    """One row of the table."""
    found, size = calls(op, dtype, n, pattern)
    with ThreadPoolExecutor(threads.count()) as pool:
        rounds = 9 if n <= 1000 else 5  # a burst of other work spoils one or two of short ones
        times = tune.medians(found | {"copy": copy(size, pool)}, seconds=seconds, rounds=rounds)
    ours, share = times.pop("nbkernels"), times.pop("copy")
    return head(op, dtype, n, pattern) | {
        "ours_s": ours,
        "gb_s": size / ours / 1e9,
        "copy_share": share / ours,
        "peers": times,
    }


def shown(row):
    best = min(row["peers"].values()) / row["ours_s"]
    peers = {who: time / row["ours_s"] for who, time in row["peers"].items()}
    keys = ("op", "dtype", "size", "pattern")
    return (
        {k: row[k] for k in keys}
        | {"us": row["ours_s"] * 1e6, "GB/s": row["gb_s"], "of a copy": row["copy_share"]}
        | {"vs best": best}
        | peers
    )


@pytest.mark.parametrize("case", QUICK, ids=lambda case: " ".join(map(str, case)))
def test_elementwise(benchmark, case):
    found, _ = calls(*case)
    ours, numpys = (np.array(found[who]()) for who in ("nbkernels", "NumPy"))
    np.testing.assert_allclose(found["nbkernels"](), numpys, rtol=1e-6)
    assert ours.dtype == numpys.dtype
    if not benchmark.disabled:
        benchmark.extra_info.update(measure(*case))
    benchmark(found["nbkernels"])


if __name__ == "__main__":
    at_best()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few rows of each kind")
    parser.add_argument("--sides", type=int, nargs="+", default=SIDES, help="of the square matrices of the whole table")
    parser.add_argument("--ops", nargs="+", choices=(*OPS, EXPRESSION), default=(*OPS, EXPRESSION))
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well; others are kept")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each row")
    options = parser.parse_args()
    chosen = [case for case in ALL if case[0] in options.ops and case[1] in options.dtypes and case[2] in options.sides]
    rows = []
    for case in tqdm(QUICK if options.quick else chosen, unit="row"):
        rows.append(measure(*case, options.seconds))
        if options.json:  # after each row: a run may be cut short
            keep(options.json, rows, [key(head(*case)) for case in ALL])
    print(tabulate([shown(row) for row in rows], headers="keys", floatfmt=".2f"))
    large = [min(row["peers"].values()) / row["ours_s"] for row in rows if row["size"] >= 10_000]
    if large:
        print(
            f"best peer's time over ours from 1e4 elements on: geometric mean {np.exp(np.mean(np.log(large))):.2f}, "
            f"least {min(large):.2f}"
        )
