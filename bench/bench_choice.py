"""The choice of a path, judged: random products, that nobody tunes to, by the chosen path, every other one and peers.

    python bench/bench_choice.py --seed 1                        # 300 products, one thread and all: tables
    python bench/bench_choice.py --seed 1 --products 50 --threads 1 --dtypes float64 --json FILE
    python bench/bench_choice.py --seed 1 --products 3000 --csv FILE                            # for bench_costs.py
    python bench/bench_choice.py --seed 1 --products 24 --beside         # right after peers, whose threads still spin

Sizes are log-uniform, layouts and dtypes random; one product in eight is a batch, which has no other path. Regret is
the chosen path's time over that of the fastest, each by the public call while products may take no other path. The
ratio is the best peer's time over that of the public call. `--beside`: the public call's time by all threads over that
by one, where each call comes after one of NumPy, of torch, of both, or after a rest.
"""

import argparse
import csv
import itertools
import math
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tabulate import tabulate
from tqdm import tqdm

import nbkernels
from nbkernels import first_calls, tune
from nbkernels.benches.peak import workers
from nbkernels.benches.peers import at_best
from nbkernels.benches.shapes import arrays, calls
from nbkernels.cpu.gemm import cost, paths
from nbkernels.cpu.runtime import threads
from nbkernels.cpu.runtime.status import PATHS
from nbkernels.tuning.plans import rounded

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from bench_shapes import planned
from report import geometric_mean, ratio
from results_file import keep

DTYPES = ("float32", "float64")
FEW = 16  # rows, columns or steps
ROUNDS = 5
BEFORE = (), ("NumPy",), ("torch",), ("NumPy", "torch")  # peers that are called before the call that is timed
REST = 0.06  # seconds after which no peer's threads spin any more: OpenBLAS' do for 27 ms
LIGHT = 112**3  # multiply-adds of a product of some tens of microseconds


def draw(rng, sizes, dtypes, work=(0, math.inf), round_sizes: bool = False) -> tuple[tuple, str]:
    """(batch or 0, m, n, k, layout) and a dtype: of sizes up to these, of multiply-adds within `work` before it is made
    a batch."""
    m = n = k = 0
    while not work[0] < m * n * k <= work[1]:
        m, n, k = (int(most ** rng.random()) for most in sizes)
        if round_sizes:
            m, n, k = (rounded(size, rng.random() < 0.5) for size in (m, n, k))
    batch = int(rng.integers(2, 200)) if rng.random() < 1 / 8 else 0
    if batch:  # as many bytes, and as much work, as one product has
        m, n, k = (max(1, int(size ** (2 / 3))) for size in (m, n, k))
    return (batch, m, n, k, str(rng.choice(["NN", "NT", "TN", "TT"]))), str(rng.choice(dtypes))


def kind(shape) -> str:
    """The class of a shape."""
    batch, m, n, k, _ = shape
    if batch:
        return "batch"
    if min(m, n) == 1:
        return "row or column"
    if k <= FEW:
        return "few steps"
    if min(m, n) <= FEW:
        return "few rows or columns"
    return "light" if m * n * k <= LIGHT else "heavy"


def measure(shape, dtype, count, seconds):
    """One row: the public call, the peers and, of one product, the public call by every path that it may take, in
    turns."""
    a, b, out = arrays(shape, dtype)
    every = calls(shape, dtype)
    peers = [name for name in every if name != "nbkernels"]
    with workers(count):
        plan, found = planned(a, b, out), {}
        ways = [] if shape[0] else [way for way in paths.legal(out, None, a, b) if forced(way, out, a, b, count)]
        share = seconds / ROUNDS / (len(every) + len(ways))
        for _ in range(ROUNDS):
            for name, call in every.items():
                found.setdefault(name, []).extend(tune.samples({name: call}, seconds=share, rounds=1)[name])
            for name, way in ((PATHS[way], way) for way in ways):
                with paths.only(way):
                    timed = tune.samples({name: every["nbkernels"]}, seconds=share, rounds=1)
                found.setdefault(name, []).extend(timed[name])
    times = {name: tune.middle(each) for name, each in found.items()}
    batch, m, n, k, layout = shape
    return {
        "bench": kind(shape), "shape": [*([batch] if batch else []), m, n, k], "dtype": dtype, "threads": count,
        "layout": layout, "plan": plan, "ours_s": times["nbkernels"], "peers": {name: times[name] for name in peers},
        "plans": {name: times[name] for name in PATHS.values() if name in times},
    }  # fmt: skip


def beside(shape, dtype) -> dict:
    """Peers that were called right before -> time of the public call by all threads over that by one, medians."""
    every, found = calls(shape, dtype), {}
    for _ in range(3 * ROUNDS):
        for before, count in itertools.product(BEFORE, (threads.count(), 1)):
            time.sleep(REST)
            for peer in before:
                every[peer]()
            with nbkernels.threads(count):
                start = time.perf_counter()
                every["nbkernels"]()
                found.setdefault((before, count), []).append(time.perf_counter() - start)
    times = {key: statistics.median(each[ROUNDS:]) for key, each in found.items()}  # the first ones warm up
    return {before: times[before, threads.count()] / times[before, 1] for before in BEFORE}


def print_beside(products) -> None:
    found = [beside(*product) for product in tqdm(products, unit="product")]
    ratios = {" and ".join(before) or "a rest": [each[before] for each in found] for before in BEFORE}
    rows = [(name, geometric_mean(each), quantile(each, 0.9), max(each)) for name, each in ratios.items()]
    print(f"time by {threads.count()} threads over that by one")
    print(tabulate(rows, ["after", "geometric mean", "90th percentile", "worst"], floatfmt=".2f"))


def forced(way: int, out, a, b, count: int) -> bool:
    """Whether a product may take a path."""
    with paths.only(way):
        return paths.path_of(out, None, a, b, count) == way


def line(row) -> dict:
    """A row as bench_costs.py reads it: sizes, and microseconds of each path."""
    found = dict(zip("mnk", row["shape"][-3:])) | {name: row[name] for name in ("layout", "dtype", "threads")}
    return found | {PATHS[way]: f"{1e6 * row['plans'][PATHS[way]]:.4g}" if PATHS[way] in row["plans"] else ""
                    for way in cost.WAYS}  # fmt: skip


def regret(row) -> float | None:
    """The chosen path's time over the fastest one's; None of a batch."""
    return row["plans"][row["plan"]] / min(row["plans"].values()) if row["plan"] in row["plans"] else None


def quantile(values, share: float) -> float:
    """
    >>> quantile([1, 2, 3, 4], 0.95), quantile([1, 2, 3, 4], 0.05)
    (4, 1)
    """
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def named(row) -> str:
    return f"{'x'.join(map(str, row['shape']))} {row['layout']} {row['dtype']} by {row['plan']}"


def summary(rows) -> str:
    """One line for each class: regret, the ratio to the best peer, and the worst products."""
    lines = []
    for name in [*sorted({row["bench"] for row in rows}), "all"]:
        group = [row for row in rows if name in (row["bench"], "all")]
        line, judged = {"class": name, "products": len(group)}, [row for row in group if regret(row)]
        if judged:
            found, worst = [regret(row) for row in judged], max(judged, key=regret)
            best = min(worst["plans"], key=worst["plans"].get)
            line |= {"regret": f"{statistics.median(found):.2f}", "95th": f"{quantile(found, 0.95):.2f}",
                     "most": f"{regret(worst):.2f}", "where": f"{named(worst)}, best by {best}"}  # fmt: skip
        found, worst = [ratio(row) for row in group], min(group, key=ratio)
        line |= {"of the best peer": f"{geometric_mean(found):.2f}", "5th": f"{quantile(found, 0.05):.2f}",
                 "least": f"{ratio(worst):.2f}", "where ": named(worst)}  # fmt: skip
        lines.append(line)
    return tabulate(lines, headers="keys", disable_numparse=True)


@pytest.mark.parametrize("shape", [(0, 3, 70, 20, "NT"), (7, 5, 6, 8, "NN")])
def test_choice(benchmark, shape):
    row = benchmark.pedantic(measure, (shape, "float64", 1, 0.01))
    assert (regret(row) is None) == (shape[0] > 0)
    assert named(row) in summary([row])
    assert line(row)["m"] == shape[1]


def write(file: Path, row: dict) -> None:
    """Put a row at the end of a file."""
    new = not file.exists()
    with open(file, "a", newline="", encoding="utf-8") as rows:
        writer = csv.DictWriter(rows, row, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True, help="what the products are drawn from")
    parser.add_argument("--products", type=int, default=300, help="how many (%(default)s)")
    parser.add_argument("--most", type=int, default=3000, help="the largest size (%(default)s)")
    parser.add_argument("--steps", type=int, help="the largest k, if it is another one")
    parser.add_argument("--work", type=int, nargs=2, default=(0, 3 << 40), help="multiply-adds at least and at most")
    parser.add_argument("--round", action="store_true", help="of sizes as people choose them")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, threads.count()}))
    parser.add_argument("--seconds", type=float, default=0.2, help="time for each product (%(default)s)")
    parser.add_argument("--beside", action="store_true", help="after calls of peers, whose threads spin: that alone")
    parser.add_argument("--json", type=Path, help="put the rows there")
    parser.add_argument("--csv", type=Path, help="put the paths' times of single products there")
    args = parser.parse_args()
    rng, rows = np.random.default_rng(args.seed), []
    sizes = args.most, args.most, args.steps or args.most
    products = [draw(rng, sizes, args.dtypes, args.work, args.round) for _ in range(args.products)]
    if args.beside:
        first_calls.CALLS = 0
        print_beside([product for product in products if not product[0][0]])
        return
    cases = [(*product, count) for count in args.threads for product in products]
    for case in tqdm(cases, unit="product"):
        rows.append(measure(*case, args.seconds))
        if args.json:  # after each row: a run may be cut short
            keep(args.json, rows)
        if args.csv and rows[-1]["plans"]:
            write(args.csv, line(rows[-1]))
    for count in args.threads:
        part = [row for row in rows if row["threads"] == count]
        gflops = [2 * math.prod(row["shape"]) / row["ours_s"] / 1e9 for row in part]
        print(f"\n{count} thread{'s' * (count > 1)}, seed {args.seed}, median {statistics.median(gflops):.1f} GFLOP/s")
        print(summary(part))


if __name__ == "__main__":
    at_best()
    main()
