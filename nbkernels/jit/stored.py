"""A compiled function as bytes, and back: machine code, what Numba needs to call it, no more.

Numba keeps the optimised bitcode, too, and the types of all variables as text: more than half of a file, and of its
loading. The bitcode stays for functions that other compiled code takes in.
"""

from __future__ import annotations

import pickle

from llvmlite import binding
from numba.core import compiler, serialize
from numba.core.codegen import JITCodeLibrary


class Library(JITCodeLibrary):
    """One of machine code that was compiled before."""

    _bitcode = b""

    def _get_module_for_linking(self):
        if self._shared_module is None:
            if not self._bitcode:
                raise RuntimeError(f"{self.name} was not stored to be linked")
            self._shared_module = binding.parse_bitcode(self._bitcode)
        return self._shared_module


def dump(result: compiler.CompileResult, code: bytes, module, linkable: bool) -> bytes:
    """The result with machine `code`, made from `module`."""
    result.fndesc.typemap = result.fndesc.calltypes = None  # of no use any more
    environments = result._find_referenced_environments()
    again = [*result.library._reload_init]  # now that all is linked it has those of what it calls, too
    state = result.fndesc, result.environment, result.signature, again, environments
    return serialize.dumps((_parts(result.library.name, code, module, linkable), *state))


def dump_library(name: str, code: bytes, module) -> bytes:
    """The machine code of a library that Numba knows nothing of."""
    return pickle.dumps(_parts(name, code, module, False))


def _parts(name, code, module, linkable):
    symbols = [each.name for values in (module.functions, module.global_variables) for each in values
               if not each.is_declaration and each.linkage not in _LOCAL]  # fmt: skip
    return name, bytes(code), symbols, module.as_bitcode() if linkable else b""


def load_library(codegen, content) -> tuple[Library, int]:
    """What `dump_library` kept, and the size of its machine code."""
    return _library(codegen, *pickle.loads(content))


def _library(codegen, name, code, symbols, bitcode):
    library = Library(codegen, name)
    library._bitcode = bitcode
    library.enable_object_caching()
    library._set_compiled_object(code)
    library._finalize_final_module()  # the engine asks for its code, and gets this
    codegen._engine._defined_symbols.update(symbols)
    return library, len(code)


def load(context, content) -> tuple[compiler.CompileResult, int]:
    """The result, ready to run, and the size of its machine code."""
    parts, descriptor, environment, signature, again, environments = pickle.loads(content)
    for function in again:
        function()
    codegen = context.codegen()
    library, size = _library(codegen, *parts)
    entry = context.get_executable(library, descriptor, environment)
    for each in environments:
        codegen.set_env(each.env_name, each)
    none = dict.fromkeys(("typing_error", "type_annotation", "call_helper", "metadata", "lifted"))
    result = compiler.CompileResult(
        typing_context=context.typing_context, target_context=context, library=library, environment=environment,
        entry_point=entry, fndesc=descriptor, signature=signature, objectmode=False, reload_init=again,
        referenced_envs=environments, **none,
    )  # fmt: skip
    return result, size


_LOCAL = {binding.Linkage.private, binding.Linkage.internal}
