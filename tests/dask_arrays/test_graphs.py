"""Dask arrays: graphs of the right shapes, dtypes and bits, and what cannot be one."""

import asyncio
import itertools
import os
import pickle
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import nbkernels as nb
from nbkernels import ops
from nbkernels.dispatch import ArgumentError, OutError

dask = pytest.importorskip("dask", reason="lacks dask")
da = pytest.importorskip("dask.array", reason="lacks dask.array")
SEGMENT = 4096
KNOWN = tuple(map(int, np.__version__.split(".")[:2])) < (2, 5)  # to use_in_numpy


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


def numbers(*shape, dtype="float32", seed=0):
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape) * 3
    return (x + 1j * random.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def same(lazy, want):
    """Shape, dtype and meta as told beforehand, and the bits."""
    assert isinstance(lazy, da.Array)
    assert lazy.shape == want.shape
    assert lazy.dtype == lazy._meta.dtype == want.dtype
    assert lazy._meta.ndim == want.ndim
    assert type(lazy._meta) is np.ndarray
    got = lazy.compute()
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    assert np.asarray(got).tobytes() == np.ascontiguousarray(want).tobytes()
    for index in itertools.product(*map(range, lazy.numblocks)) if lazy.ndim else ():
        assert lazy.blocks[index].compute().shape == tuple(c[i] for c, i in zip(lazy.chunks, index))


# -- products ---------------------------------------------------------------------------------------------------------

PRODUCTS = {
    "mm": lambda a, b, c: nb.mm(a, b),
    "addmm": lambda a, b, c: nb.addmm(c, a, b),
    "scaled": lambda a, b, c: nb.addmm(c, a, b, beta=3, alpha=2),
    "activation": lambda a, b, c: nb.addmm_activation(c, a, b, alpha=2),
    "matmul": lambda a, b, c: nb.matmul(a, b),
    "row": lambda a, b, c: nb.matmul(a[0], b),
    "column": lambda a, b, c: nb.matmul(a, b[:, 0]),
    "vectors": lambda a, b, c: nb.matmul(a[0], b[:, 0]),
    "stacks": lambda a, b, c: nb.matmul(a[None, None], b[None]),
    "stack and row": lambda a, b, c: nb.matmul(a[0], b[None]),
    "linear": lambda a, b, c: nb.linear(a, b.T, c),
    "linear of a vector": lambda a, b, c: nb.linear(a[0], b.T),
    "bmm": lambda a, b, c: nb.bmm(a[None], b[None]),
    "baddbmm": lambda a, b, c: nb.baddbmm(c, a[None], b[None], beta=2),
    "addbmm": lambda a, b, c: nb.addbmm(c, a[None], b[None]),
    "mv": lambda a, b, c: nb.mv(a, b[:, 0]),
    "addmv": lambda a, b, c: nb.addmv(c[:1], a, b[:, 0]),
    "dot": lambda a, b, c: nb.dot(a[0], b[:, 0]),
    "vdot": lambda a, b, c: nb.vdot(a[0], b[:, 0]),
    "outer": lambda a, b, c: nb.outer(a[:, 0], c),
    "addr": lambda a, b, c: nb.addr(c, a[:, 0], c),
    "nothing read": lambda a, b, c: nb.addmm(c, a, b, alpha=0),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_have_one_calls_bits(name):
    """Chunks of k that begin at multiples of a segment, whatever those of m and n."""
    call, dtype = PRODUCTS[name], "float32"
    a, b, c = (numbers(*shape, dtype=dtype) for shape in ((9, 3 * SEGMENT + 50), (3 * SEGMENT + 50, 7), (7,)))
    want = call(a, b, c)
    for k in (SEGMENT, (2 * SEGMENT, SEGMENT + 50), -1):
        lazy = (da.from_array(a, chunks=(4, k)), da.from_array(b, chunks=(k, 3)), da.from_array(c, chunks=5))
        same(call(*lazy), want)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float16", "complex64", "int8", "bool"])
def test_products_of_other_dtypes(dtype):
    a, b = numbers(5, 2 * SEGMENT + 1, dtype=dtype), numbers(2 * SEGMENT + 1, 6, dtype=dtype)
    x, y = da.from_array(a, chunks=(2, SEGMENT)), da.from_array(b, chunks=(SEGMENT, 4))
    same(nb.mm(x, y), nb.mm(a, b))
    same(nb.matmul(x, y[:, 0]), nb.matmul(a, b[:, 0]))
    if dtype == "float16":
        same(nb.addmm(x[:, :1], x, y, beta=0.3, alpha=0.7), nb.addmm(a[:, :1], a, b, beta=0.3, alpha=0.7))
    if dtype == "int8":
        same(nb.addmm(x[:, :1], x, y, beta=3, alpha=5), nb.addmm(a[:, :1], a, b, beta=3, alpha=5))
        same(nb.mm(x, y, out_dtype="int32"), nb.mm(a, b, out_dtype="int32"))
        same(nb.matmul(x, y.astype("float16")), nb.matmul(a, b.astype("float16")))
    if dtype == "complex64":
        same(nb.mm(x, y, conj="a"), nb.mm(a, b, conj="a"))
        same(nb.vdot(x[0], y[:, 0]), nb.vdot(a[0], b[:, 0]))


def test_chunks_of_k_that_are_no_segments_are_added_in_order():
    a, b = numbers(6, 300, dtype="int64"), numbers(300, 5, dtype="int64")
    same(nb.mm(da.from_array(a, chunks=(4, 70)), da.from_array(b, chunks=(33, 2))), nb.mm(a, b))
    a, b = numbers(6, 300), numbers(300, 5)
    lazy = nb.mm(da.from_array(a, chunks=(4, 100)), da.from_array(b, chunks=(100, 2)))
    parts = [nb.mm(a[:, k : k + 100], b[k : k + 100]) for k in (0, 100, 200)]
    same(lazy, (parts[0] + parts[1]) + parts[2])


def test_empty_products():
    for m, k, n in ((0, 3, 2), (3, 0, 2), (3, 2, 0)):
        a, b = np.ones((m, k)), np.ones((k, n))
        same(nb.mm(da.from_array(a, chunks=2), da.from_array(b, chunks=2)), nb.mm(a, b))


def test_nan_is_not_read():
    a, c = np.full((4, 6), np.nan), np.full(4, np.nan)
    x, z = da.from_array(a, chunks=3), da.from_array(c, chunks=3)
    same(nb.addmm(da.ones(4, chunks=2), x, x.T, alpha=0), np.ones((4, 4)))
    same(nb.addmm(z, da.ones((4, 6), chunks=3), da.ones((6, 4), chunks=2), beta=0), np.full((4, 4), 6.0))


def test_chunks_are_not_written():
    a = numbers(4, 2 * SEGMENT)
    x = da.from_array(a, chunks=(4, SEGMENT)).persist()
    lazy = nb.mm(x, x.T)
    first = lazy.compute()
    assert np.array_equal(first, lazy.compute())
    assert np.array_equal(x.compute(), a)


def test_gradients_go_through_graphs():
    a, b = numbers(4, 6, dtype="float64"), numbers(6, 3, dtype="float64")
    _, back = nb.vjp(nb.mm, da.from_array(a, chunks=(2, 6)), da.from_array(b, chunks=(6, 2)))
    grad = np.ones((4, 3))
    for lazy, want in zip(back(da.from_array(grad, chunks=2)), nb.vjp(nb.mm, a, b)[1](grad)):
        assert np.allclose(lazy.compute(), want)


# -- element-wise, reductions -----------------------------------------------------------------------------------------


def chosen(x):
    return x if x > 0 else -2 * x


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: nb.add(x, y),
        lambda x, y: nb.add(y, x),
        lambda x, y: nb.subtract(x, y, alpha=2),
        lambda x, y: nb.add(x, 1),
        lambda x, y: nb.divide(2, x),
        lambda x, y: nb.add(x, np.float64(3)),
        lambda x, y: nb.multiply(x, np.float32(3)),
        lambda x, y: nb.exp(x),
        lambda x, y: nb.less(x, y),
        lambda x, y: nb.add(x, y, dtype="float64", order="F"),
        lambda x, y: nb.maximum(x[:, :1], y),
        lambda x, y: nb.multiply(x, x.astype("int16")),
        lambda x, y: nb.subtract.outer(y, x[0]),
        lambda x, y: nb.fuse(lambda a, b: a * b + 1, x, y),
        lambda x, y: nb.elementwise(chosen)(x),
        lambda x, y: nb.add(x, np.arange(11, dtype="float32")),
        lambda x, y: nb.add(np.ones((5, 8, 11), "float32"), x),
        lambda x, y: nb.maximum.reduce(x),
        lambda x, y: nb.maximum.reduce(x, (0, 1), keepdims=True),
        lambda x, y: nb.minimum.reduce(x, None),
        lambda x, y: nb.add.reduce(x.astype("int8"), -1, initial=5),
        lambda x, y: nb.multiply.reduce(x.astype("uint8"), None),
        lambda x, y: nb.add.reduce(x, 1, dtype="int64"),
        lambda x, y: nb.logical_and.reduce(x.astype("int32")),
        lambda x, y: nb.add.reduce(x, ()),
        lambda x, y: nb.subtract.reduce(x, 1),
        lambda x, y: nb.add.accumulate(x, 1),
        lambda x, y: nb.sum_to(x.astype("int16"), (1, 11)),
        lambda x, y: nb.sum_to(x.astype("int16"), (11,)),
        lambda x, y: nb.sum_to(x, (8, 11)),
    ],
)
def test_elementwise_and_folds(call):
    a, b = numbers(8, 11), numbers(11, seed=1)
    same(call(da.from_array(a, chunks=(3, 4)), da.from_array(b, chunks=5)), call(a, b))


def test_where_chooses():
    a = numbers(8, 11)
    x = da.from_array(a, chunks=(3, 4))
    got, want = nb.exp(x, where=x > 0).compute(), nb.exp(a)
    assert np.array_equal(got[a > 0], want[a > 0])
    got = nb.elementwise(chosen)(x, where=a > 1).compute()
    assert np.array_equal(got[a > 1], a[a > 1])


def test_real_results_of_complex_chunks(recwarn):
    """dask's own way to such a meta warns of the imaginary part."""
    lazy = nb.abs(da.ones((4, 5), chunks=3, dtype="complex64"))
    assert lazy.dtype == lazy._meta.dtype == np.float32
    assert not recwarn


def test_halves_are_rounded_once(recwarn):
    a = np.full(5000, 0.1, np.float16)
    want = np.float16(np.float32(a[0]) * 5000)
    assert nb.add.reduce(da.from_array(a, chunks=700)).compute() == want == nb.add.reduce(a)
    assert nb.add.reduce(da.full(5000, np.float16(99), chunks=700)).compute() == np.inf
    assert not recwarn


def test_empty_chunks():
    x = da.concatenate([da.zeros((0, 3), chunks=3), da.ones((2, 3), chunks=2)])
    same(nb.maximum.reduce(x), np.ones(3))
    same(nb.add.reduce(da.zeros((0, 3), chunks=3)), np.zeros(3))
    with pytest.raises(ValueError, match="no identity"):
        nb.maximum.reduce(da.zeros((0, 3), chunks=3))


def test_every_elementwise_operation_has_a_graph():
    """Each of the table, of floats or else of integers: shape, dtype and chunks."""
    for name in ops.OPERATIONS:
        op = getattr(nb, name)
        if "elementwise" not in op.op.tags or name.endswith("_"):
            continue
        count = 1 if "unary" in op.op.tags else 2
        for dtype in ("float32", "int32"):
            try:
                want = op(*[nb.meta((2, 3), dtype)] * count)
            except TypeError:
                continue
            lazy = op(*[da.ones((2, 3), chunks=2, dtype=dtype)] * count)
            assert (lazy.shape, lazy.dtype, lazy.chunks) == (want.shape, want.dtype, ((2,), (2, 1))), name
            break
        else:
            pytest.fail(name)


def test_graphs_pickle_and_have_stable_names():
    x = da.ones((8, 6), chunks=3)
    make = [lambda: nb.mm(x, x.T), lambda: nb.add.reduce(x), lambda: nb.add(x, 1, dtype="float32")]
    for each in make:
        assert each().name == each().name
        graph = each().__dask_graph__().to_dict()
        pickle.loads(pickle.dumps(graph))


# -- what cannot be one -----------------------------------------------------------------------------------------------


def refused():
    a = np.ones((4, 4), np.float32)
    x = da.from_array(a, chunks=2)
    unknown, lazy = x[x[:, 0] > 0], "a dask array is a graph, which nobody writes into"
    of_objects = da.from_array(np.array([[1, "a"]] * 2, object), chunks=1)
    masked = da.from_array(np.ma.array(a, mask=a > 0), chunks=2)
    return [
        (
            lambda: nb.mm(unknown, x),
            ArgumentError,
            r"mm: self is a dask array with chunks of unknown size, .*\(nan, 4\)",
        ),
        (lambda: nb.add(a, unknown), ArgumentError, r"add: other is .* call its compute_chunk_sizes\(\) first"),
        (lambda: nb.add.reduce(unknown), ArgumentError, "of unknown size"),
        (lambda: nb.add(dask.delayed(a), 1), ArgumentError, r"add: self is dask's Delayed.*dask.array.from_delayed"),
        (lambda: nb.exp(of_objects), ArgumentError, "exp: self is a dask array of dtype object"),
        (lambda: nb.mm(of_objects, of_objects), ArgumentError, "mm: self is .* Python objects, no numbers"),
        (lambda: nb.add(x, masked), ArgumentError, "add: other is a dask array of masked arrays"),
        (lambda: nb.add_(x, 1), OutError, f"add_: self cannot be written: {lazy}"),
        (lambda: nb.mm(x, x, out=a), OutError, f"mm: out cannot be written: {lazy}"),
        (lambda: nb.mm(a, a, out=x), OutError, "mm: out cannot be written"),
        (lambda: nb.add.at(x, 0, 1), OutError, "add.at: self cannot be written"),
        (lambda: nb.fuse(chosen, x, out=a), OutError, "chosen: out cannot be written"),
        (lambda: nb.fuse(lambda v: (v, v), x), ArgumentError, "returns 2 results.*map_blocks"),
        (lambda: nb.add.reduce(x, where=x > 0), ArgumentError, "add.reduce: where is not there for dask arrays"),
        (lambda: nb.mm(x, a.astype("float64")), TypeError, "mm: self and mat2 must share a dtype"),
        (lambda: nb.mm(x, x[:3]), ValueError, "mm: self and mat2 cannot be multiplied, 4x4 and 3x4"),
        (lambda: nb.addmm(x, x, x, beta=1j), TypeError, "beta=1j is complex"),
        (lambda: nb.explain(nb.mm, x, x), ArgumentError, "explain: self is a dask array"),
        (lambda: nb.add(x, nb.meta((4, 4), "float32")), ValueError, "all arrays must be on one device"),
    ]


@pytest.mark.parametrize("case", range(19))
def test_what_is_refused(case):
    call, kind, words = refused()[case]
    with pytest.raises(kind, match=words):
        call()


def test_products_of_dasks_expressions_are_refused(monkeypatch):
    from nbkernels.dask import products

    monkeypatch.setattr(products, "da", SimpleNamespace(Array=type, core=da.core))
    with pytest.raises(ArgumentError, match=r"mm: dask plans queries.*array\.query-planning to False"):
        nb.mm(da.ones((2, 2)), da.ones((2, 2)))


def test_arrays_of_other_libraries():
    torch = pytest.importorskip("torch", reason="lacks torch")
    with pytest.raises(ArgumentError, match="add: other is an array of torch beside dask arrays of NumPy: convert it"):
        nb.add(da.ones(3), torch.ones(3))


def test_operations_of_ones_own(library):
    """An element-wise one runs; of another nothing is known."""
    from tests.toys import same as shape_of_self
    from tests.toys import scale_kernel

    op = library.define(
        "scale(Tensor self, Scalar by) -> Tensor", structured=shape_of_self, dispatch={"CPU": scale_kernel}
    )
    with pytest.raises(ArgumentError, match=r"scale: it has no form for dask arrays; x\.map_blocks"):
        op.function(da.ones(3), 2)


def test_errors_of_tasks_come_out():
    def broken(block):
        raise RuntimeError("no disk")

    with pytest.raises(RuntimeError, match="no disk"):
        nb.mm(da.ones((4, 4), chunks=2).map_blocks(broken, dtype=float), da.ones((4, 4), chunks=2)).compute()


def test_without_dask():
    """The library alone imports no dask, and the module says what it needs."""
    code = """
import sys, numpy as np, nbkernels
nbkernels.add(np.ones(2), 1)
assert "dask" not in sys.modules
sys.modules["dask"] = None
try:
    import nbkernels.dask
except ImportError as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert run.stdout == "nbkernels.dask needs dask, which is not installed: pip install 'nbkernels[dask]'\n", (
        run.stderr
    )


# -- dask's own products ----------------------------------------------------------------------------------------------


def registered(**keywords):
    import nbkernels.dask

    with warnings.catch_warnings():
        if not KNOWN:
            warnings.simplefilter("ignore", RuntimeWarning)
        return nbkernels.dask.register(**keywords)


def looked_up():
    from dask.array.dispatch import einsum_lookup, tensordot_lookup

    return tensordot_lookup.dispatch(np.ndarray), einsum_lookup.dispatch(np.ndarray)


@pytest.fixture
def tried(monkeypatch):
    """Names of the functions whose calls ran here."""
    from nbkernels.dask import lookups

    names, attempt = [], lookups.attempt

    def seen(function, args, keywords):
        result, why = attempt(function, args, keywords)
        names.append((function.__name__, why))
        return result, why

    monkeypatch.setattr(lookups, "attempt", seen)
    return names


def test_register_has_dasks_products_run_here(tried):
    before, a = looked_up(), numbers(6, 8, dtype="int32")
    x = da.from_array(a, chunks=4)
    with registered():
        assert before != looked_up()
        assert np.array_equal(da.tensordot(x, x, ((0,), (0,))).compute(), np.tensordot(a, a, ((0,), (0,))))
        assert np.array_equal(da.einsum("ij,kj->ik", x, x).compute(), a @ a.T)
        assert np.array_equal((x @ x.T).compute(), a @ a.T)
        assert {("tensordot", ""), ("einsum", "")} == set(tried)
        tried.clear()
        da.tensordot(x.astype("float32"), x.astype("float32")).compute()  # BLAS's
        da.einsum("ij->j", x).compute()
        assert {name for name, why in tried if not why} == set()
    assert looked_up() == before == (np.tensordot, np.einsum)


@pytest.mark.skipif(not KNOWN, reason="lacks a NumPy whose loops are known")
def test_register_takes_the_loops_of_whole_numbers_and_halves():
    """On each processor, whether its width of vectors was measured or not."""
    from nbkernels.in_numpy import use

    with registered():
        taken = {loop.dtypes[0] for loop in use._wanted(use._wishes()) if loop.ufunc is np.matmul}
    assert taken == {"bool", "float16", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}


def test_register_stands_and_nests(tried):
    x = da.from_array(numbers(6, 8), chunks=4)
    standing = registered(floats=True)
    try:
        with registered():
            pass
        da.tensordot(x, x).compute()
        assert ("tensordot", "") in tried
    finally:
        standing.close()
    standing.close()
    assert looked_up() == (np.tensordot, np.einsum)


def test_register_keeps_nothing_for_subclasses(tried):
    """Dask keeps what it found for a subclass that it met."""

    class Mine(np.ndarray):
        pass

    a = np.ones((4, 4), "int32").view(Mine)
    from dask.array.dispatch import tensordot_lookup

    with registered():
        function = tensordot_lookup.dispatch(Mine)
        assert np.array_equal(function(a, a, 1), np.tensordot(a, a, 1))
    assert np.array_equal(tensordot_lookup.dispatch(Mine)(a, a, 1), np.tensordot(a, a, 1))
    assert not tried


def test_an_error_in_a_block_gives_dask_its_own_back():
    with pytest.raises(ZeroDivisionError), registered():
        raise ZeroDivisionError
    assert looked_up() == (np.tensordot, np.einsum)


def test_a_numpy_whose_loops_are_unknown_is_told(monkeypatch):
    import nbkernels.dask
    from nbkernels.in_numpy import table

    def unknown(*args):
        raise table.UnknownNumPy("use_in_numpy: not this NumPy")

    monkeypatch.setattr(table, "check", unknown)
    with pytest.warns(RuntimeWarning, match="`@` of dask arrays stays NumPy's"):
        nbkernels.dask.register().close()


# -- a cluster's workers: examples/dask_cluster.py has a cluster -----------------------------------------------------


def test_plugin():
    pytest.importorskip("distributed", reason="lacks distributed")
    from nbkernels.dask import Plugin
    from nbkernels.in_numpy import use as in_numpy
    from nbkernels.threads import LIMITS

    def state():
        return LIMITS[0], looked_up() != (np.tensordot, np.einsum), len(in_numpy._wishes())

    before, seen = state(), []
    plugin = Plugin(products=KNOWN, use_in_numpy=KNOWN, warm_up=[lambda: seen.append(state())])
    asyncio.run(plugin.setup(None))
    assert seen == [state()] == [(1, KNOWN, 2 * KNOWN)]
    plugin.teardown(None)
    assert state() == before
    with pytest.raises(ZeroDivisionError):  # nothing of it is left
        asyncio.run(Plugin(products=KNOWN, warm_up=[lambda: 1 / 0]).setup(None))
    assert state() == before
    assert pickle.loads(pickle.dumps(Plugin(threads=2))).threads == 2


def test_plugins_that_cannot_be(monkeypatch):
    pytest.importorskip("distributed", reason="lacks distributed")
    from nbkernels.dask import Plugin

    for keywords, words in (({"threads": 0}, "at least 1 thread"), ({"warm_up": [3]}, "warm_up is the name of a set")):
        with pytest.raises((TypeError, ValueError), match=words):
            Plugin(**keywords)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with pytest.raises(ValueError, match=r"threads=2 and the worker's OMP_NUM_THREADS is 1: set .*pre-spawn-environ"):
        asyncio.run(Plugin(threads=2).setup(None))


# -- xarray -----------------------------------------------------------------------------------------------------------


def test_xarray():
    xarray = pytest.importorskip("xarray", reason="lacks xarray")
    a, b = numbers(4, 6), numbers(6, 5)
    left, right = xarray.DataArray(a, dims=("i", "k")), xarray.DataArray(b, dims=("k", "j"))
    cores = dict(input_core_dims=[["i", "k"], ["k", "j"]], output_core_dims=[["i", "j"]])
    found = xarray.apply_ufunc(nb.mm, left, right, **cores)
    assert found.dims == ("i", "j")
    assert np.array_equal(found, nb.mm(a, b))
    # over dask: chunks of the core dimensions are for the operation to put together
    chunked = left.chunk(i=2, k=3), right.chunk(k=2, j=5)
    found = xarray.apply_ufunc(nb.mm, *chunked, **cores, dask="allowed")
    assert found.chunks is not None
    assert np.allclose(found, nb.mm(a, b), rtol=1e-5)
    found = xarray.apply_ufunc(nb.exp, chunked[0], dask="parallelized", output_dtypes=["float32"])
    assert np.array_equal(found, nb.exp(a))
    # arrays of asarray inside: NumPy's functions of them run here
    inside = xarray.DataArray(nb.asarray(a), dims=("i", "k"))
    with nb.watch() as log:
        total = inside + inside
    assert np.array_equal(total, a + a)
    assert "nbkernels" in str(log)
    # by NumPy's functions of our arrays or, where opt_einsum is there, by this library's own
    found = xarray.dot(inside, xarray.DataArray(nb.asarray(b), dims=("k", "j")))
    assert type(found.data) is type(inside.data)
    assert np.array_equal(found, nb.mm(a, b))
