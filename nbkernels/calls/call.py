"""Call: a call of the library by what its arrays look like, which can be kept as a line of JSON and made again.

Of an array it has dtype, shape, strides, and which arrays share memory; elements are not kept. Of a line nothing is run
but public operations, and functions that it names by module and name.
"""

from __future__ import annotations

import functools
import json
import sys
import warnings
from importlib import import_module
from math import prod
from types import FunctionType
from typing import NamedTuple

import numpy as np

from .. import ops
from ..dispatch import MetaArray
from ..epilogues import Epilogue
from ..fusion import Elementwise
from ..quantized.weights import linear_q
from .described import Array, Unfit, Weights, decode, describe, each, encode, leaves, shared, text, value

VERSION = 1  # of the lines
LARGEST = 1 << 31  # bytes that a call's arrays may take, or its result
OF_FUNCTIONS = {"elementwise": Elementwise, "epilogue": Epilogue}
IN_NUMPY, LINEAR_Q = "use_in_numpy", "linear_q"


class Other(np.ndarray):
    """Stands for arrays that are not exactly NumPy's."""


class Call(NamedTuple):
    """`name` is a public operation's, or a method's, as "add.reduce"; calls of what `elementwise` and `epilogue` make
    have their name, and the keyword `function`; those of NumPy's loops have IN_NUMPY, the ufunc in `args`; LINEAR_Q has
    described weights."""

    name: str
    args: tuple
    keywords: dict

    @classmethod
    def of(cls, name, /, *args, **keywords):
        """The description of a call; Unfit, with the reason, where there is none.

        >>> import numpy as np
        >>> x = np.ones((4, 8), np.float32)
        >>> str(Call.of("mm", x, x.T, out_dtype="float32"))
        "mm(float32 4x8, float32 8x4 T, out_dtype='float32')"
        """
        described = each((args, keywords), describe)
        places = shared([x for x in leaves(described) if isinstance(x, Array)])
        return cls(name, *each(described, lambda x: places[x] if isinstance(x, Array) else x))

    def arrays(self):
        return [x for x in leaves((self.args, self.keywords)) if isinstance(x, Array)]

    def weights(self):
        return [x for x in leaves((self.args, self.keywords)) if isinstance(x, Weights)]

    def dtypes(self):
        return {array.dtype for array in self.arrays()}

    def __str__(self):
        given = [*map(text, self.args), *(f"{key}={text(value)}" for key, value in self.keywords.items())]
        return f"{self.name}({', '.join(given)})"

    def line(self):
        """The call as a line of JSON."""
        content = {"nbkernels": VERSION, "call": self.name, "args": encode(list(self.args))}
        return json.dumps(content | ({"keywords": encode(self.keywords)} if self.keywords else {}))

    @classmethod
    def parse(cls, line):
        """The call that a line holds; Unfit, with the reason, where it holds none."""
        try:
            read = json.loads(line)
        except (ValueError, RecursionError):
            raise Unfit("no JSON") from None
        if not isinstance(read, dict) or "nbkernels" not in read:
            raise Unfit("no call of nbkernels")
        if read["nbkernels"] != VERSION:
            raise Unfit(f"a line of version {read['nbkernels']!r}, not {VERSION}")
        if "unfit" in read:
            raise Unfit(f"not recorded: {read['unfit']}")
        name, args, keywords = read.get("call"), read.get("args", []), read.get("keywords", {})
        if not (isinstance(name, str) and isinstance(args, list) and isinstance(keywords, dict)):
            raise Unfit("a call has a name, args and keywords")
        try:
            made = cls(name, tuple(decode(args)), {key: decode(value) for key, value in keywords.items()})
            made.function()
            return made
        except (TypeError, ValueError, KeyError, OverflowError, RecursionError, ImportError) as error:
            raise Unfit(f"{name}: {error}") from None

    def function(self):
        """What is called, with the keywords that say so taken away."""
        if self.name == IN_NUMPY:
            return import_module("nbkernels.in_numpy.inner_loops").warm, self.keywords  # Numba comes with it
        if self.name == LINEAR_Q:
            return linear_q, self.keywords
        if self.name in OF_FUNCTIONS:
            keywords = dict(self.keywords)
            return operation_of(self.name, keywords.pop("function", None), *keywords.pop("dtypes", ())), keywords
        name, _, method = self.name.partition(".")
        found = getattr(ops, name, None) if name in ops.OPERATIONS else None
        if method:
            found = getattr(found, method, None) if method in ("reduce", "accumulate", "outer", "at") else None
        if found is None:
            raise Unfit(f"there is no operation {self.name}")
        return found, self.keywords

    def __call__(self):
        """Make such arrays, of ones, and the call; Unfit where that takes more memory than LARGEST."""
        function, args, keywords = self.made()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return function(*args, **keywords)

    def made(self):
        """The function, and such arguments."""
        function, keywords = self.function()
        memory = self.memory()
        self.check_result(function, keywords)
        args, keywords = each((list(self.args), keywords), lambda x: made(x, memory, 1))
        if self.name.endswith(".at"):  # what is an index is in range
            args[1] = each(self.args[1], lambda x: made(x, memory, 0))
        return function, args, keywords

    def memory(self):
        """Bytes for the arrays, by the numbers of what they share."""
        ends = {}
        for array in self.arrays():
            begin, end = array.span()
            if begin < 0:
                raise Unfit(f"an array begins {-begin} bytes before its memory")
            ends[array.memory] = max(end, ends.get(array.memory, 0))
        total = sum(ends.values()) + sum(weights.bytes() for weights in self.weights())
        if total > LARGEST:
            raise Unfit(f"its arrays take {total:,} bytes; at most {LARGEST:,} are made")
        return {key: aligned(end) for key, end in ends.items()}

    def check_result(self, function, keywords):
        """By the same call of arrays without data; where that raises, so does the call itself."""
        if self.name.endswith(".at") or self.name == IN_NUMPY:
            return
        if self.name == LINEAR_Q:
            size = sum(
                4 * n * (prod(x.shape) // k) for n, k in (w.shape for w in self.weights()) for x in self.arrays()
            )
        elif self.name.endswith(".outer"):
            size = 16 * prod(prod(array.shape) for array in self.arrays())
        else:
            args, keywords = each((list(self.args), keywords), ghost)
            try:
                result = function(*args, **keywords)
            except Exception:  # the call itself will raise it, and be named
                return
            results = result if isinstance(result, tuple) else (result,)
            size = sum(prod(x.shape) * x.dtype.itemsize for x in results if isinstance(x, MetaArray))
        if size > LARGEST:
            raise Unfit(f"its result takes {size:,} bytes; at most {LARGEST:,} are made")


def ghost(x):
    """An array without data, or another value, that a description is of."""
    return MetaArray(x.shape, x.dtype, x.strides) if isinstance(x, Array) else value(x)


def aligned(size):
    """So many bytes from an address that is a multiple of 64."""
    block = np.empty(size + 64, np.uint8)
    start = -block.ctypes.data % 64
    return block[start : start + size]


def made(x, memory, fill):
    """The array, or another value, that a description is of."""
    if not isinstance(x, Array):
        return value(x)
    array = np.ndarray(x.shape, x.dtype, memory[x.memory], x.offset, x.strides)
    array[...] = fill
    array.flags.writeable = not x.readonly
    return array if x.exact else array.view(Other)


def named(function):
    """ "module:name" of a function that can be imported by it; Unfit for any other."""
    module, name = function.__module__, function.__qualname__
    spec = getattr(sys.modules.get(module), "__spec__", None)
    told = f"the function {name} ({function.__code__.co_filename}:{function.__code__.co_firstlineno})"
    if module == "__main__" and spec is None:
        raise Unfit(f"{told} is of a script: only functions of modules can be imported again")
    path = f"{spec.name if module == '__main__' else module}:{name}"
    if "<" in name or code_of(attribute(sys.modules.get(module), name)) is not function.__code__:
        raise Unfit(f"{told} is no {path}: only what a module holds by its name can be imported again")
    return path


@functools.cache
def operation_of(kind, path, *dtypes):
    """What `elementwise` or `epilogue` makes of the function that `named` tells so; always the same, as a program's."""
    module, _, name = str(path).partition(":")
    try:
        function = plain(attribute(import_module(module), name))
    except Exception as error:
        raise Unfit(f"the module of {path} cannot be imported: {error}") from None
    if not isinstance(function, FunctionType):
        raise Unfit(f"there is no function {path}")
    return OF_FUNCTIONS[kind](function, **({"dtypes": tuple(map(value, dtypes))} if dtypes else {}))


def attribute(owner, name):
    for part in name.split("."):
        owner = getattr(owner, part, None)
    return owner


def plain(x):
    """The Python function of an operation that was made of it, or of a jitted function."""
    x = getattr(x, "apply", x)
    x = x.function if isinstance(x, Elementwise) else x
    return getattr(x, "py_func", x)


def code_of(x):
    return getattr(plain(x), "__code__", None)
