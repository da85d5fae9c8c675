"""Numba's settings that matter to code on disk, read without Numba."""

from __future__ import annotations

import os
import sys

from llvmlite import binding

from ...shield import import_numba

CONFIGURATION = ".numba_config.yaml"  # in the working directory: settings that only Numba reads


def numba_decides(*names: str) -> bool:
    """Whether Numba is to be asked: it is there, or a setting of these names, or a file, says something else than its
    defaults."""
    return "numba" in sys.modules or os.path.exists(CONFIGURATION) or any(name in os.environ for name in names)


def target() -> tuple[str, str, str]:
    """(triple, name, features) of the processor that is compiled for, as LLVM calls them."""
    if numba_decides("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX"):
        import_numba()  # which another thread may be at
        from ..compile.numba_internals import cpu_target

        return cpu_target.target_context.codegen().magic_tuple()
    return binding.get_process_triple(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


def cores() -> int:
    """How many threads there are: NUMBA_NUM_THREADS, else one for each core that the process may use."""
    text = os.environ.get("NUMBA_NUM_THREADS", "").strip()
    if text.isdecimal() and int(text) > 0:
        return int(text)
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
