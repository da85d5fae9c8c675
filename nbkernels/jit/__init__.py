"""The only room that touches Numba's internals: the disk cache, compile-time records, vector IR, ndarray fields.

Whatever needs Numba imports this room first: Numba, once imported by half, stays broken for as long as the process
lives. So it is imported whole before the first module here that needs it; PLAIN ones do not, and a process that finds
all its code for a GPU on disk goes without.
"""

import contextlib
import sys
from importlib import import_module

from ..shield import importing, shielded

PLAIN = ("background", "files", "kind", "sources", "upkeep")


class First:
    """A finder that finds nothing, and imports Numba before a module of this room that is not PLAIN."""

    def find_spec(self, name, path=None, target=None):
        room, _, module = name.rpartition(".")
        if room == __name__ and module not in PLAIN:
            with contextlib.suppress(ValueError):  # another thread was here
                sys.meta_path.remove(self)
            with importing():
                shielded(import_module, "numba")


if "numba" not in sys.modules:
    sys.meta_path.insert(0, First())
