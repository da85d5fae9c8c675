"""Tensors and subclasses of ndarray on the fast paths: which calls take them, and that what comes out is what the
general path makes of them."""

import resource
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from types import BuiltinFunctionType

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.dispatch import ArgumentError, OutError
from nbkernels.dispatch.op import Op
from nbkernels.ops import LIBRARY
from tests.compare import same_bits

needs_torch = pytest.mark.skipif(not find_spec("torch"), reason="lacks torch")


class Sub(np.ndarray):
    """A subclass that keeps its class."""


class Tagged(np.ndarray):
    """One that looks at what it wraps."""

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return array.view(Tagged) if array.ndim else ("wrapped", array[()])


@contextmanager
def general(monkeypatch):
    """No array lends NumPy its memory."""

    def forget():
        for op in LIBRARY:
            op.forget()

    with monkeypatch.context() as patch:
        patch.setattr(LIBRARY, "lenders", {})
        forget()
        yield
    forget()


def by_fast_path(monkeypatch, call):
    """What a call returns that binds nothing by the schema, as calls of the general path do."""

    def bind(self, name, args):
        raise AssertionError(f"{name} took the general path")

    call()  # the first call of these types looks for the path
    with monkeypatch.context() as patch:
        patch.setattr(Op, "bind", bind)
        return call()


def mapped(path, x):
    made = np.memmap(path, x.dtype, "w+", shape=x.shape)
    made[...] = x
    return made


A = np.arange(12.0, dtype=np.float32).reshape(3, 4)
CALLS = {
    "mm": lambda x: nb.mm(x, x.T),
    "addmm": lambda x: nb.addmm(x[:, 0], x, x.T, beta=2),
    "matmul": lambda x: nb.matmul(x[None], x.T[None]),
    "linear": lambda x: nb.linear(x, x, x[:, 0]),
    "mv": lambda x: nb.mv(x, x[0]),
    "dot": lambda x: nb.dot(x[0], x[1]),
    "outer": lambda x: nb.outer(x[0], x[:, 0]),
    "add": lambda x: nb.add(x, x[0]),
    "0-d": lambda x: nb.add(x[0, 1:2].reshape(()), x),
    "number": lambda x: nb.multiply(2.0, x),
    "alpha": lambda x: nb.subtract(x, x, alpha=3),
    "where": lambda x: nb.add(x, 1, where=x > -1),
    "dtype": lambda x: nb.add(x, 1, dtype="float64"),
    "slices": lambda x: nb.add(x.T[::2], 1.0),
    "compare": lambda x: nb.less(x, x.T[0, 0].reshape(())),
    "fold": lambda x: nb.add.reduce(x),
    "whole fold": lambda x: nb.maximum.reduce(x, axis=None),
    "running fold": lambda x: nb.add.accumulate(x, axis=1),
    "sum_to": lambda x: nb.sum_to(x, (4,)),
}


def kind_of(kind, tmp_path):
    return mapped(tmp_path / "array", A) if kind == "memmap" else A.copy().view(kind)


@pytest.mark.parametrize("kind", ["memmap", Sub, Tagged], ids=str)
@pytest.mark.parametrize("case", CALLS)
def test_subclasses_take_the_fast_path(case, kind, monkeypatch, tmp_path):
    x, call = kind_of(kind, tmp_path), CALLS[case]
    found = by_fast_path(monkeypatch, lambda: call(x))
    with general(monkeypatch):
        expected = call(x)
    assert type(found) is type(expected)
    if isinstance(found, tuple):
        assert found == expected
        return
    assert getattr(found, "strides", None) == getattr(expected, "strides", None)
    same_bits(found, expected)
    same_bits(found, call(A))


@pytest.mark.parametrize("kind", ["memmap", Sub, Tagged], ids=str)
def test_subclasses_are_written(kind, monkeypatch, tmp_path):
    out, square = kind_of(kind, tmp_path), A @ A.T
    for call, result in (
        (lambda: nb.add(A, A, out=out), A + A),
        (lambda: nb.add(A.view(Sub), 1, out=out), A + 1),
        (lambda: nb.multiply(out, 0, out=out), A * 0),
        (lambda: nb.add(A, A, out=out, where=A > 3), np.where(A > 3, A + A, 0)),
        (lambda: nb.mm(A, A.T, out=out[:, :3]), square),
    ):
        found = by_fast_path(monkeypatch, call)
        same_bits(found, result)
        assert np.shares_memory(found, out)
        assert type(found) is type(out)
    assert by_fast_path(monkeypatch, lambda: nb.add_(out, 1)) is out


def test_mixed_classes(monkeypatch):
    """The first operand's class, and of element-wise operations that of the first that has dimensions."""
    sub, tagged = A.view(Sub), A.view(Tagged)
    for call, kind in (
        (lambda: nb.add(A, sub), np.ndarray),
        (lambda: nb.add(sub, A), Sub),
        (lambda: nb.add(tagged, sub), Tagged),
        (lambda: nb.add(sub[0, 0:1].reshape(()), A), np.ndarray),
        (lambda: nb.add(np.float32(1), sub), Sub),
        (lambda: nb.mm(A, sub.T), np.ndarray),
        (lambda: nb.mm(sub, A.T), Sub),
    ):
        assert type(by_fast_path(monkeypatch, call)) is kind
        with general(monkeypatch):
            assert type(call()) is kind


def test_what_subclasses_may_not():
    masked, fixed = np.ma.masked_array(A.copy(), A > 3), A.copy().view(Sub)
    fixed.flags.writeable = False
    for call in (lambda: nb.add(masked, 1), lambda: nb.add(A.view(Sub), masked), lambda: nb.add(A, A, out=masked)):
        with pytest.raises(ArgumentError, match="masked array"):
            call()
    for call in (lambda: nb.add(A, A, out=fixed), lambda: nb.add(fixed, A, out=fixed), lambda: nb.add_(fixed, 1)):
        with pytest.raises(OutError, match="read-only"):
            call()
    with pytest.raises(TypeError, match="share a dtype"):
        nb.mm(A.view(Sub), A.T.astype("f8"))
    assert fixed.tolist() == masked.data.tolist() == A.tolist()
    assert type(nb.add(np.eye(2).view(np.matrix), 1)) is np.matrix


# -- torch ------------------------------------------------------------------------------------------------------------


def tensor(dtype="float32"):
    torch = pytest.importorskip("torch", reason="lacks torch")
    return torch.arange(12).reshape(3, 4).to(getattr(torch, dtype))


@needs_torch
@pytest.mark.parametrize("case", CALLS)
def test_tensors_take_the_fast_path(case, monkeypatch):
    import torch

    x, call = tensor(), CALLS[case]
    if case == "slices":
        call = lambda x: nb.add(x.T[::2], 1.0)  # noqa: E731
    found = by_fast_path(monkeypatch, lambda: call(x))
    assert type(found) is torch.Tensor
    with general(monkeypatch):
        expected = call(x)
    assert (found.dtype, found.stride()) == (expected.dtype, expected.stride())
    same_bits(found.numpy(), expected.numpy())
    same_bits(found.numpy(), call(A))


@needs_torch
@pytest.mark.parametrize("dtype", "bfloat16 float16 float64 complex64 int8 uint8 int64 uint16 bool".split())
def test_dtypes_of_tensors(dtype, monkeypatch):
    import torch

    x = tensor(dtype)
    for call in (
        lambda: nb.mm(x, x.T),
        lambda: nb.multiply(x, x),
        lambda: nb.add.reduce(x, axis=None),
    ):
        found = by_fast_path(monkeypatch, call)
        with general(monkeypatch):
            expected = call()
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected)


def compiled_call(op, call):
    """An op's compiled function of tensors, after calls that it needs to be found."""
    import torch

    for _ in range(2):  # the first compiles what it calls, and has it looked for anew
        call()
    found = LIBRARY[op].entries[torch.Tensor]
    assert type(found) is BuiltinFunctionType
    return found


@needs_torch
def test_compiled_calls_leave_nothing_behind():
    """References to operands, views, results and dtypes; memory, which any thread may let go."""
    import torch

    x, y, zero = torch.ones(64, 1024), torch.ones(64, 1024), torch.ones(())
    calls = {
        "add": (lambda: nb.add(x, y)),
        "mm": (lambda: nb.mm(x, y.T)),
        "dot": (lambda: nb.dot(x[0], y[0])),
        "exp": (lambda: nb.exp(zero)),
        "sum_to": (lambda: nb.sum_to(x, x.shape)),
    }
    for op, call in calls.items():
        compiled_call(op, call)
        counted = x, y, zero, np.dtype("f4"), np.ndarray
        before, size = list(map(sys.getrefcount, counted)), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(1000):
            result = call()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(result.sum).result()
        del result
        more = [after - count for after, count in zip(map(sys.getrefcount, counted), before)]
        assert max(map(abs, more)) < 100, (op, more)  # others count types, too
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - size < 100 << 10, op  # KiB; results would be 256 MB


@needs_torch
def test_results_of_compiled_calls_are_torchs_own(monkeypatch):
    """Memory of their own, which a thread without the GIL frees, strides, modes; and errors as they are."""
    import torch

    x = torch.arange(24.0).reshape(2, 3, 4)
    found = nb.add(x.permute(2, 0, 1), 1)
    compiled_call("multiply", lambda: nb.multiply(x, x))
    assert found.stride() == torch.add(x.permute(2, 0, 1), 1).stride()
    assert found.data_ptr() != x.data_ptr()
    leaf = nb.multiply(x, 2).requires_grad_()
    (leaf * leaf).sum().backward()  # in a thread of torch's
    assert leaf.grad.equal(4 * x)
    with pytest.raises(ArgumentError, match="requires grad"):
        nb.multiply(leaf, leaf)
    with torch.inference_mode():
        assert nb.multiply(x, 2).is_inference() is torch.mul(x, 2).is_inference() is True
    empty = torch.empty(0, 3, 4)
    assert nb.multiply(empty, empty).shape == empty.shape
    assert nb.multiply(torch.tensor(2.0), 3).item() == 6
    with pytest.raises(ValueError, match="broadcast"):
        nb.multiply(x, torch.ones(5))
    whole = torch.arange(6)
    nb.floor_divide(whole, whole + 1)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        assert not nb.floor_divide(whole, 0 * whole).any()
    called = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            called.append(function)
            return function(*args, **kwargs or {})

    with Watch():
        nb.multiply(x, x)
    assert called, "a mode saw nothing"


@needs_torch
def test_first_calls_of_tensors_do_not_wait_for_the_compiled_one(monkeypatch):
    import torch

    from nbkernels import background, first_calls
    from nbkernels.jit.abi import lend

    x = torch.ones(3, 5)
    nb.subtract(x, x)
    made = threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(first_calls, "CALLS", 4)
        patch.setattr(lend, "at_hand", made.is_set)
        patch.setattr(lend, "lent_entry", lambda entry=lend.lent_entry: made.set() or entry())
        patch.setattr(background, "_asked", {})
        LIBRARY["subtract"].forget()
        for call in range(4):
            nb.subtract(x, x)
            assert not made.is_set(), call
        assert type(LIBRARY["subtract"].entries[torch.Tensor]) is not BuiltinFunctionType
        nb.subtract(x, x)
        assert made.wait(60)
        while background.busy():
            time.sleep(0.001)
        assert nb.subtract(x, 1).equal(torch.zeros(3, 5))
        compiled_call("subtract", lambda: nb.subtract(x, x))
    LIBRARY["subtract"].forget()


@needs_torch
def test_tensors_are_written(monkeypatch):
    import torch

    out, x = torch.empty(3, 3), tensor()
    for dtype in (torch.float32, torch.bfloat16):
        y, into = x.to(dtype), out.to(dtype)
        version = into._version
        assert by_fast_path(monkeypatch, lambda y=y, into=into: nb.mm(y, y.T, out=into)) is into
        assert torch.equal(into.float(), x @ x.T)
        assert by_fast_path(monkeypatch, lambda into=into: nb.add_(into, 1)) is into  # calls twice
        assert torch.equal(into.float(), (x @ x.T + 2).to(dtype).float())
        assert into._version == version + 4
    fixed = out.expand(2, 3, 3)
    for call in (lambda: nb.add(fixed, 1, out=fixed), lambda: nb.add_(out[0].expand(3, 3), 1)):
        with pytest.raises(OutError, match="share memory"):
            call()
    with pytest.raises(ValueError, match="shape"):
        nb.mm(x, x.T, out=torch.empty(3, 4))


WRITERS = {
    "in place": lambda nb, x: nb.add_(x, 1.0),
    "a view in place": lambda nb, x: nb.multiply_(x[1:].T, 2.0),
    "out=": lambda nb, x: nb.add(x, x, out=x),
    "out= of one": lambda nb, x: nb.exp(x, out=x),
    "out= of a view": lambda nb, x: nb.mm(x, x, out=x[:, :]),
    "out= with keywords": lambda nb, x: nb.addmm(x, x, x, beta=2.0, out=x),
    "out= of plain tensors": lambda nb, x: nb.mm(x.new_ones(4, 4).clone(), x.new_ones(4, 4).clone(), out=x),
    "a product in place": lambda nb, x: nb.addmm_(x, x, x),
}
METHODS = {
    "at": lambda nb, x: nb.add.at(x, [0], 1.0),
    "reduce": lambda nb, x: nb.add.reduce(x, axis=0, out=x[0]),
    "accumulate": lambda nb, x: nb.add.accumulate(x, axis=0, out=x),
    "fuse": lambda nb, x: nb.fuse(lambda v: v + 1, x, out=x),
    "elementwise": lambda nb, x: nb.elementwise(lambda v: v + 1)(x, out=x),
}


@needs_torch
@pytest.mark.parametrize("write", (WRITERS | METHODS).values(), ids=WRITERS | METHODS)
def test_tensors_of_inference_mode_are_written_inside_it_alone(write):
    """As torch has it, by the functions, nbkernels.torch and torch.ops, the fast paths known or not."""
    import torch

    import nbkernels.torch

    rooms = [nb] + [nbkernels.torch] * (write in WRITERS.values())
    for room in rooms:
        with torch.inference_mode():
            x = torch.ones(4, 4)
        for _ in range(3):
            with pytest.raises(OutError, match="cannot be written: it was made in torch") as raised:
                write(room, x)
            assert isinstance(raised.value, RuntimeError)
            assert (x == 1).all()
            write(room, torch.ones(4, 4))
        with torch.inference_mode():
            write(room, x)
        assert not (x == 1).all()


@needs_torch
def test_sum_to_its_own_shape_is_the_tensor():
    x = tensor()
    for _ in range(3):  # the first finds the compiled function
        assert nb.sum_to(x, (3, 4)) is x


@needs_torch
def test_parameters_where_grad_is_off(monkeypatch):
    import torch

    weight, bias = torch.nn.Parameter(torch.ones(2, 4)), torch.nn.Parameter(torch.ones(2))
    with pytest.raises(ArgumentError, match="requires grad"):
        nb.linear(tensor(), weight, bias)
    with torch.no_grad():
        found = by_fast_path(monkeypatch, lambda: nb.linear(tensor(), weight, bias))
        nb.add_(weight, 1)  # as optimizers do
    assert type(found) is torch.Tensor
    assert not found.requires_grad
    assert found.tolist() == [[7, 7], [23, 23], [39, 39]]
    assert weight.tolist() == [[2] * 4] * 2
    assert weight._version == 1
    with pytest.raises(ArgumentError, match="requires grad"):
        nb.add_(weight, 1)
    assert weight.tolist() == [[2] * 4] * 2


@needs_torch
@pytest.mark.filterwarnings("ignore")  # torch's, of what it has itself
def test_tensors_that_are_no_plain_memory():
    """The general path's error, whatever path was found for the type before; and no crash."""
    import torch

    x = tensor()
    z = torch.ones(2, 2, dtype=torch.complex64) * 1j
    gone = torch.ones(2, 2)
    gone.untyped_storage().resize_(0)
    nb.add(x, x), nb.add(z, z)
    cases = {
        "a lazy negative or conjugate": (z.conj(), z.conj().imag),
        "layout": (x.to_sparse(), x.to_mkldnn()),
        "no NumPy dtype": (torch.quantize_per_tensor(x, 1.0, 0, torch.qint8), x.to(torch.float8_e4m3fn)),
        "no memory": (torch._efficientzerotensor(2, 2), gone),
    }
    for words, bad in cases.items():
        for y in bad:
            for call in (lambda y=y: nb.add(y, y), lambda y=y: nb.add(y, 1), lambda y=y: nb.add(x[:2, :2], 1, out=y)):
                with pytest.raises(TypeError, match=words):
                    call()
    assert isinstance(nb.add(x.to("meta"), 1).device, torch.device)
    empty = torch.empty(0, 4)
    assert nb.add(empty, 1).shape == (0, 4)
    assert nb.mm(empty, x.T).shape == (0, 3)
    assert nb.mm(empty.T, empty).tolist() == [[0] * 4] * 4


@needs_torch
@pytest.mark.filterwarnings("ignore")
def test_tensors_inside_of_transforms():
    """A path that was found for plain tensors does not run where something else would see the call."""
    import torch
    from torch.autograd import forward_ad

    x = torch.ones(2, 2)
    nb.add(x, x)
    with forward_ad.dual_level():
        with pytest.raises(TypeError, match="tangent"):
            nb.add(forward_ad.make_dual(x, x), 1)
        assert nb.add(x, 1).tolist() == [[2, 2], [2, 2]]
    for transform in (torch.func.vmap, torch.func.functionalize):
        with pytest.raises(TypeError, match="no memory"):
            transform(lambda x: nb.add(x, 1))(x)
    assert torch.func.vmap(lambda y: y + nb.add(x, 1))(x[None]).tolist() == [[[3, 3], [3, 3]]]


@needs_torch
def test_without_the_exchange_interface(monkeypatch):
    """An older torch: by its numpy()."""
    from nbkernels import tensor_calls
    from nbkernels.jit.abi import lend

    x = tensor()
    expected = nb.add(x, x)
    with monkeypatch.context() as patch:
        patch.setattr(lend, "NAME", b"another")
        tensor_calls.of_torch.cache_clear()
        LIBRARY["add"].forget()
        assert by_fast_path(monkeypatch, lambda: nb.add(x, x)).equal(expected)
        assert tensor_calls.of_torch()[1] == "lend({0})"
    tensor_calls.of_torch.cache_clear()
    LIBRARY["add"].forget()


@needs_torch
def test_beside_other_arrays():
    """Tensors with NumPy's arrays: as ever, the kind of the first."""
    import torch

    x = tensor()
    assert type(nb.add(x, A)) is torch.Tensor
    assert type(nb.add(A, x)) is np.ndarray
    assert type(nb.add(x, np.float32(2))) is torch.Tensor
    out = np.empty((3, 4), np.float32)
    assert nb.add(x, x, out=out) is out
    same_bits(out, A + A)
    with pytest.raises(OverflowError):
        nb.add(x.to(torch.int8), 300)
    with pytest.raises(ValueError, match="do not broadcast"):
        nb.add(x, x.T)
