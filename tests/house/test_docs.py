"""The documents are true: commands, tables, links, examples in README and in docstrings."""

import ast
import doctest
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nbkernels import first_calls

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def report():
    spec = importlib.util.spec_from_file_location("report", ROOT / "bench" / "report.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_docstrings():
    command = [sys.executable, "-W", "error", str(ROOT / "tests" / "house" / "run_doctests.py")]
    environment = os.environ | {first_calls.VARIABLE: "32"}  # as a reader runs them
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert int(re.search(r"(\d+) passed, 0 failed", result.stdout)[1]) >= 10


def test_report_docstrings(report):
    assert doctest.testmod(report).failed == 0


def test_readme_example():
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    example = doctest.DocTestParser().get_doctest(code, {}, "README", "README.md", 0)
    assert doctest.DocTestRunner().run(example) == (0, 5)


def test_readme_starts_with_a_sentence_an_example_and_two_commands():
    blocks = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
    assert blocks[0][0] == "python"
    assert len(blocks[0][1].splitlines()) == 8
    commands = [line for line in README.splitlines() if line.startswith("python3 -m venv")]
    assert blocks[1] == ("sh", "".join(f"{line}\n" for line in commands))
    assert len(commands) == 2
    assert commands[0].endswith("-m nbkernels demo")
    assert "-m pytest" in commands[1]


def test_ci_runs_readmes_commands():
    """It takes them from README, so a newcomer's lines are the ones that CI proves."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "grep '^python3 -m venv' README.md" in script
    for i in range(2):
        assert f'bash -c "${{commands[{i}]}}"' in script


def test_tables_are_the_committed_results(report):
    assert report.MARKERS.findall(README)
    for document in report.DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        assert report.rewrite(text, ROOT / "bench" / "results") == text, document.name


def test_the_table_of_numpys_loops_has_those_that_are_replaced(report, monkeypatch):
    """Every loop that use_in_numpy takes on such vectors by default, and with floats=True, and no other."""
    from nbkernels.in_numpy import which
    from nbkernels.jit.ir import vector

    monkeypatch.setattr(vector, "width_bits", lambda: 256)
    monkeypatch.setattr(which, "measured", which.measured.__wrapped__)
    monkeypatch.setattr(which, "as_ours", lambda ufunc: True)
    there = {loop.ufunc.__name__ for loop in which.every()}
    told = {name: cells for name, cells in report.replaced("256").items() if name in there}
    for wish, columns in ((which.Wish(), 2), (which.Wish(floats=True), 3)):
        found = {(loop.ufunc.__name__, loop.dtypes[0]): least for loop, least in which.chosen.__wrapped__(wish).items()}
        wanted = {(name, dtype): figures[0] for name, cells in told.items() for cell in cells[:columns]
                  for dtype, figures in cell.items()}  # fmt: skip
        assert {key: least for key, least in found.items() if key not in which.STACKS} == wanted
        assert len(wanted) > 100


def test_numpys_loops_are_chosen_from_the_committed_results(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import bench_numpy_loops

    results = json.loads((ROOT / "bench" / "results" / "numpy_loops-avx2.json").read_text(encoding="utf-8"))
    kept = json.loads((ROOT / "nbkernels" / "in_numpy" / "measured.json").read_text(encoding="utf-8"))
    assert bench_numpy_loops.table(results["rows"]) == kept["256"]


def test_a_stale_table_is_noticed(report, tmp_path):
    row = {"bench": "addmm", "shape": [8, 8, 8], "dtype": "float32", "threads": 1, "layout": "NN", "ours_s": 1e-6}
    row |= {"peers": {"NumPy": 2e-6}, "gflops": 1.024, "peak_share": 0.5}
    meta = {"cpu": "some CPU", "cores": 2, "versions": {"numba": "1.2"}, "date": "2026-01-02"}
    worse = row | {"layout": "TT", "peers": {"NumPy": 1.5e-6, "torch": 1e-6}, "peak_share": 0.625}
    other = row | {"bench": "mm", "shape": [9, 9, 9]}
    (tmp_path / "x.json").write_text(report.json.dumps({"meta": meta, "rows": [row, worse, other]}))
    text = "before\n<!-- table x addmm -->\nold\n<!-- end -->\nafter\n"
    new = report.rewrite(text, tmp_path)
    assert "| addmm | float32, 1 thread |\n| ---: | ---: |\n| 8 | 1.50 (50%) |\n\n" in new
    assert "Time of NumPy over ours" in new
    assert "layouts NN, TT" in new
    assert "some CPU, 2 cores, numba 1.2" in new
    assert "old" not in new
    assert new.startswith("before\n")
    assert new.endswith("<!-- end -->\nafter\n")
    assert report.rewrite(new, tmp_path) == new
    of_all = report.rewrite("<!-- table x -->\n<!-- end -->\n", tmp_path)
    assert "| addmm | 1.41 (1.00) of 2 |\n| mm | 2.00 (2.00) of 1 |\n| all | 1.59 (1.00) of 3 |\n\n" in of_all
    assert "of all 3 rows 1.59, 3 of them at least 1" in of_all
    by_layout = report.rewrite("<!-- table x layout -->\n<!-- end -->\n", tmp_path)
    assert "| NN | 2.00 (2.00) of 2 |\n| TT | 1.00 (1.00) of 1 |\n| all | 1.59 (1.00) of 3 |\n\n" in by_layout
    rows = [row, row | {"shape": [64, 64, 64], "peers": {"NumPy": 2e-5, "torch": 1e-6}}, row | {"dtype": "int8"}]
    (tmp_path / "y.json").write_text(report.json.dumps({"meta": meta, "rows": rows}))
    by_dtype = report.rewrite("<!-- table y dtype -->\n<!-- end -->\n", tmp_path)
    assert "|  | n = 8 | n = 64 |\n" in by_dtype
    assert "| float32 | 2.00 / - (50%) | 20 / 1.00 (50%) |\n| int8 | 2.00 / - (50%) |  |\n\n" in by_dtype


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_exist(document):
    text = re.sub(r"`[^`\n]+`", "", document.read_text(encoding="utf-8"))  # code may look like a link
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_documents_name_exist(document):
    """`nbkernels/cpu/gemm/gemm.py` and its like, in backquotes."""
    for name in re.findall(r"`([\w./]+/[\w./]+\.(?:py|md|json|toml))`", document.read_text(encoding="utf-8")):
        assert (ROOT / name).exists(), f"{document.name} names {name}"


ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
MODULES = sorted([*(ROOT / "nbkernels").rglob("*.py"), *(ROOT / "dispatch").rglob("*.py")])


def test_architecture_is_short():
    """Files are described by their docstrings. Long lines are no way round the bound."""
    lines = ARCHITECTURE.splitlines()
    assert len(lines) <= 250
    assert max(map(len, lines)) <= 150


def test_architecture_names_every_room_and_none_that_is_gone():
    rooms = ARCHITECTURE[ARCHITECTURE.index("## Rooms") : ARCHITECTURE.index("## Who may import whom")]
    named = re.findall(r"^([a-z_/]+)/ +\S", rooms, re.MULTILINE)
    assert len(named) == len(set(named))
    packages = {path.parent.relative_to(ROOT).as_posix() for path in MODULES}
    assert set(named) == packages | {"tests", "bench", "docs", "examples"}
    assert all((ROOT / name).is_dir() for name in named)


def test_architecture_names_no_module_that_is_gone():
    known = {path.name for path in ROOT.rglob("*.py") if ".venv" not in path.parts}
    named = set(re.findall(r"\b\w+\.py\b", ARCHITECTURE))
    assert len(named) > 20
    assert not named - known


def test_architecture_has_the_import_rules_that_are_enforced():
    """Its table against RULES of test_layers.py: the same rooms, and for each the same names."""
    spec = importlib.util.spec_from_file_location("layers", next((ROOT / "tests").rglob("test_layers.py")))
    layers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(layers)
    words = {"numpy": "NumPy", "numba": "Numba", "numba !cuda": "Numba"}
    section = ARCHITECTURE[ARCHITECTURE.index("## Who may import whom") : ARCHITECTURE.index("## The way of a call")]
    told = {}
    for rooms, names in re.findall(r"^\| ([\w, `]+) \| ([^|;]+?)(?:;[^|]*)? \|$", section, re.MULTILINE):
        for room in rooms.replace("`", "").split(", "):
            assert room not in told, f"two rows for {room}"
            told[room] = set(names.split(", ")) - {"nothing"}
    assert {told.pop(room) == {"anything"} for room in (*layers.COMMAND_LINE, "tests", "bench")} == {True}
    told.pop("room"), told.pop("__init__")
    assert set(told) == set(layers.RULES) - {"__init__"}
    for room, rules in layers.RULES.items():
        planning = "the planning rooms" in told.get(room, ())
        wanted = {words.get(rule, rule.removeprefix("nbkernels.")) for rule in rules}
        found = told.get(room, wanted) - {"the planning rooms"}
        if planning:
            found |= {words.get(rule, rule.removeprefix("nbkernels.")) for rule in layers.PLANNING}
        assert found == wanted, room


def first_line(source):
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def is_summary(line):
    """A sentence that ends on this line, of three words or more, which names its subject."""
    opening = re.match(r"(The same|Those|Its?|They|This|That|What|Whether|Which|How|Where|Who)\b", line)
    return bool(re.search(r"[.?!](\s|$)", line)) and len(line.split()) >= 3 and not opening


def test_modules_begin_with_a_sentence_about_them():
    lines = {path.relative_to(ROOT).as_posix(): first_line(path.read_text(encoding="utf-8")) for path in MODULES}
    assert len(lines) > 300
    assert not {path: line for path, line in lines.items() if not is_summary(line)}


@pytest.mark.parametrize(
    "source",
    ["import os", '""""""', '"""Matrix products."""', '"""The same of vectors, with threads."""', '"""What runs it."""']
    + ['"""Products of matrices, of vectors and of\nbatches."""', '"""python -m nbkernels"""'],
)
def test_what_is_no_such_sentence(source):
    assert not is_summary(first_line(source))


def test_contributings_code_is_the_librarys():
    """Each block of its operation stands so in the file that the step names."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    steps = re.findall(r"`(nbkernels/[\w/]+\.py)`(?:(?!```|`nbkernels/).)*```python\n(.*?)```", text, re.DOTALL)
    rooms = "operations", "scalar/reals", "autograd/slopes"
    assert [file for file, _ in steps] == [f"nbkernels/{room}.py" for room in rooms]
    for file, block in steps:
        lines = [line.strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]
        wanted = [line.strip() for line in block.strip().splitlines()]
        assert any(lines[i : i + len(wanted)] == wanted for i in range(len(lines))), f"{file} lacks {wanted}"


def test_what_contributing_names_is_there():
    """Functions by their modules, and the options of the benches' commands."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for name in re.findall(r"`(nbkernels(?:\.\w+)+)`", text):
        module, _, function = name.rpartition(".")
        assert hasattr(importlib.import_module(module), function), name
    for script, words in re.findall(r"`python\s+(bench/\w+\.py)([^`]*)`", text):
        known = (ROOT / script).read_text(encoding="utf-8")
        assert all(f'"{option}"' in known for option in re.findall(r"--\w+", words)), (script, words)


def test_extending_runs():
    """Its examples, in order, in one process of their own; then what its last paragraph says."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "extending.md").read_text(encoding="utf-8"), re.DOTALL)
    backend = next(block for block in blocks if "class Logged" in block)
    assert sum(bool(line) for line in backend.splitlines()) < 40
    checks = """
found = nb.maximum(Logged([1, 5]), Logged([3, 4]))
assert type(found) is Logged and found.array.tolist() == [3, 5] and log == ["maximum"]
x = Logged(np.arange(6.0).reshape(2, 3))
w = Logged(np.arange(12.0).reshape(4, 3))
assert nb.add_(x, Logged(np.ones(3))) is x and x.array[0, 0] == 1
del log[:]
assert np.array_equal(nb.linear(x, w).array, x.array @ w.array.T) and log == ["mm"]
assert np.array_equal(nb.mv(w, Logged(np.ones(3))).array, w.array.sum(1)) and log == ["mm"] * 2
try: nb.add(x, np.ones((2, 3)))
except ValueError as error: assert "self on LOG:0, other on CPU" in str(error)
else: raise AssertionError
assert "LOG" in str(nb.mm.table()) and "fallback" in str(nb.add.table())
f = nb.elementwise(lambda x, y: x * y + 1 if x < 2 else y)
out = Logged(np.zeros((2, 3)))
assert f(x, 3.0, out=out, where=Logged(np.ones((2, 3), bool))) is out
assert out.array.tolist() == np.where(x.array < 2, x.array * 3 + 1, 3).tolist()
found = nb.fuse(lambda x, y: (x + y, x - y), x, x)
assert type(found[0]) is Logged and not found[1].array.any()
nb.multiply.at(x, [0, 0], 2.0)
assert x.array[:, 0].tolist() == [4, 4]
product = lambda out, self, a, b, beta, alpha, *_: np.copyto(out, beta * self + alpha * (a @ b))
nb.register("addmm", "LOG", product)
assert type(nb.addmm_activation(w, w, Logged(np.ones((3, 3))), activation="relu")) is Logged
"""
    # Every element-wise op of the table, with every keyword: what NumPy gives for the same, or an error.
    checks += """
from nbkernels.ops import LIBRARY
mask, raised, equal = np.array([True, False, True]), 0, 0
for op in [each for each in LIBRARY if each.elementwise]:
    for dtype in ("f8", "i4", "?"):
        x, y = np.array([3, 4, 1], dtype), np.array([2, 1, 3], dtype)
        for keywords in ({}, dict(alpha=3), dict(dtype="f4"), dict(casting="no"), dict(order="F"), dict(out=(3, "f4")),
                         dict(out=(3, "c8")), dict(out=(3, "c16"), where=mask), dict(out=((2, 3),))):
            def call(function, wrap, alpha=None, **given):
                given = {k: wrap(np.zeros(*v) if k == "out" else v) for k, v in given.items()}
                if alpha and function is op.function: given["alpha"] = alpha
                found = function(wrap(x), wrap(y if function is op.function or not alpha else alpha * y), **given)
                return found.array if isinstance(found, Logged) else found
            try: found = call(op.function, lambda x: Logged(x) if isinstance(x, np.ndarray) else x, **keywords)
            except (TypeError, ValueError, NotImplementedError): raised += 1
            else:
                equal += 1
                wanted = call(getattr(np, op.schema.name), lambda x: x, **keywords)
                assert keywords.get("out") != ((2, 3),) and found.dtype == wanted.dtype, (op, dtype, keywords)
                assert np.array_equal(found, wanted), (op, dtype, keywords)
assert raised > 300 and equal > 100, (raised, equal)
"""
    code = "\n".join([*blocks, checks])
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("[2. 2. 2.] scaled(Tensor self, Scalar by) -> Tensor")
    assert "slow_mm" in result.stdout
