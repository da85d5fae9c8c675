"""What the library stands on in Numba is one list, and all of it is there."""

import ast
import importlib
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "nbkernels"
LIST = PACKAGE / "jit" / "compile" / "numba_internals.py"
PROMISED = {"numba", "numba.extending", "numba.types", "numba.cuda"}  # by Numba's documentation


def numbas(path):
    """(module, name) of every import of Numba's in a file."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if "numba" in text else ():
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.partition(".")[0] == "numba")
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module.partition(".")[0] == "numba":
            yield from ((node.module, alias.name) for alias in node.names)


def attributes():
    return next(ast.literal_eval(node.value) for node in ast.parse(LIST.read_text(encoding="utf-8")).body
                if isinstance(node, ast.Assign))  # fmt: skip


def there(name):
    """Whether a dotted name leads to something."""
    found = importlib.import_module("numba")
    for part in name.split(".")[1:]:
        if not hasattr(found, part):
            try:
                importlib.import_module(f"{found.__name__}.{part}")
            except (ImportError, AttributeError):
                return False
        found = getattr(found, part)
    return True


def test_all_of_it_is_there():
    """Read, not imported: a name that a new release took away is told here, with all others that it took."""
    names = [f"{module}.{name}" for module, name in numbas(LIST)]
    names += [f"{owner}.{name}" for owner, own in attributes().items() for name in own.split()]
    assert len(names) > 50
    assert [name for name in names if not there(name)] == []
    assert not there("numba.core.codegen.NoSuchLibrary")
    assert not there("numba.core.nothing")


def test_no_other_module_imports_a_private_name():
    for path in PACKAGE.rglob("*.py"):
        if path != LIST and "cuda" not in path.parts:
            imports = list(numbas(path))
            assert not {module for module, _ in imports} - PROMISED, path
            assert "_dynfunc" not in {name for _, name in imports}, path


def test_every_name_is_used():
    text = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if path != LIST)
    assert [name for _, name in numbas(LIST) if name != "boxing" and name not in text] == []
    assert [name for own in attributes().values() for name in own.split() if name not in text] == []
