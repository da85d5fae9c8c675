"""Packaged kernels of a level against those compiled for the machine: two processes, in turns, medians.

    python -m nbkernels prebuild --set all --out build/prebuilt     # or a recorded file with the calls below: --list
    python bench/bench_prebuilt.py build/prebuilt --json bench/results/prebuilt.json

`share` is the packaged kernel's speed as a part of the other's: 1 is as fast. A process whose code is not from where it
should be ends the bench.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from tabulate import tabulate
from tqdm import tqdm

import nbkernels
from nbkernels.benches.peers import at_best

SQUARES = 32, 64, 128, 256, 512, 1024
ROWS = 1000, 100_000, 1_000_000
NAMES = "add", "multiply", "divide", "maximum", "pow"
SLICE = 0.05  # seconds of a turn


def lined(shape, dtype):
    """Ones that begin with a line of the caches: where malloc begins one is luck, a process's own, and worth 15 %."""
    room = np.zeros(int(np.prod(shape)) * np.dtype(dtype).itemsize + 64, np.uint8)
    made = room[-room.ctypes.data % 64 :][: len(room) - 64].view(dtype).reshape(shape)
    made[...] = 1
    return made


def cases():
    """name -> (operation, operands, out)."""
    found = {}
    for dtype in ("float32", "float64"):
        for n in SQUARES:
            a = lined((n, n), dtype)
            found[f"mm {n} {dtype}"] = nbkernels.mm, (a, a), lined((n, n), dtype)
        for name in NAMES:
            for n in ROWS:
                x = lined(n, dtype)
                found[f"{name} {n} {dtype}"] = getattr(nbkernels, name), (x, x), lined(n, dtype)
    return found


def serve(prebuilt):
    """For each name that comes in: seconds of a call, the median of a turn."""
    from nbkernels.jit.disk import levels

    levels.PREBUILT = Path(prebuilt)
    known = cases()
    for line in sys.stdin:
        function, operands, out = known[line.strip()]
        function(*operands, out=out)
        times, end = [], time.perf_counter() + SLICE
        repeats = 1
        while time.perf_counter() < end:
            start = time.perf_counter()
            for _ in range(repeats):
                function(*operands, out=out)
            took = time.perf_counter() - start
            if took < 2e-4:
                repeats *= 2
                continue
            times.append(took / repeats)
        where = sorted({each.where for each in nbkernels.specializations()})
        print(json.dumps([statistics.median(times) if times else took / repeats, where]), flush=True)


def child(prebuilt, cache):
    line = [sys.executable, __file__, "--serve", str(prebuilt)]
    environment = dict(os.environ, NBKERNELS_CACHE_DIR=str(cache), NBKERNELS_TUNED="0")
    return subprocess.Popen(line, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(process, name):
    process.stdin.write(name + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def measure(prebuilt, own, rounds, only=""):
    """Rows for every case; `own` is the directory of the machine's code, which is compiled where it is not there."""
    with tempfile.TemporaryDirectory() as empty:
        processes = {"packaged": child(prebuilt, empty), "own": child(empty, own)}
        names, level = [name for name in cases() if only in name], ""
        times = {(who, name): [] for who in processes for name in names}
        for turn in tqdm(range(rounds + 1), "rounds"):
            for name in names:
                for who in list(processes)[:: 1 if turn % 2 else -1]:
                    seconds, where = ask(processes[who], name)
                    times[who, name].append(seconds)
                    level = where[0].removeprefix("packaged ") if who == "packaged" else level
                    packaged = [each for each in where if each.startswith("packaged")]
                    if packaged != (where if who == "packaged" else []):
                        sys.exit(f"{name}: the code of the {who} process is {', '.join(where)}")
        for process in processes.values():
            process.stdin.close()
            process.wait()
    rows = []
    for name in names:
        medians = {who: statistics.median(times[who, name][1:]) for who in processes}
        rows.append({"bench": "prebuilt", "op": name, "level": level, **medians,
                     "share": medians["own"] / medians["packaged"]})  # fmt: skip
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prebuilt", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", metavar="TEXT", help="calls whose name holds it")
    parser.add_argument("--own", type=Path, default=Path("build/own"), help="the machine's code is kept there")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--list", action="store_true", help="print the calls as `prebuild --set FILE` reads them")
    parser.add_argument("--serve", metavar="PREBUILT", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve(args.serve)
    if args.list:
        from nbkernels.calls.call import Call

        for function, operands, out in cases().values():
            print(Call.of(function.__name__, *operands, out=out).line())
        return None
    rows = measure(args.prebuilt, args.own.absolute(), args.rounds, args.only)
    print(tabulate([(r["op"], f"{r['own']:.2e}", f"{r['packaged']:.2e}", f"{r['share']:.3f}") for r in rows],
                   headers=("call", "own s", "packaged s", "share"), disable_numparse=True))  # fmt: skip
    if args.json:
        import results_file

        results_file.keep(args.json, rows)
    return None


if __name__ == "__main__":
    at_best()
    sys.exit(main())
