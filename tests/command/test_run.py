"""python -m nbkernels run: a program that nobody edits, as python runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import numpy as np

print(__name__, sys.argv[1:], sys.path[0] == {here!r})
a = np.arange(10_000, dtype="i4").reshape(100, 100)
print(int((a @ a).sum()), int(np.dot(a, a)[0, 0]))
if sys.argv[1:] == ["exit"]:
    sys.exit(7)
if sys.argv[1:] == ["fail"]:
    raise OSError("no such luck")
"""


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(here=str(tmp_path)))
    return file


def python(*arguments, cwd=None):
    root = str(Path(__file__).resolve().parents[2])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, cwd=cwd,
                          env=environment, timeout=300)  # fmt: skip


def run(*arguments, cwd=None):
    return python("-m", "nbkernels", "run", *arguments, cwd=cwd)


def test_a_script_runs_as_python_runs_it_and_the_report_says_where(program):
    plain, ours = python(program, "--report", "-x"), run("--report", "--functions", program, "--report", "-x")
    assert (ours.returncode, ours.stdout) == (0, plain.stdout)
    lines = ours.stderr.splitlines()
    assert any(line.split()[:5] == ["matmul", "int32", "1", "1,000,000", "nbkernels"] for line in lines)
    assert any(line.split()[:2] == ["dot", "int32"] and "nbkernels" in line for line in lines)
    assert lines[-1] == "products (matmul, vecdot, matvec, vecmat): 100% ran in nbkernels"


CALLS = """
import numpy as np
import nbkernels as nb

large, small, ours = np.ones((300, 300), "f4"), np.ones(3), nb.asarray(np.ones(100))
large @ large
for _ in range(7):
    small + small, np.multiply(small, 2), np.spacing(small)
ours + ours, ours + ours, np.spacing(ours)
np.exp(large)
"""


def test_the_report_says_why_in_eighty_columns(tmp_path):
    """Large floats are BLAS's, not small; what is small is one row; calls of asarray's arrays are counted."""
    (tmp_path / "calls.py").write_text(CALLS)
    for options in ((), ("--floats", "--functions")):
        lines = run("--report", *options, tmp_path / "calls.py").stderr.splitlines()
        assert max(map(len, lines)) <= 80
        rows = {tuple(line.split()[:2]): line for line in lines}
        reasons = {line[:3]: line[4:] for line in lines if line[:1] == "("}
        why = {key: reasons.get(line[-3:], "") for key, line in rows.items()}
        expected = "of floats stacks of small matrices alone run here" if options else "floats are not asked for"
        assert why["matmul", "float32"].startswith(expected)
        assert "float64" not in " ".join(map(" ".join, rows))  # 3 elements each
        others = next(line for line in lines if " others " in line)
        assert int(others.split()[2]) >= 3 * 7
        assert "each below 1,000" in others
        assert rows["add", "2"].split() == ["add", "2", "nbkernels"]
        assert why["spacing", "1"] == "nbkernels has no spacing"
        assert lines[-1] == "products (matmul, vecdot, matvec, vecmat): 0% ran in nbkernels"


def test_a_module_its_exit_and_its_failure(program):
    for argument, code in (("exit", 7), ("fail", 1)):
        plain = python("-m", "program", argument, cwd=program.parent)
        ours = run("-m", "program", argument, cwd=program.parent)
        assert (ours.returncode, ours.stdout) == (code, plain.stdout) == (plain.returncode, plain.stdout)
        last = plain.stderr.splitlines()[-3:]
        assert ours.stderr.splitlines()[-3:] == last
        assert "nbkernels" not in ours.stderr


def test_what_there_is_not(program):
    missing = run(program.parent / "none.py")
    assert missing.returncode == 2
    assert missing.stderr.startswith("run: there is no file")
    nothing = run()
    assert (nothing.returncode, nothing.stderr) == (2, "run: name a script, or -m and a module\n")
    absent = run("-m", "no_such_module_at_all")
    assert absent.returncode == 1
    assert "No module named" in absent.stderr
