"""One call of a product is checked in one place, and read from arrays in as few as there are now."""

import ast
from pathlib import Path

CPU = Path(__file__).resolve().parents[2] / "nbkernels" / "cpu"
ROOMS = "gemm", "gemv", "numpy_loops", "quantized"
FAULTS = {"INNER", "BATCHES", "OUT", "SELF", "OVERLAPS", "OVERLAPS_SELF", "TWICE", "UNEVEN"}
READERS = {"gemm/checks.py", "gemm/context.py"}  # of strides: the check, and the record of float matrices


def modules(wanted):
    """The modules of the products' rooms with a node that is `wanted`."""
    paths = [path for room in ROOMS for path in (CPU / room).glob("*.py")]
    assert len(paths) > 50
    trees = {path.relative_to(CPU).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    return {name for name, tree in trees.items() if any(map(wanted, ast.walk(tree)))}


def imports(module, *names):
    """A test of nodes: whether one imports such a name from a module whose name ends so."""
    return lambda node: (
        isinstance(node, ast.ImportFrom)
        and (node.module or "").endswith(module)
        and any(alias.name in names for alias in node.names)
    )


def test_faults_are_found_in_one_module():
    def names_one(node):
        return isinstance(node, ast.Attribute) and node.attr in FAULTS and getattr(node.value, "id", "") == "status"

    assert modules(names_one) == {"gemm/checks.py"}
    assert not modules(imports("runtime.status", *FAULTS))
    assert not modules(imports("runtime.arrays", "apart"))
    assert modules(imports("checks", "unfit", "wrong", "unsound")) == {"gemm/call.py", "gemm/entry.py", "gemv/mv.py"}


def test_arrays_are_read_in_few_modules():
    assert modules(imports("abi.ndarray", "stride", "steps")) == READERS
