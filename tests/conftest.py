"""What every test stands on: seeds, a cache directory of its own, and no silent skip.

NBKERNELS_NO_SKIP=1      every skip is a failure: for the run that must have everything (skips name what they lack).
NBKERNELS_CACHE_DIR=dir  compiled kernels are kept there between runs; else in a temporary directory of this run.
NBKERNELS_SKIPPED=file   the ids of the tests that skipped go there, for a second run that has what they lacked.
CI=true                  hypothesis draws the same examples every time, so that a green run stays green.
"""

import atexit
import gc
import os
import random
import shutil
import tempfile
import zlib

import hypothesis
import numpy as np
import pytest

from nbkernels import first_calls
from nbkernels.ops import LIBRARY
from tests.cases import EVERY
from tests.toys import boxes, library, plus, scale  # noqa: F401, fixtures

pytest.register_assert_rewrite("tests.compare")  # or its failures would not show the values

# Set at import, so that xdist's workers and the tests' own subprocesses inherit it and share compiled kernels.
if "NBKERNELS_CACHE_DIR" not in os.environ:
    os.environ["NBKERNELS_CACHE_DIR"] = tempfile.mkdtemp(prefix="nbkernels-tests-")
    atexit.register(shutil.rmtree, os.environ["NBKERNELS_CACHE_DIR"], ignore_errors=True)

# A table that its user has tuned is no part of the tests.
os.environ["NBKERNELS_TUNED"] = "0"

# Halves in the order of every processor and GPU: product/test_modes.py is about what each is fastest by.
os.environ["NBKERNELS_MODE"] = "chain"

# What the first calls of a process do is calls/test_first_calls.py's; all others are about what later ones do.
first_calls.CALLS, os.environ[first_calls.VARIABLE] = 0, "0"

# No deadline: the first example of a kernel compiles it.
hypothesis.settings.register_profile("nbkernels", deadline=None, derandomize=bool(os.environ.get("CI")))
hypothesis.settings.load_profile("nbkernels")

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")
NO_SKIP = os.environ.get("NBKERNELS_NO_SKIP", "0") not in ("", "0")


def _refuse_skip(report):
    if NO_SKIP and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome, report.longrepr = "failed", f"{report.nodeid}: {reason} (NBKERNELS_NO_SKIP is set)"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    return _refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    return _refuse_skip((yield))


_skipped = []


def pytest_runtest_logreport(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped.append(report.nodeid)


def pytest_collectreport(report):
    if report.skipped:
        _skipped.append(report.nodeid)


def pytest_sessionfinish(session):
    file = os.environ.get("NBKERNELS_SKIPPED")
    if file and not hasattr(session.config, "workerinput"):  # with xdist, the controller alone sees every report
        with open(file, "w", encoding="utf-8") as stream:
            stream.writelines(f"{nodeid}\n" for nodeid in dict.fromkeys(_skipped))


def pytest_collection_finish():
    """What is there by now stays, and later what compilations leave: the garbage collector goes through it once a
    file, not once a compilation (a twentieth of the time)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(1_000_000, 10, 1000)


@pytest.fixture(autouse=True, scope="module")
def _frozen():
    yield
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config, items):
    """Without those of a release, and of tests that are sampled, as all are in the simulator, whose threads are
    Python's, the first form and one in twenty of the others; what one process takes long for first: at the end other
    workers would wait for it."""
    left, seen = set(), set()
    for item in items:
        test = item.location[0], getattr(item, "originalname", None) or item.name
        chosen = test not in seen or zlib.crc32(item.nodeid.encode()) % 20 == 0
        seen.add(test)
        sampled = SIMULATED or item.get_closest_marker("sampled")
        if not EVERY and (item.get_closest_marker("release") or (sampled and not chosen)):
            left.add(item)
    if left:
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]
    items.sort(key=lambda item: item.path.name not in ("test_simulator.py", "test_vector_widths.py"))


@pytest.fixture(scope="module")
def at_first():
    """First calls that never end, for tests of what is written over operations: those of the operations themselves
    compile each, and take a third longer for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first_calls, "CALLS", 1 << 60)
        for name in first_calls.KINDS:
            LIBRARY[name].forget()
        yield


@pytest.fixture(autouse=True)
def _seeds():
    random.seed(0)
    np.random.seed(0)


@pytest.fixture
def rng():
    return np.random.default_rng(0)
