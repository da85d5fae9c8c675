"""The arrays of a call: what is known of each, and whether it can be written."""

from collections import namedtuple

from . import arrays, keys, layout
from .errors import ArgumentError, OutError, describe


class Operand(namedtuple("Operand", "name value adapter device spec")):
    """One array of a call: its argument's name, itself, its adapter, and what that says of its device and layout."""

    __slots__ = ()

    @classmethod
    def of(cls, op, name, value, or_number=False):
        """An argument that has to be an array; `or_number` is for the error alone."""
        try:
            adapter = arrays.adapter_for(value)
            if adapter is not None:
                return cls(name, value, adapter, adapter.device(value), adapter.spec(value))
        except TypeError as error:
            raise ArgumentError(f"{op}: {name} is {error}") from None
        converts = isinstance(value, list | tuple) or hasattr(type(value), "__array__")
        hint = ": pass numpy.asarray of it" if converts else ""
        wanted = "an array or a Python number" if or_number else "an array"
        known = f"arrays of {', '.join(arrays.names())} are known"
        raise ArgumentError(f"{op}: {name} must be {wanted}, not {describe(value)}; {known}{hint}")

    @property
    def joins(self):
        """Whether it may join an element-wise op on any device."""
        return self.device.key == keys.CPU and self.spec.shape == ()


class Operands(tuple):
    """The arrays of an argument that is a list of them, None where its type says `Tensor?[]`."""

    __slots__ = ()

    @classmethod
    def of(cls, op, argument, value):
        if not isinstance(value, tuple | list):
            raise ArgumentError(f"{op}: {argument.name} must be a sequence of arrays, not {describe(value)}")
        kind = argument.type.inner if argument.type.optional else argument.type
        absent = kind.inner.optional
        if kind.size is not None and len(value) != kind.size:
            raise ArgumentError(f"{op}: {argument.name} must be {kind.size} arrays, not {len(value)}")
        parts = enumerate(value)
        return cls(None if absent and x is None else Operand.of(op, f"{argument.name}[{i}]", x) for i, x in parts)


def each(slots, function):
    """The slots of a call with `function` of every operand in its place; lists of operands become tuples."""

    def of(slot):
        if isinstance(slot, Operands):
            return tuple(None if part is None else function(part) for part in slot)
        return function(slot) if isinstance(slot, Operand) else slot

    return list(map(of, slots))


def check_writable(op, target):
    """Raise where a kernel cannot write into an array: read-only, or elements that share memory."""
    spec, word = target.spec, target.name
    flaw = target.adapter.flaw(target.value)
    if flaw:
        raise target.adapter.unwritable(f"{op}: {word} cannot be written: {flaw}")
    if layout.overlaps_itself(spec.shape, spec.strides, spec.dtype.itemsize):
        raise OutError(
            f"{op}: elements of {word} share memory (shape {spec.shape}, strides {spec.strides}): "
            f"pass an array that owns each of its elements"
        )
