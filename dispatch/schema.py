"""The ATen schema language: `name.overload(T a=default, *, T b) -> R`.

`parse(text)` gives a frozen `Schema`, and `str` is its exact inverse: `str(parse(text)) == text`. A text that means
something but is not in canonical form (stray blanks, a single return in parentheses) is an error too, so that the
inverse holds for every text that parses.

    schema       [namespace::]name[.overload](arguments) -> returns
    argument     type name[=default]; those after a lone `*` are keyword-only
    type         base[annotation][suffix...], as in `Tensor(a!)[]`, `int[2]?`
    annotation   !  (a)  (a|b)  (a!)  (a! -> a|b)  (a -> *): which memory a tensor may share, `!` for written
    returns      type[ name], or a tuple of them in parentheses, or ()
    default      a number, True, False, None, a quoted string, a list, or the name of a constant (`contiguous_format`)
"""

import ast
import re
from dataclasses import dataclass, replace
from itertools import zip_longest

from .errors import SchemaError

BASES = frozenset(
    "Tensor Scalar int SymInt float bool str Generator ScalarType Layout Device DeviceIndex MemoryFormat QScheme "
    "Dimname Storage Stream ConstQuantizerPtr SymBool".split()
)
TOKEN = re.compile(
    r"(?P<blank>\s+)|(?P<name>[A-Za-z_]\w*)|(?P<number>-?(?:inf|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))"
    r"|(?P<string>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<mark>->|::|[].,=*!?|()[])"
)
REQUIRED = object()  # the default of an argument that has none


@dataclass(frozen=True)
class Annotation:
    """Which alias sets a tensor belongs to before the call and after it, and whether it is written."""

    before: tuple = ()
    write: bool = False
    after: tuple = ()

    def __str__(self):
        if not self.before:
            return "!"
        after = f" -> {'|'.join(self.after)}" if self.after else ""
        return f"({'|'.join(self.before)}{'!' * self.write}{after})"


@dataclass(frozen=True)
class Type:
    """A base type, its annotation and its suffixes from the inside out: `int[2]?` has ("[2]", "?")."""

    base: str
    annotation: Annotation | None = None
    suffixes: tuple = ()

    def __str__(self):
        return f"{self.base}{self.annotation or ''}{''.join(self.suffixes)}"

    @property
    def optional(self):
        return self.suffixes[-1:] == ("?",)

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


@dataclass(frozen=True)
class Argument:
    """A type, a name, the text of the default (None where there is none)."""

    type: Type
    name: str
    default: str | None = None
    keyword_only: bool = False

    def __str__(self):
        return f"{self.type} {self.name}" + ("" if self.default is None else f"={self.default}")

    @property
    def value(self):
        """The default as a Python value: lists are tuples, and a bare number fills `int[N]`."""
        if self.default is None:
            return REQUIRED
        value = literal(self.default)
        size = self.type.size
        return (value,) * size if size is not None and isinstance(value, int | float) else value


@dataclass(frozen=True)
class Return:
    type: Type
    name: str | None = None

    def __str__(self):
        return str(self.type) + (f" {self.name}" if self.name else "")


@dataclass(frozen=True)
class Schema:
    name: str
    overload: str
    arguments: tuple
    returns: tuple
    namespace: str = ""

    def __str__(self):
        arguments = [str(argument) for argument in self.arguments if not argument.keyword_only]
        keywords = [str(argument) for argument in self.arguments if argument.keyword_only]
        returns = ", ".join(map(str, self.returns))
        returns = returns if len(self.returns) == 1 else f"({returns})"
        return f"{self.full_name}({', '.join(arguments + ['*'] * bool(keywords) + keywords)}) -> {returns}"

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
        arguments = tuple(
            replace(a, type=replace(a.type, annotation=written if a.name == "self" else None)) for a in self.arguments
        )
        return replace(self, name=self.name + "_", arguments=arguments, returns=(Return(Type("Tensor", written)),))

    def out(self):
        """The out form of a functional schema: one more keyword, `out`, which is written and returned."""
        written = Type("Tensor", Annotation(("a",), write=True))
        arguments = tuple(replace(a, type=replace(a.type, annotation=None)) for a in self.arguments)
        arguments += (Argument(written, "out", keyword_only=True),)
        overload = f"{self.overload}_out" if self.overload else "out"
        return replace(self, overload=overload, arguments=arguments, returns=(Return(written),))


class Constant(str):
    """The name of a constant, as a default: `contiguous_format`."""

    __slots__ = ()


def literal(text):
    """The Python value of a default's text."""
    if text[0] == "[":
        return tuple(literal(part.strip()) for part in text[1:-1].split(",")) if text[1:-1].strip() else ()
    if text[0] in "'\"":
        return ast.literal_eval(text)
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    if not (text[0].isdigit() or text[0] in "-." or text == "inf"):
        return Constant(text)
    return float(text) if re.search(r"[.einf]", text, re.I) else int(text)


def parse(text):
    """The Schema that `text` declares, or a SchemaError that points at the column."""
    if not isinstance(text, str):
        raise TypeError(f"a schema is a string, not {type(text).__name__}")
    schema = Parser(text).schema()
    for column, (given, canonical) in enumerate(zip_longest(text, str(schema)), 1):
        if given != canonical:
            raise SchemaError(f"write it in canonical form: {schema}", text, column)
    return schema


class Parser:
    """Recursive descent, one method a rule of the grammar at the top."""

    def __init__(self, text):
        self.text, self.tokens, self.at = text, [], 0
        position = 0
        while position < len(text):
            match = TOKEN.match(text, position)
            if match is None:
                raise SchemaError(f"unexpected {text[position]!r}", text, position + 1)
            if match.lastgroup != "blank":
                self.tokens.append((match.lastgroup, match.group(), position + 1))
            position = match.end()
        self.tokens.append(("end", "", len(text.rstrip()) + 1))

    @property
    def token(self):
        return self.tokens[self.at][1]

    def fail(self, expected, back=0):
        kind, token, column = self.tokens[self.at - back]
        found = "the end" if kind == "end" else repr(token)
        raise SchemaError(f"expected {expected}, found {found}", self.text, column)

    def take(self, kind, expected):
        if self.tokens[self.at][0] != kind:
            self.fail(expected)
        self.at += 1
        return self.tokens[self.at - 1][1]

    def have(self, mark):
        """Whether the next token is `mark`, which is then taken."""
        found = self.tokens[self.at][:2] == ("mark", mark)
        self.at += found
        return found

    def need(self, mark, expected=None):
        if not self.have(mark):
            self.fail(expected or repr(mark))

    def schema(self):
        name, namespace = self.take("name", "the name of an op"), ""
        if self.have("::"):
            namespace, name = name, self.take("name", "the name of an op")
        overload = self.take("name", "the name of an overload") if self.have(".") else ""
        self.need("(")
        arguments = self.arguments()
        self.need("->")
        returns = self.returns()
        if self.tokens[self.at][0] != "end":
            self.fail("the end")
        return Schema(name, overload, arguments, returns, namespace)

    def arguments(self):
        arguments, keyword_only = [], False
        while not self.have(")"):
            if arguments or keyword_only:
                self.need(",", "',' or ')'")
            if self.have("*"):
                if keyword_only:
                    self.fail("one '*' only", back=1)
                keyword_only = True
                self.need(",", "',' and a keyword-only argument")
            argument = self.argument(keyword_only)
            if argument.name in (other.name for other in arguments):
                self.fail("each name once", back=1)
            if argument.default is None and not keyword_only and arguments and arguments[-1].default is not None:
                self.fail("'=' and a default, as the argument before it has one")
            arguments.append(argument)
        return tuple(arguments)

    def argument(self, keyword_only):
        type = self.type()
        name = self.take("name", "the name of the argument")
        if not self.have("="):
            return Argument(type, name, None, keyword_only)
        start = self.at
        default = self.default()
        if not fits(type, Argument(type, name, default).value):
            self.fail(f"a default of type {type}", back=self.at - start)
        return Argument(type, name, default, keyword_only)

    def type(self):
        base = self.take("name", "a type")
        if base not in BASES:
            self.fail("a type", back=1)
        annotation = self.annotation()
        suffixes = []
        while self.token in ("[", "?"):
            if self.have("?"):
                suffixes.append("?")
            elif self.have("["):
                size = self.token if self.tokens[self.at][0] == "number" else ""
                if size and not size.isdigit():
                    self.fail("the number of elements")
                self.at += bool(size)
                self.need("]")
                suffixes.append(f"[{size}]")
        return Type(base, annotation, tuple(suffixes))

    def annotation(self):
        if self.have("!"):
            return Annotation(write=True)
        if not self.have("("):
            return None
        before = self.alias_set()
        write = self.have("!")
        after = self.alias_set() if self.have("->") else ()
        self.need(")")
        return Annotation(before, write, after)

    def alias_set(self):
        names = []
        while not names or self.have("|"):
            names.append("*" if self.have("*") else self.take("name", "the name of an alias set"))
        return tuple(names)

    def returns(self):
        if not self.have("("):
            return (self.result(),)
        results = []
        while not self.have(")"):
            if results:
                self.need(",", "',' or ')'")
            results.append(self.result())
        return tuple(results)

    def result(self):
        type = self.type()
        return Return(type, self.take("name", "a name") if self.tokens[self.at][0] == "name" else None)

    def default(self):
        """The text of a default, as it stands."""
        start = self.tokens[self.at][2] - 1
        if self.have("["):
            while not self.have("]"):
                if self.tokens[self.at - 1][1] != "[":
                    self.need(",", "',' or ']'")
                self.default()
        elif self.tokens[self.at][0] in ("name", "number", "string"):
            self.at += 1
        else:
            self.fail("a default")
        _, token, column = self.tokens[self.at - 1]
        return self.text[start : column - 1 + len(token)]


def fits(type, value):
    """Whether a default's value is of the declared type; the names of constants are taken on trust."""
    if value is None:
        return type.optional
    if isinstance(value, Constant):
        return type.base not in ("Tensor", "bool", "str")
    if type.is_list:
        return isinstance(value, tuple) and all(fits(Type(type.base), part) for part in value)
    if isinstance(value, str):
        return type.base == "str"
    if isinstance(value, bool):
        return type.base in ("bool", "Scalar", "SymBool")
    if isinstance(value, int):
        return type.base in ("int", "SymInt", "DeviceIndex", "float", "Scalar")
    return isinstance(value, float) and type.base in ("float", "Scalar")
