"""Benches run in one process (with --dist=loadfile pytest-benchmark warns and stops), and time later calls."""

from nbkernels.jit import patience


def pytest_configure(config):
    patience.CALLS = 0
    if not config.getoption("numprocesses", None):
        config.option.dist = "no"
