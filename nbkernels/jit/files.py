"""Compiled functions on disk: where they are kept, under which key, and how a file is known to be whole.

One file holds one compiled function. Its directory is named by the hash of every source of the library and of the
versions that compile it; files appear by an atomic rename, sealed by a hash, and whatever is not as it was written
counts as absent.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import tempfile
from pathlib import Path

import llvmlite
import numba

PACKAGE = Path(__file__).resolve().parent.parent


@functools.cache
def directory() -> Path | None:
    """Where compiled code is kept: NBKERNELS_CACHE_DIR or the user's cache directory; None if it cannot be written."""
    base = os.environ.get("NBKERNELS_CACHE_DIR")
    if not base:
        import platformdirs

        base = platformdirs.user_cache_dir("nbkernels", appauthor=False)
    path = Path(base) / toolchain()
    try:
        path.mkdir(parents=True, exist_ok=True)
        return path if os.access(path, os.W_OK) else None
    except OSError:
        return None


def toolchain() -> str:
    """Hash of every source that machine code is made from and of the versions that make it."""
    digest = hashlib.sha256(
        repr((numba.__version__, llvmlite.__version__, sys.implementation.cache_tag, sys.abiflags)).encode()
    )
    for name in sources():
        digest.update(str(name.relative_to(PACKAGE)).encode() + b"\0" + name.read_bytes())
    for option in sorted(k for k in os.environ if k.startswith("NUMBA_") and k not in _HARMLESS):
        digest.update(f"{option}={os.environ[option]}".encode())
    return digest.hexdigest()[:16]


def sources() -> list[Path]:
    """The files that machine code is made from."""
    return sorted(file for part in _COMPILED for file in PACKAGE.glob(part))


_COMPILED = (
    *("jit/*.py", "cpu/*.py", "cuda/*.py", "scalar/*.py"),
    *("real.py", "coefficients.py", "transcendental.py", "powers.py", "activations.py"),
)

# These change where and how Numba works, not what it compiles.
_HARMLESS = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER", "NUMBA_THREADING_LAYER_PRIORITY",
             "NUMBA_ENABLE_CUDASIM"}  # fmt: skip


SEAL = 32  # bytes at the start of a file


def seal(file: Path, content) -> bytes:
    """A hash of what a file holds, its name and its directory's: machine code with a flipped bit, or of another
    function, would end the process. It takes 2 us for a kilobyte (2026-11)."""
    digest = hashlib.blake2b(f"{file.parent.name}/{file.name}".encode() + b"\0", digest_size=SEAL)
    digest.update(content)
    return digest.digest()


def read(file: Path) -> memoryview | None:
    """What `write` left there, None for anything else."""
    try:
        content = memoryview(file.read_bytes())
    except OSError:
        return None
    return content[SEAL:] if content[:SEAL] == seal(file, content[SEAL:]) else None


def write(file: Path, content: bytes) -> None:
    """Make the file, whole or not at all: a full or vanished disk costs the next process a compilation, no more."""
    with contextlib.suppress(OSError):
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=file.name, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(seal(file, content))
                stream.write(content)
            os.replace(temporary, file)
        except BaseException:
            os.unlink(temporary)
            raise
