"""use_in_numpy: what it replaces and gives back, in which threads, and what it tells."""

import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest

import nbkernels
from nbkernels import use_in_numpy
from nbkernels.in_numpy import inner_loops, table, use
from nbkernels.in_numpy.which import chosen, every, possible, wish
from tests.numpy_api.numpy_loops import calls, forced, nothing_left, observed, pointers, same, slot_of, special  # noqa: F401

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


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs signal.setitimer, which this system lacks")
@pytest.mark.parametrize("kept", [False, True])
def test_a_block_that_a_signal_breaks_off_gives_the_loops_back(kept):
    """As Ctrl-C does, anywhere; `kept`: where the traceback is, as an interactive Python does. Python looks for signals
    between the call of use_in_numpy and the block, too: what was asked for holds then until it is turned off."""
    rng, before, x, still, errors = np.random.default_rng(0), pointers(), np.ones((8, 8), np.int32), 0, []

    def block():
        with use_in_numpy():
            return x @ x

    def late(*_):
        raise KeyboardInterrupt

    def seconds():
        start = time.perf_counter()
        block()
        return time.perf_counter() - start

    block()
    handler, most = signal.signal(signal.SIGALRM, late), 1.3 * min(seconds() for _ in range(5))
    try:
        for delay in rng.uniform(1e-6, most, 150):
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                block()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt as error:
                errors.append(error if kept else None)
            still += pointers() != before
            use_in_numpy(False)
            assert pointers() == before
            assert not use._wishes()
            assert signal.getsignal(signal.SIGALRM) is late
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert len(errors) > 10
    assert still < len(errors) / 5  # not one in three


def test_turned_off_within_a_block():
    before = pointers()
    with use_in_numpy():
        on = pointers()
        with use_in_numpy(False):
            assert pointers() == before
        assert pointers() == on
        use_in_numpy(False)
        assert pointers() == before
    with use_in_numpy():
        assert pointers() == on
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
    theirs = inner_loops.trampolines([slot.address])[0]  # one that calls what it has replaced
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
@pytest.mark.filterwarnings("ignore:.*fork")  # Python's of threads, and JAX's where another test has imported it
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
        slot.words[inner_loops.SLOT["kernel"]] = 0
        slot.words[inner_loops.SLOT["maker"]] = inner_loops.maker()
        compile_ = inner_loops.Slot.compile
        monkeypatch.setattr(inner_loops.Slot, "compile", lambda self: (made.append(self), compile_(self)))
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
        slot.words[inner_loops.SLOT["kernel"]], slot.words[inner_loops.SLOT["maker"]] = 0, inner_loops.maker()

        compile_, times = inner_loops.Slot.compile, []

        def interrupted(self):
            times.append(self)
            if len(times) == 1:
                raise KeyboardInterrupt
            compile_(self)

        monkeypatch.setattr(inner_loops.Slot, "compile", interrupted)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                [a @ a for _ in range(1_000_000)]
        finally:
            signal.signal(signal.SIGINT, before)
        monkeypatch.undo()
        assert (a @ a == 36).all()
        assert slot.words[inner_loops.SLOT["kernel"]] != 0


def test_what_cannot_be_compiled_stays_numpys(monkeypatch):
    a = np.full((9, 9), 2, "u2")
    with forced("matmul", "uint16"):
        slot = slot_of("matmul", "uint16")
        slot.words[inner_loops.SLOT["kernel"]] = 0
        slot.words[inner_loops.SLOT["maker"]] = inner_loops.maker()
        monkeypatch.setattr(inner_loops.Slot, "compile", lambda self: 1 / 0)
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
