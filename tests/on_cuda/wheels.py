"""Whether kernels can be assembled here: a small one is, once a process."""

import functools

from numba import types


def source():
    def body(x):
        x[0] = 1

    return body, (types.int32[::1],)


@functools.cache
def work():
    """Nothing, or an ImportError or a RuntimeError: a wheel that is not there, or a library that one brings."""
    from nbkernels.cuda.assemble import assemble
    from nbkernels.cuda.launch import Kernel

    assemble(Kernel(f"{__name__}:source", (), 32), (9, 0))
