"""A hash of the library's sources, which a process asks for at its first call.

The package may lie in a zip, which importlib.resources reads, or be there without its sources, as in a frozen program:
then the hash is of the code objects that its modules are made of.
"""

from __future__ import annotations

import hashlib
import pkgutil
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from types import CodeType

PACKAGE = Path(__file__).resolve().parent.parent.parent
_PACKAGE = __name__.partition(".")[0]
# What compiled code is made from: the rooms that compile, with their sub-folders, and what they take from outside.
ROOMS = "jit", "cpu", "cuda", "scalar", "elementary"
MODULES = "dtypes.py", "operations.py", "problem.py", "quantized/layout.py", "strides.py"
OF_CUDA = ("cuda", "scalar", "elementary"), (*MODULES, "jit/ir/kind.py")  # CUDA's kernels alone


def files(rooms=ROOMS, modules=MODULES) -> list[tuple]:
    """(name in the package, file) of every source that counts, in order; none where the package has no sources."""
    package = PACKAGE if PACKAGE.is_dir() else resources.files(_PACKAGE)  # which imports it: setup.py cannot
    inside = (found for room in rooms if (package / room).is_dir() for found in _inside(package / room, f"{room}/"))
    return sorted([*inside, *((name, package / name) for name in modules if (package / name).is_file())])


def _inside(folder, name: str) -> Iterator[tuple]:
    for each in folder.iterdir():
        if each.name.endswith(".py"):
            yield name + each.name, each
        elif each.name != "__pycache__" and each.is_dir():
            yield from _inside(each, f"{name}{each.name}/")


def codes(rooms=ROOMS, modules=MODULES) -> list[tuple[str, CodeType]]:
    """(name, code) of every module that counts, in order, found without importing it."""
    counted = {f"{_PACKAGE}.{name.removesuffix('.py').replace('/', '.')}" for name in (*rooms, *modules)}
    top = list(pkgutil.iter_modules(sys.modules[_PACKAGE].__path__, f"{_PACKAGE}."))
    whole = _below(each for each in top if each.name in counted)
    others = _below(each for each in top if any(name.startswith(f"{each.name}.") for name in counted))
    return sorted({*whole, *(each for each in others if each[0] in counted)})


def _below(modules) -> Iterator[tuple[str, CodeType]]:
    for finder, name, package in modules:
        spec = finder.find_spec(name)
        yield name, spec.loader.get_code(name)
        if package:
            yield from _below(pkgutil.iter_modules(spec.submodule_search_locations, f"{name}."))


def digest(rooms=ROOMS, modules=MODULES) -> str:
    """Hash of them all, each under its name; an OSError where there is neither source nor code."""
    found = [(name, file.read_bytes()) for name, file in files(rooms, modules)]
    found = found or [(name, repr(_plain(code)).encode()) for name, code in codes(rooms, modules)]
    if not found:
        raise FileNotFoundError(f"{_PACKAGE} is here without sources and without code objects")
    whole = hashlib.sha256()
    for name, code in found:
        whole.update(f"{name} {len(code)}\n".encode() + code)
    return whole.hexdigest()


def _plain(value):
    """A code object, or a constant of one, as something whose text is the same in every process: sets are sorted, and
    neither lines nor places count."""
    if isinstance(value, frozenset):
        return sorted(map(repr, value))
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if not isinstance(value, CodeType):
        return value
    names = value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars
    counts = value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount, value.co_flags
    return value.co_code, names, counts, getattr(value, "co_exceptiontable", b""), _plain(value.co_consts)
