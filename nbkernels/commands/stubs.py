"""The types of the public names, written from the table: `python -m nbkernels stubs --of ROOM FILE` for each of PAGES.

An operation is an object that is called, with methods: its schema says the types, its function the names and defaults.
Of NumPy arrays NumPy arrays come out; of others, arrays of the type that went in.
"""

from __future__ import annotations

import inspect

import nbkernels
from nbkernels.commands import docs
from nbkernels.dispatch import MetaArray
from nbkernels.dispatch.operators import COMPARISONS, SYMBOLS
from nbkernels.ops import OPERATIONS

HEAD = '''\
"""Types of the public names. Written by `python -m nbkernels stubs nbkernels/__init__.pyi` from nbkernels/ops.py; not
to be edited."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike

{imports}

__version__: str

class _HasArray(Protocol):
    """An array of any library."""

    @property
    def shape(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...

_Array: TypeAlias = np.ndarray[Any, Any]
_Number: TypeAlias = complex | np.generic
_A = TypeVar("_A", bound=_HasArray)
_Out = TypeVar("_Out", bound=_HasArray)

class MetaArray:
    """An array without data: shape, dtype and strides."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    def __init__(
        self, shape: int | Sequence[int], dtype: DTypeLike, strides: Sequence[int] | None = None
    ) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: Any) -> MetaArray: ...
    def __neg__(self) -> MetaArray: ...
    def __pos__(self) -> MetaArray: ...
{operators}

class _Operation:
    """What every operation has; `op` is its record in the table, `schema` its signature, table() its kernels."""

    __name__: str
    __qualname__: str
    op: Any
    schema: Any

    def table(self) -> Any: ...

class _Elementwise(_Operation):
    """NumPy's methods of an operation of two."""

    @overload
    def reduce(
        self, array: _HasArray, axis: int | Sequence[int] | None = 0, dtype: DTypeLike | None = None, *, out: _Out,
        keepdims: bool = False, initial: _Number | None = None, where: _HasArray | None = None,
    ) -> _Out: ...
    @overload
    def reduce(
        self, array: _A, axis: int | Sequence[int] | None = 0, dtype: DTypeLike | None = None, out: None = None, *,
        keepdims: Literal[True], initial: _Number | None = None, where: _HasArray | None = None,
    ) -> _A: ...
    @overload
    def reduce(
        self, array: _HasArray, axis: int | Sequence[int] | None = 0, dtype: DTypeLike | None = None, out: Any = None,
        keepdims: bool = False, initial: _Number | None = None, where: _HasArray | None = None, *,
        dim: int | Sequence[int] | None = None, keepdim: bool | None = None,
    ) -> Any: ...
    def accumulate(
        self, array: _HasArray, axis: int = 0, dtype: DTypeLike | None = None, out: Any = None, *,
        dim: int | None = None,
    ) -> Any: ...
    def outer(self, a: _HasArray | _Number, b: _HasArray | _Number, **keywords: Any) -> Any: ...
    def at(self, array: _HasArray, indices: Any, b: Any) -> None: ...

class _Function(Protocol):
    """A function of elements as an operation; several results are a tuple."""

    __name__: str

    @overload
    def __call__(self, *args: _HasArray | _Number, out: _Out, where: _HasArray | None = None) -> _Out: ...
    @overload
    def __call__(self, *args: _HasArray | _Number, out: None = None, where: _HasArray | None = None) -> Any: ...

@overload
def elementwise(function: Callable[..., Any], *, dtypes: Any = None, gradient: Any = None) -> _Function: ...
@overload
def elementwise(
    function: None = None, *, dtypes: Any = None, gradient: Any = None
) -> Callable[[Callable[..., Any]], _Function]: ...

'''
META = """\
class _Meta(Protocol):
    def __call__(self, shape: int | Sequence[int], dtype: DTypeLike) -> MetaArray: ...

meta: _Meta
"""
TABLE = "define packet register register_fallback".split()  # the library's own methods, which ops.py names
PLAIN = {"int": "int", "float": "float", "bool": "bool", "str": "str", "Scalar": "_Number", "ScalarType": "DTypeLike"}


def page() -> str:
    """The whole text."""
    imports = {".ops": TABLE}
    for name in nbkernels.__all__:
        if name not in (*OPERATIONS, *TABLE, "meta", "MetaArray", "elementwise"):
            module = getattr(nbkernels, name).__module__.removeprefix(nbkernels.__name__)
            imports.setdefault(module, []).append(name)
    lines = [
        f"from {module} import {', '.join(f'{name} as {name}' for name in sorted(names))}"
        for module, names in sorted(imports.items())
    ]
    signs = [f"__{name}__" for name in (*SYMBOLS, *COMPARISONS)] + [f"__r{name}__" for name in SYMBOLS]
    operators = [f"    def {sign}(self, other: Any) -> MetaArray: ..." for sign in signs]
    head = HEAD.replace("{imports}", "\n".join(lines)).replace("{operators}", "\n".join(operators))
    return "\n".join([head, META, *map(operation, OPERATIONS)])


TORCH = '''\
"""Types of the public names, functions of tensors. Written by `python -m nbkernels stubs --of torch FILE` from
nbkernels/ops.py; not to be edited."""

from collections.abc import Sequence
from typing import TypeAlias

from numpy.typing import DTypeLike
from torch import Tensor, dtype as _Torch

_Number: TypeAlias = complex
_DType: TypeAlias = DTypeLike | _Torch

class _Elementwise:
    """NumPy's methods of an operation of two."""

    __name__: str

    def reduce(
        self, array: Tensor, axis: int | Sequence[int] | None = 0, dtype: _DType | None = None, keepdims: bool = False,
        initial: _Number | None = None, where: Tensor | None = None, *, dim: int | Sequence[int] | None = None,
        keepdim: bool | None = None,
    ) -> Tensor: ...
    def accumulate(
        self, array: Tensor, axis: int = 0, dtype: _DType | None = None, *, dim: int | None = None
    ) -> Tensor: ...

'''


def torch_page() -> str:
    """Of nbkernels.torch: each function takes what that of nbkernels takes, of tensors alone."""
    lines = []
    for name in OPERATIONS:
        given = parameters(getattr(nbkernels, name), "Tensor", out="Tensor | None = None").replace(
            "DTypeLike", "_DType"
        )
        if hasattr(getattr(nbkernels, name), "reduce"):
            lines.append(f"class _{name}(_Elementwise):\n    def __call__({given}) -> Tensor: ...\n{name}: _{name}\n")
        else:
            lines.append(f"def {name}({given.removeprefix('_, ')}) -> Tensor: ...\n")
    return TORCH + "".join(lines)


def dispatch_page() -> str:
    """Of nbkernels.dispatch: where each name comes from."""
    from ..dispatch import HOMES

    head = '"""Public names. Written by `python -m nbkernels stubs --of dispatch FILE`; not to be edited."""\n\n'
    return head + "".join(f"from .{HOMES[name]} import {name} as {name}\n" for name in sorted(HOMES))


def operation(name) -> str:
    """The class of an operation, of which it is the only object."""
    function = getattr(nbkernels, name)
    base = "_Elementwise" if hasattr(function, "reduce") else "_Operation"
    ways = forms(function)
    mark = "    @overload\n" if len(ways) > 1 else ""
    calls = "".join(f"{mark}    def __call__({way}: ...\n" for way in ways)
    formula = function.__doc__.strip().splitlines()[0]
    return f'class _{name}({base}):\n    r"""{formula}"""\n\n{calls}\n{name}: _{name}\n'


def forms(function) -> list[str]:
    """`parameters) -> result` of each way to call it: NumPy arrays that become one, others that do, an out= that comes
    back; or an array that is written."""
    if "out" not in inspect.signature(function).parameters:
        return [f"{parameters(function, '_HasArray', written='_A')}) -> _A"]
    result = "Any" if scalars(function.op) else "_Array"
    return [
        f"{parameters(function, '_Array', out='None')}) -> {result}",
        f"{parameters(function, '_HasArray', out='_Out')}) -> _Out",
        f"{parameters(function, '_A', out='None')}) -> {'Any' if result == 'Any' else '_A'}",
    ]


def scalars(op) -> bool:
    """Whether arrays of some shape have a number for a result."""
    found = docs.examples(op, lambda shape: MetaArray(shape, "int64" if "bit" in op.schema.name else "float64"))
    return any(op.call(args).shape == () for args in found)


def parameters(function, array, out=None, written=None) -> str:
    """The parameters of its signature with their types. An operation is the first one's `_`: `self` is an array."""
    op, texts, starred = function.op, ["_"], False
    types = {argument.name: argument for argument in op.arguments}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            texts.append("*")
            starred = True
        if parameter.name == "out":
            texts.append("out: None = None" if out == "None" else f"out: {out}")
            continue
        argument = types[parameter.name.removesuffix("_") if parameter.name not in types else parameter.name]
        text = written if written and parameter.name == "self" else typed(argument.type, array, op.elementwise)
        if PACKED.get(op.schema.name) == parameter.name and array != "Tensor":
            text += " | Packed"
        texts.append(f"{parameter.name}: {text}")
        if parameter.default is not parameter.empty:
            texts[-1] += f" = {parameter.default!r}"
    return ", ".join(texts)


# Operations whose argument of this name may be packed weights.
PACKED = {"mm": "mat2", "addmm": "mat2", "matmul": "other", "linear": "weight"}


def typed(kind, array, numbers) -> str:
    """A schema's type as Python's. Of arrays that are operands of an element-wise operation `numbers` stand beside."""
    text = PLAIN.get(kind.base, array if kind.base == "Tensor" else "Any")
    if kind.base == "Tensor" and numbers:
        text += " | _Number"
    if kind.is_list:
        text = f"Sequence[{text}]"
    return f"{text} | None" if kind.optional else text


PAGES = {"nbkernels": page, "torch": torch_page, "dispatch": dispatch_page}
