"""The ATen schema language, from text to records: `parse(text)` gives a `Schema`.

`str` is its exact inverse: `str(parse(text)) == text`. A text that means something but is not in canonical form (stray
blanks, a single return in parentheses) is an error too, so that the inverse holds for every text that parses.

    schema       [namespace::]name[.overload](arguments) -> returns
    argument     type name[=default]; those after a lone `*` are keyword-only
    type         base[annotation][suffix...], as in `Tensor(a!)[]`, `int[2]?`
    annotation   !  (a)  (a|b)  (a!)  (a! -> a|b)  (a -> *): which memory a tensor may share, `!` for written
    returns      type[ name], or a tuple of them in parentheses, or ()
    default      a number, True, False, None, a quoted string on one line, a list of these, or the name of a constant
                 (`contiguous_format`)
"""

import re
from functools import lru_cache
from itertools import zip_longest

from .errors import SchemaError
from .schema import STRING, Annotation, Argument, Constant, Return, Schema, Type, literal

BASES = frozenset(
    "Tensor Scalar int SymInt float bool str Generator ScalarType Layout Device DeviceIndex MemoryFormat QScheme "
    "Dimname Storage Stream ConstQuantizerPtr SymBool".split()
)
TOKEN = re.compile(
    r"(?P<blank>\s+)|(?P<name>[A-Za-z_]\w*)|(?P<number>-?(?:inf|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))"
    rf"|(?P<string>{STRING})|(?P<mark>->|::|[].,=*!?|()[])"
)
MOST = 64  # elements of `int[N]`, and suffixes of a type: NumPy's most dimensions, which such lists are of


def parse(text):
    """The Schema that `text` declares, or a SchemaError that points at the column."""
    if not isinstance(text, str):
        raise TypeError(f"a schema is a string, not {type(text).__name__}")
    name, _, rest = text.partition("(")
    like = _like(rest) if name.isidentifier() and name.isascii() else None
    return _parsed(text) if like is None else like._replace(name=name)


@lru_cache(maxsize=64)
def _like(rest):
    """The schema of an op of these arguments and returns, of which many differ in their names alone; None of none."""
    try:
        return _parsed(f"op({rest}")
    except SchemaError:
        return None


def _parsed(text):
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
                wanted = ": a string ends on its line, and has the escapes \\\\ \\' \\\" \\n \\r \\t"
                quoted = text[position] in "'\""
                raise SchemaError(f"unexpected {text[position]!r}{wanted * quoted}", text, position + 1)
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
            if len(suffixes) == MOST:
                self.fail(f"at most {MOST} suffixes")
            if self.have("?"):
                suffixes.append("?")
            elif self.have("["):
                size = self.token if self.tokens[self.at][0] == "number" else ""
                if size and not (size.isdigit() and len(size) <= len(str(MOST)) and int(size) <= MOST):
                    self.fail(f"the number of elements, at most {MOST}")
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
                self.value("a value, lists have no lists in them")
        else:
            self.value("a default")
        _, token, column = self.tokens[self.at - 1]
        return self.text[start : column - 1 + len(token)]

    def value(self, expected):
        """The next token, a value that Python reads."""
        if self.tokens[self.at][0] not in ("name", "number", "string"):
            self.fail(expected)
        try:
            literal(self.token)
        except ValueError:  # sys.set_int_max_str_digits says how many
            self.fail("a number of fewer digits")
        self.at += 1


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
