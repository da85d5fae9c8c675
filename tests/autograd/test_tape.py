"""Gradients of chains: against central differences in f64, and against torch where it is."""

import gc
import math
import weakref
from importlib.util import find_spec

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.dispatch import ArgumentError, MissingKernelError, OutError, RegistrationError, views

pytestmark = pytest.mark.usefixtures("at_first")


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
        square = nb.multiply(x, x)
    np.testing.assert_array_equal(tape.gradient(square, x, np.ones(3)), 2 * np.arange(3))
    assert tape.gradient(square, [x, y], np.ones(3))[1] is None
    assert type(nb.add(x, 1)) is np.ndarray  # after the block nothing is noted


def test_comparisons_and_integers_cut_the_tape():
    x = np.array([-1.0, 2.0, 3.0])
    for function, slope in (
        (lambda x: x * (x > 0), [0, 1, 1]),
        (lambda x: x * nb.greater(x, 2.5), [0, 0, 1]),
        (lambda x: x * nb.floor_divide(x, 2.0), [-1, 1, 1]),
        (lambda x: x * nb.heaviside(x, 0.5), [0, 1, 1]),
        (lambda x: x + nb.heaviside(x * 5, 1.0), [1, 1, 1]),
    ):
        result, pull = nb.vjp(lambda x, f=function: f(x).sum(), x)
        assert result == function(x).sum()
        np.testing.assert_array_equal(pull(1.0)[0], slope)
    with nb.GradTape() as tape:
        seen = tape.watch(x)
        for plain in (seen > 0, seen == x, nb.equal(seen, x), nb.floor_divide(seen, 2)):
            assert type(plain) is np.ndarray
        assert type(nb.nextafter(seen, 1.0) * 1) is type(seen)
    with pytest.raises(MissingKernelError, match="nextafter has no derivative of its own: none is declared"):
        nb.vjp(lambda x: nb.nextafter(x, 1.0), x)[1](np.ones(3))
    with nb.define(
        "steps(Tensor self) -> Tensor",
        structured=lambda self: nb.meta(self.shape, self.dtype),
        dispatch={"CPU": lambda out, self: np.rint(self, out=out)},
        output_differentiability=False,
    ) as op:
        np.testing.assert_array_equal(nb.vjp(lambda x: x * op.function(x), x)[1](np.ones(3))[0], [-1, 2, 3])


def test_composites_are_differentiated_by_their_parts(args):
    def body(a, b):
        return nb.add(nb.mm(a, b), a)

    def turned(a, b):
        return nb.mm(a, views.transpose(b))

    def written(a, b):
        return a @ b.T + 2 * a[:, ::-1] - b.sum() / b.reshape(-1)[0]

    a, b = args[:2]
    for function, plain in ((body, body), (turned, lambda a, b: a @ b.T), (written, written)):
        with nb.define("mixed(Tensor a, Tensor b) -> Tensor", dispatch={"CompositeImplicit": function}) as op:
            result, pull = nb.vjp(op.function, a, b)
            np.testing.assert_allclose(result, plain(a, b))
            grad = np.random.default_rng(1).standard_normal(result.shape)
            for i, found in enumerate(pull(grad)):
                expected = slope(lambda *x, f=plain, g=grad: float(np.sum(g * f(*x))), [a, b], i)
                np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


DECLARED = {
    "Autograd formulas": dict(gradient={"self": lambda grad: 10 * grad}),
    "AutogradCPU formulas": dict(key="AutogradCPU", kernel={"self": lambda grad, result: 10 * grad + 0 * result}),
    "Autograd callable": dict(gradient=lambda grad, self, output_mask: (10 * grad,)),
    "AutogradCPU callable": dict(key="AutogradCPU", kernel=lambda grad, self, output_mask: (10 * grad,)),
}


@pytest.mark.parametrize("how", DECLARED.values(), ids=DECLARED)
@pytest.mark.parametrize("key", ["CompositeImplicit", "CompositeExplicit", "CPU"])
def test_a_declared_derivative_wins_over_the_parts(how, key):
    x = np.arange(3.0)
    gradient = how.get("gradient")
    with nb.define("f(Tensor self) -> Tensor", dispatch={key: lambda self: self * self}, gradient=gradient) as op:
        if "key" in how:
            nb.register(op, how["key"], how["kernel"])
        result, pull = nb.vjp(lambda x: op.function(x) + x, x)
        np.testing.assert_array_equal(result, x * x + x)
        np.testing.assert_array_equal(pull(np.ones(3))[0], [11, 11, 11])


def test_without_one_only_composite_implicit_has_parts():
    x = np.arange(3.0)
    for key in ("CompositeImplicit", "CompositeExplicit", "CPU"):
        with nb.define("f(Tensor self) -> Tensor", dispatch={key: lambda self: self * self}) as op:
            pull = nb.vjp(op.function, x)[1]
            if key == "CompositeImplicit":
                np.testing.assert_array_equal(pull(np.ones(3))[0], 2 * x)
                continue
            with pytest.raises(MissingKernelError, match="f has no derivative of its own: none is declared"):
                pull(np.ones(3))


def test_fallbacks_of_autograd_keys():
    x, calls = np.arange(3.0), []

    def fallback(op, grad, args, output_mask):
        calls.append((op.schema.name, len(args), output_mask))
        return [5 * grad]

    with (
        nb.define("f(Tensor self) -> Tensor", dispatch={"CPU": lambda self: self * self}) as op,
        nb.register_fallback("AutogradCPU", fallback),
    ):
        np.testing.assert_array_equal(nb.vjp(op.function, x)[1](np.ones(3))[0], [5, 5, 5])
        np.testing.assert_array_equal(nb.vjp(nb.multiply, x, x)[1](np.ones(3))[0], x)
    assert calls == [("f", 1, (True,))]
    with pytest.raises(RegistrationError, match="would be called with"):
        nb.register_fallback("AutogradCPU", lambda op, args, out: None)
    with (
        nb.define("f(Tensor self) -> Tensor", dispatch={"CPU": lambda self: self * self}) as op,
        pytest.raises(RegistrationError, match=r"would be called with \(grad, self, output_mask\)"),
    ):
        nb.register(op, "AutogradCPU", lambda x: x)


def test_lists_several_results_and_formulas_of_the_result():
    def split(self):
        return self * 2, self + 1, np.argsort(self)

    x = np.array([3.0, 1.0, 2.0])
    formulas = {"self": lambda grad: (0 if grad[0] is None else 2 * grad[0]) + (0 if grad[1] is None else grad[1])}
    text = "split(Tensor self) -> (Tensor, Tensor, Tensor)"
    with nb.define(text, dispatch={"CPU": split}, gradient=formulas) as op:
        with nb.GradTape() as tape:
            seen = tape.watch(x)
            twice, more, order = op.function(seen)
        assert type(order) is np.ndarray
        assert tape.gradient(twice, seen, np.ones(3)).tolist() == [2, 2, 2]
        assert tape.gradient((twice, more), seen, (np.ones(3), x)).tolist() == [5, 3, 4]
    formulas = {"many": lambda grad, many: [grad * 2 for x in many], "last": lambda grad: grad * 7}
    text = "total(Tensor[] many, Tensor last) -> Tensor"
    with nb.define(text, dispatch={"CPU": lambda many, last: 2 * sum(many) + 7 * last}, gradient=formulas) as op:
        with nb.GradTape() as tape:
            a, b = tape.watch(x), tape.watch(np.float32([1, 2, 3]))
            result = op.function([a, b, x, a], b)
        found = tape.gradient(result, (a, b), np.ones(3))
        assert found[0].tolist() == [4, 4, 4]
        assert found[1].tolist() == [9, 9, 9]
        assert found[1].dtype == np.float32
    with nb.define(
        "root(Tensor self) -> Tensor",
        dispatch={"CPU": np.sqrt},
        gradient={"self": lambda grad, result: grad / (2 * result)},
    ) as op:
        np.testing.assert_allclose(op.gradient(np.ones(3), x), [0.5 / np.sqrt(x)])
        np.testing.assert_allclose(nb.vjp(op.function, x)[1](np.ones(3))[0], 0.5 / np.sqrt(x))


WRITTEN = {
    "operators": lambda x, y: (-x + 2 * y - x / 3) * (1 - y) / (x * x + 1) + x**2 - 2.0**y + abs_of(x) % 1.5,
    "arrays on the left": lambda x, y: np.arange(12.0).reshape(3, 4) * x + np.float64(2) / y,
    "matmul": lambda x, y: x @ y.T @ np.ones((3, 2)) + x.mean(),
    "slices": lambda x, y: x[1:, ::-2] * y[:2, None, 1] + x[-1][..., 0] - x[0, 1],
    "the same twice": lambda x, y: x[:2] * x[1:] + x[0:1] * y[0],
    "transposes": lambda x, y: x.T @ y + x.transpose(1, 0).T.T @ y + y.transpose().mT.sum(),
    "reshape": lambda x, y: x.reshape(2, 6) @ y.T.reshape(6, -1) + x.ravel()[3] * y[:, ::-1].reshape(2, 6).sum(),
    "views of views": lambda x, y: x[::-1].T[1:3].reshape(6)[2:] * y.T[1::2].T[0, 0],
    "sums": lambda x, y: x.sum(axis=0) * y.sum(1, keepdims=True) + x.sum(axis=(0, 1)) + y.mean(axis=0),
    "folds": lambda x, y: nb.multiply.reduce(x, axis=1) + nb.maximum.reduce(y, 1) + nb.logaddexp.reduce(x, axis=(0, 1)),
    "scans": lambda x, y: nb.multiply.accumulate(x, axis=1) * nb.add.accumulate(y, axis=0)[::-1],
    "in order": lambda x, y: nb.subtract.reduce(x, axis=1) * nb.divide.reduce(y, axis=-1, initial=2.0),
    "outer": lambda x, y: nb.multiply.outer(x[0], y[:, 1]),
    "functions": lambda x, y: soft(x, y) * nb.fuse(lambda a, b: a * math.sin(b) if a > b else max(a * b, 0.25), x, y),
    "given": lambda x, y: cubed(x) + y,
    "several": lambda x, y: polar(x, y)[0] * polar(y, x)[1],
    "where": lambda x, y: nb.add(x, y, where=MASK) * np.where(MASK, 1, 0) if isinstance(x, np.ndarray) else
             nb.add(x, y, where=MASK) * np.where(MASK, 1.0, 0),
}  # fmt: skip
MASK = np.arange(12).reshape(3, 4) % 3 > 0


def abs_of(x):
    return nb.maximum(x, -x)


@nb.elementwise
def soft(x, y):
    total = 0.0
    for _ in range(3):
        total += math.log1p(math.exp(x)) * y
    return total / (1 + math.hypot(x, y) ** 2)


@nb.elementwise(gradient=lambda grad, x: 3 * x * x * grad)
def cubed(x):
    return x * x * x


@nb.elementwise
def polar(x, y):
    return math.sqrt(x * x + y * y), math.atan2(y, x)


@pytest.mark.sampled
@pytest.mark.parametrize("function", WRITTEN.values(), ids=WRITTEN)
def test_a_tape_that_one_can_write_on(function, rng):
    """The same expression on plain arrays, and differences of it."""
    x, y = rng.uniform(0.5, 2, (3, 4)), rng.uniform(0.5, 2, (3, 4))
    np_abs = function if function is not WRITTEN["transposes"] else lambda x, y: 2 * (x.T @ y) + y.sum()
    expected = np_abs(x, y)
    result, pull = nb.vjp(function, x, y)
    np.testing.assert_allclose(result[MASK] if function is WRITTEN["where"] else result,
                               expected[MASK] if function is WRITTEN["where"] else expected, rtol=1e-12)  # fmt: skip
    grad = rng.standard_normal(np.shape(expected))
    for i, (x_i, found) in enumerate(zip((x, y), pull(grad))):
        assert (found.shape, found.dtype) == (x_i.shape, x_i.dtype)
        difference = slope(lambda *z: float(np.nansum(np.asarray(grad * np_abs(*z))[MASK] if
                           function is WRITTEN["where"] else grad * np_abs(*z))), [x, y], i)  # fmt: skip
        np.testing.assert_allclose(found, difference, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [np.array, nb.asarray], ids=["ndarray", "asarray"])
@pytest.mark.parametrize("function", WRITTEN.values(), ids=WRITTEN)
def test_what_is_written_later_changes_no_gradient(function, kind, rng):
    """Watched arguments, plain ones and the result, overwritten between the call and the gradient."""
    for seen in ((True, True), (True, False), (False, True)):
        given = [kind(x) for x in rng.uniform(0.5, 2, (2, 3, 4))]

        def one(*watched, given=given, seen=seen):
            watched = iter(watched)
            return function(*(next(watched) if keep else x for x, keep in zip(given, seen)))

        result, pull = nb.vjp(one, *(x for x, keep in zip(given, seen) if keep))
        grad = rng.standard_normal(np.shape(result))
        expected = pull(grad)
        for x in (*given, result):
            if isinstance(x, np.ndarray):
                x[...] = np.nan
        for found, wanted in zip(pull(grad), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_what_a_tape_made_is_read_only():
    with nb.GradTape() as tape:
        x = tape.watch(np.ones(3))
        y = nb.exp(x)
        for array in (x.value, y.value, y[1:].value, nb.sum_to(x, (3,)).value):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 2
        with pytest.raises(OutError, match="read-only"):
            nb.add_(y.value, 1)
    assert tape.gradient(y, x, np.ones(3)).flags.writeable


ON_TENSORS = "operators", "the same twice", "transposes", "sums", "outer", "functions", "given", "several"


@pytest.mark.skipif(not find_spec("torch"), reason="lacks torch")
@pytest.mark.parametrize("name", ON_TENSORS)
def test_a_tensor_that_is_written_later_is_noticed(name, rng):
    """An error, as torch's own, or the gradient of what the call saw where the derivative does not read the tensor."""
    import torch

    refused = 0
    for write in (lambda x: x.mul_(3), lambda x: nb.multiply_(x, 3), lambda x: x.numpy().fill(3) or x.add_(0)):
        for which in range(2):
            given = [torch.from_numpy(x) for x in rng.uniform(0.5, 2, (2, 3, 4))]
            result, pull = nb.vjp(WRITTEN[name], *given)
            grad = torch.from_numpy(np.asarray(rng.standard_normal(tuple(result.shape))))
            expected = pull(grad)
            write((*given, result)[which])
            try:
                found = pull(grad)
            except RuntimeError as error:
                if "has been written since" not in str(error):
                    raise
                refused += 1
            else:
                assert all(map(torch.equal, found, expected))
    assert refused
    with torch.inference_mode():  # whose tensors count no writes
        given = [torch.from_numpy(x) for x in rng.uniform(0.5, 2, (2, 3, 4))]
        result, pull = nb.vjp(WRITTEN[name], *given)
        expected = pull(grad)
        for x in (*given, result):
            x.fill_(math.nan)
        assert all(map(torch.equal, pull(grad), expected))


def test_gradients_own_their_elements():
    x = np.ones((2, 3))
    found = nb.vjp(lambda x: x.sum(), x)[1](1.0)[0]
    found[0, 0] = 5
    assert found.sum() == 10
    grad = np.ones((2, 3))
    for part in nb.vjp(lambda x, y: x + y, x, x.copy())[1](grad):
        part *= 3  # neither the other's nor the caller's
        assert part.sum() == 18
    assert grad.sum() == 6
    view = np.broadcast_to(np.arange(3.0), (4, 3))
    assert nb.vjp(lambda x: (x * x).T.sum(), view)[1](1.0)[0].tolist() == [[0, 2, 4]] * 4


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: ((x @ w) * (x @ w)).sum(),
        lambda x, w: (nb.linear(x, w.T)[1:] ** 3).sum() / w.sum(),
        lambda x, w: cubed(x @ w).sum(),
        lambda x, w: (nb.addmm(w[0], x, w, beta=2.0, alpha=0.5) * x[:, :3]).sum(),
        lambda x, w: nb.atan2(x, x + 1).sum() * nb.hypot(w, 2.0).sum(),
    ],
)
def test_second_derivatives(function, rng):
    """Hessian times a vector, by a tape under a tape, against differences of the gradient."""
    x, w, v = rng.uniform(0.5, 2, (4, 3)), rng.uniform(0.5, 2, (3, 3)), rng.standard_normal((4, 3))

    def along(x, w):
        total = function(x, w)
        return total if not np.shape(total) else total.sum()

    def directional(x, w):
        return (nb.vjp(along, x, w)[1](1.0)[0] * v).sum()

    for i, found in enumerate(nb.vjp(directional, x, w)[1](1.0)):
        expected = slope(lambda *z: float(directional(*z)), [x, w], i)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


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
        (lambda tape, x: x.__setitem__(0, 1), "written into"),
        (lambda tape, x: nb.add(x, nb.GradTape().watch(np.ones(2))), "another tape"),
        (lambda tape, x: nb.elementwise(lambda v: v + 1)(x, out=np.empty(2)), "out="),
        (lambda tape, x: tape.watch(np.arange(3)), "floats or complex"),
        (lambda tape, x: tape.watch([1.0]), "not a list"),
        (
            lambda tape, x: nb.vjp(lambda y: nb.vjp(soft, y, 2.0)[1](np.ones(2))[0], np.ones(2))[1](np.ones(2)),
            "derivative of soft: second derivatives need elementwise gradient=",
        ),
        (lambda tape, x: tape.gradient(x, np.ones(2)), "watches"),
        (lambda tape, x: tape.gradient(x, x), "pass grad"),
        (
            lambda tape, x: tape.gradient(x, x, np.ones(3)),
            r"grad is of shape \(3,\), and the target an array of shape \(2,",
        ),
        (lambda tape, x: tape.gradient(x, x, "ones"), "grad is a str, and"),
        (lambda tape, x: nb.vjp(np.sort, np.ones(2)), "AttributeError|numpy|value"),
        (lambda tape, x: nb.vjp(lambda y: np.ones(2), np.ones(2)), "no differentiable operation"),
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
    layer, (x, w, b) = nb.for_torch(nb.linear), (torch.rand(3, 4, requires_grad=True) for _ in range(3))
    for found in (layer(x, w, bias=b[0, :3]), layer(weight=w, input=x, bias=b[0, :3], mode=None)):
        assert torch.equal(found, nb.linear(x.detach(), w.detach(), b[0, :3].detach()))
        for mine, theirs in zip(*(torch.autograd.grad(y.cos().sum(), (x, w, b), retain_graph=True)
                                  for y in (found, x @ w.T + b[0, :3]))):  # fmt: skip
            torch.testing.assert_close(mine, theirs)
    assert torch.autograd.gradgradcheck(lambda x, w: nb.for_torch(nb.mm)(x, mat2=w), (x.double(), w.double().T))
    with pytest.raises(TypeError, match="weight"):
        layer(x, weigth=w)
    x = torch.ones(2, 3, dtype=torch.float64)
    held = nb.for_torch(nb.mm)(x, tensors[1])
    x += 1  # what the backward pass would read
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        held.sum().backward()


@pytest.mark.parametrize("way", ["vjp", "tape", "for_torch"])
def test_what_a_tape_keeps_goes_with_it(way):
    """No cycle of references leaves a tape to the garbage collector: large arrays would wait for it."""
    if way == "for_torch" and not find_spec("torch"):
        pytest.skip("lacks torch")
    tapes = []

    def function(x):
        tapes.append(weakref.ref(x.mode))
        return x @ x, x.T[1:].sum()

    def run():
        x = np.ones((3, 3))
        if way == "vjp":
            nb.vjp(function, x)[1]((x, np.float64(1)))
        elif way == "tape":
            with nb.GradTape() as tape:
                x = tape.watch(x)
                tape.gradient(function(x), x, (np.ones((3, 3)), np.float64(1)))
        else:
            import torch

            product, total = nb.for_torch(function)(torch.ones(3, 3, requires_grad=True))
            (product.sum() + total).backward()

    gc.disable()
    try:
        run()
        assert [tape() for tape in tapes] == [None]
    finally:
        gc.enable()


def test_fourth_order_of_what_repeats_its_elements():
    """The gradient of a sum is one number in many places, also where it is turned, and derived again."""
    x, s, t = (np.random.default_rng(seed).integers(-3, 4, (2, 2)).astype(float) for seed in range(3))

    def along(function, tangent):
        """The derivative of function(x) in the direction of a tangent, as a function of x."""

        def pulled(grad, x):
            _, pull = nb.vjp(function, x)
            return pull(grad)[0], grad

        return lambda x: nb.vjp(pulled, np.array(0.0), x)[1]((tangent, None))[0]

    sums = s.sum(0) * t.sum(0)
    assert along(along(lambda x: (x @ x.T).sum(), s), t)(x) == 2 * sums.sum()
    assert along(along(lambda x: nb.ops.copy(x * x).sum(), s), t)(x) == 2 * (s * t).sum()


@pytest.mark.skipif(not find_spec("torch"), reason="lacks torch")
def test_second_derivatives_of_torch(args):
    import torch

    tensors = [torch.tensor(x, requires_grad=True) for x in args]
    step = nb.for_torch(lambda x, w, b: ((x @ w + b) ** 3).sum() * 0.1)
    assert torch.autograd.gradgradcheck(step, tensors)
    (first,) = torch.autograd.grad(step(*tensors), tensors[:1], create_graph=True)
    (mine,) = torch.autograd.grad(first.pow(2).sum(), tensors[1:2])
    plain = ((tensors[0] @ tensors[1] + tensors[2]) ** 3).sum() * 0.1
    (theirs,) = torch.autograd.grad(plain, tensors[:1], create_graph=True)
    torch.testing.assert_close(mine, torch.autograd.grad(theirs.pow(2).sum(), tensors[1:2])[0])
