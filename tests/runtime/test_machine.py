"""The machine's record: what systems tell, what a file says, and that no kernel is compiled for it."""

import ctypes
import json
from types import SimpleNamespace

import pytest

from nbkernels.commands import info
from nbkernels.cpu.runtime import machine
from nbkernels.cpu.runtime.machine import Machine
from nbkernels.jit.disk.files import directory
from tests.processes import python


def test_linux(tmp_path):
    for i, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K"), ("3", "Unified", "33M"),
         ("4", "Unified", "64K")]
    ):  # fmt: skip
        index = tmp_path / f"index{i}"
        index.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (index / name).write_text(text + "\n")
    (tmp_path / "index9").mkdir()  # of which nothing is told
    assert machine._linux(tmp_path) == {1: 48 << 10, 2: 2 << 20}
    assert machine._linux(tmp_path / "none") == {}


def test_macos(monkeypatch):
    told = {b"hw.perflevel0.l1dcachesize": 128 << 10, b"hw.l1dcachesize": 64 << 10, b"hw.l2cachesize": 4 << 20}

    def sysctlbyname(name, value, size, new, length):
        if name in told:
            value._obj.value = told[name]
        return 0 if name in told else -1

    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(sysctlbyname=sysctlbyname))
    assert machine._macos() == {1: 128 << 10, 2: 4 << 20, 3: 0}


def test_windows():
    rows = (machine._Cache * 5)()
    for row, (relation, level, size, kind) in zip(
        rows, [(0, 0, 0, 0), (2, 1, 32 << 10, 1), (2, 1, 48 << 10, 2), (2, 2, 1 << 20, 0), (2, 3, 1 << 25, 0)]
    ):
        row.relation, row.level, row.size, row.kind = relation, level, size, kind
    assert machine._of_windows(rows) == {1: 48 << 10, 2: 1 << 20, 3: 1 << 25}
    assert ctypes.sizeof(machine._Cache) == 32


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", '{"l2": "1"}', '{"l2": 1.5}', '{"l2": true}', '{"l2": 0}', '{"l9": 1}',
     '{"l2": 4096, "l3": 1}', '{"costs": 3}', '{"l1": -4096}', "[" * 100_000, '{"l3": 99999999999999999999}'],
)  # fmt: skip
def test_a_file_with_a_flaw_counts_as_none(text, tmp_path, monkeypatch):
    file = tmp_path / "machine.json"
    file.write_text(text)
    monkeypatch.setenv(machine.VARIABLE, str(file))
    found, flaw = machine._stated()
    assert found is None
    assert flaw.startswith(f"NBKERNELS_MACHINE={file} is not used: ")
    monkeypatch.setattr(machine, "problem", lambda: flaw)
    assert " ".join(flaw.split()) in " ".join(info.text().split())  # whose lines fit 80 columns


def test_a_file(tmp_path, monkeypatch):
    file = tmp_path / "machine.json"
    file.write_text('{"l2": 8388608, "l3": 0}')
    monkeypatch.setenv(machine.VARIABLE, str(file))
    assert machine._stated() == (Machine(machine.detected().l1, 8 << 20, 0), None)
    monkeypatch.setenv(machine.VARIABLE, str(tmp_path / "none"))
    assert "is not used" in machine._stated()[1]
    monkeypatch.delenv(machine.VARIABLE)
    assert machine._stated() == (None, None)


# Products of several paths, and what a compiled function reads of the record.
CHILD = """
import hashlib, json
import numpy as np, nbkernels as nb
from numba import types
from nbkernels.cpu.runtime import machine
from nbkernels.jit.compile.cache import entry

def read():
    return machine.l2()

bits, paths = hashlib.sha256(), []
for m, n, k in ((4, 4, 4), (300, 310, 320), (1, 500, 600), (20, 20, 3000), (400, 400, 3), (100, 100, 100),
                (500, 500, 60)):
    a, b = (np.random.default_rng(3).standard_normal(shape) for shape in ((m, k), (k, n)))
    bits.update(nb.mm(a, b).tobytes())
    paths.append(nb.explain(nb.mm, a, b).path)
print(json.dumps([entry(read, "int64()", "test_machine_l2")(), bits.hexdigest(), paths]))
"""


def test_a_kernel_on_disk_serves_machines_with_other_caches_and_costs(tmp_path):
    seen, found = [], []
    for l2, costs in ((1 << 20, "avx2"), (1 << 16, "avx512")):
        file = tmp_path / "machine.json"
        file.write_text(json.dumps({"l1": 32768, "l2": l2, "l3": 0, "costs": costs}))
        env = {machine.VARIABLE: str(file), "NBKERNELS_TUNED": "0", "NUMBA_NUM_THREADS": "2"}
        found.append(json.loads(python(CHILD, **env)))
        assert found[-1][0] == l2
        names = "gemm_small-*.nbc", "gemm_choice-*.nbc", "gemm_block_*.nbc", "test_machine_l2*.nbc"
        seen.append({path: path.stat().st_mtime_ns for name in names for path in directory().glob(name)})
    assert found[0][1] == found[1][1]
    assert found[0][2] != found[1][2]
    assert seen[0].items() <= seen[1].items()  # others add to the directory meanwhile
    assert len(seen[0]) >= 4
