"""nbkernels.torch: the operations as ops of torch.library, held against torch's own and its checks."""

import functools
import shutil
import subprocess
import sys

import numpy as np
import pytest

import nbkernels as nb
from nbkernels import ops
from nbkernels.autograd.for_torch import notes_of
from nbkernels.operations import DIVISOR, ELEMENTWISE
from nbkernels.ops import LIBRARY
from tests.cases import EVERY

torch = pytest.importorskip("torch", reason="lacks torch")
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's, of what it uses itself

import nbkernels.torch as nt  # noqa: E402
from nbkernels.torch import forms  # noqa: E402

INTEGERS = [op for op in ELEMENTWISE if op.startswith("bitwise") or ELEMENTWISE[op].group == DIVISOR]


def floats(*shape):
    """Numbers away from kinks and poles."""
    return (torch.rand(*shape, dtype=torch.float64) + 0.55).requires_grad_()


SHAPES = {
    "addmm": ((5,), (3, 4), (4, 5)), "addmm_activation": ((5,), (3, 4), (4, 5)), "mm": ((4, 4), (4, 4)),
    "bmm": ((2, 4, 4), (2, 4, 4)), "baddbmm": ((5,), (2, 3, 4), (2, 4, 5)), "addbmm": ((3, 5), (2, 3, 4), (2, 4, 5)),
    "mv": ((3, 4), (4,)), "addmv": ((3,), (3, 4), (4,)), "outer": ((3,), (4,)), "addr": ((3, 4), (3,), (4,)),
    "dot": ((4,), (4,)), "vdot": ((4,), (4,)), "matmul": ((2, 3, 4), (4, 5)), "linear": ((2, 3, 4), (5, 4), (5,)),
    "reduce": ((3, 4),), "accumulate": ((3, 4),), "sum_to": ((3, 4),),
}  # fmt: skip


def call(op, overload=""):
    """(the op in torch, arguments) of a call of its functional form."""
    name = op.schema.name
    form = next(f for f in forms.forms(op, ()) if f.schema.overload == overload and not f.written)
    if not op.elementwise:
        return form, [*(floats(*shape) for shape in SHAPES[name]), *([(4,)] if name == "sum_to" else [])]
    if name in INTEGERS:
        x, y, number = torch.randint(1, 5, (3, 4)), torch.randint(1, 5, (4,)), 2
    else:
        x, y, number = floats(3, 4), floats(4), 1.5
    if name == "ldexp":
        y, number = torch.randint(1, 3, (4,)), 2
    if "other" not in op.names:
        return form, [x - 0.55 if name in ("asin", "acos", "atanh") else x + 1 if name == "acosh" else x]
    return form, {"": [x, y], "Scalar": [x, number], "ScalarSelf": [number, y]}[overload]


def detached(args):
    return [x.detach() if isinstance(x, torch.Tensor) else x for x in args]


ALL = [op for op in LIBRARY if op.schema.name != "nextafter"]  # whose backward pass is refused
named = pytest.mark.parametrize("op", ALL, ids=lambda op: op.schema.name)


QUICK = "test_schema", "test_autograd_registration", "test_faketensor"  # a tenth of the time of the fourth
TRACED = ("add", "maximum", "less", "bitwise_and")


@named
def test_opcheck(op):
    """By all of torch's checks for products, folds and some element-wise ops, which are all made alike."""
    form, args = call(op)
    whole = not op.elementwise or op.schema.name in TRACED
    torch.library.opcheck(form.of_torch, args, test_utils=(*QUICK, *["test_aot_dispatch_dynamic"] * whole))


@pytest.mark.parametrize("overload", ["Scalar", "ScalarSelf"])
@pytest.mark.parametrize("name", ["add", "pow", "fmax", "less"])
def test_opcheck_of_numbers(name, overload):
    form, args = call(LIBRARY[name], overload)
    torch.library.opcheck(form.of_torch, args)


@pytest.mark.parametrize("name", ["mm", "bmm", "add", "less", "bitwise_and", "addmm", "sum_to", "reduce"])
def test_opcheck_of_what_writes(name):
    op = LIBRARY[name]
    form, args = call(op)
    args, result = detached(args), form.of_torch(*detached(args))
    out = next(f for f in forms.forms(op, ()) if f.schema.overload == "out")
    torch.library.opcheck(out.of_torch, args, dict(out=torch.empty_like(result)))
    for each in forms.forms(op, ops.OPERATIONS):
        if each.written == "self" and not each.schema.overload and result.shape == args[0].shape:
            torch.library.opcheck(each.of_torch, args)


@named
def test_the_library_s_own_results(op):
    form, args = call(op)
    args = detached(args)
    if op.schema.name in ("reduce", "accumulate"):
        expected = getattr(nb.add, op.schema.name)(*args)
    else:
        expected = op.function(*args)
    found = form.of_torch(*args)
    assert found.dtype == expected.dtype
    assert torch.equal(found, expected)


TORCHS = {
    "addmm": torch.addmm, "mm": torch.mm, "bmm": torch.bmm, "mv": torch.mv, "outer": torch.outer, "dot": torch.dot,
    "linear": torch.nn.functional.linear, "matmul": torch.matmul, "baddbmm": torch.baddbmm, "addbmm": torch.addbmm,
    "addr": torch.addr, "add": torch.add, "multiply": torch.mul,
}  # fmt: skip
TORCHS |= {
    op.schema.name: getattr(torch, op.schema.name)
    for op in LIBRARY
    if "unary" in op.tags
    and op.table.row("AutogradCPU").row
    and hasattr(torch, op.schema.name)
    and op.schema.name != "imag"  # which torch has for complex numbers alone
}


@pytest.mark.parametrize("name", TORCHS)
def test_first_and_second_derivatives_are_those_of_torch(name):
    form, args = call(LIBRARY[name])
    seeds = [torch.rand_like(x) for x in args]

    def derivatives(function):
        result = function(*args)
        first = torch.autograd.grad(result, args, torch.cos(result.detach()), create_graph=True)
        total = sum((g * seed).sum() for g, seed in zip(first, seeds))
        second = torch.autograd.grad(total, args, allow_unused=True) if total.requires_grad else [None] * len(args)
        return [*first, *(torch.zeros_like(x) if g is None else g for g, x in zip(second, args))]

    for found, expected in zip(derivatives(form.of_torch), derivatives(TORCHS[name])):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


DIFFERENCES = {
    "fold": lambda x, y: nt.add.reduce(nt.multiply(x, y), axis=0),
    "running": lambda x, y: nt.add.accumulate(x, axis=1),
    "activation": lambda x, y: nt.sum_to(nt.addmm_activation(y, x, nt.mm(x.T, x)), (4,)),
    "masked": lambda x, y: nt.multiply(x, y, where=x > 0),
}


@pytest.mark.parametrize("case", DIFFERENCES)
def test_derivatives_by_differences(case):
    args = floats(3, 4), floats(4)
    assert torch.autograd.gradcheck(DIFFERENCES[case], args)
    assert torch.autograd.gradgradcheck(DIFFERENCES[case], args)


def test_derivatives_of_some_arguments():
    """Of those that require grad; also where what is optional is left out."""
    for mask in ((True, False, False), (False, True, True), (False, False, True)):
        args = [x.detach().requires_grad_(keep) for x, keep in zip((floats(5), floats(3, 4), floats(4, 5)), mask)]
        assert torch.autograd.gradgradcheck(lambda *given: nt.addmm(*given, beta=2, alpha=3), args)
    x, weight = floats(2, 3, 4), floats(5, 4)
    for call in (nt.linear, lambda x, weight: nt.linear(x, weight, None)):
        assert torch.autograd.gradcheck(call, (x, weight))
        assert torch.autograd.gradgradcheck(call, (x, weight))
    assert torch.autograd.gradgradcheck(lambda x: nt.mm(x, x.T), (floats(3, 2),))
    assert torch.autograd.gradcheck(lambda x: nt.add.reduce(x), (floats(3, 2),))


def test_a_model_is_trained():
    """By torch's own optimizer; through checkpoints, from several threads."""
    from concurrent.futures import ThreadPoolExecutor

    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    layer, x = torch.nn.Linear(4, 1), torch.rand(64, 4)
    optimizer, wanted = torch.optim.SGD(layer.parameters(), 0.2), x.sum(1, keepdim=True)
    for _ in range(200):
        loss = nt.linear(x, layer.weight, layer.bias).sub(wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 2e-3
    given = x.clone().requires_grad_()
    checkpoint(lambda x: nt.mm(x.T, x), given, use_reentrant=False).sum().backward()
    torch.testing.assert_close(given.grad, 2 * x.sum(1, keepdim=True).expand(64, 4))
    with ThreadPoolExecutor(4) as pool:
        calls = list(pool.map(lambda _: nt.linear(x, layer.weight, layer.bias), range(16)))
    assert all(torch.equal(calls[0], call) for call in calls)


def test_derivatives_of_complex_products():
    x, y = (floats(3, 3).detach().to(torch.complex128) * 1j + 1 for _ in range(2))
    x, y = x.requires_grad_(), y.requires_grad_()
    pair = nt.mm(x, y, conj="b"), x @ y.conj()
    for found, expected in zip(*(torch.autograd.grad(z.abs().sum(), (x, y)) for z in pair)):
        torch.testing.assert_close(found, expected)


def test_third_derivatives_are_refused():
    x = floats(3)
    (first,) = torch.autograd.grad(nt.multiply(x, nt.multiply(x, x)).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    torch.testing.assert_close(second, 6 * x)
    with pytest.raises(RuntimeError, match="no derivatives of third order"):
        torch.autograd.grad(second.sum(), x)
    with pytest.raises(nb.dispatch.MissingKernelError, match="nextafter has no derivative"):
        nt.nextafter(x, 2.0).sum().backward()


def test_transforms_of_functions():
    x, batch = floats(3, 3).detach(), floats(4, 3, 3).detach()

    def mine(x):
        return nt.multiply(nt.mm(x, x), nt.linear(x, x[0:2], x[0, :2]).sum()).sum()

    def theirs(x):
        return ((x @ x) * torch.nn.functional.linear(x, x[0:2], x[0, :2]).sum()).sum()

    grad, vmap, jacrev = torch.func.grad, torch.func.vmap, torch.func.jacrev
    for transform, given in (
        (grad, x),
        (lambda f: vmap(grad(f)), batch),
        (lambda f: jacrev(grad(f)), x),
        (lambda f: grad(lambda x: grad(f)(x).sum()), x),
    ):
        torch.testing.assert_close(transform(mine)(given), transform(theirs)(given), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["mm", "linear", "addmm", "add", "sum_to", "dot", "reduce", "less"])
def test_vmap_has_the_bits_of_single_calls(name):
    form, args = call(LIBRARY[name])
    args = detached(args)
    tensors = [i for i, x in enumerate(args) if isinstance(x, torch.Tensor)]
    for dims in ((0,) * len(tensors), (-1, *[None] * (len(tensors) - 1)), (*[None] * (len(tensors) - 1), 0)):
        given, in_dims = list(args), [None] * len(args)
        for i, dim in zip(tensors, dims):
            if dim is not None:
                given[i], in_dims[i] = torch.stack([args[i] * k for k in (1, 2, 3)], dim), dim
        found = torch.func.vmap(form.of_torch, tuple(in_dims))(*given)
        each = [[x if d is None else x.select(d, k) for x, d in zip(given, in_dims)] for k in range(3)]
        assert torch.equal(found, torch.stack([form.of_torch(*one) for one in each]))


def layers(x, weight, bias):
    hidden = nt.linear(x, weight, bias)
    scaled = nt.add_(nt.multiply(hidden, 2.0), 1)
    return nt.add(nt.mm(scaled.t(), hidden), nt.maximum.reduce(hidden))


COMPILER = shutil.which("g++") or shutil.which("c++")  # inductor's
BACKENDS = ["aot_eager", *([pytest.param("inductor", marks=pytest.mark.release)] if COMPILER else [])]


@pytest.mark.parametrize("backend", BACKENDS)
def test_compiled_without_a_break(backend):
    """One graph, forwards and backwards, with the bits of calls one by one; of other sizes, too."""
    args = [x.detach().float().requires_grad_() for x in (floats(8, 6), floats(4, 6), floats(4))]
    compiled = torch.compile(layers, fullgraph=True, backend=backend, dynamic=backend == "aot_eager")
    for rows in (8, 5) if backend == "aot_eager" else (8,):
        given = args[0][:rows].detach().requires_grad_(), *args[1:]
        found, expected = compiled(*given), layers(*given)
        assert torch.equal(found, expected)
        pairs = zip(torch.autograd.grad(found.sum(), given), torch.autograd.grad(expected.sum(), given))
        assert all(torch.equal(x, y) for x, y in pairs)
    torch._dynamo.reset()


def test_exported():
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.bias = torch.nn.Parameter(torch.rand(4, 6)), torch.nn.Parameter(torch.rand(4))

        def forward(self, x):
            return layers(x, self.weight, self.bias)

    module, rows = Module(), torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(module, (torch.rand(8, 6),), dynamic_shapes={"x": {0: rows}})
    assert "nbkernels.linear.default" in program.graph_module.code
    x = torch.rand(5, 6)
    assert torch.equal(program.module()(x), module(x))


def test_fake_and_meta_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = nt.mm(torch.ones(2, 3), torch.ones(3, 4))
        assert (type(fake).__name__, fake.shape) == ("FakeTensor", (2, 4))
        with pytest.raises(ValueError, match="2x3 and 4x4"):
            nt.mm(torch.ones(2, 3), torch.ones(4, 4))
    meta = nt.add(torch.ones(3, 4, device="meta").T, torch.ones(3, device="meta", dtype=torch.int8))
    assert (meta.shape, meta.stride(), meta.dtype) == ((4, 3), (1, 4), torch.float32)


def test_autocast():
    x, weight, bias = torch.rand(3, 4, requires_grad=True), torch.rand(5, 4), torch.rand(5)
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype=dtype):
            found, sums = nt.linear(x, weight, bias), nt.add(x, x)
        assert (found.dtype, sums.dtype) == (dtype, torch.float32)
        assert torch.equal(found, nb.linear(x.detach().to(dtype), weight.to(dtype), bias.to(dtype)))
        found.float().sum().backward()
        assert x.grad.dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert nt.mm(x.double(), weight.double().T).dtype == torch.float64
        assert torch.compile(lambda x: nt.mm(x, x.T), fullgraph=True, backend="aot_eager")(x).dtype == torch.bfloat16


def test_writes():
    """The version counter, leaves, what is saved, and what may not be written."""
    leaf, other = torch.ones(2, 2, requires_grad=True), torch.full((2, 2), 3.0)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        nt.add_(leaf, 1)
    with torch.no_grad():
        assert nt.add_(leaf, 1) is leaf
    assert leaf._version == 1
    product = (leaf * other).sum()
    nt.multiply_(other, 2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()
    middle = leaf * 1
    assert nt.multiply_(middle, other) is middle  # self is not read going back
    middle.sum().backward()
    assert torch.equal(leaf.grad, other)
    out = torch.empty(2, 2)
    assert nt.mm(other, other, mode=None, out=out) is out
    assert torch.equal(out, other @ other)
    with pytest.raises(RuntimeError, match="requires grad"):
        nt.mm(leaf, other, out=out)
    with pytest.raises(TypeError, match="complex"):
        nt.multiply_(leaf * 1, torch.ones(2, 2, dtype=torch.complex64))
    with pytest.raises(ValueError, match="never expands"):
        nt.add_(torch.ones(2), torch.ones(2, 2))
    same = torch.ones(3)
    assert nt.sum_to(same, (3,)).data_ptr() != same.data_ptr()


def test_lazy_conjugates_are_resolved():
    z = torch.tensor([[1 + 2j, 3j]], requires_grad=True)
    assert torch.equal(nt.mm(z, z.conj().T), z @ z.conj().T)
    assert torch.equal(nt.add(z.conj().imag, 1), z.conj().imag + 1)
    (mine,) = torch.autograd.grad(nt.mm(z.conj(), z.T).real.sum(), z)
    (theirs,) = torch.autograd.grad((z.conj() @ z.T).real.sum(), z)
    assert torch.equal(mine.resolve_conj(), theirs.resolve_conj())


@named
def test_plain_calls_are_those_of_the_op(op):
    """What is made at once has the op's results and gradients, arguments by name as well."""
    name = op.schema.name
    if name not in ops.OPERATIONS:
        return
    form, args = call(op)
    function, names = getattr(nt, name), [a.name for a in form.schema.arguments]
    expected = form.of_torch(*args)
    for found in (function(*args), function(args[0], **dict(zip(names[1:], args[1:])))):
        assert torch.equal(found, expected)
        assert (found.dtype, found.stride()) == (expected.dtype, expected.stride())
        assert found.requires_grad == expected.requires_grad
        if expected.requires_grad:
            leaves = [x for x in args if isinstance(x, torch.Tensor) and x.requires_grad]
            pairs = zip(*(torch.autograd.grad(y.cos().sum(), leaves, retain_graph=True) for y in (found, expected)))
            assert all(torch.equal(x, y) and x.stride() == y.stride() for x, y in pairs)


@pytest.mark.parametrize(
    "name", ["add", "subtract", "maximum", "positive", "conj", "real", "linear", "addmm", "sum_to"]
)
def test_gradients_share_no_memory(name):
    """Of one call, of several, and with what went in: torch adds to a leaf's gradient in place."""
    form, args = call(LIBRARY[name])
    leaves = [x for x in args if isinstance(x, torch.Tensor)]
    seed = torch.ones_like(form.of_torch(*args))
    own = getattr(nb, name)
    for function in (form.of_torch, getattr(nt, name), nb.for_torch(own), nb.for_torch(lambda *args: own(*args))):
        once = torch.autograd.grad(function(*args), leaves, seed)
        for _ in range(3):
            function(*args).backward(seed)
        assert torch.equal(seed, torch.ones_like(seed))
        for x, grad in zip(leaves, once):
            torch.testing.assert_close(x.grad, 3 * grad)
            x.grad = None


def test_for_torch_of_an_operation_takes_its_formulas():
    """With the bits of what a tape gives for a function that calls the operation, once and twice."""
    judged = [op for op in ALL if notes_of(op)]
    assert len(judged) > 40
    for op in judged if EVERY else judged[::3]:
        _, args = call(op)
        leaves, found = [x for x in args if isinstance(x, torch.Tensor) and x.requires_grad], []
        for function in (op.function, functools.partial(op.function)):
            result = nb.for_torch(function)(*args)
            seed = (torch.arange(result.numel()) + 1.0).reshape(result.shape).to(result.dtype)
            once = torch.autograd.grad(result, leaves, seed, create_graph=True)
            plain = torch.autograd.grad(nb.for_torch(function)(*args), leaves, seed)
            total = sum((x * x).sum() for x in once)
            twice = torch.autograd.grad(total, leaves, allow_unused=True) if total.requires_grad else ()
            found.append([*once, *plain, *twice])
        for x, y in zip(*found, strict=True):
            assert (x is None and y is None) or torch.equal(x, y), op.schema.name


def test_derivatives_of_high_order():
    x = torch.rand(5, dtype=torch.float64, requires_grad=True)
    for function in (nb.exp, lambda x: nb.exp(x)):
        found = nb.for_torch(function)(x)
        for _ in range(4):
            (found,) = torch.autograd.grad(found.sum(), x, create_graph=True)
            torch.testing.assert_close(found, torch.exp(x))


def test_what_is_no_plain_call():
    x, numbers = torch.ones(2, 2, requires_grad=True), np.ones((2, 2))
    with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor"):
        nt.mm(x, numbers)
    with pytest.raises(RuntimeError, match="alhpa"):
        nt.add(x, x, alhpa=2)
    with pytest.raises(RuntimeError):
        nt.mm(x)
    with pytest.raises(RuntimeError):
        nt.add(2, 3)
    assert torch.equal(nt.add(2, x), x + 2)
    assert torch.equal(nt.add(x, 2, alpha=3), x + 6)
    masked = nt.add(x, x, where=torch.tensor([True, False]))
    assert torch.equal(masked[:, 0], torch.full((2,), 2.0))
    assert torch.equal(nt.mm(x, mat2=x, out_dtype=torch.float32), x @ x)
    assert not nt.less(x, 2).requires_grad
    with torch.no_grad():
        assert not nt.mm(x, x).requires_grad
    with torch.inference_mode():
        assert nt.mm(x, x).is_inference()
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **kwargs or {})

    with Mode():
        nt.mm(x, x)
    assert any("mm" in name for name in seen)
    with torch.device("meta"):  # a mode as well
        assert torch.equal(nt.mm(x, x), x @ x)


def test_ops_are_registered_as_they_are_looked_up():
    """The import is light; from any thread an op is whole."""
    code = """
import sys, threading, torch, nbkernels.torch
assert "numba" not in sys.modules
space, has = torch.ops.nbkernels, torch._C._dispatch_has_kernel_for_dispatch_key
assert {"mm", "add_", "mm_backward", "mm_backward_backward"} <= set(dir(space)) and "mm" not in vars(space)
x, found, gate = torch.ones(2, 2), [], threading.Barrier(4)
def run():
    gate.wait()
    rest = x, x, x, *[None] * 4, [True, False], [True]
    found.append(space.bmm(x[None], x[None]) + space.mm_backward_backward.default([x], *rest)[0])
threads = [threading.Thread(target=run) for _ in range(4)]
[each.start() for each in threads], [each.join() for each in threads]
assert len(found) == 4 and all(y.equal(found[0]) for y in found), found
assert "Scalar" in space.add.overloads() and has("nbkernels::add.Scalar", "Autograd")
assert not hasattr(space, "no_such_op") and space is torch.ops.nbkernels
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_without_torch():
    """One line says how to get it."""
    code = "import sys; sys.modules['torch'] = None\nimport nbkernels.torch"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    last = run.stderr.strip().splitlines()[-1]
    assert last == ("ImportError: nbkernels.torch needs torch, which is not installed: pip install 'nbkernels[torch]'")


def test_functions_are_those_of_the_table():
    assert set(nt.__all__) == set(ops.OPERATIONS)
    assert nt.mm.__doc__ == nb.mm.__doc__
    x = torch.arange(6.0).reshape(2, 3)
    for axis in (0, 1, None, (0, 1), -1):
        assert torch.equal(nt.add.reduce(x, axis), nb.add.reduce(x, axis))
    assert nt.add.reduce(x, keepdims=True, dtype=torch.float64).dtype == torch.float64
    assert torch.equal(nt.add.reduce(x, dim=1, keepdim=True), x.sum(1, keepdim=True))
    assert torch.equal(nt.add.accumulate(x, dim=1), x.cumsum(1))
    with pytest.raises(TypeError, match=r"add\.reduce: axis=1 and dim=1 are one argument"):
        nt.add.reduce(x, 1, dim=1)
    assert np.array_equal(nt.maximum.accumulate(x, 1), nb.maximum.accumulate(x.numpy(), 1))
