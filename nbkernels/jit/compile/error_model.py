"""NumPy's error model for all that a kernel is made of, so that no kernel raises.

Numba takes the error model from the function that is compiled, but Python's for those that it compiles on its own
behalf: `cmath.sqrt`, powers, quotients of complex numbers. An exception in a kernel would be lost, and the rows after
it never written: a C function has nobody to give it to but the error output.
"""

from __future__ import annotations

import contextlib

from llvmlite import ir

from ...scalar.complexes import divide, root
from .numba_internals import CPUContext, Flags, UnsupportedError, cpu_target, global_compiler_lock

REPORT = "PyErr_WriteUnraisable"  # what a C function calls, Numba's or ours, where an exception came out of it


def _root(z):
    return root(float(z.real), float(z.imag))


# What stands in for functions of Numba's, by their names: cmath.sqrt loses the digits of subnormal numbers, and a
# quotient raises whatever the error model is.
OWN = {"sqrt_impl": _root, "complex_div": divide}


class Context(CPUContext):
    """Numba's context for CPUs, but for what it compiles on its own behalf."""

    def _compile_subroutine_no_cache(self, builder, impl, sig, locals=None, flags=None):
        if flags is None:
            flags = Flags()
            flags.error_model = "numpy"
            flags.inherit_if_not_set("nrt", default=False)
        impl = OWN.get(impl.__name__, impl)
        return super()._compile_subroutine_no_cache(builder, impl, sig, locals, flags)


@contextlib.contextmanager
def total():
    """What is compiled in the block has NumPy's error model throughout; others' code, before and after, has its own."""
    context = cpu_target.target_context  # made before the lock is taken: who makes it takes that then
    with global_compiler_lock:
        before = context.__class__, context.cached_internal_func
        context.__class__, context.cached_internal_func = Context, _COMPILED
        try:
            yield
        finally:
            context.__class__, context.cached_internal_func = before


_COMPILED = {}  # Numba's memory of such functions: others' have another error model under the same key


def reported(builder, raised) -> None:
    """Emit the call of REPORT, for check() to find unless LLVM can tell that nothing is raised."""
    kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)])
    with builder.if_then(raised):
        builder.call(ir.Function(builder.module, kind, REPORT), [ir.IntType(64)(0)])


def check(module) -> None:
    """An UnsupportedError if an exception may come out of an optimised module's C functions: LLVM keeps the call that
    reports it only where it cannot tell that the status is 0."""
    if any(function.name == REPORT for function in module.functions):
        raise UnsupportedError(f"{module.name} may raise an exception that nobody would see")
