"""Every example runs from any directory, prints something and warns of nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import EVERY

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
LONG = {
    "dask_cluster": [pytest.mark.release]
}  # processes that come and go, which dask_arrays/test_graphs.py has smaller
SMALL = {} if EVERY else {"language_model": ("1", "256")}  # one layer


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem, marks=LONG.get(path.stem, ())) for path in EXAMPLES])
def test_example(path, tmp_path):
    if path.stem == "dask_cluster":
        pytest.importorskip("distributed", reason="lacks distributed")
    if path.stem.endswith("_on_cuda"):
        pytest.importorskip("numba_cuda", reason="lacks the CUDA wheels")
    command = [sys.executable, "-W", "error", str(path), *SMALL.get(path.stem, ())]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert result.returncode == 0, result.stderr
    assert result.stdout
    assert not result.stderr


def test_there_are_examples():
    assert len(EXAMPLES) >= 4
