"""Matrix and broadcasting kernels in Python that compile themselves with Numba, for CPU and CUDA."""

import os

# In a clone dispatch/ stands beside this package, where a link leads to it; but for systems without links.
if not os.path.isdir(os.path.join(__path__[0], "dispatch")):
    __path__.append(os.path.dirname(__path__[0]))

from . import meta
from .array import asarray
from .autograd.for_torch import for_torch
from .autograd.tape import GradTape
from .autograd.vjp import vjp
from .code_origins import specializations
from .dispatch import MetaArray
from .epilogues import epilogue
from .explain import explain
from .fusion import elementwise, fuse
from .in_numpy.use import use_in_numpy
from .modes import modes
from .operations import ELEMENTWISE
from .ops import *  # noqa: F403 its table says what is public
from .ops import __all__ as _OPS
from .packing import Packed, pack
from .quantized.weights import Quantized, linear_q, quantize
from .standard import clip, einsum, matrix_transpose, mean, std, tensordot, var, vecdot, where
from .threads import threads
from .watch import watch


class _Meta(type(os)):
    """The module of shape rules; called, it makes an array that has nothing else to be known by."""

    def __call__(self, shape, dtype):
        """meta(shape, dtype): an array without data, for every op to tell the shape and dtype of its result.

        >>> import nbkernels
        >>> nbkernels.add(nbkernels.meta((2, 3), "float32"), nbkernels.meta(3, "float64"))
        MetaArray((2, 3), float64)
        """
        return MetaArray(shape, dtype)

    def __reduce__(self):
        return __import__, (self.__name__, None, None, ("",))  # the module itself, not its package


meta.__class__ = _Meta

# Names that NumPy or torch has for what is here.
_ELSEWHERE = {name: op for op, row in ELEMENTWISE.items() for name in row.also.split()} | {
    "sum": "add.reduce", "prod": "multiply.reduce", "max": "maximum.reduce", "min": "minimum.reduce",
    "cumsum": "add.accumulate",
}  # fmt: skip
# What else is asked for here.
_SAID = dict.fromkeys(("relu", "gelu", "silu", "sigmoid"), "of a product it is addmm_activation's activation=") | {
    "softmax": "it is exp(x - maximum.reduce(x, -1, keepdims=True)), over its add.reduce",
    "linalg": "mm, bmm and matmul are here, and numpy.linalg has the rest",
} | {
    name: f"it is a command: python -m nbkernels {name}"
    for name in "bench cache completion demo docs info prebuild run stubs table warmup".split()
}  # fmt: skip
# NumPy's functions that run here of `asarray` arrays, and have no function of this library.
_OF_ARRAYS = "inner matvec vecmat".split()


def __getattr__(name):
    """The error for a name that is not here says which may be meant."""
    from importlib import import_module
    from importlib.util import find_spec

    hint = ""
    if name == "tune":  # a module that can be called, imported when it is asked for
        return import_module("nbkernels.tune")
    if name in _ELSEWHERE:
        hint = f"; did you mean {_ELSEWHERE[name]!r}?"
    elif name in _SAID:
        hint = f"; {_SAID[name]}"
    elif name in _OF_ARRAYS:
        hint = f"; np.{name} of arrays that asarray() makes runs here"
    elif name[:2] != "__" and name.isidentifier() and find_spec(f"{__name__}.{name}"):
        hint = f"; import {__name__}.{name}"
    elif name[:2] != "__":
        import sys

        from .dispatch.errors import meant

        numpys = name in sys.modules["numpy"].__all__
        hint = f"; numpy.{name} is NumPy's" if numpys else meant(name, __all__)
    # With a name of its own, to which Python adds no other guess.
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}", name=name)


def __dir__():
    """The public names, and not the modules that have them."""
    return sorted((*__all__, "__version__"))


__version__ = "0.1.0"

__all__ = [
    "GradTape", "MetaArray", "Packed", "Quantized", "asarray", "clip", "einsum", "elementwise", "epilogue", "explain",
    "for_torch", "fuse", "linear_q", "matrix_transpose", "mean", "meta", "modes", "pack", "quantize",
    "specializations", "std", "tensordot", "threads", "use_in_numpy", "var", "vecdot", "vjp", "watch", "where",
    "tune", *_OPS,  # noqa: F405 __getattr__ has tune
]  # fmt: skip
