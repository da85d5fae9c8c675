"""elementwise, fuse and at on a device of a user's own, and where a user has other kernels for them."""

import functools

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.dispatch import (
    Adapter,
    Device,
    DeviceError,
    MissingKernelError,
    RegistrationError,
    Spec,
    add_device,
    keys,
    register_adapter,
    unregister_adapter,
)


class Shelf:
    """A NumPy array that lies elsewhere."""

    def __init__(self, array):
        self.array = np.asarray(array)


class Shelves(Adapter):
    name = "shelf"

    def owns(self, cls):
        return issubclass(cls, Shelf)

    def device(self, x):
        return Device("SHELF")

    def spec(self, x):
        return Spec(x.array.shape, x.array.dtype, x.array.strides)

    def view(self, x):
        return x.array

    def empty(self, like, shape, dtype, strides):
        return Shelf(np.ndarray(shape, dtype, strides=strides))

    def upload(self, x, like):
        return Shelf(x)


@pytest.fixture
def shelves():
    adapter = register_adapter(Shelves())
    add_device("SHELF")
    yield adapter
    keys.remove_device("SHELF")
    unregister_adapter(adapter)


def by_numpy(function, outs, inputs, where, fresh):
    results = np.frompyfunc(function, len(inputs), len(outs))(*inputs)
    for out, result in zip(outs, results if len(outs) > 1 else [results]):
        np.copyto(out, result, casting="unsafe", where=True if where is None else where)


def at_by_numpy(op, self, indices, other):
    getattr(np, op).at(self, indices, other)


def both(x):
    return x + 1, x * 2


def test_element_wise_functions_run_there(shelves):
    function, x = nb.elementwise(lambda x, y: x * y + 1), Shelf(np.arange(6.0).reshape(2, 3))
    words = r"has no kernel for SHELF; it has CPU, CUDA: register\('elementwise', 'SHELF', kernel\) adds one"
    for call in (lambda: function(x, x), lambda: nb.fuse(lambda x: x + 1, x)):
        with pytest.raises(MissingKernelError, match=words):
            call()
    with nb.register("elementwise", "SHELF", by_numpy):
        for other in (2.0, np.array(2.0), Shelf([2.0, 2.0, 2.0]), Shelf(2.0)):
            found = function(x, other)
            assert type(found) is Shelf
            assert found.array.tolist() == [[1, 3, 5], [7, 9, 11]]
        out, mask = Shelf(np.zeros((2, 3))), Shelf([True, False, True])
        assert function(x, 2.0, out=out, where=mask) is out
        assert out.array.tolist() == [[1, 0, 5], [7, 0, 11]]
        assert nb.fuse(lambda x: x + 1, x).array[0, 0] == 1
        more, twice = nb.fuse(both, x)
        assert (more.array[1, 2], twice.array[1, 2]) == (6, 10)
        with pytest.raises(DeviceError, match="x on SHELF:0, y on CPU"):
            function(x, np.ones(3))
    with pytest.raises(MissingKernelError, match=words):
        function(x, x)


def test_epilogues_run_there(shelves):
    """By addmm and the function, or by a kernel for both."""
    capped, x = nb.epilogue(lambda v, scale, limit: min(v * scale, limit)), Shelf(np.arange(6.0).reshape(2, 3))

    def addmm(out, self, mat1, mat2, beta, alpha, *_):
        out[...] = beta * self + alpha * (mat1 @ mat2)

    def both_by_numpy(function, out, before, dtype, input, mat1, mat2, operands, how):
        addmm(made := np.empty(out.shape, dtype), input, mat1, mat2, how["beta"], how["alpha"])
        if before is not None:
            before[...] = made
        by_numpy(function, [out], [made, *operands], None, False)
        kinds.append((type(before), dtype, [np.ndim(x) for x in operands], how["tiles"]))

    kinds, scale, before = [], Shelf([1.0, 2.0]), Shelf(np.zeros((2, 2)))
    call = functools.partial(capped, Shelf(np.ones(2)), x, Shelf(np.ones((3, 2))), scale, 9.0)
    with nb.register("addmm", "SHELF", addmm), nb.register("elementwise", "SHELF", by_numpy):
        assert call(alpha=2).array.tolist() == [[7, 9], [9, 9]]
        with nb.register("epilogue", "SHELF", both_by_numpy):
            found = call(alpha=2, before=before)
            assert (type(found), found.array.tolist()) == (Shelf, [[7, 9], [9, 9]])
            assert call(alpha=2, out=before) is before
        assert before.array.tolist() == found.array.tolist()
        assert call(alpha=2).array.tolist() == found.array.tolist()
    assert kinds == [(np.ndarray, np.float64, [1, 0], None), (type(None), np.float64, [1, 0], None)]


def test_at_runs_there(shelves):
    x = Shelf(np.zeros(3))
    words = r"^add.at has no kernel for SHELF; it has CPU, CUDA: register\('at', 'SHELF', kernel\) adds one"
    with pytest.raises(MissingKernelError, match=words):
        nb.add.at(x, [0], 1.0)
    with nb.register("at", "SHELF", at_by_numpy):
        nb.add.at(x, [0, 0, 2], Shelf([1.0, 2.0, 3.0]))
        nb.multiply.at(x, np.array([0]), 2)
        assert x.array.tolist() == [6, 0, 3]
        with pytest.raises(DeviceError, match="self on SHELF:0, other on CPU"):
            nb.add.at(x, [0, 1], np.ones(2))


def test_another_kernel_on_the_cpu_takes_over_and_goes():
    """The ways past the checks, for layouts that were met before, end with the kernel that they belong to."""
    function, x = nb.elementwise(lambda x: x + 1), np.arange(3.0)
    for _ in range(3):
        assert function(x).tolist() == [1, 2, 3]
    calls = []

    def counted(*args):
        calls.append(args)
        mine.replaced(*args)

    with nb.register("elementwise", "CPU", counted, override=True) as mine:
        for _ in range(3):
            assert function(x).tolist() == function(x, out=np.zeros(3)).tolist() == [1, 2, 3]
        assert len(calls) == 6
    for _ in range(3):
        assert function(x).tolist() == [1, 2, 3]
    assert len(calls) == 6
    with nb.register("at", "CPU", counted, override=True) as mine:
        nb.add.at(x, [0, 0], 1.0)
        nb.add.at(x, np.array([0, 0]), 1.0)
        assert len(calls) == 8
    nb.add.at(x, [0, 0], 1.0)
    assert (len(calls), x[0]) == (8, 6)


def test_registrations_that_cannot_stand():
    with pytest.raises(RegistrationError, match="elementwise already has a kernel for CPU"):
        nb.register("elementwise", "CPU", by_numpy)
    with pytest.raises(
        RegistrationError, match=r"it takes \(x\) and would be called with \(op, self, indices, other\)"
    ):
        nb.register("at", "CUDA", lambda x: None, override=True)
    for key in ("CompositeExplicit", "Autograd", "AutogradCPU", "Meta"):
        with pytest.raises(RegistrationError, match=f"at has kernels for devices with data alone, not for {key}"):
            nb.register("at", key, at_by_numpy)
    with pytest.raises(RegistrationError, match="there is no op 'elementwis'; did you mean 'elementwise'"):
        nb.register("elementwis", "CPU", by_numpy)
    with pytest.raises(RegistrationError, match="'at' is no op that was defined"):
        nb.add.op.library.remove("at")
    for name in ("at", "elementwise"):
        with pytest.raises(RegistrationError, match=f"{name} is defined already"):
            nb.define(f"{name}(Tensor self) -> Tensor")


def test_a_fallback_is_seen_in_explain(shelves):
    def fallback(op, args, out):
        raise AssertionError("explain runs nothing")

    x = Shelf(np.ones((2, 3)))
    with nb.register_fallback("SHELF", fallback):
        found = nb.explain(nb.add, x, x)
        assert (found.device, found.result, found.bytes) == ("SHELF:0", "(2, 3) float64", 144)
        assert found.kernel.endswith("<locals>.fallback")
        assert found.row.startswith("SHELF: fallback, registered at dispatch/test_users_device.py:")
