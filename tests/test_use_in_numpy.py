"""use_in_numpy against NumPy itself: values, flags, layouts, and what is given back."""

import os
import signal
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbkernels
from nbkernels import use_in_numpy
from nbkernels.in_numpy import slots, table, use
from nbkernels.in_numpy.which import ALIKE, chosen, every, possible, wish

HALVES = ("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "less", "equal", "logical_and",
          "copysign")  # fmt: skip
LOOPS = [(name, "float16") for name in HALVES] + [("floor_divide", "int32"), ("remainder", "int8"), ("fmod", "float64")]


@pytest.fixture(autouse=True)
def nothing_left():
    """Every test begins and ends with NumPy as it is."""
    yield
    use_in_numpy(False)
    assert not use._taken
    assert not use._wishes
    assert not use._paused


def forced(name, dtype):
    return use_in_numpy(names=[name], dtypes=[dtype])


def slot_of(name, dtype):
    letter = np.dtype(dtype).char
    return next(s for key, s in slots._slots.items() if key[0] == name and key[1].startswith(letter))


def calls(name, dtype):
    """Calls that ran here."""
    return int(slot_of(name, dtype).counts()[0, 0])


def pointers():
    """The addresses of some of NumPy's loops now."""
    found = []
    for name, types in (("add", "ee->e"), ("matmul", "ii->i"), ("floor_divide", "ll->l")):
        ufunc = getattr(np, name)
        old = table.replace(ufunc, types, 1)
        table.replace(ufunc, types, old)
        found.append(old)
    return found


def special(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([0, 1, 2, 3, 7, -1, -2, -7, info.max, info.min, info.max - 1, info.min + 1]).astype(dtype)
    info = np.finfo(dtype)
    ends = [info.max, info.tiny, info.smallest_subnormal, info.eps]
    found = [0.0, 1, 2, 0.5, 3, 10, 7.25, np.inf, 1e4, 1e-3, 1 / 3, *ends]
    return np.array([*found, *(-x for x in found), np.nan], dtype)


def observed(call):
    """A call's result, and the kinds of floating-point faults that NumPy found after it."""
    met = []
    with np.errstate(all="call", call=lambda kind, flags: met.append(kind)):
        return call(), sorted(met)


def same(got, want):
    """Bit for bit, but for what NaN is."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    assert np.array_equal(got, want, equal_nan=got.dtype.kind in "fc")
    if got.dtype.kind == "f":
        number = ~np.isnan(want)
        assert np.array_equal(np.signbit(got)[number], np.signbit(want)[number])


@pytest.mark.parametrize(("name", "dtype"), LOOPS)
def test_every_pair_of_hostile_elements_has_numpys_bits_and_flags(name, dtype):
    ufunc, x = getattr(np, name), special(dtype)
    pairs = [(np.full(5, a), np.full(5, b)) for a in x for b in x]
    whole = np.repeat(x, len(x)), np.tile(x, len(x))
    want = [observed(lambda a=a, b=b: ufunc(a, b)) for a, b in [*pairs, whole]]
    with forced(name, dtype):
        got = [observed(lambda a=a, b=b: ufunc(a, b)) for a, b in [*pairs, whole]]
        assert calls(name, dtype) >= len(got)
    for (mine, flags), (theirs, expected) in zip(got, want):
        same(mine, theirs)
        assert flags == expected


@pytest.mark.parametrize("name", ["exp", "sqrt", "cos", "reciprocal", "rint", "isfinite", "logical_not"])
def test_every_half_has_numpys_bits_and_flags(name):
    assert name in ALIKE
    ufunc, halves = getattr(np, name), np.arange(1 << 16, dtype="u2").view("f2")
    groups = [
        *halves.reshape(-1, 16),
        halves[0xFC00:0xFC01],
        halves[[0xFC00, 0xE000, 0xFC00]],
        *halves[::997, None],
        halves[:0],
        halves[::-3],
    ]
    want = [observed(lambda x=x: ufunc(x)) for x in groups]
    with forced(name, "float16"):
        got = [observed(lambda x=x: ufunc(x)) for x in groups]
        over = halves[15:2000].copy()  # in place, piece by piece
        if name not in ("isfinite", "logical_not"):
            with np.errstate(all="ignore"):
                same(ufunc(over, out=over), want_of(ufunc, halves[15:2000]))
        assert calls(name, "float16") >= len(groups) - 1
    for (mine, flags), (theirs, expected) in zip(got, want):
        same(mine, theirs)
        assert flags == expected


def want_of(ufunc, x):
    with use_in_numpy(False), np.errstate(all="ignore"):
        return ufunc(x)


def layouts(x):
    """Views of x's 600 elements, as NumPy may hand them to a loop."""
    y = x[::-1].copy()
    grid, other = x.reshape(20, 30), y.reshape(20, 30)
    odd = np.zeros(600, [("pad", "i1"), ("x", x.dtype)])
    odd["x"] = y
    yield from ((x, y), (x[::2], y[::2]), (x[::-1], y), (x, y[:1]), (x[:1], y), (grid.T, other.T), (grid, other[0]))
    yield from ((grid[:, :1], other), (grid[::2, ::3], other[1::2, 1::3]), (x, odd["x"]), (x[:0], y[:0]), (x[3], y[5]))


@pytest.mark.parametrize(("name", "dtype"), [("add", "float16"), ("less", "float16"), ("floor_divide", "int32")])
def test_layouts_outputs_and_overlaps(name, dtype):
    ufunc = getattr(np, name)
    x = np.random.default_rng(1).integers(-50, 50, 600).astype(dtype)
    x[x == 0] = 3

    def all_of_it():
        for a, b in layouts(x):
            yield ufunc(a, b)
            yield ufunc(a, b, where=np.asarray(a) > 0, out=np.zeros(np.broadcast(a, b).shape, ufunc(a, b).dtype))
        if name != "less":
            for first, second, out in ((slice(1, None), slice(-1), slice(1, None)),
                                       (slice(-1), slice(1, None), slice(1, None)),
                                       (slice(1, None), slice(-1), slice(-1)), (slice(None), slice(None), slice(None)),
                                       (slice(None, None, 2), slice(1, None, 2), slice(None, None, 2)),
                                       (slice(None), slice(None, None, -1), slice(None))):  # fmt: skip
                z = x.copy()
                yield ufunc(z[first], z[second], out=z[out])
                yield z
            yield ufunc.reduce(x[:9])
            yield ufunc.reduce(x.reshape(20, 30), axis=0)
            yield ufunc.accumulate(x[:50])
            yield ufunc.reduceat(x, [0, 7, 7, 500])
            z = x.copy()
            z[::-1] = ufunc(z, z)
            yield z
        yield ufunc.outer(x[:7], x[:5])

    with np.errstate(all="ignore"):
        want = list(all_of_it())
        with forced(name, dtype):
            got = list(all_of_it())
    for mine, theirs in zip(got, want, strict=True):
        same(mine, theirs)


def test_a_flag_of_one_chunk_is_not_lost_in_the_next():
    x = np.ones(200_000, "i4")
    y = x.astype("i8")  # cast in chunks, one call of the loop each
    y[5] = 0
    with forced("floor_divide", "int64"), np.errstate(divide="raise"):
        with pytest.raises(FloatingPointError, match="divide by zero"):
            np.floor_divide(x, y)
        assert np.floor_divide(x, np.ones_like(y)).sum() == len(x)


# -- products ----------------------------------------------------------------------------------------------------------

SIZE = st.sampled_from([0, 1, 2, 3, 5, 8, 13, 17, 33, 70])


@st.composite
def operands(draw):
    dtype = draw(st.sampled_from(["int8", "int64", "float16", "uint16"]))
    m, k, n = draw(SIZE), draw(SIZE), draw(SIZE)
    batch = draw(st.sampled_from([(), (1,), (3,), (2, 3), (40,), (0,)]))
    rng = np.random.default_rng(draw(st.integers(0, 9)))

    def matrix(rows, columns, stacked):
        lead = batch if stacked else ()
        form = draw(st.sampled_from(["rows", "columns", "apart", "back", "gaps"]))
        shape = (*lead, rows, columns)
        x = rng.integers(-4, 5, (*lead, 2 * rows, 2 * columns)).astype(dtype)
        x = {"rows": x[..., :rows, :columns].copy(), "columns": x.swapaxes(-1, -2).copy().swapaxes(-1, -2),
             "apart": x[..., ::2, ::2], "back": x[..., ::-1, ::-1], "gaps": x[..., 1:, :]}[form]  # fmt: skip
        return x[..., :rows, :columns].reshape(shape) if x.size == 0 else x[..., :rows, :columns]

    return matrix(m, k, draw(st.booleans())), matrix(k, n, draw(st.booleans()))


@settings(max_examples=150, deadline=None)
@given(operands())
def test_matmul_of_any_layout_is_numpys(pair):
    a, b = pair
    with use_in_numpy(False):
        want = np.matmul(a, b)
    with forced("matmul", a.dtype):
        same(np.matmul(a, b), want)
        out = np.full((*want.shape, 2), 7, a.dtype)[..., 0].swapaxes(-1, -2).copy().swapaxes(-1, -2)
        same(np.matmul(a, b, out=out), want)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "complex64"])
def test_the_other_products(dtype):
    rng = np.random.default_rng(3)
    a, v, w = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((7, 30, 40), (7, 40), (7, 30)))
    if dtype.startswith("complex"):
        a, v, w = (x + 1j * rng.integers(-3, 4, x.shape).astype("f4") for x in (a, v, w))
    calls_of = {"vecdot": (v, v[::-1]), "matvec": (a, v), "vecmat": (w, a), "matmul": (a[0, :, 0:5].T, a[1])}
    for name, pair in calls_of.items():
        want = getattr(np, name)(*pair)
        with forced(name, dtype):
            same(getattr(np, name)(*pair), want)
            same(getattr(np, name)(*(x[..., ::-1] for x in pair)) if name == "vecdot" else want, want)
            assert calls(name, dtype) > 0


def test_large_products_threads_and_long_chains():
    rng = np.random.default_rng(5)
    for shape in ((150, 150, 150), (3, 9000, 2), (1, 9000, 1), (260, 5000, 3)):
        a, b = (rng.integers(-9, 10, s).astype("i4") for s in (shape[:2], shape[1:]))
        with forced("matmul", "int32"):
            same(a @ b, (a.astype("f8") @ b.astype("f8")).astype("i4"))


def test_flags_of_products_of_halves():
    big, inf, one = np.full((3, 3), 300, "f2"), np.full((1, 1), np.inf, "f2"), np.ones((1, 5), "f2")
    huge = np.full((130, 130), 300, "f2")  # more than one thread
    for a, b in ((big, big), (inf, one), (huge, huge), (inf, 0 * one), (big * 0 + np.nan, big)):
        want = observed(lambda a=a, b=b: np.matmul(a, b))
        with forced("matmul", "float16"):
            got = observed(lambda a=a, b=b: np.matmul(a, b))
        same(got[0], want[0])
        assert got[1] == want[1]
    with forced("matmul", "float16"), np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        big @ big


# -- what is replaced, and given back ----------------------------------------------------------------------------------


def test_the_old_loops_come_back():
    before = pointers()
    with use_in_numpy():
        assert pointers() != before
    assert pointers() == before
    with pytest.raises(ZeroDivisionError), use_in_numpy():
        1 / 0  # noqa: B018
    assert pointers() == before
    use_in_numpy(True)
    use_in_numpy()
    assert pointers() != before
    use_in_numpy(False)
    assert pointers() == before


def test_nested_crossing_and_paused():
    before = pointers()
    first, second = use_in_numpy(names="add"), use_in_numpy(names="matmul")
    first.__enter__(), second.__enter__()
    first.__exit__(None, None, None)
    half = pointers()
    assert half[0] == before[0]
    assert half[1] != before[1]
    with use_in_numpy(False):
        assert pointers() == before
        with use_in_numpy():
            assert pointers() == before
    assert pointers() == half
    second.__exit__(None, None, None)
    assert pointers() == before
    use_in_numpy(True)
    with use_in_numpy(False):
        assert pointers() == before
    assert pointers() != before
    use_in_numpy(False)
    again = use_in_numpy(names="add")
    for _ in range(2):
        with again, again:
            assert pointers()[0] != before[0]
    assert pointers() == before


def test_somebody_elses_loop_is_left_alone():
    x = np.linspace(-3, 3, 50).astype("f2")
    want = np.heaviside(x, x)
    with forced("heaviside", "float16"):
        slot = slot_of("heaviside", "float16")
    theirs = slots.trampolines([slot.address])[0]  # one that calls what it has replaced
    with forced("heaviside", "float16"):
        assert table.replace(np.heaviside, "ee->e", theirs) == slot.trampoline
    with forced("heaviside", "float16"):
        assert not slot.replaced
        same(np.heaviside(x, x), want)
    assert table.replace(np.heaviside, "ee->e", slot.original) == theirs
    with forced("heaviside", "float16"):
        assert slot.replaced
        same(np.heaviside(x, x), want)
    assert table.replace(np.heaviside, "ee->e", slot.original) == slot.original


def test_loops_in_use_while_they_are_swapped():
    rng = np.random.default_rng(0)
    a, h = rng.integers(-9, 9, (60, 60)).astype("i4"), rng.random(5000).astype("f2")
    want, sums, wrong, stop = a @ a, h + h, [], threading.Event()

    def work():
        while not stop.is_set():
            if not (np.array_equal(a @ a, want) and np.array_equal(h + h, sums)):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(60):
        with use_in_numpy():
            assert np.array_equal(a @ a, want)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is Unix's")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_goes_on():
    a = np.ones((200, 200), "i4")
    with use_in_numpy():
        a @ a
        child = os.fork()
        if not child:
            os._exit(0 if (a @ a == 200).all() else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert (a @ a == 200).all()


def test_the_first_call_may_come_from_many_threads(monkeypatch):
    a, made = np.ones((40, 40), "u4"), []
    with forced("matmul", "uint32"):
        slot = slot_of("matmul", "uint32")
        slot.words[slots.inner.KERNEL] = 0
        slot.words[slots.inner.MAKER] = slots.maker()
        compile_ = slots.Slot.compile
        monkeypatch.setattr(slots.Slot, "compile", lambda self: (made.append(self), compile_(self)))
        found = []
        threads = [threading.Thread(target=lambda: found.append((a @ a == 40).all())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [True] * 8
    assert made == [slot]


def test_ctrl_c_while_a_kernel_is_made_reaches_the_program(monkeypatch):
    a = np.full((9, 9), 2, "u2")
    with forced("matmul", "uint16"):
        slot = slot_of("matmul", "uint16")
        slot.words[slots.inner.KERNEL], slot.words[slots.inner.MAKER] = 0, slots.maker()

        compile_, times = slots.Slot.compile, []

        def interrupted(self):
            times.append(self)
            if len(times) == 1:
                raise KeyboardInterrupt
            compile_(self)

        monkeypatch.setattr(slots.Slot, "compile", interrupted)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                [a @ a for _ in range(1_000_000)]
        finally:
            signal.signal(signal.SIGINT, before)
        monkeypatch.undo()
        assert (a @ a == 36).all()
        assert slot.words[slots.inner.KERNEL] != 0


def test_what_cannot_be_compiled_stays_numpys(monkeypatch):
    a = np.full((9, 9), 2, "u2")
    with forced("matmul", "uint16"):
        slot = slot_of("matmul", "uint16")
        slot.words[slots.inner.KERNEL] = 0
        slot.words[slots.inner.MAKER] = slots.maker()
        monkeypatch.setattr(slots.Slot, "compile", lambda self: 1 / 0)
        with pytest.warns(RuntimeWarning, match="matmul of uint16 stays NumPy's: ZeroDivisionError"):
            assert (a @ a == 36).all()
        assert (a @ a == 36).all()
    monkeypatch.undo()
    slot.failure = ""
    slot.compile()


def test_dtypes_that_are_numpys_own():
    with use_in_numpy(floats=True):
        objects = np.array([[1, 2], [3, 4]], object)
        assert (objects @ objects).tolist() == [[7, 10], [15, 22]]
        masked = np.ma.array(np.arange(4, dtype="f2"), mask=[0, 1, 0, 0])
        assert (masked + masked).tolist() == [0, None, 4, 6]
        long = np.ones((3, 3), np.longdouble)
        assert (long @ long == 3).all()
        assert (long / 2 + long).dtype == np.longdouble
        assert (np.array(["a"]) + np.array(["b"]))[0] == "ab"
        fixed = np.arange(6, dtype="f2")
        fixed.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            np.add(fixed, fixed, out=fixed)
        with pytest.raises(ValueError, match="mismatch"):
            np.ones((2, 3), "i4") @ np.ones((2, 3), "i4")
        swapped = np.arange(9, dtype=">i4").reshape(3, 3)
        assert np.array_equal(swapped @ swapped, swapped.astype("i4") @ swapped.astype("i4"))


def test_arguments():
    with pytest.raises(TypeError, match="True or False is wanted, not 3"):
        use_in_numpy(3)
    with pytest.raises(ValueError, match=r"names=\['frobnicate'\]: there are .*matmul"):
        use_in_numpy(names=["frobnicate"])
    with pytest.raises(ValueError, match="dtypes='object': there are bool, int8"):
        use_in_numpy(dtypes="object")
    with pytest.raises(TypeError, match="is no list of names"):
        use_in_numpy(names=3)
    assert wish(names="pow").names == ("power",)


@pytest.mark.parametrize("version", ["1.26.4", "2.99.0", "3.0.0"])
def test_a_numpy_that_is_not_known_is_refused_in_one_line(monkeypatch, version):
    table.check.cache_clear()
    before = pointers()
    monkeypatch.setattr(np, "__version__", version)
    with pytest.raises(RuntimeError, match=f"NumPy {version} is not one of") as told:
        use_in_numpy()
    assert "\n" not in str(told.value)
    assert pointers() == before
    monkeypatch.undo()
    table.check.cache_clear()


def test_the_choice():
    default, floats = chosen(wish()), chosen(wish(floats=True))
    names = {(loop.ufunc.__name__, loop.dtypes[0]) for loop in default}
    assert {("matmul", "int32"), ("matmul", "float16"), ("add", "float16")} <= names
    assert not {dtype for _, dtype in names} & {"float32", "float64", "complex64", "float128"}
    assert set(default) < set(floats)
    assert all(not possible(loop) for loop in floats)
    assert "no kernel for float128" in {possible(loop) for loop in every()}


def test_watch_tells_what_ran_where_and_why():
    a = np.ones((50, 50), "i4")
    with nbkernels.watch() as log, use_in_numpy():
        for _ in range(3):
            a @ a
        a.astype("f4") @ a.astype("f4")
        a[:2, :2] @ a[:2, :2]
    found = {(call.name, call.where, call.why): call for call in log}
    assert found["matmul int32", "nbkernels", ""].calls == 3
    assert found["matmul int32", "nbkernels", ""].work == 3 * 50**3
    assert found["matmul float32", "NumPy", "floats are not asked for"].work == 50**3
    assert found["matmul int32", "NumPy", "small"].calls == 1
    with nbkernels.watch() as log:
        a @ a
    assert not log


def test_functions_are_patched_where_asked_and_given_back():
    a = np.arange(4900, dtype="i8").reshape(70, 70)
    own = np.dot, np.einsum, np.linalg.multi_dot
    with nbkernels.watch() as log, use_in_numpy(functions=True):
        assert np.dot is not own[0]
        assert np.dot.__name__ == "dot"
        for got, want in ((np.dot(a, a), own[0](a, a)), (np.einsum("ij,kj->ik", a, a), own[1]("ij,kj->ik", a, a)),
                          (np.linalg.multi_dot([a, a, a]), own[2]([a, a, a])), (np.inner(a, a), a @ a.T),
                          (np.tensordot(a, a), np.sum(a * a)), (np.dot(2, 3), 6)):  # fmt: skip
            assert np.array_equal(got, want)
        with pytest.raises(ValueError, match="not aligned"):
            np.dot(a, np.ones(3, "i8"))
        np.dot(a / 2, a / 2)
    assert (np.dot, np.einsum, np.linalg.multi_dot) == own
    found = {(call.name, call.where): call for call in log}
    assert found["dot int64", "nbkernels"].calls >= 1
    assert found["dot float64", "NumPy"].why == "BLAS is as fast: asked for by dtypes="
    with nbkernels.watch() as log, use_in_numpy(functions=True, dtypes="float64"):
        assert np.allclose(np.dot(a / 2, a / 2), own[0](a / 2, a / 2))
    assert any((call.name, call.where) == ("dot float64", "nbkernels") for call in log)


def test_no_warning_where_numpy_has_none():
    x = np.linspace(-3, 3, 1001).astype("f2")
    with warnings.catch_warnings(), use_in_numpy(floats=True):
        warnings.simplefilter("error")
        for name in ("add", "multiply", "less", "divide", "copysign", "maximum", "floor_divide", "fmod"):
            for size in (1, 3, 100, 1001):
                getattr(np, name)(x[:size], x[:size] + np.float16(7))
