"""The kernel of element-wise operations: a scalar function of any number of operands over strided loops.

A thread takes `each` pieces of `width` neighbours along the innermost loop, THREADS pieces apart, whose loads are all
under way before the first is needed. How an operand is walked there is its `way`:

vector   its neighbours touch: they are moved by one instruction
same     one element for all of them: read once
strided  one after the other
number   no array, but a parameter of the kernel

The text is put together, since the number of operands, their dtypes and their ways are constants of a kernel.
"""

from numba import cuda, types

from .elements import computed, reading, stored, writing
from .functions import device, inlined
from .vectors import vectors

SOURCE = """\
def loop(pieces, inner, shape, divisors, pointers, steps, numbers):
    {arrays}
    start = cuda.blockIdx.x * INDEX({block}) + cuda.threadIdx.x
    for u in range(EACH):
        rest = INDEX(min(start + INDEX(u * THREADS), pieces - 1))
        {split}
        lefts[u] = min(inner - column, WIDTH)
        {loads}
    for u in range(EACH):
        if start + INDEX(u * THREADS) < pieces:
            {values}
"""


def make(function, dtype, outs, inputs, mask, ndim: int, width: int, each: int, threads: int, wide: bool):
    """out[k] = function(*inputs)[k], where the mask says so.

    Operands are (dtype in memory, dtype as computed, way); `mask` is a way or None. The function is compiled for
    `dtype`. `wide`: there are 2**31 pieces or more.
    """
    arrays, scope = prepared(function, dtype, outs, inputs, mask, width, each, threads)
    scope["INDEX"] = types.int64 if wide else types.uint32
    text = SOURCE.format(
        arrays="{arrays}",
        block=threads * each,
        split="\n        ".join(split(len(arrays), ndim, width, wide)),
        loads="\n        ".join(
            line for k in range(len(outs), len(arrays)) for line in loads(k, arrays[k][2], ndim, width)
        ),
        values="\n            ".join(values(outs, inputs, arrays, mask, ndim, width)),
    )
    index = types.UniTuple(types.int64, ndim)
    head = scope["INDEX"], types.int64, index, types.UniTuple(types.UniTuple(types.int64, 2), ndim)
    return compiled(text, "loop", head, arrays, inputs, ndim, width, each, scope)


def prepared(function, dtype, outs, inputs, mask, width: int, each: int, threads: int):
    """(arrays, names that the text of a kernel reads): arrays are outs, inputs and perhaps a mask."""
    arrays = [*outs, *(x for x in inputs if x[2] != "number"), *([("bool", "bool", mask)] if mask else [])]
    scope = {"cuda": cuda, "THREADS": threads, "EACH": each, "WIDTH": width, "call": inlined(device(function, dtype)),
             "int64": types.int64, "uint64": types.uint64, "NAME": function.__name__}  # fmt: skip
    for k, (name, result, _) in enumerate(arrays):
        load, store = vectors(name, width)
        scope |= {f"T{k}": stored(name), f"C{k}": computed(result), f"read{k}": reading(name),
                  f"write{k}": writing(name), f"load{k}": load, f"store{k}": store}  # fmt: skip
    return arrays, scope


def compiled(text: str, name: str, head, arrays, inputs, ndim: int, width: int, each: int, scope):
    """(body, signature) of a kernel's text, whose parameters are those of `head`, pointers, steps and numbers."""
    local = "\n    ".join(f"x{k}, at{k} = cuda.local.array({each * width}, T{k}), cuda.local.array(EACH, int64)"
                          for k in range(len(arrays)))  # fmt: skip
    text = text.replace("{arrays}", f"lefts = cuda.local.array(EACH, int64)\n    {local}")
    exec(compile(text, f"<nbkernels {scope['NAME']}>", "exec"), scope)
    pointers = types.Tuple([types.CPointer(stored(dtype)) for dtype, _, _ in arrays])
    steps = types.UniTuple(types.UniTuple(types.int64, ndim), len(arrays))
    numbers = types.Tuple([computed(compute) for _, compute, way in inputs if way == "number"])
    return scope[name], (*head, pointers, steps, numbers)


def split(count: int, ndim: int, width: int, wide: bool):
    """Lines: the element at which a piece begins, of every array, and its column in the innermost loop.

    divisors[d] divide by the number of pieces along loop d: (multiplier, shift), of a multiply and a shift where pieces
    are fewer than 2**31 (T. Granlund, P. Montgomery, Division by Invariant Integers using Multiplication, 1994).
    """
    divided = "rest // INDEX(divisors[{d}][0])" if wide else (
        "INDEX(uint64(rest) * uint64(divisors[{d}][0]) >> uint64(divisors[{d}][1]))"
    )  # fmt: skip
    size = "INDEX((inner + WIDTH - 1) // WIDTH)" if width > 1 else "INDEX(inner)"
    for d in range(ndim - 1, 0, -1):
        yield f"over = {divided.format(d=d)}"
        yield f"i{d} = int64(rest - over * {size if d == ndim - 1 else f'INDEX(shape[{d}])'})"
        yield "rest = over"
    yield "i0 = int64(rest)"
    last = ndim - 1
    yield f"column = i{last} * WIDTH"
    for k in range(count):
        outer = "".join(f"i{d} * steps[{k}][{d}] + " for d in range(last))
        yield f"at{k}[u] = {outer}column * steps[{k}][{last}]"


def loads(k: int, way: str, ndim: int, width: int):
    """Lines: what is read of array k."""
    first, step = f"u * {width}", f"steps[{k}][{ndim - 1}]"
    if way == "same":
        yield f"x{k}[{first}] = pointers[{k}][at{k}[u]]"
        return
    if way == "vector" and width > 1:
        yield "if lefts[u] == WIDTH:"
        yield f"    load{k}(x{k}, {first}, pointers[{k}], at{k}[u])"
        yield "else:"
        yield f"    for e in range({width}):"
        yield f"        x{k}[{first} + e] = pointers[{k}][at{k}[u] + min(int64(e), lefts[u] - 1)]"
    else:
        yield f"for e in range({width}):"
        yield f"    x{k}[{first} + e] = pointers[{k}][at{k}[u] + min(int64(e), lefts[u] - 1) * {step}]"


def values(outs, inputs, arrays, mask, ndim: int, width: int):
    """Lines: the function's values, and where they go."""
    given, k, n = [], len(outs), 0
    for _, _compute, way in inputs:
        if way == "number":
            given.append(f"numbers[{n}]")
            n += 1
        else:
            given.append(f"C{k}(read{k}(x{k}, u * {width}{'' if way == 'same' else ' + e'}))")
            k += 1
    parts = [f"C{j}(result{f'[{j}]' if len(outs) > 1 else ''})" for j in range(len(outs))]
    chosen = f"read{k}(x{k}, u * {width}{'' if mask == 'same' else ' + e'})" if mask else "True"
    whole = width > 1 and not mask and all(way == "vector" for _, _, way in outs)
    yield f"for e in range({width}):"
    yield f"    result = call({', '.join(given)})"
    for j, part in enumerate(parts):
        yield f"    write{j}(x{j}, u * {width} + e, {part})"
    if whole:
        yield "if lefts[u] == WIDTH:"
        for j in range(len(outs)):
            yield f"    store{j}(pointers[{j}], at{j}[u], x{j}, u * {width})"
        yield "else:"
    indent = "    " if whole else ""
    yield f"{indent}for e in range({width}):"
    yield f"{indent}    if e < lefts[u] and {chosen}:"
    for j in range(len(outs)):
        yield f"{indent}        pointers[{j}][at{j}[u] + e * steps[{j}][{ndim - 1}]] = x{j}[u * {width} + e]"
