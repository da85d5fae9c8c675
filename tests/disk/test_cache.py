"""The disk cache: later processes compile nothing, and whatever happens to its files costs a compilation at most."""

import cmath
import errno
import gc
import io
import os
import pickle
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import errors

from nbkernels.jit.abi.record import lasting
from nbkernels.jit.compile import cache as compiler
from nbkernels.jit.compile.lazy import subroutine, types
from nbkernels.jit.compile.routine import ir_function
from nbkernels.jit.disk import files as disk
from nbkernels.jit.disk import load
from tests.cases import EVERY

ADD = """
import numpy as np, nbkernels
a = np.ones(4, np.float32)
nbkernels.add.at(a, [0, 0], 1)
assert (a == [3, 1, 1, 1]).all()
print("right")
"""  # soon compiled
ONE = """
from nbkernels.jit.compile.cache import entry
def one(x):
    return x + 1
assert entry(one, "int64(int64)", "test_cache_one")(1) == 2
print("right")
"""
RAISES = ONE.replace("    return", "    if x == 7:\n        raise ValueError\n    return")  # by Numba's own C functions
# And what threads share.
ALL = (
    ADD
    + """
long = np.ones(1_000_000, np.float32)
assert (nbkernels.add(long, long) == 2).all()
"""
)

ELSEWHERE = r"\(NBKERNELS_CACHE_DIR names another place\)"


def run(cache, code=ADD, says="", **env):
    """What the code prints; `says`: the one line that it warns with."""
    env = dict(os.environ, NBKERNELS_CACHE_DIR=str(cache), **env)
    result = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-2000:]
    assert re.fullmatch(says and f"<nbkernels>:1: RuntimeWarning: {says}\n", result.stderr), result.stderr
    return result.stdout.strip()


def files(cache: Path):
    return {file: file.stat().st_mtime_ns for file in sorted(cache.rglob("*")) if file.is_file()}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    assert run(cache, ALL) == "right"
    return cache


def test_later_processes_add_no_file(filled):
    """Nor do they import Numba's implementations of Python and NumPy, 0.6 s of a process's start."""
    before = files(filled)
    assert before
    assert run(filled, ALL + "import sys; assert 'numba.np.npyimpl' not in sys.modules") == "right"
    assert files(filled) == before


def test_code_is_linked_that_is_found_after_numba_was_imported(tmp_path):
    """Numba makes its own C functions known when it is about to compile, and here nothing is compiled."""
    code = "from nbkernels.jit.disk import levels\nlevels.processor(), levels.target()\nimport numba" + RAISES
    assert run(tmp_path, code) == "right"
    before = files(tmp_path)
    assert any(b"\0numba_" in file.read_bytes() for file in before)
    assert run(tmp_path, code) == "right"
    assert files(tmp_path) == before


def test_the_simulator_of_cuda_compiles_the_same(filled):
    before = files(filled)
    assert run(filled, ALL, NUMBA_ENABLE_CUDASIM="1") == "right"
    assert files(filled) == before


def test_damaged_files_are_compiled_again(filled):
    """Without a word, as nothing is lost: the next process finds them whole. What stands under another's name is sound
    in itself, but the one's code would run for the other."""
    other = b""
    for number, file in enumerate(files(filled)):
        content = file.read_bytes()
        half = len(content) // 2
        kinds = b"\0" * 100, other, b"", content[:half], other, b"not a pickle", flipped(content, half), other
        file.write_bytes(kinds[number % len(kinds)])
        other = content
    assert run(filled, ALL) == "right"
    before = files(filled)
    assert run(filled, ALL) == "right"
    assert files(filled) == before


def flipped(content, place):
    return content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :]


CONTENT = pickle.dumps((b"machine code", list(range(100))))


@pytest.fixture(autouse=True)
def _nothing_noticed(monkeypatch):
    monkeypatch.setattr(disk, "NOTICES", [])


@pytest.fixture
def kept(tmp_path):
    file = tmp_path / "build" / "add.nbc"
    file.parent.mkdir()
    disk.write(file, CONTENT)
    assert disk.read(file) == CONTENT
    return file


def test_every_flipped_bit_is_seen(kept):
    whole = kept.read_bytes()
    for place in range(len(whole)):
        kept.write_bytes(flipped(whole, place))
        assert disk.read(kept) is None, place


def test_what_is_cut_off_or_added_is_seen(kept):
    whole = kept.read_bytes()
    for size in (0, 1, disk.SEAL - 1, disk.SEAL, disk.SEAL + 1, len(whole) // 2, len(whole) - 1):
        kept.write_bytes(whole[:size])
        assert disk.read(kept) is None, size
    kept.write_bytes(whole + b"\0")
    assert disk.read(kept) is None


def test_a_file_under_another_name_is_not_read(kept):
    for other in (kept.with_name("mul.nbc"), kept.parent.parent / kept.name, kept.parent.parent / "other" / kept.name):
        other.parent.mkdir(exist_ok=True)
        shutil.copy(kept, other)
        assert disk.read(other) is None


def test_what_is_no_file_is_not_read(kept):
    kept.unlink()
    assert disk.read(kept) is None
    kept.mkdir()
    assert disk.read(kept) is None
    with pytest.warns(RuntimeWarning, match="Is a directory|denied"):
        disk.write(kept, CONTENT)  # cannot take the directory's place
    assert [each.name for each in kept.parent.iterdir()] == [kept.name]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EACCES])
@pytest.mark.parametrize("step", ["open", "write", "close", "replace"])
def test_nothing_stays_where_a_file_cannot_be_made(kept, monkeypatch, step, code):
    """A disk that is full, half-way or at the end, or fails otherwise: what was there before is there still."""

    def fail(*_, **__):
        raise OSError(code, os.strerror(code))

    class Stream(io.FileIO):
        def write(self, content):
            super().write(bytes(content)[: len(content) // 2])
            if step == "write":
                fail()

        def __exit__(self, *error):
            super().__exit__(*error)
            if step == "close":
                fail()

    def opened(path, *rest, **words):
        made = open if not str(path).endswith(".tmp") else fail if step == "open" else Stream
        return made(path, *rest, **words)

    monkeypatch.setattr(disk, "open", opened, raising=False)
    if step == "replace":
        monkeypatch.setattr(disk.os, "replace", fail)
    disk.write(kept, b"other")
    assert disk.read(kept) == CONTENT
    assert list(kept.parent.iterdir()) == [kept]
    kept.unlink()
    with pytest.warns(RuntimeWarning, match=re.escape(f"cannot be kept in {kept.parent} ({os.strerror(code)})")):
        disk.write(kept, b"other")
    assert not list(kept.parent.iterdir())
    disk.write(kept, b"other")  # nothing is said twice


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # as a `with` ends, Python closes late
def test_ctrl_c_leaves_whole_files(kept):
    """Wherever it comes while a file is made: before each line, and as each function that is called begins."""
    came = 0

    def interrupt(frame, event, _):
        nonlocal left
        left -= event in ("line", "call") and "pytest" not in frame.f_code.co_filename
        if left < 0:
            sys.settrace(None)
            raise KeyboardInterrupt
        return interrupt

    for first in range(1000):
        left = first
        sys.settrace(interrupt)
        try:
            disk.put(kept, b"other")
            break
        except KeyboardInterrupt:
            came += 1
        finally:
            sys.settrace(None)
        assert [each.name for each in kept.parent.iterdir()] == [kept.name], first
    assert 5 < came < 999


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs POSIX: a limit on the size of files")
def test_a_disk_that_takes_no_file_whole(tmp_path):
    """The same in a process, whose every write ends in an error half-way."""
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    says = rf"what is compiled cannot be kept in \S+ \(File too large\): later processes compile it again {ELSEWHERE}"
    assert run(tmp_path, limit + ONE, says) == "right"
    assert {file.name for file in files(tmp_path)} <= {disk.RECORD}


def test_writers_at_once(kept):
    """Whoever reads meanwhile finds one of the contents, whole."""
    contents, wrong, end = [bytes([n]) * 100_000 for n in range(4)], [], threading.Event()

    def read():
        while not end.is_set():
            found = disk.read(kept)
            if found is None or bytes(found) not in (CONTENT, *contents):
                wrong.append(found)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=lambda c=c: [disk.write(kept, c) for _ in range(50)]) for c in contents]
    reader.start()
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    end.set()
    reader.join()
    assert not wrong
    assert list(kept.parent.iterdir()) == [kept]


@pytest.mark.parametrize("kind", ["a file", "below a file", "no home"])
def test_a_directory_that_cannot_be_made(tmp_path, monkeypatch, kind):
    (cache := tmp_path / "cache").write_text("")
    if kind == "a file":
        assert run(cache, ONE, rf"what is compiled is not kept: \S+ cannot be made \(.*\) {ELSEWHERE}") == "right"
    for home in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(home, str(cache))
    monkeypatch.setenv("NBKERNELS_CACHE_DIR", {"no home": "", "a file": str(cache)}.get(kind, str(cache / "below")))
    found, wrong = disk._found.__wrapped__()
    assert found is None
    assert re.fullmatch(rf"{re.escape(str(cache))}\S* cannot be made \(.*\)", wrong)


HOMELESS = """
import os, pwd
os.environ.pop("HOME", None), os.environ.pop("XDG_CACHE_HOME", None)
def nobody(*_): raise KeyError("no such entry")
pwd.getpwuid = pwd.getpwnam = nobody
"""
CALLS = """
import numpy as np, nbkernels as nb
a = np.ones((8, 8), np.float32)
assert (nb.add(a, a) == 2).all() and (nb.mm(a, a) == 8).all() and (nb.exp(0 * a) == 1).all()
assert (nb.add.reduce(a, axis=0) == 8).all() and (nb.elementwise(lambda x: x + 1)(a) == 2).all()
with nb.use_in_numpy():
    assert (np.maximum(a, 2 * a) == 2).all()
"""
COMMANDS = """
import contextlib, io
from nbkernels import cli
assert cli.main(["info"]) == 0
with contextlib.redirect_stderr(io.StringIO()) as said:
    assert cli.main(["cache"]) == 2
assert "NBKERNELS_CACHE_DIR" in said.getvalue()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a user's home is no entry of a file there")
def test_a_user_without_a_home(monkeypatch):
    """As in a container that is started under a number of its own: one warning, and results of whatever compiles."""
    calls = CALLS if EVERY else ONE
    said = run("", HOMELESS + calls + COMMANDS, rf"what is compiled is not kept: .*home directory.* {ELSEWHERE}")
    assert re.search(r"\bcache none: .*home directory.*every process compiles", " ".join(said.split()))

    def nobody(*_):
        raise KeyError("no such entry")

    for name in ("pwd.getpwuid", "pwd.getpwnam"):
        monkeypatch.setattr(name, nobody)
    monkeypatch.delenv("HOME", raising=False)
    for given in ("", "~", "~nobody/cache"):
        monkeypatch.setenv("NBKERNELS_CACHE_DIR", given)
        found, wrong = disk._found.__wrapped__()
        assert found is None
        assert "home directory" in wrong


def test_a_package_without_sources_and_code_objects(tmp_path):
    """Nothing tells then which code on disk is of this package."""
    nothing = "from nbkernels.jit.disk import sources\nsources.files = sources.codes = lambda *rooms: []\n"
    says = rf"what is compiled is not kept: nbkernels is here without sources and without code objects {ELSEWHERE}"
    assert run(tmp_path / "cache", nothing + ADD + "nbkernels.maximum.at(a, 0, 1)", says) == "right"
    assert not (tmp_path / "cache").exists()


def test_a_directory_in_one_that_is_gone(tmp_path, monkeypatch):
    """A relative path means nothing there."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.setenv("NBKERNELS_CACHE_DIR", "cache")
    gone.rmdir()
    found, wrong = disk._found.__wrapped__()
    assert found is None
    assert os.strerror(errno.ENOENT) in wrong


def test_the_home_directory_by_its_sign(tmp_path):
    """In an environment that no shell has read."""
    assert run("~/cache", ADD, HOME=str(tmp_path), USERPROFILE=str(tmp_path)) == "right"
    assert files(tmp_path / "cache")


def test_a_directory_that_can_only_be_read(filled, tmp_path):
    """An image's, that root filled: what is there is loaded, silently; what is not there is compiled."""
    shutil.copytree(filled, tmp_path / "cache")
    read_only = """import builtins, errno, os
real, os.access = open, lambda *_: False
def fail(path, *rest, **words):
    if str(path).endswith(".tmp"):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))
    return real(path, *rest, **words)
builtins.open = fail
"""
    before = files(tmp_path)
    assert run(tmp_path / "cache", read_only + ADD) == "right"
    says = r"what is compiled cannot be kept in \S+ \(Read-only file system\): later processes compile it again "
    more = read_only + ADD + "nbkernels.maximum.at(a, 0, 1); nbkernels.minimum.at(a, 0, 1)"
    assert run(tmp_path / "cache", more, says + ELSEWHERE) == "right"
    assert files(tmp_path) == before


LOST = """
import shutil, sys
from nbkernels.jit.disk import files
from nbkernels.jit.compile.cache import entry
def one(x):
    return x + 1
def two(x):
    return x + 2
assert entry(one, "int64(int64)", "test_cache_one")(1) == 2
shutil.rmtree(LOST)
assert entry(one, "int64(int64)", "test_cache_one")(1) == 2
assert entry(two, "int64(int64)", "test_cache_two")(1) == 3
print(files.directory())
"""


@pytest.mark.sampled
@pytest.mark.parametrize("what", ["files.base()", "files.directory()"])
def test_a_directory_that_goes_while_a_process_runs(tmp_path, what):
    """The process makes it anew, for its user alone."""
    directory = Path(run(tmp_path / "cache", LOST.replace("LOST", what)))
    kept = sorted(file.name.partition("-")[0] for file in files(directory))
    assert kept == ["test_cache_one", "test_cache_two", disk.RECORD]
    for each in (directory, directory.parent):
        assert os.name == "nt" or stat.S_IMODE(each.stat().st_mode) == 0o700
    before = files(directory)
    assert run(tmp_path / "cache", ONE) == "right"
    assert files(directory) == before


def test_a_directory_that_goes_and_cannot_be_made_again(tmp_path):
    says = rf"what is compiled cannot be kept in \S+ \(.*\): later processes compile it again {ELSEWHERE}"
    code = LOST.replace("shutil.rmtree(LOST)", "shutil.rmtree(files.base()); files.base().write_text('')")
    assert run(tmp_path / "cache", code, says)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX: pipes with names")
def test_a_pipe_in_a_files_place(filled, tmp_path):
    """Nobody waits for what it never says."""
    for file in files(Path(shutil.copytree(filled, tmp_path / "cache"))):
        file.unlink()
        os.mkfifo(file, 0o600)
    assert run(tmp_path / "cache") == "right"


MANY = """
import random, sys, threading
import numpy as np, nbkernels as nb
x, long = np.ones((300, 300), np.float32), np.ones(200_000, np.float32)
calls = [
    lambda: (nb.add(x, x.T) == 2).all(), lambda: (nb.add(long, long) == 2).all(),
    lambda: nb.add.at(np.ones(9), 0, 1) is None,
    lambda: (nb.add.accumulate(x[:9], axis=0)[-1] == 9).all(), lambda: (nb.fuse(lambda a: a * 3, x) == 3).all(),
]
def work(number):
    own = calls * 3
    random.Random(number).shuffle(own)
    for call in own:
        if not call():
            wrong.append(number)
    over.append(number)
wrong, over, count = [], [], int(sys.argv[1])
threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit(bool(wrong) or len(over) != count)
"""


def test_threads_load_and_compile_at_once(filled, tmp_path):
    """16 of them, with some kernels on disk, others not, and some that another process puts there meanwhile."""
    cache = Path(shutil.copytree(filled, tmp_path / "cache"))
    environment = dict(os.environ, NBKERNELS_CACHE_DIR=str(cache), NUMBA_NUM_THREADS="4", PYTHONWARNINGS="ignore")

    def started(count, layer):
        command = [sys.executable, "-X", "faulthandler", "-c", MANY, str(count)]
        own = environment | {"NUMBA_THREADING_LAYER": layer}
        return subprocess.Popen(command, env=own, stderr=subprocess.PIPE, text=True)

    for layer in ("omp", "workqueue")[: 1 + EVERY]:  # from every second kernel of few, then of all
        for file in list(files(cache))[::2]:
            file.unlink()
        for process in [started(1, layer), started(16, layer)]:
            assert process.communicate(timeout=300)[1] == ""
            assert process.returncode == 0
    assert not list(cache.rglob("*.tmp"))


def test_another_cpu_or_option_does_not_load_this_ones_code(filled):
    before = set(files(filled))
    assert run(filled, NUMBA_OPT="2") == "right"
    assert {file.parent for file in set(files(filled)) - before}.isdisjoint({file.parent for file in before})


ENTRY = """
import sys, numpy as np
from nbkernels.jit.compile.cache import entry
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


def test_what_may_raise_where_nobody_would_see_it_is_not_compiled():
    """A C function gives exceptions to nobody: LLVM must find that there is none."""

    def picky(x):
        if x == 3:
            raise ValueError("three")
        return x

    def quotient(x):
        return 1 // x + int(1.0 / x) + int(float(x) ** -3)  # which Numba compiles on its own behalf

    with pytest.raises(errors.UnsupportedError, match="test_picky may raise an exception"):
        compiler.compiled(picky, "int64(int64)", "test_picky")
    assert compiler.compiled(quotient, "int64(int64)", "test_quotient")
    assert compiler.entry(picky, "int64(int64)", "test_picky_entry")(2) == 2
    with pytest.raises(ValueError, match="three"):
        compiler.entry(picky, "int64(int64)", "test_picky_entry")(3)


def test_what_python_reads_of_an_entry_is_never_freed():
    """Not at exit either, when modules go before functions: a function that goes reads its definition."""

    def definitions():
        return [each for each in gc.get_objects() if type(each) is load._Method]

    def seven():
        return 7

    known = set(map(id, definitions()))
    run = compiler.entry(seven, "int64()", "test_seven")
    (made,) = (weakref.ref(each) for each in definitions() if id(each) not in known)
    load._ALIVE[:] = [each for each in load._ALIVE if type(each) is not load._Method]
    gc.collect()
    assert run() == 7
    assert made() is not None


def test_what_compiled_code_knows_by_its_address_is_one_and_stays():
    """Threads that ask first at once, each of which makes it, get the same; it outlives what empties the cache."""
    both = threading.Barrier(2)

    @lasting
    def made(number):
        both.wait(60)
        return np.zeros(number)

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(made, (5, 5))
    assert one is other is made(5)
    kept = weakref.ref(one)
    made.cache_clear()
    del one, other
    gc.collect()
    assert kept() is not None


def test_a_function_in_a_loop_may_not_raise():
    def picky(x):
        if x == 3:
            raise ValueError("three")
        return x

    def emit(context, builder, x):
        kind = types.int64(types.int64)
        context.call_internal(builder, subroutine(context, picky, kind), kind, [x])

    with pytest.raises(errors.UnsupportedError, match="test_picky_loop may raise an exception"):
        ir_function(emit, "x", "test_picky_loop")


def test_a_range_of_step_0_is_one_of_step_1():
    """It would be an exception."""

    def total(n, step):
        found = 0
        for i in range(0, n, step):
            found += i
        return found

    run = compiler.entry(total, "int64(int64, int64)", "test_total")
    assert [run(10, step) for step in (1, 0, 3, -1)] == [45, 45, 18, 0]
    assert compiler.compiled(total, "int64(int64, int64)", "test_total")


def test_others_keep_their_error_model():
    """What users compile by themselves raises where Numba has it raise, and is not mixed up with ours."""

    def root(z):
        return cmath.sqrt(z)

    ours = compiler.entry(root, "complex128(complex128)", "test_root")
    for model in ("python", "numpy"):
        with pytest.raises(ZeroDivisionError):
            numba.njit(error_model=model)(root)(5e-324j)
        assert ours(5e-324j) == compiler.entry(root, "complex128(complex128)", f"test_root_{model}")(5e-324j) != 0


def test_the_collector_rests_in_compilations_and_nowhere_else(monkeypatch):
    """Also where one fails, and where threads compile at once."""
    monkeypatch.setattr(compiler.Place, "load", lambda *_: None)
    monkeypatch.setattr(compiler.Place, "save", lambda *_: seen.append(gc.isenabled()))
    seen = []

    def compilation(number):
        compiler.entry(lambda x: x + number, "int64(int64)", f"test_collector_{number}")

    compilation(0)
    assert seen == [False]
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
