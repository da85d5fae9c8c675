"""python -m nbkernels warmup: what it compiles, lists and names; processes that fail, end and are interrupted."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from nbkernels import cli
from nbkernels.calls import sets
from nbkernels.commands import warmup
from nbkernels.cpu.gemm import cost, paths
from nbkernels.in_numpy import which

FEW = ["float32", "--only", "add(float32 64x64, float32 64x64)", "maximum(float32 64x64, 2.0)"]


def command(*arguments, cache, **env):
    line = [sys.executable, "-W", "error", "-m", "nbkernels", "warmup", *arguments]
    environment = os.environ | {"NBKERNELS_CACHE_DIR": str(cache)} | env
    return subprocess.run(line, capture_output=True, text=True, timeout=300, env=environment)


def compiled(cache):
    return sorted(file.name for file in cache.rglob("*") if file.is_file())


def test_jobs_compile_the_same(tmp_path):
    """In processes of their own, and the kernels that calls share in one of them alone."""
    for jobs in ("1", "2"):
        result = command(*FEW, "--jobs", jobs, cache=tmp_path / jobs)
        assert result.returncode == 0, result.stderr
        assert re.fullmatch(rf"2 calls in [\d.]+ s; compiled code: {tmp_path / jobs}.*\n", result.stdout)
        assert "2/2" in result.stderr  # the progress bar
    assert compiled(tmp_path / "1") == compiled(tmp_path / "2") != []


def test_the_list(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("NBKERNELS_CACHE_DIR", str(tmp_path))
    assert cli.main(["warmup", *FEW, "--list"]) == 0
    rows = ["add(float32 64x64, float32 64x64)", "maximum(float32 64x64, 2.0)"]
    assert listed(capsys) == rows
    assert cli.main(["warmup", "--list"]) == 0
    assert listed(capsys) == [label for label, _ in sets.calls("everyday")]
    assert cli.main(["warmup", "--list", "--set", "all", "int8", "--only", "mm(*100x100)"]) == 0
    assert listed(capsys) == ["mm(int8 100x100, int8 100x100)"]
    assert not [file for file in compiled(tmp_path) if not re.match("gelu_|relu_|toolchain", file)]  # results' types


def listed(capsys):
    """The calls of a printed list."""
    head, line, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["call", "code"]
    assert set(line) == {"-", " "}
    return [re.split("  +", row)[0] for row in rows]


def test_the_list_says_where_the_code_is(tmp_path):
    add, maximum = "loop_add_float32_float32_by", "loop_maximum_float32_float32_by"

    def rows():
        out = command(*FEW, "--list", cache=tmp_path).stdout.splitlines()
        return [re.split("  +", row)[1] for row in out[2:]]

    assert rows() == [f"{add}: to be compiled", f"{maximum}: to be compiled"]
    assert command("--only", "add(float32 64x64, float32 64x64)", "--set", "all", cache=tmp_path).returncode == 0
    assert rows() == [f"{add}: in the cache", f"{maximum}: to be compiled"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["float32", "int9"], "int9 is not among bool, int8, "),
        (["bool"], "no call of everyday has arrays of bool"),
        (["--only", "add(", "nothing*"], "no call of everyday matches 'nothing*'; --list prints them"),
        (["--from", "FILE"], "[Errno 2] No such file or directory: 'FILE'"),
    ],
)
def test_nothing_to_compile(arguments, said, capsys, tmp_path):
    file = str(tmp_path / "nowhere")
    assert cli.main(["warmup", *[argument.replace("FILE", file) for argument in arguments]]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warmup: " + said.replace("FILE", file))


def test_a_file_of_no_calls(capsys, tmp_path):
    """Each line is named, be it a picture's."""
    for content, lines in ((b"", 0), (b"\x89PNG\r\n\x1a\n\0\0\n\xff\xfe", 4)):
        file = tmp_path / "file"
        file.write_bytes(content)
        assert cli.main(["warmup", "--from", str(file)]) == 2
        *named, last = capsys.readouterr().err.splitlines()
        assert last == f"warmup: {file} holds no call"
        assert len(named) == lines
    assert cli.main(["warmup", "--from", str(tmp_path)]) == 2
    assert "directory" in capsys.readouterr().err


LINES = """\
{"nbkernels": 1, "call": "add", "args": [{"array": "float32", "shape": [3]}, 1]}
{"nbkernels": 1, "call": "add", "args": [{"array": "float32", "shape": [3]}, {"array": "float32", "shape": [4]}]}
{"nbkernels": 1, "call": "add", "args": [{"array": "float32", "shape": [3]}, 1]}
{"nbkernels": 1, "call": "elementwise", "args": [{"array": "float32", "shape": [3]}], "keywords": {"function": "fatal:f"}}
{"nbkernels": 2, "call": "add"}
{"nbkernels": 1, "call": "add", "args": [{"array": "float32", "shape": [1000000000000]}, 1]}
{"nbkernels": 1, "call": "add", "args": [{"arr
"""  # noqa: E501


def test_calls_that_fail_are_named_and_the_others_go_on(tmp_path):
    """One by its shapes, one that is too large, one that ends its process; lines that hold none; a line that is there
    twice is made once."""
    (tmp_path / "fatal.py").write_text(
        "import os, sys\ndef f(x):\n    return x\nprint('noise')\nif 'nbkernels.commands.warmup' in sys.modules and "
        "sys.argv[0] == '-c':\n    os._exit(7)\n"
    )
    (tmp_path / "calls.jsonl").write_text(LINES)
    result = command("--from", str(tmp_path / "calls.jsonl"), "--jobs", "2", cache=tmp_path, PYTHONPATH=str(tmp_path))
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1].startswith("1 calls in ")
    file = tmp_path / "calls.jsonl"
    for line in (
        f"warmup: {file}:5: a line of version 2, not 1",
        f"warmup: {file}:7: no JSON",
        "warmup: add(float32 3, float32 4): ValueError: ",
        "warmup: add(float32 1000000000000, 1): its arrays take 4,000,000,000,000 bytes; at most",
        "warmup: elementwise(float32 3, function='fatal:f'): its process ended with status 7",
    ):
        assert result.stderr.count(line) == 1, (line, result.stderr)
    assert "Traceback" not in result.stderr


@pytest.mark.sampled
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize(("jobs", "whole_group"), [("1", True), ("2", True), ("2", False)])
def test_ctrl_c_leaves_whole_files(tmp_path, jobs, whole_group):
    """In one line, with status 130; no process stays, and what is on disk is loaded: sent as by a terminal, to all
    processes, or to the first alone."""
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # what a parent may ignore
    run = f"import sys; from nbkernels.cli import main; sys.exit(main(['warmup', '--jobs', '{jobs}']))"
    environment = os.environ | {"NBKERNELS_CACHE_DIR": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", f"{heard}; {run}"], stderr=subprocess.PIPE, text=True,
                               env=environment, start_new_session=True)  # fmt: skip
    end = time.monotonic() + 120
    while not compiled(tmp_path) and time.monotonic() < end:
        time.sleep(0.05)
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=300)
    assert process.returncode == 130
    assert error.endswith("\ninterrupted\n")
    assert "Traceback" not in error
    with pytest.raises(ProcessLookupError):  # no process of its session is left
        os.killpg(process.pid, 0)
    assert compiled(tmp_path)
    assert not [name for name in compiled(tmp_path) if name.endswith(".tmp")]
    from nbkernels.jit.disk import files

    assert all(files.read(file) is not None for file in tmp_path.rglob("*.nbc"))


def test_groups_hold_every_call_once():
    work = sets.calls("all")
    parts = warmup.groups(work)
    assert sorted(label for part in parts for label, _ in part) == sorted(label for label, _ in work)
    assert len(parts) > 16  # for processes to share


@pytest.mark.parametrize("wish", [which.Wish(), which.Wish(floats=True)])
def test_all_has_every_loop_that_is_replaced(wish):
    labels = {label for label, _ in sets.calls("all")}
    for loop in which.chosen(wish):
        operands = "".join(f", {dtype} 1" for dtype in loop.dtypes[:-1])
        assert f"use_in_numpy('{loop.ufunc.__name__}'{operands})" in labels


def test_a_child_records_nothing(monkeypatch, tmp_path):
    """What it makes is no use of the program's."""
    file = tmp_path / "calls.jsonl"
    monkeypatch.setenv("NBKERNELS_RECORD", str(file))
    with contextlib.closing(warmup.Child()) as child:
        assert child.make(dict(sets.thirty())["add(float32 4x4, float32 4x4)"]) is None
    assert not file.exists()


def test_products_are_made_by_every_path():
    """Which one costs choose is the machine's where they are called, not where they are compiled."""
    seen = []

    class Product:
        name = "mm"

        def dtypes(self):
            return {"float32"}

        def __call__(self):
            seen.append(paths.path(50, 200, 300, 2))

    assert warmup.attempt(Product()) is None
    assert seen[2:] == list(cost.WAYS)
