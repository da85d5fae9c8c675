"""The micro-kernels: no loop keeps a chain in memory, and what a product lacks is compiled, once."""

import platform
import re

import numpy as np
import pytest

from nbkernels.cpu.gemm import microkernel, tiny
from nbkernels.cpu.gemm.blocking import small
from nbkernels.jit.compile.compiler import Library
from nbkernels.jit.compile.routine import routine
from tests.cases import EVERY
from tests.processes import python

LOOP = re.compile(r"^(\.L\w+):(?:(?!^\.L\w+:)[\s\S])*?\tj\w+\t\1\b", re.MULTILINE)
STACK = re.compile(r"\(%rsp[^)]*\), %[yz]mm|%[yz]mm\d+, -?\d*\(%rsp")  # %rbp is an address like others


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="reads x86-64's assembly")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lie", range(len(microkernel.LIES)))
def test_no_chain_is_spilled_in_a_loop(dtype, lie, monkeypatch):
    code = []
    made = Library._finalize_final_module
    monkeypatch.setattr(Library, "_finalize_final_module", lambda self: (code.append(_assembly(self)), made(self)))
    tile = small(dtype)

    def define(module, name):
        microkernel._define(module, name, tile, tile.mr, tile.nv, lie)

    routine(f"spills_{dtype}_{lie}_{np.random.default_rng().integers(1 << 60)}", define)
    loops = [each.group() for each in LOOP.finditer(code[0]) if "fmadd" in each.group()]
    assert loops
    assert not [line for each in loops for line in STACK.findall(each)]


def _assembly(library):
    return library._codegen._tm.emit_assembly(library._final_module.clone())


def test_each_is_compiled_when_it_is_first_asked_for_and_found_again():
    tile = small("float32")
    table = microkernel.table(tile)
    for lie in range(len(microkernel.LIES)):
        at = microkernel.place(tile, lie, tile.mr - 1, tile.nv)
        assert table.supply(at) == table.words[at] != 0
        low = microkernel.place(tile, microkernel.STRIDED, tile.mr - 1, tile.nv)
        own = lie in (microkernel.COPYING, microkernel.STREAMED)
        assert own == (lie > 0 and table.words[at] != table.words[low])  # others of fewer rows go by any strides


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
    for _ in range(2):  # compiled, and from disk
        python(script, NBKERNELS_CACHE_DIR=str(tmp_path))


# Every product begins with an empty table: one that runs into a micro-kernel that it did not ask for ends the process.
EMPTY = """
from array import array
import numba, numpy as np, nbkernels as nb
from nbkernels.cpu.gemm import blocking, kernels, kinds, microkernel, paths, tiny
from nbkernels.cpu.gemm.stacks import choose as chosen
from nbkernels.cpu.runtime.status import PATHS, SHORT
ways = [way for way in PATHS if way != SHORT]  # which has every one from its start
rng = np.random.default_rng(SEED)
names = {"float32": None, "float64": None, "int16": None, "complex64": None}
tiles = {name: {kinds.default_tiles(kind).tile(kind) for kind in [kinds.kind_of(name, name, name)]} for name in names}
for name in ("float32", "float64"):
    tiles[name].add(blocking.small(name))
def matrix(m, n, name):
    x = rng.integers(-9, 9, (n, m) if rng.random() < 0.5 else (m, n)).astype(name)
    x = x if x.shape == (m, n) and (m != n or rng.random() < 0.5) else x.T
    return x[:, ::2].repeat(2, 1)[:, : x.shape[1]] if rng.random() < 0.1 else x
for case in range(CASES):
    name, workers = list(names)[case % 5 % 4], 1 + case % 2
    numba.set_num_threads(min(workers, numba.config.NUMBA_NUM_THREADS))
    m, n, k = (int(2 ** rng.uniform(0, 7.5)) for _ in "mnk")
    if case % 4 == 0:  # whole panels of B, which jobs of few tiles may meet again
        n = min(tile.nr for tile in tiles[name]) * (1 + case % 3)
    a, b = matrix(m, k, name), matrix(k, n, name)
    x = [None, matrix(m, n, name), matrix(1, n, name)][case % 3]
    out = np.empty((m, n), name, order="CF"[rng.random() < 0.2])
    tables = [microkernel.table(tile) for tile in tiles[name]]
    if name.startswith("float"):
        tables.append(tiny.table(blocking.small(name)))
        size = [1 + int(2 ** rng.uniform(0, 5)) for _ in range(3)]
        count = int(rng.choice([2, 40, 1 + (12 << 20) // (8 * size[0] * size[1])])) if case % 50 == 0 else 7
    for tile in tiles[name]:
        kernels.ready(tile)[: kernels.MULTIPLIER] = 0
    kernels._supplied.cache_clear()
    for table in tables:
        table.words[:] = array("q", [0] * len(table.words))
    wanted = a @ b + (0 if x is None else x)
    with paths.only(ways[case % len(ways)]):
        found = nb.mm(a, b, out=out) if x is None else nb.addmm(x, a, b, out=out)
    assert np.array_equal(found, wanted.astype(name)), (case, name, m, n, k)
    if not name.startswith("float"):
        p, q, r = (int(2 ** rng.uniform(0, 5)) for _ in range(3))
        a, b = rng.integers(-9, 9, (9, p, q)).astype(name), rng.integers(-9, 9, (9, q, r)).astype(name)
        assert np.array_equal(nb.bmm(a, b), a @ b), (case, name, p, q, r)
        a, b = a.swapaxes(1, 2).copy().swapaxes(1, 2), b.swapaxes(1, 2).copy().swapaxes(1, 2)
        assert np.array_equal(nb.bmm(a, b), a @ b), (case, name, p, q, r)
    else:
        p, q, r = size
        a, b = rng.integers(-9, 9, (count, p, q)).astype(name), rng.integers(-9, 9, (count, q, r)).astype(name)
        if case % 2 and count < 100:
            b = np.ascontiguousarray(b.swapaxes(1, 2)).swapaxes(1, 2)
        if chosen(np.empty((count, p, r), name), None, a, b, 1, name) in (None, ("small", 1), ("small", 2)):
            continue  # it has every one from its start
        assert np.array_equal(nb.bmm(a, b), a @ b), (case, name, count, size)
"""


@pytest.mark.parametrize("seed", [1, 2] if EVERY else [1])
def test_no_product_runs_into_a_micro_kernel_that_it_did_not_ask_for(seed):
    python(EMPTY.replace("SEED", str(seed)).replace("CASES", "700"))


def test_threads_that_ask_first_at_the_same_time_share_a_table():
    """functools.cache lets both make one: what one thread supplies, code that knows the other's has to find."""
    tile = small("float32")
    for made in (microkernel.table, tiny.table):
        assert made.__wrapped__(tile).words is made.__wrapped__(tile).words is made(tile).words
