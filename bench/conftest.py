"""Benches run in one process (with --dist=loadfile pytest-benchmark warns and stops), and time later calls."""

from pathlib import Path

import pytest

from nbkernels import first_calls
from nbkernels.benches.peers import at_best

HERE = Path(__file__).parent


def pytest_configure(config):
    config.pluginmanager.getplugin("capturemanager").suspend_global_capture(in_=True)  # what starts anew prints, too
    try:
        at_best()
    except SystemExit as end:
        pytest.exit("measured anew", returncode=end.code)
    config.pluginmanager.getplugin("capturemanager").resume_global_capture()
    first_calls.CALLS = 0
    if not config.getoption("numprocesses", None):
        config.option.dist = "no"


def pytest_collection_modifyitems(config, items):
    """Of benches that are not timed, to see that they run, the first form of each."""
    first, left = {}, set()
    for item in items if config.getoption("benchmark_disable", False) else ():
        name = item.location[0], getattr(item, "originalname", None) or item.name
        if item.path.is_relative_to(HERE) and first.setdefault(name, item) is not item:
            left.add(item)
    if left:
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]
