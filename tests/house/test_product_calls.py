"""One call of a product is checked in one place, and described in one."""

import ast
import functools
from pathlib import Path

CPU = Path(__file__).resolve().parents[2] / "nbkernels" / "cpu"
ROOMS = "gemm", "gemv", "numpy_loops", "quantized"
FAULTS = {"INNER", "BATCHES", "OUT", "SELF", "OVERLAPS", "OVERLAPS_SELF", "TWICE", "UNEVEN"}


@functools.cache
def nodes():
    """Every node of the modules of the products' rooms, by the module's name."""
    paths = [path for room in ROOMS for path in (CPU / room).glob("*.py")]
    assert len(paths) > 50
    return {
        path.relative_to(CPU).as_posix(): [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))] for path in paths
    }


def modules(wanted):
    """Those with a node that is `wanted`."""
    return {name for name, found in nodes().items() if any(map(wanted, found))}


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


def test_arrays_are_read_in_one_module():
    """By the check; what describes a product asks it: the record of all products, the batches of a stack and, in an
    order of their own, rows of dot."""
    assert modules(imports("abi.ndarray", "stride", "steps")) == {"gemm/checks.py"}
    described = {"gemm/context.py", "gemm/call.py", "gemv/dot.py"}
    assert modules(imports("checks", "step")) == described | {"gemm/general_entry.py"}  # asks for a's transpose


def test_a_record_is_filled_in_by_one_function():
    def fills(node):
        """Whether a stride of C is stored into a record from an array's."""
        return isinstance(node, ast.Assign) and "f.csc" in ast.unparse(node.targets[0]) and "step(" in ast.unparse(node)

    assert modules(fills) == {"gemm/context.py"}
    assert modules(imports("context", "operands")) == {"gemm/call.py", "gemm/entry.py", "gemv/mv.py"}
