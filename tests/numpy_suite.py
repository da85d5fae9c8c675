"""A pytest plugin that runs other people's tests under use_in_numpy: `-p tests.numpy_suite`.

NBKERNELS_IN_NUMPY says how: "default"; "all", every loop that there is a kernel for, of any size. The end of the run
says how many calls ran here.
"""

import os

import numpy as np

from nbkernels.in_numpy.use import use_in_numpy
from nbkernels.in_numpy.which import DTYPES, OURS, PRODUCTS


def pytest_configure(config):
    how = os.environ.get("NBKERNELS_IN_NUMPY", "default")
    asked = {"names": [*PRODUCTS, *OURS], "dtypes": [d for d in DTYPES if d != "bfloat16"]} if how == "all" else {}
    config.in_numpy = use_in_numpy(floats=how == "all", **asked)


def pytest_terminal_summary(terminalreporter):
    from nbkernels.in_numpy.slots import all_slots

    rows = np.array([slot.counts() for slot in all_slots()] or [[[0, 0]] * 5])
    here, others = rows[:, 0, 0].sum(), rows[:, 1:4, 0].sum()
    terminalreporter.write_line(f"use_in_numpy: {here} calls of loops ran in nbkernels, {others} in NumPy")


def pytest_unconfigure(config):
    use_in_numpy(False)
