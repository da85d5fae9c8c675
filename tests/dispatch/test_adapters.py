"""Every adapter: recognised without importing, zero-copy, the kind that goes in comes out."""

import warnings
from importlib.util import find_spec

import numpy as np
import pytest

from nbkernels.dispatch import Library, MetaArray, arrays, layout, views
from tests.processes import python


class Sub(np.ndarray):
    """A subclass with something to carry along."""

    def __array_finalize__(self, source):
        self.label = getattr(source, "label", None)


class Result:
    def __init__(self, spec):
        self.shape, self.dtype = spec.shape, spec.dtype
        self.strides = None


def negate(out, self):
    out[...] = -self


@pytest.fixture
def op():
    library = Library("tests")
    return library.define("f(Tensor self) -> Tensor", structured=Result, dispatch={"CPU": negate})


def torch():
    if find_spec("torch") is None:
        pytest.skip("needs torch")
    return __import__("torch")


def test_a_type_is_looked_at_once():
    arrays._found.pop(Sub, None)
    adapter = arrays.adapter_of(Sub)
    assert arrays._found[Sub] is adapter
    assert adapter.name == "NumPy"
    assert arrays.adapter_of(list) is None is arrays._found[list]


@pytest.mark.parametrize(
    ("module", "name", "library"),
    [
        ("cupy", "ndarray", "CuPy"),
        ("cupy._core.core", "ndarray", "CuPy"),
        ("torch", "Tensor", "torch"),
        ("numba.cuda.cudadrv.devicearray", "DeviceNDArrayBase", "numba.cuda"),
        ("numba_cuda.numba.cuda.cudadrv.devicearray", "DeviceNDArrayBase", "numba.cuda"),
        ("numpy", "ndarray", "NumPy"),
        ("my_torch", "Tensor", None),
        ("torch", "Storage", None),
    ],
)
def test_classes_are_recognised_by_name_also_through_subclasses(module, name, library):
    base = type(name, (), {"__module__": module})
    for cls in (base, type("Mine", (base,), {"__module__": "mine"})):
        adapter = arrays.adapter_of(cls)
        assert (adapter and adapter.name) == library


def test_numpy_arrays_of_any_layout(op):
    base = np.arange(24.0).reshape(4, 6)
    for x in (base, base.T, base[::-1, ::2], np.broadcast_to(base[0], (3, 6)), base[1, 2], np.array(3.0), base[:0]):
        result = op.function(x)
        assert type(result) is (np.ndarray if x.ndim else np.float64)  # as NumPy's own are
        assert np.array_equal(result, -x)
        out = np.full_like(np.asarray(x), np.nan)
        assert op.function(x, out=out) is out
        assert np.array_equal(out, -x)


def test_subclasses_come_out_as_they_went_in(op):
    x = np.arange(3.0).view(Sub)
    x.label = "metres"
    result = op.function(x)
    assert type(result) is Sub
    assert result.label == "metres"
    assert np.array_equal(result, [0, -1, -2])
    out = np.zeros(3)
    assert op.function(x, out=out) is out


def test_memory_maps_give_plain_arrays(op, tmp_path):
    x = np.memmap(tmp_path / "x", np.float64, "w+", shape=(3,))
    x[:] = 1
    assert type(op.function(x)) is np.ndarray
    assert op.in_place(x) is x
    assert np.array_equal(x, [-1, -1, -1])


def test_numpy_scalars_are_0d_arrays(op):
    result = op.function(np.float32(2))
    assert (result.shape, result.dtype, float(result)) == ((), np.float32, -2)


def test_unaligned_arrays_are_right(op):
    x = np.zeros(25, np.uint8)[1:].view(np.float64)
    x[:] = [1, 2, 3]
    assert np.array_equal(op.function(x), [-1, -2, -3])


def test_views_share_memory():
    x = np.arange(6.0).view(Sub)
    assert np.shares_memory(arrays.adapter_of(Sub).view(x), x)
    t = torch().arange(6.0)
    assert arrays.adapter_of(type(t)).view(t).ctypes.data == t.data_ptr()


def test_torch_tensors(op):
    t = torch()
    base = t.arange(24.0, dtype=t.float64).reshape(4, 6)
    for x in (base, base.T, base[:, ::2], base[0].expand(3, 6), t.tensor(3.0), base[:0], t.nn.Parameter(base, False)):
        result = op.function(x)
        assert type(result) is t.Tensor
        assert result.dtype == x.dtype
        assert t.equal(result, -x)
    x = base.clone()
    assert op.in_place(x) is x
    assert t.equal(x, -base)
    out = t.zeros(6, 4, dtype=t.float64).T
    assert op.function(base, out=out) is out
    assert t.equal(out, -base)


def test_torch_on_its_meta_device(op):
    t = torch()
    x = t.empty(3, 4, device="meta")
    result = op.function(x)
    assert (result.device.type, result.shape, result.dtype) == ("meta", (3, 4), t.float32)


def test_torch_tensors_that_are_more_than_memory(op):
    t = torch()
    x = t.ones(3, requires_grad=True)
    with pytest.raises(TypeError, match=r"self is a torch tensor that requires grad: .*pass x.detach()"):
        op.function(x)
    with t.no_grad():
        assert t.equal(op.function(x), -t.ones(3))
    with pytest.raises(TypeError, match=r"layout torch.sparse_coo"):
        op.function(t.eye(3).to_sparse())
    with pytest.raises(TypeError, match="a lazy negative"):
        op.function(t.view_as_complex(t.ones(2, 2)).conj().imag)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch: complex32 is new
        x = t.zeros(3, dtype=t.complex32)
    with pytest.raises(TypeError, match=r"torch.complex32 has no NumPy dtype"):
        op.function(x)


def test_numpy_and_torch_share_a_device(op):
    t = torch()
    out = t.zeros(3, dtype=t.float64)
    assert op.function(np.ones(3), out=out) is out
    assert t.equal(out, -t.ones(3, dtype=t.float64))


def test_meta_arrays():
    x = MetaArray((2, 3), "float32")
    assert (x.ndim, x.strides, x.dtype) == (2, (12, 4), np.float32)
    assert MetaArray((2, 3), "float32", (4, 8)).strides == (4, 8)
    with pytest.raises(TypeError, match="a meta array of dtype 'flaot32': NumPy knows no such dtype"):
        MetaArray((2, 3), "flaot32")
    assert views.transpose(x) == MetaArray((3, 2), "float32", (4, 12))
    assert x[1] == MetaArray((3,), "float32")


def test_user_adapters_come_first_and_go_again():
    class Mine(arrays.NumPy):
        pass

    mine = arrays.register_adapter(Mine())
    assert arrays.adapter_of(np.ndarray) is mine
    arrays.unregister_adapter(mine)
    assert arrays.adapter_of(np.ndarray).name == "NumPy"


def test_views_of_every_kind():
    x = np.arange(24.0).reshape(2, 3, 4)
    for make in (np.asarray, lambda x: x.view(Sub), lambda x: torch().from_numpy(x)):
        y = make(x)
        assert np.array_equal(np.asarray(views.transpose(y)), x.transpose())
        assert np.array_equal(np.asarray(views.flatten(y)), x.reshape(6, 4))
        assert type(views.transpose(y)) is type(y)
        assert np.array_equal(np.asarray(views.flatten(y[1])), x[1])
        assert type(views.empty(y, (2, 2), np.dtype(np.float32))) is type(y)
    assert views.flatten(x.transpose(1, 0, 2)) is None
    assert views.flatten(x[:, ::-1]) is None
    assert views.spec(3) == 3


def test_an_empty_0d_array_can_be_written():
    x = views.empty(np.zeros(3), (), np.dtype(np.float32))
    assert (type(x), x.shape, x.dtype) == (np.ndarray, (), np.float32)


def test_expanding():
    x = np.arange(3.0)
    for shape in ((3,), (2, 3), (4, 1, 3)):
        assert np.array_equal(views.expand(x, shape), np.broadcast_to(x, shape))
    assert np.array_equal(views.expand(x[:, None], (3, 5)), np.broadcast_to(x[:, None], (3, 5)))
    assert views.expand(np.array(1.0), ()).shape == ()
    assert np.shares_memory(views.expand(x, (2, 3)), x)
    for shape in ((), (4,), (3, 1)):
        with pytest.raises(ValueError, match=r"\(3,\) does not expand to "):
            views.expand(x, shape)


def test_overlap_of_extents():
    x = np.zeros((6, 4))
    t = torch().from_numpy(x)
    for y in (x, x[::-1], x.T, t, t[5:]):
        assert views.overlap(y, x)
        assert views.overlap(x[5:], y)
    for y in (x[:3], x[2::-1], t[:3]):
        assert not views.overlap(y, x[3:])
        assert not views.overlap(x[:0], y)
    assert not views.overlap(MetaArray((2,), "f8"), x)
    assert not views.overlap(t.to("meta"), x)


def test_flattening_is_a_view_exactly_where_numpy_finds_one():
    x = np.zeros((4, 1, 6, 5))
    for y in (x, x[::2], x[:, :, ::2], x[:, :, :3], x[:, :, :, ::2], x[::-1, :, ::-1], x[:0], x.swapaxes(0, 2), x[1:2]):
        expected = y.reshape(y.shape[0] * y.shape[1] * y.shape[2], y.shape[3])  # a copy where no view will do
        strides = layout.flat_strides(y.shape, y.strides)
        if y.size:
            assert strides == (expected.strides if np.shares_memory(expected, y) else None)
        else:
            assert strides is not None


SIMULATOR = """
import numpy as np
from numba import cuda
from nbkernels import dispatch
from nbkernels.dispatch import arrays, views

class Result:
    strides = None
    def __init__(self, self_): self.shape, self.dtype = self_.shape, self_.dtype

def negate(out, self):
    for i in np.ndindex(*self.shape): out.owner[i] = -self.owner[i]

op = dispatch.Library("tests").define("f(Tensor self) -> Tensor", structured=Result, dispatch={"CUDA": negate})
host = np.arange(6.0).reshape(2, 3)
x = cuda.to_device(host)
kind = type(x)
assert arrays.adapter_of(kind).name == "numba.cuda"
result = op.function(x)
assert type(result) is kind and np.array_equal(result.copy_to_host(), -host)
out = cuda.to_device(np.zeros((2, 3)))
assert op.function(x, out=out) is out and np.array_equal(out.copy_to_host(), -host)
assert op.in_place(x) is x and np.array_equal(x.copy_to_host(), -host)
t = views.transpose(x)
assert type(t) is kind and np.array_equal(op.function(t).copy_to_host(), host.T)
t[0, 1] = 7
assert x.copy_to_host()[1, 0] == 7, "a transpose is a view"
assert arrays.adapter_of(kind).upload(np.array(3.0), x).copy_to_host() == 3
try: op.function(x, out=np.zeros((2, 3)))
except dispatch.DeviceError as error: assert "self on CUDA:0, out on CPU" in str(error)
else: raise AssertionError
"""


def test_numba_device_arrays_in_the_simulator():
    python(SIMULATOR, NUMBA_ENABLE_CUDASIM="1")


def test_a_square_matrix_is_transposed():
    """Its shape stays, and its strides do not."""
    x = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(views.transpose(x), x.T)
    np.testing.assert_array_equal(views.restride(x, (3, 3, 1), (8, 24, 0))[..., 0], x.T)
    np.testing.assert_array_equal(views.restride(x, (3, 3), (24, 0)), x[:, :1] + np.zeros(3))
