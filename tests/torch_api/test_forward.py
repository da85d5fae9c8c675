"""Forward derivatives of nbkernels.torch and for_torch, held against torch's own."""

import pytest

import nbkernels as nb

torch = pytest.importorskip("torch", reason="lacks torch")
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's, of what it uses itself

from torch.autograd import forward_ad, gradcheck  # noqa: E402
from torch.func import grad, hessian, jacfwd, jvp, vmap  # noqa: E402

import nbkernels.torch as nt  # noqa: E402
from nbkernels.torch import forward  # noqa: E402
from tests.torch_api.test_library import SHAPES, TORCHS, floats  # noqa: E402

BOUND = 64 * 2.0**-52  # of sums of at most ten products of numbers below 3: each is rounded once, in some order


def alike(found, expected):
    torch.testing.assert_close(found, expected, rtol=BOUND, atol=BOUND)


def inputs(*shapes):
    """Primals, and tangents of both signs."""
    primals = tuple(floats(*shape).detach() for shape in shapes)
    return primals, tuple(torch.randn(shape, dtype=torch.float64) for shape in shapes)


OF_TORCH = TORCHS | {
    "subtract": torch.sub, "vdot": torch.vdot, "addmv": torch.addmv, "real": torch.clone, "conj": torch.clone,
    "sum_to": lambda x: x.sum(0), "reduce": lambda x: x.sum(0), "accumulate": lambda x: x.cumsum(0),
}  # fmt: skip
OURS = {"reduce": nt.add.reduce, "accumulate": nt.add.accumulate, "sum_to": lambda x: nt.sum_to(x, (4,))}
LINEAR = [name for name in forward.FACTORS if name != "imag"]  # torch's is of complex numbers alone


@pytest.mark.parametrize("name", LINEAR)
def test_linear_ops(name):
    """Of all arguments, and of each alone; and torch's own check of what is made, by differences."""
    one = name in ("negative", "positive", "conj", "real")
    primals, tangents = inputs(*SHAPES.get(name, ((3, 4),) if one else ((3, 4), (4,))))
    mine, theirs = OURS.get(name) or getattr(nt, name), OF_TORCH[name]
    numbers = dict(beta=2, alpha=3) if name.startswith("add") and len(primals) == 3 else {}
    numbers |= dict(alpha=3) if name in ("add", "subtract") else {}
    for which in (range(len(primals)), *([i] for i in range(len(primals)))):

        def of(function, which=which):
            def call(*chosen):
                given = dict(zip(which, chosen))
                return function(*(given.get(i, x) for i, x in enumerate(primals)), **numbers)

            return jvp(call, tuple(primals[i] for i in which), tuple(tangents[i] for i in which))

        alike(of(mine), of(theirs))
    given = [x.requires_grad_() for x in primals]
    assert gradcheck(lambda *args: mine(*args, **numbers), given, check_forward_ad=True, check_backward_ad=False)


OTHERS = {
    "divide": nt.divide, "maximum": nt.maximum, "exp": lambda x, y: nt.exp(nt.add(x, y)),
    "masked": lambda x, y: torch.where(x > 1, nt.multiply(x, y, where=x > 1), 0),
    "largest": lambda x, y: nt.maximum.reduce(x),
    "activation": lambda x, y: nt.addmm_activation(y, x, nt.mm(x.T, x), activation="gelu"),
    "conjugate": lambda x, y: nt.mm(torch.complex(x, 2 * x).T, torch.complex(x, x * x), conj="a"),
    "abs": lambda x, y: nt.abs(torch.complex(x, y + x)), "fold": lambda x, y: nt.add.reduce(x, (0, 1), initial=3.0),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERS)
def test_other_ops(case):
    args = floats(3, 4), floats(4)
    assert gradcheck(OTHERS[case], args, check_forward_ad=True)


def mine(x, y):
    return nt.multiply(nt.exp(nt.mm(x, x)), nt.linear(x, x[0:2], y[:2]).sum()).sum()


def theirs(x, y):
    return ((x @ x).exp() * torch.nn.functional.linear(x, x[0:2], y[:2]).sum()).sum()


stepped = nb.for_torch(lambda x, y: (nb.exp(x @ x) * (x @ x[0:2].T + y[:2]).sum()).sum())
lists = nb.for_torch(lambda x, y: [x @ x, nb.tanh(y)])


@pytest.mark.parametrize("function", [mine, stepped], ids=["ops", "for_torch"])
def test_transforms(function):
    """Forwards, forwards and back, in either order and twice."""
    (x, y), (dx, dy) = inputs((2, 2), (2,))
    whole = (hessian,) if function is mine else ()  # of which a step makes a call for each column
    for transform in (
        *(lambda f, of=each: of(f)(x, y) for each in whole),
        lambda f: jacfwd(f, (0, 1))(x, y),
        lambda f: jvp(grad(f, (0, 1)), (x, y), (dx, dy)),
        lambda f: grad(lambda x: jvp(f, (x, y), (dx, dy))[1])(x),
        lambda f: jvp(lambda y: jvp(f, (x, y), (dx, dy))[1], (y,), (dy,)),
        lambda f: vmap(lambda t: jvp(f, (x, y), (t, dy))[1])(torch.stack([dx, 2 * dx])),
    ):
        torch.testing.assert_close(transform(function), transform(theirs), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("function", [mine, stepped], ids=["ops", "for_torch"])
def test_dual_tensors(function):
    """A Hessian times a vector: the tangent of a gradient, and the gradient of a tangent."""
    (x, y), (dx, dy) = inputs((3, 3), (3,))

    def both(function):
        with forward_ad.dual_level():
            leaves = x.clone().requires_grad_(), y.clone().requires_grad_()
            duals = [forward_ad.make_dual(x, t) for x, t in zip(leaves, (dx, dy))]
            value, tangent = forward_ad.unpack_dual(function(*duals))
            for create in (False, True):
                first = torch.autograd.grad(function(*duals), duals, create_graph=create)
                yield from (forward_ad.unpack_dual(x).tangent for x in first)
            yield from (value, tangent, *torch.autograd.grad(tangent, leaves))

    for found, expected in zip(list(both(function)), list(both(theirs)), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_steps_of_several_results_and_keywords():
    (x, y), tangents = inputs((3, 3), (3,))
    alike(jvp(lists, (x, y), tangents), jvp(lambda x, y: (x @ x, y.tanh()), (x, y), tangents))
    linear = nb.for_torch(nb.linear)
    found = jvp(lambda x, y: linear(x, x, bias=y), (x, y), tangents)
    alike(found, jvp(lambda x, y: x @ x.T + y, (x, y), tangents))
    batch = torch.stack([x, 2 * x])
    assert torch.equal(vmap(linear, (0, None))(batch, x), torch.stack([nb.linear(each, x) for each in batch]))
    alike(vmap(grad(lambda x: lists(x, y)[0].sum()))(batch), vmap(grad(lambda x: (x @ x).sum()))(batch))


def test_what_writes_cuts_or_is_refused():
    (x,), (t,) = inputs((3,))
    assert jvp(lambda x: nt.add_(x.clone(), x, alpha=2), (x,), (t,))[1].equal(3 * t)
    assert jvp(lambda x: nt.less(x, 1.0), (x,), (t,))[1].count_nonzero() == 0
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        with pytest.raises(RuntimeError, match="out= has no derivative, and an argument has a tangent"):
            nt.add(dual, 1, out=torch.empty(3))
        with pytest.raises(nb.dispatch.MissingKernelError, match="nextafter has no derivative"):
            nt.nextafter(dual, 2.0)
        with pytest.raises(TypeError, match="with a tangent, which would be lost"):
            nb.add(dual, 1)
    with pytest.raises(nb.dispatch.ArgumentError, match="cannot go back through out="):
        jvp(nt.multiply.reduce, (x,), (t,))
    with pytest.raises(RuntimeError, match="no derivatives of third order"):
        grad(lambda x: jvp(lambda x: nt.abs(torch.complex(x, x)), (x,), (t,))[1].sum())(x)
