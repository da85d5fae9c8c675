"""explain(function, ...): what a call would run on, as a record that prints; no kernel runs, and nothing is written.

>>> import numpy as np, nbkernels
>>> found = nbkernels.explain(nbkernels.add, np.ones((4, 6)), np.ones(6))
>>> print(found.op, found.kernel, found.flops, found.bytes)
add nbkernels.cpu.elementwise.elementwise:add 24 432
"""

from functools import reduce
from importlib import import_module
from math import prod
from operator import mul
from typing import NamedTuple

from .dispatch import arrays, keys, views
from .dispatch.errors import ArgumentError, describe
from .dispatch.metas import Ghost
from .dispatch.op import each
from .dispatch.run import check_target, foreseen
from .dispatch.traced import Traced, Tracing, bare


class Explanation(NamedTuple):
    """One call: the row of the table that chose its kernel, what the kernel would do, and the parts of a composite.

    `bytes` counts each element that is read or written once; `flops` additions and multiplications, or the elements of
    an element-wise operation; both are the sums of a composite's parts. `code` is the compiled function that does most
    of the work, and where it is: compiled, cached or packaged where this process has it, else in the cache, packaged or
    to be compiled. A field that the kernel does not tell is None.
    """

    op: str
    device: str = ""
    kernel: str = ""
    row: str = ""
    fast: str | None = None
    result: str = ""
    path: str | None = None
    mode: str | None = None
    tile: str | None = None
    code: str | None = None
    layout: str | None = None
    threads: int | None = None
    copies: tuple = ()
    temporaries: tuple = ()
    bytes: int | None = None
    flops: int | None = None
    parts: tuple = ()

    def __str__(self):
        lines = [self.op, *(f"  {name:12}{value}" for name, value in self._facts())]
        for part in self.parts:
            lines += ["  " + line for line in str(part).splitlines()]
        return "\n".join(lines)

    def _facts(self):
        """(name, text) of what is known."""
        for name in ("device", "kernel", "row", "fast", "result", "path", "mode", "tile", "code", "layout", "threads"):
            if getattr(self, name) not in (None, ""):
                yield name, str(getattr(self, name))
        for name in ("copies", "temporaries"):
            if not self.parts:
                yield name, "; ".join(getattr(self, name)) or "none"
        for name in ("bytes", "flops"):
            if getattr(self, name) is not None:
                yield name, f"{getattr(self, name):,}"

    def _repr_html_(self):
        """A table for each part, as notebooks show it."""
        from tabulate import tabulate

        table = tabulate(self._facts(), headers=[self.op, ""], tablefmt="html", disable_numparse=True)
        return "\n".join([table, *(part._repr_html_() for part in self.parts)])


class Watch:
    """The mode: a call becomes a record, its result an array without data that lives where the real one would."""

    def __init__(self):
        self.records = []

    def made(self, x):
        """Nothing is kept of what a composite makes."""

    def empty(self, like, shape, dtype, strides):
        return Ghost(shape, dtype, strides, arrays.adapter_for(like).device(like))

    def call(self, op, row, args, out, in_place):
        name = op.named(args, in_place)
        slots, operands = op.bind(name, list(args))
        for operand in operands:
            adapter = arrays.adapter_for(bare(operand.value))
            if adapter.intercept is not None and adapter.hands_on and not isinstance(adapter, Tracing):
                what = f"explain: {operand.name} is a {adapter.name} array, which has no kernels of its own"
                raise ArgumentError(f"{what}: explain {name} of its chunks")
        if not (row.row.writes or (op.structured and row.reason in ("fallback", "structured"))):
            raise NotImplementedError(f"explain: {name} runs a {row.reason} kernel, whose result cannot be predicted")
        spec = foreseen(op, name, each(slots, lambda o: o.spec))
        target = None if out is None else op.target(name, out, in_place)
        lead = op.lead(name, operands, target)
        if target is not None:
            check_target(op, name, target, spec, in_place)
        strides = spec.strides or views.layout.c_strides(spec.shape, spec.dtype.itemsize)
        to = bare(out) if out is not None else Ghost(spec.shape, spec.dtype, strides, lead.device)
        where = f"{row.key}: {row.reason}, registered at {row.row.where}"
        record = dict(op=name, device=str(lead.device), kernel=row.row.kernel_name, row=where,
                      fast=fast(op, row, args, out), result=f"{spec.shape} {spec.dtype}")  # fmt: skip
        if row.reason in keys.COMPOSITES:
            inside = Watch()
            watched = each(slots, lambda o: Traced(bare(o.value), inside))
            row.row.load()(Traced(to, inside), *(watched[i] for i in op.kernel_arguments))
            parts = tuple(inside.records)
            record |= dict(parts=parts, bytes=total(parts, "bytes"), flops=total(parts, "flops"))
        elif row.reason != "structured":
            with arrays.adapter_for(bare(lead.value)).limited():
                record |= self.facts(op, row, slots, operands, to)
        self.records.append(Explanation(**record))
        return Traced(to, self) if out is None else out

    def apply(self, function, args, out, where, shape, dtypes):
        arrays_of = [x for x in (*args, where) if isinstance(x, Traced)]
        like = arrays_of[0].value if arrays_of else bare(out)
        device = arrays.adapter_for(like).device(like)
        to = out if out is not None else Traced(Ghost(shape, dtypes[0], None, device), self)
        size = sum(touched(views.spec(x)) for x in (*arrays_of, to))
        self.records.append(Explanation(function.__name__, str(device), "a function of its elements", bytes=size,
                                        result=f"{shape} {dtypes[0]}", flops=prod(shape)))  # fmt: skip
        return to

    @staticmethod
    def facts(op, row, slots, operands, to):
        """What the room of the kernel tells: nbkernels/cpu/explain.py or nbkernels/cuda/explain.py."""
        taken = [each([slots[i]], lambda o: plain(o.value))[0] for i in op.kernel_arguments]
        size = sum(touched(spec) for spec in (views.spec(to), *(operand.spec for operand in operands)))
        room = ".".join(row.row.kernel_name.partition(":")[0].split(".")[:2])
        if room not in ("nbkernels.cpu", "nbkernels.cuda"):
            return {"bytes": size}
        told = import_module(f"{room}.explain").facts(op.schema.name, op.elementwise, plain(to), taken)
        return {"bytes": size} | {k: tuple(v) if isinstance(v, list) else v for k, v in told.items()}


def plain(x):
    """What a kernel would get: a view of an array that has memory, and of others what they say of themselves."""
    x = bare(x)
    adapter = arrays.adapter_for(x)
    if isinstance(x, Ghost) or adapter.device(x).key not in (keys.CPU, keys.CUDA):
        return adapter.spec(x)
    return adapter.view(x)


def touched(spec):
    """Bytes of the elements that an array has, those that strides of 0 repeat counted once."""
    sizes = (1 if stride == 0 else size for size, stride in zip(spec.shape, spec.strides, strict=True))
    return reduce(mul, sizes, spec.dtype.itemsize) if 0 not in spec.shape else 0


def total(parts, name):
    """The sum over parts, or None where one does not tell."""
    found = [getattr(part, name) for part in parts]
    return None if None in found else sum(found)


def fast(op, row, args, out):
    """The fast path that is asked first, or None where the types of the arguments have none."""
    given = [bare(x) for x in (*(args[i] for i in op.tensors), out)]
    exact = [x is None or type(x) in (int, float) or arrays.adapter_for(x).exact(type(x)) for x in given]
    return row.row.fast if row.row.fast and all(exact) and not any(isinstance(x, Ghost) for x in given) else None


def explain(function, *args, **kwargs):
    """What function(*args, **kwargs) would run: an Explanation, of a function of several calls one with `parts`.

    Arrays are looked at, never read; calls raise what they would raise. The function is an op, or one of your own that
    is written over ops and views.
    """
    if not callable(function):
        raise TypeError(f"explain: a function is needed, not {describe(function)}")
    watch = Watch()

    def traced(x):
        return Traced(x, watch) if views.is_array(x) else x

    function(*(traced(x) for x in args), **{name: traced(x) for name, x in kwargs.items()})
    if len(watch.records) == 1:
        return watch.records[0]
    parts = tuple(watch.records)
    name = getattr(function, "__name__", str(function))
    return Explanation(name, parts=parts, bytes=total(parts, "bytes"), flops=total(parts, "flops"))
