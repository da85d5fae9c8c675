"""The tuner's winners are used where they can be, told of, and never felt: not in bits, not by a second reading."""

import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest

import nbkernels as nb
from nbkernels import problem, winners
from nbkernels.commands import info
from nbkernels.cpu.gemm import blocking as tiles
from nbkernels.cpu.gemm import cost, kinds, tuned
from nbkernels.cpu.gemm.paths import only
from nbkernels.cpu.runtime import machine
from nbkernels.cpu.runtime.invalidate import renew
from nbkernels.cpu.runtime.status import PACKED
from nbkernels.jit.compile.cache import entry
from nbkernels.jit.disk import files, levels
from nbkernels.problem import CLASSES, LAYOUTS
from nbkernels.store import Store

PLAIN = kinds.kind_of("float32", "float32", "float32")
SQUARE = 0  # the slot of NN


def key(which=SQUARE, name="float32"):
    return winners.key(name, which, machine.place())


@pytest.fixture
def table(monkeypatch, tmp_path):
    """The store of a directory of its own."""
    monkeypatch.setattr(files, "directory", lambda: tmp_path / "toolchain")
    monkeypatch.setenv("NBKERNELS_TUNED", "1")
    renew()
    yield winners.store()
    monkeypatch.undo()
    renew()


def winner():
    """Legal tiles that are not the derived ones, and need no new code."""
    base = tiles.default("float32")
    found = replace(base, kc=40, nb=base.nr, mc=2 * base.mr, nc=2 * base.nr)
    assert not tiles.illegal(found, "float32")
    return found


def test_a_winner_is_used_and_told(table):
    a, b = np.random.default_rng(0).standard_normal((2, 600, 600)).astype(np.float32)
    half = a[:70, :90].astype(np.float16)

    def results():
        return [nb.mm(a, b), nb.mm(a.T, b), nb.mm(half, half.T), nb.mm(half, half.T, out_dtype="float32")]

    before = results()
    assert kinds.tiles_of(PLAIN, SQUARE) == tiles.default("float32")
    with only(PACKED):
        assert nb.explain(nb.mm, a, b).tile == str(tiles.default("float32"))
    assert table.put(key(), winner(), 1.0)
    renew()
    assert kinds.tiles_of(PLAIN, SQUARE) == winner()
    for left, to, cut in (("float16", "float32", winner()), ("float64", "float64", tiles.default("float64"))):
        assert kinds.tiles_of(kinds.kind_of(left, left, to), SQUARE) == cut
    assert kinds.tiles_of(kinds.kind_of("int32", "int32", "int32"), SQUARE).kc == tiles.default("float32").kc
    with only(PACKED):
        assert nb.explain(nb.mm, a, b).tile == f"{winner()}, tuned"
        assert nb.explain(nb.mm, a.T, b).tile == str(tiles.default("float32"))  # another layout
        assert nb.explain(nb.mm, a, b, out=np.empty((600, 600), "f4", order="F")).tile == str(tiles.default("float32"))
        assert nb.explain(nb.mm, a.T, b.T, out=np.empty((600, 600), "f4", order="F")).tile == f"{winner()}, tuned"
        deep = np.empty((150, 2400), "f4")
        assert nb.explain(nb.mm, deep, deep.T.copy()).tile == str(tiles.default("float32"))  # another shape
    assert "by the tuner in 1 of 20" in info.cut("float32")
    assert "tuner" not in info.cut("float64")
    assert any(line.startswith("float32 square NN: mr=") for line in info.winners())
    for one, other in zip(before, results()):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_compiled_code_takes_the_slot_that_python_does(table, name, layout):
    """A winner of one slot changes the tiles of the products in it, and no bit of any."""
    sizes = {"square": (330, 330, 330), "tall": (1400, 60, 520), "wide": (60, 1400, 520), "deep": (140, 140, 600),
             "flat": (700, 700, 90)}  # fmt: skip
    m, n, k = sizes[name]
    rng = np.random.default_rng(1)
    a, b = (np.array(rng.standard_normal(s), "f4", order="CF"[t == "T"]) for s, t in zip(((m, k), (k, n)), layout))
    which = 4 * CLASSES.index(name) + LAYOUTS.index(layout)
    assert tuned.slot_of(np.empty((m, n), "f4"), a, b) == which
    for order in "CF":
        out = np.empty((m, n), "f4", order=order)
        assert tuned.slot_of(out, a, b) == problem.slot(m, n, k, layout[0] == "T", layout[1] == "T", order == "F")
    assert table.put(key(which), winner(), 1.0)
    expected = nb.mm(a, b)
    renew()
    for _ in range(2):
        np.testing.assert_array_equal(nb.mm(a, b), expected)
    assert [which for which in range(tuned.SLOTS) if tuned.tuned(PLAIN, which)] == [which]


def test_it_can_be_switched_off(table, monkeypatch):
    assert table.put(key(), winner(), 1.0)
    renew()
    assert kinds.tiles_of(PLAIN, SQUARE) == winner()
    monkeypatch.setenv("NBKERNELS_TUNED", "0")
    renew()
    assert kinds.tiles_of(PLAIN, SQUARE) == tiles.default("float32")
    assert any("NBKERNELS_TUNED=0" in line for line in info.winners())


def test_it_is_read_once(table, monkeypatch):
    reads, real = [], Store.entries
    monkeypatch.setattr(Store, "entries", lambda self: reads.append(1) or real(self))
    renew()
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
    table.path.write_text(json.dumps({key(): {"candidate": BROKEN[candidate], "seconds": 1.0}}))
    renew()
    assert kinds.tiles_of(PLAIN, SQUARE) == tiles.default("float32")


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00\xff", "[" * 100_000, '{"gemm float32": 3}'])
def test_a_broken_file_is_no_table(table, text):
    table.path.write_bytes(text.encode("latin-1"))
    renew()
    assert kinds.tiles_of(PLAIN, SQUARE) == tiles.default("float32")


def test_another_machines_winners_are_its_own(table, monkeypatch):
    assert table.put(key(), winner(), 1.0)
    renew()
    assert tuned.tuned(PLAIN, SQUARE) == winner()
    for change in (
        (levels, "target", lambda: ("", "another", "")),
        (machine, "machine", lambda: machine.Machine(1 << 14)),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(*change)
            renew()
            assert tuned.tuned(PLAIN, SQUARE) is None
    with monkeypatch.context() as patch:
        patch.setattr(files, "directory", lambda: None)
        renew()
        assert tuned.tuned(PLAIN, SQUARE) is None
        assert list(info.winners()) == []


def test_the_costs_that_paths_go_by(table, monkeypatch):
    """They are read by Python and by compiled code, go before what is stated, and change no bit."""
    read = entry(lambda: cost.known()[0], "float64()", "test_costs")
    a = np.random.default_rng(0).standard_normal((400, 300)).astype("f4")
    expected, key = nb.mm(a, a.T), machine.plan_key("float32")
    own, other = cost.KINDS[cost.kind()]["table"], next(kind for kind in cost.KINDS if kind != cost.kind())
    fitted = cost.KINDS[other]["costs"]["float32"]
    sound = {"kind": other, "features": cost.FEATURES, "costs": fitted}
    assert table.add({key: {"candidate": sound, "seconds": 0, "ratio": 1.25}})
    assert read() == own[0]
    renew()
    assert read() == fitted["1"]["thin"][0] == cost.table[0] != own[0]
    assert cost.table[len(own) // 2 :] == own[len(own) // 2 :]
    np.testing.assert_array_equal(nb.mm(a, a.T), expected)
    assert f"paths of float32 by costs of this machine, fitted from those of {other}: 1.25x" in info.winners()
    less, nan, more = ({**fitted, "1": fitted["1"] | {"thin": [each] * cost.COUNT}} for each in (-1, math.nan, 10**400))
    lacks = {**fitted, "1": {"packed": fitted["1"]["packed"]}}
    wrong = [sound | {"costs": each} for each in (less, nan, more, lacks, {}, {"1": fitted["1"]}, [3], None, "avx2")]
    wrong += [sound | {"kind": each} for each in ("none", [3], None)] + [{"costs": other}, {}, [3], None]
    wrong += [sound | {"features": each} for each in (cost.FEATURES[1:], 3)]
    for each in wrong:
        assert table.add({key: {"candidate": each}})
        renew()
        assert (cost.fitted("float32"), read(), cost.table) == (None, own[0], own), each


def test_what_others_can_write_is_not_read(table):
    assert table.put(key(), winner(), 1.0)
    table.path.chmod(0o666)
    renew()
    assert winners.store() is None
    assert kinds.tiles_of(PLAIN, SQUARE) == tiles.default("float32")


def test_winners_of_older_versions_are_used_and_offered_again(table):
    old = {
        "candidate": asdict(winner()),
        "seconds": 1.0,
        "ratio": 1.2,
        "versions": {"numba": "0.1"},
        "date": "2020-01-01",
    }
    assert table.add({key(): old})
    renew()
    assert kinds.tiles_of(PLAIN, SQUARE) == winner()
    (line,) = [line for line in info.winners() if "float32 square NN" in line]
    assert "1.20x" in line
    assert "numba 0.1" in line
    assert "tune again?" in line
