"""What a tape finds once for calls that are alike: the next call is another one, by dtype, layout, mask or keyword."""

from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest

import nbkernels as nb

DTYPES = "f4", "c8"
LAYOUTS = {
    "C": lambda x: x,
    "F": np.asfortranarray,
    "sliced": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "turned": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
}
CALLS = {  # the call, keywords, and the same by NumPy
    "add": (nb.add, [{}, {"alpha": 3}, {"alpha": 0.5, "order": "F"}, {"dtype": "c8"}],
            lambda x, y, alpha=1, order=None: x + alpha * y),
    "multiply": (nb.multiply, [{}, {"dtype": "c8"}], np.multiply),
    "mm": (nb.mm, [{}, {"conj": "a"}, {"conj": "ab"}],
           lambda x, y, conj="": (x.conj() if "a" in conj else x) @ (y.conj() if "b" in conj else y)),
    "addmm": (lambda x, y, **words: nb.addmm(x, x, y, **words), [{}, {"beta": 2.0}, {"alpha": 0.5, "beta": 0.0}],
              lambda x, y, beta=1, alpha=1: beta * x + alpha * (x @ y)),
    "exp": (lambda x, y: nb.multiply(nb.exp(x), y), [{}], lambda x, y: np.exp(x) * y),
    "reduce": (lambda x, y, **words: nb.add.reduce(nb.multiply(x, y), **words),
               [{}, {"axis": 1}, {"axis": (0, 1), "keepdims": True}, {"axis": 1, "initial": 2.0}],
               lambda x, y, axis=0, **words: np.add.reduce(x * y, axis, **words)),
}  # fmt: skip


def made(rng, dtype, n=4):
    x = rng.uniform(1, 2, (n, n)) + (1j * rng.uniform(1, 2, (n, n)) if dtype[0] == "c" else 0)
    return x.astype(dtype)


def slow(function, words, x, y, grad, seen):
    """Gradients of Re(sum(conj(grad) * function)) by central differences in twice the bits."""
    found, words = [], {key: word for key, word in words.items() if key != "dtype"}
    for i in (0, 1):
        if not seen[i]:
            found.append(None)
            continue
        wide = [z.astype("c16" if z.dtype.kind == "c" else "f8") for z in (x, y)]
        slope = np.zeros_like(wide[i])
        for index in np.ndindex(x.shape):
            for step in (1, 1j) if slope.dtype.kind == "c" else (1,):
                ends = []
                for sign in (1, -1):
                    moved = [z.copy() for z in wide]
                    moved[i][index] += sign * step * 1e-6
                    ends.append((np.conj(grad) * function(*moved, **words)).sum().real)
                slope[index] += step * (ends[0] - ends[1]) / 2e-6
        found.append(slope)
    return found


@pytest.mark.parametrize("name", CALLS)
def test_each_call_has_its_own_gradients(name, rng):
    """Dtypes, layouts, which arguments are watched and keywords in a random order, twice: nothing of one call is left
    in another."""
    function, keywords, numpys = CALLS[name]
    kinds = list(product(product(DTYPES, repeat=2), product(LAYOUTS, repeat=2), range(3), range(len(keywords))))
    if name in ("mm", "addmm"):
        kinds = [kind for kind in kinds if kind[0][0] == kind[0][1]]
    rng.shuffle(kinds)
    for (first, second), layouts, mask, which in [*kinds[:40], *kinds[:10]]:
        words, seen = keywords[which], ((True, True), (True, False), (False, True))[mask]
        if ("initial" in words and "c" in first + second) or ("conj" in words and first != "c8"):
            continue
        given = [LAYOUTS[layout](made(rng, dtype)) for layout, dtype in zip(layouts, (first, second))]

        def called(*watched, given=given, seen=seen, words=words):
            watched = iter(watched)
            return function(*(next(watched) if keep else x for x, keep in zip(given, seen)), **words)

        result, pull = nb.vjp(called, *(x for x, keep in zip(given, seen) if keep))
        expected = function(*given, **words)
        np.testing.assert_array_equal(result, expected)
        assert result.dtype == expected.dtype
        grad = rng.uniform(1, 2, np.shape(result)).astype(result.dtype)
        wanted, found = slow(numpys, words, *given, grad, seen), iter(pull(grad))
        for x, keep, slope in zip(given, seen, wanted):
            if keep:
                mine = next(found)
                assert (mine.dtype, mine.shape, mine.flags.writeable) == (x.dtype, x.shape, True)
                np.testing.assert_allclose(mine, slope if x.dtype.kind == "c" else slope.real, 2e-5, 1e-4)


def test_one_operation_has_the_gradients_of_a_tape(rng):
    """Numbers, integers and arrays of several layouts at each place in turn, with no gradient where there is none."""
    x, y = (LAYOUTS[layout](made(rng, "f4")) for layout in ("F", "turned"))
    whole, row = np.arange(1, 17).reshape(4, 4), made(rng, "f4")[0]
    args = (x, y), (x, 2.0), (2, x), (x, whole), (whole, y), (x, row), (row, x), (x, x), (y, True), (x[1:], y[1:])
    for function in (nb.multiply, nb.add, nb.maximum):
        for given in (*args, *args[::-1]):
            once, by_tape = nb.vjp(function, *given), nb.vjp(lambda *z, f=function: f(*z), *given)
            grad = rng.uniform(1, 2, once[0].shape).astype(once[0].dtype)
            for mine, wanted in zip((once[0], *once[1](grad)), (by_tape[0], *by_tape[1](grad)), strict=True):
                assert (mine is None) == (wanted is None)
                if mine is not None:
                    np.testing.assert_array_equal(mine, wanted)
                    assert (mine.dtype, mine.strides) == (wanted.dtype, wanted.strides)
    for given in ((x, y), (x, y.T), (x[:, :1], y[:1]), (x[:0], y)):
        for function in (nb.mm, nb.matmul, lambda x, w: nb.linear(x, w.T)):
            result, pull = nb.vjp(function, *given)
            np.testing.assert_allclose(result, given[0] @ given[1], 1e-5)
            grad = np.ones_like(result)
            for mine, wanted in zip(pull(grad), (grad @ given[1].T, given[0].T @ grad), strict=True):
                np.testing.assert_allclose(mine, wanted, 1e-5)
    assert nb.vjp(nb.add, x, y)[1](None) == (None, None)
    assert nb.vjp(nb.dot, row, row)[1](2.0)[0].tolist() == (2 * row).tolist()
    for call, why in (
        (lambda: nb.vjp(nb.add, whole, 2), "no differentiable operation"),
        (lambda: nb.vjp(nb.less, x, y), "no differentiable operation"),
        (lambda: nb.vjp(nb.add, x, y)[1](np.ones(3)), r"grad is of shape \(3,\), and the target an array of shape"),
        (lambda: nb.vjp(nb.add, x, y)[1]((x, y)), "grad is a tuple, and the target"),
    ):
        with pytest.raises(nb.dispatch.ArgumentError, match=why):
            call()


def test_a_derivative_that_is_replaced_is_found_anew():
    """Registered, overridden, removed; a fallback likewise: each call goes by what is there then."""
    x = np.ones((2, 2))

    def slope(function=nb.exp2):
        _, pull = nb.vjp(function, x)
        return pull(x)[0][0, 0]

    def of(factor):
        return {"self": lambda grad: factor * grad}

    usual = slope()
    for _ in range(2):
        with nb.register(nb.exp2, "AutogradCPU", of(5)):
            assert slope() == 5
            with nb.register(nb.exp2, "AutogradCPU", of(7), override=True):
                assert slope() == 7
            assert slope() == 5
        assert slope() == usual
    with nb.GradTape() as tape:
        seen = tape.watch(x)
        before = nb.exp2(seen)
        with nb.register(nb.exp2, "AutogradCPU", of(5)):
            after = nb.exp2(seen)
    assert [tape.gradient(y, seen, x)[0, 0] for y in (before, after)] == [usual, 5]
    text = "own(Tensor self) -> Tensor"
    with nb.define(text, structured=lambda self: nb.meta(self.shape, self.dtype),
                   dispatch={"CPU": lambda out, self: np.exp2(self, out=out)}) as op:  # fmt: skip
        with pytest.raises(nb.dispatch.MissingKernelError):
            slope(op.function)
        for factor in (3, 4):
            with nb.register_fallback("AutogradCPU", lambda op, grad, args, mask, by=factor: [by * grad]):
                assert slope(op.function) == factor
        with pytest.raises(nb.dispatch.MissingKernelError):
            slope(op.function)


@pytest.mark.parametrize("order", ["C", "F", "reversed", "0-d", "scalar", "broadcast", "empty", "large"])
def test_copies_are_those_of_copy(order):
    """What is watched is copied as `ops.copy` says, to the bit, and what that refuses is."""
    with pytest.raises(TypeError, match="byte-swapped"):
        nb.vjp(nb.negative, np.ones(3, ">f8"))
    x = np.arange(1.0, 13.0).reshape(3, 4)
    x[0, 0], x[1, 1] = -0.0, np.nan
    x = {"C": x, "F": np.asfortranarray(x), "reversed": x[::-1, ::2], "0-d": np.array(2.5),
         "scalar": np.float64(2.5), "broadcast": np.broadcast_to(x[0], (3, 4)), "empty": x[:0],
         "large": np.tile(x, (99, 99))}[order]  # fmt: skip
    with nb.GradTape() as tape:
        seen = tape.watch(x)
        alike = nb.ops.copy(x, order="C" if order == "broadcast" else "K")
        assert type(seen.value) is type(alike)
        assert (seen.value.dtype, seen.value.shape, seen.value.strides) == (alike.dtype, alike.shape, alike.strides)
        assert seen.value.tobytes() == alike.tobytes()
        result = seen * seen
    if isinstance(x, np.ndarray):
        assert not seen.value.flags.writeable
        assert not np.shares_memory(seen.value, x)
    grad = np.ones(x.shape)
    np.testing.assert_array_equal(tape.gradient(result, seen, grad), 2 * x)
    result, pull = nb.vjp(lambda x: x, x)
    assert result.tobytes() == np.ascontiguousarray(x, x.dtype.newbyteorder("=")).tobytes()
    np.testing.assert_array_equal(pull(grad)[0], grad)


def test_gradients_share_no_memory():
    """Neither with the gradient that was given, nor with each other, nor with what a tape holds."""
    x, y = np.ones((3, 3)), np.full((3, 3), 2.0)
    for function in (nb.add, nb.subtract, nb.mm, nb.multiply, lambda x, y: x + y.T, lambda x, y: (x + y).T,
                     lambda x, y: nb.sum_to(x, (3, 3)) + y, lambda x, y: x[::-1] + y.reshape(9).reshape(3, 3),
                     lambda x, y: nb.add.reduce(x.reshape(9, 1), axis=1).reshape(3, 3) + y):  # fmt: skip
        grad = np.arange(9.0).reshape(3, 3)
        result, pull = nb.vjp(function, x, y)
        first, kept = pull(grad), grad.copy()
        arrays = [x, y, grad, result, *first]
        for i, a in enumerate(arrays):
            assert a.flags.writeable
            assert not any(np.shares_memory(a, b) for b in arrays[:i])
        expected = [part.copy() for part in first]
        for a in (x, y, result, *first):
            a += 9
        assert np.array_equal(grad, kept)
        for mine, wanted in zip(pull(grad), expected, strict=True):
            np.testing.assert_array_equal(mine, wanted)
        x, y = np.ones((3, 3)), np.full((3, 3), 2.0)
    text, made = "itself(Tensor self) -> Tensor", dict(structured=lambda self: nb.meta(self.shape, self.dtype))
    with nb.define(text, **made, dispatch={"CPU": lambda out, self: np.copyto(out, self)},
                   gradient={"self": lambda grad, self: self}) as op:  # fmt: skip
        for function in (op.function, lambda x: op.function(x)):
            pull = nb.vjp(function, x)[1]
            pull(x)[0][...] = 7
            assert (pull(x)[0] == 1).all()


def test_two_tapes_and_tapes_that_have_ended():
    """Calls that were noted a moment ago are not, or by another tape."""
    x = np.full((2, 2), 3.0)
    with nb.GradTape() as outer:
        u = outer.watch(x)
        with nb.GradTape() as inner:
            v = inner.watch(u)
            square = v * v
            with pytest.raises(nb.dispatch.ArgumentError, match="another tape"):
                nb.multiply(u, v)
        slope = inner.gradient(square, v, x)
        twice = slope * u
        assert type(v * v) is type(u)
        assert (v * v).mode is outer
    assert type(u * u) is np.ndarray
    np.testing.assert_array_equal(outer.gradient(twice, u, x), 2 * 2 * 3 * x * x)
    with nb.GradTape() as tape:
        assert type(nb.multiply(u, u)) is np.ndarray
        seen = tape.watch(x)
        with pytest.raises(nb.dispatch.ArgumentError, match=r"another tape|after its end"):
            nb.multiply(seen, u)
        assert type(nb.multiply(seen, 2.0)) is type(seen)


@pytest.mark.filterwarnings("ignore")  # torch's, of what it uses itself
@pytest.mark.skipif(not find_spec("torch"), reason="lacks torch")
def test_operations_as_steps_of_torch():
    """for_torch of one operation: leaves, parameters, what returns its argument, duals, masks in turn."""
    import torch

    x, w = torch.rand(3, 3, dtype=torch.float64), torch.nn.Parameter(torch.rand(3, 3, dtype=torch.float64))
    for seen in ((True, True), (False, True), (True, False), (True, True)):
        a, b = x.clone().requires_grad_(seen[0]), torch.nn.Parameter(w.detach().clone(), requires_grad=seen[1])
        result = nb.for_torch(nb.mm)(a, b)
        assert result.requires_grad
        result.sum().backward()
        for mine, theirs in zip((a, b), (torch.ones(3, 3).double() @ w.detach().T, x.T @ torch.ones(3, 3).double())):
            assert (mine.grad is not None) == mine.requires_grad
            if mine.requires_grad:
                torch.testing.assert_close(mine.grad, theirs)
    leaf = x.clone().requires_grad_()
    same = nb.for_torch(nb.sum_to)(leaf, (3, 3))
    assert same is not leaf
    (same * 2).sum().backward()
    assert leaf.grad.eq(2).all()
    z = torch.randn(3, 3, dtype=torch.complex128).conj()
    with pytest.raises(nb.dispatch.ArgumentError, match="lazy negative or conjugate"):
        nb.for_torch(nb.mm)(z, z)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        tangent = torch.autograd.forward_ad.unpack_dual(nb.for_torch(nb.mm)(dual, x)).tangent
        torch.testing.assert_close(tangent, torch.ones_like(x) @ x)
    assert torch.autograd.gradgradcheck(nb.for_torch(nb.mm), (x.requires_grad_(), w.detach().requires_grad_()))
    with torch.inference_mode():
        torch.testing.assert_close(nb.for_torch(nb.mm)(x, x), x @ x)
