"""A library of ops: where ops are defined, extended and taken away again.

    library = Library("mine")
    scale = library.define("scale(Tensor self, Scalar by) -> Tensor", structured=meta, dispatch={"CPU": kernel})
    with library.register(scale, "CPU", faster, override=True):
        scale.function(x, 2)             # runs `faster`; after the block, `kernel` again

`define` and `register` say what can be given, and what cannot stand. Any thread may do so at any time: a call that runs
meanwhile sees the kernels from before or from after.
"""

import sys
from functools import cached_property

from . import declare, grammar, keys, op, packet, stub, table
from .errors import MissingKernelError, RegistrationError, suggestion

HERE = __package__


def caller():
    """file:line of the nearest frame outside this package."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__package__") == HERE and frame.f_back is not None:
        frame = frame.f_back
    file = frame.f_code.co_filename.replace("\\", "/")
    return f"{'/'.join(file.split('/')[-2:])}:{frame.f_lineno}"


class Registration:
    """A kernel that was registered: `remove()` it, or use it as a context manager."""

    def __init__(self, target, row):
        self.target, self.row = target, row

    def remove(self):
        self.target.discard(self.row)

    def replaced(self, *args):
        """Call the kernel that this one took the place of, with a kernel's arguments: redispatch from within."""
        return self.target.below(self.row).load()(*args)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


class Library:
    """Ops by name. `composites` is the module that holds the bodies of ops without a dispatch table, by their names;
    `fit` "module:name" of a function (gradient, argument) -> the gradient in the argument's shape and dtype;
    `replays` {library of arrays: "module:name"} of functions (op, that library's name, types) -> its fast path for
    these arrays, or None;
    `lenders` {library of arrays: "module:name"} of functions (op, types, fast, again) -> the fast path of arrays that
    an adapter `lends`, which runs that of NumPy's on views of them, and `again` on a CUDA device; or None. Its
    `quick()`, where it has one, is a function of the same arguments that calls go to in its place, or None;
    `first` "module:name" of a function (op) -> the fast path of its first calls with NumPy's arrays, or None.
    """

    def __init__(self, name, composites=None, fit=None, replays=None, lenders=None, first=None):
        self.name, self.composites, self.fit = name, composites or name, fit
        self.replays, self.lenders, self.first = replays or {}, lenders or {}, first
        self.ops = {}  # full name -> Op
        self.names = {}  # full name of a form -> its Op
        self.stubs = {}  # name -> Stub
        self.overriding = frozenset()  # rows of kernels that were registered over others
        self.fallbacks = {}  # key -> its rows, the one in force last

    @cached_property
    def fitting(self):
        """The function (gradient, argument) that gives a gradient its argument's shape, dtype and layout."""
        return table.resolve(self.fit) if self.fit else lambda grad, x: grad

    def __getitem__(self, name):
        """The op of a name, of a public function, or the op itself."""
        found = getattr(name, "op", name)
        known = {**self.stubs, **self.ops}
        if isinstance(found, op.Op | stub.Stub):
            return found
        if not isinstance(found, str) or found not in known:
            raise RegistrationError(f"there is no op {found!r}{suggestion(str(found), list(known))}")
        return known[found]

    def __iter__(self):
        """All operations but those that are for composites alone, whose names begin with an underscore."""
        return iter([op for op in self.ops.values() if op.schema.name[0] != "_"])

    def define(
        self,
        text,
        *,
        structured=None,
        structured_delegate=None,
        dispatch=None,
        fast=None,
        gradient=None,
        casts=None,
        meta_only=(),
        called=None,
        variants="function",
        tags=(),
        python_module=None,
        manual_kernel_registration=False,
        device_check=True,
        device_guard=True,
        output_differentiability=True,
        doc=None,
    ):
        """Define an op by its schema, and return it; its public function is `op.function`.

        structured    the meta function; the kernels are then in the out form. `out=` and `name_` are derived from a
                      functional schema; of an out schema the other forms are declared as its delegates
        structured_delegate           a structured op of the same arguments, whose meta function and kernels serve;
                      `dispatch` may then have functional kernels for devices other than CPU, CUDA and Meta
        dispatch      {"CPU": kernel, "CUDA": kernel} or {"CPU, CUDA": kernel}; a kernel is a callable or "module:name".
                      Without one the op is CompositeImplicit: a function of the op's name in the library's `composites`
        fast          "module:name" of a function (*args, out) -> result, or None to decline, for exact NumPy arrays,
                      and for numbers, Python's and NumPy's, where they may stand for arrays;
                      keyword-only arguments with default None are not its: it is asked where all of them are None,
                      else its attribute `with_keywords`, if it has that, a function of all arguments and out.
                      That of an element-wise op may have three more: `direct()`, a compiled function of the same
                      arguments or None, which is called in its place; `go_on(answer, *args, out)`, the result where
                      the answer is an int or a tuple; and `ready()`, which is set for it to call once direct() changes
        gradient      the Autograd kernel: {argument: formula}, a callable, or "module:name" of it; see derive.py
        casts         (what meta returned, out dtype) -> bool, where out may have another dtype than the result
        meta_only     names of arguments that shape the result and that kernels, which get it as `out`, do not take
        called        (*args) -> what errors call it, where that is not its name
        variants      "function", "method" or "function, method": what `methods()` gives is for a class of arrays,
                      as that of nbkernels.asarray
        tags          "elementwise": Python numbers may stand for arrays, and 0-d CPU arrays join any device
        python_module               the submodule that the public function says it is of
        manual_kernel_registration  no kernel yet, nor a composite: all come from `register`
        device_check, device_guard  False where the op sees to it itself
        output_differentiability    False where no gradient goes back through the result; a sequence for several

        Where all of several returns have names, a namedtuple of them comes out. Raises RegistrationError, or
        SchemaError, where the declaration cannot stand.
        """
        schema = grammar.parse(text)
        where = caller()
        declare.rules(schema)
        kept = declare.variants(schema, variants)
        flags = dict(variants=kept, tags=tuple(tags), python_module=python_module, device_check=device_check,
                     device_guard=device_guard, doc=doc, meta_only=meta_only, casts=casts, called=called,
                     output_differentiability=output_differentiability)  # fmt: skip
        kernels, target = declare.kernels(schema, dispatch), None
        if structured_delegate is not None:
            target = self[structured_delegate]
            given = dict(structured=structured, fast=fast, casts=casts, meta_only=meta_only, called=called)
            declare.delegate(schema, target, kernels, given)
        elif manual_kernel_registration:
            declare.manual(schema, kernels)
        elif structured:
            declare.structure(schema, kernels)
        default = f"{self.composites}:{schema.name}"
        if [table.name_of(k) for k in kernels.values()] == [default] and keys.COMPOSITE_IMPLICIT in kernels:
            raise RegistrationError(f"{schema.full_name}: its dispatch only repeats the default; leave it out")
        if not kernels and not manual_kernel_registration and target is None:
            kernels = {keys.COMPOSITE_IMPLICIT: default}
        flags["doc"] = doc or getattr(structured, "__doc__", None)
        new = target.delegated(schema, flags) if target else op.Op(self, schema, structured, **flags)
        chief = keys.CPU if keys.CPU in kernels else next(iter(kernels), None)
        for key, kernel in kernels.items():
            new.table.add(new.row(key, kernel, where, fast if key == chief else None))
        if gradient is not None:
            new.table.add(new.row(keys.AUTOGRAD, gradient, where))
        return self._enter(new)

    def stub(self, name, takes, dispatch, fast=None):
        """Kernels by device of a function that no schema declares, for `register` to take; see Stub."""
        made = self.stubs[name] = stub.Stub(name, tuple(takes.split()))
        for key, kernel in dispatch.items():
            made.table.add(made.row(key, kernel, caller(), fast if key == keys.CPU else None))
        return made

    def packet(self, name):
        """The overloads of a name, for a call to pick from; see OverloadPacket."""
        return packet.OverloadPacket(self, name)

    def _enter(self, new):
        """An op into the library, if each of its forms has a name of its own."""
        with keys.LOCK:
            names = [form.full_name for form in new.forms_declared]
            for name in names:
                if name in self.names or name in self.stubs:
                    by = self.names[name].schema.full_name if name in self.names else name
                    raise RegistrationError(
                        f"{name} is defined already{f', by {by}' if by != name else ''}; remove it first, or give this "
                        f"one an overload name: {new.schema.name}.other(...)"
                    )
            self.names = {**self.names, **dict.fromkeys(names, new)}
            self.ops = {**self.ops, new.schema.full_name: new}
        return new

    def remove(self, name):
        """Take an op away; its functions still work for those who hold them."""
        target = self[name]
        if not isinstance(target, op.Op):
            raise RegistrationError(f"{name!r} is no op that was defined; what register() returned can be removed")
        with keys.LOCK:
            self.ops = {known: each for known, each in self.ops.items() if each is not target}
            self.names = {known: each for known, each in self.names.items() if each is not target}

    def methods(self):
        """{name: function} of the ops with the variant "method": what a class of arrays may take into its body."""
        mine = [each for each in self if "method" in each.variants]
        return {f.__name__: f for each in mine for f in (each.function, each.in_place) if f is not None}

    def register(self, name, key, kernel, *, override=False):
        """Register a kernel of an op for a key. A key that has one already needs `override=True`.

        Returns a Registration: `remove()` it, or let a `with` block do so, and what was there before is back. The
        kernel may call what it took the place of, as `replaced(...)` of the Registration.
        """
        target = self[name]
        row = target.row(keys.check(key), kernel, caller())
        if target.structured and key == keys.COMPOSITE_IMPLICIT:
            declare.structure(target.schema, {key: kernel})
        target.register(row, override)
        return Registration(target, row)

    def register_fallback(self, key, kernel, *, override=False):
        """`kernel(op, args, out)` for every op that has no other kernel for the key. Returns a Registration.

        It runs after the checks of a structured op, as kernels do, on arguments in the schema's order. Where `out` is
        None it returns the result, which is an error if it has not the op's shape, dtype and device; else it writes
        `out`, which is self in an in-place call. It is for the author to raise on what it does not honour. That of an
        Autograd key is `kernel(op, grad, args, output_mask)` -> gradients.
        """
        if key in keys.ALIASES or key in keys.ATEN:
            raise RegistrationError(f"a fallback is for one device, not for the alias {key}")
        takes = ("op", "grad", "args", "output_mask") if key.startswith(keys.AUTOGRAD) else ("op", "args", "out")
        row = table.Row(keys.check(key), kernel, caller(), takes=takes)
        with keys.LOCK:
            there = self.fallbacks.get(key, ())
            if there and not override:
                raise RegistrationError(
                    f"{self.name} already has a fallback for {key}: {there[-1].kernel_name} ({there[-1].where}); pass "
                    f"override=True to replace it, or remove that one first"
                )
            self.fallbacks[key] = (*there, row)
            self._refresh()
        return Registration(self, row)

    def overrides(self, row, override):
        """Note whether a row overrides another: while one does, composites run by their parts, not by fast paths."""
        with keys.LOCK:
            before = self.overriding
            self.overriding = before | {row} if override else before - {row}
            if self.overriding != before:
                for each in self:
                    each.forget()

    def below(self, row):
        """The fallback that one took the place of."""
        mine = self.fallbacks.get(row.key, ())
        rest = mine[: mine.index(row)] if row in mine else mine
        if not rest:
            raise MissingKernelError(f"{self.name}: the fallback of {row.where} took the place of no other")
        return rest[-1]

    def discard(self, row):
        """Take a fallback out again."""
        with keys.LOCK:
            self.fallbacks[row.key] = tuple(other for other in self.fallbacks.get(row.key, ()) if other is not row)
            self._refresh()

    def _refresh(self):
        for each in self:
            each.table.refresh()
