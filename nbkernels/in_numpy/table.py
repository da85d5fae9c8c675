"""NumPy's C table of ufuncs: the one entry that gives a ufunc another inner loop.

`PyUFunc_ReplaceLoopBySignature` is entry 30 of the table, and public; the table is NumPy's C interface, whose entries
keep their places within a major version. Two things are asked before it is used: that the version is one of KNOWN, and
that the entry does what it says to a ufunc that nobody has: NumPy's loop of Python functions, entry 24, comes out.
"""

from __future__ import annotations

import ctypes
import functools

import numpy as np

REPLACE, ON_OBJECTS = 30, 24
KNOWN = (2, 0), (2, 5)  # from, and before


class UnknownNumPy(RuntimeError):
    """A NumPy whose C table this library has not been tried with."""


def _version() -> tuple[int, int]:
    major, minor = np.__version__.split(".")[:2]
    return int(major), int("".join(filter(str.isdigit, minor)) or 0)


@functools.cache
def _entries():
    """The table, as an array of addresses."""
    from numpy._core import _multiarray_umath

    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return ctypes.cast(get(_multiarray_umath._UFUNC_API, None), ctypes.POINTER(ctypes.c_void_p))


@functools.cache
def _call():
    kind = ctypes.PYFUNCTYPE(
        ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_void_p)
    )
    return kind(_entries()[REPLACE])


def replace(ufunc: np.ufunc, types: str, loop: int, kept: int | None = None) -> int:
    """Give a ufunc another loop for these types, one of `ufunc.types`; the address of the one that it had, which is
    also written to the address `kept`, before the other loop can be called."""
    letters = types.replace("->", "")
    signature = (ctypes.c_int * len(letters))(*(np.dtype(letter).num for letter in letters))
    old = ctypes.c_void_p() if kept is None else ctypes.c_void_p.from_address(kept)
    if _call()(ufunc, loop, signature, ctypes.byref(old)) != 0 or not old.value:
        raise RuntimeError(f"NumPy {np.__version__} has no loop {types} of {ufunc.__name__}")
    return old.value


@functools.cache
def check() -> None:
    """Raise UnknownNumPy, in one line, where the table may be another."""
    if not KNOWN[0] <= _version() < KNOWN[1]:
        first, last = (".".join(map(str, version)) for version in KNOWN)
        raise UnknownNumPy(f"use_in_numpy: NumPy {np.__version__} is not one of {first} to before {last}, whose loops "
                           "it can replace")  # fmt: skip
    probe, given = np.frompyfunc(abs, 1, 1), _entries()[ON_OBJECTS]
    if replace(probe, "O->O", given) != given:
        raise UnknownNumPy(f"use_in_numpy: the C table of NumPy {np.__version__} has an unknown layout")
