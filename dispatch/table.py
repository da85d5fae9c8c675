"""Registrations -> the computed table: which kernel a key gets, and where it came from.

`Table.row(key)` is the answer for one key, by the precedence in keys.py; `str(table)` prints the registered rows and
the computed ones.
"""

import functools
import importlib
from dataclasses import dataclass

from . import keys
from .errors import MissingKernelError, RegistrationError


@dataclass(frozen=True)
class Row:
    """One registered kernel: a callable, or "module:name" that is imported at the first use."""

    key: str
    kernel: object
    where: str  # file:line of the registration
    fast: str | None = None  # "module:name" of the fast path that does the same work for exact NumPy arrays

    @property
    def kernel_name(self):
        if isinstance(self.kernel, str):
            return self.kernel
        return f"{self.kernel.__module__}:{getattr(self.kernel, '__qualname__', type(self.kernel).__qualname__)}"


@dataclass(frozen=True)
class Computed:
    """What a run-time key gets: the row (None where there is no kernel) and the reason."""

    key: str
    row: Row | None
    reason: str


class Table:
    """The rows of one op. `implied` rows are derived (the Meta row of a structured op) and yield to registered ones."""

    def __init__(self, schema, implied=(), fallbacks=None):
        self.schema = schema
        self.implied = {row.key: row for row in implied}
        self.fallbacks = {} if fallbacks is None else fallbacks
        self.rows = {}  # key -> its rows, the one in force last
        self._computed = {}

    def add(self, row, override=False):
        """Register a row. A second one for the same key needs `override=True`; `discard` brings the first one back."""
        keys.check(row.key)
        mine = self.rows.get(row.key)
        if mine and not override:
            raise RegistrationError(
                f"{self.schema.full_name} already has a kernel for {row.key}: {mine[-1].kernel_name} "
                f"({mine[-1].where}); pass override=True to replace it, or remove that one first"
            )
        rival = {keys.COMPOSITE_EXPLICIT: keys.COMPOSITE_IMPLICIT, keys.COMPOSITE_IMPLICIT: keys.COMPOSITE_EXPLICIT}
        other = self.rows.get(rival.get(row.key))
        if other:
            raise RegistrationError(
                f"{self.schema.full_name} cannot have both CompositeExplicit and CompositeImplicit kernels: "
                f"{row.kernel_name} and {other[-1].kernel_name}; keep CompositeImplicit if the gradient should come "
                f"from its parts, else CompositeExplicit"
            )
        self.rows.setdefault(row.key, []).append(row)
        self.refresh()

    def discard(self, row):
        """Take a row out again, wherever it stands in the order of overriding."""
        mine = self.rows.get(row.key, [])
        mine[:] = [other for other in mine if other is not row]
        if not mine:
            self.rows.pop(row.key, None)
        self.refresh()

    def refresh(self):
        """Forget what was computed: after a change of rows or of the library's fallbacks."""
        self._computed.clear()

    def row(self, key):
        """The computed entry of a run-time key; one dict hit after the first time."""
        found = self._computed.get(key)
        if found is None:
            found = self._computed[key] = self.compute(key)
        return found

    def compute(self, key):
        if key in self.rows:
            return Computed(key, self.rows[key][-1], "direct")
        if key in self.implied:
            return Computed(key, self.implied[key], "structured")
        for alias in keys.ALIASES:
            if alias in self.rows and self.covers(alias, key):
                return Computed(key, self.rows[alias][-1], alias)
        if key in self.fallbacks:
            return Computed(key, self.fallbacks[key], "fallback")
        return Computed(key, None, "missing")

    def covers(self, alias, key):
        """Whether an alias stands for a run-time key of this op."""
        if key in keys.devices():
            return alias in keys.COMPOSITES
        if alias == keys.COMPOSITE_IMPLICIT:
            # Where the device has a kernel of its own, the composite is not what runs, so its parts have no gradient.
            return key.removeprefix(keys.AUTOGRAD) not in self.rows
        return alias == keys.AUTOGRAD

    def __str__(self):
        rows = [row for mine in self.rows.values() for row in mine[-1:]]
        lines = [("  " + row.key, row.kernel_name, row.where) for row in rows]
        computed = [self.row(key) for key in keys.runtime()]
        lines += [("  " + c.key, c.row.kernel_name if c.row else "-", c.reason) for c in computed]
        widths = [max(len(line[i]) for line in lines) for i in range(2)]
        text = [f"{a:{widths[0]}}  {b:{widths[1]}}  {c}" for a, b, c in lines]
        return "\n".join([str(self.schema), "registered", *text[: len(rows)], "computed", *text[len(rows) :]])

    __repr__ = __str__


def resolve(kernel):
    """The callable that "module:name" names, imported now; a callable is itself."""
    return named(kernel) if isinstance(kernel, str) else kernel


@functools.cache
def named(kernel):
    module, _, name = kernel.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError:
        raise MissingKernelError(f"the kernel {kernel!r} does not exist: {module} has no {name!r}") from None
