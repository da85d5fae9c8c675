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

import nbkernels
from nbkernels import tune
from nbkernels.cpu import threads

sys.path.insert(0, str(Path(__file__).resolve().parent))

from kept import keep, key


def five(x):
    """Part of an array in five dimensions, none of which joins another."""
    return x.reshape(-1)[: x.size // 512 * 512].reshape(-1, 8, 4, 4, 4)[:, 1:7, :, 1:, ::2]


# Inputs of one shape out of two square matrices; 4096 is the hardest side: every row starts in one cache set.
PATTERNS = {
    "contiguous": lambda a, b: (a, b),
    "row": lambda a, b: (a, b[0]),
    "column": lambda a, b: (a, b[:, :1]),
    "scalar": lambda a, b: (a, 1.5),
    "transposed": lambda a, b: (a, b.T),
    "every other": lambda a, b: (a.repeat(2, 1)[:, ::2], b.repeat(2, 1)[:, ::2]),
    "reversed": lambda a, b: (a[::-1, ::-1], b[::-1, ::-1]),
    "5-D": lambda a, b: (five(a), five(b)),
}  # fmt: skip
OPS = ("add", "divide", "maximum", "less", "pow", "atan2", "hypot", "logaddexp")
EXPRESSION = "a*b + c*d"
NUMPY = {"pow": "power", "atan2": "arctan2"}
TORCH = {"less": "lt"}
SIDES = (10, 32, 100, 316, 1000, 4096, 5477)  # 1e2 to 3e7 elements
DTYPES = ("float32", "float64")
QUICK = (
    [("add", "float32", n, "contiguous") for n in (10, 100, 316, 1000, 4096)]
    + [("add", "float32", n, pattern) for n in (1000,) for pattern in PATTERNS if pattern != "contiguous"]
    + [(op, "float32", 100, "contiguous") for op in OPS[1:]]
    + [(op, "float64", 100, "contiguous") for op in ("pow", "atan2", "hypot", "logaddexp")]
    + [(EXPRESSION, "float32", 3162, "contiguous")]
)
ALL = [  # less than 512 elements have no part in five dimensions
    (op, dtype, n, p) for op in OPS for dtype in DTYPES for n in SIDES for p in PATTERNS if p != "5-D" or n * n >= 512
] + [(EXPRESSION, dtype, n, "contiguous") for dtype in DTYPES for n in (*SIDES, 3162)]
fused = nbkernels.fuse(lambda a, b, c, d: a * b + c * d)


def calls(op, dtype, n, pattern):
    """({library: the call}, bytes that it reads and writes), of those that are here and take these strides."""
    rng = np.random.default_rng(0)
    matrices = [(rng.random((n, n)) + 0.5).astype(dtype) for _ in range(4 if op == EXPRESSION else 2)]
    inputs = matrices if op == EXPRESSION else PATTERNS[pattern](*matrices)
    arrays = [x for x in inputs if isinstance(x, np.ndarray)]
    out = np.empty(np.broadcast_shapes(*(x.shape for x in arrays)), bool if op == "less" else dtype)
    size = out.nbytes + sum(x.nbytes for x in arrays)
    if op == EXPRESSION:
        result = {"nbkernels": lambda: fused(*inputs, out=out), "NumPy": lambda: _expression(*inputs)}
    else:
        function, ufunc = getattr(nbkernels, op), getattr(np, NUMPY.get(op, op))
        result = {"nbkernels": lambda: function(*inputs, out=out), "NumPy": lambda: ufunc(*inputs, out=out)}
    try:
        import numexpr

        numexpr.set_num_threads(threads.count())
        text = {
            EXPRESSION: EXPRESSION,
            "add": "a + b",
            "divide": "a / b",
            "less": "a < b",
            "atan2": "arctan2(a, b)",
        }.get(op)
        if text:
            names = dict(zip("abcd", inputs))
            result["numexpr"] = lambda: numexpr.evaluate(text, names, out=out)
    except ImportError:
        pass
    try:
        import torch
    except ImportError:
        return result, size
    if op != EXPRESSION and all(min(x.strides) >= 0 for x in arrays):  # torch has no negative strides
        torch.set_num_threads(threads.count())
        tensors = [
            torch.from_numpy(x) if isinstance(x, np.ndarray) else torch.tensor(x, dtype=getattr(torch, dtype))
            for x in inputs
        ]
        into = torch.from_numpy(out)
        result["torch"] = lambda: getattr(torch, TORCH.get(op, op))(*tensors, out=into)
    return result, size


def _expression(a, b, c, d):
    return a * b + c * d


def copy(size, pool):
    """A copy of size / 2 bytes, which moves `size`."""
    source, target = np.zeros(size // 2, np.uint8), np.zeros(size // 2, np.uint8)
    workers = threads.count()
    parts = [slice(size // 2 * i // workers, size // 2 * (i + 1) // workers) for i in range(workers)]
    if size < 1 << 20:
        return lambda: np.copyto(target, source)
    return lambda: list(pool.map(lambda part: np.copyto(target[part], source[part]), parts))


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
