"""What goes from the cache, by itself and by `python -m nbkernels cache`; and what never does."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from nbkernels import cli
from nbkernels.jit.disk import files, upkeep

DAY = 86400
OLD, OTHER = "0123456789abcdef", "fedcba9876543210"


@pytest.fixture(autouse=True)
def base(tmp_path, monkeypatch):
    base = tmp_path / "cache"
    base.mkdir(mode=0o700)
    monkeypatch.setenv("NBKERNELS_CACHE_DIR", str(base))
    monkeypatch.delenv(upkeep.SIZE, raising=False)
    monkeypatch.setattr(upkeep, "_written", {})
    monkeypatch.setattr(files, "NOTICES", [])
    return base


def filled(base, name, *days, size=1000, record=True):
    """A toolchain's directory, with an entry last used so many days ago for each of these."""
    directory = base / name
    directory.mkdir(mode=0o700, exist_ok=True)
    paths = []
    if record:
        paths.append(directory / files.RECORD)
        paths[0].write_text(json.dumps({"nbkernels": "0.0.1", "python": "cpython 3.9", "numba": "0.50"}))
    for day in days:
        paths.append(directory / f"entry{day}-{len(paths)}.nbc")
        paths[-1].write_bytes(bytes(size))
    for path, day in zip(paths, (max(days, default=0), *days) if record else days):
        aged(path, day)
    return directory


def aged(path, days):
    os.utime(path, (time.time() - days * DAY,) * 2)


def names(base):
    return sorted(path.relative_to(base).as_posix() for path in base.rglob("*"))


def write(base, name=None, size=500):
    """As a compilation does."""
    directory = base / (name or files.toolchain())
    directory.mkdir(mode=0o700, exist_ok=True)
    file = directory / f"new{len(list(directory.iterdir()))}.nbc"
    files.write(file, bytes(size - files.SEAL))
    return file


def test_old_toolchains_go_with_the_first_file_that_is_written(base):
    filled(base, OLD, 31, 40)
    filled(base, OTHER, 29, 40)
    write(base)
    assert not (base / OLD).exists()
    assert len(names(base / OTHER)) == 3
    filled(base, OLD, 31)
    write(base)  # once a process
    assert (base / OLD).exists()


def test_a_toolchain_without_a_record(base):
    """As versions before this one made them: its entries say when it was used."""
    filled(base, OLD, 31, record=False)
    filled(base, OTHER, 31, 3, record=False)
    write(base)
    assert names(base)[-3:] == [OTHER, f"{OTHER}/entry3-1.nbc", f"{OTHER}/entry31-0.nbc"]
    assert not (base / OLD).exists()


def test_this_toolchain_stays_however_old(base):
    filled(base, files.toolchain(), 400)
    write(base)
    assert f"{files.toolchain()}/entry400-1.nbc" in names(base)


def test_use_is_noted_once_a_day(base, monkeypatch):
    """In the toolchain's record by each process, in a file's own time when it is read."""
    directory = base / files.toolchain()
    record, file = directory / files.RECORD, write(base)
    for path in (record, file):
        path.touch()
    for days, noted in ((0.5, False), (1.5, True), (-1.5, True)):  # in the future: of another clock
        for path in (record, file):
            aged(path, days)
        before, began = (record.stat().st_mtime, file.stat().st_mtime), time.time()
        assert files.read(file) is not None
        assert files._found.__wrapped__() == (directory, None)
        for path, old in zip((record, file), before):
            assert (path.stat().st_mtime != old) is noted
            assert not noted or began - 1 <= path.stat().st_mtime <= time.time() + 1  # stamps are coarse


def test_a_file_that_is_not_whole_is_not_in_use(base):
    file = write(base)
    file.write_bytes(b"foreign")
    aged(file, 3)
    assert files.read(file) is None
    assert time.time() - file.stat().st_mtime > 2 * DAY


def test_a_record_says_what_made_it(base):
    files._found.__wrapped__()
    record = json.loads((base / files.toolchain() / files.RECORD).read_text())
    assert record == {"nbkernels": cli.nbkernels.__version__} | files.made_by()
    assert {"python", "platform", "numba", "llvmlite", "options", "sources"} < set(record)


def test_the_least_recently_used_go_first(base, monkeypatch):
    monkeypatch.setenv(upkeep.SIZE, "5K")
    filled(base, OTHER, 4, 1, 3)
    filled(base, files.toolchain(), 2, 5)
    write(base, size=100)
    assert len(names(base)) == 10  # 5100 of 5120 bytes
    write(base, size=100)  # 5200: down to nine tenths
    assert [name for name in names(base) if "entry" in name] == sorted(
        [f"{OTHER}/entry1-2.nbc", f"{OTHER}/entry3-3.nbc", f"{OTHER}/entry4-1.nbc", f"{files.toolchain()}/entry2-1.nbc"]
    )
    assert (base / OTHER / files.RECORD).exists()


@pytest.mark.parametrize("most", [0, 1, 999])
def test_a_file_larger_than_the_bound(base, monkeypatch, most):
    monkeypatch.setenv(upkeep.SIZE, str(most))
    file = write(base, size=1000)
    assert not file.exists()


def test_the_cache_is_counted_once(base, monkeypatch):
    """And again where what was added makes it too large."""
    monkeypatch.setenv(upkeep.SIZE, "10K")
    filled(base, OTHER, 1, 2)
    counted = []
    monkeypatch.setattr(upkeep, "toolchains", lambda base, count=upkeep.toolchains: counted.append(1) or count(base))
    for number in range(16):
        write(base, size=500)
        assert len(counted) == 1, number
    write(base, size=500)
    assert len(counted) == 2
    assert sum(file.stat().st_size for file in base.rglob("*.nbc")) <= 9 * 1024 + 1000


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ("1000", 1000), ("0", 0), ("2K", 2048), ("2k", 2048), ("3M", 3 << 20), ("1.5G", 3 << 29), ("1 GiB", 1 << 30),
        ("2GB", 2 << 30), ("1T", 1 << 40), (" 7B ", 7), ("", 1 << 30), (" ", 1 << 30),
    ],
)  # fmt: skip
def test_sizes(monkeypatch, given, size):
    monkeypatch.setenv(upkeep.SIZE, given)
    assert upkeep.bound() == (size, None)


@pytest.mark.parametrize(
    "given", ["much", "-1", "1e9", "1X", "K", "1KK", "nan", "0x10", "1,5G", "٣", "9" * 5000, "1\nG"]
)
def test_what_is_no_size(base, monkeypatch, given):
    monkeypatch.setenv(upkeep.SIZE, given)
    filled(base, OTHER, 1)
    with pytest.warns(RuntimeWarning, match="^NBKERNELS_CACHE_SIZE=.* is no size .*: 1.0 GiB is used$"):
        write(base)
    write(base)  # says nothing more
    assert (base / OTHER / "entry1-1.nbc").exists()


def test_what_a_process_began_and_left(base):
    directory = filled(base, OTHER, 1)
    for name, days in (("add.nbcabcd_123.tmp", 2), ("tiles.jsonabcd_123.tmp", 2), ("mul.nbcabcd_123.tmp", 0.5)):
        (directory / name).write_text("")
        aged(directory / name, days)
    write(base)
    assert [path.name for path in directory.glob("*.tmp")] == ["mul.nbcabcd_123.tmp"]


def command(*arguments):
    return cli.main(["cache", *arguments])


def test_listing(base, capsys, monkeypatch):
    filled(base, OTHER, 3, 10)
    filled(base, files.toolchain(), 0)
    files._found.__wrapped__()
    monkeypatch.setenv(upkeep.SIZE, "2G")
    before = names(base)
    assert command() == 0
    text = capsys.readouterr().out
    assert re.search(rf"^path +{re.escape(str(base))}$", text, re.MULTILINE)
    assert re.search(r"^size +3\.\d KiB of at most 2\.0 GiB \(NBKERNELS_CACHE_SIZE\)$", text, re.MULTILINE)
    assert re.search(r"^entries +3$", text, re.MULTILINE)
    used = time.strftime("%Y-%m-%d", time.localtime(time.time() - 3 * DAY))
    assert re.search(
        rf"^{OTHER} +2 +2\.\d KiB +{used} +cpython 3\.9 .*nbkernels 0\.0\.1 +numba 0\.50", text, re.MULTILINE
    )
    assert re.search(rf"^{files.toolchain()} \* +1 ", text, re.MULTILINE)
    assert names(base) == before


def test_listing_of_nothing(base, capsys):
    base.rmdir()
    assert command() == 0
    assert re.search(r"^entries +0$", capsys.readouterr().out, re.MULTILINE)
    assert not base.exists()
    for option in ("--prune", "--clear"):
        assert command(option) == 0
        assert capsys.readouterr().out == f"{base}: nothing to remove\n"
    base.write_text("")
    assert command() == 2
    assert re.fullmatch(r"cache: .*Not a directory.*\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    "record", [b"", b"{", b"[1]", b"null", b"\xff", b"[" * 100_000, b'{"python": "\\u001b[2J", "options": 3}']
)
def test_listing_of_broken_records(base, capsys, record):
    (filled(base, OTHER, 1) / files.RECORD).write_bytes(record)
    assert command() == 0
    text = capsys.readouterr().out
    assert OTHER in text
    assert "\x1b" not in text


def test_listing_of_what_is_no_size(capsys, monkeypatch):
    monkeypatch.setenv(upkeep.SIZE, "much")
    assert command() == 0
    assert re.search(r"^note +NBKERNELS_CACHE_SIZE='much' is no size ", capsys.readouterr().out, re.MULTILINE)


def test_prune_leaves_this_toolchain(base, capsys):
    filled(base, OTHER, 0, 1)
    filled(base, OLD, 0)
    filled(base, files.toolchain(), 400)
    (base / OLD / "tiles.json").write_text("{}")
    before = names(base / files.toolchain())
    assert command("--prune") == 0
    assert re.fullmatch(r".*: toolchains removed: 2, 3 entries, 3\.\d KiB\n", capsys.readouterr().out)
    assert [path.name for path in base.iterdir()] == [files.toolchain()]
    assert names(base / files.toolchain()) == before


def test_clear_leaves_nothing(base, capsys):
    filled(base, OTHER, 0)
    write(base)
    assert command("--clear") == 0
    assert not list(base.iterdir())


def test_both_at_once(capsys):
    with pytest.raises(SystemExit, match="2"):
        command("--prune", "--clear")
    assert "argument --clear: not allowed with argument --prune" in capsys.readouterr().err


def links(tmp_path):
    """A user's own files, and a directory that looks like a toolchain's, elsewhere."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    precious = filled(elsewhere, OLD, 400)
    (precious / "diary.txt").write_text("")
    return precious


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX: links that anybody may make")
def test_no_link_is_followed(base, tmp_path, monkeypatch):
    precious = links(tmp_path)
    before = names(tmp_path / "elsewhere")
    (base / OLD).symlink_to(precious, target_is_directory=True)
    directory = filled(base, OTHER, 40)
    (directory / "linked.nbc").symlink_to(precious / "diary.txt")
    (directory / "below").symlink_to(precious, target_is_directory=True)
    monkeypatch.setenv(upkeep.SIZE, "1")
    write(base)
    files._used(base / files.toolchain())
    (directory / "entry.nbc").write_text("")
    assert command("--prune") == 2  # the directory with links stays
    (directory / "entry.nbc").write_text("")
    assert command("--clear") == 2
    assert names(tmp_path / "elsewhere") == before
    assert sorted(path.name for path in base.iterdir()) == sorted([OLD, OTHER])
    assert sorted(path.name for path in directory.iterdir()) == ["below", "linked.nbc"]


def test_what_is_not_the_caches_own_stays(base, capsys):
    """Also where somebody has put the cache into a directory of other things."""
    others = [base / "notes.nbc", base / "folder" / "x.nbc", base / ("a" * 16) / "thesis.tex", base / ("b" * 16)]
    mixed = filled(base, OTHER, 4)
    others += [mixed / "thesis.tex", mixed / "folder.nbc" / "x.nbc", base / ("A" * 16) / "x.nbc", base / "1" / "x.nbc"]
    for path in others:
        path.parent.mkdir(exist_ok=True)
        path.mkdir() if path.name == "b" * 16 else path.write_text("")
    write(base)
    assert command("--clear") == 2
    assert re.search(rf"^cache: \S+{OTHER} stays: .*not empty", capsys.readouterr().err)
    left = {path for path in base.rglob("*") if path.is_file() or path.name == "b" * 16}
    assert left == set(others)


def test_what_cannot_be_removed_is_named(base, capsys, monkeypatch):
    filled(base, OTHER, 1)
    filled(base, OLD, 1)
    unlink = Path.unlink

    def refuse(path, **kwargs):
        if path.parent.name == OLD:
            raise PermissionError(13, "Permission denied")
        unlink(path, **kwargs)

    monkeypatch.setattr(Path, "unlink", refuse)
    assert command("--clear") == 2
    out, err = capsys.readouterr()
    assert err == f"cache: {base / OLD} stays: Permission denied\n"
    assert "toolchains removed: 1, " in out
    assert not (base / OTHER).exists()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX: modes of files")
def test_nothing_is_removed_where_others_can_write(base, capsys):
    """They could put a link in a directory's place."""
    filled(base, OTHER, 1)
    base.chmod(0o777)
    assert command("--clear") == 2
    assert re.fullmatch(
        r"cache: .* can be written by others \(chmod go-w\): nothing is removed\n", capsys.readouterr().err
    )
    assert (base / OTHER / "entry1-1.nbc").exists()


def test_another_users_directory_is_not_the_caches_own(base, monkeypatch):
    """In /tmp, say, where they could put a link in its place meanwhile."""
    filled(base, OTHER, 400)
    before = names(base)
    monkeypatch.setattr(files, "foreign", lambda state: state.st_ino == (base / OTHER).stat().st_ino)
    write(base)
    assert command("--clear") == 0
    assert names(base) == before


CHILD = """
import sys
from nbkernels.jit.compile.cache import entry
def made(number):
    def add(x):
        return x + number
    return entry(add, "int64(int64)", f"test_upkeep_{number}")
for number in range(int(sys.argv[1])):
    assert made(number)(1) == 1 + number
print("right")
"""


def started(base, count, **env):
    line = [sys.executable, "-W", "error", "-c", CHILD, str(count)]
    env = os.environ | {"NBKERNELS_CACHE_DIR": str(base)} | env
    return subprocess.Popen(line, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_beside_processes_that_run(base):
    """Two that load and write, in a cache that is cleared all the time, and bounded to less than they write."""
    racers = [started(base, 7, **{upkeep.SIZE: "20K"}) for _ in range(2)]
    cleared = 0
    while any(racer.poll() is None for racer in racers):
        for toolchain in upkeep.toolchains(base):
            cleared += not upkeep.remove(toolchain)
        time.sleep(0.02)
    assert [racer.communicate(timeout=300) for racer in racers] == [("right\n", "")] * 2
    assert cleared
    last = started(base, 7)
    assert last.communicate(timeout=300) == ("right\n", "")
    assert not list(base.rglob("*.tmp"))


@pytest.mark.filterwarnings("ignore:what is compiled cannot be kept")  # removed and made at the same moment
def test_threads_that_write_and_remove_at_once(base, monkeypatch):
    """What is read is whole; what cannot be written is written by the next."""
    monkeypatch.setenv(upkeep.SIZE, "20K")
    wrong, end = [], threading.Event()
    paths = [base / files.toolchain() / f"add{number}.nbc" for number in range(8)]

    def work(path):
        while not end.is_set():
            files.write(path, path.name.encode() * 500)
            if (found := files.read(path)) not in (None, path.name.encode() * 500):
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    for _ in range(200):
        for toolchain in upkeep.toolchains(base):
            upkeep.remove(toolchain)
    end.set()
    for thread in threads:
        thread.join()
    assert not wrong
