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
import contextlib
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from tabulate import tabulate
from tqdm import tqdm

import nbkernels
from nbkernels import compare, tune
from nbkernels.cpu import threads

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

import mkl_peer
from kept import keep
from peak import workers
from report import geometric_mean, ratio

from tests.cases import LAYOUTS, TRANSPOSES

with contextlib.suppress(ImportError):
    import torch
torch = sys.modules.get("torch")

DTYPES = ("float32", "float64")
NEIGHBOURS = {31: 32, 61: 64, 127: 128, 251: 256, 509: 512, 1021: 1024}
SHAPES = {
    "tiny": [(0, n, n, n, "NN") for n in (1, 2, 3, 4, 7, 8, 13, 16, 24, 32)]
    + [(0, 4, 4, 4, "NT"), (0, 8, 8, 8, "TN"), (0, 16, 16, 16, "TT"), (0, 3, 5, 7, "NN"), (0, 2, 32, 4, "NN")],
    "prime": [(0, n, n, n, "NN") for n in NEIGHBOURS] + [(0, 127, 127, 127, "NT"), (0, 251, 251, 251, "TN")],
    "skinny_m": [
        (0, 2, 1000, 1000, "NN"), (0, 8, 1024, 256, "NN"), (0, 5, 700, 300, "NT"), (0, 16, 2048, 512, "NN"),
        (0, 8, 1024, 1024, "NT"), (0, 32, 1000, 500, "NN"), (0, 13, 997, 499, "NN"),
    ],
    "skinny_n": [
        (0, 1000, 2, 1000, "NN"), (0, 1024, 8, 256, "NN"), (0, 700, 5, 300, "NN"), (0, 2048, 16, 512, "NN"),
        (0, 1024, 8, 1024, "TN"), (0, 1000, 32, 500, "NT"), (0, 997, 13, 499, "NN"),
    ],
    "skinny_k": [
        (0, 512, 512, 8, "NN"), (0, 512, 512, 8, "TN"), (0, 2000, 2000, 3, "NN"), (0, 1000, 1000, 16, "NT"),
        (0, 997, 499, 13, "NN"), (0, 256, 256, 2, "NN"),
    ],
    "gemv": [
        (0, 1, 256, 256, "NN"), (0, 1, 256, 256, "NT"), (0, 256, 1, 256, "NN"), (0, 256, 1, 256, "TN"),
        (0, 1, 1000, 1000, "NN"), (0, 1, 1000, 1000, "NT"), (0, 1000, 1, 1000, "NN"), (0, 1000, 1, 1000, "TN"),
        (0, 1, 3000, 3000, "NN"), (0, 1, 3000, 3000, "NT"), (0, 3000, 1, 3000, "NN"), (0, 3000, 1, 3000, "TN"),
        (0, 1, 10_000, 64, "NN"), (0, 10_000, 1, 64, "NN"), (0, 1, 64, 10_000, "NN"), (0, 64, 1, 10_000, "NN"),
        (0, 1, 32, 32, "NN"), (0, 32, 1, 32, "NN"),
    ],
    "mv": [
        (0, m, 1, k, layout) for layout in ("Nv", "Tv")
        for m, k in ((32, 32), (256, 256), (1000, 1000), (3000, 3000), (10_000, 64), (64, 10_000))
    ],
    "dot": [(0, 1, 1, k, "vectors") for k in (16, 1000, 30_000, 1_000_000)],
    "outer": [(0, n, n, 1, "NN") for n in (8, 50, 256, 1000)],
    "deep": [
        (0, 4, 4, 10_000, "NN"), (0, 16, 16, 20_000, "NT"), (0, 32, 32, 50_000, "TN"), (0, 3, 40, 30_000, "NN"),
        (0, 64, 64, 10_000, "NN"), (0, 100, 100, 5000, "TN"), (0, 8, 8, 1000, "NN"),
    ],
    "batched": [
        (10_000, 2, 2, 2, "NN"), (10_000, 4, 4, 4, "NN"), (10_000, 8, 8, 8, "NN"), (10_000, 16, 16, 16, "NN"),
        (10_000, 4, 4, 4, "NT"), (10_000, 8, 8, 8, "TN"), (10_000, 3, 3, 3, "NN"), (100, 16, 16, 16, "NN"),
        (1000, 32, 32, 32, "NN"), (64, 64, 64, 64, "NN"), (64, 64, 64, 64, "NT"), (8, 256, 256, 256, "NN"),
        (32, 100, 10, 100, "NN"), (200, 1, 64, 64, "NN"), (4, 512, 512, 64, "NT"),
    ],
}  # fmt: skip


def arrays(shape, dtype):
    """a, b and out of a shape."""
    batch, m, n, k, layout = shape
    rng, lead = np.random.default_rng(0), (batch,) if batch else ()
    if layout == "vectors":
        return *(rng.standard_normal(k).astype(dtype) for _ in range(2)), np.empty((), dtype)

    def matrix(rows, columns, name):
        x = rng.standard_normal((*lead, rows, columns)).astype(dtype)
        return x if LAYOUTS[name] is LAYOUTS["C"] else np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)

    if layout[1] == "v":
        return matrix(m, k, TRANSPOSES[layout[0] + "N"][0]), matrix(1, k, "C")[0], np.empty(m, dtype)
    first, second = TRANSPOSES[layout]
    return matrix(m, k, first), matrix(k, n, second), np.empty((*lead, m, n), dtype)


def calls(shape, dtype):
    """{library: the call}."""
    a, b, out = arrays(shape, dtype)
    result = {
        "nbkernels": lambda: nbkernels.matmul(a, b, out=out),
        "NumPy": lambda: np.matmul(a, b, out=out),
    }
    if torch:
        ta, tb, tout = map(torch.from_numpy, (a, b, out))
        result["torch"] = lambda: torch.matmul(ta, tb, out=tout)
    if mkl_peer.library():
        result["MKL"] = mkl_peer.matmul(out, a, b)
    return result


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
    print(compare.table(rows))
    for row in rows:
        if "neighbour" in row:
            n, which = row["shape"][0], f"{row['dtype']}, {row['threads']} threads"
            print(f"n = {n}, {which}: {row['neighbour']:.2f} times the time per multiply-add of {NEIGHBOURS[n]}")
    print(summary(rows))


if __name__ == "__main__":
    main()
