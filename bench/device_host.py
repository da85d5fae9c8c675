"""Stage: what a call costs the host, by step, beside torch's and CuPy's own calls in turns with it."""

import time
from functools import partial

import device_arrays
import numpy as np
from device_cases import Array

import nbkernels as nb

SECONDS = 45
N = 64  # the GPU is done with such a call before the host has the next one ready
OPERANDS = {"mm": ((N, N), (N, N), (N, N)), "add": ((N, N), (N, N), (N, N)), "linear": ((N, N), (N, N), (N,), (N, N)),
            "bmm": ((8, N, N), (8, N, N), (8, N, N)), "addmm_activation": ((N,), (N, N), (N, N), (N, N))}  # fmt: skip


def calls():
    """What is built for it."""

    def made(name):
        def call(stand):
            *args, out = (stand(x.shape, np.dtype("f4"), x.strides()) for x in map(Array, OPERANDS[name]))
            getattr(nb, name)(*args, out=out)

        return call

    return {f"host {name}": made(name) for name in OPERANDS}


def theirs(library, name):
    """A library's own function, with out= and without, or None."""
    module = getattr(library, library.name.lower(), None)
    if library.name == "torch":
        other = {"linear": module.nn.functional.linear, "addmm_activation": getattr(module, "_addmm_activation", None)}
        return (
            None if name == "addmm_activation" and library.device == "cpu" else other.get(name) or getattr(module, name)
        )
    return {"mm": module.matmul, "bmm": module.matmul, "add": module.add}.get(name) if library.name == "CuPy" else None


def run(report, dry):
    libraries, _ = device_arrays.libraries(dry)
    for library in libraries:
        for name, shapes in OPERANDS.items():
            arrays = [Array(shape) for shape in shapes]
            *args, out = [library.put(x, x.memory(np.random.default_rng(0))) for x in arrays]
            ours, own = getattr(nb, name), theirs(library, name)
            todo = {"with out": partial(ours, *args, out=out), "with a result": partial(ours, *args)}
            if own and name not in ("linear", "addmm_activation"):
                todo["theirs with out"] = partial(own, *args, out=out)
            if own:
                todo["theirs with a result"] = partial(own, *args)
            try:
                cost = medians(todo, library.synchronize, 1 if dry else 15, 2 if dry else 200)
            except Exception as error:
                report(f"{name} by {library.name}", wrong=f"{type(error).__name__}: {error}"[:300])
                continue
            said = ", ".join(f"{what} {us:.1f}" for what, us in cost.items())
            report(f"{name} by {library.name}", us=cost, text=f"{library.name:6} {name:17} us: {said}")
        try:
            steps(report, library)
        except Exception as error:
            report(f"steps by {library.name}", **({} if dry else {"wrong": f"{type(error).__name__}: {error}"[:300]}))


def medians(todo, synchronize, rounds, count):
    """{name: median microseconds of the host for a call}, in turns."""
    times = {name: [] for name in todo}
    for call in todo.values():
        for _ in range(4):
            call()
    for _ in range(rounds):
        for name, call in todo.items():
            synchronize()
            start = time.perf_counter()
            for _ in range(count):
                call()
            times[name].append((time.perf_counter() - start) / count * 1e6)
    return {name: round(sorted(found)[len(found) // 2], 2) for name, found in times.items()}


def steps(report, library):
    """Of mm with out=: reading an array, where it runs, a new array, the prepared launch alone."""
    from nbkernels.cuda import replay
    from nbkernels.dispatch import arrays
    from nbkernels.dispatch.driver import recorder

    x, y, out = (library.put(Array((N, N)), np.ones(N * N, "f4")) for _ in range(3))
    nb.mm(x, y, out=out)
    adapter = arrays.adapter_of(type(x))
    reader = replay.READERS[adapter.name]()
    texts = {"read an array": f"{reader.address}, {reader.layout}", "where it runs": reader.place,
             "who watches": f"{reader.watched} or {reader.refused}"}  # fmt: skip
    todo = {what: eval(f"lambda: ({text.format(x='x')})", reader.scope | {"x": x}) for what, text in texts.items()}
    todo["a new array"] = adapter.maker(x, (N, N), np.dtype("f4"), (4 * N, 4))
    recorder.launches, recorder.made = [], []
    try:
        nb.mm(x, y, out=out)
        todo["the launch alone"] = recorder.launches[0]
    finally:
        recorder.launches, recorder.made = None, ()
    cost = medians(todo, library.synchronize, 7, 200)
    said = ", ".join(f"{what} {us:.2f}" for what, us in cost.items())
    report(f"steps by {library.name}", us=cost, text=f"{library.name:6} steps             us: {said}")
