"""MKL as a peer, through the C interface of its wheel (`pip install mkl`); without it there is no column."""

import ctypes
import functools
import importlib.metadata

INT, DOUBLE, POINTER = ctypes.c_int, ctypes.c_double, ctypes.c_void_p
ROWS, PLAIN, TURNED = 101, 111, 112  # CblasRowMajor, CblasNoTrans, CblasTrans
LETTERS = {"float32": ("s", ctypes.c_float), "float64": ("d", DOUBLE)}


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
    letter, number = LETTERS[str(out.dtype)]
    (m, n), k, (ta, lda), (tb, ldb) = out.shape, a.shape[1], lies(a), lies(b)
    function = _function(f"cblas_{letter}gemm", [INT] * 6 + [number, POINTER, INT, POINTER, INT, number, POINTER, INT])
    arguments = (ROWS, ta, tb, m, n, k, 1, a.ctypes.data, lda, b.ctypes.data, ldb, beta, out.ctypes.data, n)
    return lambda keep=(out, a, b): function(*arguments)


def matmul(out, a, b):
    """A call without arguments: out = a @ b by MKL's dot, gemv, gemm or gemm_batch_strided, as out's shape requires."""
    letter, number = LETTERS[str(out.dtype)]
    if out.ndim == 0:
        dot = _function(f"cblas_{letter}dot", [INT, POINTER, INT, POINTER, INT], number)
        vectors = (len(a), a.ctypes.data, a.strides[0] // a.itemsize, b.ctypes.data, b.strides[0] // b.itemsize)
        return lambda keep=(out, a, b): out.__setitem__((), dot(*vectors))
    if out.ndim == 1:
        return _gemv(out[:, None], a, b[:, None], letter, number)
    if out.ndim == 2:
        return _gemv(out, a, b, letter, number) if 1 in out.shape else gemm(out, a, b)
    (count, m, n), k, (ta, lda), (tb, ldb) = out.shape, a.shape[2], lies(a[0]), lies(b[0])
    matrix, steps = [POINTER, INT, INT], [x.strides[0] // x.itemsize for x in (a, b, out)]
    kinds = [INT] * 6 + [number, *matrix, *matrix, number, *matrix, INT]
    many = _function(f"cblas_{letter}gemm_batch_strided", kinds)
    arguments = (ROWS, ta, tb, m, n, k, 1, a.ctypes.data, lda, steps[0], b.ctypes.data, ldb, steps[1],
                 0, out.ctypes.data, n, steps[2], count)  # fmt: skip
    return lambda keep=(out, a, b): many(*arguments)


def _gemv(out, a, b, letter, number):
    """out = a @ b where out has one row or one column."""
    matrix, vector = (a, b[:, 0]) if out.shape[1] == 1 else (b.T, a[0])
    turned, leading = lies(matrix)
    function = _function(f"cblas_{letter}gemv", [INT] * 4 + [number, POINTER, INT, POINTER, INT, number, POINTER, INT])
    rows, columns = matrix.shape if turned == PLAIN else matrix.shape[::-1]
    arguments = (ROWS, turned, rows, columns, 1, matrix.ctypes.data, leading, vector.ctypes.data,
                 vector.strides[0] // vector.itemsize, 0, out.ctypes.data, 1)  # fmt: skip
    return lambda keep=(out, a, b): function(*arguments)


def _function(name, kinds, result=None):
    function = getattr(library(), name)
    function.argtypes, function.restype = kinds, result
    return function
