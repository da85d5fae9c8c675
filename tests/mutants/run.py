"""A copy of the tree in which one fault is planted at a time, and the tests that it must fail."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("nbkernels", "dispatch", "tests", "examples", "docs")
LIMIT = 900  # seconds of one run of tests: a fault may make them endless

# Tests in the copy. Compiled code is kept by the hash of its sources; where a fault is in what is planned in Python, as
# most are, the code of the tree without it still holds, and is found by that hash.
BEGIN = """
import sys
import pytest
if sys.argv[1]:
    import nbkernels.jit.disk.files
    nbkernels.jit.disk.files.toolchain = lambda: sys.argv[1]
sys.exit(pytest.main(["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", *sys.argv[2:]]))
"""


class Mutant(NamedTuple):
    """A fault: text that a file has exactly once, what stands there in its place, and tests that must then fail."""

    file: str
    old: str
    new: str
    tests: str
    compiled: bool = False  # what it is in is compiled: nothing on disk holds any more

    def __str__(self):
        return f"{self.file}: {self.old.strip()!r} -> {self.new.strip()!r} [{self.tests}]"


def planted(mutant, text):
    """A file's text with the fault in it."""
    count = text.count(mutant.old)
    if count != 1:
        raise ValueError(f"{mutant}: its text is found {count} times")
    return text.replace(mutant.old, mutant.new)


class Tree:
    """As a context manager: the copy, in a temporary directory, with compiled code that its runs share."""

    def __enter__(self):
        self.path = Path(tempfile.mkdtemp(prefix="nbkernels-mutants-"))
        for part in PARTS:
            shutil.copytree(ROOT / part, self.path / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", "ARCHITECTURE.md"):
            shutil.copy(ROOT / name, self.path / name)
        self.cache = os.environ.get("NBKERNELS_CACHE_DIR") or str(self.path / "cache")
        self.sound = {}  # tests -> what they said without a fault, None where they passed
        code = "import nbkernels.jit.disk.files as c; print(c.toolchain())"
        self.toolchain = self.python("-c", code).stdout.strip()
        return self

    def __exit__(self, *exception):
        shutil.rmtree(self.path, ignore_errors=True)

    def python(self, *arguments, cache=None):
        env = os.environ | {"NBKERNELS_CACHE_DIR": cache or self.cache, "PYTHONDONTWRITEBYTECODE": "1", "CI": "true"}
        return subprocess.run(
            [sys.executable, *arguments], cwd=self.path, env=env, capture_output=True, text=True, timeout=LIMIT
        )

    def run(self, mutant, cache=None):
        """(whether the tests passed, what they said); None for those that do not end."""
        try:
            toolchain = self.toolchain if cache is None else ""
            done = self.python("-c", BEGIN, toolchain, *shlex.split(mutant.tests), cache=cache)
        except subprocess.TimeoutExpired:
            return None, f"longer than {LIMIT} s"
        if done.returncode in (3, 4, 5):  # pytest's own errors: no such test
            raise ValueError(f"{mutant}: {done.stdout[-500:]}{done.stderr[-500:]}")
        return done.returncode == 0, done.stdout[-1500:]

    def judge(self, mutant):
        """("killed", "survived", "endless" or "unsound", what the tests said). Whether an endless run found the fault
        nobody knows."""
        if mutant.tests not in self.sound:
            passed, told = self.run(mutant)
            self.sound[mutant.tests] = None if passed else told
        if self.sound[mutant.tests] is not None:
            return "unsound", f"its tests fail without it:\n{self.sound[mutant.tests]}"
        file = self.path / mutant.file
        text = file.read_text(encoding="utf-8")
        file.write_text(planted(mutant, text), encoding="utf-8")
        try:
            if mutant.compiled:
                with tempfile.TemporaryDirectory() as cache:
                    passed, told = self.run(mutant, cache)
            else:
                passed, told = self.run(mutant)
        finally:
            file.write_text(text, encoding="utf-8")
        return {True: "survived", False: "killed", None: "endless"}[passed], told
