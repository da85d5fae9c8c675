"""Products of every shape class against NumPy and torch in one run: interleaved medians and ratios to the best peer.

    python bench/bench_shapes.py                        # the table and the geometric mean
    python bench/bench_shapes.py --json FILE            # and the rows, as bench/report.py reads them
    python bench/bench_shapes.py --dtypes float32 --classes gemv deep

All three compute matmul(a, b, out=out) of the same arrays. A shape is (batch, m, n, k, layout); without a batch, 0.
"""

import argparse
import contextlib
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from tqdm import tqdm

import nbkernels
from nbkernels import compare, info, tune
from nbkernels.cpu import threads

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.cases import LAYOUTS, TRANSPOSES  # noqa: E402

with contextlib.suppress(ImportError):
    import torch
torch = sys.modules.get("torch")

DTYPES = ("float32", "float64")
SHAPES = {
    "tiny": [(0, n, n, n, "NN") for n in (2, 4, 7, 8, 13, 16, 32)],
    "prime": [(0, n, n, n, "NN") for n in (61, 127, 251, 509)],
    "skinny": [
        (0, 8, 1024, 256, "NN"), (0, 1024, 8, 256, "NN"), (0, 512, 512, 8, "NN"), (0, 5, 700, 300, "NT"),
        (0, 700, 5, 300, "NN"), (0, 16, 2048, 512, "NN"), (0, 2048, 16, 512, "NN"), (0, 2000, 2000, 3, "NN"),
    ],
    "gemv": [
        (0, 1, 256, 256, "NN"), (0, 1, 256, 256, "NT"), (0, 256, 1, 256, "NN"), (0, 256, 1, 256, "TN"),
        (0, 1, 1000, 1000, "NN"), (0, 1, 1000, 1000, "NT"), (0, 1000, 1, 1000, "NN"), (0, 1000, 1, 1000, "TN"),
        (0, 1, 3000, 3000, "NT"), (0, 3000, 1, 3000, "NN"),
    ],
    "dot": [(0, 1, 1, k, "NN") for k in (1000, 30_000, 1_000_000)],
    "outer": [(0, n, n, 1, "NN") for n in (50, 256, 1000)],
    "deep": [(0, 4, 4, 10_000, "NN"), (0, 16, 16, 20_000, "NT"), (0, 32, 32, 50_000, "TN"), (0, 3, 40, 30_000, "NN")],
    "batched": [
        (10_000, 4, 4, 4, "NN"), (10_000, 8, 8, 8, "NN"), (10_000, 16, 16, 16, "NN"), (10_000, 4, 4, 4, "NT"),
        (100, 16, 16, 16, "NN"), (64, 64, 64, 64, "NN"), (64, 64, 64, 64, "NT"), (8, 256, 256, 256, "NN"),
        (200, 1, 64, 64, "NN"),
    ],
}  # fmt: skip


def calls(shape, dtype):
    """{library: the call}."""
    batch, m, n, k, layout = shape
    rng, lead = np.random.default_rng(0), (batch,) if batch else ()

    def matrix(rows, columns, name):
        x = rng.standard_normal((*lead, rows, columns)).astype(dtype)
        return x if LAYOUTS[name] is LAYOUTS["C"] else np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)

    first, second = TRANSPOSES[layout]
    a, b, out = matrix(m, k, first), matrix(k, n, second), np.empty((*lead, m, n), dtype)
    result = {
        "nbkernels": lambda: nbkernels.matmul(a, b, out=out),
        "NumPy": lambda: np.matmul(a, b, out=out),
    }
    if torch:
        torch.set_num_threads(threads.count())
        ta, tb, tout = map(torch.from_numpy, (a, b, out))
        result["torch"] = lambda: torch.matmul(ta, tb, out=tout)
    return result


def measure(name, shape, dtype, seconds):
    """One row of the table."""
    times = tune.medians(calls(shape, dtype), seconds=seconds, rounds=7)
    ours, (batch, *sizes, layout) = times.pop("nbkernels"), shape
    flops = 2 * math.prod(sizes) * max(1, batch)
    return {
        "bench": name, "shape": [*([batch] if batch else []), *sizes], "dtype": dtype, "threads": threads.count(),
        "layout": layout, "ours_s": ours, "peers": times, "gflops": flops / ours / 1e9, "peak_share": None,
    }  # fmt: skip


def cases(dtypes=DTYPES, classes=tuple(SHAPES)):
    return [(name, shape, dtype) for dtype in dtypes for name in classes for shape in SHAPES[name]]


@pytest.mark.parametrize(("name", "shape", "dtype"), [case for case in cases() if math.prod(case[1][1:4]) < 10**6])
def test_shapes(benchmark, name, shape, dtype):
    every = calls(shape, dtype)
    expected = every["NumPy"]().copy()
    np.testing.assert_allclose(every["nbkernels"](), expected, rtol=1e-3, atol=1e-2)
    benchmark(every["nbkernels"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the rows there")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--classes", nargs="+", choices=SHAPES, default=tuple(SHAPES))
    parser.add_argument("--seconds", type=float, default=0.3, help="time for each row (%(default)s)")
    args = parser.parse_args()
    rows = [measure(*case, args.seconds) for case in tqdm(cases(args.dtypes, args.classes), unit="row")]
    print(compare.table(rows))
    best = [min(row["peers"].values()) / row["ours_s"] for row in rows]
    mean = math.exp(sum(map(math.log, best)) / len(best))
    print(f"{len(rows)} shapes against the best peer: geometric mean {mean:.2f}x, worst {min(best):.2f}x")
    if args.json:
        args.json.write_text(json.dumps({"meta": info.meta(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
