"""asarray(): NumPy arrays whose operators and ufuncs run the kernels of this library, and NumPy's where it has none."""

from __future__ import annotations

from importlib import import_module
from types import MethodType

import numpy as np

from . import numpy_functions, ops
from .dispatch import operators
from .dtypes import COMPARISONS, NUMBERS, PARTS, known, ufunc
from .numpy_functions import NOTHING_ASKED, asked_of_faults
from .operations import ELEMENTWISE
from .watch import HERE, NUMPY, Call, current


def _rint(x, **keywords):
    """NumPy's: of integers a float, where `round` keeps their dtype."""
    if "dtype" not in keywords and np.result_type(x).kind in "iu":
        keywords["dtype"] = np.rint.resolve_dtypes((np.result_type(x), None))[1]
    return ops.round(x, **keywords)


FUNCTIONS = {ufunc(name): getattr(ops, name) for name in ELEMENTWISE if name not in PARTS} | numpy_functions.UFUNCS
FUNCTIONS[np.rint] = _rint
METHODS = ("reduce", "accumulate", "outer", "at")
OPERATORS_OF = operators.COMPARISONS | {"eq": "equal", "ne": "not_equal"} | {
    name: operators.SYMBOLS[name] for name in ("add", "sub", "mul", "truediv", "matmul")
}  # fmt: skip
AT_ONCE = frozenset((int, float, complex))
CALLS = "nbkernels.cpu.elementwise.fast"
PRODUCTS = "nbkernels.cpu.gemv.vectors"
OPERATORS = "nbkernels.cpu.elementwise.operators"
MASKED = "a masked array, whose mask would be lost: pass x.filled(value) or x.data"


class Array(np.ndarray):
    """An ndarray that computes here; what comes out of it is one as well. See `asarray`."""

    __array_priority__ = 1.0  # above ndarray: what np.concatenate makes of both is one

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **keywords):
        inputs = [_plain(x) for x in inputs]
        subok = keywords.pop("subok", True)
        if out is not None:
            keywords["out"] = tuple(map(_plain, out))
        result, why = _here(ufunc, method, inputs, keywords)
        log = current()
        if log is not None:
            log.append(Call(_name(ufunc, method), NUMPY if why else HERE, why))
        if why:
            _unmasked(ufunc, (*inputs, *(out or ())))
            result = _numpys(ufunc, method, inputs, keywords)
        if out is None and not subok:
            return result
        if out is None and type(result) is not tuple:
            return _wrapped(result)
        results = result if isinstance(result, tuple) else (result,)
        given = [_wrapped(r) if o is None else o for r, o in zip(results, out or [None] * len(results))]
        return tuple(given) if isinstance(result, tuple) else given[0]

    def round(self, decimals=0, out=None):
        """np.round of it, to decimals by powers of ten."""
        result, why = numpy_functions.attempt(np.round, (_plain(self), decimals, _plain(out)), {})
        if (log := current()) is not None:
            log.append(Call("round", NUMPY if why else HERE, why))
        if why:
            result = super().round(decimals, out)
        return _wrapped(result) if out is None else out

    def __array_namespace__(self, *, api_version=None):
        """`nbkernels.array_api`, for code that is written by the array API standard."""
        np.ndarray.__array_namespace__(self, api_version=api_version)  # its error for a version that is none
        return import_module("nbkernels.array_api")

    def __getattr__(self, name):
        """The operations of the table that are declared with the variant "method"; ndarray's own methods come first."""
        function = None if name[:2] == "__" else ops.LIBRARY.methods().get(name)
        if function is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return MethodType(function, self)

    def __array_function__(self, function, types, args, keywords):
        log = current()
        if any(issubclass(each, np.ma.MaskedArray) for each in types):
            raise TypeError(f"{function.__name__}: {MASKED}")
        result, why = None, "it is no ufunc"
        if function in numpy_functions.FUNCTIONS:
            plain = {key: _deep(x) for key, x in keywords.items()}
            result, why = numpy_functions.attempt(function, _deep(args), plain)
        if not why:
            if log is not None:
                log.append(Call(function.__name__, HERE))
            out = keywords.get("out", args[2] if function is np.dot and len(args) > 2 else None)
            return _wrapped(result) if out is None else out
        before = 0 if log is None else len(log)
        result = super().__array_function__(function, types, args, keywords)
        if log is not None and len(log) == before:  # else its ufuncs say where they ran
            log.append(Call(function.__name__, NUMPY, why))
        return result


def _operator(symbol, op, turned=False, in_place=False):
    """An operator of Array: compiled code does what it can at once, where nobody watches, errstate asks for nothing and
    the kernels are the library's own; the ufunc does the rest."""
    slow, own, operation = getattr(np.ndarray, symbol), f"{op}_fast", getattr(ops, op).op
    find = operation.entries.get
    trusted = fast = None

    def method(self, other):
        nonlocal trusted, fast
        there = find(np.ndarray)
        if there is not trusted or there is None or current() is not None or asked_of_faults() is not NOTHING_ASKED:
            if there is None:
                operation.enrol((np.ndarray, np.ndarray))
            if trusted is None:
                rooms = import_module(PRODUCTS if op == "matmul" else CALLS), import_module(OPERATORS)
                trusted = getattr(rooms[0], own)
                fast = rooms[1].product(Array) if op == "matmul" else rooms[1].operator(op, Array)
            return slow(self, other)
        kind = type(other)
        if kind is np.ndarray:
            other = other.view(Array)
        elif kind is not Array and (kind not in AT_ONCE or op == "matmul"):
            return slow(self, other)
        if in_place:
            result = fast(self, other, self)
        else:
            result = fast(other, self) if turned else fast(self, other)
        return slow(self, other) if result is None else result

    method.__name__, method.__qualname__ = symbol, f"Array.{symbol}"
    return method


for _name, _op in OPERATORS_OF.items():
    setattr(Array, f"__{_name}__", _operator(f"__{_name}__", _op))
    if _op not in COMPARISONS:
        setattr(Array, f"__r{_name}__", _operator(f"__r{_name}__", _op, turned=True))
        if _op != "matmul":
            setattr(Array, f"__i{_name}__", _operator(f"__i{_name}__", _op, in_place=True))


def _plain(x):
    return x.view(np.ndarray) if type(x) is Array or isinstance(x, Array) else x


def _deep(x):
    """Arguments of a function, lists of arrays too, as plain arrays."""
    return type(x)(map(_deep, x)) if type(x) in (list, tuple) else _plain(x)


def _unmasked(ufunc, operands):
    """Raise where an operand has a mask, which a ufunc may lose."""
    if any(isinstance(x, np.ma.MaskedArray) for x in operands):
        raise TypeError(f"{ufunc.__name__}: {MASKED}")


def _wrapped(x):
    return x.view(Array) if type(x) is np.ndarray else x


def _name(ufunc, method):
    return ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"


def _here(ufunc, method, inputs, keywords):
    """(result, "") of the call by this library, or (None, why), with nothing written, where NumPy can do it or says why
    not."""
    function, outs = FUNCTIONS.get(ufunc), keywords.get("out", ())
    if method != "__call__":
        function = getattr(function, method, None) if method in METHODS else None
    elif ufunc.__name__ == "clip" and ufunc.nin == 3:  # which NumPy gives no public name
        function = numpy_functions.clip
    if function is None:
        return None, f"nbkernels has no {_name(ufunc, method)}"
    if ufunc.identity is not None and keywords.get("initial", 0) is None:
        return None, "initial=None takes away the identity"  # to nbkernels it is the identity
    if not numpy_functions.faults_are_quiet():
        return None, "np.errstate asks for more than warnings"
    if not all(map(_ours, (*inputs, *outs))):
        return None, f"an operand is {_described(next(x for x in (*inputs, *outs) if not _ours(x)))}"
    try:
        return function(*inputs, **(keywords | {"out": outs[0]} if outs else keywords)), ""
    except (numpy_functions.Declined, TypeError, ValueError, NotImplementedError) as error:
        return None, str(error) or type(error).__name__


def _described(x):
    return f"{type(x).__name__} of {x.dtype}" if hasattr(x, "dtype") else f"a {type(x).__name__}"


def _numpys(ufunc, method, inputs, keywords):
    """The call by NumPy. A mask of a comparison with a Python int is applied here: NumPy 2.4 ends the process where the
    array's dtype cannot hold that int."""
    mask = keywords.get("where", True)
    if method != "__call__" or ufunc.__name__ not in COMPARISONS or mask is True or int not in map(type, inputs):
        return getattr(ufunc, method)(*inputs, **keywords)
    result = np.asarray(ufunc(*inputs, **{k: v for k, v in keywords.items() if k not in ("where", "out")}))
    (out,) = keywords.get("out", (None,))
    into = np.empty(np.broadcast_shapes(result.shape, np.shape(mask)), result.dtype) if out is None else out
    np.copyto(into, result, casting=keywords.get("casting", "same_kind"), where=mask)
    return into if out is not None else into[()]


def _ours(x) -> bool:
    """Whether an operand is a number, or of NumPy's and of a dtype that the library knows."""
    kind = type(x)
    return kind in NUMBERS or ((kind is np.ndarray or isinstance(x, np.generic)) and known(x.dtype))


def asarray(x, dtype=None) -> Array:
    """x as an ndarray whose operators and ufunc calls run here: `@`, `+`, `np.exp`, `np.maximum.reduce` ..., and so do
    `np.dot`, `inner`, `tensordot`, `einsum` of two, `linalg.multi_dot`, `where`, `clip`, `round`, `mean` and
    `var` of it.

    No copy is made of an array of this dtype. Everything else is NumPy's: other ufuncs, dtypes that the library has
    not, functions such as `np.concatenate` and `np.linalg.norm`; `nbkernels.watch` tells. Where `np.errstate` asks for
    more than warnings, NumPy does the call; where it asks for them, kernels warn of faults of integers, and not of
    those of floats. Raises TypeError for a masked array, also in a list; so do calls that one is an operand of.

    >>> import numpy as np, nbkernels
    >>> x = nbkernels.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> x @ x + 1
    Array([[ 8., 11.],
           [16., 23.]])
    >>> np.sqrt(x).sum()
    np.float64(6.146264369941973)
    """
    if _masked(x):
        raise TypeError(f"asarray: {MASKED}")
    return np.asarray(x, dtype).view(Array)


def _masked(x) -> bool:
    """Whether x, or a part of a list, is a masked array."""
    if isinstance(x, list | tuple):
        return any(isinstance(part, list | tuple | np.ndarray) and _masked(part) for part in x)
    return isinstance(x, np.ma.MaskedArray)
