"""Symbols of what users' jitted code calls: Numba keeps code with symbols on disk, and none with addresses.

Numba calls what stands in a library's `_reload_init` before it loads that library from disk: here a Symbol, which asks
for its kernel, from the library's own disk cache, and tells LLVM where that is. A caller that was compiled beside
another version of this library counts as absent: Numba compiles it anew.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from importlib import import_module

from llvmlite import binding, ir

from ..jit.disk import files, sources
from ..jit.ir.vector import I64, outside


class Stale(OSError):
    """A caller on disk was compiled beside another version of this library; of an OSError Numba compiles anew."""


@functools.cache
def version() -> str:
    """A hash of all that callers' code and its kernels are made from."""
    return hashlib.sha256(f"{files.toolchain()} {sources.digest(('jitted',))}".encode()).hexdigest()[:16]


@functools.cache
def _address(make: str, key: tuple) -> int:
    module, name = make.split(":")
    return getattr(import_module(f"nbkernels.{module}"), name)(*key)


@dataclass(frozen=True)
class Symbol:
    """The address that "module:function" of this library returns, given the key."""

    make: str = ""
    key: tuple = ()

    @property
    def name(self) -> str:
        return f"nbkernels_{version()}_{hashlib.sha256(repr((self.make, self.key)).encode()).hexdigest()[:16]}"

    def __call__(self) -> None:
        """Tell LLVM where it is."""
        if self.make:
            binding.add_symbol(self.name, _address(self.make, self.key))

    def __reduce__(self):
        return _loaded, (version(), self.make, self.key)


def _loaded(compiled_by: str, make: str, key: tuple) -> Symbol:
    if compiled_by != version():
        raise Stale("compiled beside another version of nbkernels")
    return Symbol(make, key)


def address(context, builder, make: str, *key) -> ir.Value:
    """What "module:function" of this library returns, given the key, as an integer in the code that is emitted."""
    symbol = Symbol(make, key)
    symbol()
    of_version(context, symbol)
    return builder.ptrtoint(outside(builder, symbol.name, ir.IntType(8)), I64)


def of_version(context, symbol: Symbol = Symbol()) -> None:
    """The code that is emitted, kept on disk, counts for this version of the library alone."""
    context.active_code_library._reload_init.add(symbol)
