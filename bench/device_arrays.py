"""Arrays on a GPU, or in Numba's simulator, and a user's kernel: what device_check.py and device_speed.py share."""

import itertools
import os

import numpy as np

DTYPES = ("float32", "float64")
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")


class View:
    """Device memory seen through an array's strides, for numba.cuda.as_cuda_array."""

    def __init__(self, memory, offset, x):
        self.memory = memory  # kept alive
        self.__cuda_array_interface__ = {
            "version": 3, "shape": x.shape, "strides": x.strides, "typestr": x.dtype.str,
            "data": (memory.device_ctypes_pointer.value + offset, False),
        }  # fmt: skip


def upload(x):
    """A NumPy array on the device with its strides; in the simulator, the array itself."""
    from numba import cuda

    if SIMULATED:
        return type(cuda.to_device(np.zeros(1)))(x)
    reach = [(n - 1) * step for n, step in zip(x.shape, x.strides)]
    before, after = -sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
    memory = np.zeros(before + after + x.itemsize, np.uint8)
    np.ndarray(x.shape, x.dtype, memory, before, x.strides)[...] = x
    seen = cuda.as_cuda_array(View(cuda.to_device(memory), before, x))
    return seen if seen.dtype == x.dtype else seen.view(x.dtype)  # bfloat16, for which the interface has no code


def numbers(rng, *shape, dtype="float32"):
    return rng.standard_normal(shape, dtype=dtype)


def tiled(block):
    """A user's kernel, c = alpha * a @ b + beta*c with a block's product for each tile."""
    from numba import cuda

    @cuda.jit
    def kernel(c, a, b, alpha, beta):
        row, column = cuda.blockIdx.y * block.bm, cuda.blockIdx.x * block.bn
        chains = block.zeros()
        block.multiply(chains, a[row : row + block.bm], b[:, column : column + block.bn], block.scratch())
        block.store(c[row : row + block.bm, column : column + block.bn], chains, alpha, beta)

    def call(c, a, b, alpha, beta):
        grid = -(-c.shape[1] // block.bn), -(-c.shape[0] // block.bm)
        kernel[grid, block.threads](c, a, b, alpha, beta)

    return call


def combinations():
    """The other dtypes of products: (of mat1, of mat2, of the result), in the simulator one of each kind."""
    same = [np.dtype(name) for name in "int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool float16".split()]
    same += [np.dtype("complex64"), np.dtype("complex128")]
    try:
        from ml_dtypes import bfloat16

        same.append(np.dtype(bfloat16))
    except ImportError as error:
        print(f"bfloat16 is not checked: {error}")
    if SIMULATED:
        return [(d, d, d) for d in same if d.name in ("int8", "bool", "complex64", "bfloat16")]
    mixes = [(np.dtype(a), np.dtype(b), np.dtype("int32")) for a, b in itertools.product(("int8", "uint8"), repeat=2)]
    return [(d, d, d) for d in same] + mixes + [(d, d, np.dtype("float32")) for d in same if "float16" in d.name]


def drawn(rng, shape, dtype):
    """Numbers of the whole range of a dtype."""
    if dtype.kind in "iu":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    if dtype.kind == "b":
        return rng.random(shape) < 0.1
    return (rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.kind == "c" else 0)).astype(dtype)


def same_bits(x, y):
    return np.array_equal(np.ascontiguousarray(x).view("u1"), np.ascontiguousarray(y).view("u1"))
