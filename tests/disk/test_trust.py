"""Nothing is loaded that another user owns or can write, and the first file of a process says so in one line."""

import os
import pickle
import re
import shutil
import stat
import subprocess
import sys

import pytest

from nbkernels.jit.disk import files, upkeep

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX: owners and modes of files")

OTHER = 4242  # a user's id


def state(mode, owner):
    return os.stat_result((mode, 0, 0, 1, owner, 0, 0, 0, 0, 0))


@pytest.mark.parametrize("me", [0, 1000])
@pytest.mark.parametrize(
    ("mode", "owner", "wrong"),
    [
        (stat.S_IFREG | 0o600, "me", None),
        (stat.S_IFREG | 0o644, "root", None),
        (stat.S_IFREG | 0o600, "other", "another user (4242)"),
        (stat.S_IFREG | 0o660, "me", "by others"),
        (stat.S_IFREG | 0o602, "root", "by others"),
        (stat.S_IFREG | stat.S_ISVTX | 0o602, "me", "by others"),
        (stat.S_IFDIR | 0o755, "me", None),
        (stat.S_IFDIR | 0o775, "me", "by others"),
        (stat.S_IFDIR | 0o707, "root", "by others"),
        (stat.S_IFDIR | stat.S_ISVTX | 0o777, "root", None),  # /tmp
        (stat.S_IFDIR | stat.S_ISVTX | 0o777, "other", "another user (4242)"),
    ],
)
def test_who_is_trusted(monkeypatch, me, mode, owner, wrong):
    monkeypatch.setattr(os, "geteuid", lambda: me)
    said = files.doubt(state(mode, {"me": me, "root": 0, "other": OTHER}[owner]))
    assert (said is None) if wrong is None else (wrong in said)


def test_windows_has_no_such_modes(monkeypatch):
    monkeypatch.delattr(os, "geteuid")
    assert files.doubt(state(stat.S_IFREG | 0o666, OTHER)) is None


def given_away(path):
    """Make it another user's; where only root may, this process is another's from there on."""
    if os.geteuid() == 0:
        os.chown(path, OTHER, -1)
        return ""
    return f"import os; os.geteuid = lambda: {OTHER}\n"


def writable(path):
    os.chmod(path, 0o770 if path.is_dir() else 0o660)
    return ""


CODE = """
from nbkernels.commands import info
from nbkernels.jit.disk import files
from nbkernels.jit.compile.cache import entry
read, loaded = files.read, []
def noted(file):
    content = read(file)
    loaded.append(content is not None)
    return content
files.read = noted
def one(x):
    return x + 1
def two(x):
    return x + 2
assert entry(one, "int64(int64)", "test_trust_one")(1) == 2
assert entry(two, "int64(int64)", "test_trust_two")(1) == 3
print(sum(loaded), *[value for name, value in info.facts() if name == "cache"], sep="|")
"""


def run(cache, before=""):
    env = os.environ | {"NBKERNELS_CACHE_DIR": str(cache)}
    line = [sys.executable, "-c", before + CODE]
    result = subprocess.run(line, env=env, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-2000:]
    loaded, *said = result.stdout.strip().split("|")
    return int(loaded), said, result.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    cache = tmp_path_factory.mktemp("trust") / "cache"
    run(cache)
    assert run(cache)[0] == 2
    return cache


@pytest.fixture
def cache(made, tmp_path):
    return shutil.copytree(made, tmp_path / "cache")


def content(cache):
    return {path: (path.is_dir() or path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(cache.rglob("*"))}


@pytest.mark.sampled
@pytest.mark.parametrize("how", [given_away, writable])
@pytest.mark.parametrize("what", ["base", "toolchain"])
def test_a_directory_of_others(cache, how, what):
    """It is not written either. What lies in it might be sound, but whose it is nobody can tell."""
    directory = cache if what == "base" else next(cache.iterdir())
    before = how(directory)
    kept = content(cache)
    loaded, said, warned = run(cache, before)
    assert not loaded
    assert content(cache) == kept
    wrong = rf"{re.escape(str(directory))} (belongs to another user \(\d+\)|can be written by others \(chmod go-w\))"
    if not before:
        assert re.fullmatch(
            rf"<nbkernels>:1: RuntimeWarning: what is compiled is not kept: {wrong} \(NBKERNELS_CACHE_DIR .*\)\n",
            warned,
        )
        assert re.fullmatch(rf"none: {wrong}; every process compiles .*", said[0])
        result = subprocess.run(
            [sys.executable, "-W", "error", "-m", "nbkernels", "cache"],
            env=os.environ | {"NBKERNELS_CACHE_DIR": str(cache)}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert re.search(rf"^note +{wrong}: nothing in it is loaded$", result.stdout, re.MULTILINE)


@pytest.mark.parametrize("how", [given_away, writable])
def test_a_file_of_others(cache, how):
    """It is compiled again, and this process's own takes its place."""
    file = next(cache.rglob("test_trust_one*.nbc"))
    before = how(file)
    if not before:
        assert "1 of its files are not loaded" in upkeep.toolchains(cache)[0].doubts()[0]
    loaded, said, warned = run(cache, before)
    assert loaded == (0 if before else 1)
    assert warned.count("\n") == 1
    assert re.search(r": a file in \S+ (belongs to another user|can be written by others).*: it is not loaded$", warned)
    assert "it is not loaded" in said[-1]
    if not before:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert run(cache)[::2] == (2, "")


def test_a_link_to_a_file_of_others(tmp_path):
    """What counts is who wrote what is read."""
    file, link = tmp_path / "else" / "add.nbc", tmp_path / "build" / "add.nbc"
    for each in (file, link):
        each.parent.mkdir(mode=0o700)
    files.write(link, pickle.dumps("code"))
    link.rename(file)
    link.symlink_to(file)
    assert files.read(link) is not None
    file.chmod(0o666)
    with pytest.warns(RuntimeWarning, match="can be written by others"):
        assert files.read(link) is None


def test_what_is_made_is_its_users_alone(tmp_path):
    old = os.umask(0)
    try:
        run(tmp_path / "new" / "cache")
    finally:
        os.umask(old)
    paths = [tmp_path / "new" / "cache", *(tmp_path / "new" / "cache").rglob("*")]
    assert len(paths) >= 5
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_sticky_directory_will_do(tmp_path):
    """/tmp, where a process of a container without a home can write."""
    tmp_path.chmod(0o1777)
    assert run(tmp_path)[2] == ""
    assert run(tmp_path)[0] == 2
