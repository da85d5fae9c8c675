"""Every derivative in every dtype it has, against torch's autograd: values, dtypes and layouts; alpha and beta real and
complex, broadcasting, mixed dtypes, column-major inputs. What torch cannot do is held against differences instead."""

import math
from importlib.util import find_spec

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.dtypes import ALONE, ufunc
from nbkernels.operations import BINARY, BY_NAME, UNARY
from nbkernels.ops import LIBRARY
from tests.cases import EVERY
from tests.compare import numpys

DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
# How far two sums of a few products may be from each other, relative to the largest element: they round each step once.
TOLERANCE = dict(float16=2e-2, bfloat16=1e-1, float32=1e-5, float64=1e-12, complex64=1e-5, complex128=1e-12)
REAL, FACTORS = ("beta", "alpha"), dict(f=dict(beta=-0.5, alpha=2.5), c=dict(beta=0.5 - 1j, alpha=2 + 3j))
SHAPES = {
    "mm": ((4, 5), (5, 3)), "addmm": ((3,), (4, 5), (5, 3)), "bmm": ((2, 4, 5), (2, 5, 3)),
    "baddbmm": ((4, 1), (2, 4, 5), (2, 5, 3)), "addbmm": ((3,), (2, 4, 5), (2, 5, 3)), "mv": ((4, 5), (5,)),
    "addmv": ((1,), (4, 5), (5,)), "outer": ((4,), (3,)), "addr": ((4, 3), (4,), (3,)), "dot": ((5,), (5,)),
    "vdot": ((5,), (5,)), "matmul": ((2, 4, 5), (5, 3)), "linear": ((2, 4, 5), (3, 5), (3,)),
}  # fmt: skip
ACTIVE = ("relu", "gelu", "silu", "tanh", "sigmoid")
TWO = [op for op, row in BINARY.items() if row.slope == BY_NAME and op != "ldexp"]
FOLDS = ("add", "multiply", "maximum", "minimum", "logaddexp")
COMPLEX_TOO = {"add", "subtract", "multiply", "divide", "pow", "float_power", *SHAPES}

pytestmark = pytest.mark.usefixtures("at_first")


def dtype_of(name):
    return pytest.importorskip("ml_dtypes").bfloat16 if name == "bfloat16" else name


def made(rng, shape, dtype, columns=False):
    """Numbers away from 0 and from each other: no kink is near."""
    x = rng.uniform(0.5, 2, shape) * rng.choice([-1.0, 1.0], shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.uniform(0.5, 2, shape)
    x = np.asarray(x).astype(dtype)
    return np.asfortranarray(x) if columns else x


def cases():
    """(name, what it is of, keywords)"""
    for name, shapes in SHAPES.items():
        for columns in (False, True):
            yield name, [(shape, columns) for shape in shapes], None
    for name in TWO:
        yield name, [((3, 4), False), ((3, 4), False)], None
        yield name, [((2, 3, 4), True), ((4,), False)], None
        yield name, [((3, 1), False), ((1, 4), False)], None


def differences(function, args, grad, i, step=1e-6):
    """The gradient of sum(Re(conj(grad) * function(*args))) in args[i], element by element."""
    found = np.zeros_like(args[i])
    for at in np.ndindex(args[i].shape):
        for turn in (1, 1j) if args[i].dtype.kind == "c" else (1,):
            ends = []
            for sign in (step, -step):
                moved = [x.copy() for x in args]
                moved[i][at] += sign * turn
                ends.append(np.sum((np.conj(grad) * function(*moved)).real))
            found[at] += turn * (ends[0] - ends[1]) / (2 * step)
    return found


def of_torch(name):
    import torch

    named = {"multiply": torch.mul, "float_power": torch.float_power, "linear": torch.nn.functional.linear}
    return named.get(name) or getattr(torch, name)


def as_torch(x):
    """The same memory as a tensor, of the same strides."""
    import torch

    if x.dtype.name == "bfloat16":
        return torch.from_numpy(np.array(x.view(np.int16))).view(torch.bfloat16).as_strided(
            x.shape, [s // 2 for s in x.strides])  # fmt: skip
    return torch.from_numpy(x)


def as_numpy(x):
    return x.detach().resolve_conj().to(dtype=__import__("torch").complex128 if x.is_complex() else
                                        __import__("torch").float64).numpy()  # fmt: skip


def check_like(found, x):
    """A gradient has its argument's shape, dtype and, for a matrix, its order."""
    assert (found.shape, found.dtype) == (x.shape, x.dtype)
    if x.ndim > 1 and 1 not in x.shape[-2:]:
        assert (found.strides[-2] < found.strides[-1]) == (x.strides[-2] < x.strides[-1])


def check_close(found, expected, dtype):
    found = found.astype(np.complex128 if found.dtype.kind == "c" else np.float64)
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE[dtype] * max(1, abs(expected).max(initial=0)))


def keywords_of(op, dtype):
    names = {a.name for a in op.arguments} & set(REAL)
    return {name: FACTORS["c" if dtype[0] == "c" else "f"][name] for name in names}


@pytest.mark.parametrize("dtype", [pytest.param(dtype, marks=[] if dtype in ("float16", "complex128") else
                                                pytest.mark.sampled) for dtype in DTYPES])  # fmt: skip
def test_against_torch(dtype, rng):
    if find_spec("torch") is None:
        pytest.skip("needs torch")
    import torch

    kind, checks = dtype_of(dtype), 0
    for name, operands, _ in cases():
        if dtype[0] == "c" and name not in COMPLEX_TOO:
            continue
        op, args = getattr(nb, name).op, [made(rng, shape, kind, columns) for shape, columns in operands]
        if name in ("pow", "float_power"):
            args[0] = abs(args[0]).astype(kind) if dtype[0] != "c" else args[0]
        keywords = keywords_of(op, dtype)
        leaves = [as_torch(x).clone(memory_format=torch.preserve_format).requires_grad_() for x in args]
        result = of_torch(name)(*leaves, **keywords)
        grad = made(rng, tuple(result.shape), str(result.dtype).removeprefix("torch.")
                    if result.dtype != torch.bfloat16 else kind)  # fmt: skip
        result.backward(as_torch(grad))
        found = op.gradient(grad, *args, **keywords)
        for x, leaf, mine in zip(args, leaves, found, strict=True):
            checks += 1
            check_like(mine, x)
            check_close(mine, as_numpy(leaf.grad), dtype)
    assert checks >= (60 if dtype[0] == "c" else 130)


MIXED = (("float32", "float64"), ("float64", "complex128"), ("complex64", "float64"), ("float16", "float32"),
         ("bfloat16", "float64"), ("float32", "int32"), ("int8", "complex64"))  # fmt: skip
HALVES = ("add", "multiply", "pow", "maximum"), ("subtract", "divide", "float_power", "hypot")


@pytest.mark.sampled
@pytest.mark.parametrize("pair", MIXED, ids="-".join)
def test_mixed_dtypes(pair, rng):
    """Each argument's gradient in its own dtype, real for a real one; integers have none. One half of the operations
    for each pair of dtypes, in turn."""
    for name in HALVES[MIXED.index(pair) % 2]:
        if "complex" in "".join(pair) and name == "hypot":
            continue
        args = [
            np.asarray(abs(made(rng, shape, "f8")) + 1).astype(dtype_of(d)) for shape, d in zip(((3, 4), (4,)), pair)
        ]
        args[1] = args[1] + (np.dtype(args[1].dtype).kind == "c") * 1j if args[1].dtype.kind == "c" else args[1]
        function = getattr(nb, name)
        grad = made(rng, (3, 4), function(*args).dtype)
        found = function.op.gradient(grad, *args)
        wide = [x.astype("c16" if x.dtype.kind == "c" else "f8") for x in args]
        for i, (x, mine) in enumerate(zip(args, found)):
            if x.dtype.kind == "i":
                assert mine is None
                continue
            check_like(mine, x)
            expected = differences(function, wide, grad.astype("c16" if grad.dtype.kind == "c" else "f8"), i)
            narrow = min((d for d in map(str, (x.dtype, grad.dtype)) if d in TOLERANCE), key=lambda d: -TOLERANCE[d])
            check_close(mine, expected, narrow if TOLERANCE[narrow] > 1e-5 else "float32")


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_against_differences(dtype, rng):
    """Where there is no torch, and of what torch has not: every op that declares a derivative. With torch, those of
    complex numbers that it has are the test's above."""
    seen, left = set(), COMPLEX_TOO if dtype[0] == "c" and find_spec("torch") and not EVERY else ()
    for name, operands, _ in cases():
        if name in left:
            continue
        args = [made(rng, shape, dtype, columns) for shape, columns in operands]
        if name in ("pow", "float_power"):
            args[0] = abs(args[0]).astype(dtype)
        try:
            result = getattr(nb, name)(*(nb.dispatch.MetaArray(x.shape, x.dtype) for x in args))
        except TypeError:
            assert dtype[0] == "c"
            continue
        keywords = keywords_of(getattr(nb, name).op, dtype)
        seen.add(name)
        plain = ufunc(name) if name in TWO and not keywords else getattr(nb, name)

        def call(*values, plain=plain, keywords=keywords):
            return plain(*values, **keywords)

        grad = made(rng, result.shape, dtype)
        for i, (x, mine) in enumerate(zip(args, getattr(nb, name).op.gradient(grad, *args, **keywords))):
            check_like(mine, x)
            np.testing.assert_allclose(mine, differences(call, args, grad, i), rtol=2e-6, atol=2e-6)
    declared = {op.schema.name for op in LIBRARY if op.table.row("AutogradCPU").row is not None}
    declared -= ALONE  # elementwise/test_one_operand.py's
    if dtype[0] == "c":
        assert seen >= {"maximum", "minimum", "fmax", "fmin"}
    else:
        assert declared - seen == {"addmm_activation", "ldexp", "sum_to", "reduce", "accumulate"}, "test them, too"


# -- second derivatives of operations of one --------------------------------------------------------------------------

ONES = [op for op, row in UNARY.items() if row.slope == BY_NAME]
# What is not holomorphic: first derivatives by (grad, x), written here.
SLOPES = {
    "f": {"abs": lambda grad, x: grad * np.sign(x), "sign": lambda grad, x: 0 * x},
    "c": {"abs": lambda grad, x: grad * x / np.sqrt(x.real**2 + x.imag**2), "conj": lambda grad, x: np.conj(grad),
          "sign": lambda grad, x: (grad - np.conj(grad) * x**2 / abs(x) ** 2) / (2 * abs(x)),
          "real": lambda grad, x: grad + 0j, "imag": lambda grad, x: 1j * grad},
}  # fmt: skip
SLOPES["f"] |= {"conj": lambda grad, x: grad, "real": lambda grad, x: grad, "imag": lambda grad, x: 0 * x}


def by_cauchy(name, x, order, count=64, radius=0.05):
    """A derivative of NumPy's function at x: by the mean over a circle that holds no singularity, to 12 digits."""
    circle = np.exp(2j * np.pi * np.arange(count) / count)
    around = x[..., None] + radius * circle
    values = around ** (1 / 3) if name == "cbrt" else numpys(name)(around)
    found = math.factorial(order) * np.mean(values * circle**-order, -1) / radius**order
    return found if x.dtype.kind == "c" else found.real


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name in ONES for dtype in DTYPES[2:]
                                             if not (name == "cbrt" and dtype[0] == "c")])  # fmt: skip
def test_second_derivatives_of_one(name, dtype, rng):
    """The derivative, and those of sum(Re(conj(seed) * derivative)) in grad and x: by Cauchy's integral of NumPy's
    function where it is holomorphic, else by differences."""
    function, x = getattr(nb, name), rng.uniform(0.2, 0.8, (3, 4)) + (name == "acosh")
    x = (x + 1j * rng.uniform(0.2, 0.8, (3, 4)) if dtype[0] == "c" else x).astype(dtype)
    grad, seed = made(rng, (3, 4), function(x).dtype), made(rng, (3, 4), dtype)
    with nb.GradTape() as outer:
        seen = outer.watch(grad), outer.watch(x)
        with nb.GradTape() as inner:
            source = inner.watch(seen[1])
            target = function(source)
        slope = inner.gradient(target, source, seen[0])
    found = slope.value, *outer.gradient(slope, seen, seed)
    wide = [each.astype("c16" if each.dtype.kind == "c" else "f8") for each in (grad, x, seed)]
    if formula := SLOPES[dtype[0]].get(name):
        wanted = formula(*wide[:2]), *(differences(formula, wide[:2], wide[2], i) for i in range(2))
    else:
        first, second = (by_cauchy(name, wide[1], order) for order in (1, 2))
        wanted = wide[0] * first.conj(), wide[2] * first, wide[2].conj() * wide[0] * second.conj()
    for mine, expected, like in zip(found, wanted, (x, grad, x), strict=True):
        mine = np.zeros_like(like) if mine is None else mine  # it does not depend on it
        check_like(mine, like)
        np.testing.assert_allclose(mine, expected, rtol=0, atol=max(1, abs(expected).max()) * (
            1e-5 if dtype in ("float32", "complex64") else 1e-8 if formula else 1e-11))  # fmt: skip


@pytest.mark.parametrize("activation", ACTIVE)
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d[0] != "c"])
def test_activations(activation, dtype, rng):
    if find_spec("torch") is None:
        pytest.skip("needs torch")
    import torch

    args = [made(rng, shape, dtype_of(dtype), True) for shape in SHAPES["addmm"]]
    leaves = [as_torch(x).clone().requires_grad_() for x in args]
    theirs = getattr(torch.nn.functional, activation)(torch.addmm(*leaves, beta=0.5, alpha=0.25))
    grad = made(rng, (4, 3), dtype_of(dtype))
    theirs.backward(as_torch(grad))
    keywords = dict(beta=0.5, alpha=0.25, activation=activation)
    for x, leaf, mine in zip(args, leaves, nb.addmm_activation.op.gradient(grad, *args, **keywords), strict=True):
        check_like(mine, x)
        check_close(mine, as_numpy(leaf.grad), dtype)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
def test_folds_against_torch(dtype, rng):
    if find_spec("torch") is None:
        pytest.skip("needs torch")
    import torch

    def total(name, x, axis, keepdims):
        if name == "multiply":
            for a in sorted(axis, reverse=True):
                x = torch.prod(x, a, keepdim=keepdims)
            return x
        named = dict(add=torch.sum, maximum=torch.amax, minimum=torch.amin, logaddexp=torch.logsumexp)[name]
        return named(x, axis, keepdim=keepdims)

    for name in FOLDS[: 2 if dtype[0] == "c" else None]:
        for axis, keepdims in (((1,), False), ((0, 2), True), ((0, 1, 2), False)):
            x = made(rng, (3, 4, 2), dtype_of(dtype))
            if name in ("maximum", "minimum"):
                x[0, 0], x[1, 1] = x.max(), x.min()  # shared by all that are
            leaf = as_torch(x).clone().requires_grad_()
            theirs = total(name, leaf, axis, keepdims)
            grad = made(rng, tuple(theirs.shape), dtype_of(dtype))
            theirs.backward(as_torch(np.asarray(grad)))
            with nb.GradTape() as tape:
                seen = tape.watch(x)
                mine = getattr(nb, name).reduce(seen, axis=axis, keepdims=keepdims)
            found = tape.gradient(mine, seen, grad)
            check_like(found, x)
            check_close(found, as_numpy(leaf.grad), dtype)
