# ruff: noqa: F401, which are for others to import from here
"""Every name of Numba's that its documentation does not promise, and what it is for: no other module imports one.

tests/jit/test_numba_internals.py names those that the Numba at hand has not: what a new release took away.
"""

import contextlib

from numba.core import errors  # what typing and lowering raise

# Where colorama is installed, as tqdm has it on Windows, Numba swaps sys.stdout and sys.stderr while it puts an error's
# message together, those of candidates that typing turns down too: what other threads print meanwhile is lost, and a
# stream that they set is taken back. The message needs no stream.
if hasattr(errors, "ColorShell"):
    errors.ColorShell = contextlib.nullcontext

# isort: split

from numba import _dynfunc  # an object that Numba takes for a compiled function: what overloads stand for
from numba.core import (
    boxing,  # registers how numbers come from Python and go there, before jitted/half.py adds float16
    cgutils,  # small steps of LLVM IR: loops, structures, memory
    compiler,  # run_frontend: a function as Numba sees it, for typed.py
    config,  # how far LLVM optimises
    funcdesc,  # the description of a helper's symbol
    ir,  # Numba's own IR, read by typed.py, rewritten by ssa.py
    lowering,  # lower.py's lowering is made of it
    ssa,  # variables that are assigned again
    typed_passes,  # the passes that compiler.py picks from; untyped_passes, too
    typing,  # signatures of calls
    untyped_passes,
)
from numba.core.callconv import RETCODE_USEREXC  # what code returns that has raised an error
from numba.core.callwrapper import PyCallWrapper  # what CPython calls: lower.py has it called without a tuple
from numba.core.codegen import JITCodeLibrary  # a library of LLVM modules
from numba.core.compiler import CompilerBase, Flags, _LowerResult  # a compiler of other passes
from numba.core.compiler_lock import global_compiler_lock, require_global_compiler_lock  # one compilation at a time
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass  # passes of our own
from numba.core.cpu import CPUContext  # what Numba compiles on its own behalf, with NumPy's error model
from numba.core.datamodel import default_manager  # how a type lies in memory: float16
from numba.core.datamodel.models import PrimitiveModel  # as a number of 2 bytes
from numba.core.environment import lookup_environment  # the variables that Numba's code reads, by their symbols
from numba.core.errors import NumbaNotImplementedError, TypingError, UnsupportedError  # raised as Numba does
from numba.core.imputils import lower_constant, lower_getattr_generic  # attributes of records and tiles
from numba.core.ir_utils import build_definitions  # which statement makes a variable
from numba.core.pythonapi import _boxers, _unboxers  # float16 to Python and back
from numba.core.registry import CPUDispatcher, cpu_target  # the contexts of typing and of LLVM
from numba.core.transforms import canonicalize_cfg  # after each pass
from numba.core.typing.templates import (
    AbstractTemplate,  # functions that jitted code calls by the library's names
    AttributeTemplate,  # attributes of records, tiles and modules
    infer_getattr,
    infer_global,
    make_intrinsic_template,  # intrinsics that are declared before Numba is there
)
from numba.cpython.builtins import do_minmax  # min and max as IR, where they stand
from numba.np.numpy_support import as_dtype  # NumPy's dtype of a type

# What is called or overridden of these: private names, and those of private modules.
ATTRIBUTES = {
    "numba._helperlib": "c_helpers",
    "numba.core.callconv.CPUCallConv": "_get_excinfo_argument _return_errcode_raw",
    "numba.core.codegen.JITCodeLibrary": "_finalize_final_module _get_compiled_object _get_module_for_linking "
    "_raise_if_finalized _optimize_final_module",
    "numba.core.compiler_machinery.PassManager": "_runPass",
    "numba.core.cpu.CPUContext": "_compile_subroutine_no_cache",
    "numba.core.ssa": "_CacheListVars _FixSSAVars _FreshVarHandler _compute_phi_locations _iterated_domfronts "
    "_make_states _run_block_rewrite compute_cfg_from_blocks",
    "numba.core.typed_passes.PreLowerStripPhis": "_strip_phi_nodes",
    "numba.np.ufunc.parallel": "_launch_threads",
}
