"""The micro-kernels: no loop keeps a chain in memory, and what a product lacks is compiled, once."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from nbkernels.cpu.gemm import microkernel
from nbkernels.cpu.gemm.blocking import small
from nbkernels.jit.compiler import Library

LOOP = re.compile(r"^(\.L\w+):(?:(?!^\.L\w+:)[\s\S])*?\tj\w+\t\1\b", re.MULTILINE)
STACK = re.compile(r"\(%r[sb]p[^)]*\), %[yz]mm|%[yz]mm\d+, -?\d*\(%r[sb]p")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lie", range(len(microkernel.LIES)))
def test_no_chain_is_spilled_in_a_loop(dtype, lie, monkeypatch):
    code = []
    made = Library._finalize_final_module
    monkeypatch.setattr(Library, "_finalize_final_module", lambda self: (code.append(_assembly(self)), made(self)))
    tile = small(dtype)

    def define(module, name):
        microkernel._define(module, name, tile, tile.mr, tile.nv, lie)

    microkernel.routine(f"spills_{dtype}_{lie}_{np.random.default_rng().integers(1 << 60)}", define)
    loops = [each.group() for each in LOOP.finditer(code[0]) if "fmadd" in each.group()]
    assert loops
    assert not [line for each in loops for line in STACK.findall(each)]


def _assembly(library):
    return library._codegen._tm.emit_assembly(library._final_module.clone())


def test_each_is_compiled_when_it_is_first_asked_for_and_found_again():
    tile = small("float32")
    words = microkernel.table(tile)
    for lie in range(len(microkernel.LIES)):
        at = microkernel.place(tile, lie, tile.mr - 1, tile.nv)
        microkernel.supply(tile, at)
        assert words[at]
        low = microkernel.place(tile, microkernel.STRIDED, tile.mr - 1, tile.nv)
        assert lie == microkernel.COPYING or words[at] == words[low]  # fewer rows go by any strides


SCRIPT = """
import numpy as np, nbkernels as nb
def made():
    names = [each.name.rpartition("_")[2] for each in nb.specializations() if "ukernel" in each.name]
    return [name for name in names if "x" in name]
a = np.ones((4, 4), np.float32)
nb.mm(a, a), nb.addmm(a, a, a)
assert made() == ["4x1"], made()
a = np.arange(35, dtype=np.float64).reshape(5, 7)
assert np.array_equal(nb.mm(a, a.T), a @ a.T)
assert made() == ["4x1", "5x2" if a.itemsize * 5 > WIDTH else "5x1"], made()
"""


def test_a_product_compiles_the_micro_kernels_that_it_needs_and_no_other(tmp_path):
    script = SCRIPT.replace("WIDTH", str(small("float64").lanes * 8))
    environment = os.environ | {"NBKERNELS_CACHE_DIR": str(tmp_path)}
    for _ in range(2):  # compiled, and from disk
        subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=300)
