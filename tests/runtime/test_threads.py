"""Parallel launches on every threading layer: right results, never an aborted process."""

import ctypes
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

import nbkernels
from nbkernels.cpu.runtime import threads
from nbkernels.jit.abi.flags import modes
from nbkernels.jit.abi.sharing import seen, take
from nbkernels.jit.compile.cache import compiled
from tests.modes import FLUSH, UP, computing
from tests.processes import python

N = 300  # large enough for the packed, parallel path


def product(rng):
    a, b = (rng.integers(-4, 5, (N, N)).astype(np.float32) for _ in range(2))
    return a, b, a.astype(np.int64) @ b.astype(np.int64)


def test_every_task_runs_once():
    def count(hits, task):
        hits[task] += 1

    address = compiled(count, "void(CPointer(int64), int64)", "test_count")
    for tasks in (0, 1, 2, 7, 100):
        hits = np.zeros(101, np.int64)
        threads.launch(address, hits.ctypes.data, tasks)
        assert hits.tolist() == [1] * tasks + [0] * (101 - tasks)


def test_a_helper_that_never_comes_is_not_waited_for():
    def count(hits, task):
        hits[task] += 1

    address, hits = compiled(count, "void(CPointer(int64), int64)", "test_count"), np.zeros(7, np.int64)
    assert threads.open_up()
    nobody, kept = threads.HELPER.array(), threads._words[:]
    nobody.state = threads.IDLE
    try:
        threads._words.places, threads._words.helpers = nobody.buffer_info()[0], 1
        threads.launch(address, hits.ctypes.data, 7)
    finally:
        threads._words[:] = kept
    assert hits.tolist() == [1] * 7
    assert nobody.state == threads.IDLE


def asleep(place):
    """Return when the helper at a place sleeps."""
    for _ in range(3000):
        if place[threads.STATE] == threads.ASLEEP:
            return
        time.sleep(0.01)
    raise AssertionError("a helper does not sleep")


def places():
    size = ctypes.sizeof(ctypes.c_int64) * threads.LINE
    words = threads._words
    return [(ctypes.c_int64 * threads.LINE).from_address(words.places + i * size) for i in range(words.helpers)]


def test_helpers_sleep_between_launches(rng):
    a, b, expected = product(rng)
    for _ in range(3):
        assert np.array_equal(nbkernels.mm(a, b), expected)
        for place in places():
            asleep(place)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: threads bound to cores")
def test_a_helper_wakes_off_the_core_of_who_launches(rng):
    """Linux lets a thread wake on the core of the one that wakes it, though others are idle."""

    def nothing(_, task):
        pass

    kernel, own = compiled(nothing, "void(CPointer(int64), int64)", "test_nothing"), os.sched_getaffinity(0)
    threads.launch(kernel, 0, 2)
    if not threads._words.helpers:
        return  # with one core nobody wakes
    place = places()[0]

    def cores():
        asleep(place)
        threads.launch(kernel, 0, 2)
        return os.sched_getaffinity(place[threads.HELPER["thread"]])

    assert cores() < own
    try:
        for core in own:
            os.sched_setaffinity(0, {core, min(own - {core}, default=core)})
            assert len(cores()) == 1
            before = os.sched_getaffinity(place[threads.HELPER["thread"]])
            os.sched_setaffinity(0, {core})  # there is no other
            assert cores() == before
    finally:
        os.sched_setaffinity(0, own)


@pytest.mark.parametrize("mode", [FLUSH, UP])
def test_every_thread_computes_as_its_caller_does(mode):
    """Flush-to-zero and rounding are a thread's own; a helper has those of whoever started it, or launched last."""

    def both(words, task):
        words[task] = modes()
        take(words, 2)
        for _ in range(1 << 22):  # so that the helper has its task, if it comes at all
            if seen(words, 2) == 2:
                break

    address = compiled(both, "void(CPointer(int64), int64)", "test_both")
    for more in (mode, 0, mode, 0):
        with computing(more) as expected:
            for _ in range(5):
                words = np.zeros(3, np.int64)
                threads.launch(address, words.ctypes.data, 2)
                assert words.tolist() == [expected, expected, 2]


SMALL, LESS = np.full((400, 400), 1e-20, np.float32), np.full((400, 400), 1e-23, np.float32)
SUBNORMAL, STACK = np.full(1_000_000, 1e-41, np.float32), np.full((300, 20, 20), 1e-22, np.float32)
doubled = nbkernels.elementwise(lambda x: x * np.float32(2))
OPERATIONS = {
    "mm": lambda: nbkernels.mm(SMALL, LESS),
    "mv": lambda: nbkernels.mv(SMALL, LESS[0]),
    "bmm": lambda: nbkernels.bmm(STACK, STACK),
    "multiply": lambda: nbkernels.multiply(SUBNORMAL, 1),
    "exp": lambda: nbkernels.exp(np.full(1_000_000, -92, np.float32)),
    "sums": lambda: nbkernels.add.reduce(SUBNORMAL.reshape(-1, 100), axis=1),
    "elementwise": lambda: doubled(SUBNORMAL),
    "fuse": lambda: nbkernels.fuse(lambda x, y: x * y, SMALL, LESS),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_flush_to_zero_as_their_caller_does(name):
    """Every call has one thread's bits, with the flag set before, during and after."""
    call, available = OPERATIONS[name], numba.get_num_threads()
    for more in (FLUSH, 0, FLUSH, 0):
        with computing(more):
            numba.set_num_threads(1)
            try:
                expected = call()
            finally:
                numba.set_num_threads(available)
            assert more or (expected != 0).all()
            for _ in range(5):
                np.testing.assert_array_equal(call().view(np.int32), expected.view(np.int32))


CONSTANT = """
import numpy as np
import nbkernels
from tests.modes import FLUSH, computing
subnormal = np.float32(1e-40)
functions = lambda x: x + subnormal, lambda x: x + np.float32(1e-40), lambda x: x + 1e-40
made, x = [nbkernels.elementwise(f) for f in functions], np.zeros(9, np.float32)
with computing(FLUSH):
    for f in made:
        f(x)
print([bool((f(x) == subnormal).all()) for f in made])
"""


def test_constants_are_compiled_without_flush_to_zero(tmp_path):
    """A kernel is kept for callers with other modes, also on disk."""
    assert python(CONSTANT, NBKERNELS_CACHE_DIR=str(tmp_path)) == "[True, True, True]\n"


def test_set_num_threads_is_honoured():
    available = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        assert threads.count() == 1
    finally:
        numba.set_num_threads(available)
    assert threads.count() in (1, available)


def shared(call) -> bool:
    """Whether a call offers a helper its part; where there are none, whether it would be explained so."""
    assert threads.open_up()
    if not threads._words.helpers:
        return False
    place = (ctypes.c_int64 * threads.LINE).from_address(threads._words.places)
    place[threads.HELPER["kernel"]] = 0
    call()
    return place[threads.HELPER["kernel"]] != 0


LARGE = {
    "mm": (nbkernels.mm, (np.ones((N, N), np.float32),) * 2),
    "add": (nbkernels.add, (np.ones(1_000_000, np.float32),) * 2),
    "sums": (lambda x: nbkernels.add.reduce(x, axis=1), (np.ones((1000, 1000), np.float32),)),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_block_says_how_many_threads_calls_take(name):
    """In threads that are started in it, too, where Numba's own number is forgotten."""
    function, given = LARGE[name]
    many = shared(lambda: function(*given))
    assert many == (threads.count() > 1)
    with ThreadPoolExecutor(1) as others:
        for run in (lambda call: call(), lambda call: others.submit(call).result()):
            with nbkernels.threads(1):
                assert not run(lambda: shared(lambda: function(*given)))
                assert run(threads.count) == 1
                with nbkernels.threads(64):  # the inner one holds, for no more threads than there are
                    assert run(threads.count) == threads.LIMITS[1] <= numba.config.NUMBA_NUM_THREADS
                    assert run(lambda: shared(lambda: function(*given))) == many
                assert run(threads.count) == 1
            assert run(lambda: shared(lambda: function(*given))) == many


def test_torchs_number_of_threads_stays():
    """Numba's OpenMP layer, as it starts, sets that of the thread that starts it."""
    pytest.importorskip("torch")
    python(
        "import torch\n"
        "from nbkernels.cpu.runtime.threads import layer\n"
        "torch.set_num_threads(1)\n"
        "assert torch.get_num_threads() == 1\n"
        "assert layer() == 'omp' and torch.get_num_threads() == 1\n",
        NUMBA_THREADING_LAYER="omp",
        NUMBA_NUM_THREADS="2",
    )


@pytest.mark.parametrize("name", ["mm", "add"])
def test_torchs_number_of_threads_is_followed_for_tensors(name):
    torch = pytest.importorskip("torch")
    function, given = LARGE[name]
    tensors, before = [torch.from_numpy(x) for x in given], torch.get_num_threads()
    many, own = shared(lambda: function(*given)), numba.get_num_threads()
    out = torch.empty_like(tensors[0])
    try:
        torch.set_num_threads(1)
        for call in (lambda: function(*tensors), lambda: function(*tensors, out=out)):
            assert not shared(call)
            assert numba.get_num_threads() == own
            with nbkernels.threads(64):
                assert shared(call) == many
        assert nbkernels.explain(function, *tensors).threads == 1
        assert shared(lambda: function(*given)) == many
    finally:
        torch.set_num_threads(before)


@pytest.mark.sampled
@pytest.mark.parametrize(("text", "most"), [(" 1,2", 1), ("1", 1), ("64", None), ("none", None), ("0", None)])
def test_omp_num_threads_is_a_ceiling(text, most):
    code = (
        "import numba, nbkernels, numpy as np\n"
        "from nbkernels.cpu.runtime.threads import count\n"
        "x = np.ones((300, 300), np.float32)\n"
        "assert (nbkernels.mm(x, x) == 300).all()\n"
        "with nbkernels.threads(64):\n"
        "    print(count(), nbkernels.explain(nbkernels.mm, x, x).threads, numba.config.NUMBA_NUM_THREADS)"
    )
    inside, explained, there = map(int, python(code, OMP_NUM_THREADS=text, NUMBA_NUM_THREADS="2").split())
    assert there == 2
    assert inside == explained == (most or 2)


@pytest.mark.parametrize(("n", "error", "words"), [
    (0, ValueError, "threads: at least 1 thread is wanted, not 0"), (-3, ValueError, "not -3"),
    (1.5, TypeError, "threads: a number of threads is wanted, not 1.5"), (True, TypeError, "not True"),
    ("2", TypeError, "not '2'"),
])  # fmt: skip
def test_numbers_of_threads_that_there_are_not(n, error, words):
    with pytest.raises(error, match=words):
        nbkernels.threads(n)


def test_python_threads_at_once(rng):
    a, b, expected = product(rng)
    line, wrong = rng.standard_normal(200_000), []  # of a size that compiled code launches by itself
    square = rng.integers(-9, 9, (150, 150)).astype(np.float32)  # whose panels have one room
    large = rng.integers(-9, 9, (400, 400)).astype(np.float32)  # another
    exact, product_of_large = square @ square, large @ large

    def work():
        for _ in range(10):
            if not np.array_equal(nbkernels.mm(square, square), exact):
                wrong.append(3)
            if not np.array_equal(nbkernels.mm(large, large), product_of_large):
                wrong.append(4)
            if not np.array_equal(nbkernels.mm(a, b), expected):
                wrong.append(1)
            if not np.array_equal(nbkernels.add(line, line), line + line):
                wrong.append(2)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


SCRIPT = """
import os, sys, threading
import numpy as np, numba, nbkernels
from nbkernels.cpu.runtime import threads
a, stack = np.ones(({n}, {n}), np.float32), np.ones((400, 24, 24), np.float32)
few, wide, square = (np.ones(shape, np.float32) for shape in ((16, 512), (512, 2048), (150, 150)))
def check():
    assert (nbkernels.bmm(stack, stack) == 24).all()
    assert (nbkernels.mm(a, a) == {n}).all()
    assert (nbkernels.mm(few, wide) == 512).all()
    assert (nbkernels.mm(square, square) == 150).all()
    assert (nbkernels.add(a, a) == 2).all()
check()
assert threads.layer() in ({layer!r}, "none")
if {how!r} == "threads":
    workers = [threading.Thread(target=lambda: [check() for _ in range(20)]) for _ in range(4)]
    [w.start() for w in workers]
    [w.join() for w in workers]
elif {how!r} == "fork":
    child = os.fork()
    if child == 0:
        check()
        assert threads._words.helpers == (threads.layer() != "none")
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status == 0, status
elif {how!r} == "nested" and threads.layer() != "none":
    @numba.njit(parallel=True)
    def outer(n):
        for i in numba.prange(n):
            with numba.objmode():
                check()
    outer(4)
check()
print("alive")
"""


USUAL = [("omp", "threads"), ("omp", "fork"), ("workqueue", "nested"), ("tbb", "threads")]  # others before a release


@pytest.mark.parametrize(
    ("layer", "how"),
    [
        pytest.param(layer, how, marks=() if (layer, how) in USUAL else pytest.mark.release)
        for layer in ("omp", "workqueue", "tbb")
        for how in ("threads", "fork", "nested")
    ],
)
def test_nothing_aborts_the_process(layer, how):
    """Where a layer cannot be loaded (tbb without its library) the work is serial."""
    if how == "fork" and not hasattr(os, "fork"):
        pytest.skip("needs os.fork, which this system lacks")
    env = dict(NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS="2", PYTHONWARNINGS="ignore")
    assert python(SCRIPT.format(n=N, layer=layer, how=how), **env) == "alive\n"
