"""Floating-point modes of the calling thread, for a block: what `torch.set_flush_denormal` and libraries that are
linked with -ffast-math set."""

import contextlib

from nbkernels.jit.abi import flags
from nbkernels.jit.compile.cache import entry

FLUSH = 0x8040 if flags.X86 else 1 << 24  # subnormal numbers are zeros, as operands and as results
UP = 0x4000 if flags.X86 else 1 << 22  # round upwards


def _modes():
    return flags.modes()


def _set_modes(modes):
    flags.set_modes(modes)


@contextlib.contextmanager
def computing(more):
    """The block with these modes, beside those that hold."""
    read, write = entry(_modes, "int64()", "test_modes"), entry(_set_modes, "void(int64)", "test_set_modes")
    before = read()
    write(before | more)
    try:
        yield before | more
    finally:
        write(before)
