"""Derivatives: the Autograd rows of a table, and the gradients that they give.

An Autograd kernel is a dict: argument name -> formula, a function whose parameters name what it needs of `grad`, of the
op's arguments and of `result`, what the op returned. The formula of a list of tensors gives as many gradients. An
argument without a formula has no gradient. Or it is one callable for all of them, (grad, *arguments, output_mask) ->
gradients; the fallback of an Autograd key is called with (op, grad, args, output_mask). Of an op with several results
`grad` and `result` are tuples.
"""

from functools import lru_cache

from . import arrays, keys, views
from .errors import ArgumentError, MissingKernelError, RegistrationError
from .operands import each
from .table import Computed, Row, resolve, signature

REAL, COMPLEX = "fV", "c"  # kinds of dtypes that have derivatives; V is bfloat16's


class Formulas(Row):
    """An Autograd row: a dict of formulas, "module:name" of one, or a callable for all arguments."""

    named = str, dict

    def __init__(self, op, key, kernel, where):
        self.op, self.tensors, self.known = op, [op.names[i] for i in op.derived], ("grad", "result", *op.names)
        self.arrays, self._read = {op.names[i] for i in op.tensors}, {}
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
            op = self.op
            self.calls = [
                self.calling(op, i, formulas[op.names[i]]) if op.names[i] in formulas else None for i in op.derived
            ]
            self.reads_result = any("result" in needs(formula) for formula in formulas.values())
            self._loaded[which] = formulas
            return formulas
        return super()._load(which, kernel, ("grad", *self.known[2:], "output_mask"))

    def calling(self, op, i, formula):
        """The gradient of argument i, fitted to it, as a function of the values of all names that there are."""
        given = [(need, f"values[{self.known.index(need)}]") for need in needs(formula)]
        given = [f"{need}={f'whole({value})' if need in self.arrays else value}" for need, value in given]
        text = f"lambda values: fitted(op, {i}, formula({', '.join(given)}), values[{i + 2}])"
        return eval(text, dict(fitted=fitted, op=op, formula=formula, whole=whole))

    def read(self, mask):
        """The names of what it reads where mask, a bool for each argument that may have a gradient, is True: every
        argument where it is no dict of formulas."""
        found = self._read.get(mask)
        if found is None:
            formulas, names = self.load(), self.known[2:]
            if isinstance(formulas, dict):
                wanted = [name for name, keep in zip(self.tensors, mask, strict=True) if keep]
                names = [need for name in wanted if name in formulas for need in needs(formulas[name])]
            found = self._read[mask] = frozenset(names)
        return found


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


def read(op, computed, mask):
    """The names that an op's derivative reads, by `Formulas.read`; all arguments where the op has no formulas."""
    row = computed.row
    return row.read(tuple(mask)) if isinstance(row, Formulas) else frozenset(op.names)


def differentiable(spec):
    """Whether an array can have a gradient: one of floats or of complex numbers."""
    return getattr(spec.dtype, "kind", "f") in REAL + COMPLEX


def gradient(op, grad, args, kwargs, output_mask, result=None):
    """What Op.gradient says."""
    name = op.schema.name
    bound = binding(op.function, len(op.names)).bind(*args, **kwargs)
    bound.apply_defaults()
    slots, operands = op.bind(name, list(bound.arguments.values()))
    key, values = op.lead(name, operands, None).device.key, each(slots, lambda operand: operand.value)
    mask = (True,) * len(op.derived) if output_mask is None else tuple(map(bool, output_mask))
    if len(mask) != len(op.derived):
        tensors = ", ".join(op.names[i] for i in op.derived)
        raise ArgumentError(f"{name}: output_mask has one bool for each of {tensors}")
    wanted = [keep and any(map(has_gradient, listed(values[i]))) for keep, i in zip(mask, op.derived)]
    return gradients(op, derivative(op, key), grad, values, wanted, result)


def gradients(op, row, grad, values, wanted, result=None):
    """The gradients of a call by a `derivative`: one for each argument that may have one, fitted to it, and None where
    `wanted` is False. `values` are all arguments in the schema's order, as it wants them."""
    if row.row is None or row.reason == keys.COMPOSITE_IMPLICIT:
        why = "its gradient comes from its parts" if row.row else "none is declared"
        raise MissingKernelError(f"{op.schema.name} has no derivative of its own: {why}")
    kernel = row.row.load()
    if isinstance(kernel, dict):
        if result is None and row.row.reads_result and "result" in row.row.read(tuple(wanted)):
            result = op.call([whole(x) if i in op.tensors else x for i, x in enumerate(values)])
        known = grad, result, *values
        return tuple([call(known) if keep and call else None for keep, call in zip(wanted, row.row.calls)])
    values = [whole(x) if i in op.tensors else x for i, x in enumerate(values)]
    given = (op, grad, values) if row.reason == "fallback" else (grad, *values)
    found = kernel(*given, tuple(wanted))
    found = found if isinstance(found, tuple | list) else (found,)
    if len(found) != len(op.derived):
        names = ", ".join(op.names[i] for i in op.derived)
        raise ArgumentError(f"{op.schema.name}: its derivative gave {len(found)} gradients for {names}")
    parts = zip(op.derived, wanted, found)
    return tuple([fitted(op, i, part, values[i]) if keep else None for i, keep, part in parts])


def whole(x):
    """x as derivatives read it, if it is an array."""
    adapter = arrays.adapter_of(type(x))
    return x if adapter is None else adapter.whole(x)


def fitted(op, i, grad, x):
    """A gradient that was found, if any, as argument i, for which x was given, wants it."""
    if grad is None:
        return None
    fit = op.library.fitting
    if not isinstance(x, tuple):
        return fit(grad, x)
    if not isinstance(grad, tuple | list) or len(grad) != len(x):
        name = op.schema.name
        raise ArgumentError(f"{name}: the formula of {op.names[i]} gives a list of {len(x)} gradients, one for each")
    return tuple(fit(g, part) if g is not None and has_gradient(part) else None for g, part in zip(grad, x))


def listed(x):
    return x if isinstance(x, tuple) else (x,)


def has_gradient(x):
    """Whether an argument of a call is an array of floats or complex numbers."""
    return views.is_array(x) and differentiable(views.spec(x))
