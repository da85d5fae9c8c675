"""A process whose compiled code is on disk runs it without Numba, and goes on as ever once Numba is there."""

import os
import subprocess
import sys

import pytest

from nbkernels.jit.compile.cache import Place
from nbkernels.jit.compile.routine import routine
from nbkernels.jit.disk import files
from nbkernels.jit.disk.load import Code

CALLS = """
import math, sys
import numpy as np, nbkernels as nb

def soft(x, y):
    return math.log1p(math.exp(x)) * y

for dtype in ("float32", "int32"):
    x, large = np.ones((40, 40), dtype), np.ones((200, 300), dtype)
    assert (nb.mm(x, x) == 40).all() and (nb.addmm(x, x, x) == 41).all() and (nb.bmm(x[None], x[None]) == 40).all()
    assert (nb.mm(large, large.T) == 300).all() and (nb.mv(x, x[0]) == 40).all() and nb.dot(x[0], x[0]) == 40
    assert (nb.add(x, x[0]) == 2).all() and (nb.add(large, large.T[0, 0]) == 2).all() and (nb.multiply(x, 2) == 2).all()
    assert (nb.add.reduce(x, axis=0) == 40).all() and (nb.add.accumulate(x)[-1] == 40).all()
    assert np.allclose(nb.exp(x), np.exp(x), rtol=1e-2)
assert (nb.linear(x, x, x[0]) == 41).all() and (nb.fuse(lambda a: a * a + 1, x.real) == 2).all()
assert np.allclose(nb.elementwise(soft)(x.real, x.real), soft(1, 1))
big = np.ones((700, 700), np.float32)
assert (nb.mm(big, big) == 700).all() and (nb.add(big, big.T) == 2).all() and nb.sum_to(big, ()) == 490_000
"""

LATER = """
from nbkernels.cpu.runtime import threads
from nbkernels.jit.compile.cache import entry
assert "numba" not in sys.modules, "numba is imported"
before = threads.count()
import numba
assert threads.count() == before > 1
numba.set_num_threads(1)
assert threads.count() == 1 == numba.get_num_threads()
assert (nb.mm(big, big) == 700).all()

def workers(words):
    return threads.workers(threads.pool_at(words))

assert entry(workers, "int64(int64)", "test_workers")(threads.WORDS) == 1
numba.set_num_threads(before)
assert entry(workers, "int64(int64)", "test_workers")(threads.WORDS) == before
assert numba.njit(lambda x: x + 1)(1) == 2
assert (nb.mm(np.ones((9, 7), np.uint16), np.ones((7, 9), np.uint16)) == 7).all()
print("right")
"""


def run(code):
    """A process that finds what the tests have compiled, and keeps what it compiles beside it."""
    environment = os.environ | {"NBKERNELS_FIRST_CALLS": "0", "NUMBA_NUM_THREADS": "2"}
    environment.pop("OMP_NUM_THREADS", None)
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=300,
                          env=environment)  # fmt: skip


def test_everyday_calls():
    filled = run(CALLS)
    assert filled.returncode == 0, filled.stderr
    again = run(CALLS + LATER)
    assert (again.stdout, again.returncode) == ("right\n", 0), again.stderr


def test_the_target_is_numbas():
    """By another way than Numba's: code that one finds is the other's."""
    code = "import sys\nfrom nbkernels.jit.disk import settings\nfound = settings.target()\n"
    code += "assert 'numba' not in sys.modules\nimport numba\nassert settings.target() == found\n"
    code += "assert settings.cores() == numba.config.NUMBA_NUM_THREADS"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=100)
    assert result.returncode == 0, result.stderr


OUTSIDE = """
import ctypes
from llvmlite import binding, ir
from nbkernels.jit.compile.routine import routine

def define(module, name):
    kind = ir.FunctionType(ir.VoidType(), [])
    builder = ir.IRBuilder(ir.Function(module, kind, name).append_basic_block("entry"))
    builder.call(ir.Function(module, kind, "test_only_there"), [])
    builder.ret_void()

there = ctypes.CFUNCTYPE(None)(lambda: print("called"))
binding.add_symbol("test_only_there", ctypes.cast(there, ctypes.c_void_p).value)
ctypes.CFUNCTYPE(None)(routine("test_outside", define))()
"""


def test_code_whose_symbols_this_process_lacks_is_not_loaded():
    """LLVM would link it, and take each of them for 0: Python's, too."""
    assert run(OUTSIDE).stdout == run(OUTSIDE).stdout == "called\n"
    place = Place(f"{routine.__module__}.test_outside", "", "native")
    files_there = [file for _, file in place._places() if file.exists()]
    assert len(files_there) == 1
    assert place.load() is None
    with pytest.raises(ImportError, match=r"test_outside: this process has no symbol test_only_there"):
        Code(files.read(files_there[0]))
