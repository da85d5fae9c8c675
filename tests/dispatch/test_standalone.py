"""The dispatcher by itself: imported from the repository as `dispatch`, it needs nothing and costs next to nothing."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
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


def test_importing_loads_no_module_of_its_own(tmp_path):
    """They come with their names: an import costs what an empty module does (bench/bench_first_call.py)."""
    code = "import sys; before = set(sys.modules); import dispatch; print(*sorted(set(sys.modules) - before))"
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, check=True, cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True)
    assert run.stdout.split() == ["dispatch"]
