"""The dispatcher by itself: imported from the repository as `dispatch`, it needs nothing and costs next to nothing."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
USE = """
import sys, dispatch

class Box:
    shape, strides = (), ()
class Boxes(dispatch.Adapter):
    classes = ("__main__.Box",)
    def spec(self, x): return x
dispatch.register_adapter(Boxes())
library = dispatch.Library("mine")
same = library.define("same(Tensor self) -> Tensor", dispatch={"CPU": lambda x: x}).function
box = Box(); assert same(box) is box; str(same.table())
for name in dispatch.__all__: assert getattr(dispatch, name).__module__.startswith("dispatch.")
for name in ("numpy", "numba", "torch", "cupy", "nbkernels"): assert name not in sys.modules, name
"""


def environment(cache):
    """Bytecode is kept, as an installed package has it."""
    kept = {k: v for k, v in os.environ.items() if k not in {"PYTHONDONTWRITEBYTECODE", "COVERAGE_PROCESS_START"}}
    return kept | {"PYTHONPYCACHEPREFIX": str(cache)}


def test_it_is_used_without_any_array_library(tmp_path):
    subprocess.run([sys.executable, "-c", USE], check=True, cwd=ROOT, env=environment(tmp_path))


@pytest.mark.parametrize("code", ["import dispatch", "from dispatch import *"], ids=["as it is", "with all it has"])
def test_importing_costs_no_more_than_half_a_start(tmp_path, code):
    def start(code):
        before = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env=environment(tmp_path))
        return time.perf_counter() - before

    start(code)  # writes the bytecode
    for _ in range(4):  # another process may have had the machine: the least of many, and again
        empty, ours = (min(times) for times in zip(*((start("pass"), start(code)) for _ in range(8))))
        if ours <= 1.5 * empty:
            return
    raise AssertionError(f"{code} starts in {ours * 1e3:.1f} ms, an empty interpreter in {empty * 1e3:.1f} ms")
