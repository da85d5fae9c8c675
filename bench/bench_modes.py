"""Modes of bfloat16 on this processor, judged by random products: whether the default is the fastest of them.

    python bench/bench_modes.py --seed 1                                   # 300 products, one thread and all: tables
    python bench/bench_modes.py --seed 1 --threads 1 --json bench/results/modes-avx512bf16.json

Products are drawn as bench_choice.py draws them, and each mode takes its turns in one run, beside torch's bfloat16.
"""

import argparse
import contextlib
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
from tabulate import tabulate
from tqdm import tqdm

import nbkernels
from nbkernels import tune
from nbkernels.benches import peers
from nbkernels.benches.peak import workers
from nbkernels.benches.peers import at_best
from nbkernels.cpu.gemm import kinds
from nbkernels.cpu.runtime import threads

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from bench_choice import ROUNDS, draw, kind, quantile
from report import geometric_mean
from results_file import keep

MODES = [mode for mode in ("chain", *kinds.MODES) if kinds.has(mode)]


def measure(shape, count, seconds) -> dict:
    """One row: seconds of each mode, and torch's where it is there."""
    batch, m, n, k, layout = shape
    rng, lead = np.random.default_rng(0), (batch,) if batch else ()

    def matrix(rows, columns, turned):
        x = rng.standard_normal((*lead, rows, columns)).astype(ml_dtypes.bfloat16)
        return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2) if turned == "T" else x

    a, b, out = matrix(m, k, layout[0]), matrix(k, n, layout[1]), np.empty((*lead, m, n), ml_dtypes.bfloat16)
    product = nbkernels.bmm if batch else nbkernels.mm
    every = {mode: (nbkernels.modes(mode), lambda: product(a, b, out=out)) for mode in MODES}
    if torch := peers.torch():
        ta, tb, to = (torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) for x in (a, b, out))
        every["torch"] = contextlib.nullcontext(), lambda: torch.matmul(ta, tb, out=to)
    found = {}
    with workers(count):
        for _ in range(ROUNDS):
            for name, (block, call) in every.items():
                with block:
                    call()  # which plans the others
                    share = seconds / ROUNDS / len(every)
                    found.setdefault(name, []).extend(tune.samples({name: call}, seconds=share, rounds=1)[name])
    times = {name: tune.middle(each) for name, each in found.items()}
    return {"bench": kind(shape), "shape": [*lead, m, n, k], "dtype": "bfloat16", "threads": count, "layout": layout,
            "ours_s": times[kinds.default_mode("bfloat16")], "modes": {mode: times[mode] for mode in MODES},
            "peers": {name: time for name, time in times.items() if name not in MODES}}  # fmt: skip


def summary(rows) -> str:
    """One line for each class: the default's speed over that of each mode, and of torch, and where it loses most."""
    lines = []
    for name in [*sorted({row["bench"] for row in rows}), "all"]:
        group = [row for row in rows if name in (row["bench"], "all")]
        line = {"class": name, "products": len(group)}
        for mode in [*group[0]["modes"], *group[0]["peers"]]:
            times = [(row["modes"] | row["peers"])[mode] / row["ours_s"] for row in group]
            line |= {f"of {mode}": f"{geometric_mean(times):.2f}", f"5th, {mode}": f"{quantile(times, 0.05):.2f}"}
        losses = [row["ours_s"] / min(row["modes"].values()) for row in group]
        worst = group[int(np.argmax(losses))]
        line |= {"slower by 5 %": sum(loss > 1.05 for loss in losses), "most": f"{max(losses):.2f}",
                 "where": f"{'x'.join(map(str, worst['shape']))} {worst['layout']}"}  # fmt: skip
        lines.append(line)
    return tabulate(lines, headers="keys", disable_numparse=True)


def test_modes(benchmark):
    row = benchmark.pedantic(measure, ((0, 5, 6, 7, "NT"), 1, 0.01))
    assert set(row["modes"]) == set(MODES)
    assert "5x6x7 NT" in summary([row])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True, help="what the products are drawn from")
    parser.add_argument("--products", type=int, default=300, help="how many (%(default)s)")
    parser.add_argument("--most", type=int, default=3000, help="the largest size (%(default)s)")
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, threads.count()}))
    parser.add_argument("--seconds", type=float, default=0.2, help="time for each product (%(default)s)")
    parser.add_argument("--json", type=Path, help="put the rows there")
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    shapes = [draw(rng, (args.most,) * 3, ["bfloat16"])[0] for _ in range(args.products)]
    for count in args.threads:
        rows = [measure(shape, count, args.seconds) for shape in tqdm(shapes, unit="product")]
        if args.json:
            keep(args.json, rows)
        print(f"\n{count} thread{'s' * (count > 1)}, default {kinds.default_mode('bfloat16')}")
        print(summary(rows))


if __name__ == "__main__":
    at_best()
    main()
