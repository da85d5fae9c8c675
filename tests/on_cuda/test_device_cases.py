"""The table of calls that bench/device_check.py checks on a GPU: right by NumPy, and planned for every card."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import device_cases

import nbkernels

sys.path.pop(0)
CASES = device_cases.cases()
KNOWN = {"vjp of a function"}  # its slope is refused on CUDA


def test_names_tell_cases_apart():
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES[::29], ids=lambda case: case.name)
def test_the_cpu_gives_what_the_table_wants(case):
    memories = [array.memory(np.random.default_rng(i)) for i, array in enumerate(case.arrays)]
    views = [array.view(memory.copy()) for array, memory in zip(case.arrays, memories)]
    wanted = device_cases.expected(case, memories)
    found = np.asarray(case.call(nbkernels, *views))
    assert device_cases.difference(case, found, wanted) == ""
    if found.size:
        broken = found.copy()
        broken.flat[-1] = not broken.flat[-1] if found.dtype == bool else broken.flat[-1] + 1
        assert device_cases.difference(case, broken, wanted)


@pytest.mark.parametrize("cc", [(8, 0), (9, 0)])
def test_every_case_is_planned(cc):
    rehearsal = pytest.importorskip("nbkernels.cuda.rehearsal")
    kernels, refused = rehearsal.kernels(device_cases.calls(), cc)
    assert refused.keys() == KNOWN
    assert kernels
