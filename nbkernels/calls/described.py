"""Values of a call described: arrays by dtype, shape, strides and the memory that they share; and the same as JSON."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import numpy as np

from ..dispatch import arrays, keys, layout
from ..dtypes import DTYPES, asked
from ..folds import NOTHING
from ..quantized.weights import Quantized

ALIGNED = 16  # bytes modulo which an array's address is kept: what new arrays are aligned to
PLAIN = (bool, int, float, complex, str, type(None), type(...))


class Unfit(ValueError):
    """A call that cannot be described, or a description that no call can be made of."""


class Array(NamedTuple):
    """Strides in bytes; `memory` numbers what arrays share, `offset` is where in it the first element lies. One that is
    not `exact` is of another library, or of a subclass, which the library's general path takes."""

    dtype: str
    shape: tuple
    strides: tuple
    memory: int = 0
    offset: int = 0
    readonly: bool = False
    exact: bool = True

    def __str__(self):
        size = np.dtype(self.dtype).itemsize
        turned = layout.c_strides(self.shape[::-1], size)[::-1]
        order = "" if self.dense() else " T" if self.strides == turned else f" strides {self.strides}"
        shape = "x".join(map(str, self.shape)) or "0-d"
        return f"{self.dtype} {shape}{order}{' read-only' * self.readonly}{' not NumPy' * (not self.exact)}"

    def dense(self):
        return self.strides == layout.c_strides(self.shape, np.dtype(self.dtype).itemsize)

    def span(self):
        """Where its elements begin and end in its memory."""
        if 0 in self.shape:
            return self.offset, self.offset
        far = [(n - 1) * stride for n, stride in zip(self.shape, self.strides)]
        size = np.dtype(self.dtype).itemsize
        return self.offset + sum(x for x in far if x < 0), self.offset + sum(x for x in far if x > 0) + size


class Weights(NamedTuple):
    """Weights that `quantize` made: the dtype of values, (n, k), steps of a group, the dtype of scales, whether there
    are zero points."""

    dtype: str
    shape: tuple
    group: int
    scales: str
    zeros: bool

    def __str__(self):
        zeros = ", zero points" * self.zeros
        return f"{self.dtype} weights {'x'.join(map(str, self.shape))} by {self.group}, scales {self.scales}{zeros}"

    def bytes(self):
        """Bytes of values, one each, and of scales as float32."""
        (n, k), group = self.shape, self.group
        return n * k + 4 * n * -(-k // group)

    def made(self):
        """Make weights of zeros."""
        (n, k), groups = self.shape, -(-self.shape[1] // self.group)
        values = np.zeros((n, k if self.dtype == "int8" else (k + 1) // 2), np.int8)
        zeros = np.zeros((n, groups), np.int8) if self.zeros else None
        group = None if self.group >= k else self.group
        scales = np.ones((n, groups), value(Dtype(self.scales)))
        return Quantized(values, scales, zeros, dtype=self.dtype, group=group, k=k)


class Number(NamedTuple):
    """NumPy's number of a dtype."""

    dtype: str
    value: object


class Dtype(NamedTuple):
    name: str


def describe(x):
    """The description of a value that is no list, tuple or slice of others."""
    if type(x) in PLAIN or isinstance(x, Array | Number | Dtype | Weights):
        return x
    if isinstance(x, Quantized):
        return Weights(x.dtype, x.shape, x.group, x.factors.dtype.name, x.offsets is not None)
    if x is NOTHING:
        return False
    adapter = arrays.adapter_of(type(x))
    if adapter is None:
        if asked(x) in DTYPES:
            return Dtype(asked(x))
        raise Unfit(f"what it is given is {type(x).__name__}")
    if adapter.scalar:
        item = x.item()
        return Number(x.dtype.name, item if type(item) in PLAIN else float(x))
    if adapter.device(x).key != keys.CPU:
        raise Unfit(f"its arrays are on {adapter.device(x)}")
    spec = adapter.spec(x)
    dtype, strides = asked(spec.dtype), spec.strides
    if dtype not in DTYPES or not getattr(spec.dtype, "isnative", True):
        raise Unfit(f"its arrays are {spec.dtype}")
    strides = layout.c_strides(spec.shape, np.dtype(dtype).itemsize) if strides is None else strides
    return Array(dtype, tuple(spec.shape), tuple(strides), 0, adapter.address(x), bool(adapter.flaw(x)),
                 adapter.exact(type(x)))  # fmt: skip


def shared(described):
    """{array: the same by the memory that it shares with others, in place of its address}."""
    spans = sorted({array.span() for array in described})
    blocks = []
    for begin, end in spans:
        if blocks and begin < blocks[-1][1]:
            blocks[-1][1] = max(end, blocks[-1][1])
        else:
            blocks.append([begin, end])
    order, places = {}, {}
    for array in described:
        begin, _ = array.span()
        start = max(block[0] for block in blocks if block[0] <= begin)
        number = order.setdefault(start, len(order))
        places[array] = array._replace(memory=number, offset=array.offset - start + start % ALIGNED)
    return places


def value(x):
    """What a description of a value that is no array is of."""
    if isinstance(x, Weights):
        return x.made()
    if isinstance(x, Number):
        return np.dtype(x.dtype).type(x.value)
    return np.dtype(x.name) if isinstance(x, Dtype) else x


def text(x):
    if isinstance(x, Dtype):
        return x.name
    if isinstance(x, Number):
        return f"{x.dtype}({x.value})"
    if isinstance(x, Array | Weights):
        return str(x)
    if type(x) is list:
        return f"[{', '.join(map(text, x))}]"
    if type(x) is tuple:
        return f"({', '.join(map(text, x))}{',' * (len(x) == 1)})"
    return f"{text(x.start)}:{text(x.stop)}:{text(x.step)}" if type(x) is slice else repr(x)


def each(x, function):
    """A copy of nested lists, tuples, dicts and slices with function(value) in place of every value in them."""
    if type(x) in (list, tuple):
        return type(x)(each(part, function) for part in x)
    if type(x) is dict:
        return {key: each(part, function) for key, part in x.items()}
    if type(x) is slice:
        return slice(*(each(part, function) for part in (x.start, x.stop, x.step)))
    return function(x)


def leaves(x):
    found = []
    each(x, found.append)
    return found


# -- the same as JSON -------------------------------------------------------------------------------------------------


def encode(x):
    """Lists are lists; what JSON has not is an object with one distinguishing key."""
    if isinstance(x, Array):
        more = {} if x.dense() else {"strides": x.strides}
        more |= {"memory": [x.memory, x.offset]}
        more |= {"readonly": True} if x.readonly else {}
        return {"array": x.dtype, "shape": x.shape} | more | ({} if x.exact else {"exact": False})
    if isinstance(x, Weights):
        return {"weights": x.dtype} | {name: getattr(x, name) for name in x._fields[1:]}
    if isinstance(x, Number):
        return {"number": x.dtype, "value": encode(x.value)}
    if isinstance(x, Dtype):
        return {"dtype": x.name}
    if type(x) is complex:
        return {"complex": [x.real, x.imag]}
    if type(x) is tuple:
        return {"tuple": list(map(encode, x))}
    if type(x) is slice:
        return {"slice": [encode(part) for part in (x.start, x.stop, x.step)]}
    if type(x) is dict:
        return {key: encode(part) for key, part in x.items()}
    return {"ellipsis": True} if x is ... else list(map(encode, x)) if type(x) is list else x


def whole(x, least=None):
    if type(x) is not int or (least is not None and x < least):
        raise Unfit(f"{x!r} should be a whole number{'' if least is None else f' from {least}'}")
    return x


def known(name):
    """The name of a dtype, if it is one that the library has."""
    if name not in DTYPES:
        raise Unfit(f"{name!r} should be one of {', '.join(DTYPES)}")
    if name == "bfloat16":
        import_module("ml_dtypes")
    return name


def decode(x):
    if type(x) is list:
        return list(map(decode, x))
    if type(x) is not dict:
        return x
    (key, first), *_ = x.items()
    if key == "array":
        shape = tuple(whole(n, 0) for n in x["shape"])
        dense = layout.c_strides(shape, np.dtype(known(first)).itemsize)
        strides = tuple(whole(n) for n in x.get("strides", dense))
        if len(strides) != len(shape):
            raise Unfit(f"a shape {shape} has as many strides, not {strides}")
        memory, offset = (whole(n, 0) for n in x.get("memory", (0, 0)))
        return Array(first, shape, strides, memory, offset, bool(x.get("readonly")), bool(x.get("exact", True)))
    if key == "weights":
        n, k = (whole(size, 1) for size in x["shape"])
        return Weights(first, (n, k), whole(x["group"], 1), known(x["scales"]), bool(x["zeros"]))
    if key == "number":
        return Number(known(first), decode(x["value"]))
    if key == "dtype":
        return Dtype(known(first))
    kinds = {"complex": lambda: complex(*first), "tuple": lambda: tuple(map(decode, first)),
             "slice": lambda: slice(*map(decode, first)), "ellipsis": lambda: ...}  # fmt: skip
    if key not in kinds:
        raise Unfit(f"nothing is encoded as {key!r}")
    return kinds[key]()
