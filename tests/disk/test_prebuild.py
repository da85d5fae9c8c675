"""Kernels for levels of processors: who may load them, that they are right and whole, the wheel that carries them."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import nbkernels
from nbkernels import cli
from nbkernels.calls import sets
from nbkernels.calls.call import Call
from nbkernels.jit.disk import files, levels, sources
from tests.cases import EVERY

ROOT = Path(__file__).resolve().parents[2]
X86 = "x86_64-unknown-linux-gnu"
V3, V4 = levels.parse("x86-64-v3"), levels.parse("x86-64-v4")
VNNI = levels.parse("x86-64-v4+avx512vnni")
HERE = next((level for level in (VNNI, V4, V3) if level.refusal(levels.target()[0], levels.target()[2]) is None), None)
needs_level = pytest.mark.skipif(HERE is None, reason="needs a processor of x86-64-v3 or later")

# -- levels, with made-up processors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [V3, V4, VNNI], ids=str)
def test_a_level_serves_whoever_has_all_of_it(level):
    assert level.refusal(X86, level.features) is None
    assert level.refusal(X86, level.features | {"sha", "sse4a"}) is None
    for missing in level.features:
        assert level.refusal(X86, level.features - {missing}) == f"the processor lacks {missing}"


def test_a_level_of_narrower_vectors_or_another_kind_of_processor_does_not_serve():
    assert V3.refusal(X86, V4.features) == "its vectors have 256 bits, the processor's 512"
    assert levels.parse("x86-64-v2").refusal(X86, V3.features) == "its vectors have 128 bits, the processor's 256"
    assert V3.refusal("aarch64-unknown-linux-gnu", frozenset({"neon"})).startswith("it is for x86-64")
    assert levels.parse("arm64").refusal("arm64-apple-darwin", frozenset({"neon"})) is None
    assert levels.parse("arm64").refusal(X86, VNNI.features).startswith("it is for arm64")


def test_the_largest_level_that_serves_is_chosen():
    order = [VNNI, V4, V3]
    for having, expected in ((VNNI, VNNI), (V4, V4), (V3, V3), (levels.parse("x86-64-v2"), None)):
        chosen, reasons = levels.choose(order, X86, having.features)
        assert chosen == expected
        assert list(reasons) == order[: order.index(expected) if expected else 3]
    assert levels.choose([V3], X86, V4.features)[0] is None


def test_names_of_levels():
    assert str(VNNI) == "x86-64-v4+avx512vnni"
    assert levels.parse("x86-64-v4+avx512vnni+avx512f") == VNNI  # a part of it already
    assert V3.features < V4.features < VNNI.features
    for wrong in ("", "x86-64-v5", "x86-64-v4+", "x86-64-v4+mmx512", "haswell", "../x86-64-v3"):
        with pytest.raises(ValueError, match=r"no level|knows no feature"):
            levels.parse(wrong)


def test_levels_are_what_llvm_compiles_for():
    """Every feature of a level is one that LLVM knows, and this machine's own set has a place among the levels."""
    if levels.family(levels.target()[0]) != "x86-64":
        pytest.skip("needs an x86-64")
    from llvmlite import binding

    assert VNNI.features <= set(binding.get_host_cpu_features())
    assert levels.parse("x86-64").features <= levels.target()[2]


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["--target", "x86-64-v5"], "'x86-64-v5' is no level of processors: wanted is one of x86-64, x86-64-v2"),
        (["--target", "x86-64-v4+fast"], "LLVM knows no feature 'fast'"),
        (["--set", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_what_cannot_be_built(wrong, words, capsys, tmp_path):
    assert cli.main(["prebuild", *wrong, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_level_of_other_processors_is_refused_in_one_line(capsys, tmp_path):
    other = "arm64" if levels.family(levels.target()[0]) == "x86-64" else "x86-64-v3"
    assert cli.main(["prebuild", "--target", other, "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"prebuild: {other} is compiled on a machine of its kind")


def prebuild(out, calls, *arguments, **kwargs):
    """The command's process, with a file of these calls."""
    file = out.parent / f"{out.name}.jsonl"
    file.write_text("".join(call.line() + "\n" for call in calls))
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # what a parent may ignore
    run = f"{heard}; import sys; from nbkernels.cli import main; sys.exit(main(['prebuild', *sys.argv[1:]]))"
    line = [sys.executable, "-W", "error", "-c", run, "--set", str(file), "--out", str(out)]
    return subprocess.Popen([*line, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)


def finished(process):
    out, error = process.communicate(timeout=900)
    assert process.returncode == 0, error[-2000:]
    return out, error


# Before a release all are built; a product compiles long.
THIRTY = [call for _, call in sets.thirty() if EVERY or (call.name == "add" and call.dtypes() == {"float32"})]
AT = Call.of("add.at", np.ones(4, "f"), np.zeros(1, "i8"), 1.0)  # at indices


@pytest.fixture(scope="module")
def thirty(tmp_path_factory):
    """What the package holds, for the level that serves here: for the thirty calls."""
    if HERE is None:
        pytest.skip("needs a processor of x86-64-v3 or later")
    out = tmp_path_factory.mktemp("prebuilt") / "out"
    calls = [*THIRTY, AT]
    said, bar = finished(prebuild(out, calls, "--target", str(HERE), "--jobs", "1"))  # several compile some twice
    assert len(calls) == (31 if EVERY else 4)
    assert f"{len(calls)}/{len(calls)}" in bar
    assert str(HERE) in said
    return out


def kernels(out, level):
    return sorted((out / files.toolchain() / str(level)).glob("*.nbc"))


def test_files_are_whole_and_of_no_place(thirty):
    found = kernels(thirty, HERE)
    assert len(found) > (20 if EVERY else 5)
    for file in found:
        content = bytes(files.read(file))
        for place in (str(ROOT), str(thirty), sys.prefix, str(Path.home()) + "/"):
            assert place.encode() not in content, file.name
    assert json.loads((thirty / files.toolchain() / files.RECORD).read_text()) == files.made_by()


def test_again_compiles_nothing(thirty):
    before = {file: file.stat().st_mtime_ns for file in kernels(thirty, HERE)}
    finished(prebuild(thirty, [*THIRTY, AT], "--target", str(HERE), "--jobs", "1"))
    assert {file: file.stat().st_mtime_ns for file in kernels(thirty, HERE)} == before


def alive(group):
    """Whether anybody is left in a group of processes."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@needs_level
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c_leaves_whole_files_and_no_process(tmp_path):
    out = tmp_path / "out"
    process = prebuild(out, THIRTY, "--target", str(HERE), start_new_session=True)
    while not kernels(out, HERE):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130
    assert error.endswith("\ninterrupted\n")
    for _ in range(3000):  # until the system has cleared them away
        if not alive(process.pid):
            break
        time.sleep(0.02)
    assert not alive(process.pid)
    assert not list(out.glob("*/*/*.tmp"))
    assert all(files.read(file) for file in kernels(out, HERE))


@needs_level
@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs POSIX: a limit on the size of files")
def test_a_full_disk_is_an_error(tmp_path):
    import resource

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    process = prebuild(tmp_path / "out", [AT], "--target", str(HERE), preexec_fn=limited)
    _, error = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "File too large" in error
    assert not [file for file in kernels(tmp_path / "out", HERE) if not files.read(file)]


# -- loading -----------------------------------------------------------------------------------------------------------

USE = """
import json, sys, time, warnings
from pathlib import Path
import numpy as np
from numba.core import event
warnings.simplefilter("always")
from nbkernels.jit.disk import levels
levels.PREBUILT = Path(sys.argv[1])
if len(sys.argv) > 2:
    triple, cpu, features = levels.target()
    features = features - set(sys.argv[2].split())
    levels.target = lambda: (triple, cpu, features)
import nbkernels
with event.install_recorder("numba:compile") as compiled, event.install_recorder("numba:run_pass") as passes:
    CALLS
found = nbkernels.specializations()
print(json.dumps([len(compiled.buffer) + len(passes.buffer), sorted({each.where for each in found})]))
"""

ADD_AT = "x = np.ones(4, 'f'); nbkernels.add.at(x, [0], 1); assert (x == [2, 1, 1, 1]).all()"  # soon compiled


def use(prebuilt, cache, *arguments, calls=ADD_AT, **environment):
    """(whether anything was compiled, where the code came from, what was said) of first calls."""
    line = [sys.executable, "-c", USE.replace("CALLS", calls), str(prebuilt), *arguments]
    environment = dict(os.environ, NBKERNELS_CACHE_DIR=str(cache), **environment)
    result = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-2000:]
    compiled, where = json.loads(result.stdout)
    return bool(compiled), where, result.stderr


def test_packaged_code_is_loaded_and_nothing_kept(thirty, tmp_path):
    assert use(thirty, tmp_path) == (False, [f"packaged {HERE}"], "")
    assert not list(tmp_path.rglob("*.nbc"))


@pytest.mark.release
def test_loops_of_numpy_are_packaged(tmp_path):
    """An element-wise one and products, of a file of calls."""
    if HERE is None:
        pytest.skip("needs a processor of x86-64-v3 or later")
    half, whole = np.ones(1, "f2"), np.ones(1, "i4")
    loops = [Call.of("use_in_numpy", "add", half, half), Call.of("use_in_numpy", "matmul", whole, whole)]
    finished(prebuild(tmp_path / "out", loops, "--target", str(HERE), "--jobs", "1"))
    calls = (
        "x, y = np.ones((64, 64), 'i4'), np.ones(1000, 'f2')\n"
        "    with nbkernels.use_in_numpy():\n        x, y = x @ x, y + y\n    assert x[0, 0] == 64 and y[0] == 2\n"
    )
    assert use(tmp_path / "out", tmp_path / "cache", calls=calls) == (False, [f"packaged {HERE}"], "")


def test_code_of_a_level_that_the_processor_lacks_is_not_loaded(thirty, tmp_path):
    """One feature less; one line says why."""
    compiled, where, said = use(thirty, tmp_path, "movbe")
    assert (compiled, where) == (True, ["compiled"])
    assert said.count("RuntimeWarning") == 1
    assert f"{HERE}: the processor lacks movbe" in said


def test_code_under_another_levels_name_is_not_loaded(thirty, tmp_path):
    """A level's directory that somebody has renamed."""
    made = tmp_path / "out" / files.toolchain()
    shutil.copytree(thirty / files.toolchain() / str(HERE), made / "x86-64-v2")
    (made / "x86-64-v2").rename(made / (other := str(HERE) + "+sse4a"))
    if "sse4a" not in levels.target()[2]:
        (made / other).rename(made / (other := str(HERE) + "+xsavec"))
    assert use(tmp_path / "out", tmp_path / "cache")[:2] == (True, ["compiled"])


def renamed(thirty, tmp_path, what):
    """What was made with another `what`, under the name that follows from it; and what is to be said."""
    made = json.loads((thirty / files.toolchain() / files.RECORD).read_text()) | {what: "another"}
    shutil.copytree(thirty / files.toolchain(), tmp_path / "out" / "0123456789abcdef")
    (tmp_path / "out" / "0123456789abcdef" / files.RECORD).write_text(json.dumps(made))
    return "other sources" if what == "sources" else f"{what} another, not {files.made_by()[what]}"


def test_code_of_another_toolchain_is_not_loaded(thirty, tmp_path):
    """By what it says of itself; one line says what differs. The machine's own code comes first."""
    says = renamed(thirty, tmp_path, "sources")
    compiled, where, said = use(tmp_path / "out", tmp_path / "cache")
    assert (compiled, where) == (True, ["compiled"])
    assert says in said
    assert use(tmp_path / "out", tmp_path / "cache") == (False, ["cached"], "")  # and is not said for nothing
    assert use(thirty, tmp_path / "cache") == (False, ["cached"], "")


@pytest.mark.parametrize("what", ["numba", "llvmlite", "python", "sources"])
def test_every_part_of_a_toolchain_counts(thirty, tmp_path, monkeypatch, what):
    says = renamed(thirty, tmp_path, what)
    monkeypatch.setattr(levels, "PREBUILT", tmp_path / "out")
    with fresh():
        assert levels.directory() is None
        assert says in levels.problem()


def test_damaged_files_are_compiled(thirty, tmp_path):
    shutil.copytree(thirty / files.toolchain(), tmp_path / "out" / files.toolchain())
    for number, file in enumerate(kernels(tmp_path / "out", HERE)):
        whole = file.read_bytes()
        file.write_bytes((b"", whole[: len(whole) // 2], whole[:-1] + bytes([whole[-1] ^ 1]), b"x" * 99)[number % 4])
    assert use(tmp_path / "out", tmp_path / "cache")[:2] == (True, ["compiled"])


def test_records_that_are_none(tmp_path, monkeypatch):
    """Nothing is loaded by them, and none is an error."""
    for number, text in enumerate(("", "[]", '{"numba": 3}', "[" * 10_000, "\0")):
        (tmp_path / str(number) / "0").mkdir(parents=True)
        (tmp_path / str(number) / "0" / files.RECORD).write_text(text)
        monkeypatch.setattr(levels, "PREBUILT", tmp_path / str(number))
        with fresh():
            assert levels.directory() is None
            assert bool(levels.problem()) == ("numba" in text), text[:9]


# -- the level's code, run here ----------------------------------------------------------------------------------------

CROSS = """
import sys
from pathlib import Path
import numpy as np
from nbkernels.jit.compile import cross
from nbkernels.jit.disk import levels
level = levels.parse(sys.argv[1])
cross.start(level, Path(sys.argv[2]))
texts = []
code = cross.machine_code
def made(library):
    texts.append(library.codegen._tm.emit_assembly(library.level.clone()))
    return code(library)
cross.machine_code = made
import nbkernels
from nbkernels.cpu.gemm import paths
from nbkernels.cpu.runtime.status import SMALL
rng, dtype = np.random.default_rng(1), np.dtype(sys.argv[3])
low, high = {"i": (-128, 128), "u": (0, 256), "f": (-9, 9)}[dtype.kind]
a, b = (rng.integers(low, high, (70, 70)).astype(dtype) for _ in "ab")
out = {1: np.int32, 2: np.int16, 4: np.float32}[dtype.itemsize]
with paths.only(SMALL):  # others compile long
    assert (nbkernels.mm(a, b, out_dtype=out) == a.astype(out) @ b.astype(out)).all()
a = a.astype("f")
assert (nbkernels.add(a, a.T) == a + a.T).all()
wide = any("%zmm" in text for text in texts)
assert wide == (levels.width(level.features) == 512), wide
assert any("vpdpbusd" in text for text in texts) == ("avx512vnni" in level.features and dtype.itemsize == 1)
assert len(list(Path(sys.argv[2]).glob("*.nbc"))) == len(texts)
"""


@pytest.mark.sampled
@needs_level
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "int16"])
@pytest.mark.parametrize("level", [V3, VNNI], ids=str)
def test_a_level_is_compiled_for_and_right_on_this_processor(tmp_path, level, dtype):
    """Instructions that this one may lack are in the level's code, and results are NumPy's, exactly."""
    (tmp_path / "out").mkdir()
    environment = dict(os.environ, NBKERNELS_CACHE_DIR=str(tmp_path / "cache"))
    line = [sys.executable, "-W", "error", "-c", CROSS, str(level), str(tmp_path / "out"), dtype]
    result = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr[-3000:]


# -- the wheel ---------------------------------------------------------------------------------------------------------


def built(source, prebuilt, out):
    code = f"from setuptools import build_meta; print(build_meta.build_wheel({str(out)!r}))"
    environment = dict(os.environ, NBKERNELS_PREBUILT=str(prebuilt))
    return subprocess.run([sys.executable, "-c", code], cwd=source, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of what a wheel is built from."""
    source = tmp_path_factory.mktemp("tree")
    for name in ("nbkernels", "dispatch"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    return source


FIRST = """
import json, sys
import nbkernels
from nbkernels.calls import sets
from numba.core import event
with event.install_recorder("numba:compile") as compiled:
    for _, call in sets.calls(sys.argv[1]):
        call()
found = nbkernels.specializations()
others = [each.name for each in found if not each.where.startswith("packaged")]
print(json.dumps([len(compiled.buffer), others, nbkernels.__file__]))
"""


def test_the_thirty_calls_of_a_release_in_an_empty_home(thirty, tree, tmp_path):
    """The wheel is this Python's and platform's; from it, in another place, thirty everyday calls compile nothing."""
    result = built(tree, thirty, tmp_path)
    assert result.returncode == 0, result.stderr
    (wheel,) = tmp_path.glob("*.whl")
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert wheel.name.startswith(f"nbkernels-{nbkernels.__version__}-{tag}-{tag}")
    assert not wheel.name.endswith("-any.whl")
    assert wheel.stat().st_size < 25e6
    with zipfile.ZipFile(wheel) as content:
        names = {name for name in content.namelist() if name.startswith("nbkernels/prebuilt/")}
        content.extractall(tmp_path / "site")
    parts = [f"nbkernels/prebuilt/{files.toolchain()}/{HERE}/{file.name}" for file in kernels(thirty, HERE)]
    assert names == {*parts, f"nbkernels/prebuilt/{files.toolchain()}/{files.RECORD}"}
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NBKERNELS_", "XDG_", "PYTHONDONTWRITE"))}
    environment |= {"HOME": str(tmp_path / "home"), "PYTHONPATH": str(tmp_path / "site")}
    line = [sys.executable, "-c", FIRST, str(thirty.with_suffix(".jsonl"))]
    result = subprocess.run(line, env=environment, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stderr == ""
    compiled, others, place = json.loads(result.stdout)
    assert (compiled, others) == (0, [])
    assert Path(place).is_relative_to(tmp_path)
    assert not list((tmp_path / "home").rglob("*.nbc"))


def test_a_wheel_carries_kernels_for_gpus_under_any_python(tree, tmp_path):
    """Where they were made from its sources; without kernels for processors it stays pure."""
    own = sources.digest(*sources.OF_CUDA)[:16]
    file = tmp_path / "out" / "cuda" / own / "sm_90a" / "elementwise-make-0.nbc"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"machine code")
    result = built(tree, tmp_path / "out", tmp_path)
    assert result.returncode == 0, result.stderr
    (wheel,) = tmp_path.glob("*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as content:
        carried = f"nbkernels/prebuilt/cuda/{own}/sm_90a/{file.name}"
        assert [name for name in content.namelist() if "prebuilt" in name] == [carried]
    file.parent.parent.rename(tmp_path / "out" / "cuda" / "0123456789abcdef")
    result = built(tree, tmp_path / "out", tmp_path / "other")
    assert result.returncode != 0
    assert "were made from other sources" in result.stderr


def test_a_wheel_of_what_was_made_with_something_else_is_not_built(thirty, tree, tmp_path):
    for what in ("python", "sources", "options"):
        made = json.loads((thirty / files.toolchain() / files.RECORD).read_text()) | {what: "another"}
        (tmp_path / what / "0").mkdir(parents=True)
        (tmp_path / what / "0" / files.RECORD).write_text(json.dumps(made))
        result = built(tree, tmp_path / what, tmp_path)
        assert result.returncode != 0
        assert f"was made with another {what}" in result.stderr
    result = built(tree, tmp_path / "nowhere", tmp_path)
    assert "it holds no toolchain.json; wanted is what `python -m nbkernels prebuild` made" in result.stderr
    assert not list(tmp_path.glob("*.whl"))


# -- what is told ------------------------------------------------------------------------------------------------------


def test_info_tells_which_level_is_used(thirty, monkeypatch):
    from nbkernels.commands import info

    monkeypatch.setattr(levels, "PREBUILT", thirty)
    with fresh():
        (line,) = info.packaged()
        assert line.startswith(f"{HERE}: {len(kernels(thirty, HERE))} kernels, ")
        assert line.endswith(" MB, used")
    monkeypatch.setattr(levels, "target", lambda: (X86, "", frozenset({"sse2"})))
    with fresh():
        (line,) = info.packaged()
        assert "not used: the processor lacks avx" in line


@contextlib.contextmanager
def fresh():
    """What this process knows of packaged code is found out anew, and again afterwards."""
    known = levels.serving, levels.directory, levels.problem, levels._made
    for each in known:
        each.cache_clear()
    try:
        yield
    finally:
        for each in known:
            each.cache_clear()


def test_specializations_print_as_a_table():
    import numpy as np

    nbkernels.add(np.ones((4, 4), np.float32), 1.0)
    found = nbkernels.specializations()
    assert found
    assert all(each.bytes > 0 and each.seconds > 0 for each in found)
    header, _, *rows = str(found).splitlines()
    assert header.split() == ["name", "where", "bytes", "seconds"]
    assert len(rows) == len(found)
    assert "nbkernels.cpu.elementwise.entry.elementwise_small" in str(found)


def test_sources_are_known_to_the_build():
    """setup.py reads the digest without importing the package."""
    import runpy

    assert runpy.run_path(sources.__file__)["digest"]() == files.made_by()["sources"]
