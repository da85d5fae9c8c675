"""The types of the public names: what mypy and pyright find in a user's program."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import nbkernels
from nbkernels.commands import stubs

ROOT = Path(__file__).parents[2]
HEAD = """\
import numpy as np
import nbkernels as nb
from nbkernels import dispatch

a, b, i = np.ones((3, 4)), np.ones((4, 5), np.float32), np.arange(12).reshape(3, 4)
"""
MISTAKES = """\
nb.mm(a)
nb.mm(a, b, alpha=2)
nb.adddmm(a, a, b)
nb.add(a, "x")
nb.addmm(a, a, b, tiles="64")
nb.mm([[1.0]], b)
nb.mm(a, b).reshaped(3)
nb.add.reduse(a)
nb.add(a, a, out=3)
nb.add_(2.0, a)
nb.sum_to(a, "3")
nb.asarray(a, dtyp=3)
number: int = nb.linear(a, b.T)
nb.mm.reduce(a)
nb.elementwise(lambda x: x + 1)(a, ot=a)
nb.elementwise(3)
nb.add.reduce(a, ax=1)
nb.add.reduce(a, keepdims=True).reshaped(3)
dispatch.Librry("mine")
dispatch.parse(text=3, more=1)
"""
RIGHT = """\
nb.mm(a, a.T, out=np.empty((3, 3))).sum()
nb.add(a, i).T
nb.add(np.float32(2), 2, alpha=0.5)
nb.add(2, a, alpha=0.5, where=a > 0)
nb.add_(a, i).mean()
nb.add.reduce(a, axis=(0, 1), keepdims=True)
nb.add.at(a, 0, 1)
nb.addmm(a[0], i, i.T, out_dtype="float32", tiles=(64, 64))
nb.mm(nb.meta((3, 4), "f4"), nb.meta((4, 3), np.float32)).shape
print(nb.addmm.table(), nb.addmm.__name__, nb.__version__)
nb.linear(a, b.T, None).shape
half: float = nb.dot(a[0], a[0]) / 2
nb.elementwise(lambda x, y: x + y)(a, a)
with nb.watch() as log:
    nb.asarray(a) @ a.T
print(log, nb.explain(nb.add, a, a).path)
nb.sum_to(a, a.shape[1:])
nb.add.reduce(a, axis=1, keepdims=True).T
nb.add.reduce(a, out=np.empty(4)).mean()
scaled = nb.elementwise(dtypes="f4")(lambda x: 2 * x)
print(scaled(a, out=a).T, scaled.__name__, dispatch.parse("f(Tensor self) -> Tensor"))
"""
ON_TENSORS = """\
import torch
import nbkernels.torch as nt

t = torch.ones(3, 3)
nt.mm(t, t, out_dtype=torch.float32).backward()
nt.round_(nt.add(t, 2, alpha=0.5), 1).T
nt.maximum.accumulate(nt.add.reduce(t, dim=(0,), keepdim=True), dim=1).backward()
nt.mm(t)
nt.zzz(t)
nt.add(t, "x")
nt.mm(t, t, out=3)
nt.add.reduce(t, ax=1)
nt.mm.reduce(t)
"""


def mypy(files, home):
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--follow-imports=silent",
        "--ignore-missing-imports",
        "--no-incremental",
        "--output=json",
        *files,
    ]
    result = subprocess.run(command, capture_output=True, text=True, cwd=home, env=os.environ | {"MYPYPATH": str(ROOT)})
    assert result.returncode in (0, 1), result.stderr
    found = map(json.loads, result.stdout.splitlines())
    return [(Path(each["file"]).name, each["line"], each["message"]) for each in found if each["severity"] == "error"]


def pyright(files, home):
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(ROOT)], "reportMissingImports": "none"}
    (home / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, *files]
    result = subprocess.run(command, capture_output=True, text=True, cwd=home)
    assert result.returncode in (0, 1), result.stderr
    found = json.loads(result.stdout)["generalDiagnostics"]
    errors = [each for each in found if each["severity"] == "error"]
    return [(Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["message"]) for each in errors]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A project that finds the clone by its path, as `pip install -e` gives it (tests/house/test_packaging.py)."""
    return tmp_path_factory.mktemp("types")


@pytest.mark.parametrize(("module", "checker"), [("mypy", mypy), ("basedpyright", pyright)])
def test_mistakes_are_found_and_nothing_else(module, checker, tmp_path):
    """In one run, as a checker reads NumPy and torch anew in each; the project finds the clone by its path, as
    `pip install -e` gives it (tests/house/test_packaging.py)."""
    if not (find_spec(module) and find_spec("torch")):
        pytest.skip(f"{module} or torch is not installed")
    (tmp_path / "mistakes.py").write_text(HEAD + MISTAKES)
    (tmp_path / "right.py").write_text(HEAD + RIGHT)
    (tmp_path / "tensors.py").write_text(ON_TENSORS)
    # numba.cuda's annotations are not those of kernels: cuda.blockIdx.x is a property, kernel[blocks] None
    examples = sorted(str(path) for path in (ROOT / "examples").glob("*.py") if "_on_cuda" not in path.stem)
    found = checker(["mistakes.py", "right.py", "tensors.py", *examples], tmp_path)
    lines = {file: sorted({line for name, line, _ in found if name == file}) for file, _, _ in found}
    first = HEAD.count("\n") + 1
    assert lines == {
        "mistakes.py": [*range(first, first + MISTAKES.count("\n"))],
        "tensors.py": [8, 9, 10, 11, 12, 13],
    }


@pytest.mark.parametrize(
    ("room", "file"),
    [("nbkernels", "nbkernels"), ("torch", "nbkernels/torch"), ("dispatch", "dispatch")],
)
def test_the_stubs_are_those_of_the_table(room, file):
    written = (ROOT / file / "__init__.pyi").read_text(encoding="utf-8")
    assert written == stubs.PAGES[room](), f"python -m nbkernels stubs --of {room} {file}/__init__.pyi"
    assert (ROOT / "nbkernels" / "py.typed").exists()


def test_the_stubs_name_what_is_public():
    text = stubs.page()
    missing = [name for name in nbkernels.__all__ if not re.search(rf"\b{name}\b( as {name}\b|: |\()", text)]
    assert missing == []
