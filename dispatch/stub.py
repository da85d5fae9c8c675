"""Kernels by device of functions that are not ops, because no schema describes their arguments (ATen: DispatchStub)."""

from . import keys
from .errors import MissingKernelError, RegistrationError
from .table import Row, Table


class Stub:
    """What `Library.stub` makes: `takes` are the names of what a kernel is called with."""

    structured = None

    def __init__(self, name, takes):
        self.name, self.takes, self.table = name, takes, Table(name)

    def __repr__(self):
        return f"<kernels of {self.name}>"

    def row(self, key, kernel, where, fast=None):
        if key == keys.META or key not in keys.devices():
            raise RegistrationError(f"{self.name} has kernels for devices with data alone, not for {key}")
        return Row(key, kernel, where, fast, self.takes)

    def register(self, row, override):
        self.table.add(row, override)

    def discard(self, row):
        self.table.discard(row)

    def below(self, row):
        return self.table.below(row)

    def on(self, key, called):
        """The row of a device; the error where it has none says what `called` lacks."""
        found = self.table.row(key).row
        if found is None:
            has = ", ".join(row.key for row in self.table.registered())
            raise MissingKernelError(
                f"{called} has no kernel for {key}; it has {has}: register({self.name!r}, {key!r}, kernel) adds one"
            )
        return found
