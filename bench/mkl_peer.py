"""MKL as a peer, through the C interface of its wheel (`pip install mkl`); without it there is no column."""

import ctypes
import functools
import importlib.metadata

INT, DOUBLE, POINTER = ctypes.c_int, ctypes.c_double, ctypes.c_void_p
ROWS, PLAIN, TURNED = 101, 111, 112  # CblasRowMajor, CblasNoTrans, CblasTrans
FUNCTIONS = {"float32": ("cblas_sgemm", ctypes.c_float), "float64": ("cblas_dgemm", DOUBLE)}


@functools.cache
def library():
    """libmkl_rt with the threads of Intel's OpenMP, or None."""
    try:
        for package, stem in (("intel-openmp", "libiomp5.so"), ("mkl", "libmkl_rt.so")):
            path = next(file.locate() for file in importlib.metadata.files(package) if file.name.startswith(stem))
            loaded = ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
    except (importlib.metadata.PackageNotFoundError, StopIteration, TypeError, OSError):
        return None
    return loaded


def lies(x):
    """(transposition, leading dimension) of a matrix whose rows or columns are contiguous."""
    rows, columns = (step // x.itemsize for step in x.strides)
    return (PLAIN, max(rows, x.shape[1])) if columns == 1 else (TURNED, max(columns, x.shape[0]))


def gemm(out, a, b, beta=0):
    """A call without arguments: out = a @ b + beta * out, out in C order."""
    name, number = FUNCTIONS[str(out.dtype)]
    function, (m, n), k = getattr(library(), name), out.shape, a.shape[1]
    function.argtypes = [INT] * 6 + [number, POINTER, INT, POINTER, INT, number, POINTER, INT]
    function.restype = None
    (ta, lda), (tb, ldb) = lies(a), lies(b)
    arguments = (ROWS, ta, tb, m, n, k, 1, a.ctypes.data, lda, b.ctypes.data, ldb, beta, out.ctypes.data, n)
    return lambda keep=(out, a, b): function(*arguments)
