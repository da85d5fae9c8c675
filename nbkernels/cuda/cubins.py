"""The cubin of a Kernel, from the library's cache or from the package, or compiled now and kept.

A kernel is known by text: what makes it, its arguments, threads, blocks and shared memory, the architecture. Files of
the cache lie in its one directory, which the sources and versions name (jit/disk/files.py); their names add the
versions of CUDA's compiler. The package, or a folder that CARRIED names, has

    DIR/<sources>/<architecture>/*.nbc

of which the sources alone must be the same: machine code asks for no compiler, and for no version of Python.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import threading
import time
from dataclasses import dataclass, fields, is_dataclass
from importlib import metadata
from pathlib import Path
from types import FunctionType

from ..code_origins import CACHED, COMPILED, PACKAGED, Specialization, note
from ..jit.disk import files, sources
from . import toolchain
from .launch import Kernel

CARRIED = [sources.PACKAGE / "prebuilt" / "cuda"]  # folders as `python -m nbkernels prebuild --cuda` makes them
COMPILERS = ("numba-cuda", "nvidia-nvvm", "nvidia-cuda-nvcc-cu12", "nvidia-nvjitlink", "nvidia-nvjitlink-cu12")


@dataclass(frozen=True)
class Resources:
    """What one thread and one block of a kernel hold: registers per thread, the rest in bytes."""

    registers: int
    spilled: int
    stack: int
    shared: int

    def __str__(self) -> str:
        return f"{self.registers} registers, {self.spilled} B spilled, {self.stack} B stack, {self.shared} B shared"


@dataclass(frozen=True)
class Machine:
    """A kernel's machine code, the name of its entry, and what the assembler reports of it, which may be nothing;
    `fresh`: compiled by this process."""

    cubin: bytes
    entry: str
    report: str
    fresh: bool = True

    @property
    def resources(self) -> Resources:
        """The numbers in the report: sums over the functions that it lists, registers of the largest."""

        def total(pattern: str) -> int:
            return sum(map(int, re.findall(pattern, self.report)))

        if not (registers := re.findall(r"Used (\d+) registers", self.report)):
            raise RuntimeError(f"{self.entry}: the assembler reports no registers, only {self.report!r}")
        return Resources(
            registers=max(map(int, registers)),
            spilled=total(r"(\d+) bytes spill stores") + total(r"(\d+) bytes spill loads"),
            stack=total(r"(\d+) bytes stack frame"),
            shared=total(r"(\d+) bytes smem"),
        )

    def content(self) -> bytes:
        """A file's content: a line of JSON, then the cubin."""
        return json.dumps({"entry": self.entry, "report": self.report}).encode() + b"\n" + self.cubin

    @classmethod
    def of(cls, content) -> Machine:
        """The machine code that a file's content holds."""
        head, _, cubin = bytes(content).partition(b"\n")
        return cls(cubin, **json.loads(head), fresh=False)


def architecture(cc: tuple) -> tuple:
    """What is compiled for a compute capability: from 9.0 on with the instructions of that generation alone, "a".

    >>> architecture((8, 6)), architecture((9, 0))
    ((8, 6), (9, 0, 'a'))
    """
    return (*cc[:2], "a") if cc >= (9, 0) else tuple(cc)


def parse(text: str) -> tuple:
    """The architecture that a text names.

    >>> parse("9.0a"), parse("8.6"), parse("sm_120")
    ((9, 0, 'a'), (8, 6), (12, 0, 'a'))
    """
    if not (found := re.fullmatch(r"(?:sm_)?(\d+?)\.?(\d)a?", text)):
        raise ValueError(f"{text!r} is no compute capability, such as 8.6 or 9.0a")
    return architecture(tuple(map(int, found.groups())))


def written(arch: tuple) -> str:
    """An architecture as assemblers spell it: sm_90a."""
    return "sm_" + "".join(map(str, arch))


def key(argument) -> str:
    """An argument of a kernel as text that any process makes of an equal one. A function is named by its module: of
    the library's functions that is all, and a user's, which jit/user/scalar_function.py copies, bears a digest of what
    it reads."""
    if isinstance(argument, tuple):
        return f"({', '.join(map(key, argument))})"
    if is_dataclass(argument):
        return type(argument).__name__ + key(tuple(getattr(argument, field.name) for field in fields(argument)))
    if isinstance(argument, FunctionType):
        if not argument.__module__.startswith(f"{__package__.partition('.')[0]}."):
            raise TypeError(f"{argument.__qualname__} of {argument.__module__} is no function of the library's")
        return f"{argument.__module__}:{argument.__qualname__}"
    return repr(argument)


def name(kernel: Kernel, arch: tuple, *more) -> str:
    """The name of a kernel's file."""
    parts = (kernel.make, key(kernel.arguments), kernel.threads, kernel.blocks, kernel.shared, kernel.cluster)
    digest = hashlib.sha256(repr((*parts, written(arch), *more)).encode()).hexdigest()[:24]
    return f"{kernel.make.rpartition('.')[2].replace(':', '-')}-{digest}.nbc"


@functools.cache
def compiler() -> tuple[str, ...]:
    """What compiles CUDA kernels here, asked without importing any of it: versions of packages, and the place of a
    toolkit that is none, which bears its version."""
    found = []
    with contextlib.suppress(ImportError):  # there is none
        found += [os.path.realpath(home) for home in (toolchain.root(),) if home]
    for package in COMPILERS:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return tuple(found)


@functools.cache
def folder() -> str:
    """Of these sources, in a folder of carried cubins."""
    return sources.digest(*sources.OF_CUDA)[:16]


def own(kernel: Kernel, arch: tuple) -> Path | None:
    """The kernel's file in the cache; None where nothing can be kept."""
    directory = files.directory()
    return directory and directory / name(kernel, arch, *compiler())


def carried(kernel: Kernel, arch: tuple, place: Path) -> Path:
    """The kernel's file in a folder of carried cubins."""
    return place / folder() / written(arch) / name(kernel, arch)


def carry(kernel: Kernel, arch: tuple, place: Path) -> None:
    """Let a folder of carried cubins have the kernel."""
    file = carried(kernel, arch, place)
    if files.read(file) is None:
        file.parent.mkdir(parents=True, exist_ok=True)
        content = machine(kernel, arch).content()
        files.put(file, files.seal(file, content), content)


def places(kernel: Kernel, arch: tuple):
    """(where from, file) of code that would do, the best first."""
    if file := own(kernel, arch):
        yield CACHED, file
    for place in CARRIED:
        with contextlib.suppress(OSError):  # a package without sources or code objects
            yield PACKAGED, carried(kernel, arch, place)


def where(kernel: Kernel, arch: tuple) -> str:
    """Where the kernel's code is; empty where it is nowhere."""
    return next((origin for origin, file in places(kernel, arch) if file.exists()), "")


def find(kernel: Kernel, arch: tuple) -> Machine | None:
    """The kernel's machine code where it is on disk."""
    start = time.perf_counter()
    for origin, file in places(kernel, arch):
        if content := files.read(file):
            found = Machine.of(content)
            note(Specialization(f"{kernel} {written(arch)}", origin, len(found.cubin), time.perf_counter() - start))
            return found
    return None


def compiled(kernel: Kernel, arch: tuple) -> Machine:
    """The kernel's machine code, compiled now and kept in the cache."""
    toolchain.ready()  # or an error that says what is missing, in place of an import's
    from .assemble import assemble

    start = time.perf_counter()
    made = assemble(kernel, arch)
    note(Specialization(f"{kernel} {written(arch)}", COMPILED, len(made.cubin), time.perf_counter() - start))
    if file := own(kernel, arch):
        files.write(file, made.content())
    else:
        files.notice(f"what is compiled is not kept: {files.problem()} ({files.ELSEWHERE})")
    return made


def machine(kernel: Kernel, cc: tuple) -> Machine:
    """The kernel's machine code for a compute capability, from disk where it is there. Of threads that ask for one
    kernel at once, one compiles it."""
    arch = architecture(cc)
    with _locks.setdefault((kernel, arch), threading.Lock()):
        return find(kernel, arch) or compiled(kernel, arch)


_locks = {}
