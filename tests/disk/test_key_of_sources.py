"""The key of compiled code: it changes with the sources and what compiles them, and with nothing else."""

import compileall
import os
import py_compile
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from nbkernels.jit.disk import files, sources
from tests.house.test_layers import imports

PACKAGE, FILES = sources.PACKAGE, sources.files()


def test_every_source_that_compiled_code_may_be_made_from_counts():
    """All that the rooms import of the package, but for what reads and writes files, the record of that, how many
    calls are first ones, what keeps signals and forks from an import, the numbers of threads and the modes, which code
    is given, and what only calls kernels."""
    counted = {name.removesuffix(".py").replace("/", ".") for name, _ in FILES}
    for _, file in FILES:
        name = file.relative_to(PACKAGE.parent).with_suffix("").as_posix().replace("/", ".")
        for target in imports(name.removesuffix(".__init__"), file):
            root, _, inner = target.partition(".")
            parts = inner.split(".")
            while parts and not (PACKAGE.joinpath(*parts[:-1], f"{parts[-1]}.py")).exists():
                parts.pop()
            if root == "nbkernels" and parts and parts[0] != "dispatch":  # which knows no kernel
                others = {
                    "background",
                    "first_calls",
                    "store",
                    "winners",
                    "code_origins",
                    "rounding",
                    "shield",
                    "threads",
                }
                others.add("modes")
                assert ".".join(parts) in counted | others, f"{name} imports {target}"


def copy(to):
    """The package in another place."""
    for part, place in (("nbkernels", "nbkernels"), ("dispatch", "nbkernels/dispatch")):
        shutil.copytree(PACKAGE.parent / part, to / place, ignore=shutil.ignore_patterns("__pycache__", "dispatch"))
    return to


def run(code, package, cache):
    env = os.environ | {"PYTHONPATH": str(package), "NBKERNELS_CACHE_DIR": str(cache)}
    line = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    result = subprocess.run(line, env=env, cwd=cache.parent, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout.strip()


def test_the_key_in_other_places(tmp_path):
    """Of a copy it is the same; a new file in a folder of a room changes it."""
    ask = "from nbkernels.jit.disk import files; print(files.toolchain())"
    package = copy(tmp_path / "copy")
    assert run(ask, package, tmp_path) == files.toolchain()
    new = package / "nbkernels" / "cpu" / "folder" / "new.py"
    new.parent.mkdir()
    new.write_text("LIMIT = 3\n")
    changed = run(ask, package, tmp_path)
    assert changed != files.toolchain()
    new.write_text("LIMIT = 4\n")
    assert run(ask, package, tmp_path) != changed
    new.rename(new.with_name("newer.py"))
    assert run(ask, package, tmp_path) != changed


def without_sources(package):
    """Its modules as compiled files alone."""
    compileall.compile_dir(package, quiet=1, legacy=True)
    for file in package.rglob("*.py"):
        file.unlink()
    return package


def zipped(package):
    return Path(shutil.make_archive(str(package), "zip", package))


def test_code_objects_stand_for_sources(tmp_path):
    """The same modules are found by their code; the key changes with what they mean, and with no comment."""
    found = [name.removeprefix("nbkernels.") for name, _ in sources.codes()]
    assert found == sorted(
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name, _ in FILES
    )  # fmt: skip
    ask, keys = "from nbkernels.jit.disk import files; print(files.toolchain())", []
    package, name = copy(tmp_path / "copy"), Path("nbkernels", "jit", "ir", "tile.py")
    text = (package / name).read_text(encoding="utf-8")
    without_sources(package)
    for number, change in enumerate(("{}", "# one\n{}", "{}\nLIMIT = 3\n", "{}\nLIMIT = 4\n")):
        file = tmp_path / f"{number}.py"  # another place, of which code objects tell
        file.write_text(change.replace("{}", text), encoding="utf-8")
        py_compile.compile(file, package / name.with_suffix(".pyc"), doraise=True)
        keys.append(run(ask, package, tmp_path))
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


EVERY = """
import numpy as np, nbkernels as nb
assert {package!r} in nb.__file__
a = np.ones((40, 40), np.float32)
assert (nb.exp(0 * a) == 1).all()
assert (nb.elementwise(lambda x: x + 1)(a) == 2).all() and nb.dot(a[0], a[0]) == 40
with nb.use_in_numpy():
    assert (np.maximum(a, 2 * a) == 2).all()
from nbkernels.cpu.gemm import cost
from nbkernels.jit.disk import files
assert cost.PROBLEM is None and files.problem() is None
print({{each.where for each in nb.specializations()}})
"""


@pytest.mark.sampled
@pytest.mark.parametrize("how", [zipped, without_sources, lambda package: zipped(without_sources(package))])
def test_a_package_that_is_no_folder_of_sources(tmp_path, how):
    """In a zip, without sources, and both: calls work, and later processes compile nothing."""
    package = how(copy(tmp_path / "package"))
    code = EVERY.format(package=str(package))
    assert "compiled" in run(code, package, tmp_path / "cache")
    assert "compiled" not in run(code, package, tmp_path / "cache")


CALLS = """
import sys
import numpy as np, nbkernels
assert {package!r} in nbkernels.__file__
a = np.ones((4, 4), np.float32)
assert (nbkernels.add(a, a[0]) == 2).all()
from nbkernels.jit.compile.cache import entry
def divided(x, y):
    return x // y
assert entry(divided, "int64(int64, int64)", "test_sources")(7, 2) == 3
"""


def test_the_key_names_what_compiles(monkeypatch):
    """Each of these makes another; a patch release of Python does not."""

    def key():
        return files.toolchain.__wrapped__()

    plain, version = key(), files._version
    assert plain == files.toolchain()
    assert len(plain) == 16
    info = tuple(sys.version_info)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "version_info", (*info[:2], info[2] + 1, *info[3:]))
        patch.setattr(sys, "version", "another")
        assert key() == plain
    keys = {plain}
    for module, name, value in (
        (sys, "version_info", (info[0], info[1] + 1, *info[2:])),
        (sys, "abiflags", "t"),
        (sys.implementation, "name", "another"),
        (files, "_version", lambda package: "0.0" if package == "numba" else version(package)),
        (files, "_version", lambda package: "0.0" if package == "llvmlite" else version(package)),
        (files.sysconfig, "get_platform", lambda: "another"),
        (files.sources, "digest", lambda: "another"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value, raising=False)
            keys.add(key())
    for name, value in (("NUMBA_OPT", "1"), ("NUMBA_OPT", "2"), ("NUMBA_CPU_NAME", "1")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            keys.add(key())
    assert len(keys) == 11
    for name in files._HARMLESS:
        with monkeypatch.context() as patch:
            patch.setenv(name, "1")
            assert key() == plain
