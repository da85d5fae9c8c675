"""The machine's caches and kind, as planners and compiled code read them: at run time, never compiled in.

What the system tells, or defaults. The environment's NBKERNELS_MACHINE names a JSON file whose fields go before it,
{"l1": bytes, "l2": bytes, "l3": bytes, "costs": kind}, for a machine that tells nothing, or to plan as another one
would; costs that the tuner has fitted to this machine go before a kind's (gemm/cost.py). Compiled code finds the bytes
by the name of a symbol, so a kernel on disk serves machines with other caches.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from llvmlite import binding, ir

from ...jit.compile.lazy import emits
from ...jit.disk import levels
from ...jit.ir.vector import I64, outside, width_bits

VARIABLE, SYMBOL = "NBKERNELS_MACHINE", "nbkernels_machine"
LEVELS = {1: "l1", 2: "l2", 3: "l3"}


@dataclass(frozen=True)
class Machine:
    """Bytes of one core's first cache for data, of its second, and of the third, which cores share; 0 where there is
    no third. Then the kind of processor by whose costs products choose their path (gemm/cost.py); by the vectors' width
    where it is none."""

    l1: int = 32 << 10
    l2: int = 512 << 10
    l3: int = 0
    costs: str = ""

    @property
    def sizes(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in LEVELS.values()}

    def flaw(self) -> str | None:
        """Why it is no machine's record."""
        if any(type(size) is not int for size in self.sizes.values()) or type(self.costs) is not str:
            return f"sizes in bytes are wanted, and a name: {asdict(self)}"
        if not (4096 <= self.l1 <= self.l2 <= 1 << 40 and (self.l3 == 0 or self.l2 <= self.l3 <= 1 << 40)):
            return f"4096 <= l1 <= l2 <= l3 is wanted: {asdict(self)}"
        return None


@functools.cache
def machine() -> Machine:
    """The record of this process: what the environment's file or the system tells."""
    return _stated()[0] or detected()


def place() -> str:
    """The machine, as the tuner's winners are kept for it."""
    return f"{levels.target()[1]} {width_bits()} bits, L1 {machine().l1}, L2 {machine().l2}"


def plan_key(dtype: str) -> str:
    """What the costs that the tuner fitted to this machine are kept under."""
    return f"plans of {dtype} on {place()}"


@functools.cache
def problem() -> str | None:
    """Why the file that the environment names counts as none."""
    return _stated()[1]


def _stated() -> tuple[Machine | None, str | None]:
    """The record by the environment's file, None where there is none or it has a flaw; and the flaw."""
    path = os.environ.get(VARIABLE)
    if not path:
        return None, None
    try:
        found = replace(detected(), **json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        return None, f"{VARIABLE}={path} is not used: {error}"
    flaw = found.flaw()
    return (None, f"{VARIABLE}={path} is not used: {flaw}") if flaw else (found, None)


@functools.cache
def detected() -> Machine:
    """What the system tells, where that is a record; the defaults for the rest."""
    ask = {"linux": _linux, "darwin": _macos, "win32": _windows}.get(sys.platform, dict)
    try:
        found = replace(Machine(), **{LEVELS[level]: size for level, size in ask().items() if size > 0})
    except (OSError, AttributeError, ValueError):
        return Machine()
    return Machine() if found.flaw() else found


def _linux(root=Path("/sys/devices/system/cpu/cpu0/cache")) -> dict[int, int]:
    sizes = {}
    for index in root.glob("index*"):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction" and int(level) in LEVELS and size.endswith("K"):
            sizes[int(level)] = int(size[:-1]) << 10
    return sizes


def _macos() -> dict[int, int]:
    library = ctypes.CDLL(None)

    def ask(name):
        value, size = ctypes.c_int64(), ctypes.c_size_t(8)
        failed = library.sysctlbyname(name.encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0))
        return 0 if failed else value.value

    names = {1: "l1dcachesize", 2: "l2cachesize", 3: "l3cachesize"}
    return {level: ask(f"hw.perflevel0.{name}") or ask(f"hw.{name}") for level, name in names.items()}


class _Cache(ctypes.Structure):
    """SYSTEM_LOGICAL_PROCESSOR_INFORMATION of Windows, as of a cache."""

    _fields_ = [
        ("mask", ctypes.c_size_t), ("relation", ctypes.c_int), ("level", ctypes.c_uint8), ("ways", ctypes.c_uint8),
        ("line", ctypes.c_uint16), ("size", ctypes.c_uint32), ("kind", ctypes.c_int), ("rest", ctypes.c_uint32),
    ]  # fmt: skip


def _windows() -> dict[int, int]:
    ask, length = ctypes.windll.kernel32.GetLogicalProcessorInformation, ctypes.c_uint32()
    ask(None, ctypes.byref(length))
    rows = (_Cache * (length.value // ctypes.sizeof(_Cache)))()
    return _of_windows(rows) if ask(rows, ctypes.byref(length)) else {}


def _of_windows(rows) -> dict[int, int]:
    """Caches are relation 2; of instructions alone they are kind 1."""
    return {row.level: row.size for row in rows if row.relation == 2 and row.kind != 1 and row.level in LEVELS}


_words = np.array(list(machine().sizes.values()), np.int64)
binding.add_symbol(SYMBOL, _words.ctypes.data)


@emits("int64()")
def l2(builder):
    """Bytes of L2, from compiled code."""
    record = outside(builder, SYMBOL, ir.ArrayType(I64, len(_words)))
    return builder.load(builder.gep(record, [I64(0), I64(list(LEVELS.values()).index("l2"))]))
