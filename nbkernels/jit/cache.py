"""Compile once, keep on disk: the library's own cache of compiled functions.

Numba's cache is keyed by one file's text, keeps an index that two processes can cross, raises on truncated files and on
directories that cannot be written. Here one file holds one compiled function (files.py); its name is the hash of what
was asked for.
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

from llvmlite import ir
from numba import types
from numba.core import cgutils, sigutils
from numba.core.caching import _Cache
from numba.core.ccallback import CFunc
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys
from numba.extending import intrinsic, register_jitable

from .. import background
from ..origins import CACHED, COMPILED, PACKAGED, Specialization, note
from ..shield import forks_wait, in_children, roomy, whole
from . import cross, files, levels, stored
from .compiler import Helper, Implementation, Kernel, Loops
from .error_model import total
from .flags import default_modes

RECORD = "nbkernels.calls.record"  # by name, where a record is asked for
OPTIONS = dict(_nrt=False, nogil=False, error_model="numpy", boundscheck=False)


class FileCache(_Cache):
    """Numba's cache interface over one file per (function, signature, CPU); `linkable`: other code may take it in."""

    def __init__(self, name, linkable=False):
        self._name, self._linkable = name, linkable
        self._enabled = True

    @property
    def cache_path(self):
        return str(files.directory())

    def enable(self):
        self._enabled = True

    def disable(self):
        self._enabled = False

    def flush(self):
        """Nothing to forget: a file is valid for as long as its directory's name is."""

    def _file(self, directory: Path, *key) -> Path:
        """Where code for the function and this key is kept."""
        digest = hashlib.sha256(repr((self._name, *key)).encode()).hexdigest()[:24]
        return directory / f"{self._name.rpartition('.')[2][:120]}-{digest}.nbc"

    def _own(self, sig) -> Path | None:
        """In the cache: for this very processor."""
        directory = files.directory() if self._enabled else None
        return directory and self._file(directory, str(sig), levels.processor())

    def _packaged(self, directory: Path, sig) -> Path:
        """The same for a level, which is the directory's."""
        return self._file(directory, str(sig))

    def _places(self, sig):
        """(where from, file) of the code that would do, the best first."""
        if (own := self._own(sig)) and (not levels.building or self._packaged(cross.OUT, sig).exists()):
            yield CACHED, own
        if directory := levels.directory():
            yield f"{PACKAGED} {directory.name}", self._packaged(directory, sig)

    def load_overload(self, sig, target_context):
        return self.load(sig, target_context, stored.load)

    def load(self, sig, target_context, restore):
        """What restore(target_context, content) makes of the file; None where there is none that will do."""
        self._since = time.perf_counter()
        rtsys.initialize(target_context)  # what Numba does in time, with imports for compiling that take 0.6 s
        for where, file in self._places(sig):
            if content := files.read(file):
                with contextlib.suppress(Exception):  # of modules that are no more, say: compile
                    result, size = restore(target_context, content)
                    self._note(where, size)
                    return result
        levels.tell()
        return None

    def save_overload(self, sig, data):
        def content(code):
            return stored.dump(data, code, data.library.module(self._linkable), self._linkable)

        self.save(sig, data.library, content)

    def save(self, sig, library, content):
        """Keep content(machine code of the library)."""
        code = library.machine_code()
        self._note(COMPILED, len(code))
        if own := self._own(sig):
            files.write(own, content(code))
        elif self._enabled:
            files.notice(f"what is compiled is not kept: {files.problem()} ({files.ELSEWHERE})")
        if levels.building:
            cross.put(self._packaged(cross.OUT, sig), content(cross.machine_code(library)))

    def _note(self, where, size):
        note(Specialization(self._name, where, size, time.perf_counter() - self._since))


def jit(function=None, **options):
    """`numba.njit` with the library's options, for helpers that other jitted functions call; `forceinline=True` puts
    the helper's code into each of them, else LLVM decides.

    Not cached: a helper's code is part of the entries that call it, and a file of its own would be compiled twice.
    """
    if function is None:
        return functools.partial(jit, **options)
    return Helper(function, targetoptions=dict(OPTIONS, nopython=True, **options))


def plain(function=None, **options):
    """A plain function, which those that are compiled call, too: `numba.extending.register_jitable`, as above."""
    register = register_jitable(**OPTIONS, pipeline_class=Implementation, **options)
    return register if function is None else register(function)


def entry(function, signature: str, name: str, loops: bool = False, **options):
    """Compile `function`, a closure over compile-time records, for one signature, to be called from Python; cached.
    `loops`: it has some that LLVM is to unroll.

    `name` tells the closures of one family apart: it becomes the function's name, part of its symbol and cache key.
    What comes back is the compiled built-in itself, 70 ns a call: Numba's dispatcher, which types the arguments, needs
    155. It converts what it is given (a string to a float, too), so callers check their arguments' types.
    """
    return _compile(function, signature, name, dict(options, no_cfunc_wrapper=True), loops).entry_point


def native(function, signature: str, name: str, **options) -> int:
    """The same, to be called from compiled code: its native address, valid for the life of the process."""
    return _address(_compile(function, signature, name, dict(options, no_cpython_wrapper=True)))


def both(function, signature: str, name: str):
    """What `entry` and what `native` return."""
    result = _compile(function, signature, name, {})
    return result.entry_point, _address(result)


@global_compiler_lock  # LLVM's engine has modules that other threads compile
def _address(result) -> int:
    return result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)


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


forks_wait(global_compiler_lock)
in_children(lambda: _uncollected and gc.enable())


@functools.cache
def _recorder():
    """What NBKERNELS_RECORD asks for: a function that writes down which public call is about to need a kernel."""
    file = os.environ.get("NBKERNELS_RECORD")
    return importlib.import_module(RECORD).recorder(file) if file else lambda: None


def recorded() -> None:
    """Write down the public call that is being made, if that is asked for: it needs a kernel, now or later."""
    _recorder()()


def shielded(compilation, *arguments) -> None:
    """Run it to its end, with a stack that suffices and in the default floating-point modes; but who holds Numba's lock
    stays in its thread."""

    def compiling():
        with total():
            compilation(*arguments)

    background.proceed()
    recorded()
    with whole(), uncollected(), default_modes():
        compiling() if global_compiler_lock.is_locked() else roomy(compiling)


def _compile(function, signature, name, options, loops=False):
    _rename(function, name)
    pipeline, options = Loops if loops else Kernel, dict(OPTIONS, nopython=True, **options)
    dispatcher = CPUDispatcher(function, targetoptions=options, pipeline_class=pipeline)
    dispatcher._cache = FileCache(_name(function))
    shielded(dispatcher.compile, signature)
    ALIVE.append(dispatcher)
    (result,) = dispatcher.overloads.values()
    return result


def compiled(function, signature: str, name: str, loops: bool = False) -> int:
    """Compile `function` for one C signature; its native address, valid for the life of the process. `loops`: over
    elements, which LLVM is to vectorise."""
    return _c_function(function, signature, name, Loops if loops else Kernel, False).address


def c_function(function, signature: str, name: str) -> CFunc:
    """The same, to be embedded in other compiled code."""
    return _c_function(function, signature, name, Loops, True)


def _c_function(function, signature, name, pipeline, linkable):
    _rename(function, name)
    cfunc = CFunc(function, sigutils.normalize_signature(signature), {}, dict(OPTIONS), pipeline_class=pipeline)
    cfunc._cache = FileCache(_name(function), linkable)
    shielded(cfunc.compile)
    ALIVE.append(cfunc)
    return cfunc


def embedded(context, builder, function: CFunc, kind: ir.FunctionType):
    """A compiled C function as part of the code that `builder` writes: this holds no address of the process, so Numba
    can keep it on disk."""
    context.active_code_library.add_linking_library(function._library)
    return cgutils.get_or_insert_function(builder.module, kind, function._wrapper_name)


@intrinsic
def compact(typing):
    """In a function that is embedded: it is optimised for its size, so that each of those around it compiles sooner."""

    def emit(context, builder, signature, args):
        builder.function.attributes.add("optsize")
        return context.get_dummy_value()

    return types.void(), emit


ALIVE = []


def _name(function) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _rename(function, name: str) -> None:
    function.__name__ = function.__qualname__ = name
