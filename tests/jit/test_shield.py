"""Signals while Numba is imported or compiles: they come after it, and what was begun is there for the next call."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from nbkernels import shield
from tests.processes import python


class Late(Exception):
    pass


def late(*_):
    raise Late


@pytest.fixture(params=["SIGINT", "SIGTERM", "SIGALRM"])
def handled(request):
    """A signal whose handler raises, the way Ctrl-C's and those of time limits do; and what it raises."""
    number = getattr(signal, request.param, None)
    if number is None:
        pytest.skip(f"needs {request.param}, which this system lacks")
    handler = signal.default_int_handler if request.param == "SIGINT" else late
    before = signal.signal(number, handler)
    yield number, KeyboardInterrupt if request.param == "SIGINT" else Late
    assert signal.signal(number, before) is handler


def test_a_signal_comes_after_the_block(handled):
    number, error = handled
    done = []

    def block():
        with shield.whole():
            signal.raise_signal(number)
            done.append(True)

    with pytest.raises(error):
        block()
    assert done
    with pytest.raises(error):  # outside of it at once
        signal.raise_signal(number)


def test_a_signal_comes_after_a_block_that_fails(handled):
    number, error = handled

    def block():
        with shield.whole():
            signal.raise_signal(number)
            raise ValueError

    with pytest.raises(error) as caught:
        block()
    assert isinstance(caught.value.__context__, ValueError)


def test_blocks_within_blocks(handled):
    number, error = handled
    done = []

    def block():
        with shield.whole():
            with shield.whole():
                signal.raise_signal(number)
            done.append(True)

    with pytest.raises(error):
        block()
    assert done


def test_every_signal_comes(handled):
    """In their order, also where the first one's handler raises."""
    number, error = handled
    came, other = [], signal.SIGTERM if number != signal.SIGTERM else signal.SIGINT
    before = signal.signal(other, lambda number, _: came.append(number))

    def block():
        with shield.whole():
            signal.raise_signal(number)
            signal.raise_signal(other)
            assert not came

    try:
        with pytest.raises(error):
            block()
    finally:
        signal.signal(other, before)
    assert came == [other]


def test_handlers_are_back_where_one_raises_while_they_come_back(monkeypatch):
    """Of those that are back the first may be called at once."""
    first, raised = signal.SIGINT, []

    def restoring(number, handler, set_it=shield._signal.signal):
        set_it(number, handler)
        if number == first and handler is signal.default_int_handler and not raised:
            raised.append(True)
            signal.raise_signal(first)

    before = {number: signal.getsignal(number) for number in (first, signal.SIGTERM)}
    signal.signal(first, signal.default_int_handler)
    signal.signal(signal.SIGTERM, late)
    try:
        with pytest.raises(KeyboardInterrupt), shield.whole():
            monkeypatch.setattr(shield._signal, "signal", restoring)
        monkeypatch.undo()
        assert (signal.getsignal(first), signal.getsignal(signal.SIGTERM)) == (signal.default_int_handler, late)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize("where", ["before", "begin", "end", "nowhere"])
def test_a_block_has_ended_wherever_a_signal_comes(handled, where, monkeypatch):
    number, error = handled
    done = []

    class Block(shield.Block):
        def _begin(self):
            done.append("begins")
            if where == "begin":
                signal.raise_signal(number)
            return "as"

        def _end(self):
            if where == "end":
                signal.raise_signal(number)
            done.append("ends")

        def _skip(self):
            done.append("skipped")

    def interrupted():
        monkeypatch.undo()
        signal.raise_signal(number)

    def block():
        with Block() as value:
            done.append(value)

    def begin():
        if where == "before":  # as the block is about to begin
            monkeypatch.setattr(shield, "whole", interrupted)
        block()

    if where == "nowhere":
        begin()
    else:
        with pytest.raises(error):
            begin()
    inside = ["as"] if where in ("end", "nowhere") else []
    assert done == (["skipped"] if where == "before" else ["begins", *inside, "ends"])


def test_other_threads_leave_handlers_alone():
    """Python runs handlers in the main thread alone, and lets no other one set them."""
    before, seen = signal.getsignal(signal.SIGINT), []

    def work():
        with shield.whole():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


FORKED = """
import faulthandler, gc, os, signal, sys, threading
import numpy as np
import nbkernels as nb
from numba.core.compiler_lock import global_compiler_lock
from nbkernels.calls.record import Record
from nbkernels.cpu.runtime import threads, workspace
from nbkernels.dispatch import keys
from nbkernels.in_numpy import use
from nbkernels import shield
from nbkernels.jit.compile import build, cache

x, record = np.ones((4, 4), np.int16), Record("no file")
nb.mm(x, x)
locks = keys.LOCK, use._lock, shield._starting, threads._beginning, workspace._keeping, record.lock
forking, go_on = threading.Event(), threading.Event()
os.register_at_fork(before=forking.set)  # comes before what the library does there

def forked():
    "Whether all is as it should be in a child."
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(60, exit=True)
        assert gc.isenabled() and all(lock.acquire(timeout=5) for lock in locks)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        for lock in locks:
            lock.release()
        assert (nb.mm(x.astype(np.uint16), x.astype(np.uint16)) == 4).all()  # a kernel that is new
        os._exit(0)
    go_on.set()
    return os.waitpid(child, 0)[1] == 0

def compile_while_forked():
    for lock in locks:
        lock.acquire()
    try:
        build.shielded(global_compiler_lock(lambda: (started.set(), forking.wait(), done.append(1))))
        go_on.wait()
    finally:
        for lock in locks:
            lock.release()

signal.signal(signal.SIGINT, signal.default_int_handler)
started, done = threading.Event(), []
if sys.argv[1] == "compiling":  # in another thread, which has the locks
    thread = threading.Thread(target=compile_while_forked)
    thread.start()
    started.wait()
    assert forked()
    thread.join()
else:  # the main thread compiles, and another one forks
    result = []
    thread = threading.Thread(target=lambda: (started.wait(), result.append(forked())))
    thread.start()
    with shield.whole(), cache.uncollected():  # before it has the compiler's lock
        started.set()
        thread.join()
    assert result == [True]
assert gc.isenabled() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork, which this system lacks")
@pytest.mark.parametrize("who", ["compiling", "forking"])
def test_a_child_that_is_forked_meanwhile_goes_on(who):
    """Of the threads that compile, or hold a lock of the library, a child has none."""
    run = [sys.executable, "-W", "ignore", "-c", FORKED, who]
    result = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-2000:]


# A fork waits for a thread that compiles, which may ask for Numba's names then: that must not wait for the fork.
NAMED = """
import os, threading, time
from nbkernels.jit.compile import build, lazy
from nbkernels.shield import import_numba

def compiling():
    with build.global_compiler_lock:
        held.set()
        time.sleep(0.5)
        import_numba()
        lazy.Names("numba.types").float64

held, thread = threading.Event(), threading.Thread(target=compiling, daemon=True)
thread.start()
held.wait()
if os.fork() == 0:
    os._exit(0)
assert os.wait()[1] == 0
thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_thread_that_compiles_while_a_fork_waits_for_it_names_numba():
    run = [sys.executable, "-W", "ignore", "-c", NAMED]
    result = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr[-2000:]


# A first call that Ctrl-C comes to as the AT-th module is looked for; then the same calls again.
INTERRUPTED = """
import os, signal, sys
import numpy as np
import nbkernels as nb
x = np.ones((4, 4), np.float32)

class Interrupting:
    def __init__(self, at):
        self.left = at
    def find_spec(self, name, path=None, target=None):
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)
        self.left -= 1

def interrupted(at):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background job ignores
    hook = Interrupting(at)
    sys.meta_path.insert(0, hook)
    try:
        nb.add(x, x)
        return hook.left >= 0  # so many modules are not imported
    except KeyboardInterrupt:
        pass
    finally:
        sys.meta_path.remove(hook)
    assert (nb.add(x, x) == 2).all() and (nb.mm(x, x) == 4).all() and nb.sum_to(x, ()) == 16, at

at, step, over = 0, {step}, False
while not over:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, b"over" if interrupted(at) else b"on")
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(write)
    over = os.read(read, 4) == b"over"
    assert os.waitpid(child, 0)[1] == 0, at
    at += step
assert at > 3 * step
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork: a process for every place of the signal")
def test_a_first_call_that_is_interrupted_can_be_made_again():
    python(INTERRUPTED.format(step=23))


FORKING = """
import os, sys, threading, warnings
from nbkernels.jit.compile.cache import entry

def compile_some():
    for number in range(12):
        exec(f"def plus(x): return x + {number}", scope := {"__name__": "test"})
        assert entry(scope["plus"], "int64(int64)", f"test_forking_{number}")(1) == number + 1

thread = threading.Thread(target=compile_some)
thread.start()
while thread.is_alive():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork, which this system lacks")
def test_forks_between_a_compilation_and_its_linking(tmp_path):
    """A fork takes the locks of both, in the order in which whoever compiles does."""
    run = [sys.executable, "-W", "ignore", "-c", FORKING]
    environment = os.environ | {"NBKERNELS_CACHE_DIR": str(tmp_path)}
    result = subprocess.run(run, capture_output=True, text=True, timeout=100, env=environment)
    assert result.returncode == 0, result.stderr[-2000:]
