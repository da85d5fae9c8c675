"""Replay: a call that repeats the launches of an earlier call on other arrays, of any library.

What a call launches follows from the layouts, dtypes, streams and numbers that it is given, and from its arrays'
addresses. These matter in three ways: as the kernels' pointers, by their alignment, and by what the arrays share. So
the second call of a kind goes the whole way and is recorded, and later ones hand the driver the same launches, with
pointers to their arrays:

- where arrays start at one place in one call, they do so in the other: that is part of the kind, as is alignment
- arrays that start elsewhere share nothing with the one that is written, in neither call
- the result and the temporaries are made anew, as the recorded call made them
"""

from __future__ import annotations

import functools
import weakref
from types import SimpleNamespace

import numpy as np

from ..dispatch import arrays as libraries
from ..dispatch import driver
from ..dispatch.adapter import library
from ..dispatch.driver import recorder, simulated
from .launch import address_first, replace

KINDS = 1024  # of calls that an op remembers: there are more only where numbers change from call to call
ALIGNED = 128  # bytes; more than this no copy asks for
ONCE, NEVER = "seen once", "not to be repeated"
EVERY = weakref.WeakSet()  # of Kinds


class Kinds(dict):
    """What is known of the calls of an op: kind -> ONCE, NEVER or the function that repeats it."""

    __hash__ = object.__hash__


def forget() -> None:
    """Record all calls anew: what they would launch has changed."""
    for known in tuple(EVERY):
        known.clear()


# -- arrays as numbers ------------------------------------------------------------------------------------------------
# `refused` is an expression that is true of an array x which the general path has to look at; `address` and `layout`
# tell what a kind needs; `place` is (device, stream) that a call on x runs on; `watched` an expression of no array.


class Torch:
    """torch's tensors: 0.5 us a tensor where all else takes 2 to 9 (DLPack, the interface, current_stream)."""

    refused = "({x}.requires_grad and grad_is_on()) or {x}.is_neg() or {x}.is_conj()"
    address, layout = "{x}.data_ptr()", "{x}.shape, {x}.stride(), {x}.dtype, {x}.get_device()"
    place = "{x}.get_device(), current({x}.get_device())"
    watched = "tracing() or modes() or forward._current_level >= 0"  # vmap's tensors have no address

    def __init__(self):
        torch = library("torch")
        own = torch._C
        self.classes = frozenset((torch.Tensor, torch.nn.Parameter))
        self.scope = dict(
            grad_is_on=torch.is_grad_enabled, current=own._cuda_getCurrentRawStream, tracing=own._is_tracing,
            modes=own._len_torch_dispatch_stack, forward=torch.autograd.forward_ad,
            written=torch.autograd.graph.increment_version,
        )  # fmt: skip


class CuPy:
    """CuPy's arrays, on the current stream."""

    refused, watched = "False", "False"
    address, layout = "{x}.data.ptr", "{x}.shape, {x}.strides, {x}.dtype, {x}.data.device_id"
    place = "{x}.data.device_id, current().ptr"

    def __init__(self):
        cupy = library("cupy")
        self.classes = frozenset((cupy.ndarray,))
        self.scope = dict(current=cupy.cuda.get_current_stream, written=id)


class Numba:
    """numba's device arrays, each of which has its stream."""

    refused, watched = "False", "False"
    address, layout = "at({x})", "{x}.shape, {x}.strides, {x}.dtype, place({x})"
    place = "place({x})"

    def __init__(self):
        self.classes = frozenset((library("numba.cuda.cudadrv.devicearray").DeviceNDArray,))
        self.scope = dict(at=libraries.NUMBA.address, place=self.where, written=id)

    @staticmethod
    def where(x):
        return x.gpu_data.context.device.id, libraries.NUMBA.stream(x)


READERS = {"torch": functools.cache(Torch), "CuPy": functools.cache(CuPy), "numba.cuda": functools.cache(Numba)}


# -- the fast path of an op -------------------------------------------------------------------------------------------

# Written out for each combination of types, as dispatch/function.py does: a loop over the arguments takes twice as
# long.
TEXT = """\
def replay({names}, out):
    if recorder.launches is not None or {watched}:
        return None
    try:
        {reads}
        __kind = ({kind})
    except RuntimeError:
        return None
    __known = known.get(__kind)
    if __known is None:
        return first(__kind)
    if __known is NEVER:
        return None
    if __known is ONCE:
        return record(__kind, ({arrays}), ({names}, out))
    return __known({places}, out)
"""
ARRAY = """\
if {refused}:
            return None
        __at_{x} = {address}
"""
MAYBE = """\
__at_{x} = __layout_{x} = None
        if {x} is not None:
            if type({x}) not in classes or {refused}:
                return None
            __at_{x}, __layout_{x} = {address}, ({layout})
"""


def replay(op, name: str, types):
    """The fast path of an op for a library's arrays and numbers of these types, or None: launches of other kernels are
    not seen. It returns the result, or None to decline."""
    row = op.table.row("CUDA").row
    ours = row is not None and row.kernel_name.startswith("nbkernels.") and not simulated()
    if not ours:
        return None
    reader = READERS[name]()
    made = written_out(op, reader, dict(zip(op.keyed, types)), False)
    made.with_keywords = written_out(op, reader, dict(zip(op.keyed, types)), True) if op.rare else None
    return made


class Positional:
    """Stands for an op in `written_out`: a call whose arguments are all positional, made by call(arguments, out)."""

    rare = tensors = ()

    def __init__(self, name: str, count: int, call):
        self.names, self.keyed, self.call = tuple(f"x{i}" for i in range(count)), range(count), call
        self.schema = SimpleNamespace(full_name=name)


def of_function(function, types, name: str, call):
    """replay(*arguments, out) of a user's function of arrays of one library and of numbers, or None; call(arguments,
    out) makes the call."""
    if name not in READERS or simulated():
        return None
    reader = READERS[name]()
    if not all(cls in reader.classes or cls in PLAIN for cls in types):
        return None
    op = Positional(function.__name__, len(types), call)
    return written_out(op, reader, dict(enumerate(types)), False)


def written_out(op, reader, types, worded: bool):
    """The function of the text above; a `worded` one takes every argument of the schema."""
    names = [name for i, name in enumerate(op.names) if worded or i not in op.rare]
    sure = [op.names[i] for i, cls in types.items() if cls in reader.classes]
    maybe = [op.names[i] for i in op.tensors if worded and i in op.rare] + ["out"]
    parts = {"refused": reader.refused, "address": reader.address, "layout": reader.layout}

    def filled(text, x):
        return text.format(x=x, **{key: part.format(x=x) for key, part in parts.items()}).rstrip()

    arrays = [*sure, *maybe]
    kind = [reader.place.format(x=sure[0])]
    kind += [f"{reader.layout.format(x=x)}, __at_{x} % {ALIGNED}" for x in sure]
    kind += [f"__layout_{x}, __at_{x} and __at_{x} % {ALIGNED}" for x in maybe]
    kind += [f"__at_{x} == __at_{y}" for i, x in enumerate(arrays) for y in arrays[:i]]
    kind += [f"type({x}), {x} if type({x}) in PLAIN and {x} else told({x})" for x in names if x not in arrays]
    text = TEXT.format(
        names=", ".join(names),
        watched=reader.watched,
        reads="\n        ".join([filled(ARRAY, x) for x in sure] + [filled(MAYBE, x) for x in maybe]),
        kind=", ".join(kind),
        arrays="".join(f"{x}, " for x in arrays),
        places=", ".join(f"__at_{x}" for x in arrays),
    )
    known = Kinds()
    EVERY.add(known)
    scope = dict(reader.scope, recorder=recorder, known=known, NEVER=NEVER, ONCE=ONCE, PLAIN=PLAIN, told=told,
                 classes=reader.classes, first=functools.partial(first, known),
                 record=functools.partial(record, op, known, reader, worded))  # fmt: skip
    exec(compile(text, f"<nbkernels.replay {op.schema.full_name}>", "exec"), scope)
    made = scope["replay"]
    made.known = known
    return made


PLAIN = frozenset((int, float, bool, str))


def told(value):
    """What tells an argument that is no array from others: 0.0, -0.0, 0 and False are equal."""
    if value is None:
        return value
    if isinstance(value, int | float | complex | str | np.dtype | type | tuple | list):
        return repr(value)
    raise RuntimeError(f"{type(value)} is left to the general path")


def first(known, kind):
    """Remember a kind of call that is met for the first time."""
    if len(known) >= KINDS:
        known.clear()
    known[kind] = ONCE


def record(op, known, reader, worded, kind, arrays, args):
    """Run a call the whole way and keep its launches. One that fails before a launch is left to the general path, which
    raises its error; one that fails later has written, and is not made twice."""
    *given, out = args
    for i in () if worded else op.rare:
        given.insert(i, None)
    known[kind] = NEVER
    recorder.launches, recorder.made, recorder.fixed = [], [], False
    try:
        result = op.call(tuple(given), out)
    except Exception:
        if recorder.launches:
            raise
        return None
    finally:
        launches, made, fixed = recorder.launches, recorder.made, recorder.fixed
        recorder.launches, recorder.made = None, ()
    if not fixed:
        known[kind] = repeating(launches, arrays, made, result, out, reader) or NEVER
    return result


# -- a call that is repeated ------------------------------------------------------------------------------------------


def repeating(launches, arrays, made, result, out, reader):
    """repeat(*places, out): the launches of a recorded call on other arrays, or None where they share memory as those
    of that call did not; None where its pointers cannot be told apart, or are not of its arrays."""
    if not launches or (out is None and not any(result is x for x, _ in made)):
        return None
    everything = [*arrays, *(x for x, _ in made)]
    found = [(None, None) if x is None else extent(x) for x in everything]
    if any(x is not None and reach is None for x, (_, reach) in zip(everything, found)):
        return None  # of no elements

    def whose(address):
        return next(((i, address - at) for i, (at, reach) in enumerate(found)
                     if at is not None and reach[0] <= address - at < reach[1]), None)  # fmt: skip

    places = [(launch, list(map(whose, addresses))) for launch in launches
              for addresses in [[at for _, at in (*launch.places, *launch.maps)]]]  # fmt: skip
    if any(each is None for _, holes in places for each in holes):
        return None
    scope = dict(reader.scope, several=several, current=driver.current, device=driver.current(), replace=replace)
    lines = ["if several() and current() != device: return None"] if several() else []
    if out is not None:
        tests = [apart(i, reach, len(arrays) - 1, found[len(arrays) - 1][1])
                 for i, (x, (_, reach)) in enumerate(zip(arrays[:-1], found)) if x is not None]  # fmt: skip
        if not all(eval(test, {f"p{i}": at for i, (at, _) in enumerate(found)}) for test in tests):
            return None
        lines += [f"if not ({test}): return None" for test in tests]
    for i, (x, maker) in enumerate(made, len(arrays)):
        scope[f"make{i}"], scope[f"address{i}"] = maker, address_of(x)
        lines += [f"x{i} = make{i}()", f"p{i} = address{i}(x{i})"]
    for n, (launch, holes) in enumerate(places):
        scope[f"launch{n}"], scope[f"words{n}"], scope[f"lock{n}"] = launch, launch.words, launch.lock
        lines.append(f"with lock{n}:")
        for (word, _), (i, distance) in zip(launch.places, holes):
            lines.append(f"    words{n}[{word}] = p{i} + {distance}")
        for (word, _), (i, distance) in zip(launch.maps, holes[len(launch.places) :]):
            place = f"words{n}[{word}] = p{i} + {distance}" if address_first() else (
                f"replace({launch.base + 8 * word}, p{i} + {distance})"
            )  # fmt: skip
            lines.append(f"    {place}")
        lines.append(f"    launch{n}()")
    if out is None:
        lines.append(f"return x{next(i for i, (x, _) in enumerate(made, len(arrays)) if x is result)}")
    else:
        lines += ["written(out)", "return out"]
    parameters = ", ".join(f"p{i}" for i in range(len(arrays)))
    exec(f"def repeat({parameters}, out):\n    " + "\n    ".join(lines), scope)
    return scope["repeat"]


def apart(i, reach, j, other) -> str:
    """An expression: array i starts where array j does, or shares no byte with it."""
    (low, high), (first, last) = reach, other
    return f"p{i} == p{j} or p{i} + {high - first} <= p{j} or p{j} + {last - low} <= p{i}"


def extent(x):
    """(address, (lowest byte, byte after the highest) from there) of an array or a Block; of an empty one no reach."""
    if isinstance(x, driver.Block):
        return x.address, (0, x.size)
    adapter = libraries.adapter_of(type(x))
    spec, at = adapter.spec(x), adapter.address(x)
    steps = [(n - 1) * s for n, s in zip(spec.shape, spec.strides)]
    if 0 in spec.shape:
        return at, None
    return at, (sum(min(s, 0) for s in steps), sum(max(s, 0) for s in steps) + spec.dtype.itemsize)


def address_of(x):
    """The function that tells where an array of x's kind is."""
    return block_address if isinstance(x, driver.Block) else libraries.adapter_of(type(x)).address


def block_address(block):
    return block.address


@functools.cache
def several() -> bool:
    """Whether there is more than one device."""
    return driver.ask("cuDeviceGetCount") > 1
