"""The only room that touches Numba's internals: the disk cache, compile-time records, vector IR, ndarray fields.

Whatever needs Numba imports this room first: Numba, once imported by half, stays broken for as long as the process
lives. So it is imported whole before the first module here that needs it; PLAIN ones do not, and a process that finds
all its code for a GPU on disk goes without.
"""

import contextlib
import sys
from importlib.machinery import PathFinder

from ..shield import import_numba

PLAIN = ("files", "kind", "sources", "upkeep")


class First:
    """A finder of the modules of this room that are not PLAIN, until Numba is there."""

    def find_spec(self, name, path=None, target=None):
        room, _, module = name.rpartition(".")
        spec = PathFinder.find_spec(name, path, target) if room == __name__ and module not in PLAIN else None
        if spec is not None:
            spec.loader = AfterNumba(spec.loader)
        return spec


class AfterNumba:
    """A loader that imports Numba first. A finder must not: it is called within Python's lock of all imports, and other
    threads that import Numba wait for that."""

    def __init__(self, loader):
        self.loader = loader

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        import_numba()
        with contextlib.suppress(ValueError):  # another thread was here
            sys.meta_path.remove(FIRST)
        self.loader.exec_module(module)


FIRST = First()
if "numba" not in sys.modules:
    sys.meta_path.insert(0, FIRST)
