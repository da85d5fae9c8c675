"""Stage: calls in the order of streams: inputs that another launch still writes, temporaries, results."""

import contextlib

import device_arrays
import numpy as np

import nbkernels as nb

SECONDS = 40


def calls():
    def call(stand):
        x, y = (stand((1 << 20,), np.dtype("f4"), (4,)) for _ in range(2))
        nb.add(y, 1, out=y)
        nb.add(x, y, out=x)
        nb.add(x, y)
        from nbkernels.dispatch import views

        nb.add(views.index(x, slice(None, None, -1)), 0, out=x)

    return {"streams": call}


def run(report, dry):
    libraries, missing = device_arrays.libraries(dry)
    for name, error in missing.items():
        report(name, text=f"{name} is not checked: {error}"[:200])
    checks = {"torch": of_torch, "CuPy": of_cupy, "numba": of_numba}
    for library in libraries:
        name = library.name
        if name not in checks:  # NumPy, which has no streams
            continue
        try:
            wrong = checks[name](library, dry)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"[:300]
        report(name, text=f"{name}: {wrong or 'in order'}", **({"wrong": wrong} if wrong else {}))


def of_torch(library, dry, count=1 << 24, rounds=30):
    """On a stream of its own behind a long product: what is added is what the product left."""
    torch = library.torch
    big = torch.ones(8 if dry else 4096, 8 if dry else 4096, device=library.device)
    stream = None if dry else torch.cuda.Stream()
    wrong = 0
    for value in range(1, 3 if dry else rounds):
        with contextlib.nullcontext() if dry else torch.cuda.stream(stream):
            x = torch.zeros(64 if dry else count, device=library.device)
            torch.mm(big, big)
            x.fill_(value)
            found = nb.add(x, x)
            nb.add(found, 1, out=found)
            wrong += int((found != 2 * value + 1).sum())
            del x, found
    return f"{wrong} elements are wrong" if wrong else ""


def of_cupy(library, dry, count=1 << 24):
    import cupy

    big, stream = cupy.ones((4096, 4096), "f4"), cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.runtime.deviceSynchronize()
    wrong = 0
    with stream:
        for value in range(1, 20):
            x = cupy.zeros(count, "f4")
            cupy.matmul(big, big)
            x.fill(value)
            found = nb.add(x, x)
            nb.add(found, 1, out=found)
            wrong += int((found != 2 * value + 1).sum())
    return f"{wrong} elements are wrong" if wrong else ""


def of_numba(library, dry, rounds=100):
    """Two streams that wait for one another, and temporaries."""
    from nbkernels.dispatch import views

    cuda = library.cuda
    one, two = cuda.stream(), cuda.stream()
    x, y = (cuda.to_device(np.full(1 << 20, value, "f4"), stream=stream) for value, stream in ((1, one), (2, two)))
    for _ in range(rounds):
        nb.add(y, 1, out=y)
        nb.add(x, y, out=x)  # waits for y's stream
        nb.add(views.index(x, slice(None, None, -1)), 0, out=x)  # by way of a temporary
        one.synchronize()  # y is written again: that does not wait for those who read it
    right = (x.copy_to_host(stream=one) == 1 + sum(range(3, 3 + rounds))).all()
    return "" if right else "other numbers"
