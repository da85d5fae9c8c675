"""numba-cuda and CUDA's own libraries made ready to compile, as they come: from wheels, conda or a system's CUDA.

numba-cuda 0.30 finds the wheels' libraries and those of CUDA_HOME, and knows a system's CUDA only as /usr/local/cuda;
it asks NumPy for row_stack, which 2.5 has not.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import os
import shutil
import sys
from importlib import util
from pathlib import Path

import numpy as np

LIBDEVICE = "nvvm/libdevice/libdevice.10.bc"
LIBRARIES = ("nvvm", "nvJitLink")  # by cuda.pathfinder's names
HINT = "install numba-cuda[cu13] (or [cu12] for drivers before r580), or let CUDA_HOME name a CUDA toolkit"


@functools.cache
def ready() -> None:
    """Import numba.cuda's compiler, and tell it where CUDA is; an ImportError that says in a line what is missing."""
    if home := root():
        os.environ["CUDA_HOME"] = home
    try:
        from cuda import pathfinder

        for library in LIBRARIES:
            pathfinder.load_nvidia_dynamic_lib(library)
        with row_stack():
            import numba.cuda.np.arrayobj  # noqa: F401
    except (ImportError, RuntimeError) as error:  # pathfinder's error is a RuntimeError
        raise ImportError(f"CUDA kernels cannot be compiled here: {brief(error)}; {HINT}") from error


def brief(error) -> str:
    """An error's first line."""
    return next(iter(str(error).splitlines()), type(error).__name__)[:200]


@contextlib.contextmanager
def row_stack():
    """NumPy has row_stack in the block."""
    lacking = not hasattr(np, "row_stack")
    if lacking:
        np.row_stack = lambda arrays: np.vstack(arrays)
    try:
        yield
    finally:
        if lacking:
            del np.row_stack


def root() -> str | None:
    """The CUDA toolkit that numba-cuda has to be told of; None where it finds libdevice by itself. An ImportError where
    no place has it."""
    found = next((place for place in places() if os.path.exists(os.path.join(place, LIBDEVICE))), None)
    if found is None:
        raise ImportError(f"CUDA kernels cannot be compiled here: libdevice.10.bc is not found; {HINT}")
    return None if found in wheels() or found == sys.prefix else found


def places() -> list[str]:
    """Where a CUDA toolkit may be, in the order in which numba-cuda looks, then the usual places."""
    named = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    compiler = shutil.which("nvcc")
    beside = [str(Path(compiler).resolve().parent.parent)] if compiler else []
    versions = sorted(glob.glob("/usr/local/cuda-*"), key=version, reverse=True)
    return [*wheels(), sys.prefix, *named, *beside, "/usr/local/cuda", *versions, "/opt/cuda", "/usr/lib/cuda",
            "/usr/lib/nvidia-cuda-toolkit"]  # fmt: skip


def version(path: str) -> list[int]:
    """Numbers in a directory's name, by which the newest is first."""
    return [int(part) for part in Path(path).name.rpartition("-")[2].split(".") if part.isdigit()]


@functools.cache
def wheels() -> list[str]:
    """Directories of NVIDIA's wheels that hold a compiler."""
    spec = util.find_spec("nvidia")
    found = spec.submodule_search_locations if spec else ()
    return [os.path.join(place, name) for place in found or () for name in ("cu13", "cuda_nvcc")]
