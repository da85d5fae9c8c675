"""A library of ops: where ops are defined, extended and taken away again.

    library = Library("mine")
    scale = library.define("scale(Tensor self, Scalar by) -> Tensor", structured=meta, dispatch={"CPU": kernel})
    with library.register(scale, "CPU", faster, override=True):
        scale.function(x, 2)             # runs `faster`; after the block, `kernel` again

`define` and `register` say what can be given, and what cannot stand.
"""

import sys

from . import keys, op, schema, table
from .errors import RegistrationError, suggestion

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

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


class Library:
    """Ops by name. `composites` is the module that holds the bodies of ops without a dispatch table, by their names."""

    def __init__(self, name, composites=None):
        self.name, self.composites = name, composites or name
        self.ops = {}  # full name -> Op
        self.fallbacks = {}  # key -> Row

    def __getitem__(self, name):
        """The op of a name, of a public function, or the op itself."""
        found = getattr(name, "op", name)
        if isinstance(found, op.Op):
            return found
        if found not in self.ops:
            raise RegistrationError(f"there is no op {found!r}{suggestion(str(found), list(self.ops))}")
        return self.ops[found]

    def __iter__(self):
        return iter(self.ops.values())

    def define(
        self,
        text,
        *,
        structured=None,
        dispatch=None,
        fast=None,
        gradient=None,
        casts=None,
        meta_only=(),
        tags=(),
        device_check=True,
        device_guard=True,
        doc=None,
    ):
        """Define an op by its functional schema, and return it; its public function is `op.function`.

        structured    the meta function; the kernels are then in the out form, and `out=` and `name_` are derived
        dispatch      {"CPU": kernel, "CUDA": kernel} or {"CPU, CUDA": kernel}; a kernel is a callable or "module:name".
                      Without one the op is CompositeImplicit: a function of the op's name in the library's `composites`
        fast          "module:name" of a function (*args, out) -> result, or None to decline, for exact NumPy arrays
        gradient      the Autograd kernel: {argument: formula}, or "module:name" of it
        casts         (result dtype, out dtype) -> bool, where out may have another dtype than the result
        meta_only     names of arguments that shape the result and that kernels, which get it as `out`, do not take
        tags          "elementwise": Python numbers may stand for arrays, and 0-d CPU arrays join any device
        device_check, device_guard    False where the op sees to it itself
        """
        parsed = schema.parse(text)
        if parsed.full_name in self.ops:
            raise RegistrationError(
                f"{parsed.full_name} is defined already; remove it first, or give this one an overload name: "
                f"{parsed.name}.other(...)"
            )
        where = caller()
        kernels = {}
        for names, kernel in (dispatch or {}).items():
            for key in names.split(","):
                kernels[keys.check(key.strip())] = kernel
        op.checked(parsed, structured, kernels)
        default = {keys.COMPOSITE_IMPLICIT: f"{self.composites}:{parsed.name}"}
        if kernels == default:
            raise RegistrationError(f"{parsed.full_name}: its dispatch only repeats the default; leave it out")
        kernels = kernels or default
        chief = keys.CPU if keys.CPU in kernels else next(iter(kernels))
        rows = [table.Row(key, kernel, where, fast if key == chief else None) for key, kernel in kernels.items()]
        if gradient is not None:
            rows.append(table.Row(keys.AUTOGRAD, gradient, where))
        doc = doc or getattr(structured, "__doc__", None)
        new = op.Op(self, parsed, structured, rows, casts, meta_only, tuple(tags), device_check, device_guard, doc)
        self.ops[parsed.full_name] = new
        return new

    def remove(self, name):
        """Take an op away; its functions still work for those who hold them."""
        del self.ops[self[name].schema.full_name]

    def register(self, name, key, kernel, *, override=False):
        """Register a kernel of an op for a key. A key that has one already needs `override=True`.

        Returns a Registration: `remove()` it, or let a `with` block do so, and what was there before is back.
        """
        target = self[name]
        row = table.Row(keys.check(key), kernel, caller())
        if target.structured and key == keys.COMPOSITE_IMPLICIT:
            op.checked(target.schema, target.structured, {key: kernel})
        target.register(row, override)
        return Registration(target, row)

    def register_fallback(self, key, kernel):
        """`kernel(op, args, out)` for every op that has no other kernel for the key; None takes it away."""
        keys.check(key)
        if kernel is None:
            self.fallbacks.pop(key, None)
        else:
            self.fallbacks[key] = table.Row(key, kernel, caller())
        for each in self:
            each.table.refresh()
