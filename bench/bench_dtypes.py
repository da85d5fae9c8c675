"""mm of every dtype against NumPy and torch in one run, one core: interleaved medians, Gop/s, share of the peak.

    python bench/bench_dtypes.py                     # the table
    python bench/bench_dtypes.py --json FILE         # and the rows
    pytest bench/bench_dtypes.py --benchmark-enable

An operation is one multiplication or one addition: 2 n**3 of a product, 8 n**3 of a complex one. The peak is that of
the instruction that the dtype's chains are made of, timed in turn with the calls (peak.py). NumPy, whose integers and
halves run a plain loop, is timed up to n = 256.
"""

import argparse
import contextlib
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tabulate import tabulate
from tqdm import tqdm

import nbkernels
from nbkernels import tune
from nbkernels.cpu.kinds import default_tiles, kind_of
from nbkernels.jit.chain import ways

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from kept import keep
from peak import step_call, workers

with contextlib.suppress(ImportError):
    import torch
torch = sys.modules.get("torch")

# name: operands, keywords
CASES = {
    "float32": (("float32", "float32"), {}),
    "float64": (("float64", "float64"), {}),
    "float16": (("float16", "float16"), {}),
    "bfloat16": (("bfloat16", "bfloat16"), {}),
    "bfloat16 bf16_dot": (("bfloat16", "bfloat16"), {"mode": "bf16_dot"}),
    "int8 -> int32": (("int8", "int8"), {"out_dtype": "int32"}),
    "uint8, int8 -> int32": (("uint8", "int8"), {"out_dtype": "int32"}),
    "int8": (("int8", "int8"), {}),
    "int16": (("int16", "int16"), {}),
    "int32": (("int32", "int32"), {}),
    "int64": (("int64", "int64"), {}),
    "bool": (("bool", "bool"), {}),
    "complex64": (("complex64", "complex64"), {}),
    "complex128": (("complex128", "complex128"), {}),
}
SIZES = (4, 16, 64, 256, 1024)
SLOW = 256  # the largest n for NumPy's plain loops


def names():
    return [name for name, (_, keywords) in CASES.items() if "mode" not in keywords or "bf16" in ways()]


def matrix(rng, n, dtype):
    if dtype == "bool":
        return rng.random((n, n)) < 0.5
    if dtype.startswith(("int", "uint")):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, (n, n), dtype, endpoint=True)
    x = rng.standard_normal((n, n))
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal((n, n))
    return x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def tensor(x):
    half = x.dtype == ml_dtypes.bfloat16
    return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) if half else torch.from_numpy(x)


def calls(name, n):
    """{library: the call} for n x n operands; a peer is there where it has the same product."""
    (left, right), keywords = CASES[name]
    rng = np.random.default_rng(0)
    a, b = matrix(rng, n, left), matrix(rng, n, right)
    out = nbkernels.mm(a, b, **keywords)
    result = {"nbkernels": lambda: nbkernels.mm(a, b, out=out, **keywords)}
    blas = left.startswith("complex") or left in ("float32", "float64")
    if not keywords and left != "bfloat16" and (n <= SLOW or blas):
        result["NumPy"] = lambda: np.matmul(a, b, out=out)
    if torch and left != "bool" and left == right:
        ta, tb = map(tensor, (a, b))
        if keywords.get("out_dtype"):
            result["torch"] = lambda: torch._int_mm(ta, tb)
            if n <= 16:
                del result["torch"]  # it wants more than 16 rows
        else:
            tout = torch.empty(n, n, dtype=ta.dtype)
            result["torch"] = lambda: torch.mm(ta, tb, out=tout)
    return result


def measure(name, n, seconds=0.5):
    """One row of the table."""
    (left, right), keywords = CASES[name]
    kind = kind_of(left, right, keywords.get("out_dtype", left), mode=keywords.get("mode"))
    with workers(1):
        call, peak = step_call(default_tiles(kind).tile(kind))
        times = tune.medians({**calls(name, n), "peak": call}, seconds=seconds, rounds=5)
    operations = (8 if kind.planes == 2 else 2) * n**3
    ours, peak = times.pop("nbkernels"), peak / times.pop("peak")
    return {
        "bench": "dtypes", "shape": [n, n, n], "dtype": name, "threads": 1, "ours_s": ours, "peers": times,
        "gops": operations / ours / 1e9, "peak_share": operations / ours / peak, "kernel": str(kind),
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
    print(table(rows))
    if args.json:
        keep(args.json, rows)


if __name__ == "__main__":
    main()
