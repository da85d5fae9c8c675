"""What the machine can do at most: python bench/peak.py prints multiply-adds, copies in each cache level, launches."""

import itertools

from tabulate import tabulate

from nbkernels.benches.peak import peaks, workers
from nbkernels.benches.peers import at_best
from nbkernels.cpu.runtime import threads

if __name__ == "__main__":
    at_best()
    rows = []
    for dtype, count in itertools.product(("float32", "float64"), sorted({1, threads.count()})):
        with workers(count):
            found = peaks(count, dtype)
        speeds = {f"{level} GB/s": f"{width:.0f}" for level, width in found["gb_s"].items()}
        rows.append({"dtype": dtype, "threads": count, "GFLOP/s": f"{found['gflops']:.1f}", **speeds,
                     "launch us": f"{found['launch_us']:.2f}"})  # fmt: skip
    print(tabulate(rows, headers="keys", disable_numparse=True))
