"""The disk cache: later processes compile nothing, and whatever happens to its files costs a compilation at most."""

import gc
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from numba.core import errors

from nbkernels.jit import cache as compiler

ADD = """
import numpy as np, nbkernels
a = np.ones((4, 4), np.float32)
assert (nbkernels.add(a, a[0]) == 2).all()
print("right")
"""
# One entry that Python calls, and two whose work threads share: small ones, for they are compiled twice here.
ALL = """
long = np.ones(1_000_000, np.float32)
assert nbkernels.dot(long, long) == long.size
assert (nbkernels.add(long, long) == 2).all()
"""


def run(cache, code=ADD, **env):
    command = [sys.executable, "-c", code]
    environment = dict(os.environ, NBKERNELS_CACHE_DIR=str(cache), **env)
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout.strip()


def files(cache: Path):
    return {file: file.stat().st_mtime_ns for file in sorted(cache.rglob("*")) if file.is_file()}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    assert run(cache, ADD + ALL) == "right"
    return cache


def test_later_processes_add_no_file(filled):
    before = files(filled)
    assert before
    for _ in range(2):
        assert run(filled, ADD + ALL) == "right"
        assert files(filled) == before


def test_what_compiles_is_not_imported_to_load(filled):
    """Numba's implementations of Python and NumPy, 0.6 s of a process's start."""
    assert run(filled, ADD + "import sys; assert 'numba.np.npyimpl' not in sys.modules") == "right"


def test_the_simulator_of_cuda_compiles_the_same(filled):
    before = files(filled)
    assert run(filled, ADD + ALL, NUMBA_ENABLE_CUDASIM="1") == "right"
    assert files(filled) == before


def test_damaged_files_are_compiled_again(filled):
    for number, file in enumerate(files(filled)):
        content = file.read_bytes()
        file.write_bytes([b"", content[: len(content) // 2], b"\0" * 100, b"not a pickle"][number % 4])
    assert run(filled, ADD + ALL) == "right"


@pytest.mark.parametrize("kind", ["read-only", "a file", "below a file"])
def test_a_directory_that_cannot_be_written(tmp_path, kind):
    cache = tmp_path / "cache"
    if kind == "read-only":
        cache.mkdir()
        cache.chmod(stat.S_IRUSR | stat.S_IXUSR)
    else:
        cache.write_text("")
        cache = cache / "below" if kind == "below a file" else cache
    assert run(cache) == "right"


def test_processes_at_once(tmp_path):
    environment = dict(os.environ, NBKERNELS_CACHE_DIR=str(tmp_path))
    racers = [subprocess.Popen([sys.executable, "-c", ADD], env=environment, stdout=subprocess.PIPE) for _ in range(3)]
    assert [racer.communicate(timeout=300)[0].strip() for racer in racers] == [b"right"] * 3
    assert not list(tmp_path.rglob("*.tmp"))
    assert run(tmp_path) == "right"


def test_another_cpu_or_option_does_not_load_this_ones_code(filled):
    before = set(files(filled))
    assert run(filled, NUMBA_OPT="2") == "right"
    assert {file.parent for file in set(files(filled)) - before}.isdisjoint({file.parent for file in before})


ENTRY = """
import sys, numpy as np
from nbkernels.jit.cache import entry
offset = int(sys.argv[1]) if len(sys.argv) > 1 else OFFSET
def add(x):
    return x + offset
print(entry(add, "int64(int64)", f"test_add_{offset}")(1))
"""


def test_closures_of_one_family_are_told_apart(tmp_path):
    """Two closures over different numbers, compiled in different processes and loaded in one."""
    for offset in (10, 20):
        assert run(tmp_path, ENTRY.replace("OFFSET", str(offset))) == str(1 + offset)
    both = ENTRY.replace("OFFSET", "10") + "offset = 20\n" + "\n".join(ENTRY.splitlines()[4:])
    assert run(tmp_path, both) == "11\n21"


def test_ctrl_c_in_a_compilation_comes_after_it():
    def compilation():
        with compiler.whole():
            signal.raise_signal(signal.SIGINT)
            done.append(True)

    done, before = [], signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background job ignores
    try:
        with pytest.raises(KeyboardInterrupt):
            compilation()
        assert done
        with pytest.raises(KeyboardInterrupt):  # outside of it at once
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_collector_rests_in_compilations_and_nowhere_else(monkeypatch):
    """Also where one fails, and where threads compile at once."""
    monkeypatch.setattr(compiler.FileCache, "load_overload", lambda *_: seen.append(gc.isenabled()))
    monkeypatch.setattr(compiler.FileCache, "save_overload", lambda *_: seen.append(gc.isenabled()))
    seen = []

    def compilation(number):
        compiler.entry(lambda x: x + number, "int64(int64)", f"test_collector_{number}")

    compilation(0)
    assert seen == [False] * 2
    with pytest.raises(errors.TypingError):
        compiler.entry(lambda x: x + "", "int64(int64)", "test_collector_fails")
    assert gc.isenabled()
    threads = [threading.Thread(target=compilation, args=(number,)) for number in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gc.isenabled()
    gc.disable()
    try:
        compilation(4)
        assert not gc.isenabled()
    finally:
        gc.enable()
