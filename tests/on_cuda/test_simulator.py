"""The CUDA kernels' own source, run by Numba's CUDA simulator: *_in_simulator.py, in a process of their own.

The simulator is chosen when Numba is imported. It runs a kernel's Python line by line, one Python thread for each CUDA
thread, so sizes are small and tiles smaller than any that a GPU would want.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "NBKERNELS_SKIPPED"))
}


def run(*command, **environment):
    command = [sys.executable, *map(str, command)]
    return subprocess.run(command, env={**ENVIRONMENT, **environment}, capture_output=True, text=True)


def test_kernels():
    """All files in one process: each in its own, they import Numba and load the CPU's kernels seven times."""
    options = ("-m", "pytest", "-q", "--maxfail=3", "-p", "no:cacheprovider", "-o", "addopts=")
    result = run(*options, *sorted(HERE.glob("*_in_simulator.py")), NUMBA_ENABLE_CUDASIM="1")
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
    assert " passed" in result.stdout
    assert "skipped" not in result.stdout


def test_device_check(tmp_path):
    """What can be proved here of the script for machines with a GPU: that its stages run, on arrays of the CPU."""
    first = {"NBKERNELS_FIRST_CALLS": "1000000"}  # the CPU's, which have the bits of its later ones
    script = HERE.parents[1] / "bench" / "device_check.py"
    result = run(script, "--dry", "--stage", "right", "streams", NUMBA_ENABLE_CUDASIM="0", OUT=str(tmp_path), **first)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1].startswith("device check: all right")


def test_device_check_without_a_gpu():
    result = run(HERE.parents[1] / "bench" / "device_check.py", CUDA_VISIBLE_DEVICES="", NUMBA_ENABLE_CUDASIM="0")
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert "lacks" in result.stderr
