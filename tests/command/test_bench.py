"""python -m nbkernels bench: what it measures, its files, how two of them are held against each other; pictures."""

import csv
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from nbkernels import cli
from nbkernels.benches import command, measure, own, peak, peers, roofs, rows, suites
from nbkernels.plots import blocks, draw

META = {"cpu": "a processor", "cores": 2, "versions": {"numpy": "2"}, "date": "2026-11-25"}


def row(n, ours=1.0, bench="gemm", **peer_seconds):
    return {
        "bench": bench, "op": "matmul", "shape": [n, n, n], "dtype": "float32", "threads": 1, "layout": "NN",
        "device": "cpu", "ours_s": ours, "spread": 0.01, "peers": peer_seconds, "gflops": 2 * n**3 / ours / 1e9,
        "bytes": 12 * n * n, "gb_s": 1.0, "peak_share": 0.8, "peak": "multiply-adds",
    }  # fmt: skip


RESULTS = {
    "meta": META,
    "rows": [row(n, n**3 / 1e11, NumPy=n**3 / 8e10, torch=n**3 / 1.5e11) for n in (64, 256, 1024)],
    "peaks": [
        {"gflops": 250.0 * n, "gb_s": {"L1": 150.0, "memory": 20.0}, "threads": n, "launch_us": 1.0} for n in (1, 2)
    ],
}


def test_names_of_the_command_are_those_of_its_parts():
    assert tuple(suites.SUITES) == command.SUITES
    assert command.PEERS == peers.NAMES
    assert tuple(draw.KINDS) == command.KINDS
    assert set(suites.EVERYDAY) <= set(suites.SUITES)
    assert "NumPy" in peers.found()


@pytest.mark.parametrize("name", [name for name in suites.SUITES if name != "cuda"])
def test_every_suite_has_quick_cases_that_agree_with_numpy(name):
    cases = measure.chosen([name], quick=True)
    assert cases
    smallest = min(cases, key=lambda case: (case.flops, case.bytes))
    calls = smallest.calls()
    assert "nbkernels" in calls
    other = calls.get("NumPy") or calls.get("default")
    if other:
        first, second = np.array(calls["nbkernels"]()), np.array(other())
        np.testing.assert_allclose(first.astype("c16"), second.astype("c16"), rtol=1e-3, atol=1e-3)


def test_a_row_has_its_configuration():
    case = next(suites.gemm("float64", [8]))
    found = measure.row(case, 1, ["NumPy"], seconds=0.01, rounds=2)
    assert set(found["peers"]) == {"NumPy"}
    assert (found["shape"], found["dtype"], found["threads"], found["layout"]) == ([8, 8, 8], "float64", 1, "NN")
    assert found["ours_s"] > 0
    assert 0 < found["peak_share"] <= 1
    assert found["peak"].startswith("multiply-adds of float64, vectors of ")
    json.dumps(found)


@pytest.mark.parametrize("suite", ["gemm", "dtypes", "add"])
def test_no_share_of_a_peak_exceeds_it(monkeypatch, suite):
    """Not where the peak's own call is slow: the host does something else, or the clock has changed since."""
    slow = lambda *_: (lambda: time.sleep(1e-3), 1)  # noqa: E731
    for name in ("fma_call", "steps_of", "copy_call"):
        monkeypatch.setattr(peak, name, slow)
    case = min(measure.chosen([suite], quick=True), key=lambda case: (case.flops, case.bytes))
    found = measure.row(case, 1, [], seconds=0.01, rounds=3)
    assert 0 < found["peak_share"] <= 1


def test_rows_are_held_against_the_fastest_sample_of_them_all():
    slow, fast = (roofs.against("steps", 10, [2.0, 1.0], 10, each) for each in ([1.0, 0.8], [0.5, 0.25]))
    assert (slow["peak_share"], fast["peak_share"]) == (10 / 1.5 / 12.5, 10 / 1.5 / 40)
    found = [row | {"threads": threads} for row, threads in ((slow, 1), (fast, 1), (slow, 2))]
    roofs.settle([*found, {"peak": None, "threads": 1}])
    assert [row["peak_share"] for row in found] == [10 / 1.5 / 40, 10 / 1.5 / 40, 10 / 1.5 / 12.5]
    assert "100%" in roofs.busy(found)
    assert roofs.busy([{"peak_spread": 0.19}]) is None
    top = {"gflops": 1.0, "gb_s": {"L1": 2.0}, "threads": 1, "dtype": "float32"}
    reached = [{"peak": of, "peak_rate": 5e9, "threads": 1} for of in (roofs.additions("float32"), roofs.copies("L1"))]
    assert roofs.lifted(top, reached) == top | {"gflops": 5.0, "gb_s": {"L1": 5.0}}
    assert roofs.lifted(top | {"threads": 2}, reached) == top | {"threads": 2}


def test_the_command_says_that_the_host_was_busy(monkeypatch, capsys):
    monkeypatch.setattr(roofs, "BUSY", -1.0)
    assert (
        cli.main(["bench", "gemm", "--sizes", "8", "--dtype", "float32", "--seconds", "0.01", "--peers", "NumPy"]) == 0
    )
    assert "the host was busy: samples of a peak differ by up to " in capsys.readouterr().out


def test_peaks_are_of_this_world():
    found = peak.peaks(1, seconds=0.05)
    assert 1 < found["gflops"] < 10_000
    assert {"L1", "L2", "memory"} <= set(found["gb_s"])
    assert all(0.1 < width < 10_000 for width in found["gb_s"].values())
    assert found["launch_us"] < 10_000


# -- peers at their best -----------------------------------------------------------------------------------------------


def test_a_bench_measures_without_what_holds_peers_back(tmp_path):
    """Whoever measures has none of the variables, whatever the environment; a result says what each peer was."""
    pytest.importorskip("threadpoolctl")
    held = {name: "Nehalem" if name == "OPENBLAS_CORETYPE" else "1" for name in peers.HOLDING}
    program, file = tmp_path / "bench.py", tmp_path / "out.json"
    program.write_text(
        "import json, sys\nfrom nbkernels.benches import peers\nfrom nbkernels.commands import info\n"
        "peers.at_best()\nassert not set(peers.HOLDING) & set(__import__('os').environ)\n"
        "json.dump([sys.argv[1:], info.meta()], open(sys.argv[1], 'w'))\nsys.exit(3)\n"
    )
    line = [sys.executable, str(program), str(file), "an argument"]
    run = subprocess.run(line, env=os.environ | held, capture_output=True, text=True)
    assert run.returncode == 3, run.stderr
    assert "started anew without OPENBLAS_CORETYPE, " in run.stderr
    given, meta = json.loads(file.read_text())
    assert given == [str(file), "an argument"]
    (blas,) = (each for name, each in meta["peers"].items() if "OpenBLAS" in name)
    assert set(blas) == {"version", "architecture", "threads"}
    assert blas["architecture"] != "Nehalem"


def test_peers_that_are_held_back_are_named():
    found = {"OpenBLAS": {"version": "0.3", "architecture": "Nehalem", "threads": 2}}
    assert peers.held_back(found, 128) == []
    (said,) = peers.held_back(found, 256)
    assert said == "OpenBLAS 0.3 is held back: kernels of Nehalem have vectors of 128 bits, the processor's have 256"
    assert peers.held_back({"torch": {"version": "2", "architecture": "AVX512", "threads": 1}}, 512) == []


def test_every_bench_starts_so():
    """But for those that measure no peer."""
    for file in sorted((Path(__file__).resolve().parents[2] / "bench").glob("bench_*.py")):
        text = file.read_text(encoding="utf-8")
        if file.stem not in ("bench_trees", "bench_costs") and '\nif __name__ == "__main__":' in text:
            assert text.rpartition('if __name__ == "__main__":\n')[2].startswith("    at_best()\n"), file.name


# -- files -------------------------------------------------------------------------------------------------------------


def written(path, *found):
    path.write_text(json.dumps({"meta": META, "rows": found}))
    return str(path)


def test_compare_says_a_word_of_each_row(tmp_path, capsys):
    first = written(tmp_path / "a.json", row(8), row(16), row(32), row(64))
    second = written(tmp_path / "b.json", row(8, 0.5), row(16, 2.0), row(32, 1.02), row(128))
    text, slower = rows.compare(first, second)
    assert slower == 1
    assert re.findall(r"\.\d\dx +(.*\w)", text) == ["faster", "slower", "within noise"]
    assert "1 faster, 1 slower, 1 within noise" in text
    assert text.count("alone") == 2
    assert cli.main(["bench", "--compare", first, second]) == 1
    assert cli.main(["bench", "--compare", first, first]) == 0
    capsys.readouterr()


def test_compare_reads_what_pytest_writes(tmp_path):
    def of_pytest(median):
        stats = {"median": median, "iqr": 0.01 * median}
        return {"benchmarks": [{"fullname": "bench_tiles.py::x", "stats": stats}]}

    for name, median in (("a", 1.0), ("b", 0.5)):
        (tmp_path / f"{name}.json").write_text(json.dumps(of_pytest(median)))
    text, slower = rows.compare(tmp_path / "a.json", tmp_path / "b.json")
    assert "2.00x" in text
    assert "faster" in text
    assert slower == 0


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rows": [3]}', '{"rows": [{}]}', "\x00", '{"benchmarks": [{}]}'])
def test_files_without_rows_are_refused_in_a_line(tmp_path, text, capsys):
    (tmp_path / "a.json").write_text(text)
    assert cli.main(["bench", "--compare", str(tmp_path / "a.json"), str(tmp_path / "a.json")]) == 2
    error = capsys.readouterr().err
    assert "holds no rows" in error or "measured nothing" in error
    assert error.count("\n") == 1


def test_csv_has_a_line_for_each_peer(tmp_path):
    rows.write_csv(RESULTS["rows"], tmp_path / "a.csv")
    with open(tmp_path / "a.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 6
    assert {line["peer"] for line in lines} == {"NumPy", "torch"}
    assert float(lines[0]["ratio"]) == pytest.approx(1.25)


MINE = """
def doubled(n, dtype):
    assert dtype == "float64"
    return {"mine": lambda: [0.0] * n, "theirs": lambda: [0.0] * (2 * n)}


def wrong(n, dtype):
    return [print]


name = "no function"
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "mine_to_bench.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield "mine_to_bench"
    sys.modules.pop("mine_to_bench", None)


def test_rows_of_a_function_of_ones_own(mine, capsys):
    line = f"bench --with {mine}:doubled --dtype float64 --sizes 4 64 16 --seconds 0.01 --json a.json"
    assert cli.main(line.split()) == 0
    assert "theirs" in capsys.readouterr().out
    found = json.loads(Path("a.json").read_text())
    assert [(row["bench"], row["shape"], row["ours"]) for row in found["rows"]] == [
        ("doubled", [n], "mine") for n in (4, 64, 16)
    ]
    assert all(set(row["peers"]) == {"theirs"} and row["ours_s"] > 0 for row in found["rows"])
    assert rows.compare("a.json", "a.json")[1] == 0
    if not draw.missing():
        draw.bench("a.svg", found)
        text = Path("a.svg").read_text()
        assert all(words in text for words in ("us a call", ">mine<", ">theirs<", "doubled, float64"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("doubled", "mine_to_bench_too:doubled: No module named 'mine_to_bench_too'"),
        ("nothing", "has no attribute 'nothing'"),
        ("name", "it is no function"),
        ("wrong", "wrong(64, 'float32') gave [<built-in function print>]: {name: call} is wanted, yours first"),
    ],
)
def test_a_function_that_cannot_be_measured_is_a_line(mine, name, words, capsys):
    module = f"{mine}_too" if name == "doubled" else mine
    assert cli.main(["bench", "--with", f"{module}:{name}", "--sizes", "64"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_cases_of_a_function_have_usual_sizes():
    assert [case.shape for case in own.cases(len)] == [(n,) for n in own.SIZES]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["gem"], "no bench 'gem'; did you mean 'gemm'?"),
        (["gemm", "--peers", "numpyy"], "no peer 'numpyy'"),
        (["gemm", "--dtype", "float33"], "no dtype 'float33'"),
        (["reduce", "--dtype", "bfloat16"], "nothing fits what was asked for"),
        (["gemm", "--threads", "4096"], "--threads 4096: there are"),
        (["--compare", "nowhere", "nowhere"], "No such file"),
    ],
)
def test_bad_input_is_one_line(line, words, capsys):
    assert cli.main(["bench", *line]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_a_peer_that_is_not_installed_is_named(monkeypatch, capsys):
    monkeypatch.setattr(peers, "found", lambda: ["NumPy"])
    assert cli.main(["bench", "gemm", "--peers", "torch"]) == 2
    assert "peer torch not installed; there are NumPy" in capsys.readouterr().err


# -- pictures ----------------------------------------------------------------------------------------------------------

GRID = draw.Grid("kc", "nb", [128, 256], [16, 32], [[50.0, 100.0], [None, 75.0]], "GFLOP/s", "mm", META, (256, 16))


@pytest.mark.parametrize("ending", ["png", "svg"])
@pytest.mark.parametrize("kind", [*draw.KINDS, "tiles"])
def test_pictures(tmp_path, kind, ending):
    if why := draw.missing():
        pytest.skip(why)
    file = tmp_path / f"a.{ending}"
    draw.save(file, *((draw.grid, GRID) if kind == "tiles" else (draw.KINDS[kind], RESULTS)))
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG" if ending == "png" else b"<?xml")
    if ending == "svg":
        text = content.decode()
        assert "a processor, 2 cores" in text  # the footer
        assert kind != "roofline" or ("L1, 150 GB/s, 1 thread<" in text and "L1, 150 GB/s, 2 threads<" in text)
        assert {"speed": "n of n x n matrices", "time": "us a call", "roofline": "operations a byte",
                "ratios": "time of the best peer", "tiles": "kc, steps of k"}[kind] in text  # fmt: skip


def test_what_has_nothing_to_draw_says_so(tmp_path):
    if why := draw.missing():
        pytest.skip(why)
    for kind in draw.KINDS:
        with pytest.raises(ValueError, match="no "):
            draw.bench(tmp_path / "a.png", {"meta": META, "rows": [], "peaks": RESULTS["peaks"]}, kind)


def test_without_matplotlib_there_is_a_line_and_the_terminal(monkeypatch, tmp_path):
    monkeypatch.setattr(draw.importlib.util, "find_spec", lambda name: None)
    assert "pip install 'nbkernels[plot]'" in draw.missing()
    with pytest.raises(RuntimeError, match="matplotlib is not installed"):
        draw.save(tmp_path / "a.png", draw.grid, GRID)
    text = blocks.heat(GRID)
    assert text.splitlines()[1].split() == ["nb", "\\", "kc", "128", "256"]
    assert "█" in text
    assert "100" in text


def test_tables_are_of_eighty_columns():
    """What all rows have alike is told once; a bar goes where there is no room for it; nothing else does."""
    text = rows.table(RESULTS["rows"])
    assert max(map(len, text.splitlines())) <= 80
    assert "0.67x" in text
    assert "█" in text
    made = [row(n, n / 1000, NumPy=n / 900 + 0.1, torch=1.5, numexpr=2.0) for n in (1000, 2000)]
    text = rows.table(made)
    assert max(map(len, text.splitlines())) <= 80
    assert "█" not in text
    assert text.splitlines()[0].startswith("threads 1")
    assert "thin" in rows.table([*made, made[0] | {"plan": "thin"}])  # of some rows alone
    assert {"gemm 1000x1000x1000 float32 NN", "gemm 2000x2000x2000 float32 NN"} <= {
        line.partition("  ")[0] for line in text.splitlines()}  # fmt: skip


def test_a_bar_in_the_table_is_half_at_one():
    assert blocks.bar(1.0, 12) == "██████" + " " * 6
