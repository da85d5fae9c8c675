"""A call that repeats an earlier one's launches on other arrays: 13 us of the host in place of 69 (H100, 2026-11).

What a call launches follows from the layouts, dtypes, streams and numbers that it is given, and from its arrays'
addresses. These matter in two ways: as the kernels' pointers, and by what the arrays share. So the second call of a
kind goes the whole way and is noted, and later ones hand the driver the same arguments, with pointers to their arrays:

- where arrays start at one place in one call, they do so in the other: that is part of the kind
- arrays that start elsewhere share nothing with the one that is written, in neither call

A call that needed a temporary is never repeated: that memory belongs to it, and is none of its arrays'.
"""

from __future__ import annotations

from dataclasses import dataclass

from numba import cuda

from .launch import SIMULATED, Place, address, current, notes
from .memory import extent

if not SIMULATED:
    from cuda import core
    from numba.cuda.cudadrv.devicearray import DeviceNDArray

PLAIN = (int, float, complex, bool, str, type(None))
KINDS = 1024  # of calls that an op remembers: there are more only where numbers change from call to call
ONCE, NEVER = "seen once", "not to be repeated"


def replay(op):
    """The fast path of an op whose launches are made here, or None: launches of other kernels are not seen."""
    row = op.table.row("CUDA").row
    return Replay(op) if row is not None and row.kernel_name.startswith("nbkernels.") and not SIMULATED else None


class Replay:
    """The fast path of an op for numba's device arrays: replay(*args, out) is the result, or None to decline."""

    def __init__(self, op):
        self.op, self.known = op, {}

    def __call__(self, *args):
        if notes.launches is not None:  # a part of a call that is noted: its launches have to be seen
            return None
        arrays, places, where, kind = [], [], set(), []
        for x in args:
            if type(x) is DeviceNDArray:
                arrays.append(x)
                places.append(address(x))
                where.add((int(x.stream or 0), x.gpu_data.context.device.id))
                kind += x.shape, x.strides, x.dtype, places[-1] % 16
            elif type(x) in PLAIN:
                kind += type(x), repr(x)  # 1, 1.0 and True are equal, as are 0.0 and -0.0
            else:
                return None
        if len(where) != 1:  # streams to be joined, or devices that differ
            return None
        kind = (*kind, *where, *map(places.index, places))
        known = self.known.get(kind)
        if known is NEVER:
            return None
        if known is ONCE:
            return self.note(kind, arrays, args)
        if known is not None:
            return known.repeat(arrays, places, args[-1])
        if len(self.known) >= KINDS:
            self.known.clear()
        self.known[kind] = ONCE
        return None

    def note(self, kind, arrays, args):
        """Run the call the whole way and keep its launches. One that fails is left to the general path to refuse."""
        *given, out = args
        for i in self.op.rare:
            given.insert(i, None)
        self.known[kind], notes.launches = NEVER, []
        try:
            result = self.op.call(tuple(given), out)
        except Exception:
            return None
        finally:
            launches, notes.launches = notes.launches, None
        if (out is None) == all(result is not x for x in arrays):
            self.known[kind] = Launches.of(launches, arrays, result, out) or NEVER
        return result


@dataclass(frozen=True)
class Launches:
    """`calls`: what the driver was handed, each with the places in its arguments that are pointers: (index, number of
    the array, bytes from its first element). `reach`: of each array from its lowest byte to the one after its highest,
    counted from its first element. The last array is written."""

    calls: tuple
    reach: tuple
    device: int
    made: dict | None

    @classmethod
    def of(cls, launches, arrays, result, out):
        """The launches of a call, or None where its pointers cannot be told apart, or are not of its arrays."""
        arrays = [*arrays, result] if out is None else arrays
        places = [address(x) for x in arrays]
        reach = tuple((low - place, high - place) for (low, high), place in zip(map(extent, arrays), places))
        if (
            not launches
            or any(x.size == 0 for x in arrays)
            or not all(apart(places, reach, i) for i in range(len(places)))
        ):
            return None
        calls = []
        for queue, config, code, *arguments in launches:
            holes = []
            for i, argument in enumerate(arguments):
                if type(argument) is Place:
                    whose = [j for j, place in enumerate(places) if reach[j][0] <= argument - place < reach[j][1]]
                    if not whose:
                        return None
                    holes.append((i, whose[0], argument - places[whose[0]]))
            calls.append((queue, config, code, tuple(arguments), tuple(holes)))
        made = None
        if out is None:
            made = dict(shape=result.shape, dtype=result.dtype, strides=result.strides, stream=result.stream)
        return cls(tuple(calls), reach, result.gpu_data.context.device.id, made)

    def repeat(self, arrays, places, out):
        """The same launches on other arrays; None where they share memory as those of the first call did not."""
        if current() != self.device:
            return None
        if out is None:
            out = cuda.device_array(**self.made)
            places.append(address(out))
        elif not apart(places, self.reach, len(places) - 1):
            return None
        for queue, config, code, arguments, holes in self.calls:
            arguments = list(arguments)
            for i, array, distance in holes:
                arguments[i] = places[array] + distance
            core.launch(queue, config, code, *arguments)
        return out


def apart(places, reach, i) -> bool:
    """Whether every array starts where array i does, or shares no byte with it."""
    start, (low, high) = places[i], reach[i]
    return all(
        place == start or place + its_high <= start + low or start + high <= place + its_low
        for place, (its_low, its_high) in zip(places, reach)
    )
