"""Derivatives: the Autograd rows of a table, and the gradients that they give.

An Autograd kernel is a dict: argument name -> formula, a function whose parameters name what it needs of `grad`, of the
op's arguments and of `result`, what the op returned. The formula of a list of tensors gives as many gradients. An
argument without a formula has no gradient. Or it is one callable for all of them, (grad, *arguments, output_mask) ->
gradients; the fallback of an Autograd key is called with (op, grad, args, output_mask). Of an op with several results
`grad` and `result` are tuples.
"""

from functools import lru_cache

from . import keys
from .errors import ArgumentError, MissingKernelError, RegistrationError
from .operands import Operand, Operands, each
from .table import Computed, Row, resolve, signature

REAL, COMPLEX = "fV", "c"  # kinds of dtypes that have derivatives; V is bfloat16's


class Formulas(Row):
    """An Autograd row: a dict of formulas, "module:name" of one, or a callable for all arguments."""

    named = str, dict

    def __init__(self, op, key, kernel, where):
        self.tensors, self.known = [op.names[i] for i in op.derived], ("grad", "result", *op.names)
        super().__init__(key, kernel, where)
        if isinstance(kernel, dict):
            self.load()

    @property
    def kernel_name(self):
        return f"formulas of {', '.join(self.kernel)}" if isinstance(self.kernel, dict) else super().kernel_name

    def _load(self, which, kernel, takes):
        formulas = resolve(kernel)
        if isinstance(formulas, dict):
            for name, formula in formulas.items():
                unknown = [need for need in needs(formula) if need not in self.known]
                if name not in self.tensors or unknown:
                    what = f"needs {', '.join(unknown)}" if unknown else "is for no tensor argument"
                    raise RegistrationError(
                        f"{self.kernel_name} ({self.where}): the formula of {name!r} {what}; there are formulas of "
                        f"{', '.join(self.tensors)}, in terms of {', '.join(self.known)}"
                    )
            self._loaded[which] = formulas
            return formulas
        return super()._load(which, kernel, ("grad", *self.known[2:], "output_mask"))


@lru_cache(maxsize=1024)
def needs(formula):
    """The names that a formula asks for."""
    return tuple(signature(formula).parameters)


@lru_cache(maxsize=1024)
def binding(function, count):
    """The signature of an op's public function, without what is written."""
    told = signature(function)
    return told.replace(parameters=list(told.parameters.values())[:count])


def derivative(op, device):
    """The Computed row of an op's derivative on a device key: a declared one wins over the parts of a composite."""
    key = keys.autograd(device)
    found = op.table.row(key)
    if found.reason == keys.COMPOSITE_IMPLICIT:
        declared = next((row for row in op.table.registered() if row.key == keys.AUTOGRAD), None)
        return found if declared is None else Computed(key, declared, keys.AUTOGRAD)
    return found


def read(op, device, mask):
    """The names of what an op's derivative reads where mask, a bool for each argument that may have a gradient, is
    True: every argument where it is no dict of formulas."""
    row = derivative(op, device).row
    formulas = row and row.load()
    if not isinstance(formulas, dict):
        return {*op.names}
    wanted = (op.names[i] for i, keep in zip(op.derived, mask, strict=True) if keep)
    return {need for name in wanted if name in formulas for need in needs(formulas[name])}


def differentiable(spec):
    """Whether an array can have a gradient: one of floats or of complex numbers."""
    return getattr(spec.dtype, "kind", "f") in REAL + COMPLEX


def gradient(op, grad, args, kwargs, output_mask, result=None):
    """What Op.gradient says."""
    name = op.schema.name
    bound = binding(op.function, len(op.names)).bind(*args, **kwargs)
    bound.apply_defaults()
    values = list(bound.arguments.values())
    slots, operands = op.bind(name, values)
    row = derivative(op, op.lead(name, operands, None).device.key)
    if row.row is None or row.reason == keys.COMPOSITE_IMPLICIT:
        why = "its gradient comes from its parts" if row.row else "none is declared"
        raise MissingKernelError(f"{name} has no derivative of its own: {why}")
    tensors = [op.names[i] for i in op.derived]
    mask = [True] * len(tensors) if output_mask is None else list(map(bool, output_mask))
    if len(mask) != len(tensors):
        raise ArgumentError(f"{name}: output_mask has one bool for each of {', '.join(tensors)}")
    given = [slots[i] for i in op.derived]
    wanted = [keep and any(map(has_gradient, listed(slot))) for keep, slot in zip(mask, given, strict=True)]
    plain = each(slots, lambda operand: operand.value)
    kernel = row.row.load()
    if row.reason == "fallback":
        found = kernel(op, grad, plain, tuple(wanted))
    elif callable(kernel):
        found = kernel(grad, *plain, tuple(wanted))
    else:
        known = dict(zip(op.names, plain, strict=True), grad=grad)
        if result is None and any("result" in needs(kernel[key]) for key in tensors if key in kernel):
            result = op.call(values)
        known["result"] = result
        found = [
            kernel[key](**{need: known[need] for need in needs(kernel[key])}) if keep and key in kernel else None
            for key, keep in zip(tensors, wanted, strict=True)
        ]
    return fitted(op, tensors, wanted, given, found)


def fitted(op, tensors, wanted, given, found):
    """The gradients that a kernel found, each as its argument wants it: None where it is not wanted."""
    name, found = op.schema.name, tuple(found) if isinstance(found, tuple | list) else (found,)
    if len(found) != len(tensors):
        raise ArgumentError(f"{name}: its derivative gave {len(found)} gradients for {', '.join(tensors)}")
    fit = resolve(op.library.fit) if op.library.fit else lambda grad, x: grad

    def one(grad, operand):
        return fit(grad, operand.value) if grad is not None and has_gradient(operand) else None

    fits = []
    for key, keep, slot, grad in zip(tensors, wanted, given, found, strict=True):
        if not keep or grad is None:
            fits.append(None)
        elif not isinstance(slot, Operands):
            fits.append(one(grad, slot))
        elif not isinstance(grad, tuple | list) or len(grad) != len(slot):
            raise ArgumentError(f"{name}: the formula of {key} gives a list of {len(slot)} gradients, one for each")
        else:
            fits.append(tuple(map(one, grad, slot)))
    return tuple(fits)


def listed(slot):
    return slot if isinstance(slot, Operands) else (slot,)


def has_gradient(slot):
    """Whether a slot of a call is an array of floats or complex numbers."""
    return isinstance(slot, Operand) and differentiable(slot.spec)
