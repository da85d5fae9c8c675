"""Types of the public names. Written by `python -m nbkernels stubs nbkernels/__init__.pyi` from nbkernels/ops.py; not
to be edited."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike

from .array import asarray as asarray
from .autograd.for_torch import for_torch as for_torch
from .autograd.tape import GradTape as GradTape
from .autograd.vjp import vjp as vjp
from .code_origins import specializations as specializations
from .epilogues import epilogue as epilogue
from .explain import explain as explain
from .fusion import fuse as fuse
from .in_numpy.use import use_in_numpy as use_in_numpy
from .modes import modes as modes
from .ops import define as define, packet as packet, register as register, register_fallback as register_fallback
from .packing import Packed as Packed, pack as pack
from .quantized.weights import Quantized as Quantized, linear_q as linear_q, quantize as quantize
from .standard import clip as clip, einsum as einsum, matrix_transpose as matrix_transpose, mean as mean, std as std, tensordot as tensordot, var as var, vecdot as vecdot, where as where
from .threads import threads as threads
from .tuning.run import tune as tune
from .watch import watch as watch

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
    def __add__(self, other: Any) -> MetaArray: ...
    def __sub__(self, other: Any) -> MetaArray: ...
    def __mul__(self, other: Any) -> MetaArray: ...
    def __truediv__(self, other: Any) -> MetaArray: ...
    def __floordiv__(self, other: Any) -> MetaArray: ...
    def __mod__(self, other: Any) -> MetaArray: ...
    def __pow__(self, other: Any) -> MetaArray: ...
    def __matmul__(self, other: Any) -> MetaArray: ...
    def __and__(self, other: Any) -> MetaArray: ...
    def __or__(self, other: Any) -> MetaArray: ...
    def __xor__(self, other: Any) -> MetaArray: ...
    def __lshift__(self, other: Any) -> MetaArray: ...
    def __rshift__(self, other: Any) -> MetaArray: ...
    def __lt__(self, other: Any) -> MetaArray: ...
    def __le__(self, other: Any) -> MetaArray: ...
    def __gt__(self, other: Any) -> MetaArray: ...
    def __ge__(self, other: Any) -> MetaArray: ...
    def __radd__(self, other: Any) -> MetaArray: ...
    def __rsub__(self, other: Any) -> MetaArray: ...
    def __rmul__(self, other: Any) -> MetaArray: ...
    def __rtruediv__(self, other: Any) -> MetaArray: ...
    def __rfloordiv__(self, other: Any) -> MetaArray: ...
    def __rmod__(self, other: Any) -> MetaArray: ...
    def __rpow__(self, other: Any) -> MetaArray: ...
    def __rmatmul__(self, other: Any) -> MetaArray: ...
    def __rand__(self, other: Any) -> MetaArray: ...
    def __ror__(self, other: Any) -> MetaArray: ...
    def __rxor__(self, other: Any) -> MetaArray: ...
    def __rlshift__(self, other: Any) -> MetaArray: ...
    def __rrshift__(self, other: Any) -> MetaArray: ...

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


class _Meta(Protocol):
    def __call__(self, shape: int | Sequence[int], dtype: DTypeLike) -> MetaArray: ...

meta: _Meta

class _addmm(_Operation):
    r"""out = beta * self + alpha * (mat1 @ mat2)"""

    @overload
    def __call__(_, self: _Array, mat1: _Array, mat2: _Array | Packed, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray, mat1: _HasArray, mat2: _HasArray | Packed, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A, mat1: _A, mat2: _A | Packed, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: None = None) -> _A: ...

addmm: _addmm

class _addmm_(_Operation):
    r"""In-place form of `addmm`: writes self and returns it."""

    def __call__(_, self: _A, mat1: _HasArray, mat2: _HasArray | Packed, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None) -> _A: ...

addmm_: _addmm_

class _mm(_Operation):
    r"""out = self @ mat2"""

    @overload
    def __call__(_, self: _Array, mat2: _Array | Packed, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray, mat2: _HasArray | Packed, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A, mat2: _A | Packed, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: None = None) -> _A: ...

mm: _mm

class _mm_(_Operation):
    r"""In-place form of `mm`: writes self and returns it."""

    def __call__(_, self: _A, mat2: _HasArray | Packed, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None) -> _A: ...

mm_: _mm_

class _addmm_activation(_Operation):
    r"""out = activation(beta * self + alpha * (mat1 @ mat2))"""

    @overload
    def __call__(_, self: _Array, mat1: _Array, mat2: _Array, *, beta: _Number = 1, alpha: _Number = 1, activation: str = 'relu', approximate: str = 'none', out_dtype: DTypeLike | None = None, mode: str | None = None, tiles: Sequence[int] | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray, mat1: _HasArray, mat2: _HasArray, *, beta: _Number = 1, alpha: _Number = 1, activation: str = 'relu', approximate: str = 'none', out_dtype: DTypeLike | None = None, mode: str | None = None, tiles: Sequence[int] | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A, mat1: _A, mat2: _A, *, beta: _Number = 1, alpha: _Number = 1, activation: str = 'relu', approximate: str = 'none', out_dtype: DTypeLike | None = None, mode: str | None = None, tiles: Sequence[int] | None = None, out: None = None) -> _A: ...

addmm_activation: _addmm_activation

class _addmm_activation_(_Operation):
    r"""In-place form of `addmm_activation`: writes self and returns it."""

    def __call__(_, self: _A, mat1: _HasArray, mat2: _HasArray, *, beta: _Number = 1, alpha: _Number = 1, activation: str = 'relu', approximate: str = 'none', out_dtype: DTypeLike | None = None, mode: str | None = None, tiles: Sequence[int] | None = None) -> _A: ...

addmm_activation_: _addmm_activation_

class _bmm(_Operation):
    r"""out[i] = self[i] @ mat2[i]"""

    @overload
    def __call__(_, self: _Array, mat2: _Array, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray, mat2: _HasArray, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A, mat2: _A, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: None = None) -> _A: ...

bmm: _bmm

class _bmm_(_Operation):
    r"""In-place form of `bmm`: writes self and returns it."""

    def __call__(_, self: _A, mat2: _HasArray, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None) -> _A: ...

bmm_: _bmm_

class _baddbmm(_Operation):
    r"""out[i] = beta * self[i] + alpha * (batch1[i] @ batch2[i])"""

    @overload
    def __call__(_, self: _Array, batch1: _Array, batch2: _Array, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray, batch1: _HasArray, batch2: _HasArray, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A, batch1: _A, batch2: _A, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: None = None) -> _A: ...

baddbmm: _baddbmm

class _baddbmm_(_Operation):
    r"""In-place form of `baddbmm`: writes self and returns it."""

    def __call__(_, self: _A, batch1: _HasArray, batch2: _HasArray, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None) -> _A: ...

baddbmm_: _baddbmm_

class _addbmm(_Operation):
    r"""out = beta * self + alpha * (the sum over i of batch1[i] @ batch2[i])"""

    @overload
    def __call__(_, self: _Array, batch1: _Array, batch2: _Array, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray, batch1: _HasArray, batch2: _HasArray, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A, batch1: _A, batch2: _A, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: None = None) -> _A: ...

addbmm: _addbmm

class _addbmm_(_Operation):
    r"""In-place form of `addbmm`: writes self and returns it."""

    def __call__(_, self: _A, batch1: _HasArray, batch2: _HasArray, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None) -> _A: ...

addbmm_: _addbmm_

class _mv(_Operation):
    r"""out = self @ vec, of a matrix (m, k) and a vector (k,)"""

    @overload
    def __call__(_, self: _Array, vec: _Array, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray, vec: _HasArray, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A, vec: _A, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, out: None = None) -> _A: ...

mv: _mv

class _addmv(_Operation):
    r"""out = beta * self + alpha * (mat @ vec)"""

    @overload
    def __call__(_, self: _Array, mat: _Array, vec: _Array, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray, mat: _HasArray, vec: _HasArray, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A, mat: _A, vec: _A, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, out: None = None) -> _A: ...

addmv: _addmv

class _addmv_(_Operation):
    r"""In-place form of `addmv`: writes self and returns it."""

    def __call__(_, self: _A, mat: _HasArray, vec: _HasArray, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None) -> _A: ...

addmv_: _addmv_

class _outer(_Operation):
    r"""out[i, j] = self[i] * vec2[j], of vectors (m,) and (n,)"""

    @overload
    def __call__(_, self: _Array, vec2: _Array, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray, vec2: _HasArray, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A, vec2: _A, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, out: None = None) -> _A: ...

outer: _outer

class _addr(_Operation):
    r"""out = beta * self + alpha * outer(vec1, vec2)"""

    @overload
    def __call__(_, self: _Array, vec1: _Array, vec2: _Array, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray, vec1: _HasArray, vec2: _HasArray, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A, vec1: _A, vec2: _A, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, out: None = None) -> _A: ...

addr: _addr

class _addr_(_Operation):
    r"""In-place form of `addr`: writes self and returns it."""

    def __call__(_, self: _A, vec1: _HasArray, vec2: _HasArray, *, beta: _Number = 1, alpha: _Number = 1, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None) -> _A: ...

addr_: _addr_

class _dot(_Operation):
    r"""out = the sum over i of self[i] * tensor[i], of vectors of one size; 0-d"""

    @overload
    def __call__(_, self: _Array, tensor: _Array, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, out: None = None) -> Any: ...
    @overload
    def __call__(_, self: _HasArray, tensor: _HasArray, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A, tensor: _A, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, out: None = None) -> Any: ...

dot: _dot

class _vdot(_Operation):
    r"""out = the sum over i of conj(self[i]) * other[i]: of real vectors, dot"""

    @overload
    def __call__(_, self: _Array, other: _Array, *, out_dtype: DTypeLike | None = None, mode: str | None = None, out: None = None) -> Any: ...
    @overload
    def __call__(_, self: _HasArray, other: _HasArray, *, out_dtype: DTypeLike | None = None, mode: str | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A, other: _A, *, out_dtype: DTypeLike | None = None, mode: str | None = None, out: None = None) -> Any: ...

vdot: _vdot

class _matmul(_Operation):
    r"""out = input @ other by NumPy's rules"""

    @overload
    def __call__(_, input: _Array, other: _Array | Packed, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: None = None) -> Any: ...
    @overload
    def __call__(_, input: _HasArray, other: _HasArray | Packed, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, input: _A, other: _A | Packed, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: None = None) -> Any: ...

matmul: _matmul

class _linear(_Operation):
    r"""out = input @ weight.T + bias"""

    @overload
    def __call__(_, input: _Array, weight: _Array | Packed, bias: _Array | None = None, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, input: _HasArray, weight: _HasArray | Packed, bias: _HasArray | None = None, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, input: _A, weight: _A | Packed, bias: _A | None = None, *, out_dtype: DTypeLike | None = None, mode: str | None = None, conj: str | None = None, tiles: Sequence[int] | None = None, out: None = None) -> _A: ...

linear: _linear

class _add(_Elementwise):
    r"""out = self + alpha * other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, alpha: _Number = 1, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, alpha: _Number = 1, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, alpha: _Number = 1, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

add: _add

class _add_(_Operation):
    r"""In-place form of `add`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, alpha: _Number = 1, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

add_: _add_

class _subtract(_Elementwise):
    r"""out = self - alpha * other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, alpha: _Number = 1, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, alpha: _Number = 1, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, alpha: _Number = 1, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

subtract: _subtract

class _subtract_(_Operation):
    r"""In-place form of `subtract`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, alpha: _Number = 1, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

subtract_: _subtract_

class _multiply(_Elementwise):
    r"""out = self * other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

multiply: _multiply

class _multiply_(_Operation):
    r"""In-place form of `multiply`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

multiply_: _multiply_

class _divide(_Elementwise):
    r"""out = self / other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

divide: _divide

class _divide_(_Operation):
    r"""In-place form of `divide`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

divide_: _divide_

class _floor_divide(_Elementwise):
    r"""out = floor(self / other)"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

floor_divide: _floor_divide

class _floor_divide_(_Operation):
    r"""In-place form of `floor_divide`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

floor_divide_: _floor_divide_

class _remainder(_Elementwise):
    r"""out = self - floor(self / other) * other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

remainder: _remainder

class _remainder_(_Operation):
    r"""In-place form of `remainder`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

remainder_: _remainder_

class _fmod(_Elementwise):
    r"""out = self - trunc(self / other) * other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

fmod: _fmod

class _fmod_(_Operation):
    r"""In-place form of `fmod`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

fmod_: _fmod_

class _pow(_Elementwise):
    r"""out = self ** other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

pow: _pow

class _pow_(_Operation):
    r"""In-place form of `pow`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

pow_: _pow_

class _float_power(_Elementwise):
    r"""out = self ** other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

float_power: _float_power

class _float_power_(_Operation):
    r"""In-place form of `float_power`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

float_power_: _float_power_

class _maximum(_Elementwise):
    r"""out = the larger of self and other, NaN where either is NaN; of zeros the positive one"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

maximum: _maximum

class _maximum_(_Operation):
    r"""In-place form of `maximum`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

maximum_: _maximum_

class _minimum(_Elementwise):
    r"""out = the smaller of self and other, NaN where either is NaN; of zeros the negative one"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

minimum: _minimum

class _minimum_(_Operation):
    r"""In-place form of `minimum`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

minimum_: _minimum_

class _fmax(_Elementwise):
    r"""out = the larger of self and other, the number where one is NaN; of zeros the positive one"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

fmax: _fmax

class _fmax_(_Operation):
    r"""In-place form of `fmax`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

fmax_: _fmax_

class _fmin(_Elementwise):
    r"""out = the smaller of self and other, the number where one is NaN; of zeros the negative one"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

fmin: _fmin

class _fmin_(_Operation):
    r"""In-place form of `fmin`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

fmin_: _fmin_

class _atan2(_Elementwise):
    r"""out = the angle of the point (other, self), from -pi to pi"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

atan2: _atan2

class _atan2_(_Operation):
    r"""In-place form of `atan2`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

atan2_: _atan2_

class _hypot(_Elementwise):
    r"""out = sqrt(self**2 + other**2), without overflow on the way"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

hypot: _hypot

class _hypot_(_Operation):
    r"""In-place form of `hypot`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

hypot_: _hypot_

class _copysign(_Elementwise):
    r"""out = |self| with the sign of other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

copysign: _copysign

class _copysign_(_Operation):
    r"""In-place form of `copysign`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

copysign_: _copysign_

class _nextafter(_Elementwise):
    r"""out = the next float from self towards other; other where they are equal"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

nextafter: _nextafter

class _nextafter_(_Operation):
    r"""In-place form of `nextafter`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

nextafter_: _nextafter_

class _logaddexp(_Elementwise):
    r"""out = log(exp(self) + exp(other)), without overflow on the way"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

logaddexp: _logaddexp

class _logaddexp_(_Operation):
    r"""In-place form of `logaddexp`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

logaddexp_: _logaddexp_

class _logaddexp2(_Elementwise):
    r"""out = log2(2**self + 2**other), without overflow on the way"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

logaddexp2: _logaddexp2

class _logaddexp2_(_Operation):
    r"""In-place form of `logaddexp2`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

logaddexp2_: _logaddexp2_

class _heaviside(_Elementwise):
    r"""out = 0 where self < 0, other where it is 0, 1 where it is larger"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

heaviside: _heaviside

class _heaviside_(_Operation):
    r"""In-place form of `heaviside`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

heaviside_: _heaviside_

class _ldexp(_Elementwise):
    r"""out = self * 2**other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

ldexp: _ldexp

class _ldexp_(_Operation):
    r"""In-place form of `ldexp`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

ldexp_: _ldexp_

class _gcd(_Elementwise):
    r"""out = the greatest common divisor"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

gcd: _gcd

class _gcd_(_Operation):
    r"""In-place form of `gcd`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

gcd_: _gcd_

class _lcm(_Elementwise):
    r"""out = the least common multiple"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

lcm: _lcm

class _lcm_(_Operation):
    r"""In-place form of `lcm`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

lcm_: _lcm_

class _equal(_Elementwise):
    r"""out = self == other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

equal: _equal

class _equal_(_Operation):
    r"""In-place form of `equal`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

equal_: _equal_

class _not_equal(_Elementwise):
    r"""out = self != other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

not_equal: _not_equal

class _not_equal_(_Operation):
    r"""In-place form of `not_equal`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

not_equal_: _not_equal_

class _less(_Elementwise):
    r"""out = self < other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

less: _less

class _less_(_Operation):
    r"""In-place form of `less`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

less_: _less_

class _less_equal(_Elementwise):
    r"""out = self <= other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

less_equal: _less_equal

class _less_equal_(_Operation):
    r"""In-place form of `less_equal`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

less_equal_: _less_equal_

class _greater(_Elementwise):
    r"""out = self > other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

greater: _greater

class _greater_(_Operation):
    r"""In-place form of `greater`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

greater_: _greater_

class _greater_equal(_Elementwise):
    r"""out = self >= other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

greater_equal: _greater_equal

class _greater_equal_(_Operation):
    r"""In-place form of `greater_equal`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

greater_equal_: _greater_equal_

class _logical_and(_Elementwise):
    r"""out = self != 0 and other != 0"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

logical_and: _logical_and

class _logical_and_(_Operation):
    r"""In-place form of `logical_and`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

logical_and_: _logical_and_

class _logical_or(_Elementwise):
    r"""out = self != 0 or other != 0"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

logical_or: _logical_or

class _logical_or_(_Operation):
    r"""In-place form of `logical_or`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

logical_or_: _logical_or_

class _logical_xor(_Elementwise):
    r"""out = exactly one of self and other is not 0"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

logical_xor: _logical_xor

class _logical_xor_(_Operation):
    r"""In-place form of `logical_xor`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

logical_xor_: _logical_xor_

class _bitwise_and(_Elementwise):
    r"""out = self & other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

bitwise_and: _bitwise_and

class _bitwise_and_(_Operation):
    r"""In-place form of `bitwise_and`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

bitwise_and_: _bitwise_and_

class _bitwise_or(_Elementwise):
    r"""out = self | other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

bitwise_or: _bitwise_or

class _bitwise_or_(_Operation):
    r"""In-place form of `bitwise_or`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

bitwise_or_: _bitwise_or_

class _bitwise_xor(_Elementwise):
    r"""out = self ^ other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

bitwise_xor: _bitwise_xor

class _bitwise_xor_(_Operation):
    r"""In-place form of `bitwise_xor`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

bitwise_xor_: _bitwise_xor_

class _bitwise_left_shift(_Elementwise):
    r"""out = self << other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

bitwise_left_shift: _bitwise_left_shift

class _bitwise_left_shift_(_Operation):
    r"""In-place form of `bitwise_left_shift`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

bitwise_left_shift_: _bitwise_left_shift_

class _bitwise_right_shift(_Elementwise):
    r"""out = self >> other"""

    @overload
    def __call__(_, self: _Array | _Number, other: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, other: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

bitwise_right_shift: _bitwise_right_shift

class _bitwise_right_shift_(_Operation):
    r"""In-place form of `bitwise_right_shift`: writes self and returns it."""

    def __call__(_, self: _A, other: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

bitwise_right_shift_: _bitwise_right_shift_

class _abs(_Operation):
    r"""out = |self|"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

abs: _abs

class _abs_(_Operation):
    r"""In-place form of `abs`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

abs_: _abs_

class _negative(_Operation):
    r"""out = -self"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

negative: _negative

class _negative_(_Operation):
    r"""In-place form of `negative`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

negative_: _negative_

class _positive(_Operation):
    r"""out = self, in a new array"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

positive: _positive

class _positive_(_Operation):
    r"""In-place form of `positive`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

positive_: _positive_

class _sign(_Operation):
    r"""out = -1, 0 or 1"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

sign: _sign

class _sign_(_Operation):
    r"""In-place form of `sign`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

sign_: _sign_

class _signbit(_Operation):
    r"""out = whether the sign is minus, of zeros and NaN too"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

signbit: _signbit

class _signbit_(_Operation):
    r"""In-place form of `signbit`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

signbit_: _signbit_

class _conj(_Operation):
    r"""out = the conjugate"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

conj: _conj

class _conj_(_Operation):
    r"""In-place form of `conj`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

conj_: _conj_

class _real(_Operation):
    r"""out = the real part, in a new array"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

real: _real

class _real_(_Operation):
    r"""In-place form of `real`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

real_: _real_

class _imag(_Operation):
    r"""out = the imaginary part, in a new array"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

imag: _imag

class _imag_(_Operation):
    r"""In-place form of `imag`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

imag_: _imag_

class _square(_Operation):
    r"""out = self * self"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

square: _square

class _square_(_Operation):
    r"""In-place form of `square`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

square_: _square_

class _reciprocal(_Operation):
    r"""out = 1 / self"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

reciprocal: _reciprocal

class _reciprocal_(_Operation):
    r"""In-place form of `reciprocal`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

reciprocal_: _reciprocal_

class _sqrt(_Operation):
    r"""out = the square root"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

sqrt: _sqrt

class _sqrt_(_Operation):
    r"""In-place form of `sqrt`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

sqrt_: _sqrt_

class _cbrt(_Operation):
    r"""out = the cube root, of self's sign"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

cbrt: _cbrt

class _cbrt_(_Operation):
    r"""In-place form of `cbrt`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

cbrt_: _cbrt_

class _exp(_Operation):
    r"""out = e**self"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

exp: _exp

class _exp_(_Operation):
    r"""In-place form of `exp`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

exp_: _exp_

class _exp2(_Operation):
    r"""out = 2**self"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

exp2: _exp2

class _exp2_(_Operation):
    r"""In-place form of `exp2`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

exp2_: _exp2_

class _expm1(_Operation):
    r"""out = e**self - 1, with its digits near 0"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

expm1: _expm1

class _expm1_(_Operation):
    r"""In-place form of `expm1`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

expm1_: _expm1_

class _log(_Operation):
    r"""out = the natural logarithm"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

log: _log

class _log_(_Operation):
    r"""In-place form of `log`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

log_: _log_

class _log2(_Operation):
    r"""out = the logarithm to base 2"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

log2: _log2

class _log2_(_Operation):
    r"""In-place form of `log2`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

log2_: _log2_

class _log10(_Operation):
    r"""out = the logarithm to base 10"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

log10: _log10

class _log10_(_Operation):
    r"""In-place form of `log10`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

log10_: _log10_

class _log1p(_Operation):
    r"""out = log(1 + self), with its digits near 0"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

log1p: _log1p

class _log1p_(_Operation):
    r"""In-place form of `log1p`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

log1p_: _log1p_

class _sin(_Operation):
    r"""out = the sine"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

sin: _sin

class _sin_(_Operation):
    r"""In-place form of `sin`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

sin_: _sin_

class _cos(_Operation):
    r"""out = the cosine"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

cos: _cos

class _cos_(_Operation):
    r"""In-place form of `cos`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

cos_: _cos_

class _tan(_Operation):
    r"""out = the tangent"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

tan: _tan

class _tan_(_Operation):
    r"""In-place form of `tan`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

tan_: _tan_

class _asin(_Operation):
    r"""out = the angle of this sine, from -pi/2 to pi/2"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

asin: _asin

class _asin_(_Operation):
    r"""In-place form of `asin`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

asin_: _asin_

class _acos(_Operation):
    r"""out = the angle of this cosine, from 0 to pi"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

acos: _acos

class _acos_(_Operation):
    r"""In-place form of `acos`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

acos_: _acos_

class _atan(_Operation):
    r"""out = the angle of this tangent, from -pi/2 to pi/2"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

atan: _atan

class _atan_(_Operation):
    r"""In-place form of `atan`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

atan_: _atan_

class _sinh(_Operation):
    r"""out = the hyperbolic sine"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

sinh: _sinh

class _sinh_(_Operation):
    r"""In-place form of `sinh`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

sinh_: _sinh_

class _cosh(_Operation):
    r"""out = the hyperbolic cosine"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

cosh: _cosh

class _cosh_(_Operation):
    r"""In-place form of `cosh`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

cosh_: _cosh_

class _tanh(_Operation):
    r"""out = the hyperbolic tangent"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

tanh: _tanh

class _tanh_(_Operation):
    r"""In-place form of `tanh`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

tanh_: _tanh_

class _asinh(_Operation):
    r"""out = the number of this sinh"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

asinh: _asinh

class _asinh_(_Operation):
    r"""In-place form of `asinh`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

asinh_: _asinh_

class _acosh(_Operation):
    r"""out = the number of this cosh"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

acosh: _acosh

class _acosh_(_Operation):
    r"""In-place form of `acosh`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

acosh_: _acosh_

class _atanh(_Operation):
    r"""out = the number of this tanh"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

atanh: _atanh

class _atanh_(_Operation):
    r"""In-place form of `atanh`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

atanh_: _atanh_

class _floor(_Operation):
    r"""out = the largest whole number up to self"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

floor: _floor

class _floor_(_Operation):
    r"""In-place form of `floor`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

floor_: _floor_

class _ceil(_Operation):
    r"""out = the smallest whole number from self on"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

ceil: _ceil

class _ceil_(_Operation):
    r"""In-place form of `ceil`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

ceil_: _ceil_

class _trunc(_Operation):
    r"""out = the whole part"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

trunc: _trunc

class _trunc_(_Operation):
    r"""In-place form of `trunc`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

trunc_: _trunc_

class _round(_Operation):
    r"""out = the nearest multiple of 10**-decimals, of two the even one: whole numbers by default"""

    @overload
    def __call__(_, self: _Array | _Number, decimals: int = 0, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, decimals: int = 0, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, decimals: int = 0, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

round: _round

class _round_(_Operation):
    r"""In-place form of `round`: writes self and returns it."""

    def __call__(_, self: _A, decimals: int = 0, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

round_: _round_

class _isnan(_Operation):
    r"""out = whether it is NaN"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

isnan: _isnan

class _isnan_(_Operation):
    r"""In-place form of `isnan`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

isnan_: _isnan_

class _isinf(_Operation):
    r"""out = whether it is infinite"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

isinf: _isinf

class _isinf_(_Operation):
    r"""In-place form of `isinf`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

isinf_: _isinf_

class _isfinite(_Operation):
    r"""out = whether it is a number and finite"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

isfinite: _isfinite

class _isfinite_(_Operation):
    r"""In-place form of `isfinite`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

isfinite_: _isfinite_

class _logical_not(_Operation):
    r"""out = whether it is 0"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

logical_not: _logical_not

class _logical_not_(_Operation):
    r"""In-place form of `logical_not`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

logical_not_: _logical_not_

class _bitwise_invert(_Operation):
    r"""out = ~self"""

    @overload
    def __call__(_, self: _Array | _Number, *, where: _Array | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _Array: ...
    @overload
    def __call__(_, self: _HasArray | _Number, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A | _Number, *, where: _A | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None, out: None = None) -> _A: ...

bitwise_invert: _bitwise_invert

class _bitwise_invert_(_Operation):
    r"""In-place form of `bitwise_invert`: writes self and returns it."""

    def __call__(_, self: _A, *, where: _HasArray | _Number | None = None, casting: str | None = None, order: str | None = None, dtype: DTypeLike | None = None) -> _A: ...

bitwise_invert_: _bitwise_invert_

class _sum_to(_Operation):
    r"""out = self, summed over leading dimensions and over those that `size` has as 1: what broadcasting undoes"""

    @overload
    def __call__(_, self: _Array, size: Sequence[int], *, out: None = None) -> Any: ...
    @overload
    def __call__(_, self: _HasArray, size: Sequence[int], *, out: _Out) -> _Out: ...
    @overload
    def __call__(_, self: _A, size: Sequence[int], *, out: None = None) -> Any: ...

sum_to: _sum_to
