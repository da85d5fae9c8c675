"""The libraries that are measured beside ours, found when they are asked for."""

import functools
import importlib

from . import mkl

NAMES = ("NumPy", "torch", "MKL", "numexpr", "CuPy")


@functools.cache
def _module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def torch():
    return _module("torch")


def numexpr():
    return _module("numexpr")


def cupy():
    return _module("cupy")


def found() -> list[str]:
    """Those that are here."""
    here = {"NumPy": True, "torch": torch(), "MKL": mkl.library(), "numexpr": numexpr(), "CuPy": cupy()}
    return [name for name in NAMES if here[name]]
