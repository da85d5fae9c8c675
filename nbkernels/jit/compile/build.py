"""Compile what is not on disk, by Numba, and make bytes of it (load.py)."""

from __future__ import annotations

import functools
import itertools
import time

from llvmlite import binding, ir

from ... import background
from ...shield import forks_wait, roomy, whole
from ..abi.flags import default_modes
from ..disk import levels, load
from . import cross, known
from .cache import Place, uncollected
from .compiler import Kernel
from .error_model import total
from .numba_internals import Flags, JITCodeLibrary, cgutils, cpu_target, global_compiler_lock, lookup_environment

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


def function(function, place: Place, signature: str, loops: bool, linkable: bool = False, **options) -> load.Code:
    """The function, compiled for a signature, and kept; `linkable`: others may link it, `options` are Numba's flags."""

    def compiling():
        since, kind, flags = time.perf_counter(), known.signature(signature), Flags()
        for name, value in dict(options, error_model="numpy", no_compile=True).items():
            setattr(flags, name, value)
        contexts = cpu_target.typing_context, cpu_target.target_context
        compiler = Kernel(*contexts, None, kind.args, kind.return_type, flags, {})
        result = compiler.compile_extra(function, loops)
        native, entry = result.fndesc.llvm_cfunc_wrapper_name, result.fndesc.llvm_cpython_wrapper_name
        return keep(place, result.library, native, since, entry, linkable)

    return shielded(compiling)


def routine(name: str, define, place: Place, loops: bool = False, linkable: bool = False) -> load.Code:
    """The function that define(module, name) adds to an LLVM module, likewise."""

    def compiling():
        since, context = time.perf_counter(), cpu_target.target_context
        library = Kernel.library(context.codegen(), name)
        library.enable_object_caching()
        library.loops, module = loops, library.create_ir_module(name)
        with context.push_code_library(library):
            define(module, name)
        library.add_ir_module(module)
        return keep(place, library, name, since, linkable=linkable)

    return shielded(compiling)


def keep(place: Place, library, native: str, since: float, entry: str = "", linkable: bool = False) -> load.Code:
    """What is made of a library, kept and ready to run."""
    code = library.machine_code()
    module = library.module(False)
    environments = [lookup_environment(each.name) for each in module.global_variables]
    environments = [each for each in environments if each is not None]
    if any(each.consts for each in environments):
        raise NotImplementedError(f"{library.name} reads Python objects")
    again = tuple(library._reload_init)  # now that all is linked it has those of what it calls, too
    names = tuple(each.env_name for each in environments)
    bitcode = library.module(True).as_bitcode() if linkable else b""
    symbols = itertools.chain(module.functions, module.global_variables)
    outside = tuple(each.name for each in symbols if each.is_declaration and not each.name.startswith("llvm."))
    parts = load.Parts(code, entry, native, names, again, place.name, bitcode, outside)
    content = load.dump(parts)
    packaged = load.dump(parts._replace(code=cross.machine_code(library))) if levels.building else None
    place.save(content, packaged, len(code), since)
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
