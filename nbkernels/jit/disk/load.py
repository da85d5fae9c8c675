"""Compiled functions as bytes, and as parts of this process: machine code, linked by LLVM without Numba.

Numba keeps optimised bitcode, types and descriptions beside: more than half of a file, and of its loading. Here the
bitcode stays for functions that other compiled code takes in, and the rest goes.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import pickle
import sys
import threading
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from pathlib import Path
from typing import NamedTuple

from llvmlite import binding

from ...shield import forks_wait, import_numba


class Parts(NamedTuple):
    """A compiled function: an object file; the symbols of what Python calls in it, of what C calls, and of variables
    that Numba's wrappers want to be other than 0; what is to be called before it is linked, the bitcode that others
    link, if they may, and the symbols that the process is to have."""

    code: bytes
    entry: str = ""
    native: str = ""
    environments: tuple[str, ...] = ()
    again: tuple[Callable, ...] = ()
    name: str = ""
    bitcode: bytes = b""
    outside: tuple[str, ...] = ()


def dump(parts: Parts) -> bytes:
    return pickle.dumps(tuple(parts))


class Code:
    """A compiled function that this process can call."""

    def __init__(self, content):
        parts = Parts(*pickle.loads(content))
        for function in parts.again:
            function()
        self._engine = _linked(parts)
        self.parts, self.size = parts._replace(code=b""), len(parts.code)  # LLVM has a copy

    @property
    def address(self) -> int:
        """What compiled code calls it by, valid for as long as the process lives."""
        return self.symbol(self.parts.native)

    def symbol(self, name: str) -> int:
        with _lock:
            return self._engine.get_function_address(name)

    def entry(self, owner=None):
        """What Python calls: a built-in function, that of an object which it may be told of."""
        definition = _Method(_name(self.parts.name), self.symbol(self.parts.entry), FASTCALL, None)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))  # what outlives this module at exit reads it
        return _new(ctypes.byref(definition), owner, None)


_ALIVE: list = []
_lock = threading.RLock()
forks_wait(_lock)


@contextlib.contextmanager
def linking():
    """A block in which LLVM links code: no other thread does, and no process is forked."""
    with _lock:
        _start()
        yield


def _linked(parts: Parts):
    """LLVM's engine of this function alone: another one's symbols may be the same. Where the process lacks one of those
    outside, LLVM would link each of them as 0."""
    if any(name.startswith("numba_") for name in parts.outside):
        _helpers()
    with linking():
        machine = binding.Target.from_default_triple().create_target_machine(jit=True)
        engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)  # the first knows Python's symbols
        if missing := [name for name in parts.outside if binding.address_of_symbol(name) is None]:
            raise ImportError(f"{parts.name}: this process has no symbol {', '.join(missing)}")
        engine.add_object_file(binding.ObjectFileRef.from_data(parts.code))
        engine.finalize_object()
        for name in parts.environments:
            ctypes.c_void_p.from_address(engine.get_global_value_address(name)).value = id(_ALIVE)
    _ALIVE.append(engine)  # a thread may be in its code at any time
    return engine


@functools.cache
def _start() -> None:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


@functools.cache
def _helpers() -> None:
    """Make Numba's own C functions known to LLVM."""
    name = "numba._helperlib"
    if "numba" in sys.modules:
        import_numba()  # which another thread may be at
        module = importlib.import_module(name)
    else:
        (place, *_) = importlib.util.find_spec("numba").submodule_search_locations
        path = next(path for end in EXTENSION_SUFFIXES if (path := Path(place) / f"_helperlib{end}").exists())
        spec = importlib.util.spec_from_file_location(name, path, loader=ExtensionFileLoader(name, str(path)))
        module = importlib.util.module_from_spec(spec)
        sys.modules.pop(name, None)
    for symbol, address in module.c_helpers.items():
        binding.add_symbol(f"numba_{symbol}", address)


# -- functions that Python calls ---------------------------------------------------------------------------------------

FASTCALL = 0x80  # METH_FASTCALL


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Method), ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def _name(name: str) -> bytes:
    return name.rpartition(".")[2].encode()
