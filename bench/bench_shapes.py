"""Every shape class against NumPy, torch and MKL in one run: interleaved medians and ratios to the best peer.

    python bench/bench_shapes.py                        # the table, and geometric means by class
    python bench/bench_shapes.py --json FILE            # and the rows, as bench/report.py reads them
    python bench/bench_shapes.py --dtypes float32 --classes gemv deep --threads 1 --json FILE     # a part of them:
                                                        # it replaces its own rows in FILE and leaves the others

All compute matmul(a, b, out=out) of the same arrays, MKL by the function of its C interface for them where its wheel is
installed. A shape is (batch, m, n, k, layout); without a batch, 0. The layout "vectors" says that they are 1-D, and
"Nv" and "Tv" that b is.
A prime size is timed in turn with its round neighbour, too: `neighbour` is its time per multiply-add over that one's.
"""

import argparse
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from tabulate import tabulate
from tqdm import tqdm

import nbkernels
from nbkernels import tune
from nbkernels.benches.peak import workers
from nbkernels.benches.peers import at_best
from nbkernels.benches.rows import table
from nbkernels.benches.shapes import NEIGHBOURS, SHAPES, arrays, calls
from nbkernels.cpu.runtime import threads

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from report import geometric_mean, ratio
from results_file import keep

DTYPES = ("float32", "float64")


def planned(a, b, out):
    """The path of what matmul is of such operands."""
    functions = {(1, 1): nbkernels.dot, (2, 1): nbkernels.mv, (2, 2): nbkernels.mm, (3, 3): nbkernels.bmm}
    return nbkernels.explain(functions[a.ndim, b.ndim], a, b, out=out).path


def measure(name, shape, dtype, count, seconds):
    """One row of the table."""
    (batch, m, n, k, layout), every = shape, calls(shape, dtype)
    if name == "prime":
        a, b, out = arrays((0, *[NEIGHBOURS[m]] * 3, layout), dtype)
        every["neighbour"] = lambda: nbkernels.matmul(a, b, out=out)
    with workers(count):
        plan = planned(*arrays(shape, dtype))
        times = tune.medians(every, seconds=seconds, rounds=7)
    ours, flops = times.pop("nbkernels"), 2 * m * n * k * max(1, batch)
    row = {
        "bench": name, "shape": [*([batch] if batch else []), m, n, k], "dtype": dtype, "threads": count,
        "layout": layout, "plan": plan, "ours_s": ours, "peers": times, "gflops": flops / ours / 1e9,
        "peak_share": None,
    }  # fmt: skip
    if name == "prime":
        row["neighbour"] = ours / times.pop("neighbour") * (NEIGHBOURS[m] / m) ** 3
    return row


def cases(dtypes=DTYPES, classes=tuple(SHAPES), counts=(1,)):
    return [
        (name, shape, dtype, count)
        for count in counts for dtype in dtypes for name in classes for shape in SHAPES[name]
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "shape", "dtype", "count"), [c for c in cases() if math.prod(c[1][1:4]) < 10**6])
def test_shapes(benchmark, name, shape, dtype, count):
    every = calls(shape, dtype)
    expected = every["NumPy"]().copy()
    np.testing.assert_allclose(every["nbkernels"](), expected, rtol=1e-3, atol=1e-2)
    benchmark(every["nbkernels"])


def order(rows):
    """What the table's rows measure, by as many threads as these: shapes that it asks for no more are left out."""
    every = cases(counts=sorted({1, 2, *(row["threads"] for row in rows)}))
    return [(name, (*[s[0]] * (s[0] > 0), *s[1:4]), dtype, count, s[4]) for name, s, dtype, count in every]


def summary(rows):
    """Geometric mean and worst ratio to the best peer: by class, and of all."""
    lines = []
    for name in [*dict.fromkeys(row["bench"] for row in rows), "all"]:
        group = [row for row in rows if name in (row["bench"], "all")]
        worst = min(group, key=ratio)
        where = f"{'x'.join(map(str, worst['shape']))} {worst['layout']} {worst['dtype']}, {worst['threads']} threads"
        mean = geometric_mean(map(ratio, group))
        lines.append([name, len(group), f"{mean:.2f}x", f"{ratio(worst):.2f}x", where])
    return tabulate(lines, headers=["class", "shapes", "geometric mean", "worst", "where"], disable_numparse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="put the rows there")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--classes", nargs="+", choices=SHAPES, default=tuple(SHAPES))
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, threads.count()}))
    parser.add_argument("--seconds", type=float, default=0.3, help="time for each row (%(default)s)")
    args = parser.parse_args()
    rows = []
    for case in tqdm(cases(args.dtypes, args.classes, args.threads), unit="row"):
        rows.append(measure(*case, args.seconds))
        if args.json:  # after each row: a run may be cut short
            keep(args.json, rows, order(rows))
    print(table(rows))
    for row in rows:
        if "neighbour" in row:
            n, which = row["shape"][0], f"{row['dtype']}, {row['threads']} threads"
            print(f"n = {n}, {which}: {row['neighbour']:.2f} times the time per multiply-add of {NEIGHBOURS[n]}")
    print(summary(rows))


if __name__ == "__main__":
    at_best()
    main()
