"""Benches run in one process (with --dist=loadfile pytest-benchmark warns and stops), and time later calls."""

from nbkernels import first_calls


def pytest_configure(config):
    first_calls.CALLS = 0
    if not config.getoption("numprocesses", None):
        config.option.dist = "no"
