"""Where a call runs: devices, guards, arrays of a user, missing kernels; with tiny kernels."""

from types import SimpleNamespace

import numpy as np
import pytest

from nbkernels.dispatch import (
    Adapter,
    ArgumentError,
    DeviceError,
    MetaArray,
    MissingKernelError,
    OutError,
    RegistrationError,
    ResultError,
    views,
)
from tests.toys import Box, same


def test_arrays_of_a_user_go_in_and_come_out(boxes, plus):
    result = plus.function(Box([1, 2]), Box([10, 20]))
    assert type(result) is Box
    assert result.items == [11, 22]
    x = Box([1, 2])
    assert plus.in_place(x, Box([1, 1])) is x
    assert x.items == [2, 3]
    out = Box([0, 0])
    assert plus.function(x, 1, out=out) is out
    assert out.items == [3, 4]


def test_what_an_adapter_lacks_is_named(boxes):
    for call in (lambda: views.restride(Box([1]), (1,), (1,)), lambda: Adapter().empty(None, (), None, ())):
        with pytest.raises(NotImplementedError, match=r"^(Boxes|Adapter), the adapter of .* arrays, has no '\w+'"):
            call()


def test_one_device_or_an_error_that_names_all(boxes, plus):
    words = "plus: all arrays must be on one device: self on BOX:0, other on BOX:1"
    with pytest.raises(DeviceError, match=words):
        plus.function(Box([1]), Box([2], device=1))
    with pytest.raises(DeviceError, match="self on BOX:0, other on CPU, out on BOX:0"):
        plus.function(Box([1]), np.ones(1), out=Box([0]))
    with pytest.raises(DeviceError, match="self on BOX:0, other on BOX:0, out on CPU"):
        plus.function(Box([1]), Box([1]), out=np.zeros(1))
    with pytest.raises(DeviceError, match="self on CPU, other on CPU, out on BOX:0"):
        plus.function(np.ones(1), np.ones(1), out=Box([1]))
    with pytest.raises(DeviceError, match="self on Meta, other on CPU"):
        plus.function(MetaArray((1,), "f8"), np.ones(1))


def test_a_0d_cpu_array_joins_an_element_wise_op(boxes, plus, library):
    for other in (np.array(5.0), np.float64(5)):
        for result in (plus.function(Box([1, 2], 1), other), plus.function(other, Box([1, 2], 1))):
            assert (result.items, result.device) == ([6.0, 7.0], 1)
    op = library.define("f(Tensor self, Tensor other) -> Tensor", structured=same, dispatch={"BOX": lambda *args: None})
    with pytest.raises(DeviceError, match="self on BOX:0, other on CPU"):
        op.function(Box([1]), np.array(5.0))


def test_the_call_runs_on_the_first_arrays_device(boxes, plus, library):
    assert plus.function(Box([1], 1), Box([1], 1)).device == 1
    assert (boxes.current, boxes.entered) == (0, (1,))

    def fails(x):
        assert boxes.current == 1
        raise ZeroDivisionError

    op = library.define("f(Tensor self) -> Tensor", dispatch={"BOX": fails})
    with pytest.raises(ZeroDivisionError):
        op.function(Box([1], 1))
    assert boxes.current == 0


def test_checks_and_guard_can_be_left_to_the_op(boxes, library):
    op = library.define(
        "f(Tensor self, Tensor b) -> int",
        dispatch={"BOX": lambda x, y: (x.device, y.device)},
        device_check=False,
        device_guard=False,
    )
    assert op.function(Box([1], 1), Box([1], 0)) == (1, 0)
    assert boxes.entered == ()


def test_a_missing_kernel_says_which_there_are(boxes, scale, library):
    with pytest.raises(MissingKernelError, match="scale has no kernel for BOX; it has CPU, Meta"):
        scale.function(Box([1]), 2)


def test_a_fallback_runs_after_the_checks(boxes, library, plus):
    """As a kernel does: what meta refuses, or cannot be written, never reaches it."""
    calls = []

    def fallback(op, args, out):
        calls.append((op, args, out))
        return args[0]

    def meta(self, other, by, parts):
        if self.shape != other.shape:
            raise ValueError(f"f: {self.shape} and {other.shape}")
        return SimpleNamespace(shape=self.shape, dtype=self.dtype, strides=None)

    text = "f(Tensor self, Tensor other, Scalar by=1, Tensor?[] parts=[]) -> Tensor"
    op = library.define(
        text.replace("=[]", "").replace("by=1", "by"), structured=meta, dispatch={"CPU": lambda *a: None}
    )
    library.register_fallback("BOX", fallback)
    x, y = Box([1, 2]), Box([3, 4])
    assert op.function(x, y, np.float32(2), [None, x]) is x
    assert calls.pop() == (op, (x, y, 2.0, (None, x)), None)  # bound as the schema says
    for call, error, words in (
        (lambda: op.function(x, Box([1]), 2, []), ValueError, r"^f: \(2,\) and \(1,\)"),
        (lambda: op.function(x, y, "2", []), ArgumentError, "^f: by must be a number"),
        (
            lambda: op.function(x, y, 2, [], out=Box([1])),
            OutError,
            r"^f: the result has shape \(2,\) and out has \(1,\)",
        ),
        (lambda: op.function(x, y, 2, [], out=np.ones(2)), DeviceError, "out on CPU"),
        (lambda: op.in_place(x, Box([1, 2], 1), 2, []), DeviceError, "other on BOX:1"),
    ):
        with pytest.raises(error, match=words):
            call()
    assert calls == []
    boxes.flaw = lambda x: "it is sealed"
    for call in (lambda: op.function(x, y, 2, [], out=x), lambda: op.in_place(x, y, 2, [])):
        with pytest.raises(OutError, match="cannot be written: it is sealed"):
            call()
    assert calls == []


def test_what_a_fallback_makes_is_the_ops_result(boxes, scale, library):
    box, made = Box([1, 2]), None
    library.register_fallback("BOX", lambda op, args, out: made)
    for made, words in (  # noqa: B007, the fallback returns it
        (None, "returned None; the result is"),
        ([1, 2], "returned a list; the result is"),
        (Box([1]), r"returned \(1,\), .* on BOX:0; the result is \(2,\), .* on BOX:0"),
        (Box([1, 2], 1), r"returned \(2,\), .* on BOX:1; the result is .* on BOX:0"),
        (np.ones(2), r"returned \(2,\), float64 on CPU; the result is"),
    ):
        with pytest.raises(ResultError, match=rf"^scale: the fallback {__name__}:.*<lambda> {words}"):
            scale.function(box, 2)
    made = Box([7, 7])
    assert scale.function(box, 2) is made
    out = Box([0, 0])
    assert scale.function(box, 2, out=out) is out  # whatever it returns
    assert scale.in_place(box, 2) is box


def test_a_fallback_of_an_op_without_meta(boxes, library):
    """It gets the arguments, bound; what is written can be written, and comes out."""
    seen = []
    op = library.define("f_(Tensor(a!) self, Scalar n) -> Tensor(a!)", manual_kernel_registration=True)
    library.register_fallback("BOX", lambda op, args, out: seen.append((op, args, out)))
    x = Box([1])
    assert op.function(x, np.array(2)) is x
    assert seen == [(op, (x, 2), None)]
    boxes.flaw = lambda x: "it is sealed"
    with pytest.raises(OutError, match="f_: self cannot be written: it is sealed"):
        op.function(x, 2)
    for alias in ("CompositeExplicit", "CompositeImplicitAutograd", "Autograd"):
        with pytest.raises(RegistrationError, match=f"a fallback is for one device, not for the alias {alias}"):
            library.register_fallback(alias, lambda op, args, out: None)


def test_meta_arrays_run_nothing(scale):
    x = MetaArray((3,), "float32")
    assert scale.function(x, 2) == MetaArray((3,), "float32")
    assert scale.in_place(x, 2) is x
    with pytest.raises(ValueError, match="scale: self must be 1-D"):
        scale.function(MetaArray((), "float32"), 2)
