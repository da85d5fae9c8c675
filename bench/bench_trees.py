"""An earlier tree of this library against this one, on the products of bench_shapes.py: speed over it, by class.

    git worktree add ../before COMMIT
    python bench/bench_trees.py ../before --threads 2
    python bench/bench_trees.py ../before --classes gemv batched --dtypes float64 --rows     # and each product's
    python bench/bench_trees.py ../before --calls                                            # small calls instead

Random products, as bench_choice.py has them, do not show what a rule does to round sizes and to what comes from memory.
Processes take turns, and the first one with them: one of this tree, two of the earlier one, the second as a control,
whose speed says what is noise. Each round has new arrays, as luck has it whose pages share sets of L2. Each round of
small calls has new processes: where one's code lies makes a call of 400 ns 4 % faster or slower.
"""

import argparse
import functools
import json
import os
import runpy
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from tabulate import tabulate
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
DTYPES = "float32", "float64"
SHAPES = runpy.run_path(str(ROOT / "nbkernels/benches/shapes.py"))  # this tree's, whichever tree's process it is
BEFORE, AFTER, CONTROL = TREES = "before", "after", "control"
CALLS = {
    "mm 4x4": "mm(a, a)", "mm 4x4, out": "mm(a, a, out=o)", "addmm 4x4": "addmm(v, a, a)",
    "matmul 4x4": "matmul(a, a)", "matmul 4x4, out": "matmul(a, a, out=o)", "add 4x4": "add(a, a)",
    "add 4x4 and 4": "add(a, v)", "mv 4x4": "mv(a, v)", "bmm 10x4x4": "bmm(s, s)", "mm 64x64": "mm(b, b)",
}  # fmt: skip


def serve(seconds=0.004):
    """Time what is asked for, a line each: microseconds of a call, the median of three samples."""
    import nbkernels

    made = functools.lru_cache(maxsize=1)(lambda *shape, dtype: SHAPES["arrays"](shape, dtype))
    for line in sys.stdin:
        shape, dtype = json.loads(line)
        a, b, out = (x.copy(order="K") for x in made(*shape, dtype=dtype))
        nbkernels.matmul(a, b, out=out)  # compiles it
        start = time.perf_counter()
        nbkernels.matmul(a, b, out=out)
        count, samples = max(1, int(seconds / (time.perf_counter() - start))), []
        for _ in range(3):
            start = time.perf_counter()
            for _ in range(count):
                nbkernels.matmul(a, b, out=out)
            samples.append((time.perf_counter() - start) / count * 1e6)
        print(median(samples), flush=True)


def call(rounds=30, count=1000):
    """Print microseconds of each of CALLS, the least of some samples, which take turns."""
    import numpy as np

    import nbkernels

    arrays = {name: np.ones(shape, np.float32) for name, shape in
              {"a": (4, 4), "o": (4, 4), "v": 4, "s": (10, 4, 4), "b": (64, 64)}.items()}  # fmt: skip
    runs = {}
    for name, text in CALLS.items():
        exec(f"def run(count):\n for _ in range(count): nbkernels.{text}", scope := arrays | {"nbkernels": nbkernels})
        runs[name] = scope["run"]
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run(count)
            times[name].append((time.perf_counter() - start) / count * 1e6)
    print(json.dumps({name: min(found) for name, found in times.items()}))


def environment(tree, threads=1):
    """That of a tree's process."""
    names = "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"
    own = {"PYTHONPATH": str(tree.resolve()), "NBKERNELS_FIRST_CALLS": "0"}
    return os.environ | dict.fromkeys(names, str(threads)) | own


def measure_calls(before, rounds):
    """[(call, {tree: microseconds}), ...]: medians over as many processes of each tree as there are rounds."""
    times = {name: {call: [] for call in CALLS} for name in TREES}
    for turn in tqdm(range(rounds + 1), unit="round"):  # the first one compiles
        for name in TREES[turn % 3 :] + TREES[: turn % 3]:
            tree = ROOT if name == AFTER else before
            done = subprocess.run([sys.executable, __file__, "--call"], cwd=tree, env=environment(tree), text=True,
                                  stdout=subprocess.PIPE, check=True)  # fmt: skip
            for call, found in json.loads(done.stdout).items():
                times[name][call].extend([found] * (turn > 0))
    return [(call, {name: median(times[name][call]) for name in TREES}) for call in CALLS]


class Process:
    """One that serves a tree's products."""

    def __init__(self, tree, threads):
        self.run = subprocess.Popen([sys.executable, __file__, "--serve"], cwd=tree, env=environment(tree, threads),
                                    text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip

    def time(self, shape, dtype):
        print(json.dumps([shape, dtype]), file=self.run.stdin, flush=True)
        answer = self.run.stdout.readline()
        if not answer:
            sys.exit(f"{self.run.args} ended, by {self.run.wait()}")
        return float(answer)


def measure(before, cases, threads, rounds):
    """[(case, {process: microseconds}), ...]: medians."""
    processes = {name: Process(ROOT if name == AFTER else before, threads) for name in TREES}
    rows = []
    for case in tqdm(cases, unit="product"):
        times = {name: [] for name in TREES}
        for turn in range(rounds + 1):
            for name in TREES[turn % 3 :] + TREES[: turn % 3]:
                times[name].append(processes[name].time(*case[1:]))
        rows.append((case, {name: median(found[1:]) for name, found in times.items()}))
    for process in processes.values():
        process.run.communicate()
    return rows


def mean_speed(rows, name):
    from report import geometric_mean

    return geometric_mean(times[BEFORE] / times[name] for _, times in rows)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path, help="the earlier tree")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--classes", nargs="+", choices=SHAPES["SHAPES"], default=list(SHAPES["SHAPES"]))
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--rounds", type=int, default=7, help="times that each is timed (%(default)s)")
    parser.add_argument("--rows", action="store_true", help="print each product's, too")
    parser.add_argument("--calls", action="store_true", help="small calls, in new processes each round, instead")
    args = parser.parse_args(argv)
    sys.path[:0] = [str(ROOT), str(ROOT / "bench")]  # here, as the other tree's processes are not to find this one
    if args.calls:
        lines = [
            [call, *times.values(), times[BEFORE] / times[AFTER], times[BEFORE] / times[CONTROL]]
            for call, times in measure_calls(args.before, args.rounds)
        ]
        headers = ["call", *(f"{name}, us" for name in TREES), "speed over before", CONTROL]
        print(tabulate(lines, headers=headers, floatfmt=".3f"))
        return
    cases = [(name, s, dtype) for name in args.classes for s in SHAPES["SHAPES"][name] for dtype in args.dtypes]
    rows = measure(args.before, cases, args.threads, args.rounds)
    if args.rows:
        lines = [
            [name, "x".join(map(str, shape[:-1] if shape[0] else shape[1:-1])), shape[-1], dtype, *times.values()]
            for (name, shape, dtype), times in rows
        ]
        print(tabulate(lines, headers=["class", "shape", "layout", "dtype", *(f"{n}, us" for n in TREES)]))
    groups = {name: [row for row in rows if row[0][0] == name] for name in args.classes} | {"all": rows}
    lines = [[name, len(group), mean_speed(group, AFTER), mean_speed(group, CONTROL)] for name, group in groups.items()]
    print(tabulate(lines, headers=["class", "products", "speed over before", CONTROL], floatfmt=".3f"))


def test_a_tree_against_itself(capsys):
    main([str(ROOT), "--classes", "outer", "--dtypes", "float32", "--rounds", "1"])
    assert "control" in capsys.readouterr().out


if __name__ == "__main__":
    {"--serve": serve, "--call": call}.get(sys.argv[-1], main)()
