"""Products in jitted functions: python bench/bench_jitted.py [--json FILE] [--turns N].

n x n by one thread with out=, against Numba's own np.dot, where it has the dtype, and the call of nbkernels.mm from
Python: CPU time of the thread, medians of the turns, interleaved. Then what a caller costs, in CPU seconds of a process
of its own: with both disk caches empty, compiled by Numba from nothing but the library's, and loaded from Numba's
(`@njit(cache=True)`, its second process); and how many functions and kernels that last process compiled.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numba
import numpy as np
import report
from tqdm import tqdm

import nbkernels as nb
import nbkernels.jitted
from nbkernels.benches.peers import at_best
from nbkernels.commands import info

SIZES = [4, 8, 16, 32, 64, 128, 256, 512]
DTYPES = [
    ("float32", None),
    ("float64", None),
    ("int32", None),
    ("int8", "int32"),
    ("float16", None),
    ("complex64", None),
]
BLAS = ("float32", "float64", "complex64")
WORK = 4e7  # multiply-adds of a sample: one call from Python of a jitted function of float16 arrays takes 30 us
CALLER = """
import time
import numba, numpy as np, nbkernels as nb, nbkernels.jitted
numba.njit(lambda x: x + 1)(1)  # what Numba's first compilation of a process costs beside
@numba.njit(cache=True)
def layer(x, w, v):
    return nb.linear(x, w, v)
x = np.ones((4, 4), np.float32)
start = time.process_time()
layer(x, x, x[0])
spent = time.process_time() - start
print(spent, sum(layer.stats.cache_misses.values()) + sum(each.where == "compiled" for each in nb.specializations()))
"""


@numba.njit
def numbas(a, b, out, count):
    for _ in range(count):
        np.dot(a, b, out)


def ways(dtype, wider):
    """Functions of (a, b, out, count) that multiply so many times."""
    wanted = None if wider is None else np.dtype(wider).type

    def called(a, b, out, count):
        for _ in range(count):
            nb.mm(a, b, out=out, out_dtype=wanted)

    peers = {"Numba's np.dot": numbas} if dtype in BLAS else {}
    return {"ours": numba.njit(called), **peers, "the call from Python": called}


def rows(turns):
    for dtype, wider in DTYPES:
        calls = ways(dtype, wider)
        for n in tqdm(SIZES, dtype, leave=False):
            a, b = ((np.random.default_rng(i).standard_normal((n, n)) * 9).astype(dtype) for i in range(2))
            out, count, times = np.empty((n, n), wider or dtype), max(1, int(WORK / (n**3 + 1000))), {}
            for turn in range(turns + 1):
                for name, call in calls.items():
                    start = time.thread_time()
                    call(a, b, out, count if turn else 40 if n < 100 else 3)
                    if turn:
                        times.setdefault(name, []).append((time.thread_time() - start) / count)
            ours, *_ = (statistics.median(each) for each in times.values())
            peers = {name: statistics.median(each) for name, each in times.items() if name != "ours"}
            name = f"{dtype} -> {wider}" if wider else dtype
            yield dict(bench="jitted", dtype=name, shape=[n] * 3, threads=1, layout="NN", ours_s=ours, peers=peers)


def callers(turns):
    """Seconds that a caller of `linear` costs with empty caches, to compile, and to load; what the last compiles."""
    found = {"empty_s": [], "compiled_s": [], "loaded_s": []}
    for _ in range(turns):
        with tempfile.TemporaryDirectory() as folder:
            script, environment = Path(folder, "caller.py"), os.environ | {"NBKERNELS_CACHE_DIR": folder}
            environment["PYTHONPATH"] = str(Path(__file__).resolve().parent.parent)
            script.write_text(CALLER)
            for key, place in zip(found, ("first", "second", "second")):
                environment["NUMBA_CACHE_DIR"] = str(Path(folder, place))
                done = subprocess.run([sys.executable, script], env=environment, check=True, capture_output=True)
                spent, compiled = done.stdout.split()
                found[key].append(float(spent))
    return {key: statistics.median(each) for key, each in found.items()} | {"loaded_compiles": int(compiled)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the result file")
    parser.add_argument("--turns", type=int, default=7)
    args = parser.parse_args()
    with nb.threads(1):
        results = {"meta": info.meta(), "rows": list(rows(args.turns)), "callers": callers(min(args.turns, 3))}
    print(report.jitted(results))
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    at_best()
    main()
