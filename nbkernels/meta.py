"""Rules of shape and dtype: the spec of an op's result, or the error that says why there is none.

Pure: no array is touched and no kernel known. Tensor arguments are anything with `.shape`, `.dtype` and `.strides`
(bytes). The public functions' docstrings are these. The element-wise operations' rules are binary.py.
"""

from typing import NamedTuple

import numpy as np

from .dtypes import HALVES, asked


class GemmDtypes(dict):
    """The dtypes of matrix products, with bfloat16, which is ml_dtypes' and is known by its name. A dict: ordered, and
    `in` costs one hash."""

    def __contains__(self, dtype):
        return super().__contains__(dtype) or (dtype.kind == "V" and dtype.name == "bfloat16")


INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
GEMM_DTYPES = GemmDtypes.fromkeys(
    map(np.dtype, ["float32", "float64", "float16", "complex64", "complex128", *INTEGERS, "bool"])
)
GEMM_DTYPES["bfloat16"] = None  # for messages
WIDENED = {"float16": "float32", "bfloat16": "float32", "int8": "int32", "uint8": "int32"}  # what out_dtype may ask for
# The modes of a product, with the dtypes of its matrices.
MODES = {"amx": HALVES, "bf16_dot": ("bfloat16",), "chain": HALVES, "tf32": ("float32",)}
FLOATS = GemmDtypes.fromkeys(dtype for dtype in GEMM_DTYPES if "float" in str(dtype))
SUM_DTYPES = GemmDtypes.fromkeys(dtype for dtype in GEMM_DTYPES if str(dtype) != "bool")


class OutSpec(NamedTuple):
    """What comes out: strides in bytes of the dense array to allocate, or None for C order."""

    shape: tuple
    dtype: np.dtype
    strides: tuple | None = None


def named(**tensors):
    """The tensors of a message, as `mat1 (2, 3) and mat2 (4, 5)`."""
    return " and ".join(f"{name} {tuple(spec.shape)}" for name, spec in tensors.items())


def supported(op, dtypes, **tensors):
    """Raise where a tensor's dtype has no kernel, or is not in the machine's byte order."""
    for name, spec in tensors.items():
        if spec.dtype not in dtypes:
            if spec.dtype.newbyteorder("=") in dtypes:
                raise TypeError(f"{op}: {name} is byte-swapped ({spec.dtype.str}): pass x.astype({spec.dtype.name!r})")
            raise TypeError(f"{op}: {name} has dtype {spec.dtype}; supported are {', '.join(map(str, dtypes))}")


def real(op, **scalars):
    """Raise where a factor of real matrices is complex, or too large for a float."""
    for name, value in scalars.items():
        if isinstance(value, complex):
            raise TypeError(f"{op}: {name}={value!r} is complex and the matrices are real")
        try:
            float(value)
        except OverflowError:
            raise OverflowError(f"{op}: {name} is an int too large for a float") from None


def factors(op, dtype, **scalars):
    """Raise where a factor does not go with matrices of `dtype`: only ints with integers and bool, no complex one
    with real matrices."""
    if dtype.kind != "c":
        real(op, **scalars)
    for name, value in scalars.items():
        if dtype.kind in "biu" and isinstance(value, float):
            raise TypeError(f"{op}: {name}={value!r} is a float and the matrices are {dtype}: pass an int")


def result_dtype(op, pair, out_dtype=None, mode=None, conj=None):
    """dtype of a product, given {name: spec} of its two factors and the keywords, or an error that names them."""
    (a, mat1), (b, mat2) = pair.items()
    if conj and (mat1.dtype.kind != "c" or conj not in ("a", "b", "ab")):
        raise ValueError(f"{op}: conj is 'a', 'b' or 'ab' for complex matrices; it is {conj!r} for {mat1.dtype}")
    if mode is not None and mat1.dtype.name not in MODES.get(mode, ()):
        known = ", ".join(f"{name!r} for {' and '.join(dtypes)}" for name, dtypes in MODES.items())
        raise ValueError(f"{op}: there is no mode {mode!r} for {mat1.dtype}; there is {known}")
    if out_dtype is None:
        return mat1.dtype
    name, given = asked(out_dtype), {mat1.dtype.name, mat2.dtype.name}
    if given == {name}:
        return mat1.dtype
    if any(WIDENED.get(each) != name for each in given) or (len(given) > 1 and name != "int32"):
        raise TypeError(
            f"{op}: out_dtype {name} cannot be had from {a} {mat1.dtype} and {b} {mat2.dtype}; it is float32 for two "
            f"float16 or two bfloat16, int32 for int8 and uint8 in any mix"
        )
    return np.dtype(name)


def product(op, **pair):
    """Shape of a matrix product, given the specs of its two factors, or a ValueError that names both."""
    (a, mat1), (b, mat2) = pair.items()
    for name, spec in pair.items():
        if len(spec.shape) != 2:
            raise ValueError(f"{op}: {name} must be 2-D, and it is {len(spec.shape)}-D: {named(**pair)}")
    if mat1.shape[1] != mat2.shape[0]:
        shapes = " and ".join("x".join(map(str, spec.shape)) for spec in (mat1, mat2))
        why = f"{a} has {mat1.shape[1]} columns and {b} has {mat2.shape[0]} rows"
        raise ValueError(f"{op}: {a} and {b} cannot be multiplied, {shapes}: {why}")
    return mat1.shape[0], mat2.shape[1]


def same_dtype(op, **tensors):
    (a, first), (b, second) = tensors.items()
    if first.dtype != second.dtype:
        raise TypeError(f"{op}: {a} and {b} must share a dtype: {a} is {first.dtype} and {b} is {second.dtype}")


def alike(op, out_dtype, pair, **others):
    """Raise where `others` and the pair of factors do not share a dtype and no out_dtype is asked for."""
    if out_dtype is None:
        second = list(pair.items())[1:]
        for each in others.items():
            same_dtype(op, **dict([each, *second]))
        same_dtype(op, **pair)


def promoted(op, out_dtype, **tensors):
    """The specs in the dtype that holds the numbers of all, NumPy's, where no out_dtype is asked for; None stays."""
    given = {name: spec for name, spec in tensors.items() if spec is not None}
    if out_dtype is not None or len({spec.dtype for spec in given.values()}) == 1:
        return tensors
    supported(op, GEMM_DTYPES, **given)
    try:
        dtype = np.result_type(*(spec.dtype for spec in given.values()))
    except TypeError:
        names = " and ".join(f"{name} {spec.dtype}" for name, spec in given.items())
        raise TypeError(f"{op}: no dtype holds the numbers of {names}: cast them first") from None
    return tensors | {name: OutSpec(spec.shape, dtype, spec.strides) for name, spec in given.items()}


def multiplied(op, shape, pair, *keywords):
    """What comes of the product of a pair of factors, given its shape and the keywords."""
    supported(op, GEMM_DTYPES, **pair)
    return OutSpec(shape, result_dtype(op, pair, *keywords))


def added(op, shape, pair, self, beta, alpha, *keywords):
    """The spec of a pair's product with beta * self added to it; an error where self, beta or alpha does not fit."""
    expands(op, "self", self, shape)
    supported(op, GEMM_DTYPES, self=self)
    out = multiplied(op, shape, pair, *keywords)
    if self.dtype != out.dtype:
        raise TypeError(f"{op}: self must have the result's dtype: self is {self.dtype} and out_dtype is {out.dtype}")
    factors(op, out.dtype, beta=beta, alpha=alpha)
    return out


def expands(op, name, spec, shape):
    """Raise where an array does not broadcast to `shape`."""
    sizes = (1,) * (len(shape) - len(spec.shape)) + tuple(spec.shape)
    if len(sizes) != len(shape) or any(size not in (1, want) for size, want in zip(sizes, shape)):
        raise ValueError(f"{op}: {name} {tuple(spec.shape)} does not expand to {shape}")


def addmm(self, mat1, mat2, beta=1, alpha=1, out_dtype=None, mode=None, conj=None, tiles=None):
    """out = beta * self + alpha * (mat1 @ mat2)

    mat1 is (m, k) and mat2 (k, n); self is (m, n) or expands to it. With beta == 0 self is not read, with alpha == 0
    the matrices are not: a NaN there does not reach the result.

    All share a dtype. float32, float64: in the library's order of summation. float16, bfloat16: summed and scaled in
    float32, rounded once at the store. complex64, complex128: each step of k adds ar*br, then -ai*bi, to the real part
    and ar*bi, then ai*br, to the imaginary one, each fused. int8 to int64, uint8 to uint64: modulo 2**bits; alpha and
    beta are ints. bool: beta and self or alpha and the "or" over k of mat1 and mat2.

    out_dtype   float32 for float16 and bfloat16; int32 for int8 and uint8 in any mix (exact modulo 2**32). self has it
    conj        "a", "b" or "ab": conjugate mat1, mat2 or both, without a copy
    tiles       how this product is cut, which its bits do not show: (mr, nr, kc, nb, mc, nc) on the CPU, (bm, bn, bk,
                tm, tn) on CUDA, as docs/products.md says; `explain` tells those that a call takes
    mode        the order of summation, where it is not the default one. "chain" for float16 and bfloat16: the library's
                order on every device; without it a GPU of compute capability 8.0 uses its tensor cores for them.
                "tf32" for float32 on such a GPU: tensor cores, matrices rounded to 10 bits behind the point.
                "bf16_dot" for bfloat16 on processors with AVX512_BF16: pairs of k are multiplied and added by
                vpdpbf16ps, which flushes subnormals: chain + a[1]*b[1], rounded, then + a[0]*b[0], rounded.
                "amx" for bfloat16, and float16 with AMX-FP16, on processors with that matrix unit: chains where k is
                at most 16; else of 32 steps at a time the products of the even ones are summed from 0, fused, and those
                of the odd ones; both sums are added, and then that to the chain, each rounded, subnormals flushed, but
                for float16's own

    Raises TypeError for dtypes that differ or have no kernel, ValueError for shapes that do not fit and for tiles that
    this machine cannot use; `out` is then unchanged. Source: ATen's addmm.

    >>> import numpy as np, nbkernels
    >>> nbkernels.addmm(np.array([10.0, 20.0]), np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]), alpha=2)
    array([[12., 24.],
           [16., 28.]])
    """
    pair = {"mat1": mat1, "mat2": mat2}
    alike("addmm", out_dtype, pair, self=self)
    return added("addmm", product("addmm", **pair), pair, self, beta, alpha, out_dtype, mode, conj)


def mm(self, mat2, out_dtype=None, mode=None, conj=None, tiles=None):
    """out = self @ mat2

    self is (m, k) and mat2 (k, n), of one dtype and any strides. Dtypes and keywords as addmm.

    Raises TypeError for dtypes that differ or have no kernel, ValueError for shapes that do not fit. Source: ATen's mm.

    >>> import numpy as np, nbkernels
    >>> nbkernels.mm(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [10.0]]))
    array([[21.],
           [43.]])
    """
    pair = {"self": self, "mat2": mat2}
    alike("mm", out_dtype, pair)
    return multiplied("mm", product("mm", **pair), pair, out_dtype, mode, conj)


def linear(input, weight, bias=None, out_dtype=None, mode=None, conj=None, tiles=None):
    """out = input @ weight.T + bias

    input is (..., k), weight (n, k), bias (n,), (1,), () or None; out is (..., n). Dtypes and keywords as addmm: bias
    has the result's, input is "a" and weight "b". weight is read through its strides, never transposed in memory. Where
    dtypes differ all are converted to the one that holds their numbers, NumPy's, before.

    Raises TypeError for dtypes that have no kernel, ValueError for shapes that do not fit. Source: ATen's
    linear.

    >>> import numpy as np, nbkernels
    >>> nbkernels.linear(np.ones((2, 3)), np.arange(6.0).reshape(2, 3), np.array([0.5, 0.0]))
    array([[ 3.5, 12. ],
           [ 3.5, 12. ]])
    """
    pair = promoted("linear", out_dtype, input=input, weight=weight, bias=bias)
    bias = pair.pop("bias")
    if not input.shape:
        raise ValueError(f"linear: input must have a dimension: {named(**pair)}")
    if len(weight.shape) != 2:
        raise ValueError(f"linear: weight must be 2-D: {named(**pair)}")
    if input.shape[-1] != weight.shape[1]:
        raise ValueError(f"linear: the last sizes of input and weight differ: {named(**pair)}")
    shape = (*input.shape[:-1], weight.shape[0])
    if bias is not None:
        expands("linear", "bias", bias, shape[-1:])
    out = multiplied("linear", shape, pair, out_dtype, mode, conj)
    if bias is not None and bias.dtype != out.dtype:
        raise TypeError(f"linear: bias must have the result's dtype: bias is {bias.dtype} and out_dtype is {out.dtype}")
    return out


def sum_to(self, size):
    """out = self, summed over leading dimensions and over those that `size` has as 1: what broadcasting undoes

    The dtype stays (integers wrap). Where self has that shape already, self itself is returned.

    Raises ValueError where self cannot be reduced to the shape `size`. Source: ATen's sum_to_size.

    >>> import numpy as np, nbkernels
    >>> nbkernels.sum_to(np.arange(6.0).reshape(2, 3), (3,))
    array([3., 5., 7.])
    >>> nbkernels.sum_to(np.arange(6.0).reshape(2, 3), (2, 1))
    array([[ 3.],
           [12.]])
    """
    supported("sum_to", SUM_DTYPES, self=self)
    lead = len(self.shape) - len(size)
    if lead < 0 or any(want not in (1, have) for have, want in zip(self.shape[lead:], size)):
        raise ValueError(f"sum_to: self {tuple(self.shape)} cannot be summed to the shape {tuple(size)}")
    return OutSpec(tuple(size), self.dtype)
