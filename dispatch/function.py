"""The public functions of an op: plain Python functions generated from its schema, as dataclasses do.

Defaults and keywords bind at C speed, and `inspect.signature` tells the truth. A call does one dict hit on the types
of its tensors and one call of the fast path that it finds there; everything else is the op's general path.
"""

from keyword import iskeyword

from .schema import REQUIRED

FUNCTION = """\
def {name}({parameters}):
    fast = find({types})
    if fast is not None:
        result = fast({values})
        if result is not None:
            return result
    return general(({arguments},), {rest})
"""
# With keyword-only arguments that are None as a rule: another fast path takes calls where one is not.
WORDED = """\
def {name}({parameters}):
    usual = {usual}
    fast = find({types}) if usual else worded({types})
    if fast is not None:
        result = fast({values}) if usual else fast({everything})
        if result is not None:
            return result
    return general(({arguments},), {rest})
"""


def parameter(name):
    """The Python name of an argument: `from` is a keyword, so it is `from_`."""
    return name + "_" if iskeyword(name) else name


def build(op, in_place=False):
    """The function of an op's functional (with `out=`, where it is structured) or in-place form."""
    schema = op.schema.in_place() if in_place else op.schema
    scope = {"find": op.entries.get, "worded": op.worded.get, "general": op.call}
    parameters, starred = [], False
    for argument in schema.arguments:
        if argument.keyword_only and not starred:
            parameters.append("*")
            starred = True
        name = parameter(argument.name)
        if argument.value is not REQUIRED:
            scope[f"default_{name}"] = argument.value
            name += f"=default_{name}"
        parameters.append(name)
    names = [parameter(argument.name) for argument in schema.arguments]
    rare = [names[i] for i in op.rare]
    values, everything, rest = [name for name in names if name not in rare], list(names), "None"
    if op.structured:
        values.append("self" if in_place else "out")
        everything.append(values[-1])
        rest = "self, True" if in_place else "out"
        if not in_place:
            parameters += ["out=None"] if starred else ["*", "out=None"]
    kinds = [f"type({names[i]})" for i in op.keyed]
    types = f"({', '.join(kinds)})"
    if len(kinds) > 1:  # where all are of one type that is the key: a tuple costs 30 ns more to make and to hash
        types = f"{kinds[0]} if {' is '.join(kinds)} else {types}"
    source = (WORDED if rare else FUNCTION).format(
        name=schema.name,
        parameters=", ".join(parameters),
        types=types,
        usual=" is ".join([*rare, "None"]),
        values=", ".join(values),
        everything=", ".join(everything),
        arguments=", ".join(names),
        rest=rest,
    )
    # The code says where it comes from in a traceback.
    exec(compile(source, f"<nbkernels.dispatch {schema.full_name}>", "exec"), scope)
    function = scope[schema.name]
    function.__module__ = op.library.name + (f".{op.python_module}" if op.python_module else "")
    function.__doc__ = f"In-place form of `{op.schema.name}`: writes self and returns it." if in_place else op.doc
    function.op, function.schema, function.table = op, schema, lambda: op.table
    return function
