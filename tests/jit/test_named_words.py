"""Record: words by their names, from compiled code and from Python."""

import pytest
from numba import types

from nbkernels.jit.abi.record import Record, address
from nbkernels.jit.abi.sharing import take
from nbkernels.jit.compile import known
from nbkernels.jit.compile.cache import entry
from nbkernels.jit.compile.lazy import jit

PAIR = Record("Pair", "next | m n room")
OTHER = Record("Pair", "room n")  # of the same name
ALONE = Record("Alone", "room")
pair_at, other_at, NEXT = PAIR.pointer(), OTHER.pointer(), PAIR["next"]


@jit(forceinline=True)
def turned(f):
    f.m, f.n = f.n, f.m


def test_compiled_code_and_python_agree():
    def run(words):
        f = pair_at(words)
        turned(f)
        f.m += take(f, NEXT)
        f.room = f.m == 9
        other = other_at(address(f))
        other.n = 4
        return f[NEXT]

    f = PAIR.array()
    f.next, f.m, f.n = 7, 1, 2
    assert entry(run, "int64(int64)", "test_named_words")(f.buffer_info()[0]) == 8
    assert (f.next, f[1], f.m, f.n, f.room) == (8, 4, 9, 1, 1)
    assert PAIR.array(f.tobytes()) == f


def test_lines_and_sizes():
    assert (PAIR["next"], PAIR["m"], PAIR["room"], PAIR.words, PAIR.bytes) == (0, 8, 10, 16, 128)


def test_types_are_told_apart():
    assert known.record_type(PAIR) != known.record_type(OTHER)
    with pytest.raises(TypeError, match="2 records are called Pair"):
        known.signature(PAIR.kernel)
    assert known.signature(ALONE.kernel) == types.void(known.record_type(ALONE), types.int64)


ROWS = Record("Rows", "count starts[3] last")
SHORTER = Record("Rows", "count starts[2] gap last")
rows_at = ROWS.pointer()


def test_a_name_of_several_words():
    def run(words):
        f = rows_at(words)
        for p in range(f.count):
            f.starts[p] += f.last + p
        f.last = f.starts[2]

    f = ROWS.array()
    f.starts = 0, 10, 0
    f.count, f.last = 3, 5
    entry(run, "void(int64)", "test_named_rows")(f.buffer_info()[0])
    assert f.tolist() == [3, 5, 16, 7, 7, 0, 0, 0]
    assert list(f.starts) == [5, 16, 7]
    assert known.record_type(ROWS) != known.record_type(SHORTER)
