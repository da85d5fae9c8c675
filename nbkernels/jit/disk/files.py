"""Compiled functions on disk: where they are kept, under which key, and which files are loaded.

One file holds one compiled function. Its directory is named by the hash of the sources and versions that make machine
code; files appear by an atomic rename, sealed by a hash, and whatever is not as it was written counts as absent.

A file is machine code and a pickle: who can write it runs what they like in the process that loads it. So nothing is
loaded, nor written, where another user owns the directory, its parent or the file, or can write it; root is trusted. A
parent further up that others can write lets them put a directory of theirs in this one's place, and that is seen.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import stat
import sys
import sysconfig
import time
import warnings
from importlib import import_module, metadata
from pathlib import Path

from . import sources

RECORD = "toolchain.json"  # in each directory: what made it, and by the file's time when it was last used
DAY = 86400  # seconds: how exactly it is known when something was last used
ELSEWHERE = "NBKERNELS_CACHE_DIR names another place"
NOTICES = []  # what this process was told


def notice(what: str) -> None:
    """Say it in one line, a RuntimeWarning, once a process; `info` repeats it."""
    if what not in NOTICES:
        NOTICES.append(what)
        warnings.warn_explicit(what, RuntimeWarning, "<nbkernels>", 1, module="nbkernels")


def base() -> Path:
    """The directory of all toolchains' directories: NBKERNELS_CACHE_DIR or the user's cache directory; an OSError where
    neither is known: a user without a home directory, as in a container, has none, nor has a ~ in the variable."""
    try:
        return Path(os.environ.get("NBKERNELS_CACHE_DIR") or _users()).expanduser().absolute()
    except (OSError, RuntimeError) as error:
        raise FileNotFoundError(f"no directory of compiled code: {error} ({ELSEWHERE})") from error


def _users() -> str:
    """The user's cache directory; without platformdirs that of Linux."""
    try:
        import platformdirs
    except ImportError:
        return os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "nbkernels")
    return platformdirs.user_cache_dir("nbkernels", appauthor=False)


def directory() -> Path | None:
    """Where this toolchain's code is kept, though perhaps it cannot be written; None where nothing can be kept."""
    return _found()[0]


def problem() -> str | None:
    """Why what this process compiles is not kept; None where it is."""
    return _found()[1]


def status() -> str:
    """The cache's directory, and the reason where code cannot be kept there, in one line."""
    found, wrong = _found()
    if found:
        return f"{found}{f' ({wrong}: nothing is added)' if wrong else ''}"
    return f"none: {wrong}; every process compiles ({ELSEWHERE})"


@functools.cache
def _found() -> tuple[Path | None, str | None]:
    try:
        path = base() / toolchain()
    except OSError as error:
        return None, str(error.__cause__ or error)
    for each in (path.parent, path):
        try:
            each.mkdir(0o700, parents=True, exist_ok=True)
            if wrong := distrust(each):
                return None, wrong
        except OSError as error:
            return None, f"{each} cannot be made ({error.strerror})"
    if not os.access(path, os.W_OK):
        return path, "it cannot be written"
    _used(path)
    return path, None


def distrust(path: Path) -> str | None:
    """Why nothing is loaded from the directory, or from those in it; None where it is not there, too."""
    try:
        wrong = doubt(path.stat())
    except FileNotFoundError:
        return None
    return wrong and f"{path} {wrong}"


def doubt(state: os.stat_result) -> str | None:
    """Why nothing is loaded from a file or directory; None where this user and root alone can have written it. In a
    sticky directory, such as /tmp, others make files and directories of their own, and can take away none of ours."""
    if foreign(state):
        return f"belongs to another user ({state.st_uid})"
    sticky = stat.S_ISDIR(state.st_mode) and state.st_mode & stat.S_ISVTX
    if hasattr(os, "geteuid") and not sticky and state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by others (chmod go-w)"
    return None


def foreign(state: os.stat_result) -> bool:
    """Whether it is another user's. Windows keeps a user's own directory from others by itself."""
    return hasattr(os, "geteuid") and state.st_uid not in (0, os.geteuid())


@functools.cache
def toolchain() -> str:
    """Hash of all that makes machine code, but for the processor."""
    return hashlib.sha256(json.dumps(made_by(), sort_keys=True).encode()).hexdigest()[:16]


def made_by() -> dict:
    """What it is the hash of. Patch releases of Python share compiled code: their bytecode and structures agree."""
    major, minor, *_ = sys.version_info
    return {
        "python": f"{sys.implementation.name} {major}.{minor}{getattr(sys, 'abiflags', '')}",
        "platform": sysconfig.get_platform(),
        "numba": _version("numba"),
        "llvmlite": _version("llvmlite"),
        "options": {k: v for k, v in os.environ.items() if k.startswith("NUMBA_") and k not in _HARMLESS},
        "sources": sources.digest(),
    }


def _version(package: str) -> str:
    """Of a package, which is not imported for the question; the same in every process."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # in a frozen program
        return import_module(package).__version__


# These change where and how Numba works, not what it compiles.
_HARMLESS = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER", "NUMBA_THREADING_LAYER_PRIORITY",
             "NUMBA_ENABLE_CUDASIM"}  # fmt: skip


def _used(path: Path) -> None:
    """The directory is in use: its record, made where there is none, says so to the day."""
    with contextlib.suppress(OSError):
        if (path / RECORD).exists():
            _refresh(path / RECORD, (path / RECORD).stat())
        else:
            version = sys.modules[__name__.partition(".")[0]].__version__
            put(path / RECORD, json.dumps({"nbkernels": version} | made_by(), indent=1).encode())


def _refresh(file: Path, state: os.stat_result) -> None:
    if abs(time.time() - state.st_mtime) > DAY:
        with contextlib.suppress(OSError):  # root's
            os.utime(file)


SEAL = 32  # bytes at the start of a file


def seal(file: Path, content) -> bytes:
    """A hash of what a file holds, its name and its directory's: machine code with a flipped bit, or of another
    function, would end the process. It takes 2 us for a kilobyte (2026-11)."""
    digest = hashlib.blake2b(f"{file.parent.name}/{file.name}".encode() + b"\0", digest_size=SEAL)
    digest.update(content)
    return digest.digest()


def read(file: Path) -> memoryview | None:
    """What `write` left there, None for anything else. A file that is read counts as used, to the day."""
    try:
        with open(file, "rb", buffering=0, opener=_without_waiting) as stream:
            state = os.fstat(stream.fileno())
            if not stat.S_ISREG(state.st_mode):
                return None
            # Who can write the package could as well change its sources.
            packaged = sources.PACKAGE in file.parents
            if wrong := None if packaged else doubt(state):
                notice(f"a file in {file.parent} {wrong}: it is not loaded")
                return None
            content = memoryview(stream.readall())
    except OSError:
        return None
    if content[:SEAL] != seal(file, content[SEAL:]):
        return None
    if not packaged:
        _refresh(file, state)
    return content[SEAL:]


def _without_waiting(path, flags):
    """As os.open; a pipe under the file's name would keep it waiting."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def write(file: Path, content: bytes) -> None:
    """Make the file, whole or not at all, its directory anew where that was removed; a notice where it cannot be."""
    from . import upkeep

    sealed = seal(file, content), content
    try:
        try:
            put(file, *sealed)
        except FileNotFoundError:
            for each in (file.parent.parent, file.parent):
                each.mkdir(0o700, parents=True, exist_ok=True)
            _used(file.parent)
            with contextlib.suppress(FileNotFoundError):  # removed once more, at this very moment
                put(file, *sealed)
    except OSError as error:
        if read(file) is None:  # nor has another process made it
            wrong = f"what is compiled cannot be kept in {file.parent} ({error.strerror})"
            notice(f"{wrong}: later processes compile it again ({ELSEWHERE})")
        return
    upkeep.wrote(file.parent.parent, SEAL + len(content))


def add(file: Path, content: bytes) -> None:
    """Make a file of the package; what cannot be made is an error here."""
    put(file, seal(file, content), content)


def put(file: Path, *parts: bytes) -> None:
    """Make a file, whole or not at all; an OSError where it cannot be made."""
    temporary = f"{file}{os.urandom(4).hex()}.tmp"  # known before it is there: Ctrl-C may come at any moment
    try:
        with open(temporary, "xb", opener=functools.partial(os.open, mode=0o600)) as stream:
            for part in parts:
                stream.write(part)
        os.replace(temporary, file)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):  # with its directory
            os.unlink(temporary)
        raise
