"""Numba's compiler without what these kernels do not need.

A kernel is an entry and the helpers that it calls. Numba compiles each helper as if Python called it: a wrapper, a
module optimised on its own, machine code that nothing runs, and then the same again within every caller. Here a helper
stays LLVM IR until an entry links it; the entry's module, with all that it calls, is optimised once and becomes the
only machine code. The passes that are left out serve closures, loop lifting, array expressions and parallel loops; and
as nothing is counted (`_nrt=False`), nobody asks how long a variable lives.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import ClassVar

from llvmlite import binding
from numba import types

from .error_model import check
from .infer import TypeInference
from .lower import Lower
from .numba_internals import (
    CompilerBase,
    CPUDispatcher,
    Flags,
    FunctionPass,
    JITCodeLibrary,
    PassManager,
    _dynfunc,
    _LowerResult,
    build_definitions,
    canonicalize_cfg,
    cgutils,
    config,
    errors,
    funcdesc,
    register_pass,
    require_global_compiler_lock,
    typed_passes,
    untyped_passes,
)
from .ssa import SSA


class Library(JITCodeLibrary):
    """Code that is linked, optimised and made machine code when that is asked for, and not before."""

    loops = False  # whether LLVM is to vectorise and unroll; vectors that are written here are as they are to be
    simplified = False  # whether its functions are, each alone, before others link them
    _made = False

    def __init__(self, codegen, name):
        super().__init__(codegen, name)
        self._reload_init = getattr(self, "_reload_init", set())  # which Numba has from 0.62 on

    def add_ir_module(self, ir_module):
        self._raise_if_finalized()
        module = binding.parse_assembly(cgutils.normalize_ir_text(str(ir_module)))
        module.data_layout = self._codegen._data_layout
        self._final_module.link_in(module)

    def finalize(self):
        """Nothing is added any more; what others link is this library's own IR."""
        require_global_compiler_lock()
        self._raise_if_finalized()
        if self.simplified:
            builder = binding.create_pass_builder(self._codegen._tm, binding.create_pipeline_tuning_options(1))
            passes = builder.getFunctionPassManager()
            for function in self._final_module.functions:
                if not function.is_declaration:
                    passes.run(function, builder)
        self._finalized = True

    def _make(self):
        if self._made:
            return
        if not self._finalized:
            self.finalize()
        self._codegen._check_llvm_bugs()
        self._link_all(self._final_module)
        self._optimize_final_module()
        check(self._final_module)
        self._made = True
        self._final_module.verify()
        self._finalize_final_module()

    def _optimize_final_module(self):
        options = binding.create_pipeline_tuning_options(int(config.OPT))
        options.loop_vectorization = options.loop_unrolling = self.loops
        options.slp_vectorization = False
        builder = binding.create_pass_builder(self._codegen._tm, options)
        builder.getModulePassManager().run(self._final_module, builder)

    def _link_all(self, module):
        """Link whatever this library's code calls, and what that calls, each once, into its own code in `module`.

        What is linked becomes private, so that LLVM may change or drop it. Not internal: the engine would take a local
        symbol for the weak one of that name in a later module, whose callers know nothing of the change.
        """
        own = _defined(module)
        for library in self._called():
            self._reload_init.update(getattr(library, "_reload_init", ()))
            whole = library._own() if _open(library) else library._get_module_for_linking()
            module.link_in(whole, preserve=True)
        for function in module.functions:
            if not function.is_declaration and function.name not in own:
                function.linkage = "private"
        for variable in module.global_variables:
            if variable.linkage == binding.Linkage.linkonce_odr:  # one for all parts of this library, and no other's
                variable.linkage = "private"

    def _called(self):
        """The libraries that it calls, each after all that call it: what nothing calls yet is not linked."""
        seen, order = {self}, []

        def visit(library):
            for each in library._linking_libraries if library is self or _open(library) else ():
                if each not in seen:
                    seen.add(each)
                    visit(each)
            order.append(library)

        visit(self)
        return reversed(order[:-1])

    def _own(self):
        """This library's own functions, to be linked into several modules."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == binding.Linkage.external:
                function.linkage = "linkonce_odr"
        return self._final_module

    def _get_module_for_linking(self):
        """A module of this library's functions and all that they call, for libraries compiled as Numba does."""
        if self._shared_module is None and not self._made:
            module = self._own().clone()
            self._link_all(module)
            self._shared_module = module
        return super()._get_module_for_linking()

    def machine_code(self) -> bytes:
        """Its object code, to be kept on disk."""
        self._make()
        return self._get_compiled_object()

    def module(self, linkable: bool):
        """The IR of that code, as other libraries link it or as it is."""
        return self._get_module_for_linking() if linkable else self._final_module


def _open(library) -> bool:
    """Whether it holds its own functions only, not what they call."""
    return isinstance(library, Library) and not library._made


def _defined(module) -> set[str]:
    """The names that others see."""
    return {
        each.name
        for kind in (module.functions, module.global_variables)
        for each in kind
        if not each.is_declaration and each.linkage != binding.Linkage.private
    }


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(typed_passes.NativeLowering):
    _name = "nbkernels_lowering"
    lowering_class = Lower


@register_pass(mutates_CFG=True, analysis_only=False)
class _HelperLowering(_Lowering):
    """Lowering to IR, without wrappers and without machine code."""

    _name = "nbkernels_helper_lowering"

    def run_pass(self, state):
        library, context, flags = state.library, state.targetctx, state.flags
        with typed_passes.fallback_context(state, f"Function {state.func_id.func_name} failed at lowering"):
            description = funcdesc.PythonFunctionDescriptor.from_specialized_function(
                state.func_ir, state.typemap, state.return_type, state.calltypes, mangler=context.mangler,
                inline=flags.forceinline, noalias=flags.noalias, abi_tags=[flags.get_mangle_string()])  # fmt: skip
            with context.push_code_library(library):
                lower = Lower(context, library, description, state.func_ir, metadata=state.metadata)
                lower.lower()
            key = state.pipeline.standin(state.func_id.func, description, lower.env)
            context.insert_user_function(key, description, [library])
            state.reload_init.extend(library._reload_init)
            state["cr"] = _LowerResult(description, lower.call_helper, cfunc=key, env=lower.env)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _StripPhis(typed_passes.PreLowerStripPhis):
    _name = "nbkernels_strip_phis"

    def run_pass(self, state):
        state.func_ir = self._strip_phi_nodes(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


class _Passes(PassManager):
    """One after the other; Numba computes the life of every variable after each."""

    def _runPass(self, index, each, state):
        each.analysis = self._analysis
        with errors.new_error_context("Pass {name}", name=each.name()):
            each.run_pass(state)
        if isinstance(each, FunctionPass):
            state.func_ir.blocks = canonicalize_cfg(state.func_ir.blocks)


@functools.cache
def _import_numba():
    """What Numba imports to compile, in which `arraymath` asks for BLAS: that would import scipy.linalg, 0.3 s. Whoever
    calls a BLAS asks again."""
    linalg = importlib.import_module("numba.np.linalg")
    ensure = linalg.ensure_blas

    def installed():
        if importlib.util.find_spec("scipy") is None:
            raise ImportError("scipy")

    linalg.ensure_blas = installed
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = ensure


class Kernel(CompilerBase):
    """The passes for entries and what else has an address."""

    library: ClassVar = Library
    lowering, simplified = _Lowering, False

    def __init__(self, *arguments):
        _import_numba()
        super().__init__(*arguments)

    def compile_extra(self, func, loops=False):
        """`loops`: over elements, which LLVM vectorises."""
        assert not self.state.flags.nrt
        self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        self.state.library.loops, self.state.library.simplified = loops, self.simplified
        self.state.type_annotation = ""
        return super().compile_extra(func)

    def define_pipelines(self):
        passes = _Passes("nbkernels")
        for each in (
            untyped_passes.TranslateByteCode, untyped_passes.FixupArgs,
            untyped_passes.RewriteSemanticConstants, untyped_passes.DeadBranchPrune, untyped_passes.GenericRewrites,
            SSA, untyped_passes.DeadBranchPrune, TypeInference, _StripPhis, typed_passes.InlineOverloads,
            typed_passes.NoPythonSupportedFeatureValidation, self.lowering, typed_passes.NoPythonBackend,
        ):  # fmt: skip
            passes.add_pass(each, each.__name__)
        passes.finalize()
        return [passes]


class Part(Kernel):
    """The passes for helpers."""

    lowering = _HelperLowering

    @staticmethod
    def standin(function, description, environment):
        """The callable by which Numba finds a signature: a new one for each, as helpers have no machine code."""
        return functools.partial(function)


class Subroutine(Part):
    """The passes for the scalar functions of loops. Alone, their branches become selections, of which LLVM makes
    vectors; together with a loop's other branches some would not (fmod of 20,000 int16 5.5 us, 30 without)."""

    simplified = True


def subroutine(context, function, signature):
    """What `function` is called by in code that is being lowered. LLVM puts it into each caller: a loop with a call in
    it is not vectorised."""
    flags = Flags()
    flags.error_model, flags.forceinline = "numpy", True
    known, key = context.cached_internal_func, (function, signature)
    if key not in known:
        arguments = context.typing_context, context, None, signature.args, signature.return_type, flags, {}
        try:
            known[key] = Subroutine(*arguments).compile_extra(function)
        except errors.NumbaError:  # a user's may hold closures; what is wrong with it is told in Numba's own words
            known[key] = context.compile_subroutine(None, function, signature, flags=flags)
    context.active_code_library.add_linking_library(known[key].library)
    return known[key].fndesc


class Implementation(Part):
    """The passes for helpers of overloads, whose dispatchers take built-in functions only; nobody can call these."""

    @staticmethod
    def standin(function, description, environment):
        name = description.qualname.rpartition(".")[2]
        return _dynfunc.make_function(description.lookup_module(), name, "", 0, environment, ())


class Helper(CPUDispatcher):
    """A function that other compiled functions call."""

    helper = True  # to be remembered by infer.py

    def __init__(self, py_func, locals=None, targetoptions=None, pipeline_class=Part):
        super().__init__(py_func, locals or {}, targetoptions or {}, pipeline_class)

    def get_call_template(self, args, kws):
        """Compiled once for all numbers that are known, where the number itself is not asked for."""
        try:
            return super().get_call_template(tuple(map(types.unliteral, args)), kws)
        except errors.TypingError:
            return super().get_call_template(args, kws)

    def add_overload(self, cres):
        self.overloads[tuple(cres.signature.args)] = cres
