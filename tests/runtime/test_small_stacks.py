"""Threads with small stacks: what calls need, measured; what is too large for one has room elsewhere."""

import ctypes
import sys
import threading

import numba
import numpy as np
import pytest

import nbkernels as nb
import nbkernels.jitted
from nbkernels import shield
from nbkernels.jit.abi import workspaces
from nbkernels.jit.abi.address import pointer, scratch
from nbkernels.jit.compile.cache import entry
from tests.processes import python

SMALL = 128 << 10  # bytes of stack: what musl gives every thread
NEED = 96 << 10  # of it that a call may take, with what Python and the system take themselves
START = 24 << 10  # bytes that the measurement takes itself, and so sees of every call


def ones(*shape, dtype="float32"):
    return np.ones(shape, dtype)


def products(dtype):
    """Every path of a product (sets.py names them), also where rows or columns are not contiguous."""
    for m, k, n in ((4, 4, 4), (100, 100, 100), (200, 200, 200), (600, 600, 600), (256, 8, 256), (600, 8, 600),
                    (8, 2000, 8), (32, 20_000, 32), (3000, 256, 16), (16, 512, 2048), (300, 1, 300)):  # fmt: skip
        a, b = ones(m, k, dtype=dtype), ones(k, n, dtype=dtype)
        yield f"mm {m}x{k}x{n}", lambda a=a, b=b: nb.mm(a, b)
    square = ones(200, 200, dtype=dtype)
    yield "mm of every other", lambda: nb.mm(square[::2, ::2], square.T[::2, ::2])
    yield "addmm", lambda: nb.addmm(square[0], square, square.T, beta=2, alpha=3)
    yield "linear", lambda: nb.linear(square, square)
    for count, n in ((3, 4), (3, 100), (300, 24)):
        stack = ones(count, n, n, dtype=dtype)
        yield f"bmm {n}", lambda stack=stack: nb.bmm(stack, stack)


def vectors(dtype):
    for n in (300, 1000):
        a, v = ones(n, 2 * n, dtype=dtype), ones(2 * n, dtype=dtype)
        for what, x, y in (("", a, v), (" of columns", a.T, v[:n]), (" of every other", a[:, ::2], v[::2])):
            yield f"mv {n}{what}", lambda x=x, y=y: nb.mv(x, y)
            yield f"mm {n}{what}", lambda x=x, y=y: nb.mm(x, y[:, None])
            yield f"mm row {n}{what}", lambda x=x, y=y: nb.mm(y[None, :], x.T)
        yield f"dot {n}", lambda a=a: nb.dot(a.ravel(), a.ravel())
        yield f"dot {n} of every other", lambda v=v: nb.dot(v[::2], v[::2])


def elements(dtype):
    x, large = ones(64, 64, dtype=dtype), ones(1000, 1000, dtype=dtype)
    yield "add", lambda: nb.add(large, large[0])
    yield "add of rows and columns", lambda: nb.add(x, x.T)
    yield "add of large rows and columns", lambda: nb.add(large, large.T)
    yield (
        "add of two dtypes",
        lambda: nb.add(
            x, x.T.real.astype("int16"), out=np.empty((64, 64), np.result_type(dtype, float)), where=x.T.real > 0
        ),
    )
    yield "add to what it reads", lambda: nb.add(x[:-1], x[1:], out=x[1:])
    yield "add of short rows", lambda: nb.add(large.reshape(-1, 4)[:, :3].copy(), large.reshape(-1, 4)[:, :3])
    yield "pow", lambda: nb.pow(x, x.T)
    yield "reduce", lambda: nb.multiply.reduce(x.T, axis=0)
    yield "accumulate", lambda: nb.add.accumulate(large, axis=0)
    yield "at", lambda: nb.add.at(x[0], np.array([1, 2, 1]), x[0, :3])
    for shape in ((), (1000,), (1000, 1)):
        yield f"sum_to {shape}", lambda shape=shape: nb.sum_to(large, shape)


def fused():
    x = ones(64, 64)
    yield "fuse", lambda: nb.fuse(many, x, x.T, x.T.astype("f8"), x[::-1], x.T[::-1], x.astype("i2"))


def many(a, b, c, d, e, f):
    return a * b + c + d + e + f


@numba.njit
def jitted(a, b, v):
    return nb.add(nb.mm(a, b), b.T), nb.mv(a, v)


def inside():
    x = ones(100, 100)
    yield "in jitted code", lambda: jitted(x, x, x[0])


FAMILIES = {
    f"{family.__name__} {dtype}": (family, dtype)
    for family in (products, vectors, elements)
    for dtype in ("float32", "complex128", "int8")
} | {"fused": (fused,), "jitted": (inside,)}


def in_thread(function, stack):
    """function() in a thread with that much stack; what it returns."""
    found, before = [], threading.stack_size(stack)
    try:
        thread = threading.Thread(target=lambda: found.append(function()))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    return found[0]


def need(call):
    """Bytes of stack that a call reaches down to, of a thread's: those below are painted, and looked at afterwards."""
    system = ctypes.CDLL(None)
    system.pthread_self.restype = ctypes.c_void_p

    def measure():
        attributes, low, size = ctypes.create_string_buffer(256), ctypes.c_void_p(), ctypes.c_size_t()
        assert system.pthread_getattr_np(ctypes.c_void_p(system.pthread_self()), attributes) == 0
        assert system.pthread_attr_getstack(attributes, ctypes.byref(low), ctypes.byref(size)) == 0
        system.pthread_attr_destroy(attributes)
        ctypes.memset(low.value, 0xA5, size.value - START)
        call()
        seen = ctypes.string_at(low.value, size.value)
        return len(seen.lstrip(b"\xa5"))

    return in_thread(measure, 1 << 20)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: a thread is asked where its stack lies")
@pytest.mark.parametrize("family", FAMILIES)
def test_no_call_needs_more(family):
    family, *dtype = FAMILIES[family]
    needs = {}
    for what, call in family(*dtype):
        call()  # compiled
        call()  # remembered
        needs[what] = need(call)
    assert {what: n for what, n in needs.items() if n > NEED} == {}


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: a thread is asked where its stack lies")
def test_the_measurement_sees_what_is_taken():
    def take(first, last):
        words = pointer(scratch(NEED))
        words[first] = 1
        return words[last]

    run = entry(take, "int64(int64, int64)", "test_take_stack")
    assert need(lambda: None) <= START
    assert need(lambda: run(0, 1)) > NEED


# Everything from nothing, in a thread of a new process: imports, compilations (or what is on disk), the paths with the
# largest buffers.
FIRST = """
import sys, threading
import numpy as np
import nbkernels as nb
def work():
    x, v = np.arange(90_000.0).reshape(300, 300) % 7, np.arange(300.0)
    right.append((nb.add(x, x.T) == x + x.T).all())
    if not {short}:
        right.append((nb.add(x, x.T.astype("i2")) == x + x.T).all())
        right.append((nb.mm(x, x) == x @ x).all())
        right.append((nb.mm(x[:, :8], x[:8]) == x[:, :8] @ x[:8]).all())
        for y, w in ((x, v), (x.T, v), (x[:, ::2], v[::2])):
            right.append((nb.mv(y, w) == y @ w).all())
right = []
threading.stack_size({stack})
thread = threading.Thread(target=work)
thread.start()
thread.join()
sys.exit(right != [True] * ({short} or 7))
"""


@pytest.mark.parametrize("short", [0, 1])
def test_the_first_calls_of_a_process(short, tmp_path, monkeypatch):
    if short:  # compiled here, on that stack
        monkeypatch.setenv("NBKERNELS_CACHE_DIR", str(tmp_path))
    python(FIRST.format(short=short, stack=SMALL))


# -- rooms -------------------------------------------------------------------------------------------------------------

SIZE = 4096


def test_rooms_are_apart_and_come_again():
    def take(found, count):  # by nothing but the number of rooms: one function, so one set of them
        for i in range(count):
            found[i] = workspaces.acquire(SIZE)
        for i in range(count):
            workspaces.release(SIZE, found[i])

    run = entry(take, "void(int64[::1], int64)", "test_take_rooms")
    first, again = np.zeros(workspaces.MOST + 5, np.int64), np.zeros(workspaces.MOST + 5, np.int64)
    for count in (1, 2, workspaces.MOST + 1, workspaces.MOST + 5, 3):
        run(first, count)
        run(again, min(count, workspaces.MOST + 1))
        held = np.sort(first[:count])
        assert (np.diff(held) >= SIZE).all()
        assert (held % workspaces.LINE == 0).all()
        assert set(again[: min(count, workspaces.MOST + 1)]) <= set(first[:count])


def test_rooms_of_threads_at_once():
    """Each thread writes its number all over a room, lets others run, and finds it there."""

    def work(number, times):
        wrong = 0
        for _ in range(times):
            place = workspaces.acquire(SIZE)
            words = workspaces.pointer(place)
            for i in range(SIZE // 8):
                words[i] = number
            workspaces.let_others()
            for i in range(SIZE // 8):
                wrong += words[i] != number
            workspaces.release(SIZE, place)
        return wrong

    run, wrong = entry(work, "int64(int64, int64)", "test_rooms_at_once", nogil=True), []
    threads = [threading.Thread(target=lambda n=n: wrong.append(run(n, 2000))) for n in range(2 * workspaces.MOST)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [0] * len(threads)


# -- threads with stack enough -----------------------------------------------------------------------------------------


def test_a_small_stack_is_seen():
    assert in_thread(shield.stack_size, SMALL) <= 2 * SMALL
    assert in_thread(shield.stack_size, 4 << 20) >= 4 << 20


@pytest.mark.parametrize(("stack", "same"), [(SMALL, False), (8 << 20, True)])
def test_work_goes_to_a_thread_with_stack_enough(stack, same):
    def where():
        return threading.get_ident(), shield.stack_size()

    (caller, _), (worker, size) = in_thread(lambda: (where(), shield.roomy(where)), stack)
    assert (caller == worker) == same
    assert size >= shield.SUFFICIENT
    assert threading.stack_size() == 0


def test_errors_come_back():
    def fail():
        raise ValueError("no")

    def call():
        with pytest.raises(ValueError, match="no"):
            shield.roomy(fail)
        return True

    assert in_thread(call, SMALL)
