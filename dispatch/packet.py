"""The overloads of a name as one function, which picks by the arguments: ATen's OpOverloadPacket."""

from . import arrays
from .bind import ELEMENTS
from .errors import ArgumentError, RegistrationError, suggestion
from .function import parameter
from .table import signature

DEFAULT = "default"  # what ATen calls the overload without a name


class OverloadPacket:
    """Calls the first overload, in the order of definition, that takes the arguments as they are; else the first that
    takes them at all: numbers in the place of arrays, and 0-d arrays in that of numbers.

    >>> from nbkernels.dispatch import Library
    >>> library = Library("mine")
    >>> one = library.define("f(Tensor self) -> str", dispatch={"CPU": lambda x: "of an array"})
    >>> two = library.define("f.Scalar(Tensor self, Scalar by) -> str", dispatch={"CPU": lambda x, by: "and a number"})
    >>> import numpy as np
    >>> f = library.packet("f")
    >>> f(np.ones(3), 2), f.default(np.ones(3)), f.overloads()
    ('and a number', 'of an array', ['default', 'Scalar'])
    """

    def __init__(self, library, name):
        self._library, self._name = library, name
        if not self._forms():
            names = [each.schema.full_name.partition(".")[0] for each in library]
            raise RegistrationError(f"there is no op {name!r}{suggestion(str(name), names)}")

    def _forms(self):
        """{overload: (op, schema)} as they are defined now."""
        forms = [(each, form) for each in self._library for form in each.forms_declared]
        mine = [(each, form) for each, form in forms if form._replace(overload="").full_name == self._name]
        return {form.overload or DEFAULT: (each, form) for each, form in mine}

    def overloads(self):
        """Their names, as attributes of this."""
        return list(self._forms())

    def __getattr__(self, overload):
        if overload[:1] == "_":  # Python asks for some of an object that is not made yet
            raise AttributeError(overload)
        forms = self._forms()
        if overload not in forms:
            raise AttributeError(f"{self._name} has no overload {overload!r}; it has {', '.join(forms)}")
        op, schema = forms[overload]
        return op.form(schema)

    def __dir__(self):
        return ["overloads", *self._forms()]

    def __repr__(self):
        return f"<overloads of {self._name}: {', '.join(self._forms())}>"

    def __call__(self, /, *args, **kwargs):
        loose, why = None, []
        for op, schema in self._forms().values():
            function = op.form(schema)
            try:
                values = bound(op, function, args, kwargs)
            except TypeError as error:
                why.append(f"\n  {schema}: {error}")
                continue
            if as_they_are(op, values):
                return function(*args, **kwargs)
            loose = loose or function
        if loose is None:
            raise ArgumentError(f"{self._name}: no overload takes these arguments{''.join(why)}")
        return loose(*args, **kwargs)


def bound(op, function, args, kwargs):
    """The values of the op's arguments in a call of one of its functions; a TypeError where it does not take them."""
    given = signature(function).bind(*args, **kwargs)
    given.apply_defaults()
    values = [given.arguments[parameter(name)] for name in op.names]
    op.bind(op.schema.name, values)
    return values


def as_they_are(op, values):
    """Whether no number stands for an array, and no array for a number."""
    for argument, value in zip(op.arguments, values, strict=True):
        adapter = arrays.adapter_of(type(value))
        plain = value is None or argument.type.is_list or (adapter is not None and adapter.scalar)
        either = argument.type.base in ("Tensor", *ELEMENTS) and not plain
        if either and (argument.type.base == "Tensor") is (adapter is None):
            return False
    return True
