"""The tuner's winners are used where they can be, told of, and never felt: not in bits, not by a second reading."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

import nbkernels as nb
from nbkernels import info
from nbkernels.cpu import gemm, kinds, packed, tiles, tuned
from nbkernels.cpu.status import GEMV, PACKED
from nbkernels.jit import files, levels
from nbkernels.store import Store

PLAIN = kinds.kind_of("float32", "float32", "float32")


def forget():
    for known in [known for *_, known in gemm._entries.values() if known is not None]:
        known[1 + 2 * (PACKED - GEMV)] = 0
    for each in (tuned.tuned, kinds.default_tiles, gemm._plain, gemm._planned, packed._table):
        each.cache_clear()


@pytest.fixture
def table(monkeypatch, tmp_path):
    """The store of a directory of its own."""
    monkeypatch.setattr(files, "directory", lambda: tmp_path)
    monkeypatch.setenv("NBKERNELS_TUNED", "1")
    forget()
    yield tuned.store()
    forget()


def winner():
    """Legal tiles that are not the derived ones, and need no new code."""
    base = tiles.default("float32")
    found = replace(base, kc=40, nb=base.nr, mc=2 * base.mr, nc=2 * base.nr)
    assert not tiles.illegal(found, "float32")
    return found


def test_a_winner_is_used_and_told(table):
    a, b = np.random.default_rng(0).standard_normal((2, 600, 600)).astype(np.float32)
    half = a[:70, :90].astype(np.float16)
    before = nb.mm(a, b), nb.mm(half, half.T), nb.mm(half, half.T, out_dtype="float32")
    assert kinds.default_tiles(PLAIN) == tiles.default("float32")
    assert "tuned" not in nb.explain(nb.mm, a, b).tile
    assert table.put(tuned.key("float32"), winner(), 1.0)
    forget()
    assert kinds.default_tiles(PLAIN) == winner()
    for left, to, kind in (("float16", "float32", winner()), ("float64", "float64", tiles.default("float64"))):
        assert kinds.default_tiles(kinds.kind_of(left, left, to)) == kind
    assert kinds.default_tiles(kinds.kind_of("int32", "int32", "int32")).kc == tiles.default("float32").kc
    assert nb.explain(nb.mm, a, b).tile == f"{winner()}, tuned"
    assert str(winner()) in str(gemm.describe(600, 600, 600))
    assert "by the tuner" in info.cut("float32")
    assert "derived" in info.cut("float64")
    after = nb.mm(a, b), nb.mm(half, half.T), nb.mm(half, half.T, out_dtype="float32")
    for one, other in zip(before, after):
        np.testing.assert_array_equal(one, other)


def test_it_can_be_switched_off(table, monkeypatch):
    assert table.put(tuned.key("float32"), winner(), 1.0)
    monkeypatch.setenv("NBKERNELS_TUNED", "0")
    assert kinds.default_tiles(PLAIN) == tiles.default("float32")


def test_it_is_read_once(table, monkeypatch):
    reads, real = [], Store.entries
    monkeypatch.setattr(Store, "entries", lambda self: reads.append(1) or real(self))
    a = np.ones((600, 600), np.float32)
    for _ in range(3):
        nb.mm(a, a)
        nb.mm(a[:5, :5], a[:5, :5])
    assert len(reads) == 1


BROKEN = {
    "another field": dict(mr=8, nr=48, kc=8),
    "strings": dict.fromkeys(("mr", "nr", "kc", "nb", "mc", "nc"), "8"),
    "floats": dict.fromkeys(("mr", "nr", "kc", "nb", "mc", "nc"), 8.0),
    "bools": dict.fromkeys(("mr", "nr", "kc", "nb", "mc", "nc"), True),
    "zeros": dict.fromkeys(("mr", "nr", "kc", "nb", "mc", "nc"), 0),
    "too many accumulators": asdict(replace(tiles.default("float32"), mr=31, mc=31)),
    "past a segment": asdict(replace(tiles.default("float32"), kc=5000)),
    "no multiple": asdict(replace(tiles.default("float32"), mc=4097)),
    "astronomical": asdict(replace(tiles.default("float32"), mc=tiles.default("float32").mr << 70)),
    "a list": [8, 48, 8],
    "null": None,
}


@pytest.mark.parametrize("candidate", BROKEN)
def test_what_cannot_be_used_is_not_there(table, candidate):
    table.path.write_text(json.dumps({tuned.key("float32"): {"candidate": BROKEN[candidate], "seconds": 1.0}}))
    assert kinds.default_tiles(PLAIN) == tiles.default("float32")


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00\xff", "[" * 100_000, '{"gemm float32": 3}'])
def test_a_broken_file_is_no_table(table, text):
    table.path.write_bytes(text.encode("latin-1"))
    assert kinds.default_tiles(PLAIN) == tiles.default("float32")


def test_another_machines_winners_are_its_own(table, monkeypatch):
    assert table.put(tuned.key("float32"), winner(), 1.0)
    triple, _, features = levels.target()
    monkeypatch.setattr(levels, "target", lambda: (triple, "another", features))
    assert tuned.tuned("float32") is None
    monkeypatch.undo()
    monkeypatch.setattr(tuned, "caches", lambda: (1, 2))
    tuned.tuned.cache_clear()
    assert tuned.tuned("float32") is None
    monkeypatch.setattr(files, "directory", lambda: None)
    tuned.tuned.cache_clear()
    assert tuned.tuned("float32") is None
