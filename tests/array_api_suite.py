"""The array API standard's own tests of nbkernels.array_api, beside the same of NumPy.

    python -m tests.array_api_suite CLONE [--examples N] [--processes N] [--json FILE] [--clone-only]
                                     [PYTEST'S ARGUMENTS ...]

CLONE is a clone of https://github.com/data-apis/array-api-tests with its submodule; where there is none, git makes it
there. What it needs, `pip install -r CLONE/requirements.txt` installs. Kernels do all calls, also the first ones that
NumPy would make. N examples of each test are always the same, but some tests of special cases draw one at random: what
fails here alone is run for NumPy up to AGAIN times more, and where it always passes it is a failure. --json writes what
bench/report.py puts into docs/numpy.md. PYTEST'S ARGUMENTS: `-k special` for some of the tests.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from nbkernels import first_calls
from nbkernels.commands import info

SUITE, COMMIT = "https://github.com/data-apis/array-api-tests", "55fcc60179efa2680ddd6cd926ddf17b83530e2b"
MODULES = "numpy", "nbkernels.array_api"
AGAIN = 20  # with which of two signs a 0 comes, one draw in two tells
ROOT = Path(__file__).resolve().parents[1]


def cloned(folder):
    """The folder with the suite in it; the commit that it is at."""
    if not folder.exists():
        subprocess.run(["git", "clone", "-q", SUITE, str(folder)], check=True)
        subprocess.run(["git", "-C", str(folder), "checkout", "-q", COMMIT], check=True)
        subprocess.run(["git", "-C", str(folder), "submodule", "-q", "update", "--init"], check=True)
    told = subprocess.run(["git", "-C", str(folder), "rev-parse", "HEAD"], capture_output=True, text=True)
    return told.stdout.strip()


def outcomes(folder, module, examples, processes, rest, tests=("array_api_tests",)):
    """File -> test -> whether it failed, of those that ran, for one module."""
    with tempfile.TemporaryDirectory() as room:
        report = Path(room, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider", "-W", "ignore", "-n",
                   str(processes), "--derandomize", "--disable-deadline", f"--max-examples={examples}",
                   f"--junitxml={report}", *tests, *rest]  # fmt: skip
        own = {"ARRAY_API_TESTS_MODULE": module, first_calls.VARIABLE: "0", "HYPOTHESIS_STORAGE_DIRECTORY": room}
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        run = subprocess.run(command, cwd=folder, env=os.environ | own | {"PYTHONPATH": path}, capture_output=True,
                             text=True)  # fmt: skip
        if run.returncode not in (0, 1):
            raise SystemExit(f"pytest ended with {run.returncode}: {run.stdout[-2000:]}{run.stderr[-2000:]}")
        found = {}
        for case in ElementTree.parse(report).iter("testcase"):
            if case.find("skipped") is None:
                file = case.get("classname").split(".")[1]
                failed = case.find("failure") is not None or case.find("error") is not None
                found.setdefault(file, {})[case.get("name")] = failed
    return found


def alone(row):
    """The tests of a row that fail here and not for NumPy."""
    return sorted({*row["ours_failed"]} - {*row["numpy_failed"]})


def rows(numpy, ours):
    """A row for each file: how many tests, which fail for NumPy, which fail here."""
    assert {file: set(tests) for file, tests in numpy.items()} == {file: set(tests) for file, tests in ours.items()}

    def failed(tests):
        return sorted(test for test, bad in tests.items() if bad)

    return [
        {
            "file": file,
            "tests": len(numpy[file]),
            "numpy_failed": failed(numpy[file]),
            "ours_failed": failed(ours[file]),
        }
        for file in sorted(numpy)
    ]


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.array_api_suite", description=__doc__.split("\n\n")[0])
    parser.add_argument("clone", type=Path)
    parser.add_argument("--examples", type=int, default=25)  # 5 miss an add that subtracts
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path)
    parser.add_argument("--clone-only", action="store_true")
    asked, rest = parser.parse_known_args()
    commit = cloned(asked.clone)
    if asked.clone_only:
        return 0
    found = rows(*(outcomes(asked.clone, module, asked.examples, asked.processes, rest) for module in MODULES))
    for row in found:
        for _ in range(AGAIN if alone(row) else 0):
            ids = [f"array_api_tests/{row['file']}.py::{test}" for test in alone(row)]
            again = outcomes(asked.clone, MODULES[0], asked.examples, 0, rest, ids)[row["file"]] if ids else {}
            row["numpy_failed"] = sorted({*row["numpy_failed"], *(test for test, bad in again.items() if bad)})
        print(f"{row['file']}: {row['tests']} tests, {len(row['numpy_failed'])} fail for NumPy, "
              f"{len(row['ours_failed'])} here, here alone: {alone(row) or 'none'}")  # fmt: skip
    if asked.json:
        meta = info.meta() | {"suite": SUITE, "commit": commit or COMMIT, "examples": asked.examples}
        asked.json.write_text(json.dumps({"meta": meta, "rows": found}, indent=1) + "\n", encoding="utf-8")
    return 1 if any(map(alone, found)) else 0


if __name__ == "__main__":
    sys.exit(main())
