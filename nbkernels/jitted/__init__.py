"""Operations inside other jitted code: `import nbkernels.jitted` teaches Numba products, element-wise operations, sums.

    import numba, numpy as np, nbkernels, nbkernels.jitted

    @numba.njit
    def layer(x, weight, bias):
        result = nbkernels.mm(x, weight)
        nbkernels.add(result, bias, out=result)
        return nbkernels.maximum(result, 0)

Everything runs in the calling thread, which holds no Python object: it may be a thread of a prange. Arrays have any
strides; the bits are those of the same call from Python, and so are the errors, which come before anything is written.

Products: mm, addmm, mv, addmv, bmm, baddbmm, matmul and dot of float32 and float64, with beta, alpha and out, which may
not overlap factors. The kernel is found by its address, so Numba does not keep functions that call it on disk.

Element-wise: all operations of two and their in-place forms, of bools, integers, float32, float64 and complex numbers,
with out, where, dtype (as np.float64) and, where there is one, alpha. Dtypes as outside; an int64, float64 or
complex128 that is no array is as weak as the Python number that it looks like. A new result is in C order, or in
Fortran's where all arrays of its dimensions are; of no dimensions it is a number. RuntimeWarnings are not given. The
loops become part of the caller, which Numba's cache=True keeps on disk.

Sums: sum_to, of every dtype of sum_to's that Numba has, to a tuple of ints; always a new array, or a number for (). Its
kernels are found by their addresses, as those of products.
"""

from . import elementwise, products, sums  # noqa: F401, they enter their functions
