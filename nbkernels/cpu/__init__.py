from importlib import import_module

from ..shield import shielded

shielded(import_module, "numba")
