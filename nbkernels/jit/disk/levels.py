"""Levels of processors, and which compiled code of the package's own this processor can run.

A level is a set of instructions: one of LEVELS, "+" and more of LLVM's features. The package may carry compiled
functions for some, in prebuilt/<toolchain>/<level>/, made by `python -m nbkernels prebuild`. Of those whose
instructions this processor all has, the largest set serves. A level with narrower vectors than the processor's does
not: its code would be correct, and half as fast as what the compiler makes.
"""

from __future__ import annotations

import contextlib
import functools
import json
from dataclasses import dataclass
from pathlib import Path

from llvmlite import binding

from . import files, settings, sources

PREBUILT = sources.PACKAGE / "prebuilt"

# What each level adds to the one before, by LLVM's names: System V ABI for x86-64, "micro-architecture levels"
# (LAHF-SAHF is sahf there, OSXSAVE xsave, CMPXCHG16B cx16; crc32 is a part of SSE4_2). Arm's ABI has NEON in every
# 64-bit processor.
_X86 = {
    "x86-64": "cmov cx8 fxsr mmx sse sse2",
    "x86-64-v2": "crc32 cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    "x86-64-v4": "avx512bw avx512cd avx512dq avx512f avx512vl",
}
LEVELS = (*_X86, "arm64")
DEFAULT = {"x86-64": ("x86-64-v3", "x86-64-v4", "x86-64-v4+avx512vnni"), "arm64": ("arm64",)}


@dataclass(frozen=True)
class Level:
    """One of LEVELS with `more` features, sorted."""

    base: str
    more: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "+".join((self.base, *self.more))

    @property
    def family(self) -> str:
        return "arm64" if self.base == "arm64" else "x86-64"

    @property
    def cpu(self) -> str:
        """What LLVM calls the processor."""
        return "generic" if self.family == "arm64" else self.base

    @property
    def features(self) -> frozenset[str]:
        if self.family == "arm64":
            return frozenset(("neon", *self.more))
        steps = list(_X86.values())[: list(_X86).index(self.base) + 1]
        return frozenset((*" ".join(steps).split(), *self.more))

    @property
    def target(self) -> tuple[str, str, frozenset[str]]:
        return binding.get_process_triple(), self.cpu, self.features

    def refusal(self, triple: str, features: frozenset[str]) -> str | None:
        """Why its code does not serve a processor with these features; None if it does."""
        if self.family != family(triple):
            return f"it is for {self.family}, not {triple}"
        if lacking := self.features - features:
            return f"the processor lacks {', '.join(sorted(lacking))}"
        own, wide = width(self.features), width(features)
        return f"its vectors have {own} bits, the processor's {wide}" if own < wide else None


def parse(text: str) -> Level:
    """
    >>> parse("x86-64-v4+avx512vnni")
    Level(base='x86-64-v4', more=('avx512vnni',))
    """
    base, *more = text.split("+")
    if base not in LEVELS:
        raise ValueError(
            f"{text!r} is no level of processors: wanted is one of {', '.join(LEVELS)}, or one with +FEATURE"
        )
    if unknown := [feature for feature in more if feature not in binding.get_host_cpu_features()]:
        raise ValueError(
            f"{text!r}: LLVM knows no feature {', '.join(map(repr, unknown))} of this machine's processors"
        )
    return Level(base, tuple(sorted(set(more) - Level(base).features)))


def family(triple: str) -> str | None:
    """Whose levels a target's processors have."""
    if triple.startswith(("x86_64", "amd64")):
        return "x86-64"
    return "arm64" if triple.startswith(("aarch64", "arm64")) else None


def width(features: frozenset[str]) -> int:
    """Bits of the widest vector that such a processor multiplies and adds in one instruction."""
    if "avx512f" in features:
        return 512
    return 256 if {"avx2", "fma"} <= features else 128


# -- this process ------------------------------------------------------------------------------------------------------

building: Level | None = None  # what this process compiles for, if not for itself: cross.start()
out: Path  # where its code goes


@functools.cache
def target() -> tuple[str, str, frozenset[str]]:
    """(triple, CPU name, features) that is compiled for: the host's, or what NUMBA_CPU_NAME/_FEATURES say, or a
    level's."""
    if building:
        return building.target
    triple, cpu, features = settings.target()
    return triple, cpu, frozenset(f[1:] for f in features.split(",") if f.startswith("+"))


@functools.cache
def processor() -> str:
    """What is compiled for, as a key: with all that Numba was told of the host."""
    return str(building) if building else repr(settings.target())


@functools.cache
def _made() -> Path | None:
    """Where packaged code lies that was made by these versions from these sources."""
    return PREBUILT / files.toolchain() if PREBUILT.is_dir() else None


def packaged() -> list[Level]:
    """Levels that the package has code for, by these versions and sources; the largest set of instructions first."""
    found = []
    for path in _made().glob("*/") if _made() else ():
        with contextlib.suppress(ValueError):  # of a directory that nobody built
            found.append(parse(path.name))
    return sorted(found, key=lambda level: (len(level.features), str(level)), reverse=True)


def files_of(level: Level) -> list[Path]:
    """A packaged level's compiled functions."""
    return sorted((_made() / str(level)).glob("*.nbc"))


def choose(levels: list[Level], triple: str, features: frozenset[str]) -> tuple[Level | None, dict[Level, str]]:
    """The first level that serves a processor with these features, and why each one before it does not."""
    reasons = {}
    for level in levels:
        reason = level.refusal(triple, features)
        if reason is None:
            return level, reasons
        reasons[level] = reason
    return None, reasons


@functools.cache
def serving() -> tuple[Level | None, dict[Level, str]]:
    """What `choose` says for this process."""
    triple, _, features = target()
    return (None, {}) if building else choose(packaged(), triple, features)


@functools.cache
def directory() -> Path | None:
    """Of the packaged code that serves this process."""
    level, _ = serving()
    return _made() / str(level) if level else None


@functools.cache
def problem() -> str | None:
    """Why none of the packaged code serves here; None where some does, or there is none."""
    level, reasons = serving()
    if level or building or not PREBUILT.is_dir():
        return None
    if reasons:
        return "; ".join(f"{level}: {reason}" for level, reason in reasons.items())
    here = files.made_by()
    for record in sorted(PREBUILT.glob(f"*/{files.RECORD}")):
        with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):  # no record of ours
            made = json.loads(record.read_text(encoding="utf-8"))
            wrong = [f"{name} {made.get(name)}, not {here[name]}" for name in _VERSIONS if made.get(name) != here[name]]
            wrong += [f"other {name}" for name in ("options", "sources") if made.get(name) != here[name]]
            return f"made for {', '.join(wrong)}"
    return None


_VERSIONS = "python", "platform", "numba", "llvmlite"


def tell() -> None:
    """Say once, where something is to be compiled, that packaged code is there and does not serve."""
    if why := problem():
        files.notice(f"the package's compiled kernels are not used, new ones are compiled: {why}")
