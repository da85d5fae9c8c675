"""A schema as records: `name.overload(T a=default, *, T b) -> R`, in the language of ATen's operators.

`str` of each record is its text, in canonical form; grammar.py has the language and the way back.
"""

import re
from collections import namedtuple
from keyword import iskeyword

REQUIRED = object()  # the default of an argument that has none
# A quoted string: on one line, and what Python reads. A part of a list: a string, or what has no comma.
STRING = "|".join(rf"{quote}(?:[^{quote}\\\n\r\0\ud800-\udfff]|\\[\\'\"nrt])*{quote}" for quote in ("'", '"'))
PART = re.compile(rf"""{STRING}|[^,\s'"]+""")


class Annotation(namedtuple("Annotation", "before write after", defaults=((), False, ()))):
    """Which alias sets a tensor belongs to before the call and after it, and whether it is written."""

    __slots__ = ()

    def __str__(self):
        if not self.before:
            return "!"
        after = f" -> {'|'.join(self.after)}" if self.after else ""
        return f"({'|'.join(self.before)}{'!' * self.write}{after})"


class Type(namedtuple("Type", "base annotation suffixes", defaults=(None, ()))):
    """A base type, its annotation and its suffixes from the inside out: `int[2]?` has ("[2]", "?")."""

    __slots__ = ()

    def __str__(self):
        return f"{self.base}{self.annotation or ''}{''.join(self.suffixes)}"

    @property
    def optional(self):
        return self.suffixes[-1:] == ("?",)

    @property
    def inner(self):
        """The type inside of the last suffix: `Tensor?` of `Tensor?[]`."""
        return self._replace(suffixes=self.suffixes[:-1])

    @property
    def is_list(self):
        return any(suffix != "?" for suffix in self.suffixes)

    @property
    def is_tensor(self):
        return self.base == "Tensor" and not self.is_list

    @property
    def size(self):
        """N of `T[N]`, or None."""
        sizes = [int(suffix[1:-1]) for suffix in self.suffixes if suffix not in ("?", "[]")]
        return sizes[-1] if sizes else None

    @property
    def written(self):
        return self.annotation is not None and self.annotation.write


class Argument(namedtuple("Argument", "type name default keyword_only", defaults=(None, False))):
    """A type, a name, the text of the default (None where there is none)."""

    __slots__ = ()

    def __str__(self):
        return f"{self.type} {self.name}" + ("" if self.default is None else f"={self.default}")

    def annotated(self, annotation):
        """This argument with another annotation of its type, or with none."""
        if self.type.annotation == annotation:
            return self
        return self._replace(type=self.type._replace(annotation=annotation))

    @property
    def value(self):
        """The default as a Python value: lists are tuples, and a bare number fills `int[N]`."""
        if self.default is None:
            return REQUIRED
        value = literal(self.default)
        size = self.type.size
        return (value,) * size if size is not None and isinstance(value, int | float) else value


class Return(namedtuple("Return", "type name", defaults=(None,))):
    """A type, and a name or None."""

    __slots__ = ()

    def __str__(self):
        return str(self.type) + (f" {self.name}" if self.name else "")


class Schema(namedtuple("Schema", "name overload arguments returns namespace", defaults=("",))):
    """What an op is called, what it takes, what it returns, and which of them it writes; see the grammar above."""

    __slots__ = ()

    def __str__(self):
        arguments = [str(argument) for argument in self.arguments if not argument.keyword_only]
        keywords = [str(argument) for argument in self.arguments if argument.keyword_only]
        returns = ", ".join(map(str, self.returns))
        returns = returns if len(self.returns) == 1 else f"({returns})"
        return f"{self.full_name}({', '.join(arguments + ['*'] * bool(keywords) + keywords)}) -> {returns}"

    @property
    def inputs(self):
        """The arguments, without the one that an out form writes."""
        return tuple(a for a in self.arguments if not (a.keyword_only and a.type.written))

    def fields(self):
        """The class of what comes out where there are several returns: a namedtuple where all of them have names."""
        names = [f"{each.name}{'_' * iskeyword(each.name)}" for each in self.returns if each.name]
        if len(self.returns) < 2 or len(names) < len(self.returns):
            return None
        made = namedtuple(f"{self.name}{'_' * iskeyword(self.name)}", names)
        made.__reduce__ = lambda self: (named, (made.__name__, made._fields, *self))
        return made

    @property
    def full_name(self):
        return f"{self.namespace}{'::' * bool(self.namespace)}{self.name}{'.' * bool(self.overload)}{self.overload}"

    @property
    def kind(self):
        """What is written decides: "out", "in-place" or "functional"."""
        written = [argument for argument in self.arguments if argument.type.written]
        if any(argument.keyword_only for argument in written):
            return "out"
        return "in-place" if any(argument.name == "self" for argument in written) else "functional"

    def in_place(self):
        """The in-place form of a functional schema: `name_`, which writes self and returns it."""
        written = Annotation(("a",), write=True)
        arguments = tuple(a.annotated(written if a.name == "self" else None) for a in self.arguments)
        return self._replace(name=self.name + "_", arguments=arguments, returns=(Return(Type("Tensor", written)),))

    def out(self):
        """The out form of a functional schema: one more keyword, `out`, which is written and returned."""
        written = Type("Tensor", Annotation(("a",), write=True))
        arguments = tuple(a.annotated(None) for a in self.arguments)
        arguments += (Argument(written, "out", keyword_only=True),)
        overload = f"{self.overload}_out" if self.overload else "out"
        return self._replace(overload=overload, arguments=arguments, returns=(Return(written),))


def named(name, fields, *values):
    """A pickled result with named fields: its class is an op's, which no module has."""
    return namedtuple(name, fields)(*values)


class Constant(str):
    """The name of a constant, as a default: `contiguous_format`."""

    __slots__ = ()


def literal(text):
    """The Python value of a default's text."""
    if text[0] == "[":
        return tuple(map(literal, PART.findall(text[1:-1])))
    if text[0] in "'\"":
        from ast import literal_eval

        return literal_eval(text)
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    if not (text[0].isdigit() or text[0] in "-." or text == "inf"):
        return Constant(text)
    return int(text) if text.lstrip("-").isdigit() else float(text)
