"""Products of every class of shapes, ours and the peers'.

A shape is (batch, m, n, k, layout); without a batch, 0. The layout "vectors" says that they are 1-D, and "Nv" and "Tv"
that b is.
"""

import numpy as np

NEIGHBOURS = {31: 32, 61: 64, 127: 128, 251: 256, 509: 512, 1021: 1024}
SHAPES = {
    "tiny": [(0, n, n, n, "NN") for n in (1, 2, 3, 4, 7, 8, 13, 16, 24, 32)]
    + [(0, 4, 4, 4, "NT"), (0, 8, 8, 8, "TN"), (0, 16, 16, 16, "TT"), (0, 3, 5, 7, "NN"), (0, 2, 32, 4, "NN")],
    "prime": [(0, n, n, n, "NN") for n in NEIGHBOURS] + [(0, 127, 127, 127, "NT"), (0, 251, 251, 251, "TN")],
    "skinny_m": [
        (0, 2, 1000, 1000, "NN"), (0, 8, 1024, 256, "NN"), (0, 5, 700, 300, "NT"), (0, 16, 2048, 512, "NN"),
        (0, 8, 1024, 1024, "NT"), (0, 32, 1000, 500, "NN"), (0, 13, 997, 499, "NN"),
    ],
    "skinny_n": [
        (0, 1000, 2, 1000, "NN"), (0, 1024, 8, 256, "NN"), (0, 700, 5, 300, "NN"), (0, 2048, 16, 512, "NN"),
        (0, 1024, 8, 1024, "TN"), (0, 1000, 32, 500, "NT"), (0, 997, 13, 499, "NN"),
    ],
    "skinny_k": [
        (0, 512, 512, 8, "NN"), (0, 512, 512, 8, "TN"), (0, 2000, 2000, 3, "NN"), (0, 1000, 1000, 16, "NT"),
        (0, 997, 499, 13, "NN"), (0, 256, 256, 2, "NN"),
    ],
    "gemv": [
        (0, 1, 256, 256, "NN"), (0, 1, 256, 256, "NT"), (0, 256, 1, 256, "NN"), (0, 256, 1, 256, "TN"),
        (0, 1, 1000, 1000, "NN"), (0, 1, 1000, 1000, "NT"), (0, 1000, 1, 1000, "NN"), (0, 1000, 1, 1000, "TN"),
        (0, 1, 3000, 3000, "NN"), (0, 1, 3000, 3000, "NT"), (0, 3000, 1, 3000, "NN"), (0, 3000, 1, 3000, "TN"),
        (0, 1, 10_000, 64, "NN"), (0, 10_000, 1, 64, "NN"), (0, 1, 64, 10_000, "NN"), (0, 64, 1, 10_000, "NN"),
        (0, 1, 32, 32, "NN"), (0, 32, 1, 32, "NN"),
    ],
    "mv": [
        (0, m, 1, k, layout) for layout in ("Nv", "Tv")
        for m, k in ((32, 32), (256, 256), (1000, 1000), (3000, 3000), (10_000, 64), (64, 10_000))
    ],
    "dot": [(0, 1, 1, k, "vectors") for k in (16, 1000, 30_000, 1_000_000)],
    "outer": [(0, n, n, 1, "NN") for n in (8, 50, 256, 1000)],
    "deep": [
        (0, 4, 4, 10_000, "NN"), (0, 16, 16, 20_000, "NT"), (0, 32, 32, 50_000, "TN"), (0, 3, 40, 30_000, "NN"),
        (0, 64, 64, 10_000, "NN"), (0, 100, 100, 5000, "TN"), (0, 8, 8, 1000, "NN"),
    ],
    "batched": [
        (10_000, 2, 2, 2, "NN"), (10_000, 4, 4, 4, "NN"), (10_000, 8, 8, 8, "NN"), (10_000, 16, 16, 16, "NN"),
        (10_000, 4, 4, 4, "NT"), (10_000, 8, 8, 8, "TN"), (10_000, 3, 3, 3, "NN"), (100, 16, 16, 16, "NN"),
        (1000, 32, 32, 32, "NN"), (64, 64, 64, 64, "NN"), (64, 64, 64, 64, "NT"), (8, 256, 256, 256, "NN"),
        (32, 100, 10, 100, "NN"), (200, 1, 64, 64, "NN"), (4, 512, 512, 64, "NT"),
    ],
}  # fmt: skip


def arrays(shape, dtype):
    """a, b and out of a shape."""
    batch, m, n, k, layout = shape
    rng, lead = np.random.default_rng(0), (batch,) if batch else ()
    if layout == "vectors":
        return *(rng.standard_normal(k).astype(dtype) for _ in range(2)), np.empty((), dtype)

    def matrix(rows, columns, name):
        x = rng.standard_normal((*lead, rows, columns)).astype(dtype)
        return x if name == "N" else np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)

    if layout[1] == "v":
        return matrix(m, k, layout[0]), matrix(1, k, "N")[0], np.empty(m, dtype)
    return matrix(m, k, layout[0]), matrix(k, n, layout[1]), np.empty((*lead, m, n), dtype)


def calls(shape, dtype):
    """{library: matmul(a, b, out=out) of a shape}."""
    import nbkernels

    from . import mkl, peers

    a, b, out = arrays(shape, dtype)
    result = {
        "nbkernels": lambda: nbkernels.matmul(a, b, out=out),
        "NumPy": lambda: np.matmul(a, b, out=out),
    }
    if torch := peers.torch():
        ta, tb, tout = map(torch.from_numpy, (a, b, out))
        result["torch"] = lambda: torch.matmul(ta, tb, out=tout)
    if mkl.library():
        result["MKL"] = mkl.matmul(out, a, b)
    return result
