"""Derivative formulas: against central differences in f64, and against torch's autograd; of products and pairs in every
dtype, test_every_dtype.py has more."""

from importlib.util import find_spec

import numpy as np
import pytest

import nbkernels as nb
from nbkernels import operations
from nbkernels.dtypes import ufunc

pytestmark = pytest.mark.usefixtures("at_first")

MATRICES = [((2, 5), (5, 3))]
SELVES = [(), (1,), (3,), (1, 3), (2, 1), (1, 1), (2, 3)]
SHAPES = [((), ()), ((3,), (1,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((4, 2, 3), (2, 1)), ((3,), (3,)), ((2, 3), ())]
BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum"]

CASES = [("mm", shapes, {}) for shapes in MATRICES]
CASES += [("addmm", (self, *MATRICES[0]), dict(beta=-0.5, alpha=2.5)) for self in SELVES]
CASES += [("addmm", ((3,), *MATRICES[0]), {}), ("addmm", ((3,), (2, 0), (0, 3)), {})]
MASK = np.array([[True, False, True], [False, True, True]])
ACTIVE = [("relu", "none"), ("gelu", "none"), ("gelu", "tanh"), ("silu", "none"), ("tanh", "none"), ("sigmoid", "none")]
for activation, approximate in ACTIVE:
    keywords = dict(beta=-0.5, alpha=0.3, activation=activation, approximate=approximate)
    CASES.append(("addmm_activation", ((3,), *MATRICES[0]), keywords))
FACTORS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 1, 2, 3), (4, 3, 2)),
]
CASES += [("matmul", shapes, {}) for shapes in [*FACTORS, ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((2, 3), (5, 3, 4))]]
CASES += [(name, shapes, {}) for name in BINARY for shapes in SHAPES]
CASES += [(name, ((2, 3), (3,)), dict(alpha=-3.0)) for name in ("add", "subtract")]
SMOOTH = [op for op, row in operations.BINARY.items() if row.slope == operations.BY_NAME]
SMOOTH = [op for op in SMOOTH if op not in (*BINARY, "pow", "float_power", "ldexp")]
CASES += [(name, shapes, {}) for name in SMOOTH for shapes in (((2, 3), (3,)), ((3,), ()))]
CASES += [("add", ((3,), (2, 3)), dict(alpha=2.0, where=MASK)), ("hypot", ((3,), ()), dict(where=MASK))]
CASES += [("sum_to", ((4, 2, 3),), dict(size=size)) for size in ((), (3,), (2, 3), (2, 1), (1, 2, 1), (4, 2, 3))]


def inputs(shapes):
    rng = np.random.default_rng(len(shapes))
    # away from 0 for divide, and nowhere equal for maximum
    return [np.array(rng.uniform(0.5, 2, shape) * rng.choice([-1, 1], shape)) for shape in shapes]


def central_differences(function, args, grad, i, step=1e-6, where=True):
    """d sum(grad * function(args)) / d args[i], element by element."""
    result = np.zeros_like(args[i])
    for index in np.ndindex(args[i].shape):
        both = []
        for sign in (step, -step):
            moved = [x.copy() for x in args]
            moved[i][index] += sign
            both.append(np.sum(grad * function(*moved), where=where))
        result[index] = (both[0] - both[1]) / (2 * step)
    return result


@pytest.mark.parametrize(("name", "shapes", "keywords"), CASES, ids=lambda v: str(v))
def test_against_central_differences(name, shapes, keywords):
    function, args = getattr(nb, name), inputs(shapes)
    plain = ufunc(name) if name in operations.BINARY and not keywords else function

    def call(*arrays):
        return plain(*arrays, **keywords)

    grad = np.asarray(np.random.default_rng(9).normal(size=call(*args).shape))
    found = function.op.gradient(grad, *args, **keywords)
    assert len(found) == len(args)
    for i, (x, mine) in enumerate(zip(args, found)):
        assert mine.shape == x.shape
        numeric = central_differences(call, args, grad, i, where=keywords.get("where", True))
        np.testing.assert_allclose(mine, numeric, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("name", "shapes", "keywords"), CASES[:9], ids=lambda v: str(v))
def test_the_mask_gives_none_exactly_where_false(name, shapes, keywords):
    op, args = getattr(nb, name).op, inputs(shapes)
    grad = np.ones((2, 3))
    every = op.gradient(grad, *args, **keywords)
    for bits in np.ndindex((2,) * len(args)):
        masked = op.gradient(grad, *args, output_mask=[bool(bit) for bit in bits], **keywords)
        for bit, whole, part in zip(bits, every, masked):
            assert part is None if not bit else np.array_equal(part, whole)


def test_the_example_of_the_broadcast_bias():
    """A (3,) + B (1,), summed: B takes part in three sums."""
    a, b = np.zeros(3), np.zeros(1)
    ga, gb = nb.add.op.gradient(np.ones(3), a, b)
    assert np.array_equal(ga, [1, 1, 1])
    assert np.array_equal(gb, [3.0])


def test_powers():
    x, y, grad = np.array([2.0, 0.0, 0.0, 3.0]), np.array([3.0, 2.0, 0.0, -1.5]), np.array([1.0, 2, 3, 4])
    for op in (nb.pow.op, nb.float_power.op):
        left, right = op.gradient(grad, x, y)
        np.testing.assert_allclose(left, [12, 0, 0, 4 * -1.5 * 3.0**-2.5])
        np.testing.assert_allclose(right, [8 * np.log(2), 0, 0, 4 * 3.0**-1.5 * np.log(3)])
    np.testing.assert_array_equal(nb.pow.op.gradient(grad, x, 2)[0], 2 * x * grad)
    assert nb.ldexp.op.gradient(grad, x, np.array([1, 2, 3, 0]), output_mask=(True, False))[0].tolist() == [2, 8, 24, 4]


def test_what_a_mask_leaves_out_has_no_gradient():
    """Not even where grad is NaN or infinite there."""
    x, mask = np.arange(1.0, 4), np.array([True, False, True])
    grad = np.array([2.0, np.nan, -np.inf])
    assert nb.multiply.op.gradient(grad, x, 5.0, where=mask)[0].tolist() == [10, 0, -np.inf]
    assert nb.multiply.op.gradient(grad, x, 5.0, where=False)[0].tolist() == [0, 0, 0]
    assert nb.add.op.gradient(grad[:1], x[:1], 5.0, where=True)[0].tolist() == [2]


def test_sum_to_spreads_the_gradient_whatever_was_summed():
    x = np.array([[1.0, np.inf, np.nan], [0, 1, 2]])
    (found,) = nb.sum_to.op.gradient(np.array([3.0, 4, 5]), x, (3,))
    assert np.array_equal(found, [[3, 4, 5], [3, 4, 5]])


def test_linear_has_matmuls_gradients():
    rng = np.random.default_rng(0)
    x, w, b, grad = (rng.normal(size=shape) for shape in ((2, 7, 5), (3, 5), (3,), (2, 7, 3)))
    for y in (x, x.transpose(1, 0, 2)):
        g = grad if y is x else grad.transpose(1, 0, 2)
        dx, dw, db = nb.linear.op.gradient(g, y, w, b)
        np.testing.assert_allclose(dx, g @ w, rtol=1e-12)
        np.testing.assert_allclose(dw, np.einsum("bmn,bmk->nk", g, y), rtol=1e-12)
        np.testing.assert_allclose(db, grad.sum((0, 1)), rtol=1e-12)
    assert nb.linear.op.gradient(grad, x, w)[2] is None


def test_numbers_have_no_gradient():
    grad, x = np.ones(3), np.arange(1.0, 4)
    assert nb.multiply.op.gradient(grad, x, 3.0)[1] is None
    np.testing.assert_array_equal(nb.multiply.op.gradient(grad, x, 3.0)[0], [3, 3, 3])
    np.testing.assert_array_equal(nb.divide.op.gradient(grad, 1.0, x)[1], -1 / x**2)


def test_gradients_of_column_major_inputs_are_column_major():
    a, b = (np.asfortranarray(x) for x in inputs(MATRICES[0]))
    grad = np.ones((2, 3))
    for found in (nb.mm.op.gradient(grad, a, b), nb.addmm.op.gradient(grad, np.zeros(3), a, b, alpha=2)[1:]):
        assert all(x.flags.f_contiguous for x in found)
    for mine, same in zip(nb.mm.op.gradient(grad, a, b), nb.mm.op.gradient(grad, a.copy("C"), b.copy("C"))):
        assert same.flags.c_contiguous
        assert np.array_equal(mine, same), "the same bits in either order"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_who_wins(dtype):
    """All, half or nothing, to the last bit: subnormal differences, those that overflow, NaN (torch's: all to both)."""
    info = np.finfo(dtype)
    tiny, big, nan = info.smallest_subnormal, info.max, np.nan
    pairs = [(1, 2, 0), (2, 1, 1), (3, 3, 0.5), (0, -0.0, 0.5), (tiny, 0, 1), (0, tiny, 0)]
    pairs += [(info.tiny + tiny, info.tiny, 1), (big, -big, 1), (-big, big, 0), (np.inf, 1, 1), (-np.inf, np.inf, 0)]
    x, y, expected = (np.array(column, dtype) for column in zip(*pairs, (nan, 1, 1), (1, nan, 1)))
    grad = np.ones(len(x), dtype)
    left, right = nb.maximum.op.gradient(grad, x, y)
    np.testing.assert_array_equal(left, expected)
    np.testing.assert_array_equal(right[:-2], 1 - expected[:-2])
    np.testing.assert_array_equal(nb.minimum.op.gradient(grad, x, y)[1][:-2], expected[:-2])
    np.testing.assert_array_equal(
        nb.fmax.op.gradient(grad, x, y)[0], np.where(expected == 0.5, 1, [*expected[:-2], 0, 1])
    )


def test_maximum_shares_the_gradient_where_both_are_largest():
    x = np.array([1.0, 2.0, 3.0])
    left, right = nb.maximum.op.gradient(np.full(3, 4.0), x, np.array([1.0, 1.0, 5.0]))
    assert np.array_equal(left, [2, 4, 0])
    assert np.array_equal(right, [2, 0, 4])


def test_against_torch():
    if find_spec("torch") is None:
        pytest.skip("needs torch")
    import torch

    functions = dict(mm=torch.mm, addmm=torch.addmm, add=torch.add, subtract=torch.subtract, multiply=torch.multiply)
    functions |= dict(divide=torch.divide, maximum=torch.maximum, minimum=torch.minimum)
    functions |= {name: getattr(torch, name) for name in SMOOTH}
    for name, shapes, keywords in CASES:
        if name not in functions or "where" in keywords:
            continue
        args = [torch.from_numpy(np.array(x)).requires_grad_() for x in inputs(shapes)]
        result = functions[name](*args, **keywords)
        grad = torch.from_numpy(np.array(np.random.default_rng(9).normal(size=tuple(result.shape))))
        result.backward(grad)
        found = getattr(nb, name).op.gradient(grad, *[x.detach() for x in args], **keywords)
        for x, mine in zip(args, found):
            assert type(mine) is torch.Tensor
            torch.testing.assert_close(mine, x.grad, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_everyday_products_have_the_formulas_bits(dtype):
    """What goes back by two products at once has the gradients and layouts of the formulas; nothing else goes so."""
    from nbkernels.autograd import on_views
    from nbkernels.dispatch import arrays, derive

    rng = np.random.default_rng(3)
    row = {name: derive.derivative(nb.ops.LIBRARY[name], "CPU") for name in ("mm", "linear")}
    adapter = arrays.adapter_of(np.ndarray)

    def pair(name, grad, values, wanted):
        op = nb.ops.LIBRARY[name]
        values = [*values, *[None] * (len(op.names) - len(values))]
        quick = on_views.everyday(row[name], adapter, grad, values, wanted)
        return quick, derive.gradients(op, row[name], grad, values, wanted)

    def random(m, n, layout):
        x = rng.standard_normal((m, n)).astype(dtype)
        return {"C": x, "F": np.asfortranarray(x), "sliced": np.repeat(x, 2, 1)[:, ::2]}[layout]

    expanded = np.broadcast_to(np.ones((), dtype), (5, 4))
    for layout in ("C", "F", "sliced"):
        x, w, b = random(5, 3, layout), random(4, 3, layout), rng.standard_normal(4).astype(dtype)
        for grad in (random(5, 4, layout), expanded):
            for wanted in ((True, True, True), (False, True, False), (True, False, True)):
                for quick, whole in (
                    pair("linear", grad, (x, w, b), wanted), pair("linear", grad, (x, w), (*wanted[:2], False)),
                    pair("mm", grad, (x, w.T), wanted[:2]),
                ):  # fmt: skip
                    assert quick is not None
                    for found, expected in zip(quick, whole, strict=True):
                        assert (found is None) == (expected is None)
                        if found is not None:
                            np.testing.assert_array_equal(found, expected)
                            assert (found.dtype, found.strides) == (expected.dtype, expected.strides)
    other = {"f4": "f8", "f8": "f4"}[dtype]
    assert pair("linear", grad, (x, w.astype(other), b), (True,) * 3)[0] is None
    assert pair("linear", grad[None], (x[None], w, b), (True,) * 3)[0] is None
    none = np.zeros((0, 3), dtype)
    for name, given in (
        ("linear", (grad[:1], (x[:1], w, b), (True,) * 3)), ("linear", (grad[:, :1], (x, w[:1], b[:1]), (True,) * 3)),
        ("mm", (grad, (x[::-1], w.T), (True, True))), ("mm", (grad, (x[::-1, ::-1], w.T[::-1]), (True, True))),
        ("mm", (grad[:, :1], (x, w.T[:, :1]), (True, True))), ("mm", (grad, (x[:, :1], w.T[:1]), (True, True))),
        ("mm", (grad, (np.asfortranarray(x)[::-1], w[::-1].T), (True, True))),
        ("mm", (grad, (np.broadcast_to(x[:1], x.shape), np.broadcast_to(w.T[:, :1], w.T.shape)), (True, True))),
        ("mm", (grad[:0], (none, w.T), (True, True))), ("linear", (grad[:0], (none, w, b), (True,) * 3)),
    ):  # fmt: skip
        for found, expected in zip(*pair(name, *given), strict=True):
            np.testing.assert_array_equal(found, expected)
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            assert 1 in found.shape or found.strides == expected.strides
    assert on_views.everyday(row["mm"], adapter, grad, [x, w.T, None, "chain", None, None], (True, True)) is None
