"""Stage: a part of the table under compute-sanitizer, which finds reads and writes outside of arrays, where it is here.

Without torch, whose start takes most of a minute under it: arrays are numba's.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import device_arrays
import device_cases
import device_right
import numpy as np

SECONDS = 60
EVERY = 12  # of the cases


def run(report, dry):
    tool = shutil.which("compute-sanitizer")
    if tool is None and not dry:
        report("compute-sanitizer", text="compute-sanitizer is not here")
        return
    from nbkernels.cuda import cubins

    folder = str(cubins.CARRIED[-1])
    tool = [] if dry else [tool, "--tool", "memcheck", "--error-exitcode", "9"]
    done = subprocess.run([*tool, sys.executable, __file__, folder, *["dry"] * dry], capture_output=True, text=True)
    said = [line for line in done.stdout.splitlines() if line.startswith(("=========", "cases"))]
    report("memcheck", text=f"memcheck: {'; '.join(said[-2:])}", **({"wrong": said[:12]} if done.returncode else {}))


def inside(folder, dry):
    """What runs under it; the exit status."""
    from nbkernels.cuda import cubins

    cubins.CARRIED.append(Path(folder))
    library, ends = device_arrays.NumPy() if dry else device_arrays.Numba(), []
    for case in device_cases.cases()[:: EVERY * 20 if dry else EVERY]:
        memories = [array.memory(np.random.default_rng(i)) for i, array in enumerate(case.arrays)]
        ends.append(device_right.several(library, case, memories, device_cases.expected(case, memories))[0])
    print(f"cases: {', '.join(f'{ends.count(end)} {end}' for end in dict.fromkeys(ends))}")
    return int("wrong" in ends)


if __name__ == "__main__":
    sys.exit(inside(sys.argv[1], sys.argv[2:] == ["dry"]))
