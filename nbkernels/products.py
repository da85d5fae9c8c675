"""Shape and dtype rules of the products built on addmm: batches, vectors, NumPy's matmul. Pure, as meta.py."""

from .meta import FLOATS, added, alike, multiplied, named, product, promoted, supported
from .strides import broadcast_shapes


def ranked(op, ndim, **tensors):
    """Raise where a tensor has not `ndim` dimensions."""
    for name, spec in tensors.items():
        if len(spec.shape) != ndim:
            raise ValueError(f"{op}: {name} must be {ndim}-D, and it is {len(spec.shape)}-D: {named(**tensors)}")


ACTIVATIONS = {"relu": ("none",), "gelu": ("none", "tanh"), "silu": ("none",), "tanh": ("none",), "sigmoid": ("none",)}


def addmm_activation(
    self, mat1, mat2, beta=1, alpha=1, activation="relu", approximate="none", out_dtype=None, mode=None, tiles=None
):
    """out = activation(beta * self + alpha * (mat1 @ mat2))

    activation is "relu", "gelu", "silu", "tanh" or "sigmoid": the functions of nbkernels.elementary.activations, one
    definition on every device. approximate="tanh" is gelu's other formula. The bits are those of addmm followed by the
    function. float16, bfloat16, float32 and float64; out_dtype, mode and tiles as addmm.

    Raises as addmm, ValueError for an unknown activation. Source: ATen's _addmm_activation.

    >>> import numpy as np, nbkernels
    >>> a = np.array([[1.0, -2.0]])
    >>> nbkernels.addmm_activation(np.array([0.5, 0.5]), a, np.eye(2))
    array([[1.5, 0. ]])
    """
    pair = {"mat1": mat1, "mat2": mat2}
    alike("addmm_activation", out_dtype, pair, self=self)
    shape = product("addmm_activation", **pair)
    supported("addmm_activation", FLOATS, self=self, **pair)
    out = added("addmm_activation", shape, pair, self, beta, alpha, out_dtype, mode)
    for what, value, known in (
        ("activation", activation, ACTIVATIONS),
        (f"approximate of {activation}", approximate, ACTIVATIONS.get(activation, ())),
    ):
        if value not in known:
            raise ValueError(f"addmm_activation: {what} must be one of {', '.join(known)}, not {value!r}")
    return out


def batched(op, **pair):
    """(batch, m, n) of a batch of products, given the specs of its two factors."""
    (a, batch1), (b, batch2) = pair.items()
    ranked(op, 3, **pair)
    if batch1.shape[0] != batch2.shape[0]:
        raise ValueError(f"{op}: {a} and {b} must have as many matrices: {named(**pair)}")
    if batch1.shape[2] != batch2.shape[1]:
        why = f"the matrices of {a} have {batch1.shape[2]} columns and those of {b} {batch2.shape[1]} rows"
        raise ValueError(f"{op}: {a} and {b} cannot be multiplied, {named(**pair)}: {why}")
    return batch1.shape[0], batch1.shape[1], batch2.shape[2]


def bmm(self, mat2, out_dtype=None, mode=None, conj=None, tiles=None):
    """out[i] = self[i] @ mat2[i]

    self is (b, m, k) and mat2 (b, k, n). Dtypes and keywords as addmm. Every matrix has the bits of mm(self[i],
    mat2[i]). Any strides, also 0 between the matrices.

    Raises TypeError for dtypes that differ or have no kernel, ValueError for shapes that do not fit. Source: ATen.

    >>> import numpy as np, nbkernels
    >>> nbkernels.bmm(np.ones((2, 1, 3)), np.arange(6.0).reshape(2, 3, 1))
    array([[[ 3.]],
    <BLANKLINE>
           [[12.]]])
    """
    pair = {"self": self, "mat2": mat2}
    alike("bmm", out_dtype, pair)
    return multiplied("bmm", batched("bmm", **pair), pair, out_dtype, mode, conj)


def baddbmm(self, batch1, batch2, beta=1, alpha=1, out_dtype=None, mode=None, conj=None, tiles=None):
    """out[i] = beta * self[i] + alpha * (batch1[i] @ batch2[i])

    batch1 is (b, m, k) and batch2 (b, k, n); self is (b, m, n) or expands to it. Dtypes and keywords as addmm. Every
    matrix has the bits of addmm; beta and alpha of 0 leave unread what they multiply.

    Raises as addmm. Source: ATen's baddbmm.

    >>> import numpy as np, nbkernels
    >>> nbkernels.baddbmm(np.array([10.0, 20.0]), np.ones((1, 1, 3)), np.ones((1, 3, 2)), alpha=2)
    array([[[16., 26.]]])
    """
    pair = {"batch1": batch1, "batch2": batch2}
    alike("baddbmm", out_dtype, pair, self=self)
    return added("baddbmm", batched("baddbmm", **pair), pair, self, beta, alpha, out_dtype, mode, conj)


def addbmm(self, batch1, batch2, beta=1, alpha=1, out_dtype=None, mode=None, conj=None, tiles=None):
    """out = beta * self + alpha * (the sum over i of batch1[i] @ batch2[i])

    batch1 is (b, m, k) and batch2 (b, k, n); self is (m, n) or expands to it. Dtypes and keywords as addmm. The
    products are added in order, each as by addmm: out = addmm(self, ...), then out = addmm(out, ..., beta=1); those of
    float16 and bfloat16 in float32, rounded once.

    Raises as addmm. Source: ATen's addbmm.

    >>> import numpy as np, nbkernels
    >>> nbkernels.addbmm(np.array([[10.0]]), np.ones((2, 1, 3)), np.ones((2, 3, 1)))
    array([[16.]])
    """
    pair = {"batch1": batch1, "batch2": batch2}
    alike("addbmm", out_dtype, pair, self=self)
    return added("addbmm", batched("addbmm", **pair)[1:], pair, self, beta, alpha, out_dtype, mode, conj)


def applied(op, **pair):
    """(m,) of a matrix times a vector, given the specs of both."""
    (a, mat), (b, vec) = pair.items()
    if len(mat.shape) != 2 or len(vec.shape) != 1:
        raise ValueError(f"{op}: {a} must be 2-D and {b} 1-D: {named(**pair)}")
    if mat.shape[1] != vec.shape[0]:
        why = f"{a} has {mat.shape[1]} columns and {b} {vec.shape[0]} elements"
        raise ValueError(f"{op}: {a} and {b} cannot be multiplied, {named(**pair)}: {why}")
    return (mat.shape[0],)


def mv(self, vec, out_dtype=None, mode=None, conj=None):
    """out = self @ vec, of a matrix (m, k) and a vector (k,)

    float32 and float64 are summed in an order of their own, the same for any strides and threads, on the CPU and on
    CUDA. k is cut into segments of 4096; in each, 8 chains of fused multiply-adds from zero, step p in chain p mod 8;
    then chain c takes in chain c + h for h = 4, 2, 1, and the segments' sums are added in order. Other dtypes and
    devices, and a mode or a wider out_dtype, have the bits of mm with vec as a column.

    Dtypes and keywords as addmm. Raises as mm. Source: ATen's mv.

    >>> import numpy as np, nbkernels
    >>> nbkernels.mv(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([21., 43.])
    """
    pair = {"self": self, "vec": vec}
    alike("mv", out_dtype, pair)
    return multiplied("mv", applied("mv", **pair), pair, out_dtype, mode, conj)


def mv_widened(self, vec):
    """out = self @ vec, of a vector whose dtype holds the numbers of the matrix: the bits of mv in that dtype."""
    pair = promoted("_mv_widened", None, self=self, vec=vec)
    return multiplied("_mv_widened", applied("_mv_widened", **pair), pair, None, None, None)


def addmv(self, mat, vec, beta=1, alpha=1, out_dtype=None, mode=None, conj=None):
    """out = beta * self + alpha * (mat @ vec)

    mat is (m, k), vec (k,) and self (m,) or expands to it. The sum has the order of mv; fma(beta, self, alpha * sum)
    comes once, at the end. Dtypes and keywords as addmm. Raises as addmm. Source: ATen's addmv.

    >>> import numpy as np, nbkernels
    >>> nbkernels.addmv(np.array([0.5, 0.5]), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([21.5, 43.5])
    """
    pair = {"mat": mat, "vec": vec}
    alike("addmv", out_dtype, pair, self=self)
    return added("addmv", applied("addmv", **pair), pair, self, beta, alpha, out_dtype, mode, conj)


def outer(self, vec2, out_dtype=None, mode=None, conj=None):
    """out[i, j] = self[i] * vec2[j], of vectors (m,) and (n,)

    The bits of mm with k = 1; dtypes and keywords as addmm. Where both
    have dtypes of their own they are converted to the one that holds the numbers of both, NumPy's, before.

    Raises TypeError for dtypes that have no kernel, ValueError for what is not 1-D. Source: ATen's outer.

    >>> import numpy as np, nbkernels
    >>> nbkernels.outer(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array([[3., 4.],
           [6., 8.]])
    """
    pair = promoted("outer", out_dtype, self=self, vec2=vec2)
    ranked("outer", 1, **pair)
    return multiplied("outer", (self.shape[0], vec2.shape[0]), pair, out_dtype, mode, conj)


def addr(self, vec1, vec2, beta=1, alpha=1, out_dtype=None, mode=None, conj=None):
    """out = beta * self + alpha * outer(vec1, vec2)

    vec1 is (m,), vec2 (n,) and self (m, n) or expands to it. The bits of addmm with k = 1; dtypes and keywords as
    there. Raises as addmm. Source: ATen's addr.

    >>> import numpy as np, nbkernels
    >>> nbkernels.addr(np.array([100.0]), np.array([1.0, 2.0]), np.array([3.0, 4.0]), alpha=10)
    array([[130., 140.],
           [160., 180.]])
    """
    pair = {"vec1": vec1, "vec2": vec2}
    alike("addr", out_dtype, pair, self=self)
    ranked("addr", 1, **pair)
    return added("addr", (vec1.shape[0], vec2.shape[0]), pair, self, beta, alpha, out_dtype, mode, conj)


def inner(op, pair, out_dtype, *keywords):
    """A 0-d result of two vectors, given {name: spec} of both."""
    (a, first), (b, second) = pair.items()
    alike(op, out_dtype, pair)
    ranked(op, 1, **pair)
    if first.shape != second.shape:
        raise ValueError(f"{op}: {a} and {b} must be of one size: {named(**pair)}")
    return multiplied(op, (), pair, out_dtype, *keywords)


def dot(self, tensor, out_dtype=None, mode=None, conj=None):
    """out = the sum over i of self[i] * tensor[i], of vectors of one size; 0-d

    Floats are summed in an order of their own, the same for any strides and threads, on the CPU and on CUDA. The
    vectors are cut into segments of 4096; in each, 64 chains of fused multiply-adds from zero, element i in chain
    i mod 64; then chain c takes in chain c + h for h = 32, 16, 8, 4, 2, 1, and the segments' sums are added in order.
    float16 and bfloat16 are summed in float32 and rounded once. Other devices have the order of their mm. With
    out_dtype or a mode it is theirs everywhere. Dtypes and keywords as addmm. Where both
    have dtypes of their own they are converted to the one that holds the numbers of both, NumPy's, before.

    Raises TypeError for dtypes that have no kernel, ValueError for shapes that do not fit. Source: ATen.

    >>> import numpy as np, nbkernels
    >>> nbkernels.dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    np.float64(11.0)
    """
    return inner("dot", promoted("dot", out_dtype, self=self, tensor=tensor), out_dtype, mode, conj)


def vdot(self, other, out_dtype=None, mode=None):
    """out = the sum over i of conj(self[i]) * other[i]: of real vectors, dot

    The order is dot's. Dtypes and keywords as addmm. Raises as dot. Source: ATen's vdot.

    >>> import numpy as np, nbkernels
    >>> nbkernels.vdot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    np.float64(11.0)
    """
    return inner("vdot", {"self": self, "other": other}, out_dtype, mode)


def matmul(input, other, out_dtype=None, mode=None, conj=None, tiles=None):
    """out = input @ other by NumPy's rules

    Matrices are in the last two dimensions; those before them broadcast, and nothing is repeated in memory. A 1-D input
    is a row and a 1-D other a column, whose dimension the result then lacks. Every matrix has the bits of mm; two
    vectors have those of dot, a matrix and a vector of floats those of mv. Dtypes and keywords as addmm:
    input is "a" and other "b". Where both have dtypes of their own they are converted to the one that holds the
    numbers of both, NumPy's, before.

    Raises TypeError for dtypes that have no kernel, ValueError for 0-d arrays and for shapes that do not fit.
    Source: NumPy's matmul.

    >>> import numpy as np, nbkernels
    >>> nbkernels.matmul(np.ones((5, 1, 2, 3)), np.ones((4, 3, 6))).shape
    (5, 4, 2, 6)
    >>> nbkernels.matmul(np.ones(3), np.ones((7, 3, 6))).shape
    (7, 6)
    """
    pair = promoted("matmul", out_dtype, input=input, other=other)
    if not input.shape or not other.shape:
        raise ValueError(f"matmul: both must have a dimension: {named(**pair)}")
    ranks = sorted((len(input.shape), len(other.shape)))
    if tiles is not None and ranks in ([1, 1], [1, 2]):
        raise ValueError(f"matmul: a product with a vector is not cut: leave tiles={tiles} out")
    rows = other.shape[-2:][0]
    if input.shape[-1] != rows:
        why = f"the last size of input is {input.shape[-1]} and other has {rows} rows"
        raise ValueError(f"matmul: input and other cannot be multiplied, {named(**pair)}: {why}")
    try:
        batch = broadcast_shapes(tuple(input.shape[:-2]), tuple(other.shape[:-2]))
    except ValueError as error:
        raise ValueError(f"matmul: the batches of {named(**pair)}: {error}") from None
    shape = (*batch, *input.shape[-2:-1], *(other.shape[-1:] if len(other.shape) > 1 else ()))
    return multiplied("matmul", shape, pair, out_dtype, mode, conj)
