"""Rules for declarations of ops: schemas, variants and flags. Each error says what to do."""

from . import keys
from .errors import RegistrationError

VARIANTS = ("function", "method")
DELEGATED = (keys.CPU, keys.CUDA, keys.META)  # where a delegate has its target's kernels, never its own


def rules(schema):
    """The rules of names: a RegistrationError for the first that is broken."""
    name, called = schema.full_name, schema.name
    in_place_name = called.endswith("_") and not called.endswith("__")
    written = [argument for argument in schema.arguments if argument.type.written]
    if in_place_name and not written:
        raise RegistrationError(f"{name}: a name that ends in _ is an in-place op, and this one writes nothing")
    if schema.kind == "in-place" and not called.endswith("_"):
        raise RegistrationError(f"{name} writes self, so it is an in-place op: its name ends in _, as in {called}_")
    for argument in schema.arguments:
        if argument.name == "out" and not (argument.keyword_only and argument.type.written):
            raise RegistrationError(f"{name}: an argument called out must be keyword-only and written: Tensor(a!) out")
    if (schema.overload == "out" or schema.overload.endswith("_out")) and schema.kind != "out":
        raise RegistrationError(f"{name} is an out overload, so it has a keyword-only argument that is written: "
                                f"*, Tensor(a!) out")  # fmt: skip
    fields = [each.name for each in schema.returns if each.name]
    if len(set(fields)) < len(fields) or any(field.startswith("_") for field in fields):
        raise RegistrationError(f"{name}: names of returns differ, and none starts with _: {', '.join(fields)}")
    if not any(argument.type.base == "Tensor" for argument in schema.arguments):
        raise RegistrationError(f"{name} takes no Tensor, so nothing says which device it runs on: add one")


def variants(schema, text):
    """The variants that "function, method" names."""
    name, given = schema.full_name, tuple(part.strip() for part in text.split(","))
    unknown = [variant for variant in given if variant not in VARIANTS]
    if unknown or len(set(given)) != len(given):
        raise RegistrationError(f"{name}: variants are 'function', 'method' or 'function, method', not {text!r}")
    if "method" in given and not any(argument.name == "self" for argument in schema.arguments):
        raise RegistrationError(f"{name}: a method needs an argument named self; leave out variants='method'")
    if "method" in given and schema.kind == "out":
        raise RegistrationError(f"{name}: an out variant is a function only; leave out variants='method'")
    return given


def kernels(schema, dispatch):
    """{key: kernel} of {"CPU, CUDA": kernel}, by our names of the keys."""
    found = {}
    for names, kernel in (dispatch or {}).items():
        for key in (keys.check(name.strip()) for name in names.split(",")):
            if key in found:
                raise RegistrationError(f"{schema.full_name}: its dispatch lists {key} twice; keep one of them")
            found[key] = kernel
    return found


def structure(schema, dispatch):
    """The rules of a structured op, which has a meta function and kernels in the out form."""
    name = schema.full_name
    if schema.kind == "in-place":
        form = "functional form, from which it follows, or the out form and this one as its structured_delegate"
        raise RegistrationError(f"{name} is {schema.kind} and structured; declare the {form}")
    if len(schema.arguments) > len(schema.inputs) + (schema.kind == "out"):
        raise RegistrationError(f"{name}: a structured op writes one Tensor")
    if len(schema.returns) != 1 or not schema.returns[0].type.is_tensor:
        raise RegistrationError(f"{name}: a structured op returns one Tensor")
    if not dispatch:
        raise RegistrationError(f"{name} is structured and has no kernels: add dispatch={{'CPU': ...}}")
    if keys.COMPOSITE_IMPLICIT in dispatch:
        raise RegistrationError(
            f"{name} is structured, so its kernels are in the out form: register them for CPU, CUDA or "
            f"CompositeExplicit, or leave out the meta function and make the op composite"
        )


def delegate(schema, target, kernels, given):
    """The rules of an op whose kernels are another's: same arguments, and kernels for further devices alone."""
    name, other = schema.full_name, target.schema
    listed = [key for key in kernels if key in DELEGATED] + [word for word, value in given.items() if value]
    if listed:
        raise RegistrationError(
            f"{name} delegates to {other.full_name}, so it cannot list {', '.join(listed)}: "
            f"register there, or leave out structured_delegate"
        )
    if not target.structured:
        raise RegistrationError(f"{name} delegates to {other.full_name}, which is not structured")
    if target.delegates_to:
        first = target.delegates_to.schema.full_name
        raise RegistrationError(f"{name} delegates to {other.full_name}, which delegates itself: to {first}, then")
    if schema.kind != "functional" and (other.kind != "out" or schema.kind == "out"):
        raise RegistrationError(f"{name} is {schema.kind}: what delegates is the functional form, or beside it the "
                                f"in-place form, of an op that is declared by its out form")  # fmt: skip
    mine, theirs = (
        [a._replace(type=a.type._replace(annotation=None)) for a in each.inputs] for each in (schema, other)
    )
    if mine != theirs or len(schema.returns) != 1 or (other.kind == "functional" and schema.returns != other.returns):
        raise RegistrationError(f"{name} delegates to {other}, so its arguments and returns must be the same")


def manual(schema, dispatch):
    """The rule of manual_kernel_registration."""
    if dispatch:
        raise RegistrationError(
            f"{schema.full_name} has manual_kernel_registration: its kernels come from register(), leave out dispatch"
        )
