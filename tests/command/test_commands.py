"""python -m nbkernels: what each command prints, exit codes, typos and Ctrl-C."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec

import pytest

import nbkernels
from nbkernels import cli
from nbkernels.benches import rows
from nbkernels.in_numpy.table import UnknownNumPy
from nbkernels.jit.disk import files
from nbkernels.plots import columns


def command(*arguments, **kwargs):
    line = [sys.executable, "-W", "error", "-m", "nbkernels", *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=300, **kwargs)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_demo(dtype, tmp_path):
    result = command("demo", "--epochs", "5", "--dtype", dtype, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "5/5" in result.stderr  # the progress bar
    accuracy, held_out, numpy_accuracy = re.search(
        r"test accuracy +([\d.]+) on (\d+) held-out digits \(NumPy ([\d.]+)\)", result.stdout
    ).groups()
    assert float(accuracy) > 0.95
    assert int(held_out) == 1797 // 5
    assert abs(float(accuracy) - float(numpy_accuracy)) < 0.02
    difference = float(re.search(r"largest difference +(\S+)", result.stdout)[1])
    assert difference < (0.1 if dtype == "float32" else 1e-10)
    assert re.search(r"an epoch, median +nbkernels [\d.]+ s, NumPy [\d.]+ s \([\d.]+x\)", result.stdout)
    assert re.search(r"time +nbkernels [\d.]+ s, NumPy [\d.]+ s", result.stdout)
    for product in ("x W1ᵀ", "dY W2", "dYᵀ hidden"):  # which kernel and tile ran where
        assert re.search(rf"{product} +\d+ \d+ \d+ +\S", result.stdout)
    assert re.search(r"addmm 64x64x64 +" + dtype, result.stdout)


def test_the_demo_calls_nothing_but_its_operations():
    """Run with arrays that refuse arithmetic of their own: what is not an operation of the set raises."""
    import numpy as np

    from nbkernels.commands import demo

    class Bare(np.ndarray):
        def __array_ufunc__(self, *arguments, **kwargs):
            raise AssertionError(f"NumPy did {arguments[0]}")

        __array_function__ = __array_ufunc__

    def bare(function):
        def call(*args, **kwargs):
            args = [arg.view(np.ndarray) if isinstance(arg, Bare) else arg for arg in args]
            return function(*args, **kwargs).view(Bare)

        return call

    ops = type("Ops", (), {name: staticmethod(bare(f)) for name, f in vars(demo.NUMPY).items()})
    device = demo.Device("cpu", np.ascontiguousarray, np.asarray, lambda x: x.view(np.ndarray).T.view(Bare), print)
    (x, t, _), _ = demo.split("float32")
    p = demo.initial(16, 64, np.float32)
    velocity = p.map(np.zeros_like)
    before = [array.copy() for array in p.arrays()]
    q, v = p.map(lambda a: a.view(Bare)), velocity.map(lambda a: a.view(Bare))
    demo.step(ops, device, q, v, x[:64].view(Bare), t[:64].view(Bare), 0.1)
    assert all((old != new.view(np.ndarray)).any() for old, new in zip(before, q.arrays()))


def test_the_demos_gradient_is_the_losss(rng):
    """Against central differences of the loss in float64."""
    import numpy as np

    from nbkernels.commands import demo

    x, t = rng.standard_normal((7, 64)), rng.choice([-1.0, 1.0], (7, 10))
    p = demo.initial(5, 64, np.float64)

    def loss():
        _, y = demo.forward(demo.NUMPY, demo.CPU, p, x)
        return np.sum(np.maximum(1 - t * y, 0) ** 2) / 7

    velocity = p.map(np.zeros_like)
    demo.step(demo.NUMPY, demo.CPU, p, velocity, x, t, 0.0)
    for parameter, gradient in zip(p.arrays(), velocity.arrays()):
        for index in list(np.ndindex(parameter.shape))[:: max(1, parameter.size // 20)]:
            old = parameter[index]
            high, low = (parameter.__setitem__(index, old + e) or loss() for e in (1e-6, -1e-6))
            parameter[index] = old
            assert gradient[index] == pytest.approx((high - low) / 2e-6, rel=1e-5, abs=1e-7)


SIMULATED = """
import numpy as np
import nbkernels
from nbkernels.commands import demo
from nbkernels.cuda import gemm, tiles

gemm.default = lambda problem, count: tiles.Tiles(8, 16, 4, 2, 2)  # a GPU's take the simulator a second each
results = []
for ops, device in ((demo.NUMPY, demo.CPU), (nbkernels, demo.cuda_device())):
    (x, t, _), _ = demo.split("float64")
    p = demo.initial(3, 64, np.float64).map(device.put)
    velocity = p.map(lambda array: device.put(np.zeros(array.shape)))
    for batch in (slice(0, 5), slice(5, 10)):
        demo.step(ops, device, p, velocity, device.put(x[batch]), device.put(t[batch]), 0.1)
    results.append(p.map(device.get))
for mine, numpys in zip(results[1].arrays(), results[0].arrays()):
    np.testing.assert_allclose(mine, numpys, rtol=1e-12, atol=1e-14)
for row in demo._what_ran(demo.cuda_device(), 3, 5, "float64"):
    print(*row)
"""


def test_the_demos_step_on_cuda():
    """In Numba's simulator: two steps of the very program that trains on a GPU."""
    command = [sys.executable, "-c", SIMULATED]
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert re.search(r"^dW1 = dhiddenᵀ x 3 64 5 simt \d+x\d+x\d+ \d+x\d+$", result.stdout, re.M)


def test_demo_without_a_gpu_says_so_in_one_line():
    told = {k: v for k, v in os.environ.items() if k != "NUMBA_ENABLE_CUDASIM" and not k.startswith("OPENBLAS_")}
    result = command("demo", "--device", "cuda", env=told | {"CUDA_VISIBLE_DEVICES": ""})
    assert result.returncode == 2
    assert re.fullmatch(r"demo --device cuda: .*(GPU|install).*\n", result.stderr)
    assert not result.stdout


def test_info():
    result = command("info")
    assert result.returncode == 0, result.stderr
    for name in ("nbkernels", "numba", "llvmlite", "numpy", "CPU", "features", "vectors", "threads", "cache", "GPU"):
        assert re.search(rf"^{name} +\S", result.stdout, re.MULTILINE), name
    assert re.search(r"vectors +(128|256|512) bits", result.stdout)
    assert re.search(r"layer (tbb|omp|workqueue|none)", result.stdout)
    assert os.environ["NBKERNELS_CACHE_DIR"] in result.stdout


def test_info_without_a_writable_cache(tmp_path):
    (tmp_path / "file").write_text("")
    result = command("info", env=os.environ | {"NBKERNELS_CACHE_DIR": str(tmp_path / "file")})
    assert result.returncode == 0, result.stderr
    assert re.search(r"cache +none", result.stdout)


@pytest.mark.parametrize("op", ["addmm", "add"])
def test_bench_writes_what_the_report_reads(op, tmp_path, capsys):
    file = tmp_path / "rows.json"
    assert cli.main(["bench", op, "--sizes", "5", "8", "--seconds", "0.01", "--json", str(file)]) == 0
    assert "NumPy" in capsys.readouterr().out
    results = json.loads(file.read_text())
    assert {"cpu", "versions", "date"} <= set(results["meta"])
    assert [row["shape"][0] for row in results["rows"]] == [5, 8]
    assert all(row["ours_s"] > 0 and row["peers"]["NumPy"] > 0 for row in results["rows"])


NOTED = """
import json, sys
from nbkernels import cli
from nbkernels.jit.compile.cache import Place

wanted, made = set(), set()


def noted(method, names):
    def call(self, *args):
        names.add(f"{self.name} {self.signature} {self.way}")
        return method(self, *args)

    return call


Place.load = noted(Place.load, wanted)
Place.save = noted(Place.save, made)
if sys.argv[1:] == ["products"]:
    import numpy as np, nbkernels as nb
    rng, status = np.random.default_rng(11), 0
    def matrix(m, n):
        return rng.random((m, n), np.float32) if rng.random() < 0.7 else rng.random((n, m), np.float32).T
    for case in range(600):
        m, n, k, p, q, r = (int(2 ** rng.uniform(0, 8 if at < 3 else 6)) for at in range(6))
        nb.mm(matrix(m, k), matrix(k, n))
        nb.bmm(rng.random((7, p, q), np.float32), rng.random((7, q, r), np.float32))
else:
    status = cli.main(sys.argv[1:])
print(json.dumps([sorted(wanted), sorted(made)]))
sys.exit(status)
"""


@pytest.mark.release
def test_after_warmup_nothing_is_compiled():
    """All that the others ask of the disk cache, which the tests share, warmup asks of it as well, or compiles."""

    def noted(*arguments):
        line = [sys.executable, "-W", "error", "-c", NOTED, *arguments]
        result = subprocess.run(line, capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, result.stderr
        *said, names = result.stdout.splitlines()
        return said, *map(set, json.loads(names))

    said, there, _ = noted("warmup", "float32", "--jobs", "1")
    assert os.environ["NBKERNELS_CACHE_DIR"] in said[-1]
    for line in (["products"], ["demo", "--epochs", "2"], ["bench", "add", "--seconds", "0.01"]):  # those of any sizes
        _, wanted, made = noted(*line)
        wanted, made = ({name for name in names if "bench_" not in name} for names in (wanted, made))  # of peaks
        assert wanted
        assert wanted <= there
        assert not made


def test_table(capsys):
    assert cli.main(["table", "addmm"]) == 0
    assert "CPU" in capsys.readouterr().out


def test_nothing_named_lists_what_there_is(capsys):
    assert cli.main([]) == 2
    assert "train a digit classifier" in " ".join(capsys.readouterr().err.lower().split())
    assert cli.main(["table"]) == 2
    assert capsys.readouterr().err.startswith("name an operation (there are abs, ")


def test_typos_name_the_nearest(capsys):
    assert cli.main(["table", "admm"]) == 2
    assert "did you mean 'addmm'?" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        cli.main(["dmeo"])
    assert "no command 'dmeo'; did you mean 'demo'?" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        cli.main(["xyz"])
    assert "there are bench, cache, completion, demo, docs, info" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        cli.main(["tune", "--shpae=3", "--budget", "1"])
    error = capsys.readouterr().err
    assert error.startswith("usage: python -m nbkernels tune ")
    assert error.endswith("unrecognized arguments: --shpae=3; did you mean '--shape'?\n")


def test_ctrl_c_before_a_command_begins(monkeypatch, capsys):
    """The installed command and `python -m` are one program, whose bench asks first what holds other libraries back."""

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("nbkernels.benches.peers.at_best", interrupted)
    monkeypatch.setattr(sys, "argv", ["nbkernels", "bench"])
    assert cli.program() == 130
    assert capsys.readouterr().err == "\ninterrupted\n"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["demo", "--epochs", "0"], "--epochs: '0' is not a positive whole number"),
        (["demo", "--device", "tpu"], "--device: invalid choice: 'tpu'"),
        (["bench", "--sizes", "x"], "--sizes: 'x' is not a positive whole number"),
        (["bench", "--seconds", "nan"], "--seconds: 'nan' is not a number of seconds"),
        (["tune", "--budget", "0"], "--budget: '0' is not a positive number of seconds"),
        (["tune", "--show", "--reset"], "not allowed with argument"),
    ],
)
def test_wrong_arguments(wrong, words, capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(wrong)
    assert words in capsys.readouterr().err


def test_what_cannot_be_had(tmp_path, capsys):
    """More memory than there is, a file in no directory, a table of what is no operation: one line each."""
    assert cli.main(["demo", "--hidden", str(10**15)]) == 2
    assert capsys.readouterr().err.startswith("demo: Unable to allocate")
    file = str(tmp_path / "nowhere" / "page.md")
    assert cli.main(["docs", file]) == 2
    assert "No such file" in (error := capsys.readouterr().err)
    assert file in error
    assert cli.main(["table", "dispatch"]) == 2
    assert capsys.readouterr().err.startswith("no operation 'dispatch'")


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"{nbkernels.__version__}\n"


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c_ends_in_one_line():
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # what a parent may ignore
    run = "import sys; from nbkernels.cli import main; sys.exit(main(['demo', '--epochs', '1000000']))"
    line = [sys.executable, "-c", f"{heard}; {run}"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    bar = ""
    while "epoch/s" not in bar:  # it is training
        bar += process.stderr.read(1) or pytest.fail(bar)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=300)
    assert process.returncode == 130
    assert error.endswith("\ninterrupted\n")
    assert "Traceback" not in error


def test_a_reader_that_stops_reading():
    line = [sys.executable, "-m", "nbkernels", "info"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    process.wait(timeout=300)
    assert "Traceback" not in error


def test_what_commands_print_fits_eighty_columns(capsys, tmp_path, monkeypatch):
    """But for paths and other words that are longer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")  # of a terminal, which helps follow
    monkeypatch.setattr(columns, "room", lambda: columns.WIDTH)
    monkeypatch.setattr(sys, "path", list(sys.path))  # `run` changes them, as python does for a program
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    other = tmp_path / "cache" / ("0" * 16)
    other.mkdir(parents=True)
    made_by = {"nbkernels": "0.1.0", "python": "cpython 3.12", "options": {"NUMBA_CPU_FEATURES": "+avx2," * 60}}
    (other / files.RECORD).write_text(json.dumps(made_by))
    monkeypatch.setenv("NBKERNELS_CACHE_DIR", str(other.parent))
    (tmp_path / "program.py").write_text("import numpy as np\nx = np.ones((200, 200), int)\nx @ x + x\n")
    (tmp_path / "a.json").write_text(json.dumps({"rows": ROWS}))
    lines = [f"table {op}" for op in ("addmm_activation", "mm", "add", "sum_to", "linear")]
    lines += [f"{name} --help" for name in cli._parser()[1]]
    lines += ["info", "cache", "tune --shape square --dry-run", "tune --show", "bench add --sizes 5 --seconds 0.01",
              "tune --shape 64 64 64 --tiles kc=16,32 --layout NN --threads 1 --no-keep --plot -", "table CPU",
              "table --keys CPU CompositeImplicit", "warmup --list --only add(float32", "bench --compare a.json a.json",
              "run --report program.py", "cache --prune", "tune --verify 1 --dtype float32"]  # fmt: skip
    for line in lines:
        with suppress(SystemExit, UnknownNumPy):
            cli.main(line.split())
        for each in "".join(capsys.readouterr()).splitlines():
            whole = (
                "[--" in each or max(map(len, each.split()), default=0) > 60
            )  # the usage of options that exclude each other
            assert len(each) <= 80 or whole, line


ROWS = [
    {"bench": "gemm", "op": "mm", "shape": [1024, 1024, n], "dtype": "complex128", "layout": "NN", "threads": n % 3,
     "gflops": 1.2 * n, "peak_share": 5e-4 * n, "ours_s": 1.2e-4 * n, "device": "cpu",
     "peers": {"NumPy": 1e-4 * n + 0.01, "torch": 2e-4 * n + 0.02, "numexpr": 3e-4 * n + 0.03, "jax": 0.2, "MKL": 0.1}}
    for n in (1000, 2000)
]  # fmt: skip


@pytest.mark.parametrize("peers", [0, 1, 3, 4])
def test_tables_of_benches_fit_eighty_columns(peers):
    """However many peers there are, with nothing lost but the bars."""
    made = [row | {"peers": dict(list(row["peers"].items())[:peers])} for row in ROWS]
    text = rows.table(made)
    assert max(map(len, text.splitlines())) <= 80
    assert len(re.findall(r"\d\.\d\dx", text)) == 2 * peers
    assert "1024x1024x2000" in text


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion(shell, capsys, monkeypatch):
    shtab = type(sys)("shtab")
    if find_spec("shtab") is None:
        shtab.complete = lambda parser, shell: f"{parser.prog} {' '.join(cli._parser()[1])} {shell}"
        monkeypatch.setitem(sys.modules, "shtab", shtab)
    assert cli.main(["completion", shell]) == 0
    said = capsys.readouterr().out
    assert "nbkernels" in said
    assert "warmup" in said
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert cli.main(["completion", shell]) == 2
    assert "pip install 'nbkernels[completion]'" in capsys.readouterr().err
