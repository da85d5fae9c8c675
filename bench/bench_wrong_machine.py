"""A machine whose record is wrong, before and after a tune, against the same machine with the right one.

    python bench/bench_wrong_machine.py --seed 20261125             # L1 and L2 stated 4 times too large, too small
    python bench/bench_wrong_machine.py --factors 4 --budget 240 --products 60 --dtype float64 --json FILE

For each factor a process with the wrong record (NBKERNELS_MACHINE) says what it would run each of some random products
on, tunes, and says so again. This process, whose record is right, then times these choices and its own in turns.
"""

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from tabulate import tabulate
from tqdm import tqdm

from nbkernels import tune
from nbkernels.benches.peers import at_best
from nbkernels.commands import info
from nbkernels.cpu.gemm import gemm, kinds, paths, tuned
from nbkernels.cpu.runtime import machine, threads
from nbkernels.cpu.runtime.status import PACKED, PATHS
from nbkernels.tuning.cpu import workers
from nbkernels.tuning.matrices import matrices
from nbkernels.tuning.race import mean
from nbkernels.tuning.verify import draw

CHILD = """
import json, sys
sys.path.insert(0, sys.argv[1])
import bench_wrong_machine as bench, nbkernels
lanes, dtype, budget = json.loads(sys.stdin.read())
before = bench.choices(lanes, dtype)
found = nbkernels.tune(dtype=dtype, budget=budget)
print(json.dumps([before, bench.choices(lanes, dtype), str(found)]))
"""


def arrays(lane, dtype):
    return matrices(*lane[:4], dtype)


def choices(lanes, dtype) -> list:
    """(path, tiles where it is the packed one) of products, as this process would run them."""
    found = []
    for lane in lanes:
        a, b, out = arrays(lane, dtype)
        with workers(lane[4]):
            way = paths.path_of(out, None, a, b, lane[4])
        cut = kinds.tiles_of(kinds.kind_of(dtype, dtype, dtype), tuned.slot_of(out, a, b))
        found.append([way, list(cut) if way == PACKED else None])
    return found


def call(choice, a, b, out):
    """A product run so."""
    way, cut = choice
    if cut is None:
        return functools.partial(gemm.by_path, way, out, None, a, b, 0, 1)
    return functools.partial(gemm.gemm, out, None, a, b, 0, 1, cut)


def wrong(factor, lanes, dtype, budget) -> list:
    """[choices before, choices after, what tune said] of a process that is told caches `factor` times as large."""
    right = machine.machine()
    record = {"l1": max(4096, int(right.l1 * factor)), "l2": int(right.l2 * factor)}
    record["l3"] = max(right.l3, record["l2"]) if right.l3 else 0
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "machine.json"
        file.write_text(json.dumps(record))
        line = [sys.executable, "-c", CHILD, str(Path(__file__).parent)]
        words = json.dumps([lanes, dtype, budget])
        env = os.environ | {machine.VARIABLE: str(file), "NBKERNELS_TUNED": "1"}
        run = subprocess.run(line, input=words, env=env, capture_output=True, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def measure(lane, dtype, own, before, after, seconds) -> dict:
    """Seconds of three choices in turns; what is the same choice is timed once."""
    a, b, out = arrays(lane, dtype)
    every = {"right": own, "before": before, "after": after}
    distinct = {json.dumps(choice): call(choice, a, b, out) for choice in every.values()}
    with workers(lane[4]):
        times = tune.medians(distinct, seconds=seconds, rounds=7) if len(distinct) > 1 else dict.fromkeys(distinct, 1.0)
    return {name: times[json.dumps(choice)] for name, choice in every.items()}


@pytest.mark.parametrize("lane", [[40, 30, 20, "NT", 1], [600, 600, 600, "NN", 1]])
def test_wrong_machine(benchmark, lane):
    (own,) = choices([lane], "float64")
    found = benchmark.pedantic(measure, (lane, "float64", own, own, own, 0.01))
    assert set(found) == {"right", "before", "after"}
    assert own[0] in PATHS


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--factors", type=float, nargs="+", default=[4, 0.25], help="(4 0.25)")
    parser.add_argument("--products", type=int, default=60, help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="what they are drawn from (%(default)s)")
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"], help="(%(default)s)")
    parser.add_argument("--budget", type=float, default=240, help="seconds of each tune (%(default)s)")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each product (%(default)s)")
    parser.add_argument("--json", type=Path, help="put the rows there")
    options = parser.parse_args()
    rng, rows = np.random.default_rng(options.seed), []
    lanes = [[*draw(rng), int(rng.choice([1, threads.count()]))] for _ in range(options.products)]
    own = choices(lanes, options.dtype)
    for factor in options.factors:
        before, after, said = wrong(factor, lanes, options.dtype, options.budget)
        print(said)
        for lane, *three in tqdm(list(zip(lanes, own, before, after)), unit="product", disable=None):
            times = measure(lane, options.dtype, *three, options.seconds)
            rows.append({"factor": factor, "lane": lane, "dtype": options.dtype, **times})
    lines = []
    for factor in options.factors:
        for name in ("before", "after"):
            found = [row["right"] / row[name] for row in rows if row["factor"] == factor]
            lines.append([f"caches x {factor:g}", name, f"{mean(found):.3f}", f"{min(found):.3f}"])
    heads = ["record", "tune", "speed over the right record's", "worst"]
    print(tabulate(lines, headers=heads, disable_numparse=True))
    if options.json:
        options.json.write_text(json.dumps({"meta": info.meta(), "rows": rows}, indent=1), encoding="utf-8")
    right = asdict(machine.machine())
    print(f"{options.products} random products of {options.dtype}, seed {options.seed}; the right record is {right}")


if __name__ == "__main__":
    at_best()
    main()
