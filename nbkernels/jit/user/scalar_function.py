"""A user's scalar function, made ready to be compiled into loops: found again on disk, with constants that stay weak.

The function is copied with other constants and globals, never changed:
- functions of `math` and NumPy that call the C library for every element become those of `transcendental` and `powers`;
- plain Python functions that it calls are compiled with it;
- where all its arguments are float32 (or shorter), Python numbers in it are float32 too, as NumPy's weak scalars are;
- where it may raise, as an index beyond an array does, it gives 0 instead, and another function says where it does.

What it reads is a constant from here on: frozen.py says when it is another function.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import json
import math
import pickle
import re
import types as python
import uuid
from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple

import numpy as np

from ...elementary import powers, transcendental
from ...elementary.real import HELPERS, KERNELS, bits, dual, floor, fma, number, tangent
from ..abi.flags import default_modes
from ..compile.lazy import Jitted, errors
from ..disk import files, levels

KNOWN = (*KERNELS, *HELPERS, fma, bits, number, floor, dual, tangent)
NAMES = ("exp", "expm1", "log", "log1p", "tanh", "hypot")
SAFE = {*KNOWN, abs, bool, complex, divmod, float, int, len, max, min, round}  # calls that do not raise
MOST = 10**6  # bytes of an array beyond which Numba compiles in its address, that no other process has
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

    In `plain` the functions that it calls are plain ones, too: for compilers other than Numba's for CPUs. `raises` says
    for which arguments `function`, that gives 0 there, would raise; it is None where there are none.
    """

    function: python.FunctionType
    plain: python.FunctionType
    results: tuple[np.dtype, ...]
    raises: Adopted | None = None


@functools.lru_cache(maxsize=1024)
@default_modes()
def adopt(function: python.FunctionType, dtypes: tuple[np.dtype, ...]) -> Adopted:
    """The function for arguments of these dtypes; a TypeError that says what Numba cannot compile."""
    narrow = all(d.kind == "f" or d.name == "bfloat16" for d in dtypes) and "float64" not in {d.name for d in dtypes}
    tried = [np.float32, None] if narrow else [None]  # a float32 cannot count or index: then numbers stay as they are
    for real in tried:
        try:
            copy = _copy(function, real, ())
            found = _typed(function, copy, dtypes, last=real is tried[-1])
        except errors.NumbaError as error:
            problem = error
            continue
        plain, results = _copy(function, real, (), _as_it_is), tuple(map(np.dtype, found.results))
        if not found.raises:
            return Adopted(copy, plain, results)
        guarded, raises = _guarded(copy, found.parts)
        return Adopted(guarded, plain, results, Adopted(raises, plain, (np.dtype(bool),)))
    raise refusal(function, dtypes, problem)


class Typed(NamedTuple):  # made by typed.py
    """What Numba finds out about a function without compiling it: names of dtypes of its results, of what it returns,
    and whether it may raise."""

    results: list[str]
    parts: list[str]
    raises: bool


def _typed(function, copy, dtypes, last) -> Typed:
    """This of the copy of a function, which is named after all that it is made of; kept on disk, for Numba compiles
    what a function calls in order to type it: 0.2 s for a relu. So is that it has no types, if it is not the `last`
    copy that is tried, whose error is told."""
    file = f"{copy.__name__[-100:]}-{'-'.join(d.name for d in dtypes)}.nbc"
    if content := _known(file):
        if known := json.loads(bytes(content)):
            return Typed(*known)
        raise errors.TypingError(f"{function.__name__} has no types")
    try:
        found = import_module("nbkernels.jit.user.typed").typed(function, copy, dtypes)
    except errors.NumbaError:
        if not last:
            _keep(file, b"null")
        raise
    _keep(file, json.dumps(found).encode())
    return found


def _known(name):
    """What a file of this name holds, in the cache or the package; None where there is none."""
    places = [levels.out] if levels.building else [files.directory(), levels.directory()]
    return next((found for place in places if place and (found := files.read(place / name))), None)


def _keep(name, content):
    if levels.building:
        files.add(levels.out / name, content)
    elif directory := files.directory():
        files.write(directory / name, content)


def refusal(function, dtypes, error) -> TypeError:
    """The error that says why Numba does not compile a function."""
    return TypeError(f"{signature(function, dtypes)} does not compile: {_reason(error)}")


def signature(function, dtypes) -> str:
    """What was asked for: the function's name, its arguments and their dtypes."""
    names = function.__code__.co_varnames
    return f"{function.__name__}({', '.join(f'{n}: {d}' for n, d in zip(names, dtypes))})"


GUARDED = """\
def {name}_guarded({names}):
    try:
        return call({names})
    except Exception:
        return zero

def {name}_raises({names}):
    try:
        call({names})
    except Exception:
        return True
    return False
"""


def _guarded(function, parts):
    """The function that gives zeros, of these dtypes, where this one raises, and the one that says where it does."""
    zeros = tuple(np.dtype(part).type(0) for part in parts)
    scope = {"call": _jitted(function), "zero": zeros if len(parts) > 1 else zeros[0]}
    scope["__name__"] = __name__
    names = ", ".join(f"p{i}" for i in range(function.__code__.co_argcount))
    exec(compile(GUARDED.format(names=names, name=function.__name__), "<nbkernels>", "exec"), scope)
    return scope[f"{function.__name__}_guarded"], scope[f"{function.__name__}_raises"]


def _reason(error) -> str:
    """Numba's message in a few lines."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    skipped = ("Failed in", "During:", "raised from", "This error may have", "There are", "- Of which", "Overload")
    lines = [line.strip() for line in text.splitlines()]
    return "\n  ".join([line for line in lines if line and not line.startswith(skipped)][:8])


def _jitted(function):
    return Jitted(function, dict(error_model="numpy", forceinline=True, boundscheck=True))


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
        if isinstance(value, list | dict | set | bytearray):
            raise errors.TypingError(f"it reads a {type(value).__name__}, which is no constant: a tuple or an array is")
        if isinstance(value, np.ndarray) and value.nbytes > MOST:
            raise errors.TypingError(f"it reads an array of {value.nbytes} bytes: {MOST} at most can be constants")
        if value is math or value is np:
            return _module(value)
        if isinstance(value, python.ModuleType) and value.__spec__ is None:  # a copy by frozen.py
            copy = python.ModuleType(value.__name__)
            copy.__dict__.update((name, replaced(member)) for name, member in _members(value))
            return copy
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


def _members(module):
    """Names and values in a copy of a module."""
    return [(name, value) for name, value in sorted(vars(module).items()) if name[:2] != "__"]


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
    given = sorted(scope)
    words = repr((code.co_names, code.co_varnames[: code.co_argcount], given)).encode()
    values = (*code.co_consts, *map(scope.get, given), *cells, defaults)
    return b"\0".join([code.co_code, words, *(_value(value, seen) for value in values)])


def _value(value, seen) -> bytes:
    """All that the machine code of a function depends on in one value that it reads."""
    called = getattr(value, "py_func", value)
    if isinstance(value, python.CodeType):
        return _described(value, {}, (), None)
    if isinstance(value, python.ModuleType):
        members = _members(value) if value.__spec__ is None else ()
        return b"\0".join([value.__name__.encode(), *(n.encode() + b"\0" + _value(v, seen) for n, v in members)])
    if not isinstance(called, python.FunctionType):
        return _pickled(value)
    if called in KNOWN or called.__code__ in seen:
        return called.__name__.encode()
    names = set(_names(called.__code__))
    own = {name: value for name, value in called.__globals__.items() if name in names}
    inner = [cell.cell_contents for cell in called.__closure__ or ()]
    return _described(called.__code__, own, inner, called.__defaults__, (*seen, called.__code__))


def _pickled(value) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception:  # nothing would tell when it is the same again
        return uuid.uuid4().bytes
