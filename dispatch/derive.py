"""Derivatives: the Autograd rows of a table, and the gradients that their formulas give.

An Autograd kernel is a dict: argument name -> formula, a function whose parameters name what it needs of `grad` and of
the op's arguments.
"""

from . import keys
from .errors import ArgumentError, MissingKernelError, RegistrationError
from .table import Row, signature


class Formulas(Row):
    """An Autograd row: a dict of formulas, "module:name" of one, or a user's own callable."""

    named = str, dict

    def __init__(self, op, key, kernel, where):
        self.tensors, self.known = [op.names[i] for i in op.keyed], ("grad", *op.names)
        super().__init__(key, kernel, where)
        if isinstance(kernel, dict):
            self.load()

    @property
    def kernel_name(self):
        return f"formulas of {', '.join(self.kernel)}" if isinstance(self.kernel, dict) else super().kernel_name

    def _load(self, which, kernel, takes):
        formulas = super()._load(which, kernel, takes)
        if isinstance(formulas, dict):
            for name, formula in formulas.items():
                unknown = [need for need in needs(formula) if need not in self.known]
                if name not in self.tensors or unknown:
                    what = f"needs {', '.join(unknown)}" if unknown else "is for no tensor argument"
                    raise RegistrationError(
                        f"{self.kernel_name} ({self.where}): the formula of {name!r} {what}; there are formulas of "
                        f"{', '.join(self.tensors)}, in terms of {', '.join(self.known)}"
                    )
        return formulas


def needs(formula):
    """The names that a formula asks for."""
    return tuple(signature(formula).parameters)


def gradient(op, grad, args, kwargs, output_mask):
    """What Op.gradient says."""
    name = op.schema.name
    told = signature(op.function)
    wanted = [parameter for parameter in told.parameters if parameter != "out" or not op.structured]
    told = told.replace(parameters=[told.parameters[parameter] for parameter in wanted])
    bound = told.bind(*args, **kwargs)
    bound.apply_defaults()
    slots, operands = op.bind(name, list(bound.arguments.values()))
    row = op.table.row(keys.autograd(op.lead(name, operands, None).device.key))
    if row.row is None or row.reason == keys.COMPOSITE_IMPLICIT:
        why = "its gradient comes from its parts" if row.row else "none is declared"
        raise MissingKernelError(f"{name} has no derivative of its own: {why}")
    formulas = row.row.load()
    present = {operand.name for operand in operands}
    arguments = {"grad": grad}
    for key, slot in zip(op.names, slots, strict=True):
        arguments[key] = slot.value if key in present else slot
    tensors = [op.names[i] for i in op.keyed]
    mask = [True] * len(tensors) if output_mask is None else list(output_mask)
    if len(mask) != len(tensors):
        raise ArgumentError(f"{name}: output_mask has one bool for each of {', '.join(tensors)}")
    return tuple(
        formulas[key](**{need: arguments[need] for need in needs(formulas[key])}) if keep and key in present else None
        for key, keep in zip(tensors, mask, strict=True)
    )
