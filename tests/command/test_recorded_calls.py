"""NBKERNELS_RECORD: after `warmup --from` what it wrote, the program compiles nothing."""

import json
import os
import shutil
import stat
import subprocess
import sys
import time

import numpy as np
import pytest

from nbkernels import first_calls
from nbkernels.calls import record
from nbkernels.calls.call import Call
from nbkernels.cli import main
from nbkernels.jit.disk import files
from tests.cases import EVERY
from tests.processes import python

# Prints what Numba compiled: functions by its events, and passes of its compiler, which also run for what has no event.
WATCHED = """
import collections
from numba.core import event
seen = collections.Counter()
class Listener(event.Listener):
    def on_start(self, what):
        data = what.data
        seen[what.kind, data["name"] if what.kind == "numba:run_pass" else str(data["dispatcher"])] += 1
    def on_end(self, what):
        pass
event.register("numba:compile", Listener())
event.register("numba:run_pass", Listener())
"""
PROGRAM = """
import ml_dtypes, numpy as np, nbkernels as nb
import recorded_module as mine
f = lambda *shape, dtype="f4": np.ones(shape, dtype)
x, readonly = f(5, 4), f(5, 4)
readonly.flags.writeable = False
class Mine(np.ndarray):
    pass
for turn in range(3):
    nb.add(x, x); nb.add(x, x[0]); nb.add_(x, 0.0); nb.add(x[::2, ::-1], x[::2, ::2][:, :1], alpha=2)
    nb.add(x[1:], x[:-1], out=f(4, 4)); nb.add(x[1:], x[:-1], out=x[:-1].copy())
    nb.multiply(readonly, 2, where=x > 0, out=f(5, 4)); nb.maximum(f(), f()); nb.maximum(f(0, 3), 1)
    nb.maximum(f(3, dtype=ml_dtypes.bfloat16), ml_dtypes.bfloat16(1)); nb.subtract(x.view(Mine), x)
    nb.add.reduce(x, axis=None, keepdims=True); nb.maximum.accumulate(x, axis=1); nb.add.at(x, [0, 0], 0)
    nb.subtract.outer(x[0], x[:, 0]); nb.sum_to(x, (5, 1)); nb.asarray(x) * 2
    nb.addmm(x[0], x.T, x, beta=0.5); nb.dot(x[0], x[0]); nb.linear(x, x)
    nb.mm(f(5, 4, dtype="f2"), f(4, 5, dtype="f2"), out_dtype="float32")
    nb.elementwise(mine.tripled)(x); nb.fuse(mine.tripled, x); mine.shifted(x, 1, out=f(5, 4))
    mine.softplus(x, 30); mine.looked_up(x); mine.capped(x[0], x.T, x, 2.0)
    nb.addmm_activation(x[0], x.T, x, activation="gelu")
    nb.vjp(lambda a: nb.mm(a, a.T), x)[1](f(5, 5))
    for w in (nb.quantize(f(6, 40)), nb.quantize(f(6, 40), 8, "int4", symmetric=False, scales="bfloat16")):
        nb.linear_q(f(3, 40), w, bias=f(6), activation="relu"); nb.linear_q(f(40, dtype="f2"), w, dynamic=True)
"""
if EVERY:  # it compiles long
    PROGRAM += "    nb.mv(x, x[0])\n"
MODULE = """
import math, nbkernels
def tripled(x):
    return x * 3
@nbkernels.elementwise
def softplus(x, limit):
    return x if x > limit else math.log1p(math.exp(x))
TABLE = (1.0, 2.0, 4.0)
@nbkernels.elementwise
def looked_up(x):
    return x * TABLE[int(x)]
@nbkernels.epilogue
def capped(v, limit):
    return min(v, limit)
@nbkernels.elementwise
def shifted(x, by):
    return x + by
"""
IN_NUMPY = """
import numpy as np, nbkernels as nb
f = lambda *shape, dtype: np.ones(shape, dtype)
with nb.use_in_numpy(), nb.watch() as log:
    for _ in range(2):
        f(64, 64, dtype="i4") @ f(64, 64, dtype="i4"); f(20, 300, dtype="f2") @ f(300, dtype="f2")
        np.add(f(1000, dtype="f2"), f(1000, dtype="f2")); np.fmod(f(1000, dtype="i1"), 3); np.sqrt(f(1000, dtype="f2"))
assert {call.name for call in log if call.where == "nbkernels"} == {
    "matmul int32", "matmul float16", "add float16", "fmod int8", "sqrt float16"}, log
with nb.use_in_numpy(floats=True, functions=True), nb.watch() as log:
    np.heaviside(f(1000, dtype="f4"), f(1000, dtype="f4")); f(1000, 8, 8, dtype="f4") @ f(1000, 8, 8, dtype="f4")
    np.ldexp(f(1000, dtype="f4"), f(1000, dtype="i4")); np.dot(f(100, 100, dtype="i8"), f(100, 100, dtype="i8"))
assert {"heaviside float32", "ldexp float32", "matmul float32"} <= {c.name for c in log if c.where == "nbkernels"}, log
"""
REPORT = """
made = [each for each in nb.specializations() if each.where == "compiled"]  # loops and micro-kernels, too
print(sum(seen.values()) + len(made), seen, made)
"""


def run(code, tmp_path, *, check=True, **env):
    environment = os.environ | {"PYTHONPATH": str(tmp_path)} | env
    line = code if isinstance(code, list) else ["-c", code]
    result = subprocess.run([sys.executable, *line], env=environment, capture_output=True, text=True, timeout=600)
    assert not check or result.returncode == 0, result.stderr[-3000:]
    return result


def test_after_warmup_the_program_compiles_nothing(monkeypatch, tmp_path):
    """Strange layouts, 0-d, empty, read-only, bfloat16, negative strides, subclasses, out, where, in place, gradients,
    functions of modules: recorded in one process, compiled in another. Of a copy of the cache what that process did
    not use is then removed."""
    (tmp_path / "recorded_module.py").write_text(MODULE)
    file, cache = tmp_path / "calls.jsonl", str(tmp_path / "cache")
    monkeypatch.setenv(first_calls.VARIABLE, "32")  # calls that compile nothing of theirs are recorded, too
    assert not run(PROGRAM, tmp_path, NBKERNELS_RECORD=str(file)).stderr
    assert not [line for line in file.read_text().splitlines() if "unfit" in json.loads(line)]
    before_yesterday = time.time() - 2 * files.DAY
    for kept in shutil.copytree(files.directory(), tmp_path / "cache" / files.directory().name).glob("*.nbc"):
        os.utime(kept, (before_yesterday, before_yesterday))
    warm = ["-W", "error", "-m", "nbkernels", "warmup", "--from", str(file), "--jobs", "1"]  # two compile much twice
    result = run(warm, tmp_path, NBKERNELS_CACHE_DIR=cache)
    assert f"{len(file.read_text().splitlines())} calls in " in result.stdout
    for kept in (tmp_path / "cache").rglob("*.nbc"):
        if kept.stat().st_mtime < before_yesterday + 1:
            kept.unlink()
    before = sorted((tmp_path / "cache").rglob("*"))
    assert run(WATCHED + PROGRAM + REPORT, tmp_path, NBKERNELS_CACHE_DIR=cache).stdout.startswith("0 ")
    assert sorted((tmp_path / "cache").rglob("*")) == before


@pytest.mark.release
def test_after_warmup_a_program_in_numpy_compiles_nothing(tmp_path):
    """Loops of ufuncs that ran here: products by panels, by rows and in stacks, element-wise ones of one and two."""
    file, cache = tmp_path / "calls.jsonl", str(tmp_path / "cache")
    assert not run(IN_NUMPY, tmp_path, NBKERNELS_RECORD=str(file)).stderr
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert not [line for line in lines if "unfit" in line]
    assert len([line for line in lines if line["call"] == "use_in_numpy" and line["args"]]) == 8
    warm = ["-W", "error", "-m", "nbkernels", "warmup", "--from", str(file), "--jobs", "1"]
    run(warm, tmp_path, NBKERNELS_CACHE_DIR=cache)
    before = sorted((tmp_path / "cache").rglob("*"))
    assert run(WATCHED + IN_NUMPY + REPORT, tmp_path, NBKERNELS_CACHE_DIR=cache).stdout.startswith("0 ")
    assert sorted((tmp_path / "cache").rglob("*")) == before


@pytest.mark.parametrize("ufunc", ["matmul", "sin", "no_such", 3, "int32"])
def test_a_recorded_loop_that_there_is_not_is_named(tmp_path, ufunc, capsys):
    file = tmp_path / "calls.jsonl"
    file.write_text(Call.of("use_in_numpy", ufunc, np.ones(1, "c16")).line())
    assert main(["warmup", "--from", str(file), "--jobs", "1"]) == 1
    assert "use_in_numpy has no kernel for" in capsys.readouterr().err


def test_the_watch_sees_what_is_compiled(tmp_path):
    """Else the test above could not fail: one call more than the record has."""
    code = WATCHED + "import numpy as np, nbkernels as nb; nb.add.at(np.ones(3), 0, 1)" + REPORT
    assert not run(code, tmp_path, NBKERNELS_CACHE_DIR=str(tmp_path / "empty")).stdout.startswith("0 ")


def test_a_call_that_is_loaded_is_recorded_once(tmp_path):
    """Where its kernels are on disk, too; and nothing more by the next process."""
    file, code = (
        tmp_path / "calls.jsonl",
        "import numpy as np, nbkernels as nb; x = np.ones((3, 3), 'f'); nb.mm(x, x + 1)",
    )
    for _ in range(2):
        run(code, tmp_path, NBKERNELS_RECORD=str(file))
        (line,) = file.read_text().splitlines()
        assert str(Call.parse(line)) == "mm(float32 3x3, float32 3x3)"


def test_what_cannot_be_recorded_is_named(tmp_path):
    file = tmp_path / "calls.jsonl"
    run(
        "import numpy as np, nbkernels as nb; nb.fuse(lambda a: a * 7, np.ones(3))",
        tmp_path,
        NBKERNELS_RECORD=str(file),
    )
    said = []
    assert not list(record.read(file, said.append))
    assert len(said) == 1
    assert "the function <lambda> (<string>:1) is of a script" in said[0]


def test_processes_write_into_one_file(tmp_path):
    """Whole lines, each process's own among them. Who looks while another writes may take its line for a torn one, and
    ends it: that gives an empty line."""
    file = tmp_path / "calls.jsonl"
    code = "import sys; from nbkernels.calls.record import Record; r = Record(sys.argv[1])\n"
    code += "for n in range(300): r.add(sys.argv[2] + '-' + str(n) + '-' + 'x' * 3000)"
    command = [sys.executable, "-c", code, str(file)]
    for process in [subprocess.Popen([*command, name]) for name in "abc"]:
        assert process.wait(timeout=120) == 0
    wanted = {f"{name}-{n}-{'x' * 3000}" for name in "abc" for n in range(300)}
    lines = [line for line in file.read_text().splitlines() if line]
    assert len(lines) == 900
    assert set(lines) == wanted


def test_a_torn_line_is_ended_first(tmp_path):
    file = tmp_path / "calls.jsonl"
    file.write_text('{"nbkernels": 1, "ca')
    record.Record(file).add("whole")
    assert file.read_text().splitlines() == ['{"nbkernels": 1, "ca', "whole"]
    said = []
    assert not list(record.read(file, said.append))
    assert said == [f"{file}:1: no JSON", f"{file}:2: no JSON"]


UNWRITABLE = ["a directory", "nowhere", *["full"] * os.path.exists("/dev/full")]
UNWRITABLE += ["read-only"] * (hasattr(os, "geteuid") and os.geteuid() != 0)  # root writes them


@pytest.mark.parametrize("kind", UNWRITABLE)
def test_a_file_that_cannot_be_written(tmp_path, kind):
    """One line says so, and the program goes on."""
    file = tmp_path / "calls.jsonl"
    if kind == "read-only":
        file.write_text("")
        file.chmod(stat.S_IRUSR)
    elif kind == "a directory":
        file.mkdir()
    elif kind == "nowhere":
        file = file / "below"
    else:
        file = "/dev/full"
    code = "import numpy as np, nbkernels as nb; x = np.ones((3, 3), 'f'); nb.mm(x, x); print(nb.add(x, x[0]).sum())"
    result = run(code, tmp_path, NBKERNELS_RECORD=str(file))
    assert result.stdout == "18.0\n"
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"nbkernels: no longer recorded in {file}: ")


def test_a_record_costs_nothing_where_it_is_off(monkeypatch):
    from nbkernels.jit.compile import cache

    monkeypatch.delenv("NBKERNELS_RECORD", raising=False)
    assert cache._recorder.__wrapped__()() is None
    code = "import numpy as np, nbkernels as nb, sys; nb.add(np.ones(3), 1)"
    code += "; assert 'nbkernels.calls.record' not in sys.modules"
    python(code)
