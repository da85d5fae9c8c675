"""A user's scalar function, made ready to be compiled into loops: found again on disk, with constants that stay weak.

The function is copied with other constants and globals, never changed:
- functions of `math` and NumPy that call the C library for every element become those of `transcendental` and `powers`;
- plain Python functions that it calls are compiled with it;
- where all its arguments are float32 (or shorter), Python numbers in it are float32 too, as NumPy's weak scalars are.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import math
import pickle
import re
import types as python
import uuid
from dataclasses import dataclass

import numba
import numpy as np
from numba.core import compiler, errors, typed_passes
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.np.numpy_support import as_dtype

from .. import powers, transcendental
from ..real import HELPERS, KERNELS, bits, dual, floor, fma, number, tangent
from . import dual as _dual  # noqa: F401, compiled code finds them by these
from . import overloads  # noqa: F401
from .elements import number as computed

KNOWN = (*KERNELS, *HELPERS, fma, bits, number, floor, dual, tangent)
NAMES = ("exp", "expm1", "log", "log1p", "tanh", "hypot")
REPLACED = {getattr(module, name): getattr(transcendental, name) for name in NAMES for module in (math, np)} | {
    math.erf: transcendental.erf,
    math.pow: powers.pow,
    math.atan2: transcendental.atan2,
    np.arctan2: transcendental.atan2,
    np.logaddexp: transcendental.logaddexp,
}


@dataclass(frozen=True)
class Adopted:
    """A function to compile for arguments of some dtypes, and the dtypes of what it returns.

    In `plain` the functions that it calls are plain ones, too: for compilers other than Numba's for CPUs.
    """

    function: python.FunctionType
    plain: python.FunctionType
    results: tuple[np.dtype, ...]


@functools.lru_cache(maxsize=1024)
def adopt(function: python.FunctionType, dtypes: tuple[np.dtype, ...]) -> Adopted:
    """The function for arguments of these dtypes; a TypeError that says what Numba cannot compile."""
    arguments = tuple(computed(d.name) for d in dtypes)
    narrow = all(d.kind == "f" or d.name == "bfloat16" for d in dtypes) and "float64" not in {d.name for d in dtypes}
    tried = [np.float32, None] if narrow else [None]  # a float32 cannot count or index: then numbers stay as they are
    for real in tried:
        try:
            copy = _copy(function, real, ())
            result = _inferred(copy, arguments)
        except errors.NumbaError as error:
            problem = error
            continue
        return Adopted(copy, _copy(function, real, (), _as_it_is), _dtypes(function, result, dtypes))
    raise TypeError(f"{signature(function, dtypes)} does not compile: {_reason(problem)}") from None


def signature(function, dtypes) -> str:
    """What was asked for: the function's name, its arguments and their dtypes."""
    names = function.__code__.co_varnames
    return f"{function.__name__}({', '.join(f'{n}: {d}' for n, d in zip(names, dtypes))})"


@global_compiler_lock
def _inferred(function, arguments):
    """The Numba type that a function returns, without compiling it."""
    typing, target = cpu_target.typing_context, cpu_target.target_context
    typing.refresh()
    target.refresh()
    ir = compiler.run_frontend(function)
    return typed_passes.type_inference_stage(typing, target, ir, arguments, None).return_type


def _dtypes(function, result, dtypes) -> tuple[np.dtype, ...]:
    """Dtypes of the results. A kind that the arguments have is as wide as they are, as if Python numbers were weak."""
    parts = result.types if isinstance(result, numba.types.BaseTuple) else (result,)
    joined = functools.reduce(np.promote_types, dtypes)
    results = []
    for part in parts:
        if not isinstance(part, numba.types.Number | numba.types.Boolean):
            raise TypeError(
                f"{signature(function, dtypes)} returns {part}: it should return a number, or a tuple of them"
            )
        dtype = as_dtype(numba.types.unliteral(part))
        kind = "f" if joined.name == "bfloat16" else joined.kind
        results.append(joined if dtype.kind == kind and dtype.itemsize > joined.itemsize else dtype)
    return tuple(results)


def _reason(error) -> str:
    """Numba's message in a few lines."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    skipped = ("Failed in", "During:", "raised from", "This error may have", "There are", "- Of which", "Overload")
    lines = [line.strip() for line in text.splitlines()]
    return "\n  ".join([line for line in lines if line and not line.startswith(skipped)][:8])


def _jitted(function):
    return numba.njit(function, error_model="numpy", forceinline=True)


def _as_it_is(function):
    return function


def _copy(function, real, callers, called=_jitted) -> python.FunctionType:
    """The function with its numbers as `real`, if given, and with what it names replaced; named after all of that."""
    code = function.__code__
    if code in callers:
        raise errors.TypingError(f"{function.__name__} calls itself")
    powers = any(name.endswith("POWER") for name in _operations(code))

    def constant(value):
        if real is None or type(value) not in (int, float) or (powers and type(value) is int):
            return value  # x**2 is a product, x**2.0 is not
        return real(value) if type(value) is float or real(value) == value else value

    def replaced(value):
        if value is math or value is np:
            return _module(value)
        if isinstance(value, python.FunctionType) and value not in KNOWN:
            return called(_copy(value, real, (*callers, code), called))
        if isinstance(value, python.BuiltinFunctionType | np.ufunc):
            return REPLACED.get(value, value)
        return constant(value)

    names = set(_names(code))
    scope = {name: replaced(value) for name, value in function.__globals__.items() if name in names}
    cells = [replaced(cell.cell_contents) for cell in function.__closure__ or ()]
    new = code.replace(co_consts=tuple(map(constant, code.co_consts)))
    digest = hashlib.sha256(_described(new, scope, cells, function.__defaults__)).hexdigest()[:16]
    name = "".join(c for c in function.__name__ if c.isidentifier() or c.isdigit()) + "_" + digest
    scope["__name__"] = __name__  # a module that a later process has, too: without one Numba cannot load what it kept
    closure = tuple(map(python.CellType, cells))
    return python.FunctionType(new.replace(co_name=name), scope, name, function.__defaults__, closure)


def _operations(code):
    """Names of the operations in a function; of binary ones the operator's."""
    for instruction in dis.get_instructions(code):
        yield (
            "BINARY_POWER" if instruction.opname == "BINARY_OP" and "**" in instruction.argrepr else instruction.opname
        )


def _names(code):
    """Names of globals that a function or one inside it mentions."""
    yield from code.co_names
    for value in code.co_consts:
        if isinstance(value, python.CodeType):
            yield from _names(value)


@functools.cache
def _module(module):
    """math or NumPy with REPLACED's functions: Numba reads attributes of any module."""
    copy = python.ModuleType(module.__name__)
    copy.__dict__.update(module.__dict__)
    for name, value in vars(module).items():
        if isinstance(value, python.BuiltinFunctionType | np.ufunc):
            setattr(copy, name, REPLACED.get(value, value))
    return copy


def _described(code, scope, cells, defaults, seen=()) -> bytes:
    """All that the machine code of a function depends on."""
    parts = [code.co_code, repr(code.co_names).encode(), repr(code.co_varnames[: code.co_argcount]).encode()]
    for value in (*code.co_consts, *scope.values(), *cells, defaults):
        called = getattr(value, "py_func", value)
        if isinstance(value, python.CodeType):
            parts.append(_described(value, {}, (), None))
        elif isinstance(value, python.ModuleType):
            parts.append(value.__name__.encode())
        elif not isinstance(called, python.FunctionType):
            parts.append(_pickled(value))
        elif called in KNOWN or called.__code__ in seen:
            parts.append(called.__name__.encode())
        else:
            names = set(_names(called.__code__))
            own = {name: value for name, value in called.__globals__.items() if name in names}
            inner = [cell.cell_contents for cell in called.__closure__ or ()]
            parts.append(_described(called.__code__, own, inner, called.__defaults__, (*seen, called.__code__)))
    return b"\0".join(parts)


def _pickled(value) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception:  # nothing would tell when it is the same again
        return uuid.uuid4().bytes
