"""Saved values: a tape keeps the arguments of a call as the call saw them, by copies or by counts of writes.

Tensors count the writes into them: one after the call is an error. Nothing counts writes into arrays of NumPy and other
libraries: those that a derivative will read are copied, and what the tape itself made is read-only. A checksum instead,
at the call and at the gradient, would take longer: a copy is 6 times as fast as one CRC-32.
"""

from functools import partial

from numpy import ndarray

from .. import ops
from ..dispatch import arrays
from ..dispatch.traced import Traced, each

SMALL = 1 << 16  # bytes: 128x128 of float32 takes 1.8 us for 2.4, 256x256 as long; by two threads, or turned, longer


def keep(x, what, counted):
    """x, an argument or a result, as a derivative reads it. Of what counts its writes (what it is, the array, how
    often it has been written) is added to `counted`."""
    if type(x) is ndarray:
        value = copied(x, "K")
        value.setflags(False)
        return value
    own = isinstance(x, Traced)
    value = x.value if own else x
    if own and type(value) is ndarray:
        return value
    if isinstance(x, tuple | list):
        return each(partial(keep, what=what, counted=counted), x)
    plain = _innermost(value)
    adapter = arrays.adapter_for(plain)
    version = None if adapter is None else adapter.version(plain)
    if version is not None:
        counted.append((what, plain, version))
        return value
    return value if adapter is None else _sealed(value, plain, adapter, own)


def check(name, counted):
    """Raise where an array that a step of an operation of this name reads has been written since."""
    for what, x, version in counted:
        if arrays.adapter_for(x).version(x) != version:
            raise RuntimeError(
                f"GradTape.gradient: {what} of {name} has been written since that was called, and its derivative reads "
                "what was there: write a copy in its place"
            )


def kept(x):
    """x where a later write would be noticed or is impossible, else a copy."""
    if type(x) is ndarray:
        return copied(x, "K")
    plain = _innermost(x)
    adapter = arrays.adapter_for(plain)
    return x if adapter.version(plain) is not None else _sealed(x, plain, adapter, False)


def copied(x, order="C"):
    """Return a copy of x, as `ops.copy` does; of a small array by NumPy, whose copy is equal and takes less time."""
    if type(x) is ndarray and x.ndim and x.nbytes <= SMALL and x.dtype.isnative:
        return x.copy(order)
    return ops.copy(x, order=order)


def _innermost(x):
    """The plain array of one that tapes watch, one inside the other."""
    while isinstance(x, Traced):
        x = x.value
    return x


def _sealed(x, plain, adapter, own):
    """x, where it cannot be written; else a copy, in the order that its gradient has. `plain` is what is inside x, and
    `own` says that a tape alone has its memory: then it is enough that x is read-only."""
    return x if (own or plain is not x) and adapter.seal(plain) else copied(x, "K")
