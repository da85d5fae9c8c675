"""Rows of x by quantised weights against float32 ones, from memory: python bench/bench_quantized.py [--json FILE].

4096 x 4096 weights, a call of each kind in every round, in a new order, so that weights that no cache holds are mostly
read between two calls of a kind: medians, and the bytes of weights a second beside what a copy within memory reads and
writes, and what a sum of float32 weights reads, in the same rounds.
"""

import os

os.environ["OMP_WAIT_POLICY"] = "passive"  # else torch's threads spin on a core while ours are timed

import argparse
import contextlib
import json
import random
import statistics
import sys
import time
import warnings
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

import numpy as np
from tabulate import tabulate

import nbkernels
from nbkernels import tune
from nbkernels.benches.peak import copy_call, workers
from nbkernels.benches.peers import at_best
from nbkernels.commands import info

N = 4096
ROWS = 1, 4, 8, 64
GROUP = 128
WHOLE = "int8 rows to int32", "int8 rows, packed"  # no scales: `linear` of whole numbers


def kinds(weight):
    """{name: function of x}, {name: bytes of weights}."""
    plain, grouped, small = (
        nbkernels.quantize(weight),
        nbkernels.quantize(weight, GROUP),
        nbkernels.quantize(weight, GROUP, "int4", scales="float16"),
    )
    packed = nbkernels.pack(weight, for_="weight")
    calls = {"float32": lambda x: nbkernels.linear(x, weight), "packed": lambda x: nbkernels.linear(x, packed)}
    sizes = {"float32": weight.nbytes, "packed": packed.nbytes}
    for name, w, dynamic in (
        ("int8", plain, False),
        (f"int8 by {GROUP}", grouped, False),
        (f"int4 by {GROUP}", small, False),
        ("int8, dynamic", plain, True),
        (f"int4 by {GROUP}, dynamic", small, True),
    ):
        calls[name] = lambda x, w=w, dynamic=dynamic: nbkernels.linear_q(x, w, dynamic=dynamic)
        sizes[name] = w.nbytes
    bytes_ = whole(weight)
    for name, w in ((WHOLE[0], bytes_), (WHOLE[1], nbkernels.pack(bytes_, for_="weight"))):
        calls[name] = lambda x, w=w: nbkernels.linear(x, w, out_dtype="int32")
        sizes[name] = w.nbytes
    return calls, sizes


def whole(x):
    """Numbers of int8 in an array's place."""
    return np.clip(np.rint(x * 32), -127, 127).astype(np.int8)


def peers(weight):
    """torch's: float32, and int8 with dynamic activations, where it has them."""
    try:
        import torch
    except ImportError:
        return {}
    plain = torch.nn.Linear(N, N, bias=False)
    with torch.no_grad():
        plain.weight.copy_(torch.from_numpy(weight))
    made = {"torch float32": plain}
    with warnings.catch_warnings(), contextlib.suppress(AttributeError, RuntimeError):  # no engine for this processor
        warnings.simplefilter("ignore")
        made["torch int8, dynamic"] = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(plain))

    def called(module):
        def call(x):
            with torch.no_grad():
                return module(torch.from_numpy(x))

        return call

    return {name: called(module) for name, module in made.items()}


def measure(threads, rounds):
    weight = np.random.default_rng(0).standard_normal((N, N), np.float32)
    calls, sizes = kinds(weight)
    calls |= peers(weight)
    copy, traffic = copy_call("memory", threads)
    for rows in ROWS:
        x = np.random.default_rng(rows).standard_normal((rows, N), np.float32)
        given = dict.fromkeys(calls, x) | dict.fromkeys(WHOLE, whole(x))
        every = {name: (lambda call=call, x=given[name]: call(x)) for name, call in calls.items()}
        every |= {"copy": copy, "read": lambda: nbkernels.sum_to(weight, ())}
        for name in ("float32", "packed", *WHOLE, "read"):
            for _ in range(40):  # the first calls of a kind are others
                every[name]()
        order = random.Random(rows)
        times = {name: [] for name in every}
        for _ in range(rounds):
            for name in order.sample(list(every), len(every)):
                start = time.perf_counter()
                every[name]()
                times[name].append(time.perf_counter() - start)
        medians = {name: statistics.median(each[1:]) for name, each in times.items()}
        yield {
            "bench": "linear_q", "shape": [rows, N, N], "dtype": "float32", "threads": threads,
            "copy_gb_s": traffic / medians.pop("copy") / 1e9, "read_gb_s": weight.nbytes / medians.pop("read") / 1e9,
            "seconds": medians,
            "gb_s": {name: size / medians[name] / 1e9 for name, size in sizes.items()},
            "spread": {name: tune.spread(times[name][1:]) for name in medians},
        }  # fmt: skip


def table(rows) -> str:
    names = list(rows[0]["seconds"])
    lines = [
        [row["threads"], row["shape"][0]]
        + [f"{row['seconds'][n] * 1e3:.2f} ({row['seconds']['float32'] / row['seconds'][n]:.1f})" for n in names]
        + [f"{row['copy_gb_s']:.0f}", f"{row['read_gb_s']:.0f}"]
        for row in rows
    ]
    return tabulate(lines, ["threads", "rows", *names, "copy GB/s", "sum GB/s"], disable_numparse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=25)
    args = parser.parse_args()
    rows, load = [], os.getloadavg()[0]
    for threads in args.threads:
        with workers(threads), nbkernels.threads(threads):
            rows += measure(threads, args.rounds)
    print(table(rows), f"load before: {load:.1f}", sep="\n")
    if args.json:
        meta = info.meta() | {"load": round(load, 1)}
        args.json.write_text(json.dumps({"meta": meta, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    at_best()
    main()
