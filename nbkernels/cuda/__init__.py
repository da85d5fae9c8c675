"""Kernels for arrays on a CUDA device. What is imported before a kernel is compiled imports no compiler.

`block` is for kernels of one's own: it comes with its first use.
"""

from importlib import import_module

_LATER = ("block",)


def __dir__():
    return sorted({*globals(), *_LATER})


def __getattr__(name):
    if name in _LATER:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
