"""The dispatcher, which decides who runs an op: schemas, keys, tables of kernels, adapters. Imports nothing but Python.

The names below are imported at their first use: importing the package costs next to nothing.
"""

HOMES = {
    "Adapter": "adapter",
    "ArgumentError": "errors",
    "ComplianceError": "errors",
    "Device": "adapter",
    "DeviceError": "errors",
    "InferenceError": "errors",
    "Library": "library",
    "MetaArray": "metas",
    "MissingKernelError": "errors",
    "Op": "op",
    "OutDtypeError": "errors",
    "UnsuitableError": "errors",
    "OutError": "errors",
    "OverloadPacket": "packet",
    "Registration": "library",
    "RegistrationError": "errors",
    "Schema": "schema",
    "ResultError": "errors",
    "SchemaError": "errors",
    "Spec": "adapter",
    "Table": "table",
    "add_device": "keys",
    "comply": "compliance",
    "parse": "grammar",
    "register_adapter": "arrays",
    "remove_device": "keys",
    "unregister_adapter": "arrays",
}
__all__ = list(HOMES)


def __getattr__(name):
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f".{HOMES[name]}", __name__), name)
    return found


def __dir__():
    return sorted({*globals(), *HOMES})
