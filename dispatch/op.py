"""An op: its schema, its meta function, its kernels, and the ONE path that a general call takes.

A *structured* op has a meta function (specs and scalars in; `.shape`, `.dtype` and `.strides` of the result out, where
strides None is C order) and kernels in the out form, `kernel(out, *args)`. From these two come its three forms:
functional, in-place (`name_`) and `out=`. Kernels see NumPy arrays or numba device arrays, after every check has
passed, and never an empty result. A kernel of any other op is functional: it gets the arguments as they came, and
returns the result.
"""

from collections import namedtuple
from contextlib import nullcontext

from . import arrays, bind, derive, function, keys, layout
from .errors import (
    ArgumentError,
    DeviceError,
    MissingKernelError,
    OutDtypeError,
    OutError,
    RegistrationError,
    describe,
    unsuitable,
)
from .table import Row, Table


class Operand(namedtuple("Operand", "name value adapter device spec")):
    """One array of a call: its argument's name, itself, its adapter, and what that says of its device and layout."""

    __slots__ = ()


def each(slots, function):
    """The slots of a call with `function` of every operand in its place; lists of operands become tuples."""

    def of(slot):
        if isinstance(slot, Operand):
            return function(slot)
        # A list may be a value too, one that nobody wants: the meta function says so.
        listed = isinstance(slot, list) and all(isinstance(part, Operand) for part in slot)
        return tuple(map(function, slot)) if listed else slot

    return list(map(of, slots))


def key_of(types):
    """What `entries` knows these types by: where all are of one type it is that, 30 ns less to make and to hash."""
    return types[0] if len(set(types)) == 1 else types


class Op:
    """Made by `Library.define`, which says what the parameters mean. As a context manager it removes itself."""

    def __init__(self, library, schema, structured, *, casts, meta_only, called, variants, tags, python_module,
                 device_check, device_guard, output_differentiability, doc):  # fmt: skip
        self.library, self.schema, self.structured, self.doc = library, schema, structured, doc
        self.casts, self.meta_only, self.device_check, self.device_guard = casts, meta_only, device_check, device_guard
        self.variants, self.tags, self.python_module, self.called = variants, tags, python_module, called
        self.output_differentiability = output_differentiability
        self.elementwise = "elementwise" in tags
        self.arguments = schema.arguments
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
        self.table = Table(schema, implied, library.fallbacks)
        self.delegates_to = None
        self.entries = {}  # types of the tensor arguments -> fast path; one object, read by the public functions
        self.worded = {}  # the same with keywords
        self.build()

    def build(self):
        """The public functions."""
        self.function, self.in_place = function.build(self), None
        if self.structured and self.aliased is None and "self" in self.names:
            self.in_place = function.build(self, in_place=True)

    def delegated(self, schema, flags):
        """An op of another name that this one's kernels serve: it shares the table and what was found for types."""
        other = Op(self.library, schema, self.structured, **flags | dict(
            casts=self.casts, meta_only=self.meta_only, called=self.called, tags=self.tags,
            output_differentiability=self.output_differentiability, doc=flags["doc"] or self.doc))  # fmt: skip
        other.table, other.delegates_to = self.table, self
        other.entries, other.worded = self.entries, self.worded
        other.build()
        return other

    @property
    def forms_declared(self):
        """The schemas of all forms: its own and those that are derived from it."""
        derived = ((self.schema.out(),) if self.structured else ()) + ((self.in_place.schema,) if self.in_place else ())
        return (self.schema, *derived)

    def row(self, key, kernel, where, fast=None):
        """A row of this op's table: it knows what its kernel will be called with."""
        if key.startswith(keys.AUTOGRAD):
            return derive.Formulas(self, key, kernel, where)
        out = ("out",) if self.structured else ()
        takes = tuple(self.names[i] for i in self.kernel_arguments) if self.structured else self.names
        usual = tuple(name for i, name in enumerate(self.names) if i not in self.rare)
        return Row(key, kernel, where, fast, out + takes, usual + out)

    @property
    def forms(self):
        """The functional and the in-place function."""
        return self.function, self.in_place

    def named(self, args, in_place):
        """What errors call it."""
        return self.called(*args) if self.called else self.schema.name + "_" * in_place

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.library.remove(self)

    def __repr__(self):
        return f"<op {self.schema}>"

    def alias(self):
        """Index of the argument that the schema allows the result to be (`Tensor(a) self -> Tensor(a)`), or None."""
        annotation = self.schema.returns[0].type.annotation if len(self.schema.returns) == 1 else None
        alike = [i for i, a in enumerate(self.arguments) if annotation and a.type.annotation == annotation]
        return alike[0] if alike else None

    def register(self, row, override):
        if self.delegates_to:
            name, other = self.schema.full_name, self.delegates_to.schema.full_name
            raise RegistrationError(f"{name} delegates to {other}: register the kernel there")
        self.table.add(row, override)
        self.forget()

    def discard(self, row):
        self.table.discard(row)
        self.forget()

    def forget(self):
        """Look for fast paths anew."""
        self.entries.clear()
        self.worded.clear()

    # -- the general path ----------------------------------------------------------------------------------------

    def call(self, args, out=None, in_place=False):
        """Run the op on arguments in schema order: fast path, device, kernel, meta, out, launch."""
        types, taken = tuple(type(args[i]) for i in self.keyed), args
        fast = self.enrol(types)
        if all(args[i] is None for i in self.rare):
            taken = [value for i, value in enumerate(args) if i not in self.rare]
        else:
            fast = getattr(fast, "with_keywords", None)
        if fast is not None:
            result = fast(*taken, out) if self.structured else fast(*taken)
            if result is not None:
                return result
        name = self.named(args, in_place)
        slots, operands = self.bind(name, args)
        target = None if out is None else self.target(name, out, in_place)
        lead = self.lead(name, operands, target)
        key = lead.device.key
        row = self.table.row(key)
        if row.row is None:
            has = [k for k in keys.devices() if self.table.row(k).row is not None]
            raise MissingKernelError(f"{name} has no kernel for {key}; it has {', '.join(has) or 'none'}")
        body = not self.structured and row.reason in keys.COMPOSITES
        for operand in operands if target is None else [*operands, target]:
            if operand.adapter.intercept is not None and not (body and operand.adapter.opens(self, key, operand.value)):
                return operand.adapter.intercept(self, row, args, out, in_place)
        with lead.adapter.guard(lead.device) if self.device_guard else nullcontext():
            if row.reason == "fallback":
                return row.row.load()(self, args, out)
            if not self.structured:
                return self.run_as_is(name, row, slots)
            return self.run(name, row, slots, lead, target, in_place)

    def enrol(self, types):
        """The fast path for these types where there is one that was not tried yet; later calls find it in `entries`."""
        row = self.table.row(keys.CPU).row
        key = key_of(types)
        if row is None or row.fast is None or key in self.entries:
            return None
        exact = 0
        for i, cls in zip(self.keyed, types, strict=True):
            adapter = arrays.adapter_of(cls)
            if adapter is not None and (adapter.exact(cls) or (self.elementwise and adapter.scalar)):
                exact += 1
            elif cls not in self.weak and not (cls is type(None) and self.arguments[i].type.optional):
                return None
        if not exact:
            return None
        fast = row.load_fast()
        self.worded[key] = getattr(fast, "with_keywords", None)
        self.entries[key] = fast
        if self.table.row(keys.CPU).row is not row:  # replaced meanwhile, by another thread
            self.forget()
        return fast

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
                    value = self.operand(name, argument.name, value, self.elementwise and i in self.keyed)
            elif isinstance(value, tuple | list):
                value = [self.operand(name, f"{argument.name}[{j}]", part) for j, part in enumerate(value)]
            else:
                raise ArgumentError(f"{name}: {argument.name} must be a sequence of arrays, not {describe(value)}")
            slots.append(value)
        operands = []
        each(slots, operands.append)
        if not operands:
            asked = [self.names[i] for i in self.keyed] or self.names
            raise ArgumentError(f"{name}: no array among {', '.join(asked)}")
        return slots, operands

    def operand(self, op, name, value, or_number=False):
        """An argument that has to be an array, as an Operand; `or_number` is for the error alone."""
        try:
            adapter = arrays.adapter_for(value)
            if adapter is not None:
                return Operand(name, value, adapter, adapter.device(value), adapter.spec(value))
        except TypeError as error:
            raise ArgumentError(f"{op}: {name} is {error}") from None
        converts = isinstance(value, list | tuple) or hasattr(type(value), "__array__")
        hint = ": pass numpy.asarray of it" if converts else ""
        wanted = "an array or a Python number" if or_number else "an array"
        known = f"arrays of {', '.join(arrays.names())} are known"
        raise ArgumentError(f"{op}: {name} must be {wanted}, not {describe(value)}; {known}{hint}")

    def target(self, name, out, in_place):
        """The array to write into, as an operand."""
        word = "self" if in_place else "out"
        if not in_place and isinstance(out, tuple | list):
            raise ArgumentError(f"{name}: out must be one array, not {describe(out)}")
        return self.operand(name, word, out)

    def lead(self, name, operands, target):
        """The operand whose device the call runs on and whose kind the result has: the first that is bound to a device.

        A 0-d CPU array in an element-wise op is not: it may join any device. All others must share one.
        """
        bound = [o for o in operands if not (self.elementwise and self.joins(o))]
        lead = (bound or operands)[0]
        everywhere = (bound or [lead]) + ([target] if target else [])
        if self.device_check and any(o.device != lead.device for o in everywhere):
            places = ", ".join(f"{o.name} on {o.device}" for o in operands + ([target] if target else []))
            raise DeviceError(f"{name}: all arrays must be on one device: {places}")
        return lead

    @staticmethod
    def joins(operand):
        return operand.device.key == keys.CPU and operand.spec.shape == ()

    def run_as_is(self, name, row, slots):
        """A call of a kernel that takes the arguments as they came; what it writes is what comes out."""
        for i in self.written:
            for operand in slots[i] if isinstance(slots[i], list) else (slots[i],):
                if isinstance(operand, Operand):
                    self.check_writable(name, operand)
        result = row.row.load()(*each(slots, lambda operand: operand.value))
        return slots[self.aliased].value if self.aliased in self.written else result

    def run(self, name, row, slots, lead, target, in_place):
        """A structured call: meta says what comes out, the kernel writes it."""
        result = self.structured(*each(slots, lambda operand: operand.spec))
        if target is not None:
            self.check_target(name, target, result, in_place)
        elif self.aliased is not None:
            alike = slots[self.aliased]
            if alike.spec.shape == result.shape and alike.spec.dtype == result.dtype:
                return alike.value
        if target is None:
            strides = result.strides or layout.c_strides(result.shape, result.dtype.itemsize)
            out, adapter = lead.adapter.empty(lead.value, result.shape, result.dtype, strides), lead.adapter
        else:
            out, adapter = target.value, target.adapter
        if 0 not in result.shape and row.reason != "structured":
            taken = [slots[i] for i in self.kernel_arguments]
            if row.reason in keys.COMPOSITES:  # its parts are called with the arrays themselves: on their device
                self.launch(name, row, out, *each(taken, lambda operand: operand.value))
            else:
                self.launch(name, row, adapter.view(out), *each(taken, lambda x: self.view(x, lead, adapter)))
        return out if target else adapter.result(out, lead.value)

    def launch(self, name, row, *args):
        """Call a kernel, which knows nothing of the op that it runs for: what it says of an argument gets its name."""
        try:
            row.row.load()(*args)
        except ValueError as error:
            raise unsuitable(name, error, self.names) from None

    @staticmethod
    def view(operand, lead, writer):
        """What a kernel reads, on the device and in the stream order of the library that out is of."""
        if operand.adapter is not writer:
            operand.adapter.wait(operand.value)
        view = operand.adapter.view(operand.value)
        if operand.adapter.foreign and (tuple(view.shape), view.dtype) != (operand.spec.shape, operand.spec.dtype):
            raise ArgumentError(
                f"{operand.name} was {operand.spec} and is {view.dtype} {view.shape} at the second look"
            )
        return view if operand.device == lead.device else lead.adapter.upload(view, lead.value)

    def check_target(self, name, target, result, in_place):
        """Raise where the result cannot be written into `target`: dtype, shape, read-only, overlap with itself."""
        spec, word = target.spec, target.name
        if spec.dtype != result.dtype and not (self.casts and self.casts(result, spec.dtype)):
            casting = getattr(result, "casting", "same_kind")
            how = f"cannot be cast ({casting}) to" if self.casts else "has another dtype than"
            raise OutDtypeError(f"{name}: the result is {result.dtype}, which {how} {word}: {spec.dtype}")
        if tuple(spec.shape) != tuple(result.shape):
            why = "the in-place form never expands self" if in_place else "out is never resized or broadcast into"
            raise OutError(f"{name}: the result has shape {result.shape} and {word} has {spec.shape}; {why}")
        self.check_writable(name, target)

    @staticmethod
    def check_writable(name, target):
        """Raise where a kernel cannot write into an array: read-only, or elements that share memory."""
        spec, word = target.spec, target.name
        flaw = target.adapter.flaw(target.value)
        if flaw:
            raise OutError(f"{name}: {word} cannot be written: {flaw}")
        if layout.overlaps_itself(spec.shape, spec.strides, spec.dtype.itemsize):
            raise OutError(
                f"{name}: elements of {word} share memory (shape {spec.shape}, strides {spec.strides}): "
                f"pass an array that owns each of its elements"
            )

    def gradient(self, grad, *args, output_mask=None, result=None, **kwargs):
        """Gradients of the tensor arguments, given the result's: one for each, None exactly where output_mask is False.

        Each has its argument's shape and dtype, and the layout of a matrix; that of a list is a tuple. `result` is what
        the op returned, for formulas that use it. A Python number in the place of a tensor, None, and integers have no
        gradient.
        """
        return derive.gradient(self, grad, args, kwargs, output_mask, result)
