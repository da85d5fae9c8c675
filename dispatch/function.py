"""The public functions of an op: plain Python functions generated from its schema, as dataclasses do.

Defaults and keywords bind at C speed, and `inspect.signature` tells the truth. A call does one dict hit on the types
of its tensors and one call of the fast path that it finds there; everything else is the op's general path.
"""

import sys
from functools import lru_cache
from keyword import iskeyword
from textwrap import indent

from .errors import crowded, unexpected
from .schema import REQUIRED
from .table import signature

# Functions take words that are no keyword's, to say which is meant: from 3.13 on Python does. That costs 20 to 28 ns a
# call, and nothing that costs less can do it: Python refuses a word before any code of the function runs, so there is
# no failing path of ours. A callable around each function takes longer, and sys.excepthook is the program's.
CATCHES = sys.version_info < (3, 13)

# Keyword-only parameters follow STOP, which no call gives, and not a star: Python looks up the defaults of parameters
# behind a star by name, which costs 30 ns a call for five of them.
STOP, STOPPED = "__stop=__stopped", object()

# What is no argument's has two underscores in front: arguments and ops may be called `fast` and `result`.
FUNCTION = """\
def __function({parameters}):{first}
{direct}{key}    __fast = __find({types})
    if __fast is not None:
        __result = __fast({values})
        if __result is not None:
            return __result
    return __general(({arguments},), {rest})
"""
# With keyword-only arguments that are None as a rule: another fast path takes calls where one is not.
WORDED = """\
def __function({parameters}):{first}
    if {usual}:
{direct}{key}        __fast = __find({types})
        if __fast is not None:
            __result = __fast({values})
            if __result is not None:
                return __result
    else:
{key}        __fast = __worded({types})
        if __fast is not None:
            __result = __fast({everything})
            if __result is not None:
                return __result
    return __general(({arguments},), {rest})
"""
# Of an element-wise op, by the first argument's type: a fast path's compiled entry, which looks at all types, answers
# with an array, or with what the fast path goes on from.
DIRECT = """\
__entry = __direct(__type({first}))
if __entry is not None:
    __result = __entry({values})
    __made = __type(__result)
    if __made is not __int and __made is not __tuple:
        return __result
    __result = __further(__result, {values})
    if __result is not None:
        return __result
"""


def parameter(name):
    """The Python name of an argument: `from` is a keyword, so it is `from_`."""
    return name + "_" if iskeyword(name) else name


def key_text(kinds):
    """(lines before it, the text) of the key of a fast path, by the texts of types: where all are one it is that, as
    a tuple costs 30 ns more to make and to hash."""
    if len(kinds) < 2:
        return [], kinds[0] if kinds else "()"
    alike = " is ".join([*kinds[1:], "__kind"])
    return [f"__kind = {kinds[0]}"], f"__kind if {alike} else (__kind, {', '.join(kinds[1:])})"


@lru_cache(maxsize=128)
def compiled(arguments, structured, kind, written, rare, keyed, elementwise):
    """The code of the function of such arguments, its defaults and its signature: operations with the same ones differ
    in their own names alone. `written` is what a structured op's function calls what it writes."""
    parameters, starred, first, defaults = [], False, "", {}
    for argument in arguments:
        if argument.keyword_only and not starred:
            parameters.append("*")
            starred = True
        name = parameter(argument.name)
        if argument.value is not REQUIRED:
            defaults[f"__default_{name}"] = argument.value
            name += f"=__default_{name}"
        parameters.append(name)
    names = [parameter(argument.name) for argument in arguments]
    values, everything, rest = [name for i, name in enumerate(names) if i not in rare], list(names), "None"
    if structured:
        values.append(written)
        everything.append(written)
        rest = "self, True" if kind == "in-place" else written
        if kind != "in-place":
            parameters += [] if starred else ["*"]
            parameters += [written if kind == "out" else "out=None"]
        if kind == "out":
            first = f"\n    if {written} is None:\n        __missing(__name, None, False)"
    if CATCHES:
        parameters.append("**__unknown")
        first += "\n    if __unknown:\n        raise __unexpected(__name, __unknown, __signature.parameters)"
    definition = f"def __function({', '.join(parameters)}): pass"
    if "*" in parameters and all("=" in name or name[0] == "*" for name in parameters[parameters.index("*") :]):
        parameters[parameters.index("*")], defaults["__stopped"] = STOP, STOPPED
        first += "\n    if __stop is not __stopped:\n        raise __crowded(__name, __signature.parameters)"
    before, types = key_text([f"__type({names[i]})" for i in keyed])
    inside, calls = " " * (8 if rare else 4), dict(types=types, values=", ".join(values))
    direct = DIRECT.format(first=names[keyed[0]], **calls) if elementwise and keyed else ""
    source = (WORDED if rare else FUNCTION).format(
        first=first,
        parameters=", ".join(parameters),
        direct=indent(direct, inside),
        key="".join(f"{inside}{line}\n" for line in before),
        usual=" and ".join(f"{names[i]} is None" for i in rare),
        everything=", ".join(everything),
        arguments=", ".join(names),
        rest=rest,
        **calls,
    )
    code = compile(source, "<nbkernels.dispatch>", "exec")
    exec(definition, scope := dict(defaults))
    told = signature(scope["__function"])
    return code, defaults, told.replace(parameters=[p for p in told.parameters.values() if p.name != "__unknown"])


def build(op, schema):
    """The function of one of an op's forms. That of a structured op's functional form takes `out=` as well."""
    kind, arguments = schema.kind, schema.inputs if op.structured else schema.arguments
    in_place = kind == "in-place"
    written = "self" if in_place else schema.arguments[-1].name if kind == "out" else "out"
    about = tuple(op.rare), tuple(op.keyed), op.elementwise
    code, defaults, told = compiled(arguments, bool(op.structured), kind, written, *about)
    scope = {"__find": op.entries.get, "__worded": op.worded.get, "__direct": op.direct.get, "__further": op.further,
             "__int": int, "__tuple": tuple, "__general": op.call, "__missing": op.target, "__type": type,
             "__name": schema.name, "__signature": told, "__unexpected": unexpected, "__crowded": crowded,
             **defaults}  # fmt: skip
    exec(code, scope)
    function, name = scope.pop("__function"), parameter(schema.name)
    # The code says where it comes from in a traceback.
    called = {"co_name": name} | ({"co_qualname": name} if hasattr(function.__code__, "co_qualname") else {})
    function.__code__ = function.__code__.replace(co_filename=f"<nbkernels.dispatch {schema.full_name}>", **called)
    function.__name__ = function.__qualname__ = name
    function.__module__ = op.library.name + (f".{op.python_module}" if op.python_module else "")
    function.__doc__ = op.doc
    if in_place and op.structured:
        function.__doc__ = f"In-place form of `{schema.name[:-1]}`: writes self and returns it."
    function.__signature__ = told
    function.op, function.schema, function.table = op, schema, lambda: op.table
    return function
