"""Operations inside other jitted code, which Numba finds without an import: its entry point is nbkernels/extension.py.

    import numba, numpy as np, nbkernels

    @numba.njit(cache=True)
    def layer(x, weight, bias):
        result = nbkernels.mm(x, weight)
        nbkernels.add(result, bias, out=result)
        return nbkernels.maximum(result, 0)

Arrays have any strides; the bits are those of the same call from Python, and so are the errors, which come before
anything is written. Numba's cache=True keeps callers on disk: they call kernels by symbols (symbols.py), which come
from the library's own cache, or have their loops within.

Everything runs in the calling thread, which holds no Python object: it may be a thread of a prange. Large products run
by several threads where a block of nbkernels.threads says how many, and no other one is under way.

Products: mm, addmm, mv, addmv, bmm, baddbmm, matmul, dot, vdot, outer, addr and linear, of all dtypes that Numba has,
with beta, alpha, out, which may not overlap factors, out_dtype and conj, written in the call; addmm_, baddbmm_, addmv_
and addr_. matmul, linear, outer and dot take two dtypes.

Element-wise: all operations of one and of two and their in-place forms, with out, where, dtype (as np.float64) and,
where there is one, alpha; what `elementwise` makes of functions of one or two arguments, and `epilogue`. Dtypes as
outside; an int64, float64 or complex128 that is no array is as weak as the Python number that it looks like. A new
result is in C order, or in Fortran's where all arrays of its dimensions are; of no dimensions it is a number.
RuntimeWarnings are not given.

Folds: sum_to, to a tuple of ints, always a new array, or a number for (); reduce of operations that may be folded in
any order (add.reduce), with axis, keepdims, written in the call, and dtype.

float16 arrays, which Numba's own compiler does not take on CPUs, it takes once this is imported (half.py).
"""

from ..jit.compile import known
from . import elementwise, half, objects, products, sums  # noqa: F401, they enter their functions

known.enter()
