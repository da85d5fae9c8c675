"""A call that repeats an earlier one's launches on other arrays, of any library.

What a call launches follows from the layouts, dtypes, streams and numbers that it is given, and from its arrays'
addresses. These matter in three ways: as the kernels' pointers, by their alignment, and by what the arrays share. So
the second call of a kind goes the whole way and is recorded, and later ones hand the driver the same launches, with
pointers to their arrays:

- where arrays start at one place in one call, they do so in the other: that is part of the kind, as is alignment
- arrays that start elsewhere share nothing with the one that is written, in neither call
- the result and the temporaries are made anew, as the recorded call made them
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from dataclasses import dataclass

import numpy as np

from ..dispatch import arrays as libraries
from ..dispatch import driver
from ..dispatch.adapter import library
from ..dispatch.driver import recorder, simulated
from .launch import encoder

KINDS = 1024  # of calls that an op remembers: there are more only where numbers change from call to call
ALIGNED = 128  # bytes; more than this no copy asks for
ONCE, NEVER = "seen once", "not to be repeated"
REPLAYS = weakref.WeakSet()


def replay(op, name: str):
    """The fast path of an op for a library's arrays, or None: launches of other kernels are not seen."""
    row = op.table.row("CUDA").row
    ours = row is not None and row.kernel_name.startswith("nbkernels.") and not simulated()
    return Replay(op, READERS[name]()) if ours else None


def forget() -> None:
    """Record all calls anew: what they would launch has changed."""
    for each in tuple(REPLAYS):
        each.known.clear()


# -- arrays as numbers ------------------------------------------------------------------------------------------------
# read(x): (address, what else tells arrays apart) of an array that can be taken so, else None.


class Torch:
    """torch's tensors: 0.6 us a tensor where all else takes 2 to 9 (dlpack, the interface, current_stream)."""

    def __init__(self):
        torch = library("torch")
        own, self.forward = torch._C, torch.autograd.forward_ad
        self.classes = frozenset((torch.Tensor, torch.nn.Parameter))
        self.grad_is_on = torch.is_grad_enabled
        self.current = getattr(own, "_cuda_getCurrentRawStream", None)
        self.tracing, self.modes = own._is_tracing, own._len_torch_dispatch_stack
        self.inside = own._functorch.maybe_current_level
        self.written = torch.autograd.graph.increment_version

    def watched(self):
        """Whether something would note what torch does, and miss this call."""
        return self.tracing() or self.modes() or self.forward._current_level >= 0 or self.inside() is not None

    def read(self, x):
        if (x.requires_grad and self.grad_is_on()) or x.is_neg() or x.is_conj():
            return None
        return x.data_ptr(), (x.shape, x.stride(), x.dtype, x.get_device())

    def place(self, x):
        """(device, stream) that a call on x runs on; None where x is not on a CUDA device."""
        index = x.get_device()
        return (index, self.current(index)) if x.is_cuda else None


class CuPy:
    """CuPy's arrays, on the current stream."""

    def __init__(self):
        cupy = library("cupy")
        self.classes, self.current = frozenset((cupy.ndarray,)), cupy.cuda.get_current_stream
        self.written, self.watched = id, bool

    def address(self, x):
        return x.data.ptr

    def read(self, x):
        return x.data.ptr, (x.shape, x.strides, x.dtype, x.data.device_id)

    def place(self, x):
        return x.data.device_id, self.current().ptr


class Numba:
    """numba's device arrays, each of which has its stream."""

    def __init__(self):
        self.classes = frozenset((library("numba.cuda.cudadrv.devicearray").DeviceNDArray,))
        self.view, self.address = libraries.NUMBA.view, libraries.NUMBA.address
        self.written, self.watched = id, bool

    def read(self, x):
        return self.address(x), (x.shape, x.strides, x.dtype, *self.place(x))

    def place(self, x):
        stream = getattr(x.stream, "handle", x.stream)
        return x.gpu_data.context.device.id, int(getattr(stream, "value", stream) or 0)


READERS = {"torch": functools.cache(Torch), "CuPy": functools.cache(CuPy), "numba.cuda": functools.cache(Numba)}


# -- calls ------------------------------------------------------------------------------------------------------------


class Replay:
    """The fast path of an op: replay(*args, out) is the result, or None to decline; `with_keywords` takes every
    argument of the schema."""

    def __init__(self, op, reader, worded=False):
        self.op, self.reader, self.known, self.worded = op, reader, {}, worded
        self.classes = reader.classes
        self.with_keywords = Replay(op, reader, True) if op.rare and not worded else None
        REPLAYS.add(self)

    def __call__(self, *args):
        reader = self.reader
        if recorder.launches is not None or reader.watched():  # a part of a call that is recorded is seen there
            return None
        arrays, places, kind, classes = [], [], [], self.classes
        try:
            for x in args:
                cls = type(x)
                if cls in classes:
                    found = reader.read(x)
                    if found is None:
                        return None
                    at, layout = found
                    arrays.append(x)
                    places.append(at)
                    kind.append((layout, at % ALIGNED))
                elif cls is int or cls is bool or x is None or cls is str:
                    kind.append((cls, x))
                elif cls is float or cls is complex or cls is np.dtype or cls is type:
                    kind.append((cls, repr(x)))  # 0.0 and -0.0 are equal
                elif cls is tuple or cls is list:
                    kind.append((cls, str(x)))
                else:
                    return None
            where = reader.place(arrays[0])
        except RuntimeError:  # a tensor without memory
            return None
        if where is None:
            return None
        for i, at in enumerate(places):
            if at in places[:i]:
                kind.append((i, places.index(at)))
        kind = (where, *kind)
        known = self.known.get(kind)
        if known.__class__ is Call:
            return known(arrays, places, args[-1], reader)
        if known is NEVER:
            return None
        if known is ONCE:
            return self.record(kind, arrays, args)
        if len(self.known) >= KINDS:
            self.known.clear()
        self.known[kind] = ONCE
        return None

    def record(self, kind, arrays, args):
        """Run the call the whole way and keep its launches. One that fails is left to the general path to refuse."""
        *given, out = args
        for i in () if self.worded else self.op.rare:
            given.insert(i, None)
        self.known[kind] = NEVER
        recorder.launches, recorder.made, recorder.fixed = [], [], False
        try:
            result = self.op.call(tuple(given), out)
        except Exception:
            return None
        finally:
            launches, made, fixed = recorder.launches, recorder.made, recorder.fixed
            recorder.launches, recorder.made = None, ()
        if not fixed:
            self.known[kind] = Call.of(launches, arrays, made, result, out) or NEVER
        return result


@dataclass(frozen=True)
class Call:
    """`launches`: each with the places among its parameters that are pointers, (index of the word, number of the array,
    bytes from its first element), and those of its tensor maps, likewise. Arrays are those that are given, then those
    that are `made`: (function that makes one, its address). `reach`: of each given array from its lowest byte to the
    one after its highest, counted from its first element. `result` is the number of what is returned, or None.
    """

    launches: tuple
    made: tuple
    reach: tuple
    result: int | None
    device: int

    @classmethod
    def of(cls, launches, arrays, made, result, out):
        """The launches of a call, or None where its pointers cannot be told apart, or are not of its arrays."""
        if not launches or (out is None and not any(result is x for x, _ in made)):
            return None
        everything = [*arrays, *(x for x, _ in made)]
        kept = [extent(x) for x in everything]
        places, reach = [place for place, _ in kept], [each for _, each in kept]
        if any(each is None for each in reach) or not apart(places, reach, len(arrays) - 1):
            return None

        def whose(address):
            return next(((j, address - at) for j, (at, (low, high)) in enumerate(zip(places, reach))
                         if low <= address - at < high), None)  # fmt: skip

        calls = []
        for launch in launches:
            holes = [(at, whose(address)) for at, address in launch.places]
            maps = [(at, whose(address)) for at, address in launch.maps]
            if any(found is None for _, found in (*holes, *maps)):
                return None
            calls.append((launch, *(tuple((at, *found) for at, found in each) for each in (holes, maps))))
        number = next((len(arrays) + i for i, (x, _) in enumerate(made) if x is result), None) if out is None else None
        makers = tuple((maker, address_of(x)) for x, maker in made)
        return cls(tuple(calls), makers, tuple(reach[: len(arrays)]), number, driver.current())

    def __call__(self, arrays, places, out, reader):
        """The same launches on other arrays; None where they share memory as those of the first call did not."""
        if (several() and driver.current() != self.device) or not apart(places, self.reach, len(places) - 1):
            return None
        made = [maker() for maker, _ in self.made]
        for (_, address), x in zip(self.made, made):
            places.append(address(x))
        for launch, holes, maps in self.launches:
            with launch.lock:
                words = launch.words
                for at, array, distance in holes:
                    words[at] = places[array] + distance
                for at, array, distance in maps:
                    replace(at, places[array] + distance)
                launch()
        if self.result is not None:
            return made[self.result - len(arrays)]
        reader.written(out)
        return out


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


def replace(at, address):
    """Let the tensor map at a place of this process's memory begin at another address of the device's."""
    status = encoder().cuTensorMapReplaceAddress(ctypes.c_void_p(at), ctypes.c_void_p(address))
    if status:
        raise driver.DriverError("cuTensorMapReplaceAddress", status)


def apart(places, reach, i) -> bool:
    """Whether every array starts where array i does, or shares no byte with it."""
    start, (low, high) = places[i], reach[i]
    return all(
        place == start or place + its_high <= start + low or start + high <= place + its_low
        for place, (its_low, its_high) in zip(places, reach)
    )
