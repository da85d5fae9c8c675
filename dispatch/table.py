"""The table of an op, computed from registrations: which kernel a key gets, and where it was registered.

`Table.row(key)` is the answer for one key, by the precedence in keys.py; `str(table)` prints the registered rows and
the computed ones. Readers take no lock: what they read is replaced whole, never changed.
"""

from collections import namedtuple
from importlib import import_module
from itertools import product
from types import FunctionType

from . import keys
from .errors import MissingKernelError, RegistrationError, describe

CO_VARARGS = 0x04  # of a code's flags: the function takes any number of arguments


class Row:
    """One registered kernel: a callable, or "module:name" that is imported at the first use.

    `fast` is the fast path that does the same work for exact NumPy arrays. `takes` are the names of what kernels and
    fast paths are called with; what cannot be called so is an error, of a callable at once, else when it is loaded.
    `writes` says that it is in the out form: it gets an array to write into, after the checks of a structured op.
    """

    named = (str,)  # the types of a kernel that is no callable

    def __init__(self, key, kernel, where, fast=None, takes=None, fast_takes=None, writes=False):
        self.key, self.kernel, self.where, self.fast, self.writes = key, kernel, where, fast, writes
        self.takes, self.fast_takes = takes, fast_takes
        self._loaded = {}
        if callable(kernel):
            self.load()
        elif not isinstance(kernel, self.named):
            raise RegistrationError(f"a kernel for {key} must be a callable or 'module:name', not {describe(kernel)}")

    @property
    def kernel_name(self):
        return name_of(self.kernel)

    def load(self):
        """The kernel itself."""
        return self._loaded.get("kernel") or self._load("kernel", self.kernel, self.takes)

    def load_fast(self):
        """The fast path itself."""
        return self._loaded.get("fast") or self._load("fast", self.fast, self.fast_takes)

    def _load(self, which, kernel, takes):
        function = resolve(kernel)
        if takes is not None and not callable_with(function, len(takes)):
            raise RegistrationError(
                f"{name_of(kernel)} ({self.where}) does not fit its schema: it takes {signature(function)} and would "
                f"be called with ({', '.join(takes)})"
            )
        self._loaded[which] = function
        return function


class Computed(namedtuple("Computed", "key row reason")):
    """What a run-time key gets: the row (None where there is no kernel) and the reason."""

    __slots__ = ()

    def __str__(self):
        return f"{self.key}  {self.row.kernel_name if self.row else '-'}  {self.reason}"


class Table:
    """The rows of one op. `implied` rows are derived (the Meta row of a structured op) and yield to registered ones.

    The table of a delegate has those of `parent`, its target's, behind its own.
    """

    def __init__(self, schema, implied=(), fallbacks=None, parent=None):
        self.schema, self.parent = schema, parent
        self.implied = {row.key: row for row in implied}
        self.fallbacks = {} if fallbacks is None else fallbacks
        self.rows = {}  # key -> tuple of its rows, the one in force last
        self._computed = {}

    @classmethod
    def of(cls, *names, schema="op"):
        """What an op would run that had kernels for these keys: a table to look at.

        >>> from nbkernels.dispatch import Table
        >>> print(Table.of("CPU", "CompositeImplicit").row("CUDA"))
        CUDA  kernel:CompositeImplicit  CompositeImplicit
        """
        table = cls(schema)
        for key in names:
            table.add(Row(key, f"kernel:{key}", "given"))
        return table

    @property
    def name(self):
        return getattr(self.schema, "full_name", self.schema)

    def add(self, row, override=False):
        """Register a row. A second one for the same key needs `override=True`; `discard` brings the first one back."""
        row.key = keys.check(row.key)
        rival = {keys.COMPOSITE_EXPLICIT: keys.COMPOSITE_IMPLICIT, keys.COMPOSITE_IMPLICIT: keys.COMPOSITE_EXPLICIT}
        with keys.LOCK:
            mine, other = self.rows.get(row.key, ()), self.rows.get(rival.get(row.key))
            if mine and not override:
                raise RegistrationError(
                    f"{self.name} already has a kernel for {row.key}: {mine[-1].kernel_name} "
                    f"({mine[-1].where}); pass override=True to replace it, or remove that one first"
                )
            if other:
                raise RegistrationError(
                    f"{self.name} cannot have both CompositeExplicit and CompositeImplicit kernels: "
                    f"{row.kernel_name} and {other[-1].kernel_name}; keep CompositeImplicit if the gradient should "
                    f"come from its parts, else CompositeExplicit"
                )
            self.rows = {**self.rows, row.key: (*mine, row)}
            self.refresh()

    def discard(self, row):
        """Take a row out again, wherever it stands in the order of overriding."""
        with keys.LOCK:
            mine = tuple(other for other in self.rows.get(row.key, ()) if other is not row)
            rest = {key: rows for key, rows in self.rows.items() if key != row.key}
            self.rows = {**rest, row.key: mine} if mine else rest
            self.refresh()

    def below(self, row):
        """The kernel that a row took the place of: overridden, or a composite's where there was none for its key.

        A row that is gone by now took the place of the one that is in force.
        """
        mine = self.rows.get(row.key, ())
        rest = mine[: mine.index(row)] if row in mine else mine
        if rest:
            return rest[-1]
        composite = self.compute(row.key, direct=False) if row.key in keys.devices() else None
        if composite is None or composite.reason not in keys.COMPOSITES or composite.row.writes is not row.writes:
            raise MissingKernelError(f"{self.name}: the kernel for {row.key} ({row.where}) took the place of no other")
        return composite.row

    def refresh(self):
        """Forget what was computed: after a change of rows or of the library's fallbacks.

        A new dict, so that what another thread still computes from the old rows ends up in the old one. A delegate's
        is its target's, so that it hears of the target's changes.
        """
        (self.parent or self)._computed = {}

    def row(self, key):
        """The computed entry of a run-time key."""
        return self.kept(key, self.compute, key)

    def kept(self, key, make, *args):
        """Return make(*args), which depends on the rows, and keep it until they change."""
        computed = (self.parent or self)._computed
        found = computed.get((self, key))
        if found is None:
            found = computed[self, key] = make(*args)
        return found

    def compute(self, key, direct=True):
        """What a key gets; without the kernels that are registered for this very key where not `direct`."""
        tables, fallbacks = [self.rows, self.parent.rows] if self.parent else [self.rows], self.fallbacks
        for rows in tables if direct else ():
            if key in rows:
                return Computed(key, rows[key][-1], "direct")
        if key in self.implied:
            return Computed(key, self.implied[key], "structured")
        for alias, rows in product(keys.ALIASES, tables):
            if alias in rows and self.covers(alias, key):
                return Computed(key, rows[alias][-1], alias)
        if fallbacks.get(key):
            return Computed(key, fallbacks[key][-1], "fallback")
        return Computed(key, None, "missing")

    def covers(self, alias, key):
        """Whether an alias stands for a run-time key of this op."""
        if key in keys.devices():
            return alias in keys.COMPOSITES
        if alias == keys.COMPOSITE_IMPLICIT:
            # Where the device has a kernel of its own, the composite is not what runs, so its parts have no gradient.
            return self.compute(key.removeprefix(keys.AUTOGRAD)).reason == keys.COMPOSITE_IMPLICIT
        return alias == keys.AUTOGRAD

    def registered(self):
        """The rows in force, as they were registered."""
        return [rows[-1] for table in (self, self.parent) if table for rows in table.rows.values()]

    def computed(self):
        """A Computed for every run-time key."""
        return [self.row(key) for key in keys.runtime()]

    def __str__(self):
        lines = [("  " + row.key, row.kernel_name, row.where) for row in self.registered()]
        count = len(lines)
        lines += [("  " + c.key, c.row.kernel_name if c.row else "-", c.reason) for c in self.computed()]
        widths = [max(len(line[i]) for line in lines) for i in range(2)]
        text = [f"{a:{widths[0]}}  {b:{widths[1]}}  {c}" for a, b, c in lines]
        return "\n".join([str(self.schema), "registered", *text[:count], "computed", *text[count:]])

    __repr__ = __str__


def name_of(kernel):
    """`module:name` of a kernel."""
    if isinstance(kernel, str):
        return kernel
    return f"{kernel.__module__}:{getattr(kernel, '__qualname__', type(kernel).__qualname__)}"


def resolve(kernel):
    """The object that "module:name" names, imported now; anything else is itself."""
    if not isinstance(kernel, str):
        return kernel
    module, _, name = kernel.partition(":")
    owner = import_module(module)
    try:
        return getattr(owner, name)
    except AttributeError:
        raise MissingKernelError(f"the kernel {kernel!r} does not exist: {module} has no {name!r}") from None


def signature(function):
    """The inspect.Signature of a callable, or None where it does not tell (some builtins)."""
    import inspect

    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def callable_with(function, count):
    """Whether `count` positional arguments fit a callable; assumed where it does not tell."""
    if not callable(function):
        return False
    if type(function) is FunctionType and not function.__dict__:  # nor a signature of another: at once
        code, defaults = function.__code__, len(function.__defaults__ or ())
        keywords = code.co_kwonlyargcount == len(function.__kwdefaults__ or ())
        fits = count <= code.co_argcount or bool(code.co_flags & CO_VARARGS)
        return keywords and fits and code.co_argcount - defaults <= count
    told = signature(function)
    try:
        return told is None or told.bind(*range(count)) is not None
    except TypeError:
        return False
