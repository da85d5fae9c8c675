"""python -m nbkernels tune: winners as files, the GPU's side by a double, bad input."""

import dataclasses
import json
import math
import re

import pytest

import nbkernels as nb
from nbkernels import cli, winners
from nbkernels.cpu.gemm.paths import only
from nbkernels.cpu.runtime import machine
from nbkernels.cpu.runtime.status import PACKED
from nbkernels.plots import draw
from nbkernels.problem import LAYOUTS
from nbkernels.store import Store
from nbkernels.tuning import ask, cpu, cuda, keep, run
from tests.tuning.tuner import Device, best_at


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tiles.json"


# -- winners as files --------------------------------------------------------------------------------------------------


def test_export_and_import(path, tmp_path):
    side, file = Device(best_at(40), path), tmp_path / "winners.json"
    run.tune("square", side=side, layout="NN", budget=30)
    assert keep.export(side.kept, file) == 1
    assert keep.read(file) == side.kept.entries()
    content = json.loads(file.read_text())
    key = next(iter(content["winners"]))
    content["winners"] |= {
        "gemm bad on here": {"candidate": {"kc": -1}},
        "other": content["winners"][key],
        "gemm n on m": 3,
    }
    file.write_text(json.dumps(content))
    assert list(keep.read(file)) == [key]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "other", "winners": {}}', "\x00\xff", "[" * 100_000])
def test_a_foreign_file_is_refused_in_a_line(tmp_path, text):
    file = tmp_path / "f.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ask.Impossible, match="is no file of winners") as error:
        keep.read(file)
    assert "\n" not in str(error.value)


# -- the GPU's side, without one ---------------------------------------------------------------------------------------


def test_without_a_gpu_one_line_says_so(capsys):
    if cuda.missing() is None:
        pytest.skip("needs a machine without a GPU")
    with pytest.raises(ask.Impossible, match=r"device cuda: .*(GPU|numba\.cuda)"):
        run.tune("square", device="cuda")
    assert cli.main(["tune", "--device", "cuda"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_gpus_side_by_a_double(path, monkeypatch):
    """Candidates of nbkernels/cuda/tiles.py, a clock that is a function of theirs: the fastest is kept."""
    monkeypatch.setattr(cuda, "missing", lambda: None)
    monkeypatch.setattr(cuda.Cuda, "renew", lambda self: None)
    monkeypatch.setattr(cuda.Cuda, "compile", lambda *_: None)
    monkeypatch.setattr(cuda.Cuda, "_multiprocessors", staticmethod(lambda: 132))
    monkeypatch.setattr(cuda.Cuda, "place", lambda self: "a GPU")
    monkeypatch.setattr(cuda.Cuda, "store", lambda self: Store(path))
    side = cuda.Cuda("float32")
    candidates = side.candidates([(64, 64, 64), (4096, 4096, 4096)])
    fast = candidates[len(candidates) // 2]
    assert side.default not in candidates  # the model's own choice is another candidate than the tiles that it chose
    monkeypatch.setattr(side, "sample", lambda tiles, lane: 0.005 if tiles == fast else 0.01)
    found = run.tune(["square", "deep"], side=side, layout="NT", budget=30)
    assert [final.tiles for final in found.kept] == [vars(fast)] * 2
    assert set(Store(path).entries()) == {f"gemm float32 {name} NT on a GPU" for name in ("square", "deep")}
    for name, size in vars(fast).items():
        assert size == getattr(fast, name)
    with pytest.raises(ask.Impossible, match="none of these tiles can be used"):
        run.tune("square", side=side, tiles=["tm=3"], budget=1)


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def directory(monkeypatch, tmp_path):
    from nbkernels.cpu.runtime.invalidate import renew
    from nbkernels.jit.disk import files

    monkeypatch.setattr(files, "directory", lambda: tmp_path / "toolchain")
    monkeypatch.setattr(ask, "SIZES", {name: [sizes[0]] for name, sizes in ask.SIZES.items()})
    monkeypatch.setenv("NBKERNELS_TUNED", "1")
    renew()
    yield tmp_path
    monkeypatch.undo()
    renew()


def test_the_command_on_real_products(directory, capsys, monkeypatch):
    """One register tile, so that nothing is compiled; the file has the rows; nothing slower is kept."""
    monkeypatch.chdir(directory)
    line = "tune --shape 70 60 50 --tiles kc=16,32 --layout NN --threads 1 --budget 30".split()
    assert cli.main([*line, "--json", "a.json", "--csv", "a.csv", "--t4", "t4.json"]) == 0
    out = capsys.readouterr().out
    assert "default" in out
    assert "70x60x50" in out
    rows = json.loads((directory / "a.json").read_text())["rows"]
    assert {row["tiles"]["kc"] for row in rows} >= {16, 32}
    t4 = json.loads((directory / "t4.json").read_text())
    assert t4["schema_version"] == "1.0.0"
    assert len(t4["results"]) == len(rows)
    for row, each in zip(rows, t4["results"]):
        product = {"m": 70, "n": 60, "k": 50, "dtype": "float32", "layout": "NN", "threads": 1, "device": "cpu"}
        assert each["configuration"] == row["tiles"] | product
        assert each["times"]["runtimes"] == [row["seconds"] * 1e3]
        assert each["measurements"][0] == {"name": "time", "value": row["seconds"] * 1e3, "unit": "ms"}
        assert (each["invalidity"], each["correctness"], each["objectives"]) == ("correct", 1, ["time"])
    assert cli.main([*line, "--dry-run"]) == 0
    assert "2 candidates on 70x60x50" in capsys.readouterr().out


def test_the_map_in_the_terminal(directory, capsys, monkeypatch):
    """Where it is asked for, and without matplotlib, which is said; no file is left."""
    monkeypatch.chdir(directory)
    line = "tune --shape 70 60 50 --tiles kc=16,32 nb=48,96 --layout NN --threads 1 --no-keep --plot".split()
    assert cli.main([*line, "-"]) == 0
    assert "░" in (out := capsys.readouterr().out) or "█" in out
    monkeypatch.setattr("nbkernels.plots.draw.missing", lambda: "matplotlib is not installed")
    assert cli.main([*line, "a.png"]) == 0
    out, error = capsys.readouterr()
    assert "kc" in out
    assert "tune: matplotlib is not installed" in error
    assert not (directory / "a.png").exists()


@pytest.mark.parametrize("line", ["tune --shape 8 8 8 --tiles kc=8", "bench add --sizes 5"])
@pytest.mark.parametrize("file", ["x.bmpx", "x", ".png.txt"])
def test_a_name_of_no_picture_is_refused_before_anything_is_timed(directory, capsys, monkeypatch, line, file):
    if why := draw.missing():
        pytest.skip(why)
    monkeypatch.chdir(directory)
    monkeypatch.setattr("nbkernels.tuning.run.tune", None)
    monkeypatch.setattr("nbkernels.benches.measure.row", None)
    assert cli.main([*line.split(), "--plot", file]) == 2
    assert "no picture's name, which ends in .png, .svg or .pdf" in capsys.readouterr().err
    assert not (directory / file).exists()


def test_more_than_the_machine_has_is_a_line(directory, capsys, monkeypatch):
    monkeypatch.setattr("nbkernels.tuning.matrices.memory", lambda: 1000)
    line = "tune --shape 700 600 500 --tiles kc=16 --layout NN --threads 1 --no-keep".split()
    assert cli.main(line) == 2
    assert re.fullmatch(r"tune: .*matrices are more than this machine has\n", capsys.readouterr().err)


@only(PACKED)
def test_verify_counts_what_winners_cut(directory, capsys, monkeypatch):
    from nbkernels.tuning import verify

    monkeypatch.setattr(verify, "SIZES", (330, 340))
    monkeypatch.setattr(verify, "LEAST", 0.001)
    base = cpu.Cpu("float32").default
    for which in range(4):
        assert winners.store().put(
            winners.key("float32", which, machine.place()), dataclasses.replace(base, kc=64), 1.0
        )
    file = str(directory / "v.json")
    assert cli.main(["tune", "--verify", "2", "--seed", "3", "--threads", "1", "--json", file]) in (0, 1)
    assert "2 random products of float32, seed 3, 2 of them cut by winners" in capsys.readouterr().out
    found = json.loads((directory / "v.json").read_text())["rows"]
    assert [row["path"] for row in found] == ["packed, tuned"] * 2
    assert all(0.1 < row["tuned over default"] < 10 for row in found)


def test_winners_by_the_command(directory, capsys):
    entry = {"candidate": {"mr": 1}, "seconds": 1.0, "ratio": 1.5, "date": "2026-01-01", "versions": keep.versions()}
    key = winners.key("float32", 0, machine.place())
    assert winners.store().add({machine.plan_key("float64"): entry})
    assert cli.main(["tune", "--show"]) == 0
    assert "no winners" in capsys.readouterr().out
    assert winners.store().add({key: entry, "gemm float32 square NN on another": entry})
    assert cli.main(["tune", "--show"]) == 0
    out = capsys.readouterr().out
    assert "float32 square NN" in out
    assert "1.50x" in out
    file = str(directory / "w.json")
    assert cli.main(["tune", "--export", file]) == 0
    assert cli.main(["tune", "--reset"]) == 0
    assert list(winners.store().entries()) == ["gemm float32 square NN on another"]
    assert cli.main(["tune", "--import", file]) == 0
    assert set(winners.store().entries()) == {key, "gemm float32 square NN on another"}
    with keep.alone(winners.store()):
        assert cli.main(["tune", "--reset"]) == 2
    assert "another tune" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["--shape", "1", "2"], "three whole numbers M N K or a class"),
        (["--shape", "squ"], "three sizes M N K or one of"),
        (["--dtype", "float33"], "dtype 'float33'"),
        (["--layout", "XX"], "layout 'XX'"),
        (["--tiles", "kc"], "NAME=SIZES"),
        (["--tiles", "mr=1000"], "none of these tiles can be used"),
        (["--tiles", "bm=8"], "'bm': there are mr, nr"),
        (["--threads", "4096"], "threads 4096: there are"),
        (["--import", "nowhere.json"], "No such file"),
        (["--json", "nowhere/a.json"], "No such file"),
        (["--shape", "8", "8", "8", "--tiles", "kc=8", "--axes", "kc", "zz", "--plot", "a.png"], "axis 'zz'"),
    ],
)
def test_bad_input_is_one_line(directory, line, words, capsys, monkeypatch):
    monkeypatch.chdir(directory)
    assert cli.main(["tune", *line]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.startswith("tune: ")
    assert error.count("\n") == 1


def test_the_public_name():
    assert "tune" in nb.__all__
    found = nb.tune((40, 30, 20), tiles={"kc": [8]}, layout="NN", threads=1, budget=2, save=False)
    assert found.rows
    with pytest.raises(ValueError, match="one of cpu, cuda is wanted"):
        nb.tune(device="tpu")
    with pytest.raises(ValueError, match="budget"):
        nb.tune(budget=math.nan)
    assert set(LAYOUTS) == {"NN", "NT", "TN", "TT"}
