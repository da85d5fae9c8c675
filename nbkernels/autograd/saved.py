"""What tapes keep of a call for its derivative, which is that of the values that the call saw.

Tensors count the writes into them: one after the call is an error. Nothing counts writes into arrays of NumPy and other
libraries: those that a derivative will read are copied, and what the tape itself made is read-only. A checksum instead,
at the call and at the gradient, would take longer: a copy is 6 times as fast as one CRC-32.
"""

from functools import partial

from .. import ops
from ..dispatch import arrays, views
from ..dispatch.traced import Traced, bare, each


class Saved:
    """What a step of a tape keeps of a call for its derivative, and whether it is still what the call saw."""

    def __init__(self, name):
        self.name, self.counted = name, []

    def keep(self, x, what):
        """x, an argument or a result, as the derivative reads it."""
        return each(partial(self._keep, what), x)

    def _keep(self, what, x):
        if not views.is_array(x):
            return x
        value = kept(bare(x), isinstance(x, Traced))
        version = _version(value)
        if version is not None:
            self.counted.append((what, value, version))
        return value

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
    """How often x has been written, or None where nobody counts."""
    x = _innermost(x)
    return arrays.adapter_for(x).version(x)


def kept(x, own=False):
    """x where a later write would be noticed or is impossible, else a copy.

    `own` says that a tape alone has its memory: then it is enough that x is read-only.
    """
    plain = _innermost(x)
    sealed = (own or plain is not x) and arrays.adapter_for(plain).seal(plain)
    return x if sealed or _version(x) is not None else ops.copy(x, order="K")  # a gradient has its order
