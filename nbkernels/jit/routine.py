"""Functions that are written in LLVM IR, each compiled alone, and called by its address: once for all who call it.

Numba knows nothing of them: no types are inferred, no wrapper is made.
"""

from __future__ import annotations

from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from . import stored
from .cache import ALIVE, FileCache, shielded
from .compiler import Kernel


def routine(name: str, define) -> int:
    """The address of the function that define(module, name) adds to an LLVM module, valid for the life of the process;
    kept on disk as what Numba compiles."""
    found = []
    shielded(lambda: found.append(_ready(name, define)))
    return found[0]


@global_compiler_lock
def _ready(name, define) -> int:
    context, cache = cpu_target.target_context, FileCache(f"{__name__}.{name}")
    library = cache.load((), context, _load) or _compile(name, define, context.codegen(), cache)
    ALIVE.append(library)
    return library.get_pointer_to_function(name)


def _load(context, content):
    return stored.load_library(context.codegen(), content)


def _compile(name, define, codegen, cache):
    library = Kernel.library(codegen, name)
    library.enable_object_caching()
    module = library.create_ir_module(name)
    define(module, name)
    library.add_ir_module(module)
    library.finalize()
    cache.save((), library, lambda code: stored.dump_library(name, code, library.module(False)))
    return library
