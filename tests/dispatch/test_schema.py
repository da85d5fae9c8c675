"""The schema language: str is parse's exact inverse, and errors point at the column."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbkernels import ops
from nbkernels.dispatch import RegistrationError, SchemaError, declare, parse
from nbkernels.dispatch.schema import REQUIRED, Annotation, Argument, Return, Schema, Type

TEXTS = [
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
    "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    "nothing() -> ()",
    "split(Tensor(a -> *) self, int[] sizes) -> Tensor(a)[]",
    "move(Tensor(a! -> a|b) self, Tensor! other, Tensor(a|b) third) -> (Tensor(a!) values, Tensor indices)",
    "aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
    "pad(Tensor self, int[2] stride=1, int[] pad=[0, -1], str mode='constant', float value=1e-05) -> Tensor",
    "like(Tensor self, *, ScalarType? dtype=None, MemoryFormat? memory_format=contiguous_format) -> Tensor",
    "cat(Tensor[] tensors, Tensor?[] indices, bool[3] mask, Generator? generator=None) -> Tensor result",
    "_quotes(str a=\"'\\\"\", str b='\\'', float c=-inf, float d=.5, int e=-3) -> int",
    "only_keywords(*, int n) -> bool",
    "__and__.Scalar(Tensor self, Scalar other) -> Tensor",
    "random.from(Tensor self, int from, int? to) -> Tensor",
]


@pytest.mark.parametrize("text", TEXTS)
def test_str_is_the_inverse_of_parse(text):
    assert str(parse(text)) == text


CORPUS = (Path(__file__).parent / "data" / "schemas.txt").read_text(encoding="utf-8").splitlines()


def test_a_corpus_of_real_signatures():
    """Names and signatures of some 300 operators of ATen's kind: what a schema has ever been asked to say."""
    assert len(set(CORPUS)) >= 150
    for text in CORPUS:
        schema = parse(text)
        assert str(schema) == text
        assert parse(str(schema)) == schema
        assert hash(parse(text)) == hash(schema)
        # the kind is read from the annotations alone, and the names agree with it
        in_place_name = schema.name.endswith("_") and not schema.name.startswith("__")
        if schema.kind == "functional":
            assert not in_place_name, text
            assert not f"_{schema.overload}".endswith("_out"), text
        if schema.kind == "out":
            assert any(a.keyword_only and a.type.written for a in schema.arguments), text
    assert {parse(text).kind for text in CORPUS} == {"functional", "in-place", "out"}


def test_the_rules_of_names_hold_for_the_corpus():
    """They forbid nothing that is: but for factories, which say by an argument where they run, and not by a tensor."""
    for text in CORPUS:
        schema = parse(text)
        if any(argument.type.base == "Tensor" for argument in schema.arguments):
            declare.rules(schema)
        else:
            with pytest.raises(RegistrationError, match="takes no Tensor"):
                declare.rules(schema)


@given(st.sampled_from(CORPUS), st.data())
def test_a_damaged_signature_is_told_where(text, data):
    """One character lost, doubled or replaced: the text parses to itself, or the error points into it."""
    at = data.draw(st.integers(0, len(text) - 1))
    put = data.draw(st.one_of(st.just(""), st.just(text[at] * 2), st.sampled_from("()[]!*|->=,.? aT1'\\\"")))
    damaged = text[:at] + put + text[at + 1 :]
    column, shown = 1, damaged
    try:
        assert str(parse(damaged)) == damaged
    except SchemaError as error:
        column, shown = error.column, error.text
    assert 1 <= column <= len(damaged) + 1
    assert shown == damaged


def test_every_schema_of_aten():
    if find_spec("torchgen") is None:
        pytest.skip("needs torchgen, part of torch, for ATen's own list of schemas")
    file = Path(find_spec("torchgen").origin).parent / "packaged/ATen/native/native_functions.yaml"
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("- func: ")]
    texts = [line.removeprefix("- func: ").split("  #")[0].strip() for line in lines]
    assert len(texts) > 2000
    for text in texts:
        schema = parse(text)
        assert str(schema) == text
        assert all(a.default is None or a.value is not REQUIRED for a in schema.arguments)
        # ATen's own convention says what each is: the kind is read from the annotations alone
        if schema.name.endswith("_") and not schema.name.endswith("__") and "out" not in schema.overload:
            assert schema.kind == "in-place" or not any(a.type.written for a in schema.arguments), text


names = st.from_regex(r"[a-z_][a-z0-9_]{0,7}", fullmatch=True).filter(lambda name: name != "inf")
sets = st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True).map(tuple)
annotations = st.one_of(
    st.none(),
    st.just(Annotation(write=True)),
    st.builds(Annotation, sets, st.booleans(), st.one_of(st.just(()), st.just(("*",)), sets)),
)
suffixes = st.lists(st.sampled_from(["[]", "[2]", "[13]", "?"]), max_size=3).map(tuple)
types = st.builds(Type, st.sampled_from(["Tensor", "int", "Scalar", "bool", "str", "Generator"]), annotations, suffixes)


NUMBERS = ["0", "-3", "17", "1.5", "-2.25", "1e-05", ".5", "2.", "inf", "-inf", "1E+3"]
WHOLE = ["0", "-3", "17", "9223372036854775807"]
ELEMENTS = {
    "int": WHOLE,
    "Scalar": [*NUMBERS, "True"],
    "bool": ["True", "False"],
    "str": ["'mean'", '"a\'b"', "''", r"'\'\\'"],
    "float": NUMBERS,
    "MemoryFormat": ["contiguous_format"],
}


@st.composite
def arguments(draw, name, keyword_only, default):
    """An argument; with a default of its type, where it is to have one."""
    if not default:
        return Argument(draw(types), name, None, keyword_only)
    base = draw(st.sampled_from(list(ELEMENTS)))
    suffix = draw(st.sampled_from([(), ("?",), ("[]",), ("[2]",), ("[2]", "?")]))
    element = st.sampled_from(ELEMENTS[base])
    kind = Type(base, None, suffix)
    choices = [element] if not kind.is_list or (kind.size and base in ("int", "float", "Scalar", "bool")) else []
    if kind.is_list:
        many = st.lists(element, min_size=kind.size or 0, max_size=kind.size or 3)
        choices.append(many.map(lambda parts: f"[{', '.join(parts)}]"))
    if kind.optional:
        choices.append(st.just("None"))
    return Argument(kind, name, draw(st.one_of(choices)), keyword_only)


@given(st.data())
def test_parse_is_the_inverse_of_str(data):
    labels = data.draw(st.lists(names, max_size=6, unique=True))
    first_keyword, first_default = (data.draw(st.integers(0, len(labels))) for _ in range(2))
    parts = tuple(data.draw(arguments(label, i >= first_keyword, i >= first_default)) for i, label in enumerate(labels))
    returns = data.draw(st.lists(st.builds(Return, types, st.one_of(st.none(), names)), max_size=3).map(tuple))
    namespace = data.draw(st.one_of(st.just(""), names))
    schema = Schema(data.draw(names), data.draw(st.one_of(st.just(""), names)), parts, returns, namespace)
    assert parse(str(schema)) == schema
    for argument in parts[first_default:]:
        value = argument.value
        assert value is not REQUIRED
        if argument.type.size and value is not None:
            assert len(value) == argument.type.size


@given(st.text("abT(): []=*,!?->|.1_'\"Tensor", max_size=40))
def test_no_text_does_anything_but_parse_or_raise_at_a_column(text):
    column = 1
    try:
        assert str(parse(text)) == text
    except SchemaError as error:
        column = error.column
    assert 1 <= column <= len(text) + 1


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("addmm(Tenso self) -> Tensor", 7, "a type, found 'Tenso'"),
        ("addmm(Tensor self", 18, "',' or ')', found the end"),
        ("addmm(Tensor self) - Tensor", 20, "unexpected '-'"),
        ("addmm(Tensor self) Tensor", 20, "'->', found 'Tensor'"),
        ("addmm(Tensor self, Tensor self) -> Tensor", 27, "each name once"),
        ("addmm(Tensor self, *, int n, *, int m) -> Tensor", 30, "one '*' only"),
        ("addmm(Tensor self, *) -> Tensor", 21, "',' and a keyword-only argument"),
        ("f(int n=1, Tensor self) -> Tensor", 23, "'=' and a default"),
        ("f(int n=1.5) -> Tensor", 9, "a default of type int"),
        ("f(bool n=1) -> Tensor", 10, "a default of type bool"),
        ("f(Tensor x=None) -> Tensor", 12, "a default of type Tensor"),
        ("f(int[2] n=[1, 'a']) -> Tensor", 12, "a default of type int[2]"),
        ("f(int[x] n) -> Tensor", 7, "']', found 'x'"),
        ("f(int[-1] n) -> Tensor", 7, "the number of elements"),
        ("f(Tensor(a self) -> Tensor", 12, "')', found 'self'"),
        ("f(Tensor() self) -> Tensor", 10, "the name of an alias set"),
        ("f() -> Tensor extra more", 21, "the end, found 'more'"),
        ("f() -> (Tensor)", 8, "canonical form: f() -> Tensor"),
        ("f(Tensor  a) -> Tensor", 10, "canonical form: f(Tensor a) -> Tensor"),
        ("f() -> Tensor ", 14, "canonical form: f() -> Tensor"),
        ("", 1, "the name of an op, found the end"),
        ("f(str s='open) -> Tensor", 9, 'unexpected "\'"'),
        (f"f(int[] x={'[' * 5000}{']' * 5000}) -> ()", 12, "lists have no lists in them"),
        (f"f(int[] x={'[' * 5000}", 12, "lists have no lists in them"),
        (f"f(int{'[]' * 5000} x) -> ()", 134, "at most 64 suffixes"),
        (f"f(int{'?' * 5000} x) -> ()", 70, "at most 64 suffixes"),
        (f"f(int x={'1' * 4301}) -> ()", 9, "a number of fewer digits"),
        (f"f(int[] x=[1, -{'1' * 4301}]) -> ()", 15, "a number of fewer digits"),
        (f"f(int[{'1' * 4301}] x) -> ()", 7, "the number of elements, at most 64"),
        (f"f(int[{10**20}] x=-1) -> ()", 7, "the number of elements, at most 64"),
        ("f(int[300000000] x=-1) -> ()", 7, "the number of elements, at most 64"),
        *((f"f(str x='a{bad}') -> ()", 9, "a string ends on its line")
          for bad in ("\n", "\r", "\0", "\ud800", r"\x", r"\d", r"\N{no}", "\\\n")),
        ("f(str[] x=['a', \"b\n\"]) -> ()", 17, "a string ends on its line"),
    ],
)  # fmt: skip
def test_errors_point_at_the_column(text, column, words):
    with pytest.raises(SchemaError) as caught:
        parse(text)
    assert caught.value.column == column
    message, shown, mark = str(caught.value).split("\n")
    assert words in message
    assert shown.strip() == "".join(each if each.isprintable() else " " for each in text).strip()
    assert mark.index("^") == 2 + column - 1


def test_a_schema_is_text():
    with pytest.raises(TypeError, match="a schema is a string, not bytes"):
        parse(b"f() -> ()")


def test_defaults_are_python_values():
    schema = parse(
        "f(int[2] a=1, int[2] b=[3, 4], int[] c=[], float d=1e-3, int e=-2, bool f=True, str g='x', Tensor? h=None, "
        'Scalar i=inf, int j=Mean, int[1]? k=None, float[] l=[0.5], str m="a\'b", '
        """str[] n=['a,b', "c']", ''], str o='\\n\\\\', int[64] p=0) -> ()"""
    )
    values = [argument.value for argument in schema.arguments]
    inf = float("inf")
    assert values == [(1, 1), (3, 4), (), 1e-3, -2, True, "x", None, inf, "Mean", None, (0.5,), "a'b",
                      ("a,b", "c']", ""), "\n\\", (0,) * 64]  # fmt: skip
    assert [type(value) for value in values[3:6]] == [float, int, bool]
    assert parse("f(int a) -> ()").arguments[0].value is REQUIRED


def test_types_and_annotations():
    schema = parse("f(Tensor(a! -> a|b) x, int[3]? y, Tensor?[] z) -> Tensor")
    x, y, z = (argument.type for argument in schema.arguments)
    assert x.annotation == Annotation(("a",), True, ("a", "b"))
    assert (x.is_tensor, x.written, x.is_list, x.optional) == (True, True, False, False)
    assert (y.is_list, y.size, y.optional, y.is_tensor) == (True, 3, True, False)
    assert (z.is_list, z.size, z.optional, z.is_tensor) == (True, None, False, False)


def test_the_in_place_and_out_forms_are_derived():
    schema = parse("sum_to.a(Tensor(a) self, Tensor b, *, int n=1) -> Tensor(a)")
    assert str(schema.in_place()) == "sum_to_.a(Tensor(a!) self, Tensor b, *, int n=1) -> Tensor(a!)"
    assert str(schema.out()) == "sum_to.a_out(Tensor self, Tensor b, *, int n=1, Tensor(a!) out) -> Tensor(a!)"
    assert str(parse("mm(Tensor self) -> Tensor").out()) == "mm.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"
    for form, kind in ((schema, "functional"), (schema.in_place(), "in-place"), (schema.out(), "out")):
        assert parse(str(form)).kind == kind


def test_the_table_of_ops_parses_back():
    assert {op.schema.name for op in ops.LIBRARY} >= {"addmm", "mm", "linear", "add", "sum_to"}
    for op in ops.LIBRARY:
        assert parse(str(op.schema)) == op.schema
