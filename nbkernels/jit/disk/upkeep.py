"""Upkeep of the cache directory: its contents, and the removal of old toolchains and of the least recently used code.

Processes that use what goes need not be asked. A file goes whole, what a process has loaded it keeps, and what it does
not find it compiles. Nothing goes but directories with the name of a toolchain, and of these the files that this
library makes: no link is followed, and a directory with anything else in it stays.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from . import files

SIZE = "NBKERNELS_CACHE_SIZE"
DEFAULT = 1 << 30  # bytes of all entries, where SIZE says nothing else
UNUSED = 30 * files.DAY  # what was not used for so long goes
_ENTRY = re.compile(r".+\.nbc")
_OTHERS = re.compile(r"(toolchain|tiles)\.json")
_BEGUN = re.compile(r".+\.(nbc|json)\w{8}\.tmp")  # a file that is being made, or was when its process ended
_written = {}  # base directory -> bytes of entries there, by what this process saw and wrote


class File(NamedTuple):
    path: Path
    size: int
    used: float  # when, to the day
    doubt: str | None  # why it is not loaded


class Toolchain(NamedTuple):
    """A directory of compiled code."""

    path: Path
    entries: list[File]
    others: list[File]  # its record, the tuner's winners
    begun: list[File]

    @property
    def size(self) -> int:
        return sum(file.size for file in (*self.entries, *self.others, *self.begun))

    @property
    def used(self) -> float:
        """When it was last used, to the day."""
        return max(file.used for file in (*self.entries, *self.others, *self.begun))

    def doubts(self) -> list[str]:
        """Why some or all of it is not loaded."""
        with contextlib.suppress(OSError):
            if wrong := files.doubt(self.path.stat()):
                return [f"{self.path} {wrong}: nothing in it is loaded"]
        counts = Counter(file.doubt for file in self.entries if file.doubt)
        return [f"{self.path}: {count} of its files are not loaded, each {wrong}" for wrong, count in counts.items()]

    def made_by(self) -> dict:
        """What its record says; empty where there is none to read."""
        with contextlib.suppress(OSError, ValueError, RecursionError):
            made = json.loads((self.path / files.RECORD).read_text(encoding="utf-8"))
            return made if isinstance(made, dict) else {}
        return {}


def toolchains(base: Path) -> list[Toolchain]:
    """All of this user's or root's that are in the directory, by name."""
    found = []
    with contextlib.suppress(FileNotFoundError), os.scandir(base) as inside:
        for each in inside:
            named = re.fullmatch("[0-9a-f]{16}", each.name) and each.is_dir(follow_symlinks=False)
            if named and not files.foreign(each.stat(follow_symlinks=False)):
                lists = _files(each.path)
                if any(lists):
                    found.append(Toolchain(Path(each.path), *lists))
    return sorted(found)


def _files(directory) -> tuple[list[File], list[File], list[File]]:
    kinds = _ENTRY, _OTHERS, _BEGUN
    lists = [], [], []
    with contextlib.suppress(OSError), os.scandir(directory) as inside:
        for each in inside:
            kind = next((number for number, kind in enumerate(kinds) if kind.fullmatch(each.name)), None)
            with contextlib.suppress(OSError):  # it went meanwhile
                if kind is not None and each.is_file(follow_symlinks=False):
                    state = each.stat(follow_symlinks=False)
                    lists[kind].append(File(Path(each.path), state.st_size, state.st_mtime, files.doubt(state)))
    return lists


def remove(toolchain: Toolchain) -> list[str]:
    """Why any of it stays: one line for each reason, none where all went."""
    reasons = {}
    for file in (*toolchain.begun, *toolchain.entries, *toolchain.others):
        try:
            file.path.unlink(missing_ok=True)
        except OSError as error:
            reasons[error.strerror] = None
    if not reasons:
        try:
            toolchain.path.rmdir()
        except FileNotFoundError:
            pass
        except OSError as error:  # foreign files, or what a process has written since
            reasons[error.strerror] = None
    return list(reasons)


def bound() -> tuple[int, str | None]:
    """(bytes that all entries may take, what is wrong with NBKERNELS_CACHE_SIZE)."""
    given = os.environ.get(SIZE, "").strip()
    if not given:
        return DEFAULT, None
    parts = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?(?:([KMGT])(?:i?B)?|B?)", given, re.I | re.A)
    if not parts:
        wanted = "a number of bytes, alone or with K, M, G or T"
        return DEFAULT, f"{SIZE}={given[:40]!r} is no size ({wanted}): {written(DEFAULT)} is used"
    number, unit = parts.groups()
    return int(float(number) * 1024 ** " KMGT".index((unit or " ").upper())), None


def written(size: int) -> str:
    """A number of bytes, for people."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def wrote(base: Path, size: int) -> None:
    """So many bytes were added. The first time in a process old toolchains go, and the rest is counted; from there on
    only what this process adds is, so that processes at once can exceed the bound by what they write."""
    most, wrong = bound()
    if wrong:
        files.notice(wrong)
    with contextlib.suppress(OSError):
        _written[base] = _written[base] + size if base in _written else _swept(base)
        if _written[base] > most:
            _written[base] = _reduced(base, most)


def _swept(base: Path) -> int:
    """Bytes of entries, when toolchains not used for 30 days are gone, and what was begun and left a day ago."""
    total, now = 0, time.time()
    for toolchain in toolchains(base):
        if now - toolchain.used > UNUSED:
            remove(toolchain)
            continue
        for file in toolchain.begun:
            if now - file.used > files.DAY:
                _gone(file)
        total += sum(file.size for file in toolchain.entries)
    return total


def _reduced(base: Path, most: int) -> int:
    """Bytes of entries, when those that were not used for longest are gone: more than must be, or every further entry
    would ask again."""
    entries = sorted((file for toolchain in toolchains(base) for file in toolchain.entries), key=lambda file: file.used)
    total = sum(file.size for file in entries)
    if total > most:
        for file in entries:
            if total <= most * 0.9:
                break
            if _gone(file):
                total -= file.size
    return total


def _gone(file: File) -> bool:
    try:
        file.path.unlink(missing_ok=True)
        return True
    except OSError:  # Windows keeps what is open
        return False


def doubts() -> list[str]:
    """What this process's directory has that is not loaded, what is wrong with the bound, and what was noticed."""
    said = []
    with contextlib.suppress(OSError):
        said = [line for each in toolchains(files.base()) if each.path == files.directory() for line in each.doubts()]
    return list(dict.fromkeys([*said, *filter(None, [bound()[1]]), *files.NOTICES]))
