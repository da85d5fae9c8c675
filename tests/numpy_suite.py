"""NumPy's own tests under use_in_numpy, against the same by NumPy alone.

    python -m tests.numpy_suite [default|floats|all] [FILE ...]     # the files of FILES

It fails where a test fails that passes in plain NumPy. "all" replaces every loop that there is a kernel for, of any
size. The module is a pytest plugin as well: `-p tests.numpy_suite`,
with NBKERNELS_IN_NUMPY=default, floats or all.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

FILES = "test_ufunc.py", "test_umath.py", "test_einsum.py", "test_half.py", "test_multiarray.py"
HOW = "NBKERNELS_IN_NUMPY"


def pytest_configure(config):
    if how := os.environ.get(HOW):
        from nbkernels.in_numpy.use import use_in_numpy
        from nbkernels.in_numpy.which import DTYPES, OURS, PRODUCTS

        dtypes = [name for name in DTYPES if name != "bfloat16"]
        asked = {"names": [*PRODUCTS, *OURS], "dtypes": dtypes} if how == "all" else {}
        use_in_numpy(floats=how != "default", **asked)


def pytest_terminal_summary(terminalreporter):
    if os.environ.get(HOW):
        from nbkernels.in_numpy.inner_loops import all_slots

        rows = np.array([slot.counts() for slot in all_slots()] or [[[0, 0]] * 5])
        here, others = rows[:, 0, 0].sum(), rows[:, 1:4, 0].sum()
        terminalreporter.write_line(f"use_in_numpy: {here} calls of loops ran in nbkernels, {others} in NumPy")


def outcome(file, how):
    """(the ids that failed, the last lines that pytest wrote)."""
    root = Path(__file__).resolve().parent.parent
    # Tests that want more memory skip: some fill 9 GB.
    environment = os.environ | {HOW: how, "PYTHONPATH": str(root), "NPY_AVAILABLE_MEM": "2 GB"}
    folder = Path(np.__file__).parent / "_core" / "tests"
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(folder), "-rfE",
               "-p", "tests.numpy_suite", "-p", "no:cacheprovider", "-W", "ignore", str(folder / file)]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=root)
    text = run.stdout
    if run.returncode not in (0, 1):
        raise RuntimeError(f"pytest ended with {run.returncode}: {text[-2000:]} {run.stderr[-2000:]}")
    failed = set(re.findall(r"^(?:FAILED|ERROR) \S*?::(.*?)(?: - .*)?$", text, re.MULTILINE))
    return failed, [line for line in text.splitlines() if re.search(r"use_in_numpy: | in [\d.]+s", line)]


def main(how="default", *files):
    worse = []
    for file in files or FILES:
        plain, told = outcome(file, "")
        ours, also = outcome(file, how)
        only = sorted(ours - plain)
        worse += only
        print(f"{file}: NumPy: {told[-1]}; {how}: {'; '.join(also)}; fails here alone: {only or 'none'}", flush=True)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
