"""The forms of an op in torch's language: schemas, and how their arguments become those of the op."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch

from ..dispatch import arrays
from ..dispatch.schema import REQUIRED, Argument, Return, Schema, Type
from ..folds import normal

NAMESPACE = "nbkernels"
NUMBERS = {"": (), "Scalar": ("other",), "ScalarSelf": ("self",)}  # overloads: arguments that are numbers
SIZES = ("size",)  # lists of sizes, which may be symbols
AXES = "axis"  # of folds, after self and the operation's name
MASK = Argument(Type("bool", suffixes=("[]",)), "output_mask")
TENSORS = Type("Tensor", suffixes=("[]",))


@dataclass(frozen=True)
class Form:
    """A torch op: its schema, the op behind it, and which argument it writes ("self", "out" or None)."""

    op: object
    schema: Schema
    written: str | None = None

    @property
    def name(self):
        return self.schema.full_name

    @cached_property
    def of_torch(self):
        return getattr(getattr(torch.ops.nbkernels, self.schema.name), self.schema.overload or "default")

    @cached_property
    def defaults(self):
        return {a.name: a.value for a in self.schema.arguments if a.value is not REQUIRED}

    @cached_property
    def fill(self):
        """The defaults by place, None for what has none."""
        return tuple(self.defaults.get(name) for name in self.names)

    @cached_property
    def names(self):
        return tuple(a.name for a in self.schema.arguments)

    @cached_property
    def places(self):
        """Where the op's arguments are among this form's."""
        return tuple(self.names.index(renamed(name) if self.written else name) for name in self.op.names)

    @cached_property
    def alike(self):
        """How many arguments from the first on are the op's, by place and as they are."""
        pairs = zip(self.schema.arguments, self.op.arguments)
        same = [a.name == b.name and not (a.keyword_only or b.keyword_only or a.type.is_list) for a, b in pairs]
        return (*same, False).index(False)

    def values(self, args, keywords):
        """All arguments in the schema's order; torch leaves out what is as its default."""
        if not keywords:
            return [*args, *self.fill[len(args) :]]
        given = dict(zip(self.names, args)) | keywords
        return [given[name] if name in given else self.defaults[name] for name in self.names]

    def arguments(self, values):
        """The op's arguments, as the op takes them, out of `values` in the order of this form's schema."""
        found = [x if x is None or type(x) is torch.Tensor else plain(x) for x in [values[i] for i in self.places]]
        if AXES in self.op.names:
            place = self.op.names.index(AXES)
            found[place] = normal(found[place - 1], found[place], found[0].ndim)
        return found


def renamed(name):
    """What a form that writes calls an argument: torch 2.13 passes some of its own by name to what it makes of one."""
    return f"{name}_" if name == "mode" else name


def plain(x):
    """A list as a tuple, and torch's dtype as NumPy's name."""
    if isinstance(x, torch.dtype):
        return arrays.adapter_of(torch.Tensor).dtype(x).name
    return tuple(x) if isinstance(x, list) else x


def forms(op, public):
    """The forms of an op: functional, in place where that is public, and with out; with numbers for tensors where they
    may be."""
    for schema in op.forms_declared:
        written = {"in-place": "self", "out": "out"}.get(schema.kind)
        if written == "self" and schema.name not in public:
            continue
        for overload, numbers in (NUMBERS if "other" in op.names and op.elementwise else {"": ()}).items():
            if written not in numbers:
                label = "_".join(filter(None, (overload, "out" if written == "out" else "")))
                yield Form(op, in_torch(schema, label, numbers, written), written)


def in_torch(schema, overload, numbers, written):
    """A schema as torch can have it: nothing is returned that was given, and no keyword is a tensor that has a gradient
    or a batch."""
    arguments = []
    for a in schema.arguments:
        kind = a.type if a.type.written else a.type._replace(annotation=None)
        kind = Type("Scalar") if a.name in numbers else kind
        kind = kind._replace(base="SymInt") if a.name in SIZES else kind
        name = renamed(a.name) if written else a.name
        keyword = a.keyword_only and (a.type.base != "Tensor" or a.type.written)
        arguments.append(a._replace(name=name, type=kind, keyword_only=keyword))
    arguments.sort(key=lambda a: a.keyword_only)
    returns = () if written else tuple(Return(r.type._replace(annotation=None)) for r in schema.returns)
    return schema._replace(overload=overload, arguments=tuple(arguments), returns=returns)


def backward(form):
    """The form of the gradients of a functional one: of the tensors that output_mask says, in order."""
    arguments = [a._replace(keyword_only=False, default=None) for a in form.schema.arguments]
    return derived(form, (Argument(Type("Tensor"), "grad"), *arguments, MASK))


def twice_backward(form):
    """The form of the gradients of what `backward` takes, grad first, given those of what it returns."""
    return derived(form, (Argument(TENSORS, "grads"), *form.schema.arguments, MASK._replace(name="mask")))


def derived(form, arguments):
    name = f"{form.schema.name}_backward"
    return Form(form.op, form.schema._replace(name=name, arguments=arguments, returns=(Return(TENSORS),)))
