"""Compile once, keep on disk: the library's own cache of compiled functions.

Numba's cache is keyed by one file's text, keeps an index that two processes can cross, raises on truncated files and on
directories that cannot be written. Here one file holds one compiled function; its name is the hash of what was asked
for, its directory the hash of every source of the library and of the versions that compile it. Files appear by an
atomic rename, sealed by a hash, and whatever is not as it was written is compiled again.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import os
import pickle
import sys
import tempfile
from pathlib import Path

import llvmlite
import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils, compiler, serialize, sigutils
from numba.core.caching import _Cache
from numba.core.ccallback import CFunc
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.extending import intrinsic

from .shield import roomy, whole

PACKAGE = Path(__file__).resolve().parent.parent
OPTIONS = dict(nogil=False, error_model="numpy", boundscheck=False)


@functools.cache
def directory() -> Path | None:
    """Where compiled code is kept: NBKERNELS_CACHE_DIR or the user's cache directory; None if it cannot be written."""
    base = os.environ.get("NBKERNELS_CACHE_DIR")
    if not base:
        import platformdirs

        base = platformdirs.user_cache_dir("nbkernels", appauthor=False)
    path = Path(base) / _toolchain()
    try:
        path.mkdir(parents=True, exist_ok=True)
        return path if os.access(path, os.W_OK) else None
    except OSError:
        return None


def _toolchain() -> str:
    """Hash of every source that machine code is made from and of the versions that make it."""
    digest = hashlib.sha256(repr((numba.__version__, llvmlite.__version__, sys.version, sys.abiflags)).encode())
    for name in sorted(file for part in _COMPILED for file in PACKAGE.glob(part)):
        digest.update(str(name.relative_to(PACKAGE)).encode() + b"\0" + name.read_bytes())
    for option in sorted(k for k in os.environ if k.startswith("NUMBA_") and k not in _HARMLESS):
        digest.update(f"{option}={os.environ[option]}".encode())
    return digest.hexdigest()[:16]


_COMPILED = (
    *("jit/*.py", "cpu/*.py", "cuda/*.py", "scalar/*.py"),
    *("real.py", "coefficients.py", "transcendental.py", "powers.py", "activations.py"),
)

# These change where and how Numba works, not what it compiles.
_HARMLESS = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER", "NUMBA_THREADING_LAYER_PRIORITY",
             "NUMBA_ENABLE_CUDASIM"}  # fmt: skip


class FileCache(_Cache):
    """Numba's cache interface over one file per (function, signature, CPU)."""

    def __init__(self, function):
        self._function = function
        self._enabled = True

    @property
    def cache_path(self):
        return str(directory())

    def enable(self):
        self._enabled = True

    def disable(self):
        self._enabled = False

    def flush(self):
        """Nothing to forget: a file is valid for as long as its directory's name is."""

    def _file(self, sig, target_context) -> Path | None:
        if not self._enabled or directory() is None:
            return None
        name = f"{self._function.__module__}.{self._function.__qualname__}"
        key = repr((name, str(sig), target_context.codegen().magic_tuple()))
        return directory() / f"{name.rpartition('.')[2][:120]}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.nbc"

    def load_overload(self, sig, target_context):
        rtsys.initialize(target_context)  # what Numba does in time, with imports for compiling that take 0.6 s
        file = self._file(sig, target_context)
        content = file and read(file)
        try:
            return compiler.CompileResult._rebuild(target_context, *pickle.loads(content)) if content else None
        except Exception:  # of modules that are no more, say: compile
            return None

    def save_overload(self, sig, data):
        file = self._file(sig, data.target_context)
        if file is not None:
            write(file, serialize.dumps(data._reduce()))


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


def jit(function=None, **options):
    """`numba.njit` with the library's options, for helpers that other jitted functions call.

    Not cached: a helper's code is part of the entries that call it, and a file of its own would be compiled twice.
    """
    return functools.partial(jit, **options) if function is None else numba.njit(function, **(OPTIONS | options))


def helper(function):
    """The same for functions of many lines or many callers: compiled once, where inlining would copy them for each."""
    return jit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def entry(function, signature: str, name: str, **options):
    """Compile `function`, a closure over compile-time records, for one signature, to be called from Python; cached.

    `name` tells the closures of one family apart: it becomes the function's name, part of its symbol and cache key.
    What comes back is the compiled built-in itself, 70 ns a call: Numba's dispatcher, which types the arguments, needs
    155. It converts what it is given (a string to a float, too), so callers check their arguments' types.
    """
    return _compile(function, signature, name, options).entry_point


def native(function, signature: str, name: str, **options) -> int:
    """The same, to be called from compiled code: its native address, valid for the life of the process."""
    return _address(_compile(function, signature, name, options))


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
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _shielded(compilation, *arguments) -> None:
    """Run it to its end, with a stack that suffices; but who holds Numba's lock stays in its thread."""
    with whole(), uncollected():
        (compilation if global_compiler_lock.is_locked() else functools.partial(roomy, compilation))(*arguments)


def _compile(function, signature, name, options):
    _rename(function, name)
    dispatcher = jit(function, **options)
    dispatcher._cache = FileCache(function)
    _shielded(dispatcher.compile, signature)
    _ALIVE.append(dispatcher)
    (result,) = dispatcher.overloads.values()
    return result


def compiled(function, signature: str, name: str) -> int:
    """Compile `function` for one C signature; its native address, valid for the life of the process."""
    return c_function(function, signature, name).address


def c_function(function, signature: str, name: str) -> CFunc:
    """The same, to be embedded in other compiled code."""
    _rename(function, name)
    cfunc = CFunc(function, sigutils.normalize_signature(signature), {}, dict(OPTIONS))
    cfunc._cache = FileCache(function)
    _shielded(cfunc.compile)
    _ALIVE.append(cfunc)
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


_ALIVE = []


def _rename(function, name: str) -> None:
    function.__name__ = function.__qualname__ = name


@functools.cache
def target() -> tuple[str, str, frozenset[str]]:
    """(triple, CPU name, features) that Numba compiles for: the host's, or what NUMBA_CPU_NAME/_FEATURES say."""
    triple, cpu, features = cpu_target.target_context.codegen().magic_tuple()
    return triple, cpu, frozenset(f[1:] for f in features.split(",") if f.startswith("+"))
