"""Matrix and broadcasting kernels in Python that compile themselves with Numba, for CPU and CUDA."""

from .dispatch import MetaArray
from .ops import (
    add,
    add_,
    addmm,
    addmm_,
    define,
    divide,
    divide_,
    linear,
    maximum,
    maximum_,
    minimum,
    minimum_,
    mm,
    mm_,
    multiply,
    multiply_,
    register,
    subtract,
    subtract_,
    sum_to,
)

__version__ = "0.1.0"

__all__ = [
    "MetaArray",
    "add",
    "add_",
    "addmm",
    "addmm_",
    "define",
    "divide",
    "divide_",
    "linear",
    "maximum",
    "maximum_",
    "minimum",
    "minimum_",
    "mm",
    "mm_",
    "multiply",
    "multiply_",
    "register",
    "subtract",
    "subtract_",
    "sum_to",
]
