"""An op: its schema, its meta function, its kernels, and the ONE path that a general call takes.

A *structured* op has a meta function (specs and scalars in; `.shape`, `.dtype` and `.strides` of the result out, where
strides None is C order) and kernels in the out form, `kernel(out, *args)`. From these two come its three forms:
functional, in-place (`name_`) and `out=`. Kernels see NumPy arrays or numba device arrays, after every check has
passed, and never an empty result. A kernel of any other op is functional: it gets the arguments as they came, and
returns the result; so are those that a delegate has beside its target's. Forms may also be declared one by one, as in
ATen: the out form with its meta function and kernels, the functional and the in-place form as its delegates.
"""

from contextlib import nullcontext
from functools import cached_property

from . import bind, call_cache, declare, derive, function, keys, run
from .errors import (
    ArgumentError,
    DeviceError,
    MissingKernelError,
    RegistrationError,
    describe,
)
from .fast import enrol, wrote
from .operands import Operand, Operands, check_writable, each
from .table import Row, Table


class Op:
    """Made by `Library.define`, which says what the parameters mean. As a context manager it removes itself."""

    def __init__(self, library, schema, structured, *, casts, meta_only, called, variants, tags, python_module,
                 device_check, device_guard, output_differentiability, doc, target=None):  # fmt: skip
        self.library, self.schema, self.structured, self.doc = library, schema, structured, doc
        self.casts, self.meta_only, self.device_check, self.device_guard = casts, meta_only, device_check, device_guard
        self.variants, self.tags, self.python_module, self.called = variants, tags, python_module, called
        self.output_differentiability = output_differentiability
        self.elementwise = "elementwise" in tags
        self.arguments = schema.inputs if structured else schema.arguments
        self.names = tuple(argument.name for argument in self.arguments)
        self.converters = [None if a.type.base == "Tensor" else bind.converter(a) for a in self.arguments]
        self.weak = bind.NUMBERS if self.elementwise else ()  # types that may stand for an array
        self.tensors = [i for i, argument in enumerate(self.arguments) if argument.type.is_tensor]
        self.written = [i for i, argument in enumerate(self.arguments) if argument.type.written]
        self.rare = [i for i, a in enumerate(self.arguments) if a.keyword_only and a.default == "None"]
        self.keyed = [i for i in self.tensors if i not in self.rare]  # tensors that the fast path is chosen by
        self.derived = [  # arguments that may have gradients
            i for i, a in enumerate(self.arguments) if a.type.base == "Tensor" and i not in self.rare
        ]
        self.kernel_arguments = [i for i, name in enumerate(self.names) if name not in meta_only]
        self.aliased = self.alias()
        implied = [Row(keys.META, structured, "derived", takes=self.names)] if structured else []
        self.delegates_to = target
        self.table = Table(schema, implied, library.fallbacks, target and target.table)
        # types of the tensor arguments -> fast path; one object, read by the public functions; the same with keywords
        self.entries, self.worded = (target.entries, target.worded) if target else ({}, {})
        # the compiled entries of fast paths, by the first of these types, and what goes on from their answers
        self.direct, self.go_on = target.direct if target else {}, None
        self.fields, self.described = schema.fields(), {}  # general calls, by call_cache.key_of
        self.function, self.in_place = function.build(self, schema), None
        if self.derives and self.aliased is None and "self" in self.names:
            self.in_place = function.build(self, schema.in_place())

    @property
    def derives(self):
        """Whether its in-place and out forms follow from it: where they are not declared one by one."""
        alone = self.delegates_to is None or self.delegates_to.derives
        return bool(self.structured) and self.schema.kind == "functional" and alone

    def delegated(self, schema, flags):
        """An op that this one's kernels serve: they stand behind its own, and what is found for types is shared."""
        return Op(self.library, schema, self.structured, target=self, **flags | dict(
            casts=self.casts, meta_only=self.meta_only, called=self.called,
            output_differentiability=self.output_differentiability,
            tags=tuple(dict.fromkeys(self.tags + flags["tags"])), doc=flags["doc"] or self.doc))  # fmt: skip

    @cached_property
    def forms_declared(self):
        """The schemas of all forms: its own and those that are derived from it."""
        derived = ((self.schema.out(),) if self.derives else ()) + ((self.in_place.schema,) if self.in_place else ())
        return (self.schema, *derived)

    def form(self, schema):
        """The public function of one of its forms."""
        made = (self.function, self.in_place)
        return next((f for f in made if f is not None and f.schema == schema), None) or function.build(self, schema)

    def row(self, key, kernel, where, fast=None):
        """A row of this op's table: it knows what its kernel will be called with."""
        if key.startswith(keys.AUTOGRAD):
            return derive.Formulas(self, key, kernel, where)
        writes = bool(self.structured) and self.delegates_to is None
        out = ("out",) if writes else ()
        takes = tuple(self.names[i] for i in self.kernel_arguments) if writes else self.names
        usual = tuple(name for i, name in enumerate(self.names) if i not in self.rare)
        return Row(key, kernel, where, fast, out + takes, usual + out, writes)

    @property
    def forms(self):
        """The functional and the in-place function."""
        return self.function, self.in_place

    def named(self, args, in_place):
        """What errors call it."""
        derived = in_place and self.schema.kind != "in-place"
        return self.called(*args) if self.called else self.schema.name + "_" * derived

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.library.remove(self)

    def __repr__(self):
        return f"<op {self.schema}>"

    def alias(self):
        """Index of the argument that the schema allows the result to be (`Tensor(a) self -> Tensor(a)`), or None."""
        return self.aliases()[0] if len(self.schema.returns) == 1 else None

    def aliases(self):
        """For each return the index of the argument that it may be, or None."""
        of = {a.type.annotation: i for i, a in reversed(list(enumerate(self.arguments)))}
        given = [each.type.annotation for each in self.schema.returns]
        return [None if annotation is None else of.get(annotation) for annotation in given]

    def register(self, row, override):
        if self.delegates_to and row.key in declare.DELEGATED:
            name, other = self.schema.full_name, self.delegates_to.schema.full_name
            raise RegistrationError(f"{name} delegates to {other}: register the kernel there")
        self.table.add(row, override)
        self.library.overrides(row, override)
        self.forget()

    def discard(self, row):
        self.table.discard(row)
        self.library.overrides(row, False)
        self.forget()

    def below(self, row):
        return self.table.below(row)

    def forget(self):
        """Look for fast paths anew."""
        self.entries.clear()
        self.worded.clear()
        self.direct.clear()
        self.described.clear()

    def further(self, result, *given):
        """Finish a call whose compiled entry answered `result`, an int or a tuple: the fast path's `go_on`."""
        return (self.delegates_to or self).go_on(result, *given)

    check_writable, enrol = staticmethod(check_writable), enrol

    # -- the general path ----------------------------------------------------------------------------------------

    def call(self, args, out=None, in_place=False):
        """Run the op on arguments in schema order: fast path, device, kernel, meta, out, launch."""
        types, taken = tuple(type(args[i]) for i in self.keyed), args
        fast = self.enrol(types, args)
        if all(args[i] is None for i in self.rare):
            taken = [value for i, value in enumerate(args) if i not in self.rare]
        else:
            fast = getattr(fast, "with_keywords", None)
        if fast is not None:
            result = fast(*taken, out) if self.structured else fast(*taken)
            if result is not None:
                return result
        elif out is not None and wrote(self, types, args, taken, out):
            return out
        name, key = self.named(args, in_place), call_cache.key_of(self, args, out)
        known = self.described.get(key)
        if known is not None and (result := known.again(self, name, args, out)) is not None:
            return result
        slots, operands = self.bind(name, args)
        target = None if out is None else self.target(name, out, in_place)
        lead = self.lead(name, operands, target)
        home = lead.device.key
        row = self.table.row(home)
        if row.row is None:
            has = [k for k in keys.devices() if self.table.row(k).row is not None]
            raise MissingKernelError(f"{name} has no kernel for {home}; it has {', '.join(has) or 'none'}")
        checked = bool(self.structured) and (row.row.writes or row.reason in ("fallback", "structured"))
        if out is not None and not checked and self.schema.kind == "functional":
            return self.delegates_to.call(args, out, in_place)  # a delegate's own kernels make their results
        body = not checked and row.reason in keys.COMPOSITES
        for operand in operands if target is None else [*operands, target]:
            adapter = operand.adapter
            if adapter.intercept is not None and not (body and adapter.opens(self, home, operand.value)):
                return adapter.intercept(self, row, args, out, in_place)
        with lead.adapter.guard(lead.device) if self.device_guard else nullcontext():
            if not checked:
                return run.run_as_is(self, name, row, slots, args)
            result = run.run(self, name, row, slots, lead, target, in_place)
        if key is not None:
            call_cache.keep(self, key, row, slots, args, result)
        return result

    def bind(self, name, args):
        """(slots, operands): for each argument an Operand, a list of them, or a value as the schema wants it."""
        slots = []
        for i, (argument, convert, value) in enumerate(zip(self.arguments, self.converters, args, strict=True)):
            if convert is not None:
                value = convert(name, value)
            elif value is None and argument.type.optional:
                pass
            elif i in self.tensors:
                if type(value) not in self.weak:
                    value = Operand.of(name, argument.name, value, self.elementwise and i in self.keyed)
            else:
                value = Operands.of(name, argument, value)
            slots.append(value)
        operands = []
        each(slots, operands.append)
        if not operands:
            asked = [self.names[i] for i in self.keyed] or self.names
            raise ArgumentError(f"{name}: no array among {', '.join(asked)}")
        return slots, operands

    def target(self, name, out, in_place):
        """The array to write into, as an operand."""
        word = "self" if in_place else "out"
        if not in_place and isinstance(out, tuple | list):
            raise ArgumentError(f"{name}: out must be one array, not {describe(out)}")
        return Operand.of(name, word, out)

    def lead(self, name, operands, target):
        """The operand whose device the call runs on and whose kind the result has: the first that is bound to a device.

        A 0-d CPU array in an element-wise op is not: it may join any device. All others must share one.
        """
        bound = [o for o in operands if not (self.elementwise and o.joins)]
        lead = (bound or operands)[0]
        everywhere = (bound or [lead]) + ([target] if target else [])
        if self.device_check and any(o.device != lead.device for o in everywhere):
            places = ", ".join(f"{o.name} on {o.device}" for o in operands + ([target] if target else []))
            raise DeviceError(f"{name}: all arrays must be on one device: {places}")
        return lead

    def gradient(self, grad, *args, output_mask=None, result=None, **kwargs):
        """Gradients of the tensor arguments, given the result's: one for each, None exactly where output_mask is False.

        Each has its argument's shape and dtype, and the layout of a matrix; that of a list is a tuple. `result` is what
        the op returned, for formulas that use it. A Python number in the place of a tensor, None, and integers have no
        gradient.
        """
        return derive.gradient(self, grad, args, kwargs, output_mask, result)
