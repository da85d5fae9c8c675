"""Bodies of kernels, compiled by Numba: imported where a kernel is not at hand as machine code."""

from importlib import import_module

from ...shield import shielded

shielded(import_module, "numba.cuda")
