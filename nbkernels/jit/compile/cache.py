"""Compile once, keep on disk: compiled functions, of this process, the cache, the package, or made now.

Numba's cache is keyed by one file's text, keeps an index that two processes can cross, raises on truncated files and on
directories that cannot be written. Here one file holds one compiled function (files.py); its name is the hash of what
was asked for. What is there is loaded (load.py) without Numba; what is not is compiled by it (build.py).
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import importlib
import os
import time
from pathlib import Path

from ...code_origins import CACHED, COMPILED, PACKAGED, Specialization, note
from ...shield import in_children
from ..disk import files, levels
from ..disk.load import Code

RECORD = "nbkernels.calls.record"  # by name, where a record is asked for


class Place:
    """Where the code of a function of one signature is kept; `way`: how it is to be called."""

    def __init__(self, name: str, signature: str, way: str):
        self.name, self.signature, self.way = name, signature.replace(" ", ""), way

    def _file(self, directory: Path, *key) -> Path:
        digest = hashlib.sha256(repr((self.name, self.signature, self.way, *key)).encode()).hexdigest()[:24]
        return directory / f"{self.name.rpartition('.')[2][:120]}-{digest}.nbc"

    def _own(self) -> Path | None:
        """In the cache: for this very processor."""
        directory = files.directory()
        return directory and self._file(directory, levels.processor())

    def _packaged(self, directory: Path) -> Path:
        """The file in the directory of a level's packaged code; the processor is no part of its key."""
        return self._file(directory)

    def _places(self):
        """(where from, file) of the code that would do, the best first."""
        if (own := self._own()) and (not levels.building or self._packaged(levels.out).exists()):
            yield CACHED, own
        if directory := levels.directory():
            yield f"{PACKAGED} {directory.name}", self._packaged(directory)

    def load(self) -> Code | None:
        """The code that is there, ready to run; None where there is none that will do."""
        recorded()
        since = time.perf_counter()
        for where, file in self._places():
            if content := files.read(file):
                with contextlib.suppress(Exception):  # of modules that are no more, say: compile
                    code = Code(content)
                    self._note(where, code.size, since)
                    return code
        levels.tell()
        return None

    def save(self, content: bytes, packaged: bytes | None, size: int, since: float) -> None:
        """Keep what was compiled, of so many bytes of machine code; `packaged`: for the level that is built for."""
        self._note(COMPILED, size, since)
        if own := self._own():
            files.write(own, content)
        else:
            files.notice(f"what is compiled is not kept: {files.problem()} ({files.ELSEWHERE})")
        if levels.building:
            files.add(self._packaged(levels.out), packaged)

    def _note(self, where, size, since):
        note(Specialization(self.name, where, size, time.perf_counter() - since))


def entry(function, signature: str, name: str, loops: bool = False, nogil: bool = False, bound: bool = False):
    """Compile `function`, a closure over compile-time records, for one signature, to be called from Python; cached.
    `loops`: it has some that LLVM is to unroll; `nogil`: other Python threads run meanwhile;
    `bound`: it is one function for each owner, which entry(...)(owner) makes.

    `name` tells the closures of one family apart: it becomes the function's name, part of its symbol and cache key.
    What comes back is the compiled built-in itself, 70 ns a call: Numba's dispatcher, which types the arguments, needs
    155. It converts what it is given (a string to a float, too), so callers check their arguments' types.
    """
    options = dict(no_cfunc_wrapper=True, release_gil=nogil)
    code = _made(function, signature, name, "entry", loops, **options)
    return code.entry if bound else code.entry()


def both(function, signature: str, name: str):
    """Return `entry`'s function and its native address, which compiled code may call as long as the process lives."""
    found = _made(function, signature, name, "both")
    return found.entry(), found.address


def compiled(function, signature: str, name: str, loops: bool = False) -> int:
    """Compile `function` for one C signature; its native address, valid for the life of the process. `loops`: over
    elements, which LLVM is to vectorise."""
    return _made(function, signature, name, "native", loops, no_cpython_wrapper=True).address


def c_function(function, signature: str, name: str) -> Code:
    """Compile `function`, vectorised, for one C signature: its Code, which may be embedded in other compiled code."""
    return _made(function, signature, name, "linked", True, linkable=True, no_cpython_wrapper=True)


def _made(function, signature: str, name: str, way: str, loops: bool = False, **options) -> Code:
    function.__name__ = function.__qualname__ = name
    place = Place(f"{function.__module__}.{name}", signature, way)
    return place.load() or build().function(function, place, signature, loops, **options)


def build():
    """The module that compiles what is not on disk, which imports Numba."""
    return importlib.import_module("nbkernels.jit.compile.build")


@contextlib.contextmanager
def uncollected():
    """No garbage is collected in the block: a compilation makes millions of objects that it needs to its end, and going
    through them was 8 % of its time, 20 % for CUDA (Zen 3, 2026-11). Where two threads compile, the one that switched
    the collector off switches it on again."""
    if not gc.isenabled():
        yield
        return
    _uncollected.append(True)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        _uncollected.clear()


_uncollected: list[bool] = []  # not empty while the collector is off because of such a block


in_children(lambda: _uncollected and gc.enable())


@functools.cache
def _recorder():
    """What NBKERNELS_RECORD asks for: a function that writes down which public call is about to need a kernel."""
    file = os.environ.get("NBKERNELS_RECORD")
    return importlib.import_module(RECORD).recorder(file) if file else lambda: None


def recorded() -> None:
    """Write down the public call that is being made, if that is asked for: it needs a kernel, now or later."""
    _recorder()()
