"""Benches run in one process (with --dist=loadfile pytest-benchmark warns and stops), and time later calls."""

import pytest

from nbkernels import first_calls
from nbkernels.benches.peers import at_best


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
