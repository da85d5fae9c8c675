"""What a call must do: give what is expected, or refuse; write nothing else; do the same again."""

import warnings

import numpy as np

# What a call that cannot be done may raise; the library's own errors are among these.
REFUSALS = TypeError, ValueError, OverflowError, NotImplementedError, IndexError, MemoryError


class Finding(AssertionError):
    """What the library should not have done."""


def attempt(run):
    """run(), or the error by which it refuses; any other is a finding."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return run()
        except KeyError as error:  # no IndexError, and nobody's message
            raise Finding(f"raises KeyError: {error}") from error
        except REFUSALS as error:
            return error
        except Finding:
            raise
        except BaseException as error:
            raise Finding(f"raises {type(error).__name__}: {error}") from error


def refused(result):
    return isinstance(result, BaseException)


def require(holds, *words):
    if not holds:
        raise Finding(" ".join(map(str, words)))


def called(run, given, out=None, chosen=True, again=True):
    """What a call gives, or the error; but for the elements of out that are `chosen` no byte may change.

    It is made twice from the same bytes: the second time by plans that are kept.
    """
    placed = [p for p in [*given, out] if p is not None]
    rooms = list({id(p.room): p.room for p in placed}.values())
    before = [room.copy() for room in rooms]
    results, mine = [], None
    if out is not None and fits(chosen, out.view.shape):
        mine = out.elements(chosen)  # before the mask may be written over
    for _ in range(2 if again else 1):
        for room, bytes_ in zip(rooms, before):
            room[...] = bytes_
        result = attempt(run)
        for room, bytes_ in zip(rooms, before):
            changed = room != bytes_
            if mine is not None and not refused(result) and room is out.room:
                changed &= ~mine
            if changed.any():
                what = "written although refused" if refused(result) else "written outside of what is out's"
                raise Finding(f"{what}: {int(changed.sum())} bytes, from {int(changed.argmax())} of {room.size}")
        if out is not None and not refused(result):
            require(result is out.view, "what comes out is not the out that was given")
        results.append(result if refused(result) else np.array(result, copy=True))
    if len(results) == 2 and (out is None or mine is not None):
        first, second = results
        require(refused(first) == refused(second), "the second call differs from the first:", first, second)
        if not refused(first):
            alike(second, first, "the second call differs from the first", chosen)
    return result


def alike(found, expected, what, chosen=True):
    """Of one dtype and shape, and equal bit by bit where chosen."""
    found, expected = np.asarray(found), np.asarray(expected)
    require((found.dtype, found.shape) == (expected.dtype, expected.shape), what, found.dtype, found.shape,
            "is not", expected.dtype, expected.shape)  # fmt: skip
    if chosen is not True:
        chosen = np.broadcast_to(chosen, found.shape)
        found, expected = found[chosen], expected[chosen]
    equal = np.ones(found.shape, bool)
    for part in ("real", "imag") if found.dtype.kind == "c" else ("real",):
        x, y = getattr(found, part), getattr(expected, part)
        word = f"u{x.itemsize}"
        equal &= (x.view(word) == y.view(word)) | ((x != x) & (y != y))
    differ(equal, found, expected, what)


def differ(equal, found, expected, what):
    """A finding that names the first element that is not equal."""
    if not np.all(equal):
        i = np.unravel_index(int(np.argmin(equal)), found.shape)
        raise Finding(f"{what}: {found[i]!r} for {expected[i]!r} at {tuple(map(int, i))}, "
                      f"{int(np.sum(~equal))} of {equal.size}")  # fmt: skip


def fits(mask, shape):
    """Whether a mask broadcasts to a shape."""
    sizes = np.shape(mask)
    return len(sizes) <= len(shape) and all(n in (1, m) for n, m in zip(sizes[::-1], shape[::-1]))


def shown(x):
    """An argument in a few words."""
    if isinstance(x, np.ndarray):
        return f"{x.dtype.name if x.dtype.isnative else x.dtype.str}{x.shape}{x.strides}"
    return repr(x) if not isinstance(x, type) else x.__name__
