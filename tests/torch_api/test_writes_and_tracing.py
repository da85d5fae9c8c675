"""torch sees writes into its tensors, and is not traced in silence."""

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.dispatch import ArgumentError, Library

torch = pytest.importorskip("torch", reason="lacks torch")

WRITES = {
    "in place": lambda x: nb.add_(x, 1),
    "out": lambda x: nb.multiply(x, 2.0, out=x),
    "product": lambda x: nb.mm(x, x, out=x),
    "composite": lambda x: nb.addr_(x, x[0], x[1]),
    "activation": lambda x: nb.addmm_activation_(x, x, x),
    "batches": lambda x: nb.bmm(x[None], x[None], out=x[None]),
    "fold": lambda x: nb.add.reduce(x, out=x[0]),
    "accumulate": lambda x: nb.add.accumulate(x, out=x),
    "at": lambda x: nb.add.at(x, (np.array([0]), np.array([1])), 1.0),
    "fuse": lambda x: nb.fuse(lambda a: a + 1, x, out=x),
    "masked": lambda x: nb.fuse(lambda a: a + 1, x, out=x, where=x > 0),
    "of NumPy's": lambda x: nb.add(np.ones((2, 2)), 1.0, out=x),
    "several": lambda x: nb.elementwise(lambda a: (a, a + 1))(x, out=(torch.empty_like(x), x)),
    "epilogue": lambda x: nb.epilogue(lambda v: v + 1)(x, x, x, out=x),
    "before": lambda x: nb.epilogue(lambda v: v + 1)(x, x.clone(), x.clone(), before=x),
    "view": lambda x: nb.add_(x.T[:1], 1),
}


@pytest.mark.parametrize("case", WRITES)
def test_autograd_notices_what_is_written(case):
    """A tensor that a backward pass needs was changed since: torch's error in place of a wrong gradient."""
    x = torch.arange(1.0, 5.0, dtype=torch.float64).reshape(2, 2)
    weight = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
    product = (weight * x).sum()
    version = x._version
    WRITES[case](x)
    assert x._version > version
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_what_is_only_read_keeps_its_version():
    x, out = torch.ones(2, 2), np.empty((2, 2), np.float32)
    for _ in range(3):  # compiled functions are found by the first
        nb.add(x, x), nb.mm(x, x, out=out), nb.fuse(lambda a: a + 1, x), nb.add.reduce(x)
    with pytest.raises(ValueError, match="shape"):
        nb.add(torch.ones(3), 1, out=x)
    assert x._version == 0


def test_kernels_that_write_their_arguments_count():
    def fill(self, value):
        self.numpy()[...] = value

    with Library("tests").define("fill_(Tensor(a!) self, float value) -> Tensor(a!)", dispatch={"CPU": fill}) as op:
        x = torch.zeros(3)
        assert op.function(x, 2.0) is x
        assert (x.tolist(), x._version) == ([2, 2, 2], 1)


def test_tensors_without_versions_can_be_written():
    with torch.inference_mode():
        x = torch.ones(2)
        assert nb.add_(x, 1).tolist() == [2, 2]


CALLS = {
    "operation": lambda x: nb.mm(x, x),
    "composite": lambda x: nb.linear(x, x),
    "fuse": lambda x: nb.fuse(lambda a: a + 1, x),
    "fold": lambda x: nb.add.reduce(x),
    "in place": lambda x: nb.add_(x, 1),
    "at": lambda x: nb.add.at(x, (np.array([0]), np.array([1])), 1.0),
}


@pytest.mark.filterwarnings("ignore")  # torch's, of what it is asked for and of itself
@pytest.mark.parametrize("case", CALLS)
def test_what_notes_calls_of_torch_gets_no_wrong_graph(case):
    """A graph would lack the call, and what it computes would be garbage."""
    from torch.autograd import forward_ad
    from torch.fx.experimental.proxy_tensor import make_fx

    x, call = torch.ones(2, 2), CALLS[case]
    with pytest.raises(TypeError, match=r"torch\.jit\.trace: the graph would lack this call"):
        torch.jit.trace(call, x)
    with pytest.raises(TypeError, match="make_fx: the graph would lack this call"):
        make_fx(call)(x)
    with forward_ad.dual_level(), pytest.raises(TypeError, match="with a tangent, which would be lost"):
        call(forward_ad.make_dual(x, x))
    with pytest.raises(TypeError, match="no memory"):
        torch.func.vmap(call)(x[None])
    with pytest.raises(TypeError, match="requires grad"):
        torch.func.grad(lambda x: call(x).sum())(x)
    assert x.tolist() == [[1, 1], [1, 1]]


@pytest.mark.filterwarnings("ignore")
def test_errors_of_tracing_name_the_operand():
    with pytest.raises(ArgumentError, match=r"mm: self is a torch tensor in torch\.jit\.trace"):
        torch.jit.trace(lambda x: nb.mm(x, x), torch.ones(2, 2))


DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
NARROW = {"int16": ("float16", "bfloat16"), "int32": ("float16", "bfloat16", "float32", "complex64")}
NARROW["int64"] = NARROW["int32"]  # integers: floats that do not hold them, which torch takes all the same


@pytest.mark.sampled
@pytest.mark.parametrize("first", DTYPES)
def test_promotion_against_torch(first):
    """NumPy 2's rules, as for every other array: where torch has others docs/torch.md says so."""
    one = getattr(torch, first)
    x = torch.ones(2, dtype=one)
    for second in DTYPES:
        other = getattr(torch, second)
        found, theirs = nb.multiply(x, torch.ones(2, dtype=other)).dtype, torch.promote_types(one, other)
        if second in NARROW.get(first, ()) or first in NARROW.get(second, ()):
            numpys = np.result_type(*(np.float16 if name == "bfloat16" else name for name in (first, second)))
            assert (found, theirs) == (getattr(torch, numpys.name), other if second in NARROW.get(first, ()) else one)
        else:
            assert found == theirs, second
        whole = torch.ones((), dtype=other)
        assert nb.multiply(x, whole).dtype == found, f"0-d {second}"  # torch: of a higher category alone
    floats, exact = first.startswith(("float", "complex")), first in ("float64", "complex128")
    assert nb.multiply(x, 2).dtype == (one if first != "bool" else torch.int64) == torch.result_type(x, 2)
    assert nb.multiply(x, 2.5).dtype == (one if floats else torch.float32 if first == "bfloat16" else torch.float64)
    theirs = one if floats or first == "bfloat16" else torch.float32
    assert torch.result_type(x, 2.5) == theirs
    wide = torch.complex128 if exact or not (floats or first == "bfloat16") else torch.complex64
    assert nb.multiply(x, 1j).dtype == wide
