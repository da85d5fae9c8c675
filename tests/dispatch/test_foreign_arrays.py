"""Arrays that nobody here knows, by DLPack and CUDA's array interface: zero-copy when honest, else one clear error."""

import ctypes
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import nbkernels as nb
from nbkernels.dispatch import ArgumentError, OutError, arrays, foreign, views
from tests.toys import HONEST, Face, same, scale_kernel


class Producer:
    """Speaks DLPack for a NumPy array, as version 1 asks or as before it."""

    legacy = False

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **options):
        if self.legacy and options:
            raise TypeError("no options then")
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


class Legacy(Producer):
    legacy = True


class Namespaced(Producer):
    """Of a library that follows the array API standard: its namespace takes results in."""

    def __array_namespace__(self):
        return SimpleNamespace(from_dlpack=lambda x: Namespaced(np.from_dlpack(x)))


@pytest.fixture
def scale(library):
    text = "scale(Tensor self, Scalar by) -> Tensor"
    return library.define(text, structured=same, dispatch={"CPU": scale_kernel})


@pytest.mark.parametrize("kind", [Producer, Legacy])
def test_a_dlpack_producer_is_an_array(scale, kind):
    base = np.arange(24.0).reshape(4, 6)
    for x in (base, base.T, base[::-1, ::2], base[:, 1], np.array(3.0), base[:0], base.astype(np.int8), base > 3):
        result = scale.function(kind(x), 2)
        assert type(result) is np.ndarray
        assert np.array_equal(result, (x * 2).astype(x.dtype))
    out = kind(np.zeros((4, 6)))
    assert scale.function(base, 2, out=out) is out
    assert np.array_equal(out.x, base * 2)
    assert scale.in_place(out, 2) is out
    assert np.array_equal(out.x, base * 4)


def test_results_are_of_the_namespace():
    x = Namespaced(np.arange(6.0).reshape(2, 3))
    for result, expected in ((nb.add(x, 1), x.x + 1), (nb.mm(x, x.x.T), x.x @ x.x.T), (nb.linear(x, x), x.x @ x.x.T)):
        assert type(result) is Namespaced
        assert np.array_equal(result.x, expected)


def test_the_memory_is_the_producers():
    x = np.arange(6.0)[::2]
    view = arrays.adapter_for(Producer(x)).view(Producer(x))
    assert np.shares_memory(view, x)
    assert view.strides == x.strides
    assert views.overlap(Producer(x), x)
    assert views.transpose(Producer(x[None])).shape == (3, 1)


def test_a_capsule_lives_as_long_as_its_views():
    x = np.arange(1000.0)
    before = sys.getrefcount(x)
    view = arrays.adapter_for(Producer(x)).view(Producer(x))
    assert sys.getrefcount(x) > before
    del view
    assert sys.getrefcount(x) == before


def test_read_only_memory_is_read_and_not_written(scale):
    x = np.arange(3.0)
    x.flags.writeable = False
    assert np.array_equal(scale.function(Producer(x), 2), [0, 2, 4])
    with pytest.raises(OutError, match="self cannot be written: it is read-only"):
        scale.in_place(Producer(x), 2)


Immutable = type("ArrayImpl", (Legacy,), {"__module__": "jaxlib._jax"})  # as JAX's class is known


def test_arrays_of_libraries_without_writes_are_not_written(scale):
    """Their DLPack is older than the flag that would say so."""
    x = np.arange(3.0)
    assert np.array_equal(scale.function(Immutable(x), 2), [0, 2, 4])
    for write in (
        lambda: scale.in_place(Immutable(x), 2),
        lambda: scale.function(np.ones(3), 2, out=Immutable(x)),
        lambda: nb.add_(Immutable(x), 1),
        lambda: nb.mm(np.ones((3, 3)), np.ones((3, 1)), out=Immutable(x[:, None])),
        lambda: nb.fuse(lambda a: a + 1, x, out=Immutable(x)),
        lambda: nb.fuse(lambda a: (a, a), x, out=(np.empty(3), Immutable(x))),
        lambda: nb.add.at(Immutable(x), [0], 1.0),
        lambda: nb.add.reduce(np.ones((2, 3)), out=Immutable(x)),
        lambda: nb.epilogue(lambda v: v)(np.zeros(1), np.ones((3, 1)), np.ones((1, 1)), before=Immutable(x[:, None])),
    ):
        with pytest.raises(OutError, match="cannot be written: arrays of its library are immutable"):
            write()
    assert x.tolist() == [0, 1, 2]


def test_arrays_of_jax():
    jnp = pytest.importorskip("jax.numpy", reason="lacks jax")
    for dtype in (jnp.float32, jnp.bfloat16, jnp.float16, jnp.int8, jnp.bool_):
        x = jnp.ones((2, 2), dtype)
        for call, expected in ((nb.add, x + x), (nb.mm, x @ x), (nb.maximum, x), (nb.equal, x == x)):
            found = call(x, x)
            assert type(found) is type(x)
            assert found.dtype == expected.dtype
            assert found.tolist() == expected.tolist()
        fused = nb.fuse(lambda a: a, x)
        assert type(fused) is type(x)
        assert fused.dtype == x.dtype
        for write in (
            lambda x=x: nb.mm_(x, x),
            lambda x=x: nb.maximum(x, x, out=x),
            lambda x=x: nb.fuse(abs_of, x, out=x),
        ):
            with pytest.raises(OutError, match="immutable"):
                write()
        assert x.tolist() == jnp.ones((2, 2), dtype).tolist()


@pytest.mark.parametrize(
    ("library", "make", "how"),
    [
        ("xarray", lambda xarray: xarray.DataArray(np.ones((2, 2))), r"xarray's, .* xarray\.apply_ufunc\(function"),
        (
            "xarray",
            lambda xarray: xarray.Dataset({"a": ("i", np.ones(2))}),
            r"xarray's, .* xarray\.apply_ufunc\(function",
        ),
    ],
)
def test_arrays_around_arrays(library, make, how):
    """The error says how a function gets inside, which then runs."""
    library = pytest.importorskip(library, reason=f"lacks {library}")
    x = make(library)
    for call in (lambda: nb.add(x, 1), lambda: nb.mm(x, x), lambda: nb.add(np.ones(2), x), lambda: nb.add.reduce(x),
                 lambda: nb.exp(np.ones(2), out=x), lambda: nb.add.at(x, 0, 1), lambda: nb.fuse(abs_of, x),
                 lambda: nb.addmm(x, x, x)):  # fmt: skip
        with pytest.raises(ArgumentError, match=rf"^[a-z_.]+: [a-z0-9]+ is {how}"):
            call()
    found = library.apply_ufunc(nb.exp, x)
    assert abs(float(found["a"][0] if hasattr(found, "data_vars") else found[0, 0]) - np.e) < 1e-12


def test_tracers_of_jax():
    jax = pytest.importorskip("jax", reason="lacks jax")
    x = jax.numpy.ones((2, 2))
    for transform in (jax.jit, jax.vmap, lambda f: jax.grad(lambda x: f(x).sum())):
        for call in (lambda x: nb.add(x, 1), lambda x: nb.mm(x, x), lambda x: nb.add(np.ones(2), x)):
            with pytest.raises(ArgumentError, match=r"is a JAX tracer, .*: use jax\.pure_callback"):
                transform(call)(x)
    called = jax.jit(lambda x: jax.pure_callback(lambda y: np.asarray(nb.mm(y, y)), x, x))
    assert called(x).tolist() == [[2, 2], [2, 2]]


def abs_of(x):
    return x


# -- what lies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(shape=(-2, 3)), r"shape \(-2, 3\).*sizes that are no counts"),
        (dict(shape=(2.0, 3)), "sizes that are no counts"),
        (dict(shape=(True, 3)), "sizes that are no counts"),
        (dict(shape=[2, 3]), "of another type than the protocol's"),
        (dict(shape=None), "of another type than the protocol's"),
        (dict(data=(0, False)), "data pointer is null"),
        (dict(data=(None, False)), "data pointer is null"),
        (dict(data=("x", False)), "data pointer is 'x'"),
        (dict(data=(-8, False)), "lead out of memory"),
        (dict(data=4096), r"no \(pointer, read_only\) as data: 4096"),
        (dict(strides=(8,)), r"strides \(8,\) are not an int for each dimension"),
        (dict(strides=(8, "8")), "are not an int for each dimension"),
        (dict(strides=(-(1 << 40), 8)), "lead out of memory, from address 0x1000"),
        (dict(strides=(1 << 63, 8)), "lead out of memory"),
        (dict(strides=8), "of another type than the protocol's"),
        (dict(typestr="<q9"), "dtype '<q9', which NumPy does not know"),
        (dict(typestr=None), "of another type than the protocol's"),
        (dict(stream=0), "its stream is 0, where None, 1, 2 or"),
        (dict(stream="s"), "its stream is 's'"),
        (dict(mask=1), "masked foreign array"),
    ],
)
def test_interfaces_that_lie(change, words):
    with pytest.raises(ArgumentError, match=f"^add: other is an? .*{words}"):
        nb.add(np.ones((2, 3)), Face(HONEST | change))
    with pytest.raises(ArgumentError, match=words):
        nb.add(np.ones((2, 3)), 1, out=Face(HONEST | change))


def test_interfaces_that_are_none():
    for face in (None, 3, [], {}, dict(shape=(2,))):
        with pytest.raises(ArgumentError, match="whose __cuda_array_interface__ "):
            nb.add(np.ones(2), Face(face))
    x = SimpleNamespace(__cuda_array_interface__=HONEST | dict(data=(0, False)))  # the object has it, its class has not
    with pytest.raises(ArgumentError, match="data pointer is null"):
        nb.add(np.ones(2), x)


def lying(**lies):
    """An array whose capsule says what it likes."""
    sizes, steps = (ctypes.c_int64 * 2)(*lies.pop("shape", (2, 3))), (ctypes.c_int64 * 2)(*lies.pop("steps", (3, 1)))
    room = (ctypes.c_double * 6)()
    fields = dict(
        data=ctypes.addressof(room), device_type=1, ndim=2, code=2, bits=64, lanes=1, shape=sizes, strides=steps
    )
    tensor = foreign.Tensor(**fields | lies)
    memory = ctypes.create_string_buffer(bytes(tensor) + bytes(16))  # then the manager's context, and no deleter
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

    class Liar:
        kept = room, sizes, steps, memory

        def __dlpack__(self):
            return new(ctypes.addressof(memory), b"dltensor", None)

        def __dlpack_device__(self):
            return 1, 0

    return Liar()


@pytest.mark.parametrize(
    ("lies", "words"),
    [
        (dict(shape=(-2, 3)), "sizes that are no counts"),
        (dict(data=None), "data pointer is null"),
        (dict(steps=(1 << 62, 1)), "lead out of memory"),
        (dict(steps=(-(1 << 60), 1)), "lead out of memory"),
        (dict(ndim=-1), "exports -1 dimensions"),
        (dict(ndim=65), "exports 65 dimensions"),
        (dict(shape_=None), "and no sizes"),
        (dict(lanes=4), r"DLPack's dtype \(2, 64, 4\)"),
        (dict(code=3), r"DLPack's dtype \(3, 64, 1\)"),
        (dict(bits=24), "dtype 'float24', which NumPy does not know"),
        (dict(device_type=2), "on CPU that exports memory of DLPack's device type 2"),
    ],
)
def test_capsules_that_lie(lies, words):
    if "shape_" in lies:
        liar = lying()
        ctypes.memset(ctypes.addressof(liar.kept[3]) + foreign.Tensor.shape.offset, 0, 8)
    else:
        liar = lying(**lies)
    with pytest.raises(ArgumentError, match=f"^add: other is an? .*{words}"):
        nb.add(np.ones((2, 3)), liar)


def test_an_honest_capsule_of_the_same_make():
    assert np.array_equal(nb.add(np.ones((2, 3)), lying()), np.ones((2, 3)))


def test_producers_that_fail():
    def producer(capsule, device=lambda self: (1, 0)):
        return type("P", (), {"__dlpack__": capsule, "__dlpack_device__": device})()

    used = np.ones(2).__dlpack__()
    np.from_dlpack(SimpleNamespace(__dlpack__=lambda **_: used, __dlpack_device__=lambda: (1, 0)))

    def fails(self, **options):
        raise BufferError("not today")

    for x, words in (
        (producer(fails), r"__dlpack__ failed: BufferError\('not today'\)"),
        (producer(lambda self, **_: 3), "gives no fresh capsule, but 3"),
        (producer(lambda self, **_: used), "gives no fresh capsule, but <capsule object"),
        (producer(fails, lambda self: (9, 0)), r"DLPack's device \(9, 0\), which is neither"),
        (producer(fails, lambda self: "x"), "__dlpack_device__ failed: ValueError"),
        (producer(fails, fails), "__dlpack_device__ failed: BufferError"),
    ):
        with pytest.raises(ArgumentError, match=f"other is an array .*{words}"):
            nb.add(np.ones(2), x)


def test_arrays_that_change_between_two_looks(scale):
    class Changing(Producer):
        looks = 0

        def __dlpack__(self, **options):
            self.looks += 1
            return np.ones(3 if self.looks == 1 else 10_000).__dlpack__(**options)

    with pytest.raises(ArgumentError, match="at the second look"):
        scale.function(Changing(np.ones(3)), 2)
