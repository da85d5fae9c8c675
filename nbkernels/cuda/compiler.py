"""Numba's compiler for CUDA, without what the compilation of a kernel does not need.

A kernel is one function, into which all that it calls is inlined. After each of some hundred calls Numba computes how
long every variable lives, which only the counting of references asks for; it infers the type of each addition anew;
and for every variable that is assigned twice it goes through every block. That was half of the time of 40 kernels,
whose PTX is the same without it.
"""

from __future__ import annotations

import contextlib
import functools

from numba import types
from numba.cuda.core import compiler_machinery, errors, inline_closurecall, postproc, ssa, transforms
from numba.cuda.descriptor import cuda_target

from ..jit.compile.ssa import run_ssa


def _as_it_is(own):
    """Inline a function's IR itself: Numba makes it for each call, and copies it deeply, twice."""

    def inline_function(*args, **keywords):
        copied, inline_closurecall.copy = inline_closurecall.copy, AsIs
        try:
            return own(*args, **keywords)
        finally:
            inline_closurecall.copy = copied

    return inline_function


class AsIs:
    """Stands for the module `copy`."""

    deepcopy = staticmethod(lambda block: block)


def _without_lives(own):
    """After a pass: simplify the blocks. Lives are computed where they are asked for, as of generators."""

    def run(self, *args, **keywords):
        function = self.func_ir
        if function.is_generator:
            own(self, *args, **keywords)
        else:
            function.blocks = transforms.canonicalize_cfg(function.blocks)
            function.variable_lifetime = postproc.VariableLifetime(function.blocks)

    return run


def _passed(own):
    """Run a pass; nobody asks for its time."""

    def run_pass(self, index, each, state):
        each.analysis = self._analysis
        with errors.new_error_context(f"Pass {each.name()}"):
            for step in (each.run_initialization, each.run_pass, each.run_finalizer):
                step(state)

    return run_pass


def _remembered(own):
    """The signature of a call, remembered for the block."""
    known = {}

    def get_call_type(self, context, args, keywords):
        if keywords or context is not cuda_target.typing_context:
            return own(self, context, args, keywords)
        found = known.get((self, args))
        if found is None and (found := own(self, context, args, keywords)) is not None:
            known[self, args] = found
        return found

    return get_call_type


def _by_blocks(own):
    return functools.partial(run_ssa, ssa)


WAYS = (
    (inline_closurecall.InlineWorker, "inline_function", _as_it_is),
    (postproc.PostProcessor, "run", _without_lives),
    (compiler_machinery.PassManager, "_runPass", _passed),
    (types.BaseFunction, "get_call_type", _remembered),
    (ssa, "_run_ssa", _by_blocks),
)


@contextlib.contextmanager
def spared():
    """A block in which Numba's functions are these, for all who compile meanwhile. The caller holds Numba's lock, so no
    other thread does."""
    with contextlib.ExitStack() as stack:
        for owner, name, way in WAYS:
            own = getattr(owner, name)
            stack.callback(setattr, owner, name, own)
            setattr(owner, name, way(own))
        yield
