"""What a call of NumPy arrays comes to, a result's shape and dtype or an error's words, is what the meta function says:
a fast path takes nothing that the checks would refuse. Shapes are almost right, or anything."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbkernels as nb
from nbkernels.dispatch import MetaArray
from tests.cases import EVERY

RIGHT = {
    "mm": [(2, 3), (3, 2)], "addmm": [(2,), (2, 3), (3, 2)], "addmm_activation": [(2,), (2, 3), (3, 2)],
    "mv": [(2, 3), (3,)], "addmv": [(2,), (2, 3), (3,)], "dot": [(3,), (3,)], "vdot": [(3,), (3,)],
    "bmm": [(2, 2, 3), (2, 3, 2)], "baddbmm": [(2,), (2, 2, 3), (2, 3, 2)], "addbmm": [(2,), (2, 2, 3), (2, 3, 2)],
    "matmul": [(2, 3), (3, 2)], "linear": [(2, 3), (2, 3), (2,)], "outer": [(2,), (3,)], "addr": [(2, 3), (2,), (3,)],
    "add": [(2, 3), (3,)], "multiply": [(2, 1), (3,)], "maximum": [(2, 3), ()], "less": [(2, 3), (2, 3)],
    "exp": [(2, 3)],
}  # fmt: skip
DTYPES = st.sampled_from(["float32", "int8"] + ["complex64", "bool", "float64", "int32", "float16"] * EVERY)
ANY = st.lists(st.sampled_from([0, 1, 1, 2, 2, 2, 3]), max_size=4).map(tuple)


@st.composite
def almost(draw, shape):
    """A shape, or one with another size, a dimension more or one less."""
    way, at = draw(st.sampled_from("=====s+-?")), draw(st.integers(0, max(len(shape) - 1, 0)))
    if way == "?":
        return draw(ANY)
    if way == "+":
        return (draw(st.sampled_from([1, 2])), *shape)
    size = {"s": (draw(st.integers(0, 3)),), "-": ()}.get(way)
    return shape if size is None or not shape else (*shape[:at], *size, *shape[at + 1 :])


def outcome(function, args, out):
    try:
        found = function(*args, out=out)
    except (TypeError, ValueError) as error:
        return type(error), str(error).replace("MetaArray", "ndarray")
    return tuple(found.shape), np.dtype(found.dtype)


@pytest.mark.parametrize("name", RIGHT)
@settings(max_examples=100 if EVERY else 60)
@given(data=st.data())
def test_a_call_and_its_meta_function_agree(name, data):
    function, dtype = getattr(nb, name), data.draw(DTYPES)
    shapes = [data.draw(almost(shape)) for shape in RIGHT[name]]
    dtypes = [data.draw(st.sampled_from([dtype] * 6 + ["int64"])) for _ in shapes]
    args = [[kind(*each) for each in zip(shapes, dtypes)] for kind in (np.ones, MetaArray)]
    known, out = outcome(function, args[1], None), (None, None)
    if data.draw(st.booleans()):
        shape = data.draw(almost(known[0])) if isinstance(known[0], tuple) else data.draw(ANY)
        out = np.zeros(shape, dtype), MetaArray(shape, dtype)
    with np.errstate(all="ignore"):
        found = outcome(function, args[0], out[0])
    assert found == outcome(function, args[1], out[1])
    assert isinstance(found[0], tuple) or out[0] is None or not out[0].any()
