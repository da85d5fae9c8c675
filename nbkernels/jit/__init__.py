"""Numba and LLVM: the only room that uses Numba's internals. Compilation, compiled code on disk, LLVM IR.

A process that finds its code on disk goes without Numba. Numba, once imported by half, stays broken for as long as the
process lives: so it is imported whole before the first module here that needs it.
"""

import sys

from ..shield import Finder, import_numba

COMPILING = (
    *("compile.build", "compile.compiler", "compile.cross", "compile.error_model", "compile.infer", "compile.known"),
    *("compile.lower", "compile.numba_internals", "compile.overloads", "compile.ssa", "user.dual", "user.typed"),
)

if "numba" not in sys.modules:
    sys.meta_path.insert(0, Finder({f"{__name__}.{name}" for name in COMPILING}.__contains__, before=import_numba))
