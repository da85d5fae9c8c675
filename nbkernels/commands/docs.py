"""docs/ops.md, written from the table of operations: `python -m nbkernels docs docs/ops.md`."""

import ast
import contextlib
import functools
import importlib
import inspect
import itertools

import numpy as np

from nbkernels.dispatch import MetaArray, keys
from nbkernels.ops import LIBRARY, OPERATIONS

with contextlib.suppress(ImportError):
    import ml_dtypes  # noqa: F401 (tells NumPy of bfloat16)

HEAD = """\
# The operations

Written by `python -m nbkernels docs docs/ops.md` from the table of operations, `nbkernels/ops.py`; not to be edited.
Dtypes are those that all array arguments may share; behind an arrow, what comes out where that is another one.
Docstrings, `help(nbkernels.addmm)`, have errors and examples; `python -m nbkernels table addmm` prints all kernels.
"""

SHAPES = (3, 3), (2, 3, 3), (3,)
PLAIN = {"Scalar": 2, "float": 0.5, "int": 0, "bool": False, "str": "", "int[]": ()}
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128"


def examples(op, make):
    """Argument lists in the schema's order that the op's shape rule takes; `make(shape)` makes each array.

    Optional arguments have their defaults; the arrays have one, two and three dimensions, in all combinations.
    """
    needed = [argument for argument in op.arguments if argument.default is None]
    arrays = sum(1 + argument.type.is_list for argument in needed if argument.type.base == "Tensor")
    for shapes in itertools.product(SHAPES, repeat=arrays):
        left = iter(shapes)
        args = [argument.value for argument in op.arguments]
        for i, argument in enumerate(op.arguments):
            if argument.default is None and argument.type.base == "Tensor":
                args[i] = [make(next(left)), make(next(left))] if argument.type.is_list else make(next(left))
            elif argument.default is None:
                args[i] = PLAIN[str(argument.type)]
        metas = [MetaArray(x.shape, x.dtype, x.strides) if hasattr(x, "strides") else x for x in args]
        try:
            op.call(metas)
        except (TypeError, ValueError, OverflowError):
            continue
        yield args


def result(op, dtype):
    """Dtype that comes out of arrays of `dtype`, or None where the op has no rule for it."""
    args = next(examples(op, lambda shape: MetaArray(shape, dtype)), None)
    return None if args is None else op.call(args).dtype


def dtypes(op):
    """`float32, float64; int32, int64 → float64`: what arrays may be of, grouped by what comes out of them."""
    groups = {}
    for name in DTYPES.split():
        try:
            found = result(op, np.dtype(name))
        except TypeError:  # a dtype that NumPy does not know in this process
            continue
        if found is not None:
            groups.setdefault("" if found == name else f" → {found}", []).append(name)
    return "; ".join(", ".join(names) + to for to, names in groups.items())


def forms(op):
    """How it is called: `add(...)`, `add(..., out=)`, `add_(...)`; without a function of its own, as a method."""
    name = op.schema.name if op.schema.name in OPERATIONS else f"add.{op.schema.name}"
    called = [f"`{name}(…)`", *([f"`{name}(…, out=)`"] if op.structured else [])]
    called += [f"`{op.in_place.__name__}(…)`"] if op.in_place and op.in_place.__name__ in OPERATIONS else []
    return ", ".join(called + [f"`x.{name}(…)`"] * ("method" in op.variants))


def devices(op):
    """`CPU (nbkernels.cpu.gemm.gemm:addmm), Meta`: device keys with a kernel, and which; composites are for all."""
    rows = [op.table.row(key) for key in (keys.CPU, keys.CUDA)]
    if {row.reason for row in rows} <= set(keys.COMPOSITES):
        return f"all, composite (`{rows[0].row.kernel_name}`)"
    return ", ".join(f"{row.key} (`{row.row.kernel_name}`)" for row in rows if row.row) + ", Meta"


def gradient(op):
    """The formula of each argument, as gradients.py has it."""
    row = op.table.row(keys.autograd(keys.CPU))
    if row.row is None:
        return "none declared"
    if row.reason == keys.COMPOSITE_IMPLICIT:
        return "from its parts"
    return "; ".join(f"{name}: `{text(formula)}`" for name, formula in row.row.load().items())


def text(formula):
    """The expression of a lambda, or the call of a function."""
    formula = inspect.unwrap(formula)
    needs = list(inspect.signature(formula).parameters)
    if formula.__name__ != "<lambda>":
        return f"{formula.__name__}({', '.join(needs)})"
    for node in ast.walk(parsed(formula.__module__)):
        here = isinstance(node, ast.Lambda) and node.lineno == formula.__code__.co_firstlineno
        if here and [argument.arg for argument in node.args.args] == needs:
            return ast.unparse(node.body)
    raise LookupError(f"no lambda of {needs} where {formula} says that it is")


@functools.cache
def parsed(module):
    return ast.parse(inspect.getsource(importlib.import_module(module)))


def section(op):
    formula = op.function.__doc__.strip().splitlines()[0]
    flags = [*op.tags, *([f"in {op.python_module}"] if op.python_module else [])]
    flags += [f"kernels of {op.delegates_to.schema.full_name}"] if op.delegates_to else []
    lines = [
        f"## {op.schema.full_name}\n",
        f"`{op.schema}`\n",
        f"{formula}\n",
        f"- forms: {forms(op)}",
        f"- dtypes: {dtypes(op)}",
        f"- devices: {devices(op)}",
        f"- gradient: {gradient(op)}",
        *([f"- flags: {', '.join(flags)}"] if flags else []),
    ]
    return "\n".join(lines) + "\n"


def page():
    """The whole text."""
    return "\n".join([HEAD, *(section(op) for op in LIBRARY)])
