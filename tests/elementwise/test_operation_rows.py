"""The rows of nbkernels/operations.py: whatever lists element-wise operations reads them, and writes down none."""

import ast
from pathlib import Path

import pytest

import nbkernels as nb
from nbkernels import operations, scalar
from nbkernels.dtypes import DTYPES, PARTS, ufunc
from nbkernels.operations import BINARY, BY_NAME, ELEMENTWISE, FLAT, NONE, UNARY

PACKAGE = Path(nb.__file__).parent
FEW = 3  # names that make a list
# Lists that are no facts of the operations: (file, what they are)
OTHERS = {
    ("operations.py", "BINARY"): "the rows",
    ("operations.py", "UNARY"): "the rows",
    ("array_api.py", "FUNCTIONS"): "the names of a standard",
    ("benches/elementwise.py", "TEXTS"): "how numexpr writes them",
    ("cpu/reduce/any_all.py", "OF_ANY"): "folds that a kernel emits",
    ("cpu/reduce/extreme.py", "OF_ANY"): "folds that a kernel emits",
    ("cuda/kernels/atomics.py", "INSTRUCTIONS"): "a device's instructions",
    ("cuda/kernels/at.py", "SHORT"): "loops that a kernel unrolls",
    ("jit/user/scalar_function.py", "NAMES"): "functions of math",
}


def listed(node):
    """Names of operations among the words of a literal."""
    words = (each.value.replace(",", " ").split() for each in ast.walk(node)
             if isinstance(each, ast.Constant) and isinstance(each.value, str))  # fmt: skip
    return {word for each in words for word in each if word in NAMES}


NAMES = {*ELEMENTWISE, *(ufunc(op).__name__ for op in ELEMENTWISE if op not in PARTS)}


def lists(source):
    """What the statements are called that hold a literal with FEW names of operations or more."""
    found = set()
    for statement in ast.walk(ast.parse(source)):
        if isinstance(statement, ast.stmt) and not hasattr(statement, "body"):
            literals = [each for each in ast.walk(statement)
                        if isinstance(each, ast.Tuple | ast.List | ast.Set | ast.Dict)
                        or (isinstance(each, ast.Attribute) and each.attr == "split")]  # fmt: skip
            if any(len(listed(each)) >= FEW for each in literals):
                target = statement.targets[0] if isinstance(statement, ast.Assign) else None
                target = target.elts[0] if isinstance(target, ast.Tuple) else target
                found.add(getattr(target, "id", f"line {statement.lineno}"))
    return found


def test_nothing_else_lists_operations():
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if "dispatch" not in path.relative_to(PACKAGE).parts:
            name = path.relative_to(PACKAGE).as_posix()
            found |= {(name, each) for each in lists(path.read_text(encoding="utf-8"))}
    assert found == set(OTHERS), "a list by hand: let it read nbkernels/operations.py"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("X = ('add', 'hypot', 'gcd')", {"X"}),
        ("X = 'add hypot gcd'.split()", {"X"}),
        ("X, Y = ('add', 'exp', 'gcd'), 3", {"X"}),
        ("def f(op):\n    return op in ['add', 'arctan2', 'gcd']", {"line 2"}),
        ("X = {'add': 1, 'hypot': 2, 'gcd': 3} | dict(y=3)", {"X"}),
        ("X = ('add', 'hypot')", set()),
        ("X = 'add, hypot and gcd in words'", set()),
    ],
)
def test_lists_are_seen(source, found):
    assert lists(source) == found


@pytest.mark.parametrize("op", ELEMENTWISE)
def test_rows_are_whole(op):
    """A scalar function, a public function in two forms, a derivative where there is one; words that mean something."""
    row, known = ELEMENTWISE[op], vars(operations).values()
    assert scalar.exists(op)
    assert {op, f"{op}_"} <= set(nb.ops.OPERATIONS)
    assert (getattr(nb, op).op.table.row("AutogradCPU").row is not None) is (row.slope == BY_NAME)
    assert row.slope in (BY_NAME, FLAT, NONE)
    assert all(word in known for word in (row.group, row.cost, row.fold, row.faults) if word)
    assert set(row.unlike.split()) <= set(DTYPES)
    assert not set(row.also.split()) & set(ELEMENTWISE)
    assert (op in BINARY) is not (op in UNARY)
    assert row.formula in getattr(nb, op).__doc__
