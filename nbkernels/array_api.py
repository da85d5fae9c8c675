"""A namespace of the array API standard: `x.__array_namespace__()` of an array that `nbkernels.asarray` made.

Every name of the standard is here. Element-wise operations, `sum`, `prod`, `max`, `min`, `mean`, `var`, `std`,
`cumulative_sum`, `cumulative_prod`, `matmul`, `vecdot`, `tensordot`, `matrix_transpose`, `where` and `clip` are this
library's; creation, indexing, sorting, sets and the rest are NumPy's, with results of this kind. Arrays are NumPy's in
memory, and calls that kernels decline are done by NumPy, as for all arrays of `asarray`; `nbkernels.watch` tells.

>>> import nbkernels.array_api as xp
>>> x = xp.linspace(0, 1, 3)
>>> xp.sum(xp.exp(x), dtype=xp.float32)
Array(5.367003, dtype=float32)
"""

from __future__ import annotations

import functools
from types import SimpleNamespace

import numpy as np

from . import array, standard

# Names of the standard, of its functions without `linalg` and `fft`.
DTYPES = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128""".split()
CONSTANTS = "e inf nan newaxis pi".split()
TELLING = """can_cast result_type finfo iinfo isdtype __array_namespace_info__ broadcast_shapes""".split()
FUNCTIONS = """
    abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh bitwise_and
    bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor broadcast_arrays broadcast_to ceil
    clip concat conj copysign cos cosh count_nonzero cumulative_prod cumulative_sum diff divide empty empty_like equal
    exp expand_dims expm1 eye flip floor floor_divide from_dlpack full full_like greater greater_equal hypot imag
    isfinite isin isinf isnan less less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or
    logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum moveaxis multiply negative nextafter
    nonzero not_equal ones ones_like permute_dims positive pow prod real reciprocal remainder repeat reshape roll round
    searchsorted sign signbit sin sinh sort sqrt square squeeze stack std subtract sum take take_along_axis tan tanh
    tensordot tile tril triu trunc unique_all unique_counts unique_inverse unique_values unstack var vecdot where zeros
    zeros_like
""".split()
LINALG = """
    cholesky cross det diagonal eig eigh eigvals eigvalsh inv matmul matrix_norm matrix_power matrix_rank
    matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm
""".split()
FFT = "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift".split()
__array_api_version__ = np.__array_api_version__ if hasattr(np, "__array_api_version__") else "2022.12"  # NumPy 2.0


def ours(x):
    """A result of NumPy's with its arrays, also 0-d ones, as those of this namespace."""
    if isinstance(x, np.ndarray | np.generic):
        return np.asarray(x).view(array.Array)
    if isinstance(x, tuple | list):
        parts = map(ours, x)
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    return x


def made(function):
    """A function of NumPy's, whose calls on this namespace's arrays run here where they can."""

    @functools.wraps(function)
    def call(*args, **keywords):
        return ours(function(*args, **keywords))

    return call


for _name in [name for name in FUNCTIONS if hasattr(np, name)]:  # NumPy 2.0 lacks cumulative_sum and unstack
    # NumPy 2.5 fails at var of a 0-d array whose operators give numbers.
    globals()[_name] = made(getattr(standard if _name in ("mean", "var", "std") else np, _name))
for _name in [name for name in (*DTYPES, *CONSTANTS, *TELLING) if hasattr(np, name)]:
    globals()[_name] = getattr(np, _name)
linalg = SimpleNamespace(**{name: made(getattr(np.linalg, name)) for name in LINALG if hasattr(np.linalg, name)})
fft = SimpleNamespace(**{name: made(getattr(np.fft, name)) for name in FFT})
__all__ = sorted(name for name in (*FUNCTIONS, *DTYPES, *CONSTANTS, *TELLING, "fft", "linalg") if name in globals())


def __getattr__(name):
    """A function of NumPy that the standard does not have: xarray asks the namespace for einsum."""
    if name[:2] == "__" or not hasattr(np, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    found = getattr(np, name)
    return made(found) if callable(found) and not isinstance(found, type) else found
