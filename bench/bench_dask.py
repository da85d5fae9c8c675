"""Dask's arrays of NumPy chunks, by NumPy and by this library: python bench/bench_dask.py [--json FILE] [--turns N].

Each operation in three ways, in turns: dask alone, the same with `nbkernels.dask.register` and `use_in_numpy`, and the
graph that a call of this library builds. CPU time of the process by dask's threads, one thread a call, chunks in memory
before: medians. Then whether products whose chunks of k have 4,096 steps have the bits of one call.

--cluster runs examples/dask_cluster.py in place of these: data of three times what a worker may take, one and two
workers, one that is killed.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"  # as dask's documentation asks

import argparse
import contextlib
import json
import random
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

import dask.array as da
import numpy as np
import report
from tqdm import tqdm

import nbkernels as nb
import nbkernels.dask
from nbkernels.benches.peers import at_best
from nbkernels.commands import info

CHUNKS = [500, 1000, 2000]
DTYPES = ["int8", "int32", "int64", "float16", "float32", "float64", "complex64"]
SOME = ["int32", "float16", "float32"]
LONGEST = 10  # seconds of dask's call, foretold by that of smaller chunks, beyond which there is no row
WARM = 12  # graphs of the smallest chunks before those that count: first calls are others
SEGMENT = 4096
# name: (dtypes, what dask is asked for, the call of this library that says it, or None)
PRODUCTS = {
    "x @ y": (DTYPES, lambda x, y: x @ y, nb.matmul),
    "tensordot": (SOME, lambda x, y: da.tensordot(x, y, 2), None),
    "einsum": (SOME, lambda x, y: da.einsum("ij,jk->ik", x, y), None),
}
OTHERS = {
    "x + y": (["int8", "int32", "float16"], lambda x, y: x + y, nb.add),
    "x * y": (["int8", "int32", "float16"], lambda x, y: x * y, nb.multiply),
    "x // y": (["int8", "int32"], lambda x, y: x // y, nb.floor_divide),
    "maximum": (["int8", "int32", "float16"], da.maximum, nb.maximum),
    "x < y": (["int8", "int32", "float16"], lambda x, y: x < y, nb.less),
    "exp": (["float16"], lambda x, y: da.exp(x), lambda x, y: nb.exp(x)),
    "x.sum()": (DTYPES, lambda x, y: x.sum(), lambda x, y: nb.add.reduce(x, None)),
    "x.sum(0)": (DTYPES, lambda x, y: x.sum(0), lambda x, y: nb.add.reduce(x)),
}


def operands(name, dtype, c):
    """Two dask arrays whose chunks are in memory: 2c x 2c by 2c x c for products, else 2c x 2c, of small numbers."""
    shapes = [(2 * c, 2 * c), (2 * c, c if name in PRODUCTS else 2 * c)]
    whole = [np.random.default_rng(seed).integers(1, 10, shape).astype(dtype) for seed, shape in enumerate(shapes)]
    given = [da.from_array(x, chunks=c) for x in whole]
    if name == "tensordot":
        given = [da.from_array(whole[0].reshape(2 * c, -1, 50), chunks=(c, c // 50, 50)),
                 da.from_array(whole[1].reshape(-1, 50, c), chunks=(c // 50, 50, c))]  # fmt: skip
    return [x.persist() for x in given]


@contextlib.contextmanager
def registered():
    with nbkernels.dask.register(floats=True), nb.use_in_numpy():
        yield


def measured(ways, given, warm, turns):
    """({way: median seconds}, whether all have given the same)"""
    times, results = {name: [] for name in ways}, {}
    for turn in range(turns + 1):
        for name in random.Random(turn).sample(list(ways), len(ways)):
            context, call = ways[name]
            if name == "dask" and sum(times[name]) > LONGEST:
                continue
            with context():
                for _ in range(1 if turn or name == "dask" else warm):
                    lazy = call(*given)
                    start = time.process_time()
                    results[name] = lazy.persist()
                    spent = time.process_time() - start
            if turn or name == "dask":
                times[name].append(spent)
    first, *others = (each.compute() for each in results.values())
    same = all(np.allclose(first, each, rtol=1e-2 if first.dtype == np.float16 else 1e-4) for each in others)
    exact = first.dtype.kind not in "fc"
    same = same and (not exact or all(np.array_equal(first, each) for each in others))
    return {name: statistics.median(each) for name, each in times.items()}, same


def rows(chunks, turns):
    last = {}  # seconds of dask alone with the chunks before
    for c in chunks:
        for name, (dtypes, theirs, ours) in tqdm((PRODUCTS | OTHERS).items(), f"chunks of {c}", leave=False):
            ways = {"dask": (contextlib.nullcontext, theirs), "registered": (registered, theirs)}
            if ours:
                ways["ours"] = contextlib.nullcontext, ours
            for dtype in dtypes:
                if last.get((name, dtype), 0) * (8 if name in PRODUCTS else 4) > LONGEST:
                    continue
                given = operands(name, dtype, c)
                seconds, same = measured(ways, given, WARM if c == chunks[0] else 1, turns)
                last[name, dtype] = seconds["dask"]
                yield {"bench": name, "dtype": dtype, "chunk": c, "threads": 2, "seconds": seconds, "same": same}


def bits():
    """{dtype: whether a product in chunks has the bits of one call on whole arrays}"""
    found = {}
    for dtype in DTYPES:
        draws = [np.random.default_rng(seed).standard_normal((300, 2 * SEGMENT + 7)) * 3 for seed in range(2)]
        a, b = (x.astype(dtype) for x in draws)
        x, y = (da.from_array(each, chunks=(170, SEGMENT)) for each in (a, b))
        found[dtype] = nb.mm(x, y.T).compute().tobytes() == nb.mm(a, b.T).tobytes()
    return found


def cluster():
    import dask_cluster

    options = "--rows 8192 --inner 49152 --columns 512 --memory 512MiB --scaling"
    found, equal = dask_cluster.runs(dask_cluster.parsed(options.split()))
    return {"rows": [{"bench": "cluster", "dtype": "float32"} | row for row in found], "equal": equal}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the result file")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--chunks", type=int, nargs="+", default=CHUNKS)
    parser.add_argument("--cluster", action="store_true")
    args = parser.parse_args()
    meta, load = info.meta(), os.getloadavg()[0]
    if args.cluster:
        results = cluster()
    else:
        with nb.threads(1):
            results = {"rows": list(rows(args.chunks, args.turns)), "bits": bits()}
    versions = {name: sys.modules[name].__version__ for name in ("dask", "distributed") if name in sys.modules}
    results["meta"] = meta | {"versions": meta["versions"] | versions, "load": round(load, 1)}
    print((report.clusters if args.cluster else report.dasks)(results))
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    at_best()
    main()
