"""mm of every dtype against NumPy and torch in one run, one core: interleaved medians, Gop/s, share of the peak.

    python bench/bench_dtypes.py                     # the table
    python bench/bench_dtypes.py --json FILE         # and the rows
    pytest bench/bench_dtypes.py --benchmark-enable

An operation is one multiplication or one addition: 2 n**3 of a product, 8 n**3 of a complex one. The peak is that of
the instruction that the dtype's chains are made of, timed in turn with the calls (peak.py). NumPy, whose integers and
halves run a plain loop, is timed up to n = 256.
"""

import argparse
import sys
from pathlib import Path

import pytest
from tabulate import tabulate
from tqdm import tqdm

from nbkernels import tune
from nbkernels.benches.dtypes import CASES, SIZES, calls, names
from nbkernels.benches.peak import steps_of, workers
from nbkernels.benches.peers import at_best
from nbkernels.benches.roofs import additions, against, busy, settle
from nbkernels.cpu.gemm.kinds import kind_of

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from results_file import keep


def measure(name, n, seconds=0.5):
    """One row of the table."""
    (left, right), keywords = CASES[name]
    kind = kind_of(left, right, keywords.get("out_dtype", left), mode=keywords.get("mode"))
    with workers(1):
        call, work = steps_of(name)
        times = tune.samples({**calls(name, n), "peak": call}, seconds=seconds, rounds=5)
    operations, own = (8 if kind.planes == 2 else 2) * n**3, times.pop("nbkernels")
    held, ours = against(additions(name), operations, own, work, times.pop("peak")), tune.middle(own)
    return {
        "bench": "dtypes", "shape": [n, n, n], "dtype": name, "threads": 1, "ours_s": ours,
        "peers": {name: tune.middle(each) for name, each in times.items()}, "gops": operations / ours / 1e9, **held,
        "kernel": str(kind),
    }  # fmt: skip


def table(rows) -> str:
    lines = [
        [row["dtype"], row["shape"][0], f"{row['ours_s'] * 1e6:.1f}", f"{row['gops']:.1f}", f"{row['peak_share']:.2f}"]
        + [f"{row['peers'][p] / row['ours_s']:.2f}" if p in row["peers"] else "" for p in ("NumPy", "torch")]
        for row in rows
    ]
    headers = ["dtype", "n", "us", "Gop/s", "of peak", "x NumPy", "x torch"]
    return tabulate(lines, headers=headers, disable_numparse=True)


@pytest.mark.parametrize("n", [4, 64, 256])
@pytest.mark.parametrize("name", names())
def test_dtypes(benchmark, name, n):
    every = calls(name, n)
    if not benchmark.disabled:
        benchmark.extra_info.update(measure(name, n))
    with workers(1):
        benchmark(every["nbkernels"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the rows there; rows of other cases are kept")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--only", nargs="+", choices=names(), default=names())
    parser.add_argument("--seconds", type=float, default=0.5, help="time for each row (%(default)s)")
    args = parser.parse_args()
    todo = [(name, n) for name in args.only for n in args.sizes]
    rows = [measure(*case, seconds=args.seconds) for case in tqdm(todo, unit="row", disable=None)]
    settle(rows)
    print(table(rows), busy(rows) or "", sep="\n")
    if args.json:
        keep(args.json, rows)


if __name__ == "__main__":
    at_best()
    main()
