"""Protection from interruption by signals, forks or the end of the stack.
What is protected: imports of Numba, compilations, and changes of the state of the whole process."""

from __future__ import annotations

import _signal  # signal's own functions make an Enum of each number: 0.3 ms for all of them
import _thread
import contextlib
import ctypes
import functools
import importlib
import os
import signal
import sys
import threading
import weakref
from importlib.machinery import PathFinder

try:
    import resource
except ImportError:  # Windows
    resource = None

STACK = 8 << 20  # bytes of the stack of a thread that is started here
# A thread with less is spared compilations and imports of Numba. LLVM's recursion goes with the code.
SUFFICIENT = 1 << 20
_sizes = threading.local()
_starting = threading.Lock()
_importers, _gate = [], threading.Condition()  # the threads within `importing` blocks; held while a process is forked
_awaited, _taken = [], []  # the locks that forks wait for; those that one has taken
_outermost: list = []  # the thread of the `whole` block that others are within, and the handlers that it gives back


def in_children(function) -> None:
    """Call it in every process that is forked, which has none of the other threads: nobody there ends what they were
    at, opens their locks and gives back what they took."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def forks_wait(lock) -> None:
    """A process is forked while no other thread holds it, for nobody would give it back in the child. A thread that
    holds it never begins to be `importing`; it may go on to take locks that were named before."""
    _awaited.insert(0, lock)
    _wait_in_forks()


@contextlib.contextmanager
def importing():
    """A block that forks wait for: a child could never import a module that is half imported. Such blocks do not wait
    for one another: Python's own locks of modules are for that, and know of no other lock."""
    _wait_in_forks()
    with _gate:
        _importers.append(threading.get_ident())
    try:
        yield
    finally:
        with _gate:
            _importers.remove(threading.get_ident())
            _gate.notify_all()


def import_numba() -> None:
    """Where it is there already nothing is waited for: a thread that compiles holds a lock that forks wait for."""
    spec = getattr(sys.modules.get("numba"), "__spec__", None)
    if spec is None or getattr(spec, "_initializing", False):
        with importing():
            shielded(importlib.import_module, "numba")


def after_import(name: str, function) -> None:
    """function(module) is called when the module of this name, which nobody has imported, has been."""
    sys.meta_path.insert(0, Finder(lambda other: other == name, after=function))


class Finder:
    """Finds the modules whose names are `wanted`, as Python does; `before()` runs before the code of each, and
    `after(module)` after it. Once one has been imported the finder goes."""

    def __init__(self, wanted, before=lambda: None, after=lambda module: None):
        self.wanted, self.before, self.after = wanted, before, after

    def find_spec(self, name, path=None, target=None):
        spec = PathFinder.find_spec(name, path, target) if self.wanted(name) else None
        if spec is not None:
            spec.loader = Loader(spec.loader, self)
        return spec


class Loader:
    """A loader, and what its finder says. A finder must not run anything itself: it is called within Python's lock of
    all imports, and other threads that import would wait for that."""

    def __init__(self, loader, finder):
        self.loader, self.finder = loader, finder

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.finder.before()
        with contextlib.suppress(ValueError):  # another thread was here
            sys.meta_path.remove(self.finder)
        self.loader.exec_module(module)
        self.finder.after(module)


@functools.cache
def _wait_in_forks() -> None:
    # A fork takes logging's lock, too, and a thread that imports Numba needs that one. What is registered last runs
    # first: after logging's import this hook does, so that a fork that waits does not hold logging's lock.
    importlib.import_module("logging")
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before_fork, after_in_parent=_release, after_in_child=_release)


def _before_fork() -> None:
    _gate.acquire()
    _taken.append(_gate)
    _gate.wait_for(lambda: set(_importers) <= {threading.get_ident()})
    for lock in _awaited:
        lock.acquire()
        _taken.append(lock)


def _release() -> None:
    while _taken:
        _taken.pop().release()


def _after_fork() -> None:
    if _outermost and _outermost[0] != threading.get_ident():
        _restore(_outermost[1])
        _outermost.clear()


in_children(_starting._at_fork_reinit)
in_children(_after_fork)


def shielded(function, *arguments):
    """function(*arguments), and only then what signals ask for; in another thread where this one's stack is small."""
    with whole():
        return roomy(function, *arguments)


@contextlib.contextmanager
def whole():
    """Python's handlers of signals, such as Ctrl-C's, run after the block, in the order in which the signals came.

    What they raise would leave Numba imported by half, which no later import mends; and within a compilation Python
    first sees a signal in a callback of llvmlite's, and there an exception is printed and forgotten.
    """
    if threading.current_thread() is not threading.main_thread():  # where Python runs no handlers
        yield
        return
    handlers = {number: _signal.getsignal(number) for number in range(1, signal.NSIG)}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    inside, came = [True], []

    def later(number, frame):  # goes on as `handler` even if a signal comes before it is taken away
        came.append((number, frame)) if inside else handlers[number](number, frame)

    outermost = not _outermost
    try:
        for number in handlers:
            _signal.signal(number, later)
        if outermost:
            _outermost[:] = threading.get_ident(), handlers
        yield
    finally:
        if outermost:
            _outermost.clear()
        try:
            inside.clear()
            _restore(handlers)
        except BaseException:  # of one that is back
            _restore(handlers)
            raise
        finally:
            _handle(handlers, came)


def _restore(handlers):
    for number, handler in handlers.items():
        _signal.signal(number, handler)


def _handle(handlers, came):
    """Every signal that came, also where handlers raise."""
    if came:
        number, frame = came.pop(0)
        try:
            handlers[number](number, frame)
        finally:
            _handle(handlers, came)


class Step:
    """A change that a signal comes before or after: made at most once, however often it is asked for."""

    def __init__(self, change):
        self.change, self.begun, self.result = change, False, None

    def make(self):
        with whole():
            if not self.begun:
                self.begun = True
                self.result = self.change()
        return self.result


class Block:
    """A `with` block between `_begin`, which gives what `as` names, and `_end`; `_skip`, if it has not begun.

    Where a signal's handler raises in `__enter__` or `__exit__` the block has ended; but Python looks for signals
    before the first line of `__exit__`, too, and those that came while the last line of the block ran are raised there.
    So the process should know an open block by a weak reference alone.
    """

    def __enter__(self):
        step = Step(self._begin)
        try:
            step.make()
        except BaseException:
            Step(self._end if step.begun else self._skip).make()
            raise
        return step.result

    def __exit__(self, *exception) -> None:
        step = None
        try:
            step = Step(self._end)
            step.make()
        except BaseException:
            (step or Step(self._end)).make()
            raise

    def _skip(self) -> None:
        pass


class Nested(Block):
    """A block of which, of those that are open, the innermost one holds for the whole process. A kind of blocks has
    `_renewed()`, which is called whenever that may have become another one."""

    def __init_subclass__(cls) -> None:
        cls._open = []  # weak references, the innermost last; an end that a signal has lost is found
        cls._lock = _thread.RLock()
        in_children(cls._lock._at_fork_reinit)

    @classmethod
    def innermost(cls):
        """The block that holds, or None."""
        return next((block for each in reversed(cls._open) if (block := each()) is not None), None)

    @classmethod
    def _renew(cls, _=None) -> None:
        with cls._lock:
            cls._renewed()

    def _begin(self):
        with self._lock:
            self._open.append(weakref.ref(self, self._renew))
            self._renew()
        return self

    def _end(self) -> None:
        with self._lock:
            self._open.remove(next(each for each in reversed(self._open) if each() is self))
            self._renew()


def roomy(function, *arguments):
    """function(*arguments); in a thread with STACK bytes of stack where this one has not SUFFICIENT."""
    if stack_size() >= SUFFICIENT:
        return function(*arguments)
    result, error, done = [], [], threading.Lock()

    def run():
        try:
            result.append(function(*arguments))
        except BaseException as problem:
            error.append(problem)
        finally:
            done.release()

    done.acquire()
    start(run)
    with done:
        if error:
            raise error[0]
        return result[0]


def start(function, *arguments) -> None:
    """Call it in a new thread with STACK bytes of stack; a RuntimeError where the system gives no more threads."""
    with _starting:
        before = _thread.stack_size(STACK)
        try:
            _thread.start_new_thread(function, arguments)
        finally:
            _thread.stack_size(before)


def stack_size() -> int:
    """Bytes of this thread's stack; as many as can be where the system does not tell."""
    try:
        return _sizes.own
    except AttributeError:
        _sizes.own = _stack_size()
        return _sizes.own


def _stack_size():
    if resource and threading.current_thread() is threading.main_thread():
        size = resource.getrlimit(resource.RLIMIT_STACK)[0]
        return sys.maxsize if size == resource.RLIM_INFINITY else size
    if sys.platform not in ("linux", "darwin"):
        return sys.maxsize
    system, size = ctypes.CDLL(None), ctypes.c_size_t(sys.maxsize)
    system.pthread_self.restype = ctypes.c_void_p
    thread = ctypes.c_void_p(system.pthread_self())
    if sys.platform == "darwin":
        system.pthread_get_stacksize_np.restype = ctypes.c_size_t
        return system.pthread_get_stacksize_np(thread)
    attributes = ctypes.create_string_buffer(256)  # a pthread_attr_t, of at most 64 bytes
    if system.pthread_getattr_np(thread, attributes) == 0:
        system.pthread_attr_getstacksize(attributes, ctypes.byref(size))
        system.pthread_attr_destroy(attributes)
    return size.value
