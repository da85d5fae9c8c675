"""The import rules of ARCHITECTURE.md, read from the syntax trees, and that importing stays light."""

import ast
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STDLIB = set(sys.stdlib_module_names)
COMMAND_LINE = {"cli", "commands", "calls", "benches", "tuning", "plots"}  # talk to a person

# room: modules that a file there may import besides the standard library and its own room, at any depth of the code.
# A name allows what is below it: "numba" allows "numba.core". "numba !cuda" allows all of numba but numba.cuda.
FUNCTIONS = "nbkernels.scalar", "nbkernels.elementary"
PLANNING = (
    *("numpy", "nbkernels.strides", "nbkernels.dtypes", "nbkernels.operations", "nbkernels.problem"),
    *("nbkernels.rounding", "nbkernels.winners"),
    *FUNCTIONS,
)
RULES = {
    "dispatch": (),
    "operations": (),
    "meta": ("numpy", "nbkernels.dtypes"),
    "binary": ("numpy", "nbkernels.dtypes", "nbkernels.meta", "nbkernels.operations", "nbkernels.strides"),
    "unary": ("nbkernels.binary", "nbkernels.operations"),
    "folds": ("numpy", "nbkernels.binary", "nbkernels.dtypes", "nbkernels.operations", "nbkernels.strides"),
    "methods": ("nbkernels.dispatch", "nbkernels.folds"),
    "problem": ("numpy",),
    "strides": ("numpy",),
    "rounding": ("numpy", "nbkernels.dtypes"),
    "dtypes": ("numpy", "nbkernels.operations"),
    "scalar": ("numpy", "nbkernels.elementary"),
    "elementary": ("numpy",),
    "tune": ("nbkernels.first_calls", "nbkernels.tuning"),
    "first_calls": ("numpy", "nbkernels.background", "nbkernels.dispatch", "nbkernels.dtypes", "nbkernels.operations"),
    "background": ("numpy", "nbkernels.shield"),
    "store": (),
    "winners": ("nbkernels.jit", "nbkernels.problem", "nbkernels.store"),
    "data": ("numpy",),
    "jit": (
        "numpy",
        "numba !cuda",
        "llvmlite",
        "platformdirs",
        "nbkernels.background",
        "nbkernels.first_calls",
        "nbkernels.code_origins",
        "nbkernels.shield",
        *FUNCTIONS,
    ),
    "cpu": (
        *PLANNING,
        "llvmlite",
        "nbkernels.background",
        "nbkernels.jit",
        "nbkernels.modes",
        "nbkernels.quantized.layout",
        "nbkernels.shield",
        "nbkernels.threads",
    ),
    "cuda": (
        *PLANNING,
        "numba",
        "llvmlite",
        "cuda",
        "nbkernels.dispatch",
        "nbkernels.jit",
        "nbkernels.modes",
        "nbkernels.code_origins",
        "nbkernels.shield",
    ),
    "modes": ("nbkernels.meta", "nbkernels.shield", "nbkernels.cpu"),
    "epilogues": (
        "numpy",
        "nbkernels.elementary",
        "nbkernels.dispatch",
        "nbkernels.fusion",
        "nbkernels.meta",
        "nbkernels.ops",
        "nbkernels.pickled",
    ),
    "autograd": (
        "numpy",
        "torch",
        "nbkernels.dispatch",
        "nbkernels.dtypes",
        "nbkernels.elementary",
        "nbkernels.epilogues",
        "nbkernels.fusion",
        "nbkernels.tensor_calls",
        "nbkernels.operations",
        "nbkernels.ops",
        "nbkernels.scalar",
    ),
    "products": ("nbkernels.meta", "nbkernels.strides"),
    "array_api": ("numpy", "nbkernels.array", "nbkernels.standard"),
    "standard": (
        "numpy",
        "nbkernels.array",
        "nbkernels.contractions",
        "nbkernels.dispatch",
        "nbkernels.dtypes",
        "nbkernels.folds",
        "nbkernels.methods",
        "nbkernels.numpy_functions",
        "nbkernels.ops",
    ),
    "array": (
        "numpy",
        "nbkernels.array_api",
        "nbkernels.dispatch",
        "nbkernels.dtypes",
        "nbkernels.numpy_functions",
        "nbkernels.operations",
        "nbkernels.ops",
        "nbkernels.watch",
    ),
    "contractions": ("numpy", "nbkernels.dtypes", "nbkernels.ops"),
    "numpy_functions": ("numpy", "nbkernels.contractions", "nbkernels.fusion", "nbkernels.ops"),
    "watch": ("nbkernels.shield",),
    "shield": (),
    "threads": ("nbkernels.dispatch", "nbkernels.shield", "nbkernels.cpu"),
    "tensor_calls": (
        "numpy",
        "nbkernels.background",
        "nbkernels.dispatch",
        "nbkernels.first_calls",
        "nbkernels.threads",
    ),
    "torch": (
        "numpy",
        "torch",
        "nbkernels.dispatch",
        "nbkernels.folds",
        "nbkernels.methods",
        "nbkernels.autograd",
        "nbkernels.tensor_calls",
        "nbkernels.operations",
        "nbkernels.ops",
    ),
    "dask": (
        "numpy",
        "dask",
        "distributed",
        "nbkernels.calls",
        "nbkernels.commands",
        "nbkernels.dispatch",
        "nbkernels.dtypes",
        "nbkernels.elementary",
        "nbkernels.epilogues",
        "nbkernels.fusion",
        "nbkernels.in_numpy",
        "nbkernels.numpy_functions",
        "nbkernels.ops",
        "nbkernels.shield",
        "nbkernels.threads",
    ),
    "in_numpy": (
        "numpy",
        "tabulate",
        "nbkernels.cpu",
        "nbkernels.dtypes",
        "nbkernels.jit",
        "nbkernels.numpy_functions",
        "nbkernels.operations",
        "nbkernels.scalar",
        "nbkernels.shield",
        "nbkernels.watch",
    ),
    "code_origins": ("tabulate",),
    "frozen": ("numpy", "nbkernels.dtypes", "nbkernels.elementary"),
    "pickled": ("numba.cloudpickle",),
    "jitted": (
        *PLANNING,
        "numba !cuda",
        "llvmlite",
        "nbkernels.jit",
        "nbkernels.cpu",
        "nbkernels.ops",
        "nbkernels.binary",
        "nbkernels.extension",
        "nbkernels.folds",
        "nbkernels.meta",
        "nbkernels.products",
    ),
    "extension": ("numba !cuda", "nbkernels.jit.compile.numba_internals", "nbkernels.ops"),
    "composites": (
        "numpy",
        "nbkernels.dispatch",
        "nbkernels.dtypes",
        "nbkernels.epilogues",
        "nbkernels.ops",
        "nbkernels.strides",
    ),
    "ops": (
        "nbkernels.dispatch",
        "nbkernels.binary",
        "nbkernels.folds",
        "nbkernels.methods",
        "nbkernels.meta",
        "nbkernels.operations",
        "nbkernels.products",
        "nbkernels.unary",
    ),
    "fusion": (
        "numpy",
        "nbkernels.dispatch",
        "nbkernels.dtypes",
        "nbkernels.frozen",
        "nbkernels.ops",
        "nbkernels.pickled",
        "nbkernels.strides",
    ),
    "packing": ("numpy", "nbkernels.cpu", "nbkernels.dispatch"),
    "quantized": ("numpy", "ml_dtypes", "nbkernels.cpu", "nbkernels.dispatch", "nbkernels.epilogues"),
    "explain": ("tabulate", "nbkernels.dispatch"),
    "__init__": (
        "nbkernels.array",
        "nbkernels.epilogues",
        "nbkernels.explain",
        "nbkernels.fusion",
        "nbkernels.in_numpy",
        "nbkernels.operations",
        "nbkernels.ops",
        "nbkernels.meta",
        "nbkernels.modes",
        "nbkernels.dispatch",
        "nbkernels.code_origins",
        "nbkernels.packing",
        "nbkernels.quantized",
        "nbkernels.autograd",
        "nbkernels.standard",
        "nbkernels.threads",
        "nbkernels.tune",
        "nbkernels.watch",
    ),
}


def modules():
    """(module name, room, path) of every source file; the room of nbkernels/cpu/gemm/gemm.py is "cpu"."""
    for path in sorted((ROOT / "nbkernels").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        room = parts[1]
        yield ".".join(parts).removesuffix(".__init__"), room, path
    for path in sorted((ROOT / "dispatch").rglob("*.py")):
        name = ".".join(["nbkernels", *path.relative_to(ROOT).with_suffix("").parts])
        yield name.removesuffix(".__init__"), "dispatch", path


def imports(name, path, source=None):
    """Every module that the file's import statements and importlib.import_module("...") calls name, absolute."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(source or path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "import_module":
            argument = node.args[0]
            if isinstance(argument, ast.Constant):
                yield argument.value


def allowed(target, room):
    own = f"nbkernels.{room}"
    if target.split(".")[0] in STDLIB or target == own or target.startswith(own + "."):
        return True
    for rule in RULES[room]:
        permitted, _, excluded = rule.partition(" !")
        inside = target == permitted or target.startswith(permitted + ".")
        if inside and not (excluded and (target + ".").startswith(f"{permitted}.{excluded}.")):
            return True
    # `from nbkernels import dispatch` is spelled nbkernels.dispatch above; `from .. import x` likewise.
    return room == "__init__" and target == "nbkernels"


def test_every_room_has_a_rule():
    rooms = {room for _, room, _ in modules()}
    assert rooms - COMMAND_LINE - {"__main__"} <= set(RULES)


def test_imports_stay_within_the_rules():
    """Those of a room are what ARCHITECTURE.md says."""
    ruled = [module for module in modules() if module[1] in RULES]
    assert len(ruled) > 300
    broken = [
        (name, target) for name, room, path in ruled for target in imports(name, path) if not allowed(target, room)
    ]
    assert not broken


@pytest.mark.parametrize(
    ("room", "line", "fine"),
    [
        ("dispatch", "import numpy", False),
        ("dispatch", "from . import errors", True),
        ("dispatch", "from nbkernels import meta", False),
        ("cpu", "from numba.core import cgutils", False),
        ("jit", "from numba import cuda", False),
        ("jit", "import numba.cuda.random", False),
        ("jit", "from numba.core import cgutils", True),
        ("cpu", "from ..cuda import gemm", False),
        ("cpu", "from nbkernels.dispatch import errors", False),
        ("cuda", "def f():\n    from ..cpu import gemm", False),
        ("meta", "import numba", False),
        ("tune", "from importlib import import_module\nimport_module('nbkernels.cpu.gemm.gemm')", False),
        ("ops", "from .cpu import gemm", False),
    ],
)
def test_the_walker_sees_what_it_forbids(room, line, fine):
    package = room in {"dispatch", "cpu", "cuda", "jit"}
    name, path = (f"nbkernels.{room}.x", Path("x.py")) if package else (f"nbkernels.{room}", Path(f"{room}.py"))
    assert all(allowed(target, room) for target in imports(name, path, line)) is fine


def test_tests_and_benches():
    """The bench may use the tests' cases, never the reverse."""
    for path in (ROOT / "tests").rglob("*.py"):
        if path.name not in {"test_layers.py", "test_docs.py"}:
            assert not [t for t in imports(path.stem, path) if t.split(".")[0] == "bench"], path.name


def loaded(code):
    """Top-level packages in sys.modules after `code`, in a fresh process outside the repository's directory."""
    code += "\nimport sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    environment = {k: v for k, v in os.environ.items() if k not in {"COVERAGE_PROCESS_START", "PYTHONPATH"}}
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, cwd=os.sep
    )
    return set(output.stdout.split())


def test_numba_is_imported_by_what_compiles_alone():
    """Modules of jit that describe kernels, and load them, do without until a function in them needs it."""
    from nbkernels.jit import COMPILING

    found = set()
    for path in (jit := ROOT / "nbkernels" / "jit").rglob("*.py"):
        body = ast.parse(path.read_text()).body
        names = [each.module or "" for each in body if isinstance(each, ast.ImportFrom) and not each.level]
        names += [alias.name for each in body if isinstance(each, ast.Import) for alias in each.names]
        names += [each.module or "" for each in body if isinstance(each, ast.ImportFrom) and each.level == 1]
        if any(name.partition(".")[0] in ("numba", "numba_internals") for name in names):
            found.add(".".join(path.relative_to(jit).with_suffix("").parts))
    assert found <= set(COMPILING)
    assert all((jit / f"{name.replace('.', '/')}.py").exists() for name in COMPILING)


def test_import_is_light():
    """numba takes 0.2-0.4 s to import: it waits for the first call. NumPy is the one array library that is there."""
    baseline = loaded("import numpy")
    packages = loaded("import nbkernels") - baseline - STDLIB
    assert {p for p in packages if not p.startswith(("_", "sitecustomize"))} <= {"nbkernels"}


def test_dispatch_is_pure():
    """nbkernels.dispatch by itself: the standard library alone (found without running nbkernels/__init__.py)."""
    code = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("dispatch", {str(ROOT / "dispatch" / "__init__.py")!r})
module = importlib.util.module_from_spec(spec); sys.modules["dispatch"] = module; spec.loader.exec_module(module)
"""
    foreign = loaded(code) - loaded("pass") - STDLIB - {"dispatch"}
    assert not {p for p in foreign if not p.startswith("_")}


def test_command_line_help_is_light():
    assert "numba" not in loaded("from nbkernels.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass")


def test_site_packages_gets_no_module_named_dispatch():
    assert not (Path(sysconfig.get_paths()["purelib"]) / "dispatch").exists()


@pytest.mark.parametrize(
    "path", sorted((ROOT / "nbkernels" / "cpu").rglob("*.py")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_files_of_the_cpu_rooms_can_be_read(path):
    """At most 350 lines, a dozen names of an import."""
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 350
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            assert len(node.names) <= 12, f"{node.module}: import the module"


def test_parameters_are_few():
    """Ten positional ones, but of operations' kernels, whose order is the schema's after `out`, and of cuda."""
    for name, room, path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and room != "cuda":
                given = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
                kernel = given[:2] == ["out", "self"]
                assert len(given) <= 10 + kernel, f"{name}.{node.name}: make records of them"
