"""Stage: the table of calls (device_cases.py) with arrays of torch, CuPy and numba; each call is made three times, so
that what is recorded and repeated is checked, too."""

import time

import device_arrays
import device_cases
import numpy as np

import nbkernels

SECONDS = 120
calls = device_cases.calls


def run(report, dry):
    libraries, missing = device_arrays.libraries(dry)
    for name, error in missing.items():
        report(name, text=f"{name} is not checked: {error}"[:200])
    counts = {library.name: [0, 0] for library in libraries}
    for case in device_cases.cases()[:: 40 if dry else 1]:
        memories = [array.memory(np.random.default_rng(i)) for i, array in enumerate(case.arrays)]
        for library in libraries:
            start = time.perf_counter()
            try:
                wrong = next(filter(None, (once(library, case, memories) for _ in range(3))), "")
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"[:300]
            counts[library.name][bool(wrong)] += 1
            facts = {"wrong": wrong} if wrong else {}
            report(f"{case.name} by {library.name}", ms=round((time.perf_counter() - start) * 1e3, 2), **facts)
    for name, (right, wrong) in counts.items():
        report(name, text=f"{name}: {right} right, {wrong} wrong or refused")


def once(library, case, memories):
    arrays = [library.put(array, memory) for array, memory in zip(case.arrays, memories)]
    return device_cases.difference(case, device_arrays.get(case.call(nbkernels, *arrays)), memories)
