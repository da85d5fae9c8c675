"""The tuner: what it is asked, who wins its races, what it keeps; with a device whose clock is a function."""

import csv
import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbkernels.plots import blocks, draw
from nbkernels.problem import CLASSES, shape_class
from nbkernels.store import Store
from nbkernels.tuning import ask, command, keep, race, run
from nbkernels.tuning.result import Row, Tuning
from tests.tuning.tuner import Device, Tiles, best_at


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tiles.json"


@pytest.fixture(autouse=True)
def no_machine(monkeypatch):
    """Peaks and paths are those of a real machine."""
    monkeypatch.setattr(run, "_machine", lambda *_: None)


def rows_of(speeds, k, default):
    """Rows of products whose k is this, from {(kc, nb): speed over the default's}."""
    made = [Row((64, 64, k), "square", "float32", "NN", 1, "cpu", {"kc": kc, "nb": nb}, 1 / ratio, ratio, 1,
                "default" if (kc, nb) == default else "") for (kc, nb), ratio in speeds.items()]  # fmt: skip
    return Tuning({}, ("kc", "nb"), made)


def test_the_fastest_is_the_same_in_the_table_and_the_picture():
    """That of the highest ratio, the default too; whose kc counts as far as k goes, so that it adds no column."""
    speeds = {(1024, 64): 1.0, (128, 64): 0.8, (512, 64): 0.9, (128, 32): 1.1, (512, 32): 0.7}
    for slower in (False, True):
        if slower:
            speeds[128, 32] = 0.95
        found = rows_of(speeds, 512, (1024, 64))
        (grid,) = draw.heat(found, "kc", "nb")
        assert (grid.xs, grid.ys, grid.mark) == ([128, 512], [32, 64], (512, 64))
        tiles, *_ = found.candidates("square")[0]
        assert grid.fastest == (min(tiles["kc"], 512), tiles["nb"]) == ((512, 64) if slower else (128, 32))
        values = {(x, y): grid.values[j][i] for i, x in enumerate(grid.xs) for j, y in enumerate(grid.ys)}
        assert max(values, key=values.get) == grid.fastest
        assert blocks.heat(grid).splitlines()[-2:] == [
            f"fastest: kc {grid.fastest[0]}, nb {grid.fastest[1]}", "default: kc 512, nb 64"]  # fmt: skip


# -- what is asked -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ask.shapes("squre"), "three sizes M N K or one of square, tall"),
        (lambda: ask.shapes((0, 1, 2)), "whole numbers M N K from 1"),
        (lambda: ask.shapes([(1, 2)]), "three whole numbers"),
        (lambda: ask.shapes((10**9, 1, 1)), "from 1 to 65536"),
        (lambda: ask.layouts("NX"), "one of NN, NT, TN, TT"),
        (lambda: ask.tiles(["kc"], ("kc",)), "NAME=SIZES is wanted"),
        (lambda: ask.tiles(["kd=3"], ("kc",)), "'kd': there are kc"),
        (lambda: ask.tiles(["kc=8:4"], ("kc",)), "'8:4' is empty"),
        (lambda: ask.tiles(["kc=0"], ("kc",)), "'0' is no size"),
        (lambda: ask.tiles(["kc=-1"], ("kc",)), "'-1' is no size"),
        (lambda: ask.tiles(["kc=1:2:0"], ("kc",)), "is no size"),
        (lambda: ask.tiles(["kc="], ("kc",)), "is no size"),
        (lambda: ask.tiles({"kc": []}, ("kc",)), "positive whole numbers"),
        (lambda: ask.tiles({"kc": [1.5]}, ("kc",)), "positive whole numbers"),
        (lambda: ask.tiles(["stages=3"], ("bm",)), "two slices"),
        (lambda: ask.tiles(["kc=1:16777216:1"], ("kc",)), "more than 100000"),
    ],
)
def test_what_cannot_be_asked_says_so_in_a_line(call, words):
    with pytest.raises(ask.Impossible, match=words) as error:
        call()
    assert "\n" not in str(error.value)
    assert isinstance(error.value, ValueError)


@given(st.text("0123456789:,x-", max_size=12))
def test_sizes_are_read_or_refused(text):
    try:
        found = ask.values(text)
    except ask.Impossible:
        return
    assert found
    assert all(0 < size <= 1 << 24 for size in found)
    assert len(set(found)) == len(found)


def test_sizes_of_every_class_are_of_it():
    for name, shapes in ask.SIZES.items():
        assert {CLASSES[shape_class(*shape)] for shape in shapes} == {name}
    assert set(ask.SIZES) == set(CLASSES) == set(command.CLASSES)
    assert command.BUDGET == run.BUDGET


def test_the_grid_says_why_tiles_are_left_out():
    found, reasons = ask.grid({"kc": [1, 2, 3, 4]}, lambda s: Tiles(**s), lambda t: ("odd",) if t.kc % 2 else ())
    assert found == [Tiles(2), Tiles(4)]
    assert reasons == {"odd": 2}
    with pytest.raises(ask.Impossible, match="combinations"):
        ask.grid({"kc": range(1000), "nb": range(1000)}, Tiles, len)


# -- races -------------------------------------------------------------------------------------------------------------


def lanes(count=2):
    return [(8, 8, 8, "NN", i) for i in range(count)]


def raced(sample, candidates, **words):
    found = race.Race(sample, Tiles(100), lanes(), **words)
    return found, found.run(candidates)


def test_the_fastest_wins_while_the_machine_drifts():
    """By a twentieth, on a machine that grows slower by half, with noise of a hundredth."""
    made, noise = [0], random.Random(3)

    def sample(tiles, lane):
        made[0] += 1
        drift = 1 + made[0] / 600
        return 0.01 * drift * (0.95 if tiles.kc == 70 else 1.0) * (1 + 0.01 * noise.random())

    found, ranked = raced(sample, [Tiles(kc) for kc in range(10, 200, 10)])
    assert ranked[0] == Tiles(70)
    assert found.score(Tiles(70)) == pytest.approx(0.95, abs=0.03)
    assert found.done == found.total


def test_halving_measures_the_good_ones_more():
    found, ranked = raced(best_at(50), [Tiles(kc) for kc in range(10, 200, 10)])
    counts = {tiles.kc: len(found.ratios[tiles][lanes()[0]]) for tiles in ranked}
    assert ranked[0] == Tiles(50)
    assert counts[50] > counts[190] == 1


def test_who_fails_is_left_out_and_told():
    def sample(tiles, lane):
        if tiles.kc == 50:
            raise RuntimeError("does not compile\nat length")
        return best_at(50)(tiles, lane)

    found, ranked = raced(sample, [Tiles(kc) for kc in (40, 50, 60, 70, 80, 90)])
    assert found.failed == {Tiles(50): "RuntimeError: does not compile"}
    assert Tiles(50) not in ranked
    assert ranked[0] in (Tiles(40), Tiles(60))


@pytest.mark.parametrize("wrong", [-1.0, 0.0, math.nan, math.inf, 1e6])
def test_a_clock_that_jumps_now_and_then_is_not_believed(wrong):
    made = [0]

    def sample(tiles, lane):
        made[0] += 1
        return wrong if made[0] % 5 == 3 else best_at(50)(tiles, lane)

    found, ranked = raced(sample, [Tiles(kc) for kc in range(10, 200, 10)])
    assert ranked[0] == Tiles(50)
    assert all(0.3 < each < 3 for ratios in found.ratios.values() for own in ratios.values() for each in own)
    assert race.convincing(race.versus(sample, Tiles(100), Tiles(50), lanes(), rounds=9))


def test_a_clock_that_always_jumps_is_an_error():
    with pytest.raises(ArithmeticError, match="clock of this machine jumps"):
        raced(lambda tiles, lane: -1.0, [Tiles(10)])
    with pytest.raises(ArithmeticError, match="clock of this machine jumps"):
        race.versus(lambda tiles, lane: math.nan, Tiles(100), Tiles(50), lanes(1))


def test_the_end_ends_it():
    now = [0.0]

    def sample(tiles, lane):
        now[0] += 1
        return 0.01

    found, _ = raced(sample, [Tiles(kc) for kc in range(10, 2000, 10)], end=30, clock=lambda: now[0])
    assert now[0] < 40
    assert found.over


def test_the_default_never_convinces_against_itself():
    for seed in range(20):
        noise = random.Random(seed)
        found = race.versus(lambda t, lane, n=noise: 0.01 * (1 + 0.1 * n.random()), Tiles(100), Tiles(50), lanes(3))
        assert not race.convincing(found)
    assert not race.convincing([])


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_a_winner_is_kept_with_all_that_was_measured(path):
    side = Device(best_at(40), path)
    found = run.tune("square", side=side, layout=["NN", "TN"], budget=30)
    assert [final.layout for final in found.kept] == ["NN", "TN"]
    assert {final.tiles["kc"] for final in found.kept} <= {40, 42}
    entries = side.kept.entries()
    assert set(entries) == {side.key("square", layout) for layout in ("NN", "TN")}
    entry = entries[side.key("square", "NN")]
    assert entry["ratio"] > 1.3
    assert entry["versions"] == keep.versions()
    assert len(entry["lanes"]) == 3 * 2  # shapes, threads
    assert side.renewed == 2
    text = str(found)
    assert "winner" in text
    assert "default" in text
    assert "noise" in text
    assert {row.mark for row in found.rows} == {"", "default", "winner"}


@pytest.mark.parametrize("lane", [(600, 600, 600, "NN", 2), (1536, 1536, 1536, "NN", 1)])
def test_who_is_slower_anywhere_is_not_kept(path, lane):
    def speed(tiles, where):
        return 0.01 if tiles == Device.default or where == lane else 0.005

    side = Device(speed, path)
    found = run.tune("square", side=side, layout="NN", budget=30)
    assert found.kept == []
    assert not path.exists()
    assert "the default stays" in str(found)


def test_a_gain_of_two_hundredths_is_not_kept(path):
    side = Device(lambda tiles, lane: 0.0098 if tiles.kc == 40 else 0.01, path, noise=0.001)
    found = run.tune("square", side=side, layout="NN", budget=30)
    assert found.kept == []
    assert found.finals == [] or "not faster by enough" in found.finals[0].why


def test_a_winner_of_old_that_is_none_any_more_goes(path):
    side = Device(lambda tiles, lane: 0.01 if tiles == Device.default or lane[-1] == 1 else 0.005, path)
    side.kept.add({side.key("square", "NN"): {"candidate": {"kc": 1}}, "gemm x": {"candidate": {"kc": 2}}})
    run.tune("square", side=side, layout="NN", budget=30)
    assert set(side.kept.entries()) == {"gemm x"}


def test_nothing_is_kept_where_that_is_asked_or_cannot_be(path):
    side = Device(best_at(40), path)
    found = run.tune("square", side=side, layout="NN", save=False, budget=30)
    assert (found.kept, path.exists()) == ([], False)
    (path.parent / "file").write_text("")
    side = Device(best_at(40), path.parent / "file" / "tiles.json")
    found = run.tune("square", side=side, layout="NN", budget=30)
    assert found.kept == []
    assert "cannot be written" in str(found)
    side = Device(best_at(40), path)
    side.store = lambda: None
    assert "nothing can be kept" in str(run.tune("square", side=side, layout="NN", budget=30))


def test_ctrl_c_keeps_what_was_measured(path):
    side = Device(best_at(40), path)
    count = [0]

    def speed(tiles, lane):
        count[0] += 1
        if lane[0] == 2600 and tiles != Device.default:
            raise KeyboardInterrupt
        return best_at(40)(tiles, lane)

    side.speed = speed
    found = run.tune(["square", "tall", "wide"], side=side, layout="NN", budget=30)
    assert found.interrupted
    assert [final.shape_class for final in found.kept] == ["square"]
    assert {row.shape_class for row in found.rows} == {"square", "tall"}  # of tall the default alone
    assert "interrupted" in str(found)
    run.tune("square", side=Device(best_at(40), path), layout="NN", budget=30)  # the lock is free again


def test_a_clock_that_jumps_in_one_class_leaves_the_others(path):
    side = Device(lambda tiles, lane: -1.0 if lane[0] == 2600 else best_at(40)(tiles, lane), path)
    found = run.tune(["tall", "square"], side=side, layout="NN", budget=30)
    assert [final.shape_class for final in found.kept] == ["square"]
    assert "tall: the clock of this machine jumps" in str(found)


def test_one_tune_at_a_time(path):
    side = Device(best_at(40), path)
    with keep.alone(side.kept), pytest.raises(keep.Busy, match="another tune is at work"):
        run.tune("square", side=side, layout="NN", budget=30)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"gemm a": 3}', "\x00"])
def test_a_broken_file_counts_as_none_and_is_told(path, text):
    path.write_text(text)
    store = Store(path)
    assert store.entries() == {}
    assert str(path) in store.problem()
    run.tune("square", side=Device(best_at(40), path), layout="NN", budget=30)
    assert len(store.entries()) == 1
    assert store.problem() is None


def test_a_sweep_of_sizes(path):
    side = Device(best_at(40), path)
    found = run.tune((8, 8, 8), side=side, tiles=["kc=10:60:10,11", "nb=1,2"], layout="NN", budget=30, save=False)
    assert {(row.tiles["kc"], row.tiles["nb"]) for row in found.rows} == {
        *((kc, n) for kc in range(10, 70, 10) for n in (1, 2)), (100, 1),
    }  # fmt: skip
    assert "left out: 2 of the tiles: kc is odd" in str(found)
    with pytest.raises(ask.Impossible, match="none of these tiles can be used: kc is odd"):
        run.tune((8, 8, 8), side=side, tiles={"kc": [11]}, budget=30)


def test_results_as_files(path, tmp_path):
    found = run.tune((8, 8, 8), side=Device(best_at(40), path), tiles=["kc=40,60"], layout="NN", budget=30, save=False)
    found.csv(tmp_path / "a.csv")
    found.json(tmp_path / "a.json")
    with open(tmp_path / "a.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert {line["kc"] for line in lines} == {"40", "60", "100"}
    assert all(line["dtype"] == "float32" and float(line["gflops"]) > 0 for line in lines)
    content = json.loads((tmp_path / "a.json").read_text())
    assert len(content["rows"]) == len(lines)
    assert {"cpu", "versions"} <= set(content["meta"])
