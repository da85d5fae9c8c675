"""Who runs an op: schemas, dispatch keys, tables of kernels, adapters for array libraries. Needs nothing but Python."""

from .arrays import Adapter, Device, MetaArray
from .arrays import register as register_adapter
from .errors import (
    ArgumentError,
    DeviceError,
    MissingKernelError,
    OutDtypeError,
    OutError,
    RegistrationError,
    SchemaError,
)
from .keys import add_device
from .library import Library, Registration
from .op import Op
from .schema import Schema, parse
from .table import Table

__all__ = [
    "Adapter",
    "ArgumentError",
    "Device",
    "DeviceError",
    "Library",
    "MetaArray",
    "MissingKernelError",
    "Op",
    "OutDtypeError",
    "OutError",
    "Registration",
    "RegistrationError",
    "Schema",
    "SchemaError",
    "Table",
    "add_device",
    "parse",
    "register_adapter",
]
