"""What the tests of element-wise operations share: NumPy's results, numbers of every size, arrays of every layout."""

import numpy as np
from hypothesis import strategies as st

from nbkernels import dtypes
from nbkernels.cpu.elementwise import elementwise

OPS = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
FLOATS, INTEGERS = ("float32", "float64"), dtypes.INTEGERS
DTYPES = (*FLOATS, *INTEGERS, "bool")
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, 1.5]


def reference(op, x, y, alpha=1):
    """NumPy's result; +0 is above -0, which NumPy leaves to the machine."""
    with np.errstate(all="ignore"):
        if alpha != 1:
            dtype = np.result_type(x, y)
            y = (np.asarray(y).astype(dtype) * np.asarray(alpha).astype(dtype)).astype(dtype)
        result = getattr(np, op)(x, y)
        if op in ("maximum", "minimum") and result.dtype.kind == "f":
            x, y = np.broadcast_arrays(x, y)
            zeros = (x == 0) & (y == 0)
            sign = np.logical_and if op == "maximum" else np.logical_or
            zero = np.copysign(0, np.where(sign(np.signbit(x), np.signbit(y)), -1, 1)).astype(result.dtype)
            result = np.where(zeros, zero, result)
    return result


def run(op, x, y, out=None, **alpha):
    """The kernel on an out full of what must not survive."""
    if out is None:
        shape = np.broadcast_shapes(np.shape(x), np.shape(y))
        dtype = getattr(np, op)(np.ones((), x.dtype), np.ones((), y.dtype)).dtype
        out = np.full(shape, np.nan if dtype.kind == "f" else 77, dtype)
    getattr(elementwise, op)(out, x, y, **alpha)
    return out


def values(rng, shape, dtype):
    """Numbers of every size, specials and extremes among them."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if np.dtype(dtype).kind == "f":
        x = rng.standard_normal(shape).astype(dtype)
        return np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), x).astype(dtype)
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.3, rng.choice(np.array([info.min, info.max, 0, 1], dtype), shape), x)


@st.composite
def layouts(draw, shape):
    """A function from arrays of `shape` to a view of the same values in some layout, inside a larger buffer."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, -1, 2, -3])) for _ in shape]
    pads = [draw(st.integers(0, 2)) for _ in shape]
    shift = draw(st.sampled_from([0, 0, 1, 3]))

    def lay(x):
        sizes = [x.shape[d] * abs(steps[d]) + pads[d] for d in order]
        raw = np.full(int(np.prod(sizes, dtype=int)) * x.itemsize + shift, 0x5A, np.uint8)
        whole = raw[shift : len(raw)].view(x.dtype).reshape(sizes).transpose(np.argsort(order))
        spans = [slice(0, n * s, s) if s > 0 else slice(n * -s - 1, None, s) for n, s in zip(x.shape, steps)]
        view = whole[(..., *spans)][(..., *(slice(0, n) for n in x.shape))]
        view[...] = x
        return view, raw

    return lay


@st.composite
def calls(draw):
    """Two inputs that broadcast together and an out, each of its own layout."""
    shape = draw(st.lists(st.integers(0, 7), max_size=5).map(tuple))
    inputs = []
    for _ in range(2):
        lead = draw(st.integers(0, len(shape)))
        inputs.append(tuple(draw(st.sampled_from([1, n, n])) for n in shape[lead:]))
    shape = np.broadcast_shapes(*inputs)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = draw(st.sampled_from(["float32", "float64", "int32"])), draw(st.sampled_from(["float32", "int8"]))
    arrays = [draw(layouts(s))(values(rng, s, d))[0] for s, d in zip(inputs, kinds)]
    for x in arrays:
        x.flags.writeable = draw(st.booleans())
    return *arrays, draw(layouts(shape))
