"""What a GPU shows and the simulator cannot: batches of any strides, numbers as arguments, the order of streams.

`check(right, what)` is device_check.py's.
"""

import numpy as np
from device_arrays import SIMULATED, combinations, drawn, same_bits, upload
from numba import cuda

import nbkernels
from nbkernels.dispatch import views


def batches(rng, check):
    """Batches and results of any strides, exactly: numba's own views of device arrays have the strides of C order."""
    turns = {
        "columns inside": lambda x: x.transpose(0, 2, 1).copy().transpose(0, 2, 1),
        "rows reversed": lambda x: x[:, ::-1].copy()[:, ::-1],
        "the batch inside": lambda x: x.transpose(1, 2, 0).copy().transpose(2, 0, 1),
    }
    for name, turn in turns.items():
        a, b = (rng.integers(-9, 10, shape).astype("f4") for shape in ((3, 5, 4), (3, 4, 2)))
        x, y = upload(turn(a)), upload(turn(b))
        check(np.array_equal(nbkernels.bmm(x, y).copy_to_host(), a @ b), f"bmm, {name}")
        start = upload(np.zeros((5, 2), "f4"))
        check(np.array_equal(nbkernels.addbmm(start, x, y).copy_to_host(), (a @ b).sum(0)), f"addbmm, {name}")
        pairs = upload(turn(np.concatenate([a, a])).reshape(2, 3, 5, 4).transpose(1, 0, 2, 3))
        found = nbkernels.matmul(pairs, upload(b[:, None])).copy_to_host()
        check(np.array_equal(found, np.stack([a @ b, a @ b], 1)), f"matmul of dimensions that do not merge, {name}")


def values(rng, check):
    """Numbers of every dtype, by value: a complex one is two parameters, a half a float32."""
    for dtype, *_ in combinations():
        x, number = drawn(rng, 50, dtype), {"c": 2 - 0.5j, "b": True}.get(dtype.kind, 3)
        for op in ("add", "maximum"):
            expected = np.asarray(getattr(np, op)(x, dtype.type(number)))
            found = getattr(nbkernels, op)(upload(x), number).copy_to_host()
            wide = (found.astype("c16"), expected.astype("c16"))
            check(same_bits(found, expected) or np.array_equal(*wide, equal_nan=True), f"{op} of {dtype} and a number")


def streams(check):
    """Inputs, temporaries and results in the order of two streams."""
    n, rounds = (50, 3) if SIMULATED else (1 << 20, 100)
    one, two = cuda.stream(), cuda.stream()
    x, y = (cuda.to_device(np.full(n, value, "f4"), stream=stream) for value, stream in ((1, one), (2, two)))
    for _ in range(rounds):
        nbkernels.add(y, 1, out=y)
        nbkernels.add(x, y, out=x)  # waits for y's stream
        nbkernels.add(views.index(x, slice(None, None, -1)), 0, out=x)  # by way of a temporary
        one.synchronize()  # y is written again: that does not wait for those who read it
    check(bool((x.copy_to_host(stream=one) == 1 + sum(range(3, 3 + rounds))).all()), "two streams and temporaries")
