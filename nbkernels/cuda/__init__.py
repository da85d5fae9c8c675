from importlib import import_module

from ..jit.shield import shielded

shielded(import_module, "numba.cuda")
