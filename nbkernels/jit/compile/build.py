"""Compile what is not on disk, by Numba, and make bytes of it (load.py)."""

from __future__ import annotations

import functools
import time

from llvmlite import binding, ir

from ... import background
from ...shield import forks_wait, roomy, whole
from ..abi.flags import default_modes
from ..disk import levels, load
from . import cross, known
from .cache import Place, uncollected
from .compiler import Kernel, Loops
from .error_model import total
from .lazy import OPTIONS
from .numba_internals import CFunc, CPUDispatcher, JITCodeLibrary, NullCache, cgutils, cpu_target, global_compiler_lock

forks_wait(global_compiler_lock)


def shielded(compilation, *arguments):
    """What it returns, run to its end, with a stack that suffices and in the default floating-point modes; but who
    holds Numba's lock stays in its thread."""

    def compiling():
        with total():
            known.enter()
            return compilation(*arguments)

    background.proceed()
    with whole(), uncollected(), default_modes():
        return compiling() if global_compiler_lock.is_locked() else roomy(compiling)


# -- functions ---------------------------------------------------------------------------------------------------------


def function(function, place: Place, signature: str, loops: bool, options: dict) -> load.Code:
    """The function, compiled for a signature to be called from Python, and kept."""
    pipeline, options = Loops if loops else Kernel, dict(OPTIONS, nopython=True, **options)

    def compiling():
        dispatcher = CPUDispatcher(function, targetoptions=options, pipeline_class=pipeline)
        dispatcher._cache = _Results()
        dispatcher.compile(known.signature(signature))
        return dispatcher._cache.result

    return shielded(_kept, compiling, place)


def c_function(function, place: Place, signature: str, loops: bool, linkable: bool = False) -> load.Code:
    """The function, compiled for a signature to be called from C alone, and cached; `linkable`: others may link it."""
    pipeline = Loops if loops else Kernel

    def compiling():
        kind = known.signature(signature)
        made = CFunc(function, (kind.args, kind.return_type), {}, dict(OPTIONS), pipeline_class=pipeline)
        made._cache = _Results()
        made.compile()
        return made._cache.result

    return shielded(_kept, compiling, place, linkable)


class _Results(NullCache):
    """Takes what Numba compiled."""

    def save_overload(self, signature, result):
        self.result = result


def routine(name: str, define, place: Place) -> load.Code:
    """The function that define(module, name) adds to an LLVM module, likewise."""

    def compiling():
        since = time.perf_counter()
        library = Kernel.library(cpu_target.target_context.codegen(), name)
        library.enable_object_caching()
        module = library.create_ir_module(name)
        define(module, name)
        library.add_ir_module(module)
        library.finalize()
        return keep(place, library, load.Parts(b"", native=name, name=place.name), since)

    return shielded(compiling)


def _kept(compiling, place: Place, linkable: bool = False) -> load.Code:
    since = time.perf_counter()
    result = compiling()
    described, library = result.fndesc, result.library
    environments = result._find_referenced_environments()
    if any(each.consts for each in environments):
        raise NotImplementedError(f"{library.name} reads Python objects")
    again = [*library._reload_init]  # now that all is linked it has those of what it calls, too
    parts = load.Parts(
        b"", described.llvm_cpython_wrapper_name, described.llvm_cfunc_wrapper_name,
        tuple(each.env_name for each in environments), tuple(again), place.name,
        library.module(True).as_bitcode() if linkable else b"",
    )  # fmt: skip
    return keep(place, library, parts, since)


def keep(place: Place, library, parts: load.Parts, since: float) -> load.Code:
    """What is made of a library, kept and ready to run."""
    parts = parts._replace(code=library.machine_code())
    content = load.dump(parts)
    packaged = load.dump(parts._replace(code=cross.machine_code(library))) if levels.building else None
    place.save(content, packaged, len(parts.code), since)
    return load.Code(content)


# -- in other compiled code --------------------------------------------------------------------------------------------


@functools.cache
def _library(code: load.Code) -> Library:
    return Library(code.parts)


class Library(JITCodeLibrary):
    """A kept function's bitcode, for code that takes it in."""

    def __init__(self, parts: load.Parts):
        super().__init__(cpu_target.target_context.codegen(), parts.name)
        self._bitcode, self._finalized, self._reload_init = parts.bitcode, True, set(parts.again)

    def _get_module_for_linking(self):
        if self._shared_module is None:
            self._shared_module = binding.parse_bitcode(self._bitcode)
        return self._shared_module


def embedded(context, builder, code: load.Code, kind: ir.FunctionType):
    """A compiled C function as part of the code that `builder` writes: this holds no address of the process, so Numba
    can keep it on disk."""
    context.active_code_library.add_linking_library(_library(code))
    return cgutils.get_or_insert_function(builder.module, kind, code.parts.native)
