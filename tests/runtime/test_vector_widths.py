"""Other vector widths on this machine: NUMBA_CPU_NAME and NUMBA_CPU_FEATURES choose what the generators emit."""

import functools
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from nbkernels.jit.ir.vector import width_bits
from tests.processes import python

SCRIPT = """
import json, hashlib
import numpy as np
import nbkernels
from nbkernels.cpu.gemm.blocking import candidates, default
from nbkernels.cpu.gemm import gemm, kinds, paths
from nbkernels.cpu.runtime.status import SMALL
from nbkernels.jit.ir.vector import width_bits
from tests.cases import EVERY, GEMM_SHAPES, LAYOUTS, TRANSPOSES, whole_numbers
rng = np.random.default_rng(0)
bits = hashlib.sha256()
if not EVERY:
    small = paths.only(SMALL)  # a name keeps it; others compile long
    small.__enter__()
for dtype in ("float32", "float64") if EVERY else ("float32",):
    for m, n, k in GEMM_SHAPES[:13:2] if EVERY else GEMM_SHAPES[10:13]:
        a, b = whole_numbers(rng, (m, k), dtype), whole_numbers(rng, (k, n), dtype)
        for la, lb in TRANSPOSES.values():
            assert (nbkernels.addmm(a[:1, :1], LAYOUTS[la](a), LAYOUTS[lb](b)) == a[0, 0] + a @ b).all(), (m, n, k)
        out = np.full((m, n), np.nan, dtype)
        gemm.gemm(out, None, a, b, 0, 1, default(dtype))
        assert (out == a @ b).all(), (m, n, k)
    k = 600 if EVERY else 60
    a, b = rng.standard_normal((37, k)).astype(dtype), rng.standard_normal((k, 41)).astype(dtype)
    bits.update(nbkernels.mm(a, b).tobytes() + nbkernels.mm(a[:4], b[:, :5]).tobytes())  # a vector of 4 and one of 2
    odd = a[:31, :29]  # tiles, and squares of a B stored by columns, that overlap
    bits.update(nbkernels.mm(odd, b[:29, :31]).tobytes() + nbkernels.mm(odd, odd.T).tobytes())
    x = rng.standard_normal((37, 41)).astype(dtype)
    bits.update(nbkernels.add(x, x[0]).tobytes() + nbkernels.maximum(x, x.T[:1].T).tobytes())
    bits.update(nbkernels.outer(x[:, 0], x[0]).tobytes())
    where = np.equal.outer(np.arange(300), np.arange(300))[:, :257].astype(dtype)
    for fold in (nbkernels.logical_or, nbkernels.logical_and):
        bits.update(fold.reduce(where, 1).tobytes() + fold.reduce(1 - where, 1).tobytes())
    bits.update(nbkernels.less(x, x[0]).tobytes() + nbkernels.maximum.accumulate(x.astype("int64"), 1).tobytes())
# Other kinds go by other instructions on each width: sums of four bytes, of two int16, conversions bit by bit.
def mm(a, b, dtype, x=None, beta=0):  # by the packed path: the entries that choose compile long
    kind, out = kinds.kind_of(a.dtype.name, b.dtype.name, dtype), np.empty((len(a), b.shape[1]), dtype)
    gemm.gemm(out, x, a, b, beta, 1, kinds.default_tiles(kind))
    return out
a, b = rng.integers(-128, 128, (9, 603)).astype("int8"), rng.integers(0, 256, (603, 50)).astype("uint8")
assert (mm(a, b, "int32") == a.astype("int32") @ b.astype("int32")).all()
for dtype in ("int64", "int32") if EVERY else ("int64",):
    a, b = (rng.integers(-(2**63), 2**63 - 1, shape, "int64").astype(dtype) for shape in ((9, 603), (603, 50)))
    assert (mm(a, b, dtype) == a @ b).all()
    assert not EVERY or (nbkernels.mv(b.T, a[0]) == b.T @ a[0]).all()
for dtype in ("float16", "complex64") if EVERY else ("float16",):
    unit = [1, 1j if dtype == "complex64" else 1]
    a, b = (rng.standard_normal((*shape, 2)) @ unit for shape in ((9, 603), (603, 50)))
    bits.update(mm(a.astype(dtype), b.astype(dtype), dtype).tobytes())
    v = b[:, :1].astype(dtype)
    bits.update(b"".join(mm(a.astype(dtype, order), v, dtype).tobytes() for order in "CF"))
halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(256, 256)
halves = np.where(abs(halves) < 60000, halves, np.float16(0))  # without NaN, whose bits may differ
one = np.eye(256, dtype=np.float16)
scaled = mm(one, one * 0, "float16", halves, 1 + 2.0**-10)
assert (scaled == (halves.astype("float32") * np.float32(1 + 2.0**-10)).astype("float16")).all()
print(json.dumps([width_bits(), str(default("float32")), bits.hexdigest()]))
"""

CPUS = {
    256: dict(
        NUMBA_CPU_NAME="haswell", NUMBA_CPU_FEATURES="+avx,+avx2,+fma,+sse4.2,+sse4.1,+ssse3,+sse3,+popcnt,+bmi2"
    ),
    128: dict(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=""),
}


NEON = """
import json, re
from llvmlite import binding, ir
from nbkernels.jit.disk import levels
TRIPLE = "aarch64-unknown-linux-gnu"
levels.target = lambda: (TRIPLE, "generic", frozenset({"neon"}))  # before any module takes it
from nbkernels.cpu.gemm import kinds, microkernel as ukernel
binding.initialize_all_targets()
binding.initialize_all_asmprinters()
found = {}
for dtype in ("float32", "float64", "int32", "int64", "float16", "complex64", "int8"):
    kind = kinds.kind_of(dtype, dtype, "int32" if dtype == "int8" else dtype)  # bytes are widened: no vpdpbusd there
    tile = kinds.default_tiles(kind).tile(kind)
    module = ir.Module()
    module.triple = TRIPLE
    ukernel._define(module, "ukernel", tile, tile.mr, tile.nv, ukernel.PACKED)
    machine = binding.Target.from_triple(TRIPLE).create_target_machine(opt=3)
    code = binding.parse_assembly(str(module))
    passes = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(3))
    passes.getModulePassManager().run(code, passes)
    lines = [" ".join(line.split()) for line in machine.emit_assembly(code).splitlines()]
    steps = 4 * tile.mr * tile.nv * kind.planes**2  # in the unrolled loop
    steps *= 2 if dtype == "int64" else 1  # umlal and mla
    vector = sum(bool(re.match(r"(fml[as]|u?mlal?) v[0-9]+[.](4s|2d)", line)) for line in lines)
    scalar = [line for line in lines if re.match(r"(fn?m(add|sub) |bl (?!store_))", line)]
    found[dtype] = [steps, vector, scalar]
print(json.dumps(found))
"""


@functools.cache  # of this machine's own vectors once
def run(script=SCRIPT, **env):
    return json.loads(python(script, PYTHONPATH=str(Path(__file__).resolve().parents[2]), **env))


@pytest.mark.sampled
@pytest.mark.parametrize("width", sorted(width for width in CPUS if width < width_bits()))
def test_narrower_vectors_give_the_same_bits(width):
    if platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip("needs an x86-64 machine: these are x86 CPU names")
    native, other = run(), run(**CPUS[width])
    assert native[0] > other[0] == width
    assert other[2] == native[2]


def test_neon_works_in_vectors():
    """The micro-kernels' assembly for 64-bit Arm: every step a multiply-add of vectors, nothing scalar, no
    calls but of what stores the end of a row."""
    for dtype, (steps, vector, scalar) in run(NEON).items():
        assert vector >= steps, dtype
        assert not scalar, dtype


def test_compiling_leaves_the_streams_alone(tmp_path):
    """With colorama, which Numba would have swap them while a thread compiles and others print."""
    (tmp_path / "colorama.py").write_text(
        '__version__ = "0.4.6"\n'
        'class Fore: BLUE = YELLOW = WHITE = GREEN = RED = BLACK = MAGENTA = CYAN = ""\n'
        'class Style: BRIGHT = RESET_ALL = ""\n'
        'def init(): raise AssertionError("swapped")\n'
        "reinit = deinit = init\n"
    )
    code = (
        "import nbkernels.jit.compile.compiler\nfrom numba.core import errors\nprint(errors.termcolor().errmsg('said'))"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert result.stdout == "said\n", result.stderr
