"""A call's fast path and the general one give the same, whatever the arrays: bits, strides, errors."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import nbkernels as nb
from tests.cases import BINARY, EVERY

SIZES = [0, 1, 2, 3, 5]
DTYPES = ["float32", "int8", "int64", "bool"] + ["float64", "uint8"] * EVERY


@st.composite
def arrays(draw, shapes, dtypes=DTYPES):
    """An array of any layout: cut from a larger one with steps of either sign, transposed, repeated, or read-only."""
    shape, dtype = draw(shapes), draw(st.sampled_from(dtypes))
    axes = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, -1, 2, 0])) for _ in shape]
    base = np.zeros([max(1, abs(step)) * n + 1 for n, step in zip(shape, steps)])
    base.flat = np.arange(base.size) * 7 % 11 - 3
    x = base.astype(dtype)[tuple(slice(None, None, step or 1) for step in steps)]
    x = x[tuple(slice(n) if step else slice(1) for n, step in zip(shape, steps))]
    x = np.broadcast_to(x, shape) if 0 in steps and draw(st.booleans()) else np.array(np.broadcast_to(x, shape))
    x = clone(x.transpose(axes))
    x.flags.writeable = x.flags.writeable and draw(st.integers(0, 9)) > 0
    return x


def outcome(function, args, keywords, out):
    """What a call gives: (result, out afterwards), or the kind and text of its error."""
    out = None if out is None else clone(out, out.flags.writeable)
    try:
        result = function(*args, **keywords, out=out)
    except (ValueError, TypeError, OverflowError) as error:
        return type(error), str(error), None if out is None else out.tobytes()
    assert out is None or result is out
    steps = [stride for n, stride in zip(result.shape, result.strides) if n > 1 and result.size]  # others mean nothing
    return result.shape, result.dtype, steps, result.tobytes()


def clone(x, writeable=True):
    """A copy with the same strides, also where they are 0 or negative."""
    low = sum(min(0, (n - 1) * s) for n, s in zip(x.shape, x.strides)) if x.size else 0
    high = sum(max(0, (n - 1) * s) for n, s in zip(x.shape, x.strides)) if x.size else 0
    memory = np.zeros(high - low + x.itemsize, np.uint8)
    y = np.ndarray(x.shape, x.dtype, memory, -low, x.strides)
    y[...] = x
    y.flags.writeable = writeable
    return y


def both_paths(name, args, keywords, out):
    """The same call by the fast path and, with the fast path taken away, by the general one."""
    function = getattr(nb, name)
    quick = outcome(function, args, keywords, out)
    kernel = function.op.table.row("CPU").row.kernel
    with nb.register(function, "CPU", kernel, override=True):
        assert outcome(function, args, keywords, out) == quick
    return quick


shape = st.lists(st.sampled_from(SIZES), max_size=3).map(tuple)


@given(st.sampled_from(BINARY), st.data())
def test_element_wise_calls_do_not_depend_on_the_path(name, data):
    """Bits, strides, errors and what is in out after them: all the same."""
    whole = data.draw(shape)
    part = shapes_within(whole)
    x = data.draw(arrays(part))
    y = data.draw(st.one_of(arrays(part), arrays(shape), st.sampled_from([0, 3, -1, 300, 0.5, float("nan"), True])))
    keywords = {}
    if name in ("add", "subtract"):
        keywords = data.draw(st.sampled_from([{}, {"alpha": 2}, {"alpha": 0.5}, {"alpha": -1}, {"alpha": True}]))
    with np.errstate(all="ignore"):
        both_paths(name, (x, y), keywords, data.draw(st.one_of(st.none(), arrays(st.just(whole)), arrays(shape))))


def shapes_within(whole):
    """Shapes that broadcast to `whole`."""
    return st.tuples(st.integers(0, len(whole)), *[st.booleans()] * len(whole)).map(
        lambda drawn: tuple(n if keep else 1 for n, keep in zip(whole, drawn[1:]))[drawn[0] :]
    )


@given(st.data())
def test_matrix_products_do_not_depend_on_the_path(data):
    m, n, k = (data.draw(st.sampled_from([*SIZES, 17])) for _ in range(3))
    dtypes = data.draw(st.sampled_from([["float32"], ["float64"], ["float32", "float64", "int64"]]))
    a, b = data.draw(arrays(st.just((m, k)), dtypes)), data.draw(arrays(st.just((k, n)), dtypes))
    out = data.draw(st.one_of(st.none(), arrays(st.just((m, n)), dtypes), arrays(shape, dtypes)))
    if data.draw(st.booleans()):
        both_paths("mm", (a, b), {}, out)
        return
    x = data.draw(st.one_of(arrays(shapes_within((m, n)), dtypes), arrays(shape, dtypes)))
    scalars = st.sampled_from([0, 1, -1, 0.5, 2, True, float("nan"), "x", None])
    keywords = data.draw(st.fixed_dictionaries({}, optional={"beta": scalars, "alpha": scalars}))
    both_paths("addmm", (x, a, b), keywords, out)


@given(st.data())
def test_products_of_stacks_do_not_depend_on_the_path(data):
    """Those that are composed of others: of stacks and a matrix, summed over a stack, and through an activation."""
    b, m, n, k = (data.draw(st.sampled_from(SIZES)) for _ in range(4))
    dtypes = data.draw(st.sampled_from([["float32"], ["float16"], ["int32"], ["float32", "float64", "int64"]]))

    def array(*size):
        return data.draw(arrays(st.just(size), dtypes))

    name = data.draw(st.sampled_from(["matmul", "linear", "addbmm", "addmm_activation"]))
    result = {"matmul": (b, m, n), "linear": (b, m, n)}.get(name, (m, n))
    out = data.draw(st.one_of(st.none(), arrays(st.just(result), dtypes), arrays(shape, dtypes)))
    if name == "matmul":
        both = [(array(b, m, k), array(k, n)), (array(m, k), array(b, k, n))]
        both_paths(name, data.draw(st.sampled_from(both)), {}, out)
        return
    if name == "linear":
        both_paths(name, (array(b, m, k), array(n, k), *[array(n)] * data.draw(st.booleans())), {}, out)
        return
    x = data.draw(st.one_of(arrays(shapes_within((m, n)), dtypes), arrays(shape, dtypes)))
    factors = st.sampled_from([0, 1, -1, 0.5, 2, True, "x", None])
    keywords = data.draw(st.fixed_dictionaries({}, optional={"beta": factors, "alpha": factors}))
    if name == "addbmm":
        both_paths(name, (x, array(b, m, k), array(b, k, n)), keywords, out)
        return
    with np.errstate(all="ignore"):
        both_paths(
            name,
            (x, array(m, k), array(k, n)),
            keywords | {"activation": data.draw(st.sampled_from(["relu", "gelu", "tan", ["relu"], None]))},
            out,
        )


def test_a_sum_over_a_stack_into_a_part_of_it():
    """What is read later is not written before; nor is a part of what comes as an operand of a stack's rows."""
    whole = np.random.default_rng(0).normal(size=(3, 4, 4)).astype("f4")
    for i in range(3):
        expected, own = nb.addbmm(whole[i], whole, whole), whole.copy()
        np.testing.assert_array_equal(nb.addbmm(own[i], own, own, out=own[i]), expected)
    expected, own = nb.matmul(whole, whole[0]), whole.copy()
    np.testing.assert_array_equal(nb.matmul(own, own[0], out=own), expected)
