"""The tuner's winners, as products of every device read them: one file of all machines', read once a process.

It stands beside the directories of compiled code and outlives upgrades. What is missing, broken or another machine's is
as if it were not there; NBKERNELS_TUNED=0 leaves the file unread.
"""

from __future__ import annotations

import functools
import os
from dataclasses import fields

from .jit.disk import files
from .problem import CLASSES, LAYOUTS
from .store import Store

FILE = "tiles.json"
LARGEST = 1 << 24  # of a size: what is larger was never measured


def store() -> Store | None:
    """Where winners are kept; None where nothing can be, or others than this user can have written it."""
    directory = files.directory()
    if directory is None:
        return None
    path = directory.parent / FILE
    return None if files.distrust(path) else Store(path)


def key(name: str, which: int, place: str) -> str:
    """What the winner of a kind of product is kept under, for a slot (problem.slot) and a machine."""
    return f"gemm {name} {CLASSES[which // 4]} {LAYOUTS[which % 4]} on {place}"


@functools.cache
def entries() -> dict:
    """The file, as this process has found it; empty where it is not to be read."""
    if os.environ.get("NBKERNELS_TUNED", "1") == "0" or not (found := store()):
        return {}
    return found.entries()


def find(name: str, which: int, place: str, record):
    """record(**sizes) of the winner, or None: not there, of another version with other fields, or no sizes."""
    entry = entries().get(key(name, which, place))
    try:
        tiles = None if entry is None else record(**entry["candidate"])
    except TypeError:
        return None
    return tiles if tiles and all(sound(getattr(tiles, field.name), field.type) for field in fields(record)) else None


def sound(value, kind: str) -> bool:
    """Whether a field holds what it is declared as; a size is from 1 to LARGEST."""
    return type(value).__name__ == kind and (kind != "int" or 0 < value <= LARGEST)


def judged(name: str, which: int, place: str) -> list[tuple[int, int, int]]:
    """(m, n, k) of the products that a winner was measured on; empty where that is not known."""
    try:
        return [(int(m), int(n), int(k)) for m, n, k, *_ in entries()[key(name, which, place)]["lanes"]]
    except (KeyError, TypeError, ValueError):
        return []
