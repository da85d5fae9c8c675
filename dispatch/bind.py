"""Converters of Python values to what the schema's types ask for, one per argument, made once per op."""

import operator

from . import arrays
from .errors import ArgumentError, describe

NUMBERS = (bool, int, float, complex)


def number(value):
    """A Python bool, int, float or complex of equal value; NumPy's scalars and 0-d arrays with data are numbers."""
    if type(value) in NUMBERS:
        return value
    adapter = arrays.adapter_of(type(value))
    if adapter is not None:
        value = adapter.item(value)
    for kind in NUMBERS:
        if isinstance(value, kind):
            return kind(value)
    if adapter is not None and value.dtype.kind != "c" and float(value) == value:  # a bfloat16, a long double
        return float(value)
    raise ValueError


def exact(kind):
    def convert(value):
        value = number(value)
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise ValueError
        return kind(value)

    return convert


def integer(value):
    if isinstance(value, bool):
        raise ValueError
    return operator.index(value)


def string(value):
    if not isinstance(value, str):
        raise ValueError
    return value


ELEMENTS = {
    "Scalar": (number, "a number"),
    "int": (integer, "an int"),
    "SymInt": (integer, "an int"),
    "float": (exact(float), "a float"),
    "bool": (exact(bool), "a bool"),
    "SymBool": (exact(bool), "a bool"),
    "str": (string, "a string"),
}


def converter(argument):
    """The function (op, value) that turns a value into the argument's type, or raises an ArgumentError that names both.

    Tensors are not converted here (see Op.bind), nor are the types that only kernels understand.
    """
    kind, size = argument.type, argument.type.size
    if kind.base not in ELEMENTS:
        return lambda op, value: value
    wanted = ELEMENTS[kind.base][1]
    if kind.is_list:
        wanted = f"a sequence of {'' if size is None else f'{size} '}{kind.base}s"
    convert = of(kind)

    def checked(op, value):
        try:
            return convert(value)
        except (TypeError, ValueError, AttributeError):
            given = repr(value) if isinstance(value, NUMBERS + (str, tuple, list)) else describe(value)
            raise ArgumentError(f"{op}: {argument.name} must be {wanted}, not {given}") from None

    return checked


def of(kind):
    """The function that turns a value into a type of the language, by its suffixes from the outside in."""
    if not kind.suffixes:
        return ELEMENTS[kind.base][0]
    inner, size = of(kind.inner), kind.suffixes[-1][1:-1]

    def optional(value):
        return None if value is None else inner(value)

    def listed(value):
        if size and not isinstance(value, tuple | list):
            return (inner(value),) * int(size)
        if isinstance(value, str | bytes | dict | set):
            raise ValueError
        value = tuple(map(inner, value))
        if size and len(value) != int(size):
            raise ValueError
        return value

    return optional if kind.optional else listed
