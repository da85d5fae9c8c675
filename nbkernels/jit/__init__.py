"""The only room that touches Numba's internals: the disk cache, compile-time records, vector IR, ndarray fields.

Whatever needs Numba imports this room first: Numba, once imported by half, stays broken for as long as the process
lives.
"""

from importlib import import_module

from ..shield import shielded

shielded(import_module, "numba")
