"""The mode of products that name none: modes(...), NBKERNELS_MODE, or the fastest one of the device."""

from __future__ import annotations

import functools
import importlib
import os
import sys

from .meta import MODES
from .shield import Nested

VARIABLE, OF_GPUS = "NBKERNELS_MODE", ("chain", "tf32")
OF_CPU = "nbkernels.cpu.gemm.kinds"  # by name: it is imported with the kernels
# What goes by modes when it is made, and has then to be made anew.
FORGETTING = (("nbkernels.cpu.gemm.fast", "forget"), ("nbkernels.cuda.replay", "forget"))


def asked(dtype: str, of_gpus: bool = False) -> str | None:
    """The mode of products of a dtype that the innermost block asks for, else the environment; None where neither does,
    or where it is one of processors and GPUs are asked about."""
    block = modes.innermost()
    mode = (_of_environment() if block is None else block.by_dtype).get(dtype)
    return None if of_gpus and mode not in OF_GPUS else mode


@functools.cache
def _of_environment() -> dict[str, str]:
    names = [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]
    try:
        return _by_dtype(names)
    except ValueError as error:
        raise ValueError(f"{VARIABLE}={os.environ[VARIABLE]}: {error}") from None


def _by_dtype(names) -> dict[str, str]:
    """{dtype: mode} of modes, or a ValueError that says which there are."""
    found = {}
    for name in names:
        if name not in MODES:
            raise ValueError(f"there is no mode {name!r}; there are {', '.join(map(repr, MODES))}")
        if name not in OF_GPUS and not (has := importlib.import_module(OF_CPU).has)(name):
            able = ", ".join(repr(each) for each in MODES if has(each))
            raise ValueError(f"this processor has no mode {name!r}; wanted is one of {able}")
        for dtype in MODES[name]:
            if name not in OF_GPUS and not has(name, dtype):
                continue
            if found.setdefault(dtype, name) != name:
                raise ValueError(f"modes {found[dtype]!r} and {name!r} are both of {dtype}")
    return found


def _renew() -> None:
    for module, name in FORGETTING:
        if module in sys.modules:
            getattr(sys.modules[module], name)()


class modes(Nested):
    """with modes("chain"): products in the block take these modes where a call names none

    A mode, as `help(nbkernels.addmm)` lists them, holds for the dtypes that it is of: "chain" for float16 and
    bfloat16 on every device, "tf32" for float32 on GPUs, "bf16_dot" for bfloat16 and "amx" for both halves on
    processors that have them. Without one, the device takes what it is fastest by, and so does `modes()`.
    NBKERNELS_MODE=chain asks for the same in all of a process, of several by commas. Of blocks within each other the
    inner one holds, for all threads of the process. Jitted code keeps the modes that it was first called with.

    Raises ValueError for modes that are none, that this processor has not, or of which two are of one dtype.

    >>> import nbkernels
    >>> with nbkernels.modes("chain"):  # float16 and bfloat16 have the same bits on every processor and GPU
    ...     pass
    """

    def __init__(self, *names: str):
        self.by_dtype = _by_dtype(names)

    _renewed = staticmethod(_renew)
