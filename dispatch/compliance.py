"""Check a composite: `comply(op, *args)` runs its body on watched arrays and reports what it must not do.

A composite is written over other ops, so that it runs wherever they run. It may look at shapes, dtypes and strides,
make views and empty arrays, and call ops. It must not touch data, resize, or write what it was given: a functional body
calls no `out=`, and one in the out form writes nothing but its out and arrays that it made.
"""

from . import keys, views
from .errors import ComplianceError
from .op import each as on_operands
from .run import foreseen
from .traced import Traced, bare


class Watch:
    """The mode: parts run as they would, after a look at what they write."""

    def __init__(self, op):
        self.op, self.mine = op, []

    def made(self, x):
        self.mine.append(x)

    def check(self, name, out, in_place=False):
        """Raise where a part may not write `out`."""
        part = f"{self.op.schema.name} calls {name}"
        if out is not None:
            if not in_place and not self.op.structured:
                raise ComplianceError(f"{part} with out=, and its body is not in the out form")
            if not any(views.overlap(bare(out), x) for x in self.mine):
                raise ComplianceError(f"{part} to write an array that it was given")

    def apply(self, function, args, out, where, shape, dtypes):
        self.check(function.__name__, out)
        result = function(*map(bare, args), out=bare(out), where=bare(where))
        return out if out is not None else Traced(result, self)

    def call(self, op, row, args, out, in_place):
        self.check(op.schema.name + "_" * in_place, out, in_place)
        result = op.call([bare(x) for x in args], bare(out), in_place)
        if out is not None:
            return out
        self.made(result)
        return Traced(result, self)


def comply(op, *args):
    """Run an op's composite body on arguments in the schema's order: its result, or a ComplianceError."""
    name, args = op.schema.name, [*args, *(argument.value for argument in op.arguments[len(args) :])]
    slots, operands = op.bind(name, args)
    row = op.table.row(op.lead(name, operands, None).device.key)
    if row.reason not in keys.COMPOSITES:
        raise ComplianceError(f"{name} is no composite here: its kernel is {row.reason}")
    watch = Watch(op)
    specs, values = (on_operands(slots, see) for see in (lambda o: o.spec, lambda o: Traced(o.value, watch)))
    if not row.row.writes:
        result = row.row.load()(*values)
        if not isinstance(result, Traced):
            raise ComplianceError(f"{name} returned a {type(result).__name__} that no part of it made")
        return result.value
    spec = foreseen(op, name, specs)
    out = views.empty(operands[0].value, spec.shape, spec.dtype)
    watch.made(out)
    row.row.load()(Traced(out, watch), *(values[i] for i in op.kernel_arguments))
    return out
