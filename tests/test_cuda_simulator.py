"""The CUDA kernels' own source, run by Numba's CUDA simulator: cuda_in_simulator.py, in a process of its own.

The simulator is chosen when Numba is imported. It runs a kernel's Python line by line, one Python thread for each CUDA
thread, so sizes are small and tiles smaller than any that a GPU would want.
"""

import os
import subprocess
import sys
from pathlib import Path


def test_kernels_in_the_simulator():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment.pop("NBKERNELS_SKIPPED", None)  # this process writes that file
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    run = subprocess.run(
        [*command, "-o", "addopts=", str(Path(__file__).with_name("cuda_in_simulator.py"))],
        env={**environment, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    assert " passed" in run.stdout
    assert "skipped" not in run.stdout
