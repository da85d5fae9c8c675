"""Benches run in one process: the tests' --dist=loadfile makes pytest-benchmark warn and stop."""


def pytest_configure(config):
    if not config.getoption("numprocesses", None):
        config.option.dist = "no"
