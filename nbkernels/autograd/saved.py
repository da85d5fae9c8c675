"""Saved values: a tape keeps the arguments of a call as the call saw them, by copies or by counts of writes.

Tensors count the writes into them: one after the call is an error. Nothing counts writes into arrays of NumPy and other
libraries: those that a derivative will read are copied, and what the tape itself made is read-only. A checksum instead,
at the call and at the gradient, would take longer: a copy is 6 times as fast as one CRC-32.
"""

from functools import partial

from .. import ops
from ..dispatch import arrays
from ..dispatch.traced import Traced, each


class Saved:
    """What a step of a tape keeps of a call for its derivative, and whether it is still what the call saw."""

    def __init__(self, name):
        self.name, self.counted = name, []

    def keep(self, x, what):
        """x, an argument or a result, as the derivative reads it."""
        if isinstance(x, tuple | list):
            return each(partial(self.keep, what=what), x)
        own = isinstance(x, Traced)
        value = x.value if own else x
        plain = _innermost(value)
        adapter = arrays.adapter_for(plain)
        version = None if adapter is None else adapter.version(plain)
        if version is not None:
            self.counted.append((what, plain, version))
            return value
        return value if adapter is None else _sealed(value, plain, adapter, own)

    def check(self):
        """Raise where an array has been written since."""
        for what, x, version in self.counted:
            if _version(x) != version:
                raise RuntimeError(
                    f"GradTape.gradient: {what} of {self.name} has been written since that was called, and its "
                    "derivative reads what was there: write a copy in its place"
                )


def _innermost(x):
    """The plain array of one that tapes watch, one inside the other."""
    while isinstance(x, Traced):
        x = x.value
    return x


def _version(x):
    """How often x, a plain array, has been written, or None where nobody counts."""
    return arrays.adapter_for(x).version(x)


def _sealed(x, plain, adapter, own):
    """x, where it cannot be written; else a copy, in the order that its gradient has. `plain` is what is inside x, and
    `own` says that a tape alone has its memory: then it is enough that x is read-only."""
    return x if (own or plain is not x) and adapter.seal(plain) else ops.copy(x, order="K")


def kept(x):
    """x where a later write would be noticed or is impossible, else a copy."""
    plain = _innermost(x)
    adapter = arrays.adapter_for(plain)
    return x if adapter.version(plain) is not None else _sealed(x, plain, adapter, False)
