"""The functions are made when the module is imported, from the table: each takes and returns tensors."""

from typing import Any

def __getattr__(name: str) -> Any: ...
