"""Gradients of chains: against central differences in f64, and against torch where it is."""

from importlib.util import find_spec

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.dispatch import ArgumentError, MissingKernelError, views


def chain(x, w, b):
    """Two layers whose input is used three times, and a number."""
    hidden = nb.addmm_activation(b, x, w, activation="gelu")
    mixed = nb.multiply(hidden, nb.add(hidden, nb.hypot(hidden, 2.0), alpha=0.5))
    return nb.sum_to(nb.divide(nb.linear(mixed, w, None), nb.logaddexp(b, 1.0)), ())


@pytest.fixture
def args(rng):
    return [rng.standard_normal(shape) for shape in ((4, 3), (3, 3), (3,))]


def slope(function, args, i, step=1e-6):
    """d function(*args) / d args[i], element by element."""
    result = np.zeros_like(args[i])
    for index in np.ndindex(args[i].shape):
        ends = []
        for sign in (1, -1):
            moved = [x.copy() for x in args]
            moved[i][index] += sign * step
            ends.append(function(*moved))
        result[index] = (ends[0] - ends[1]) / (2 * step)
    return result


def test_vjp_against_differences(args):
    result, pull = nb.vjp(chain, *args)
    assert result == chain(*args)
    for i, found in enumerate(pull(np.float64(1))):
        np.testing.assert_allclose(found, slope(chain, args, i), rtol=1e-6, atol=1e-8)
    for twice, once in zip(pull(np.float64(2)), pull(np.float64(1))):
        np.testing.assert_array_equal(twice, 2 * once)


def test_the_gradient_of_what_broadcasts_is_summed():
    with nb.GradTape() as tape:
        a, b = tape.watch(np.ones(3)), tape.watch(np.ones(1))
        total = nb.sum_to(nb.add(a, b), ())
    assert [x.tolist() for x in tape.gradient(total, (a, b))] == [[1, 1, 1], [3]]
    assert tape.gradient(total, b).tolist() == [3]


def test_what_the_target_does_not_depend_on_has_none():
    with nb.GradTape() as tape:
        x, y = tape.watch(np.arange(3.0)), tape.watch(np.arange(3.0))
        square, other = nb.multiply(x, x), nb.equal(x, y)
    np.testing.assert_array_equal(tape.gradient(square, x, np.ones(3)), 2 * np.arange(3))
    assert tape.gradient(square, [x, y], np.ones(3))[1] is None
    assert type(nb.add(x, 1)) is np.ndarray  # after the block nothing is noted
    with pytest.raises(MissingKernelError, match=r"equal has no derivative"):
        tape.gradient(other, x, np.ones(3))


def test_composites_are_differentiated_by_their_parts(args):
    def body(a, b):
        return nb.add(nb.mm(a, b), a)

    def turned(a, b):
        return nb.mm(a, views.transpose(b))

    for function in (body, turned):
        with nb.define("mixed(Tensor a, Tensor b) -> Tensor", dispatch={"CompositeImplicit": function}) as op:
            if function is turned:  # what the parts see is a view that the tape knows nothing of
                with pytest.raises(ArgumentError, match="a view"):
                    nb.vjp(op.function, *args[:2])
                continue
            result, pull = nb.vjp(op.function, *args[:2])
            grad = np.ones_like(result)
            np.testing.assert_array_equal(result, args[0] @ args[1] + args[0])
            np.testing.assert_allclose(pull(grad)[0], grad @ args[1].T + grad)
            np.testing.assert_allclose(pull(grad)[1], args[0].T @ grad)


def test_numbers_and_constants_have_no_gradient(args):
    result, pull = nb.vjp(lambda x, factor, w: nb.mm(nb.multiply(x, factor), w), args[0], 3, args[1])
    found = pull(np.ones_like(result))
    assert found[1] is None
    np.testing.assert_allclose(found[0], 3 * np.ones_like(result) @ args[1].T)
    np.testing.assert_allclose(found[2], 3 * args[0].T @ np.ones_like(result))


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda tape, x: nb.add(x, x, out=np.empty(2)), "out="),
        (lambda tape, x: nb.add_(x, 1), "out="),
        (lambda tape, x: x[0], "views"),
        (lambda tape, x: nb.add(x, nb.GradTape().watch(np.ones(2))), "another tape"),
        (lambda tape, x: nb.elementwise(lambda v: v + 1)(x), "has no derivative"),
        (lambda tape, x: tape.watch([1.0]), "not a list"),
        (lambda tape, x: tape.gradient(x, np.ones(2)), "watches"),
        (lambda tape, x: tape.gradient(x, x), "pass grad"),
        (
            lambda tape, x: tape.gradient(x, x, np.ones(3)),
            r"grad is of shape \(3,\), and the target an array of shape \(2,",
        ),
        (lambda tape, x: tape.gradient(x, x, "ones"), "grad is a str, and"),
        (lambda tape, x: nb.vjp(np.sum, np.ones(2)), "AttributeError|numpy|value"),
        (lambda tape, x: nb.vjp(lambda y: np.ones(2), np.ones(2)), "no operation"),
    ],
)
def test_what_a_tape_cannot_do_is_told(call, why):
    tape = nb.GradTape()
    with pytest.raises((ArgumentError, AttributeError), match=why):
        call(tape, tape.watch(np.ones(2)))


@pytest.mark.skipif(not find_spec("torch"), reason="lacks torch")
def test_for_torch(args):
    import torch

    tensors = [torch.tensor(x, requires_grad=True) for x in args]
    step = nb.for_torch(chain)
    assert torch.autograd.gradcheck(step, tensors)
    (3 * step(*tensors)).backward()
    _, pull = nb.vjp(chain, *args)
    for tensor, found in zip(tensors, pull(np.float64(3))):
        np.testing.assert_allclose(tensor.grad.numpy(), found, rtol=1e-14)
    x = torch.ones(2, 3, dtype=torch.float64)
    held = nb.for_torch(nb.mm)(x, tensors[1])
    x += 1  # what the backward pass would read
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        held.sum().backward()
