"""Stage: every public call in a CUDA graph, captured by torch after the call was made once, and replayed on other
numbers; and what a first call says that is made in a capture."""

import contextlib
import math

import device_arrays
import device_cases
import numpy as np
from device_cases import Array

import nbkernels

SECONDS = 60
KINDS = ("float32", "bfloat16", "complex64")


FIRST = Array((7, 9, 3), layout="S")  # of a call that no case makes


def calls():
    def call(stand):
        x = stand(FIRST.shape, np.dtype("f4"), FIRST.strides())
        nbkernels.multiply(x, x)

    return {"first in a capture": call}


def chosen():
    """The cases of some dtypes but for those that read on the host, as indices do, and gradients' records."""
    return [case for case in device_cases.cases() if case.arrays[0].dtype in KINDS and case.name != "add.at"]


def run(report, dry):
    libraries, _ = device_arrays.libraries(dry)
    library = next(library for library in libraries if library.name == "torch")
    torch, wrongs = library.torch, 0
    first_in_a_capture(report, library, dry)
    todo = chosen()[:: 20 if dry else 1]
    for case in todo:
        draws = [
            [array.memory(np.random.default_rng(seed + i)) for i, array in enumerate(case.arrays)] for seed in (0, 50)
        ]
        try:
            wrong = captured(torch, library, case, draws, dry)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"[:300]
            with contextlib.suppress(Exception):
                library.synchronize()
        wrongs += bool(wrong)
        report(case.name, **({"wrong": wrong} if wrong else {}))
    report("graphs", text=f"{len(todo) - wrongs} of {len(todo)} calls are captured and replayed right")


def captured(torch, library, case, draws, dry):
    """What is wrong with a call that is captured on the first numbers and replayed on the second."""

    def put(memories):
        return [library.put(array, memory) for array, memory in zip(case.arrays, memories)]

    arrays, others = put(draws[0]), put(draws[1])
    case.call(nbkernels, *put(draws[0]))
    library.synchronize()
    if dry:
        result = case.call(nbkernels, *others)
        return device_cases.difference(case, device_arrays.get(result), device_cases.expected(case, draws[1]))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = case.call(nbkernels, *arrays)
    for x, other in zip(arrays, others):
        x.copy_(other)
    graph.replay()
    library.synchronize()
    return device_cases.difference(case, device_arrays.get(result), device_cases.expected(case, draws[1]))


def first_in_a_capture(report, library, dry):
    """A call whose kernel is not loaded yet: its result, or one clear error; the same call works afterwards."""
    torch = library.torch
    x = torch.ones(math.prod(FIRST.shape) * 4, device=library.device).as_strided(FIRST.shape, FIRST.steps())
    said, made = "", None
    try:
        with contextlib.nullcontext() if dry else torch.cuda.graph(torch.cuda.CUDAGraph()):
            made = nbkernels.multiply(x, x)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    try:
        right = float(nbkernels.multiply(x, x).sum()) == x.numel()
    except Exception as error:
        said, right = f"{said}; afterwards {type(error).__name__}: {error}", False
    clear = made is not None or "before the capture" in said
    first, then = said.splitlines()[0][:120] if said else "captured", "right" if right else "WRONG"
    text = f"a first call in a capture: {first}; afterwards {then}"
    report("first call", text=text, **({} if right and clear else {"wrong": said or "the next call"}))
