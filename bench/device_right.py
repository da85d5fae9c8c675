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
    counts = {library.name: dict(right=0, wrong=0, lacking=0) for library in libraries}
    for case in device_cases.cases()[:: 40 if dry else 1]:
        memories = [array.memory(np.random.default_rng(i)) for i, array in enumerate(case.arrays)]
        wanted = device_cases.expected(case, memories)
        for library in libraries:
            start = time.perf_counter()
            how, what = several(library, case, memories, wanted)
            counts[library.name][how] += 1
            report(f"{case.name} by {library.name}", ms=round((time.perf_counter() - start) * 1e3, 2), **what)
    for name, each in counts.items():
        said = f"{each['right']} right, {each['wrong']} wrong or refused, {each['lacking']} with dtypes that it has not"
        report(name, text=f"{name}: {said}")


def several(library, case, memories, wanted):
    """How three calls of a case end, and what is to be said of them."""
    try:
        operands = [[library.put(x, memory) for x, memory in zip(case.arrays, memories)] for _ in range(3)]
    except Exception as error:
        return "lacking", {"lacking": f"{type(error).__name__}: {error}"[:200]}
    try:
        for arrays in operands:
            if wrong := device_cases.difference(case, device_arrays.get(case.call(nbkernels, *arrays)), wanted):
                return "wrong", {"wrong": wrong}
    except Exception as error:
        return "wrong", {"wrong": f"{type(error).__name__}: {error}"[:300]}
    return "right", {}
