"""Other vector widths on this machine: NUMBA_CPU_NAME and NUMBA_CPU_FEATURES choose what the generators emit."""

import json
import os
import platform
import subprocess
import sys

import pytest

SCRIPT = """
import json, hashlib
import numpy as np
import nbkernels
from nbkernels.cpu.tiles import candidates, default
from nbkernels.cpu import gemm
from nbkernels.jit.vector import width_bits
from tests.cases import GEMM_SHAPES, LAYOUTS, TRANSPOSES, whole_numbers
rng = np.random.default_rng(0)
bits = hashlib.sha256()
for dtype in ("float32", "float64"):
    for m, n, k in GEMM_SHAPES[:13:2]:
        a, b = whole_numbers(rng, (m, k), dtype), whole_numbers(rng, (k, n), dtype)
        for la, lb in TRANSPOSES.values():
            assert (nbkernels.addmm(a[:1, :1], LAYOUTS[la](a), LAYOUTS[lb](b)) == a[0, 0] + a @ b).all(), (m, n, k)
        out = np.full((m, n), np.nan, dtype)
        gemm.gemm(out, None, a, b, 0, 1, default(dtype))
        assert (out == a @ b).all(), (m, n, k)
    a, b = rng.standard_normal((37, 600)).astype(dtype), rng.standard_normal((600, 41)).astype(dtype)
    bits.update(nbkernels.mm(a, b).tobytes())
    x = rng.standard_normal((37, 41)).astype(dtype)
    bits.update(nbkernels.add(x, x[0]).tobytes() + nbkernels.maximum(x, x.T[:1].T).tobytes())
print(json.dumps([width_bits(), str(default("float32")), bits.hexdigest()]))
"""

CPUS = {
    256: dict(
        NUMBA_CPU_NAME="haswell", NUMBA_CPU_FEATURES="+avx,+avx2,+fma,+sse4.2,+sse4.1,+ssse3,+sse3,+popcnt,+bmi2"
    ),
    128: dict(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=""),
}


def run(**env):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environment = dict(os.environ, PYTHONPATH=root, **env)
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=600
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout)


@pytest.mark.parametrize("width", CPUS)
def test_narrower_vectors_give_the_same_bits(width):
    if platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip("needs an x86-64 machine: these are x86 CPU names")
    native, other = run(), run(**CPUS[width])
    if native[0] < width:
        pytest.skip(f"needs a machine with {width}-bit vectors")
    assert other[0] == width
    assert other[2] == native[2]
