"""The cubin of a Kernel and the assembler's report, without device or driver: tests measure what a launch loads."""

from __future__ import annotations

import contextlib
import functools
import pickle
import subprocess
import sys
from dataclasses import replace

from cuda.bindings import nvjitlink
from numba import types
from numba.cuda.compiler import compile_cuda, kernel_fixup
from numba.cuda.core.compiler_lock import global_compiler_lock
from numba.cuda.cudadrv import nvrtc, nvvm

from ..jit.abi.flags import default_modes
from ..jit.compile.cache import uncollected
from . import toolchain
from .compiler import spared
from .cubins import Machine, architecture, written
from .launch import Kernel

# No contraction: x + alpha*y keeps its two roundings as on the CPU; where one is meant, the source says cuda.fma.
NVVM = {"opt": 3, "fastmath": False, "fma": False}


def assemble(kernel: Kernel, cc: tuple) -> Machine:
    """Compile the kernel for a compute capability, e.g. (9, 0); for fewer blocks at a time where it spills registers
    otherwise."""
    made = _assembled(kernel, architecture(cc))
    if kernel.blocks > 1 and made.resources.spilled:
        made = _assembled(replace(kernel, blocks=1), architecture(cc))
    return made


class Refused(RuntimeError):
    """NVVM does not compile a kernel; the message is its log."""


def or_elsewhere(make):
    """make(kernel, cc), and where NVVM refuses the kernel, the same by a process of its own. In two runs of the tests
    it refused one of some thousand kernels ("unsupported operation") whenever that process asked, and took it from all
    others (CUDA 13.5, 2026-11)."""

    @functools.wraps(make)
    def made(kernel: Kernel, cc: tuple):
        try:
            return make(kernel, cc)
        except Refused:
            try:
                task = pickle.dumps((make.__name__, kernel, cc))
                done = subprocess.run([sys.executable, "-c", CHILD], input=task, capture_output=True, check=True)
                return pickle.loads(done.stdout)
            except Exception:  # no process, nothing it can import, or refused again: the first error stands
                pass
            raise

    return made


CHILD = f"""
import pickle, sys
import {__name__} as here
name, kernel, cc = pickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(pickle.dumps(getattr(here, name).__wrapped__(kernel, cc)))
"""


@or_elsewhere
def _assembled(kernel: Kernel, cc: tuple) -> Machine:
    code, entry = _compile(kernel, cc)
    with _link(code, cc) as handle:
        cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, cubin)
        report = _text(nvjitlink.get_info_log, nvjitlink.get_info_log_size(handle), handle)
    return Machine(bytes(cubin), entry, report)


def known(cc: tuple) -> None:
    """A RuntimeError that says what to do where CUDA's compiler here does not know a compute capability."""
    every = sorted(nvrtc.get_supported_ccs())
    if cc[:2] not in every:
        first, last, wanted = (".".join(map(str, each[:2])) for each in (every[0], every[-1], cc))
        newer = (
            "a newer CUDA: pip install -U 'numba-cuda[cu13]'" if cc > every[0] else "an older one: nbkernels[cuda12]"
        )
        raise RuntimeError(f"CUDA's compiler here knows GPUs of compute capability {first} to {last}, not {wanted}; "
                           f"install {newer}")  # fmt: skip


@or_elsewhere
def ptx(kernel: Kernel, cc: tuple) -> str:
    """The PTX that `assemble` turns into a cubin: for reading."""
    cc = architecture(cc)
    code, _ = _compile(kernel, cc)
    with _link(code, cc, "-ptx") as handle:
        return _text(nvjitlink.get_linked_ptx, nvjitlink.get_linked_ptx_size(handle), handle)


def _compile(kernel: Kernel, cc: tuple) -> tuple[bytes, str]:
    """(LTO-IR, name of the entry)"""
    toolchain.ready()
    known(cc)
    body, signature = kernel.source()
    with global_compiler_lock, uncollected(), default_modes(), spared():
        result = compile_cuda(body, types.void, signature, cc=cc, nvvm_options=dict(NVVM), lto=True)
    function = result.library.get_function(result.fndesc.llvm_func_name)
    kernel_fixup(function, False)
    nvvm.set_launch_bounds(function, (kernel.threads, kernel.blocks))
    return result.library.get_ltoir(cc=cc), function.name


@contextlib.contextmanager
def _link(code: bytes, cc: tuple, *more: str):
    """nvJitLink's handle after the link; cuda.core's Linker would do, but spells fma=False as nvJitLink refuses it."""
    options = [f"-arch={written(cc)}", "-lto", "-fma=0", "-verbose", *more]
    handle = nvjitlink.create(len(options), options)
    try:
        nvjitlink.add_data(handle, nvjitlink.InputType.LTOIR, code, len(code), "kernel")
        try:
            nvjitlink.complete(handle)
        except nvjitlink.nvJitLinkError as error:
            log = _text(nvjitlink.get_error_log, nvjitlink.get_error_log_size(handle), handle)
            raise Refused(log) from error
        yield handle
    finally:
        nvjitlink.destroy(handle)


def _text(read, size: int, handle) -> str:
    buffer = bytearray(size)
    read(handle, buffer)
    return buffer.rstrip(b"\0").decode()
