"""Matrix and broadcasting kernels in Python that compile themselves with Numba, for CPU and CUDA."""

import os

# In a clone dispatch/ stands beside this package, and Python started there finds this file before an installed one.
if not os.path.isdir(os.path.join(__path__[0], "dispatch")):
    __path__.append(os.path.dirname(__path__[0]))

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
