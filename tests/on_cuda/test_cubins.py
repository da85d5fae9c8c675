"""CUDA kernels on disk: what they are known by, where they are found, what a process imports that finds them; and what
is said where a driver, a compiler or a card is not as it should be."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

try:
    from nbkernels import scalar
    from nbkernels.calls import sets
    from nbkernels.commands import cubins as building
    from nbkernels.cuda import assemble, cubins, elementwise, launch, rehearsal, toolchain
    from nbkernels.dispatch import driver
    from nbkernels.jit.disk import files
except (ImportError, RuntimeError) as error:
    pytest.skip(f"lacks the CUDA wheels: {str(error).splitlines()[0]}", allow_module_level=True)

HOPPER = (9, 0, "a")


def kernel(op="add", dtype="float32", ndim=1):
    way = dtype, dtype, "vector"
    return elementwise.kernel(scalar.find(op, np.dtype(dtype)), dtype, (way,), (way, way), None, ndim, 4, False)


def raising(reason):
    def call(*arguments):
        raise reason

    return call


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and nothing in the package."""
    monkeypatch.setattr(files, "directory", lambda: tmp_path)
    monkeypatch.setattr(cubins, "CARRIED", [])
    monkeypatch.setattr(cubins, "_locks", {})
    return tmp_path


@pytest.fixture
def compiled(monkeypatch):
    """The kernels that are compiled, in order, by a compiler that makes nothing of them."""
    made = []

    def fake(kernel, cc):
        made.append((kernel, cc))
        return cubins.Machine(b"\x7fELF\n" + str(kernel).encode(), "entry", "Used 9 registers")

    monkeypatch.setattr(assemble, "assemble", fake)
    return made


def test_a_kernel_is_known_by_all_that_its_machine_code_depends_on():
    kernels = [kernel(), kernel("subtract"), kernel(dtype="float64"), kernel(ndim=2)]
    kernels.append(launch.Kernel(kernels[0].make, kernels[0].arguments, 64))
    kernels.append(launch.Kernel(kernels[0].make, kernels[0].arguments, kernels[0].threads, shared=1024))
    names = [cubins.name(each, arch) for each in kernels for arch in ((8, 0), HOPPER)]
    assert len({*names}) == len(names)
    again = launch.Kernel(kernels[0].make, tuple(kernels[0].arguments), kernels[0].threads)
    assert again is not kernels[0]
    assert cubins.name(again, HOPPER) == cubins.name(kernels[0], HOPPER)


def test_a_kernels_name_is_the_same_in_every_process():
    code = f"from tests.on_cuda import test_cubins as t; print(t.cubins.name(t.kernel(), {HOPPER}))"
    seeds = (subprocess.check_output([sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, text=True)
             for seed in "12")  # fmt: skip
    assert {name.strip() for name in seeds} == {cubins.name(kernel(), HOPPER)}


def test_a_function_that_no_name_tells_apart_is_refused():
    own = launch.Kernel(kernel().make, (lambda x, y: x, *kernel().arguments[1:]), 256)
    with pytest.raises(TypeError, match="no function of the library"):
        cubins.name(own, HOPPER)


def test_what_is_compiled_is_found_again(cache, compiled):
    first = cubins.machine(kernel(), (9, 0))
    again = cubins.machine(kernel(), (9, 0))
    assert compiled == [(kernel(), HOPPER)]
    assert (first.fresh, again.fresh) == (True, False)
    assert (again.cubin, again.entry, again.report) == (first.cubin, first.entry, first.report)


def test_a_file_with_a_flipped_bit_is_compiled_anew(cache, compiled):
    first = cubins.machine(kernel(), (9, 0))
    (file,) = cache.glob("*.nbc")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert cubins.machine(kernel(), (9, 0)).cubin == first.cubin
    assert len(compiled) == 2


def test_another_compiler_compiles_anew_and_carried_code_serves_all(cache, compiled, tmp_path, monkeypatch):
    cubins.machine(kernel(), (9, 0))
    monkeypatch.setattr(cubins, "compiler", lambda: ("numba-cuda 99",))
    assert cubins.machine(kernel(), (9, 0)).fresh
    cubins.carry(kernel("multiply"), HOPPER, tmp_path / "carried")
    monkeypatch.setattr(cubins, "compiler", lambda: ("numba-cuda 100",))
    monkeypatch.setattr(cubins, "CARRIED", [tmp_path / "carried"])
    assert not cubins.machine(kernel("multiply"), (9, 0)).fresh
    assert cubins.machine(kernel("multiply"), (8, 0)).fresh  # of another architecture


def test_the_place_of_a_toolkit_tells_compilers_apart(monkeypatch):
    found = []
    for home in ("/usr/local/cuda-12.9", "/usr/local/cuda-13.0", None):
        monkeypatch.setattr(toolchain, "root", lambda home=home: home)
        found.append(cubins.compiler.__wrapped__())
    monkeypatch.setattr(toolchain, "root", raising(ImportError("none")))
    assert len({*found}) == 3
    assert cubins.compiler.__wrapped__() == found[-1]


def test_of_threads_that_ask_at_once_one_compiles(cache, compiled, monkeypatch):
    meanwhile, slow = threading.Event(), assemble.assemble

    def waits(kernel, cc):
        meanwhile.wait(0.2)  # long enough for the others to come, too
        return slow(kernel, cc)

    monkeypatch.setattr(assemble, "assemble", waits)
    threads = [threading.Thread(target=cubins.machine, args=(kernel(), (9, 0))) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(compiled) == 1


class Choosy:
    """A driver that takes machine code where it is new."""

    def __init__(self, refusing):
        self.refusing, self.loaded = refusing, []

    def cuLibraryLoadData(self, cubin, *options):
        self.loaded.append(cubin)
        return (self.refusing.pop(0) if self.refusing else 0), 1

    def cuLibraryGetKernel(self, library, name):
        return 0, 2


@pytest.mark.parametrize(("statuses", "compiles"), [([], 1), ([200], 2), ([209], 2), ([2], 1), ([200, 200], 2)])
def test_a_cubin_that_the_driver_refuses_is_compiled_anew_once(cache, compiled, monkeypatch, statuses, compiles):
    cubins.machine(kernel(), (9, 0))
    choosy = Choosy([*statuses])
    monkeypatch.setattr(driver, "bindings", lambda: choosy)
    launch.library.cache_clear()
    if statuses in ([2], [200, 200]):
        with pytest.raises(driver.DriverError):
            launch.library(kernel(), (9, 0))
    else:
        assert launch.library(kernel(), (9, 0)) == (2, 1)
    launch.library.cache_clear()
    assert len(compiled) == compiles


# A process that calls add on a card that takes notes; what it imported, and what it loaded.
PROCESS = """
import json, sys
from types import SimpleNamespace
import nbkernels
from nbkernels.cuda import launch, rehearsal

class Card(rehearsal.Card):
    CUfunction = CUstream = int
    CUlaunchConfig = SimpleNamespace
    loaded, launched = [], 0
    def cuLibraryLoadData(self, cubin, *options):
        self.loaded.append(len(cubin))
        return 0, 1
    def cuLibraryGetKernel(self, library, name):
        return 0, 2
    def cuLaunchKernelEx(self, *arguments):
        self.launched += 1
        return (0,)

import numpy as np
rehearsal.Card = Card
with rehearsal.card((9, 0)) as stage:
    rehearsal.driver.recorder.noted = None
    x, v = stage.stand((4, 4), np.dtype("f4"), (16, 4)), stage.stand((4,), np.dtype("f4"), (4,))
    y = stage.stand((2, 4, 4), np.dtype("f4"), (64, 16, 4))
    nbkernels.add(x, x)
    if sys.argv[1:]:  # with kernels that are not compiled: what chooses them imports no compiler
        rehearsal.driver.recorder.noted = id
        nbkernels.linear(x, x, v), nbkernels.bmm(y, y), nbkernels.mv(x, v), nbkernels.dot(v, v)
        nbkernels.sum_to(x, (4,)), nbkernels.maximum.reduce(x, 0), nbkernels.add.accumulate(x, 1)
    card = rehearsal.driver.bindings()
found = [name for name in ("numba", "numba.cuda", "numba.cuda.compiler", "cuda.bindings.nvvm") if name in sys.modules]
print(json.dumps([found, card.loaded, card.launched, [each.where for each in nbkernels.specializations()]]))
"""


def test_a_process_that_finds_its_cubins_imports_no_compiler(tmp_path):
    environment = os.environ | {"NBKERNELS_CACHE_DIR": str(tmp_path)}
    line = [sys.executable, "-c", PROCESS]
    runs = [json.loads(subprocess.check_output(command, env=environment)) for command in (line, [*line, "others"])]
    (imported, loaded, launched, where), (later, again, *_, then) = runs
    assert (launched, where, then) == (1, ["compiled"], ["cached"])
    assert "numba.cuda.compiler" in imported
    assert later == []
    assert loaded == again != [0]


def test_every_everyday_call_has_kernels_on_every_card():
    calls = building.calls("everyday")
    for arch in {*map(cubins.architecture, rehearsal.CARDS)}:
        kernels, refused = rehearsal.kernels(calls, arch)
        assert not refused
        made = {each.make.rpartition(".")[2] for each in kernels}
        assert {"elementwise:make", "reduce:make", "mv:make", "mv:dot"} <= made
        names = [cubins.name(each, arch) for each in kernels]
        assert len({*names}) == len(names)


def run(*command, **environment):
    command = [sys.executable, "-m", "nbkernels", *map(str, command)]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)


ONE = "less(float32 4x4, float32 4x4)"  # a call of the everyday set, which has one small kernel


def test_the_command_line_fills_the_cache_and_a_folder(tmp_path):
    """warmup, then prebuild, which compiles nothing that is there; a wheel's place; cards that there are not."""
    cache = {"NBKERNELS_CACHE_DIR": str(tmp_path / "cache")}
    calls = tmp_path / "calls.jsonl"
    (call,) = (call for label, call in sets.calls("everyday") if label == ONE)
    calls.write_text(call.line() + "\n")
    before = run("warmup", "--cuda", "9.0a", "--only", ONE, "--list", **cache)
    assert before.stdout.splitlines()[-1].startswith("sm_90a elementwise.make less")
    assert "cached" not in before.stdout
    made = run("warmup", "--cuda", "9.0a", "--only", ONE, "--jobs", 1, **cache)
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("CUDA kernels: 1 in ")
    assert "cached" in run("warmup", "--cuda", "9.0a", "--only", ONE, "--list", **cache).stdout
    built = run("prebuild", "--cuda", "9.0a", "--set", calls, "--out", tmp_path / "out", "--jobs", 1, **cache)
    assert built.returncode == 0, built.stderr
    (file,) = (tmp_path / "out").rglob("*.nbc")
    assert file.parts[-4:-1] == ("cuda", cubins.folder(), "sm_90a")
    refused = run("warmup", "--cuda", "9.0b", **cache)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "no compute capability" in refused.stderr


def test_a_rehearsal_leaves_nothing_behind():
    before = driver.bindings, driver.recorder.noted
    rehearsal.kernels([("fails", lambda stand: 1 / 0)], HOPPER)
    assert (driver.bindings, driver.recorder.noted) == before


@pytest.mark.parametrize("text", ["9", "hopper", "9.0b", "", "90.0.1"])
def test_what_is_no_compute_capability_is_refused(text):
    with pytest.raises(ValueError, match="no compute capability"):
        cubins.parse(text)


@pytest.mark.parametrize(("start", "said"), [
    (raising(RuntimeError("no libcuda.so.1")), "no libcuda.so.1.*no CUDA GPU, or no driver"),
    (lambda flags: (100,), "no CUDA GPU"),
    (lambda flags: (34,), "is a stub"),
    (lambda flags: (35,), r"older.*nbkernels\[cuda12\]"),
])  # fmt: skip
def test_a_driver_that_is_missing_or_too_old_is_told_in_a_line(monkeypatch, start, said):
    monkeypatch.setattr(driver, "library", lambda name: SimpleNamespace(cuInit=start))
    with pytest.raises(driver.DriverError, match=said) as raised:
        driver.bindings.__wrapped__()
    assert "\n" not in str(raised.value)


def test_without_cudas_python_packages_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(driver, "library", raising(ImportError("No module named 'cuda'")))
    with pytest.raises(ImportError, match=r"nbkernels\[cuda13\].*No module named 'cuda'"):
        driver.bindings.__wrapped__()


def test_a_function_that_the_driver_has_not_is_told_of_an_older_one(monkeypatch):
    double = SimpleNamespace(cuLibraryLoadData=raising(RuntimeError('Function "cuLibraryLoadData" not found')))
    monkeypatch.setattr(driver, "bindings", lambda: double)
    with pytest.raises(driver.DriverError, match=r"cuLibraryLoadData.*not found.*older than the CUDA libraries"):
        driver.ask("cuLibraryLoadData", b"")


@pytest.mark.parametrize("home", [{"XDG_CACHE_HOME": "/somewhere"}, {"HOME": "/home/user"}])
def test_without_platformdirs_the_cache_is_in_the_users_directory(monkeypatch, home):
    for name in ("NBKERNELS_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in home.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    found = {"XDG_CACHE_HOME": "/somewhere/nbkernels", "HOME": "/home/user/.cache/nbkernels"}
    assert files.base() == Path(found[next(iter(home))])


@pytest.mark.parametrize(("cc", "hint"), [((13, 0), "numba-cuda"), ((7, 0), "cuda12")])
def test_a_card_that_the_compiler_does_not_know_is_told_in_a_line(cc, hint):
    with pytest.raises(RuntimeError, match=f"not {cc[0]}.{cc[1]}; install .*{hint}") as raised:
        assemble.assemble(kernel(), cc)
    assert "\n" not in str(raised.value)


def test_numpy_has_row_stack_only_while_the_compiler_is_imported(monkeypatch):
    monkeypatch.delattr(np, "row_stack", raising=False)
    with toolchain.row_stack():
        assert np.array_equal(np.row_stack([[1], [2]]), [[1], [2]])
    assert "row_stack" not in vars(np)


def test_a_toolkit_that_is_missing_is_named_in_a_line(monkeypatch):
    monkeypatch.setattr(toolchain, "places", lambda: ["/nowhere"])
    with pytest.raises(ImportError, match=r"libdevice.10.bc is not found; install numba-cuda\[cu13\]") as raised:
        toolchain.root()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("module", ["cuda", "numba.cuda.np.arrayobj"])
def test_a_package_that_is_missing_is_named_in_a_line(cache, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(toolchain, "ready", toolchain.ready.__wrapped__)
    with pytest.raises(
        ImportError, match=rf"cannot be compiled here: .*{module}.*; install numba-cuda\[cu13\]"
    ) as raised:
        cubins.machine(kernel(), (9, 0))
    assert "\n" not in str(raised.value)


def test_a_toolkit_in_a_usual_place_is_told_to_numba(tmp_path, monkeypatch):
    file = tmp_path / "cuda-13.0" / toolchain.LIBDEVICE
    file.parent.mkdir(parents=True)
    file.touch()
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(toolchain, "wheels", list)
    monkeypatch.setattr(toolchain.glob, "glob", lambda pattern: [str(tmp_path / "cuda-13.0")])
    monkeypatch.setattr(toolchain.os.path, "exists", lambda path: Path(path) == file)
    assert toolchain.root() == str(tmp_path / "cuda-13.0")
