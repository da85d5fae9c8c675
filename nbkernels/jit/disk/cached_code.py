"""Look up whether code exists already, by the beginning of its name: in this process, in the cache, in the package."""

from __future__ import annotations

import contextlib
import functools
import os
from fnmatch import fnmatchcase

from ...code_origins import PACKAGED, specializations
from . import files, levels

TO_BE = "to be compiled"


def kept(name: str) -> str:
    """Where the compiled function comes from whose name is so, or begins so and goes on after an underscore; `*` stands
    for anything. One line: what this process has, else where the next call finds it."""
    for each in specializations():
        own = each.name.rpartition(".")[2]
        if fnmatchcase(own, name) or fnmatchcase(own, f"{name}_*"):
            return f"{own}: {each.where}, {each.bytes:,} bytes"
    for where, directory in (("in the cache", files.directory()), (PACKAGED, levels.directory())):
        if directory and any(next(directory.glob(f"{name}{end}.nbc"), None) for end in ("-*", "_*")):
            return f"{name}: {where}{f' {directory.name}' if where == PACKAGED else ''}"
    return f"{name}: {TO_BE}"


@functools.cache
def on_disk(code: str) -> bool:
    """Whether the cache or the package had code whose name matches when this was asked first."""
    return any(fnmatchcase(name, f"{code}-*.nbc") for name in _names())


@functools.cache
def _names() -> tuple[str, ...]:
    """Of the files in the cache and the package."""
    found = []
    for place in filter(None, (files.directory(), levels.directory())):
        with contextlib.suppress(OSError):  # there is none yet, or it cannot be listed
            found += os.listdir(place)
    return tuple(found)
