"""Python values -> what the schema's types ask for, one converter per argument, made once per op."""

import operator

from . import arrays
from .errors import ArgumentError, describe

NUMBERS = (bool, int, float, complex)


def number(value):
    """A Python bool, int, float or complex of equal value; NumPy scalars count as numbers, 0-d arrays do not."""
    if type(value) in NUMBERS:
        return value
    if type(value).__module__ == "numpy" and isinstance(arrays.adapter_of(type(value)), arrays.NumPyScalar):
        value = value.item()
    for kind in NUMBERS:
        if isinstance(value, kind):
            return kind(value)
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
    "str": (string, "a string"),
}


def converter(argument):
    """The function (op, value) that turns a value into the argument's type, or raises an ArgumentError that names both.

    Tensors are not converted here (see Op.bind), nor are the types that only kernels understand.
    """
    convert, wanted = ELEMENTS.get(argument.type.base, (None, ""))
    if convert is None:
        return lambda op, value: value
    size, is_list, optional = argument.type.size, argument.type.is_list, argument.type.optional
    if is_list:
        wanted = f"a sequence of {'' if size is None else f'{size} '}{argument.type.base}s"
        element = convert

        def convert(value):
            if size is not None and not isinstance(value, tuple | list):
                return (element(value),) * size
            value = tuple(map(element, value))
            if size is not None and len(value) != size:
                raise ValueError
            return value

    def checked(op, value):
        if value is None and optional:
            return None
        try:
            return convert(value)
        except (TypeError, ValueError):
            given = repr(value) if isinstance(value, NUMBERS + (str, tuple, list)) else describe(value)
            raise ArgumentError(f"{op}: {argument.name} must be {wanted}, not {given}") from None

    return checked
