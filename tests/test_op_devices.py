"""Where a call runs: devices, guards, arrays of a user, missing kernels; with tiny kernels."""

import numpy as np
import pytest

from nbkernels.dispatch import (
    DeviceError,
    MetaArray,
    MissingKernelError,
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
    library.register_fallback("BOX", lambda op, args, out: (op, args, out))
    box = Box([1])
    assert scale.function(box, 2) == (scale, (box, 2), None)


def test_meta_arrays_run_nothing(scale):
    x = MetaArray((3,), "float32")
    assert scale.function(x, 2) == MetaArray((3,), "float32")
    assert scale.in_place(x, 2) is x
    with pytest.raises(ValueError, match="scale: self must be 1-D"):
        scale.function(MetaArray((), "float32"), 2)
